//! Who was in the way of a wait, and how that is known.
//!
//! In: what the wait was for, who ended it, what a lock's words or the kernel's lock list said when it began.
//! Out: at most one task a wait; of a site the few that were in the way longest. An interrupt is never
//! named, nor a kernel thread but where the wait was for the kernel's own doings.

use super::people::{Named, People};
use crate::attributed::{Holder, HowKnown, ThreadName};
use holdup_evidence::{Call, Cause, LockHolder, Ns, TaskName, TaskState, ThreadId, Wait, Waker};

/// Holders kept of a site.
const MAX_HOLDERS: usize = 8;

/// The bits of a priority-inheritance futex that hold the owner's thread id, `FUTEX_TID_MASK`.
const FUTEX_TID_MASK: u32 = 0x3fff_ffff;

/// A glibc mutex that is locked, without and with waiters.
const MUTEX_LOCKED: [u32; 2] = [1, 2];

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
pub(super) struct InTheWay {
    pub(super) who: Who,
    pub(super) how: HowKnown,
}

/// Judges one wait of a thread of process `pid`; `pid_of` tells the process of other threads.
pub(super) fn judge(
    wait: &Wait,
    cause: Cause,
    pid: u32,
    people: &People,
    pid_of: &dyn Fn(ThreadId) -> Option<u32>,
) -> Option<InTheWay> {
    let living = |pid, tid| people.living(tid).map_or(Who::Task(pid, tid), Who::Thread);
    if let Some(owner) = mutex_owner(wait, pid, people, pid_of) {
        return Some(owner);
    }
    match wait.holder {
        Some(LockHolder::FileLock { pid }) if cause == Cause::LockFile && pid != 0 => {
            return Some(InTheWay {
                who: living(pid, pid),
                how: HowKnown::FileLock,
            });
        }
        _ => {}
    }
    if cause == Cause::ProcessStopped && wait.state != TaskState::Traced {
        let sender = &people.stopper(pid)?.by;
        let who = living(sender.pid, sender.tid);
        // Job control stops a thread in its own name or in a kernel thread's: then nobody is in the way.
        let somebody = !sender.kernel && who != Who::Thread(wait.thread);
        return somebody.then_some(InTheWay {
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
    if interrupts(cause, call) {
        return None;
    }
    Some(InTheWay {
        who,
        how: by_waking(cause, wait.state, call),
    })
}

/// The name of a task outside the run that [`judge`] named for this wait of a thread of process `waiter`.
pub(super) fn name_task(wait: &Wait, waiter: u32, who: Who, people: &mut People) -> Named {
    let (pid, tid) = match who {
        Who::Task(pid, tid) => (pid, tid),
        Who::Thread(_) => (0, 0),
    };
    let task = match (&wait.waker, people.stopper(waiter)) {
        (Waker::Outside { task, .. }, _) if task.tid == tid => task.clone(),
        (_, Some(stopper)) if stopper.by.tid == tid => stopper.by.clone(),
        _ => TaskName {
            pid,
            tid,
            name: String::new(),
            kernel: false,
        },
    };
    people.named_task(&task)
}

/// The owner that the words of a mutex name, believed only if all of it fits: the word says "locked" and the
/// owner is another living thread of the same process. Other users of futexes keep anything there.
fn mutex_owner(
    wait: &Wait,
    pid: u32,
    people: &People,
    pid_of: &dyn Fn(ThreadId) -> Option<u32>,
) -> Option<InTheWay> {
    let Some(LockHolder::FutexWords([lock, _, owner, _])) = wait.holder else {
        return None;
    };
    if owner == 0 {
        return None;
    }
    let how = match lock & FUTEX_TID_MASK {
        word if MUTEX_LOCKED.contains(&word) => HowKnown::MutexOwner,
        word if word == owner => HowKnown::PiFutex,
        _ => return None,
    };
    let thread = people.living(owner).filter(|thread| *thread != wait.thread)?;
    (pid_of(thread)? == pid).then_some(InTheWay {
        who: Who::Thread(thread),
        how,
    })
}

/// Waits in which a kernel thread may rightly be named.
fn waits_for_kernel(cause: Cause) -> bool {
    matches!(cause, Cause::LockKernel | Cause::KernelWork)
}

/// Whether the waker sent a signal, which ends a wait without what was waited for: a child ends by itself, a pipe's
/// other end reads or writes. `timeout` and a shell's `kill` are not in the way.
fn interrupts(cause: Cause, call: &Call) -> bool {
    const SIGNALS: &[&str] = &[
        "kill",
        "tkill",
        "tgkill",
        "pidfd_send_signal",
        "rt_sigqueueinfo",
        "rt_tgsigqueueinfo",
    ];
    let for_a_task = matches!(
        cause,
        Cause::ProcessChild | Cause::IpcPipe | Cause::IpcUnix | Cause::LockFile | Cause::LockSysv
    );
    for_a_task && call.name().is_some_and(|name| SIGNALS.contains(&name))
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
    const CALLS: &[&str] = &[
        "read",
        "readv",
        "pread64",
        "preadv",
        "preadv2",
        "write",
        "writev",
        "pwrite64",
        "pwritev",
        "pwritev2",
        "splice",
        "vmsplice",
        "tee",
        "sendfile",
        "copy_file_range",
        "sendto",
        "sendmsg",
        "sendmmsg",
        "recvfrom",
        "recvmsg",
        "recvmmsg",
        "shutdown",
        "connect",
        "accept",
        "accept4",
        "close",
        "close_range",
        "dup2",
        "dup3",
        "exit",
        "exit_group",
        "execve",
        "execveat",
        "io_uring_enter",
    ];
    call.name().is_some_and(|name| CALLS.contains(&name))
}

/// One of a site's holders.
#[derive(Debug, Clone)]
struct Tally {
    in_the_way: InTheWay,
    name: Named,
    ns: Ns,
    /// What it did meanwhile, the most of it.
    doing: [Option<(Cause, Ns)>; 2],
}

/// The holders of a site that were in the way longest.
#[derive(Debug, Clone, Default)]
pub(super) struct TopHolders {
    list: Vec<Tally>,
}

impl TopHolders {
    /// Somebody was in the way for `ns` and mostly did `doing` meanwhile; `name` is asked for newcomers.
    pub(super) fn add(
        &mut self,
        in_the_way: InTheWay,
        ns: Ns,
        doing: Option<(Cause, Ns)>,
        name: impl FnOnce() -> Named,
    ) {
        if let Some(known) = self.list.iter_mut().find(|known| known.in_the_way == in_the_way) {
            known.add(ns, doing);
        } else if self.has_room(ns) {
            self.insert(Tally {
                in_the_way,
                name: name(),
                ns,
                doing: [doing, None],
            });
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
            match self
                .list
                .iter_mut()
                .find(|known| known.in_the_way == tally.in_the_way)
            {
                Some(known) => known.add(tally.ns, tally.doing.into_iter().flatten()),
                None => self.insert(tally),
            }
        }
    }

    /// As the report has them, longest first; `complete` adds what is known of tasks outside the run.
    pub(super) fn holders(&self, people: &People, complete: &dyn Fn(&mut ThreadName)) -> Vec<Holder> {
        let mut holders: Vec<Holder> = self
            .list
            .iter()
            .map(|tally| {
                let mut name = people.describe(&tally.name);
                if matches!(tally.in_the_way.who, Who::Task(..)) {
                    complete(&mut name);
                }
                Holder {
                    name,
                    how_known: tally.in_the_way.how,
                    doing: tally
                        .doing
                        .iter()
                        .flatten()
                        .max_by_key(|doing| doing.1)
                        .map(|doing| doing.0),
                    ns: tally.ns,
                    stack: Vec::new(),
                }
            })
            .collect();
        holders.sort_by_key(|holder| std::cmp::Reverse(holder.ns));
        holders
    }
}

impl Tally {
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
