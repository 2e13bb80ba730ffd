//! What a thread is found waiting in, as the evidence has it.
//!
//! In: an [`Answer`]. Out: a [`Waiting`], and events for the objects and kernel functions that are met for the first time.

use super::described;
use super::look::{Answer, Polled};
use super::site::Site;
use super::sockets::tcp_state::Watched;
use crate::descriptors::Open;
use holdup_evidence::{
    Event, KernelStackId, LockHolder, Ns, Object, ObjectId, ObjectKind, PolledFd, ThreadId, UserStackId,
    WaitMemory,
};
use holdup_knowledge::system_calls::{self, Child, Kind};
use std::collections::HashMap;

/// Objects and kernel stacks that are distinguished; a program that waits for more different ones has a trouble of another kind.
const MAX_OBJECTS: usize = 65_536;

/// What a thread waits in.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    /// Call and place.
    pub(super) site: Site,
    /// What the call is about.
    pub(super) object: Option<ObjectId>,
    /// What it polls, or which path it names.
    pub(super) asked: Option<Box<WaitMemory>>,
    /// Who is in the way.
    pub(super) holder: Option<LockHolder>,
    /// The kernel's functions.
    pub(super) kernel_stack: Option<KernelStackId>,
    /// Who asked.
    pub(super) user_stack: Option<UserStackId>,
    /// What is waited for that has another end, and what that is.
    pub(super) ends: Vec<(ObjectId, Open)>,
    /// The TCP connection that it is for, from its first look to the last.
    pub(super) tcp: Option<Watched>,
    /// How long it may last, where the call's memory says so, nanoseconds.
    pub(super) limit: Option<Ns>,
    /// Whether it is for nothing but what the run's own threads write: eventfds, and pipes of which its process has both ends.
    pub(super) by_own: bool,
}

/// Where those threads are that can have ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// In the waiter's process.
    Process,
    /// Anywhere in the run.
    Run,
}

impl Waiting {
    /// Of which nothing is known but how it sleeps.
    #[must_use]
    pub(super) fn unknown(state: holdup_evidence::TaskState) -> Waiting {
        Waiting {
            site: Site {
                state,
                call: None,
                fifth: 0,
                registers: None,
                function: None,
                runs: false,
            },
            object: None,
            asked: None,
            holder: None,
            kernel_stack: None,
            user_stack: None,
            ends: Vec::new(),
            tcp: None,
            limit: None,
            by_own: false,
        }
    }

    /// Who can have ended it, if it is of a kind that has no time limit and that nothing but another thread's doing ends.
    #[must_use]
    pub(super) fn ended_within(&self) -> Option<Reach> {
        /// Operations of `futex` that wait: `WAIT`, `LOCK_PI`, `WAIT_BITSET`, `LOCK_PI2`; without the flag that it is private, and that of
        /// the clock.
        const WAITS: [u64; 4] = [0, 6, 9, 13];
        const PRIVATE: u64 = 0x80;
        const CLOCK: u64 = 0x100;
        const NO_LIMIT: u64 = 0;
        let call = self.site.call?;
        let [_, second, _, fourth] = call.args;
        if call.name()? == "futex" {
            let waits = WAITS.contains(&(second & !(PRIVATE | CLOCK) & 0xff));
            let forever = second & PRIVATE != 0 && fourth == NO_LIMIT;
            return (waits && forever).then_some(Reach::Process);
        }
        let polls = system_calls::is(&call, Kind::Polls | Kind::WaitsForEpoll);
        let forever = polls && system_calls::waits_forever(&call) == Some(true);
        (self.by_own && (forever || call.name()? == "read")).then_some(Reach::Run)
    }

    /// The process or thread that it waits for to end; 0 for any child.
    #[must_use]
    pub(super) fn awaits_end(&self) -> Option<Awaited> {
        /// `FUTEX_WAIT` and `FUTEX_WAIT_BITSET`, without the flags of private futexes and of the clock.
        const FUTEX_WAITS: [u64; 2] = [0, 9];
        const FLAGS: u64 = 0x180;
        let call = self.site.call?;
        let [_, second, third, _] = call.args;
        match system_calls::awaited_child(&call) {
            Some(Child::Process(pid)) => Some(Awaited::Child(pid)),
            Some(Child::Any) => Some(Awaited::AnyChild),
            // Who joins a thread waits for the word that holds the thread's id, which the kernel clears.
            None if call.name()? == "futex" && FUTEX_WAITS.contains(&(second & !FLAGS & 0xff)) => {
                Some(Awaited::Thread(u32::try_from(third & 0xffff_ffff).ok()?))
            }
            None => None,
        }
    }
}

/// Whose end is awaited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    /// Of any child.
    AnyChild,
    /// Of one.
    Child(u32),
    /// Of a thread of the same process, if there is one with this id.
    Thread(u32),
}

/// Numbers of things that were met.
#[derive(Debug, Default)]
pub(super) struct Met {
    objects: HashMap<String, ObjectId>,
    /// Inodes of pipes.
    pipes: HashMap<ObjectId, u64>,
    kernel_stacks: HashMap<Vec<String>, KernelStackId>,
}

impl Met {
    /// What an answer says. `thread` is whose it is, `state` and the rest of the site are in the answer.
    pub(super) fn waiting(&mut self, thread: ThreadId, answer: Answer, out: &mut Vec<Event>) -> Waiting {
        let Answer {
            site,
            kernel_stack,
            object,
            polled,
            path,
            words,
            lock_holder,
            ring_at_rest,
            tracer,
            peers,
            own,
            tcp,
            limit,
            ..
        } = answer;
        let eventfd = |object: &Option<(String, Object)>| {
            let object = object.as_ref();
            object.is_some_and(|(_, object)| object.kind == ObjectKind::Eventfd)
        };
        let by_own = match &polled {
            Some((set, more)) => {
                !more && !set.is_empty() && set.iter().all(|one| one.own || eventfd(&one.object))
            }
            None => own || eventfd(&object),
        };
        let frames = kernel_stack
            .filter(|frames| !frames.is_empty())
            .or_else(|| site.function.clone().map(|function| vec![function]));
        let path_of_pipe = object.as_ref().and_then(|(_, object)| object.path.clone());
        let object = object.and_then(|object| self.object(object, out));
        let pipe = object.and_then(|object| Some((object, self.pipe_end(&site, object, path_of_pipe)?)));
        let polled_pipe = self.polled_pipe(polled.as_ref(), out);
        let asked = (polled.is_some() || path.is_some()).then(|| {
            let (polled, more) = polled.unwrap_or_default();
            let polled = polled.into_iter().map(|one| PolledFd {
                fd: one.fd,
                events: one.events,
                revents: 0,
                object: one.object.and_then(|object| self.object(object, out)),
                own: one.own,
            });
            Box::new(WaitMemory {
                polled: polled.collect(),
                polled_truncated: more,
                path,
                ..WaitMemory::empty(thread, 0)
            })
        });
        let known = |(key, inode): (String, u64)| Some((*self.objects.get(&key)?, Open::Socket(inode)));
        let ends = pipe
            .into_iter()
            .chain(polled_pipe)
            .chain(peers.into_iter().filter_map(known));
        Waiting {
            ends: ends.collect(),
            tcp,
            limit,
            by_own,
            object,
            asked,
            holder: words
                .map(LockHolder::FutexWords)
                .or(lock_holder.map(|pid| LockHolder::FileLock { pid }))
                .or(ring_at_rest.then_some(LockHolder::NobodyAsked))
                .or(tracer.map(LockHolder::Tracer)),
            kernel_stack: frames.and_then(|frames| self.kernel_stack(frames, out)),
            user_stack: None,
            site,
        }
    }

    /// The same of a pipe that is polled, if it is the only thing that is.
    fn polled_pipe(
        &mut self,
        polled: Option<&(Vec<Polled>, bool)>,
        out: &mut Vec<Event>,
    ) -> Option<(ObjectId, Open)> {
        /// `POLLIN`, `POLLOUT`.
        const READS: u16 = 1;
        const WRITES: u16 = 4;
        let (set, false) = polled? else {
            return None;
        };
        let [only] = set.as_slice() else {
            return None;
        };
        let (key, object) = only.object.clone().filter(|_| !only.own)?;
        let inode = (object.kind == ObjectKind::Pipe).then_some(object.inode)?;
        let id = self.object((key, object), out)?;
        match (only.events & READS != 0, only.events & WRITES != 0) {
            (true, false) => Some((id, Open::PipeToWrite(inode))),
            (false, true) => Some((id, Open::PipeToRead(inode))),
            _ => None,
        }
    }

    /// The end that a pipe's other user has: who sleeps to write waits for a reader.
    /// `path`: that of a named one.
    fn pipe_end(&self, site: &Site, object: ObjectId, path: Option<String>) -> Option<Open> {
        if !described::is_pipe(site) {
            return None;
        }
        let sends = site
            .function
            .as_deref()
            .is_some_and(|name| name.contains("write"));
        let writes = sends || opens_to_write(site);
        Some(match (self.pipes.get(&object), path, writes) {
            (Some(inode), _, true) => Open::PipeToRead(*inode),
            (Some(inode), _, false) => Open::PipeToWrite(*inode),
            (None, Some(path), true) => Open::PathToRead(path),
            (None, Some(path), false) => Open::PathToWrite(path),
            (None, None, _) => return None,
        })
    }

    /// The number of an object, reported with an event where it is new.
    pub(super) fn object(
        &mut self,
        (key, object): (String, Object),
        out: &mut Vec<Event>,
    ) -> Option<ObjectId> {
        if let Some(known) = self.objects.get(&key) {
            return Some(*known);
        }
        if self.objects.len() >= MAX_OBJECTS {
            return None;
        }
        let id = ObjectId(u32::try_from(self.objects.len()).ok()?);
        self.objects.insert(key, id);
        if object.kind == ObjectKind::Pipe {
            self.pipes.insert(id, object.inode);
        }
        out.push(Event::Object { id, object });
        Some(id)
    }

    fn kernel_stack(&mut self, frames: Vec<String>, out: &mut Vec<Event>) -> Option<KernelStackId> {
        if let Some(known) = self.kernel_stacks.get(&frames) {
            return Some(*known);
        }
        if self.kernel_stacks.len() >= MAX_OBJECTS {
            return None;
        }
        let id = KernelStackId(u32::try_from(self.kernel_stacks.len()).ok()?);
        self.kernel_stacks.insert(frames.clone(), id);
        out.push(Event::KernelStack { id, frames });
        Some(id)
    }
}

/// Whether it is about to open something to write to it, and nothing else: who opens a named pipe waits for its other end.
fn opens_to_write(site: &Site) -> bool {
    /// `O_ACCMODE`, `O_WRONLY`.
    const MODE: u64 = 3;
    const WRITES: u64 = 1;
    let Some(call) = site.call else {
        return false;
    };
    let flags = system_calls::of(&call).and_then(|known| call.args.get(usize::from(known.open_flags?)));
    flags.is_some_and(|flags| flags & MODE == WRITES)
}

#[cfg(test)]
mod tests {
    use super::{Awaited, Met, Waiting};
    use crate::descriptors::Open;
    use holdup_evidence::{Call, ObjectId, TaskState};

    fn awaited(name: &str, args: [u64; 4]) -> Option<Awaited> {
        let mut waiting = Waiting::unknown(TaskState::Interruptible);
        waiting.site.call = Some(Call {
            args,
            ..Call::named(name)
        });
        waiting.awaits_end()
    }

    #[test]
    fn who_opens_a_named_pipe_waits_for_the_other_side() {
        let opens = |name: &str, args| {
            let mut waiting = Waiting::unknown(TaskState::Interruptible);
            waiting.site.function = Some("wait_for_partner".to_owned());
            waiting.site.call = Some(Call {
                args,
                ..Call::named(name)
            });
            Met::default().pipe_end(&waiting.site, ObjectId(0), Some("/run/queue".to_owned()))
        };
        let (to_read, to_write) = (
            Some(Open::PathToRead("/run/queue".to_owned())),
            Some(Open::PathToWrite("/run/queue".to_owned())),
        );
        assert_eq!(opens("openat", [0, 0, 0o2_000_000, 0]), to_write);
        assert_eq!(opens("openat", [0, 0, 0o2_000_001, 0]), to_read);
        assert_eq!(opens("open", [0, 1, 0, 0]), to_read);
        assert_eq!(opens("read", [0, 1, 1, 0]), to_write);
    }

    #[test]
    fn whose_end_is_awaited_is_told_by_the_arguments() {
        assert_eq!(awaited("wait4", [0xffff_ffff, 0, 0, 0]), Some(Awaited::AnyChild));
        assert_eq!(awaited("wait4", [77, 0, 0, 0]), Some(Awaited::Child(77)));
        assert_eq!(awaited("waitid", [1, 77, 0, 0]), Some(Awaited::Child(77)));
        assert_eq!(
            awaited("futex", [0x7f00, 0x109, 77, 0]),
            Some(Awaited::Thread(77))
        );
        assert_eq!(awaited("futex", [0x7f00, 0x81, 77, 0]), None, "a wake");
        assert_eq!(awaited("read", [0, 0, 0, 0]), None);
    }
}
