//! Who was in the way of a wait, and how that is known.
//!
//! In: what the wait was for, who ended it, what a lock's words or the kernel's lock list said when it began.
//! Out: at most one task a wait; of a site the few that were in the way longest. An interrupt is never
//! named, nor a kernel thread but where the wait was for the kernel's own doings.

use super::owners;
use super::task_table::{Identity, Named, TaskTable};
use holdup_evidence::{
    Call, Cause, Frame, LockHolder, LockOwner, Ns, TaskName, TaskState, ThreadId, UserStackId, Wait, Waker,
};
use holdup_knowledge::system_calls;
use holdup_knowledge::system_calls::Kind as Does;
use holdup_model::attributed::{Holder, HowKnown, ThreadName};
use std::collections::BTreeSet;

/// Holders kept of a site.
const MAX_HOLDERS: usize = 8;

/// Who it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    /// A thread of the run.
    Thread(ThreadId),
    /// Another task: process and thread id.
    Task(u32, u32),
}

/// Who was in the way, and how that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Blocker {
    pub(super) who: Who,
    pub(super) how: HowKnown,
}

/// Judges one wait of this thread; `pid_of` tells the process of other threads.
pub(super) fn judge(
    wait: &Wait,
    cause: Cause,
    waiter: &Identity,
    tasks: &TaskTable,
    pid_of: &dyn Fn(ThreadId) -> Option<u32>,
) -> Option<Blocker> {
    let pid = tasks.pid(waiter.process);
    if let Some(owner) = owner(wait, cause, waiter, tasks, pid_of) {
        return Some(owner);
    }
    if cause == Cause::ProcessStopped && wait.state != TaskState::Traced {
        let sender = &tasks.stopper(pid)?.by;
        let who = living(tasks, wait, sender.pid, sender.tid);
        // Job control stops a thread in its own name or in a kernel thread's: then nobody is in the way.
        let somebody = !sender.kernel && who != Who::Thread(wait.thread);
        return somebody.then_some(Blocker {
            who,
            how: HowKnown::Waker,
        });
    }
    let (who, call) = match &wait.waker {
        Waker::Thread { thread, call, .. } if *thread != wait.thread => (Who::Thread(*thread), call),
        Waker::Outside { task, call } if !task.kernel || waits_for_kernel(cause) => {
            (Who::Task(task.pid, task.tid), call)
        }
        _ => return None,
    };
    let same_process = |id| pid_of(id).is_some_and(|waker| waker == pid);
    let killed = ends_process(call) && matches!(who, Who::Thread(id) if same_process(id));
    if killed || interrupts(cause, call) {
        return None;
    }
    Some(Blocker {
        who,
        how: by_waking(cause, wait.state, call),
    })
}

/// The process at the other side of a wait that goes on, by its first thread.
pub(super) fn process(pid: u32, wait: &Wait, cause: Cause, tasks: &TaskTable) -> Option<Blocker> {
    let how = match cause {
        Cause::IpcPipe => HowKnown::PipePeer,
        Cause::IpcUnix
        | Cause::NetReceive
        | Cause::NetSend
        | Cause::NetConnect
        | Cause::NetDns
        | Cause::NetTls
        | Cause::PollWait => HowKnown::SocketPeer,
        Cause::FsFuse => HowKnown::FuseDaemon,
        Cause::ProcessChild | Cause::IpcSignal => HowKnown::Child,
        _ => return None,
    };
    Some(Blocker {
        who: living(tasks, wait, pid, pid),
        how,
    })
}

/// Waits for a lock, for which somebody who has it lets it go.
fn is_lock(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::LockFutex
            | Cause::LockMonitor
            | Cause::LockFile
            | Cause::LockKernel
            | Cause::LockSysv
            | Cause::MemMmaplock
    )
}

/// Whether a call ends all other threads of the process that makes it: those are woken to die, and by nothing that they waited for.
fn ends_process(call: &Call) -> bool {
    system_calls::is(call, Does::EndsThreads)
}

/// Whether a call sends signals.
fn signals(call: &Call) -> bool {
    system_calls::is(call, Does::Signals)
}

/// Who lived under these ids when the wait began: a thread of the run, or another task.
fn living(tasks: &TaskTable, wait: &Wait, pid: u32, tid: u32) -> Who {
    tasks
        .lived(tid, wait.start)
        .map_or(Who::Task(pid, tid), Who::Thread)
}

/// Who owned what the thread began to wait for, as the lock itself or the kernel names it.
fn owner(
    wait: &Wait,
    cause: Cause,
    waiter: &Identity,
    tasks: &TaskTable,
    pid_of: &dyn Fn(ThreadId) -> Option<u32>,
) -> Option<Blocker> {
    let task = |owner: &LockOwner, how| {
        Some(Blocker {
            who: living(tasks, wait, owner.pid, owner.tid),
            how,
        })
    };
    if let Some(who) = heir(wait, cause, tasks, pid_of) {
        return Some(Blocker {
            who,
            how: HowKnown::FileLock,
        });
    }
    match wait.holder.as_ref()? {
        LockHolder::FutexWords(_) | LockHolder::Runtime(_) => lock_owner(wait, waiter, tasks, pid_of),
        LockHolder::FileLock { pid } if cause == Cause::LockFile && *pid != 0 => Some(Blocker {
            who: living(tasks, wait, *pid, *pid),
            how: HowKnown::FileLock,
        }),
        LockHolder::Semaphore { pid } if cause == Cause::LockSysv => Some(Blocker {
            who: living(tasks, wait, *pid, *pid),
            how: HowKnown::Semaphore,
        }),
        LockHolder::QueueReceiver { pid } if cause == Cause::IpcQueue => Some(Blocker {
            who: living(tasks, wait, *pid, *pid),
            how: HowKnown::QueueReceiver,
        }),
        LockHolder::PiFutex(owner) => task(owner, HowKnown::PiFutex),
        LockHolder::Session(owner) => task(owner, HowKnown::SessionLock),
        LockHolder::KernelLock(lock) if guarded_by_kernel(cause) => {
            task(lock.owner.as_ref()?, HowKnown::KernelLock)
        }
        LockHolder::Tracer(owner) if cause == Cause::ProcessStopped => task(owner, HowKnown::Tracer),
        _ => None,
    }
}

/// Who let go of a file lock for which a process is noted that has ended: what `flock` locks belongs to the open file, and whoever
/// inherited that has the lock.
fn heir(
    wait: &Wait,
    cause: Cause,
    tasks: &TaskTable,
    pid_of: &dyn Fn(ThreadId) -> Option<u32>,
) -> Option<Who> {
    let Some(LockHolder::FileLock { pid: noted }) = &wait.holder else {
        return None;
    };
    if cause != Cause::LockFile || tasks.lived(*noted, wait.start).is_some() {
        return None;
    }
    let (who, pid, call) = match &wait.waker {
        Waker::Outside { task, call } => (Who::Task(task.pid, task.tid), Some(task.pid), call),
        Waker::Thread { thread, call, .. } => (Who::Thread(*thread), pid_of(*thread), call),
        Waker::Interrupt { .. } | Waker::Unknown => return None,
    };
    (pid != Some(*noted) && lets_go_of_files(call)).then_some(who)
}

/// Whether a call gives back a lock on a file: by unlocking it, or with the last descriptor of the open file.
fn lets_go_of_files(call: &Call) -> bool {
    system_calls::is(call, Does::Closes) || call.name() == Some("flock")
}

/// Waits that are for a lock in the kernel.
fn guarded_by_kernel(cause: Cause) -> bool {
    matches!(cause, Cause::LockKernel | Cause::MemMmaplock | Cause::FsFrozen)
}

/// The owner that a lock in user memory names, believed only if it lives where it can have that lock.
fn lock_owner(
    wait: &Wait,
    waiter: &Identity,
    tasks: &TaskTable,
    pid_of: &dyn Fn(ThreadId) -> Option<u32>,
) -> Option<Blocker> {
    let owner = owners::of(wait)?;
    let who = match tasks.as_seen_by(waiter, owner.tid, wait.start) {
        // A thread waits for itself where it locks again what can't be locked twice; if somebody let it go, the
        // lock is not used as a lock.
        Some(thread) if thread == wait.thread => {
            (!owner.recursive && !let_go(&wait.waker)).then_some(Who::Thread(thread))
        }
        Some(thread) => {
            (owner.shared || pid_of(thread)? == tasks.pid(waiter.process)).then_some(Who::Thread(thread))
        }
        None if owner.shared && waiter.inside.is_none() => {
            // By the time that the wait is over its owner may have ended too; then it was seen to let go.
            let task = match &wait.waker {
                Waker::Outside { task, .. } if task.tid == owner.tid => task,
                _ => tasks.outsider(owner.tid)?,
            };
            Some(Who::Task(task.pid, task.tid))
        }
        None => None,
    };
    Some(Blocker {
        who: who?,
        how: owner.how,
    })
}

/// Whether a wait for a futex was ended by someone who let it go, rather than by a signal or the process's end.
pub(super) fn let_go(waker: &Waker) -> bool {
    let call = match waker {
        Waker::Thread { call, .. } | Waker::Outside { call, .. } => call,
        Waker::Interrupt { .. } | Waker::Unknown => return false,
    };
    system_calls::is(call, Does::WakesFutex)
}

/// The name of a task outside the run that [`judge`] named for this wait of a thread of process `waiter`.
pub(super) fn name_task(wait: &Wait, waiter: u32, who: Who, tasks: &mut TaskTable) -> Named {
    let (pid, tid) = match who {
        Who::Task(pid, tid) => (pid, tid),
        Who::Thread(_) => (0, 0),
    };
    let known = match (&wait.waker, tasks.stopper(waiter)) {
        (Waker::Outside { task, .. }, _) if task.tid == tid => Some(task),
        (_, Some(stopper)) if stopper.by.tid == tid => Some(&stopper.by),
        _ => tasks.outsider(tid).filter(|task| task.pid == pid),
    };
    let task = known.cloned().unwrap_or_else(|| TaskName {
        pid,
        tid,
        name: String::new(),
        kernel: false,
    });
    tasks.named_task(&task)
}

/// Waits in which a kernel thread may rightly be named.
fn waits_for_kernel(cause: Cause) -> bool {
    matches!(cause, Cause::LockKernel | Cause::KernelWork)
}

/// Whether the waker sent a signal, which ends a wait without what was waited for: a child ends by itself, the other end of a pipe
/// or connection reads or writes, a lock is let go of. `timeout` and a shell's `kill` are not in the way.
fn interrupts(cause: Cause, call: &Call) -> bool {
    let for_a_task = matches!(
        cause,
        Cause::ProcessChild
            | Cause::IpcPipe
            | Cause::IpcUnix
            | Cause::IpcQueue
            | Cause::NetReceive
            | Cause::NetSend
            | Cause::NetAccept
            | Cause::NetConnect
            | Cause::NetDns
            | Cause::NetTls
            | Cause::PollWait
            | Cause::FsFuse
    );
    (for_a_task || is_lock(cause)) && signals(call)
}

/// Whether a signal broke a wait off in which nobody waits for one: the waiter's way goes on from that wait, and not from whoever sent it.
/// `timeout` ends a client that waits for a server: the client's time was the server's. A set of `epoll` may hold a descriptor for signals.
pub(super) fn breaks_off(wait: &Wait) -> bool {
    let for_something =
        Does::Reads | Does::Receives | Does::Connects | Does::Polls | Does::Sleeps | Does::WaitsForFutex;
    let Waker::Thread { call, .. } = &wait.waker else {
        return false;
    };
    let sleeps = matches!(wait.state, TaskState::Interruptible);
    sleeps && signals(call) && system_calls::is(&wait.call, for_something)
}

/// What a waking in the waker's own context says of it.
fn by_waking(cause: Cause, state: TaskState, call: &Call) -> HowKnown {
    match cause {
        Cause::ProcessStopped if state == TaskState::Traced => HowKnown::Tracer,
        Cause::FsFuse => HowKnown::FuseDaemon,
        Cause::IpcPipe if transfers_or_closes(call) => HowKnown::PipePeer,
        Cause::IpcUnix
        | Cause::NetReceive
        | Cause::NetSend
        | Cause::NetAccept
        | Cause::NetConnect
        | Cause::NetDns
        | Cause::NetTls
            if transfers_or_closes(call) =>
        {
            HowKnown::SocketPeer
        }
        _ => HowKnown::Waker,
    }
}

/// Whether a call reads, writes or closes descriptors, as the other end of a pipe or socket does.
fn transfers_or_closes(call: &Call) -> bool {
    let moves = Does::Reads | Does::Writes | Does::MovesData | Does::Submits | Does::Closes;
    let on_sockets = Does::Sends | Does::Receives | Does::ShutsDown | Does::Connects | Does::Accepts;
    system_calls::is(call, moves) || system_calls::is(call, on_sockets)
}

/// One of a site's holders.
#[derive(Debug, Clone)]
struct Tally {
    blocker: Blocker,
    name: Named,
    ns: Ns,
    /// What it did meanwhile, the most of it.
    doing: [Option<(Cause, Ns)>; 2],
    /// Its stack for the longest of that time for which one is known, and how long that was.
    stack: Option<(UserStackId, Ns)>,
    /// Other threads of its process that may have been meant, at the most.
    others_busy: u64,
}

/// What the one in the way did meanwhile.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Meanwhile {
    /// The most of it.
    pub(super) doing: Option<(Cause, Ns)>,
    /// A stack of that time, and how long it was its own.
    pub(super) stack: Option<(UserStackId, Ns)>,
    /// Threads of its process that did not rest, where any of them may have been meant.
    pub(super) others_busy: u64,
}

/// The holders of a site that were in the way longest.
#[derive(Debug, Clone, Default)]
pub(super) struct TopHolders {
    list: Vec<Tally>,
}

impl TopHolders {
    /// Somebody was in the way for `ns` and did this meanwhile; `name` is asked for newcomers.
    pub(super) fn add(
        &mut self,
        blocker: Blocker,
        ns: Ns,
        meanwhile: Meanwhile,
        name: impl FnOnce() -> Named,
    ) {
        if let Some(known) = self.list.iter_mut().find(|known| known.blocker == blocker) {
            known.add(ns, meanwhile.doing);
            known.seen_with(meanwhile.stack);
            known.others_busy = known.others_busy.max(meanwhile.others_busy);
        } else if self.has_room(ns) {
            self.insert(Tally {
                blocker,
                name: name(),
                ns,
                doing: [meanwhile.doing, None],
                stack: meanwhile.stack,
                others_busy: meanwhile.others_busy,
            });
        }
    }

    /// The thread of the run that was at the other end for longest before.
    pub(super) fn peer(&self) -> Option<Blocker> {
        let peers = self.list.iter().filter(|known| {
            let peer = matches!(known.blocker.how, HowKnown::PipePeer | HowKnown::SocketPeer);
            peer && matches!(known.blocker.who, Who::Thread(_))
        });
        Some(peers.max_by_key(|known| known.ns)?.blocker)
    }

    /// More is known of what somebody did who was in the way.
    pub(super) fn learn(&mut self, blocker: Blocker, meanwhile: Meanwhile) {
        if let Some(known) = self.list.iter_mut().find(|known| known.blocker == blocker) {
            known.add(0, meanwhile.doing);
            known.others_busy = known.others_busy.max(meanwhile.others_busy);
            // As long as the one before, and of the thread that is meant.
            let longer = |now: &(UserStackId, Ns)| known.stack.is_none_or(|before| now.1 >= before.1);
            known.stack = meanwhile.stack.filter(longer).or(known.stack);
        }
    }

    fn has_room(&self, ns: Ns) -> bool {
        self.list.len() < MAX_HOLDERS || self.list.iter().any(|known| known.ns < ns)
    }

    fn insert(&mut self, new: Tally) {
        if self.list.len() < MAX_HOLDERS {
            self.list.push(new);
        } else if let Some(least) = self.list.iter_mut().min_by_key(|known| known.ns)
            && least.ns < new.ns
        {
            *least = new;
        }
    }

    /// Takes over another site's.
    pub(super) fn absorb(&mut self, other: TopHolders) {
        for tally in other.list {
            match self.list.iter_mut().find(|known| known.blocker == tally.blocker) {
                Some(known) => {
                    known.add(tally.ns, tally.doing.into_iter().flatten());
                    known.seen_with(tally.stack);
                    known.others_busy = known.others_busy.max(tally.others_busy);
                }
                None => self.insert(tally),
            }
        }
    }

    /// As the report has them, longest first; `complete` adds what is known of tasks outside the run, of which some are `stopped`.
    pub(super) fn holders(
        &self,
        tasks: &TaskTable,
        user_stacks: &[Vec<Frame>],
        complete: &dyn Fn(&mut ThreadName),
        stopped: &BTreeSet<u32>,
    ) -> Vec<Holder> {
        let mut holders: Vec<Holder> = self
            .list
            .iter()
            .map(|tally| {
                let mut name = tasks.describe(&tally.name);
                let outside = matches!(tally.blocker.who, Who::Task(..));
                if outside {
                    complete(&mut name);
                }
                let stopped = outside && stopped.contains(&name.pid);
                let stack = tally
                    .stack
                    .and_then(|(stack, _)| user_stacks.get(stack.0 as usize).cloned())
                    .unwrap_or_default();
                Holder {
                    name,
                    how_known: tally.blocker.how,
                    doing: tally
                        .doing
                        .iter()
                        .flatten()
                        .max_by_key(|doing| doing.1)
                        .map(|doing| doing.0)
                        .or(stopped.then_some(Cause::ProcessStopped)),
                    ns: tally.ns,
                    place: super::asker::place(&stack),
                    stack,
                    others_busy: tally.others_busy,
                }
            })
            .collect();
        holders.sort_by_key(|holder| std::cmp::Reverse(holder.ns));
        holders
    }
}

impl Tally {
    fn seen_with(&mut self, stack: Option<(UserStackId, Ns)>) {
        if let Some((_, ns)) = stack
            && self.stack.is_none_or(|known| known.1 < ns)
        {
            self.stack = stack;
        }
    }

    fn add(&mut self, ns: Ns, doing: impl IntoIterator<Item = (Cause, Ns)>) {
        self.ns = self.ns.saturating_add(ns);
        for (cause, ns) in doing {
            if let Some(known) = self.doing.iter_mut().flatten().find(|known| known.0 == cause) {
                known.1 = known.1.saturating_add(ns);
            } else if let Some(least) = self
                .doing
                .iter_mut()
                .min_by_key(|known| known.map(|known| known.1))
                && least.is_none_or(|least| least.1 < ns)
            {
                *least = Some((cause, ns));
            }
        }
    }
}
