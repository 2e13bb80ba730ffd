//! What runtimes say of the threads that run in them: their names, and the locks that they wait for.
//!
//! In: threads as they are born and end, names as stacks bring them, looks at locks, dumps. Out: new names, and the lock of a wait; of
//! dumps also its frames.

use super::dumps::Dumped;
use super::runtime_locks::RuntimeLocks;
use super::said_stacks::{Frames, SaidStacks};
use holdup_evidence::{Event, RuntimeLock, Seq, ThreadId, Wait};
use holdup_jvm::{Look, Machines, Structures};
use holdup_model::attributed::Source;
use holdup_symbols::{ProcessKey, Runtime};
use std::collections::HashMap;
use std::sync::Arc;

/// Those that can be read.
#[derive(Debug, Default)]
pub(super) struct Runtimes {
    machines: Machines,
    locks: RuntimeLocks,
    said: SaidStacks,
    /// What they call threads, which the kernel cuts.
    names: HashMap<ThreadId, Arc<str>>,
}

impl Runtimes {
    /// For waits that are sampled, and not traced.
    pub(super) fn sampled() -> Runtimes {
        Runtimes {
            machines: Machines::default().less_rarely(),
            locks: RuntimeLocks::from_source(Source::Sampled),
            ..Runtimes::default()
        }
    }

    /// For stacks that come to their code.
    pub(super) fn reader(&self) -> Box<dyn Runtime> {
        Box::new(self.machines.clone())
    }

    /// The machines among them, for whoever asks for more.
    pub(super) fn machines(&self) -> Machines {
        self.machines.clone()
    }

    /// Has locks looked at, and takes what earlier looks came to.
    pub(super) fn look_at_locks(&mut self) {
        self.locks.looked(self.machines.look());
    }

    /// The same for the last time, of all.
    pub(super) fn look_at_locks_now(&mut self) {
        self.locks.looked(self.machines.look_now());
    }

    /// Whether a process's structures can be read; `None` where there is nobody to ask.
    pub(super) fn structures(&self, pid: u32) -> Option<Structures> {
        self.machines.structures(pid)
    }

    /// A machine has said what its threads do; their names, where they are new.
    pub(super) fn dumped(&mut self, process: ProcessKey, dumped: Dumped) -> Vec<Event> {
        let (from, to) = (dumped.from, dumped.to);
        let mut waiting = Vec::new();
        let mut named = Vec::new();
        for said in dumped.threads {
            let Some(thread) = self.locks.thread(process, said.inside) else {
                continue;
            };
            if !said.name.is_empty() {
                named.extend(self.called(process, said.inside, thread, said.name.into()));
            }
            if !said.frames.is_empty() {
                self.said.said(thread, from, to, said.frames.into());
            }
            waiting.extend(said.waits_for);
        }
        self.locks.looked(vec![Look {
            process,
            from,
            to,
            waiting,
            joins: Vec::new(),
        }]);
        named
    }

    /// The frames of a wait, if its machine said them.
    pub(super) fn frames_of(&self, thread: ThreadId, seq: Seq) -> Option<Frames> {
        self.said.of(thread, seq)
    }

    /// Who was seen last to wait for whose end: a thread, and the other's id in their pid namespace.
    pub(super) fn joins(&self) -> impl Iterator<Item = (ThreadId, u32)> {
        self.locks.joins()
    }

    /// The lock that a wait was for, if it was seen.
    pub(super) fn lock_of(&mut self, wait: &Wait) -> Option<RuntimeLock> {
        self.said.meet(wait);
        self.locks.of(wait)
    }

    /// A thread lives; `tid` is its id in its own pid namespace.
    pub(super) fn born(&mut self, process: ProcessKey, tid: u32, thread: ThreadId) {
        self.locks.born(process, tid, thread);
    }

    /// Which thread a runtime means by an id.
    pub(super) fn thread(&self, process: ProcessKey, tid: u32) -> Option<ThreadId> {
        self.locks.thread(process, tid)
    }

    /// What a thread is called.
    pub(super) fn name(&self, thread: ThreadId) -> Option<&str> {
        self.names.get(&thread).map(|name| &**name)
    }

    /// A thread is called so by its runtime; the event that says it, where that is new. `tid` is whose name that is: a register that was
    /// not what it was taken for may have led to another.
    pub(super) fn called(
        &mut self,
        process: ProcessKey,
        tid: u32,
        thread: ThreadId,
        given: Arc<str>,
    ) -> Option<Event> {
        let its_own = self.locks.thread(process, tid) == Some(thread);
        if !its_own || self.names.get(&thread) == Some(&given) {
            return None;
        }
        let name = given.to_string();
        self.names.insert(thread, given);
        Some(Event::Renamed { thread, name })
    }

    /// The kernel was reported a new name; whether that is news: runtimes tell it, too, and it cuts.
    pub(super) fn renamed(&mut self, thread: ThreadId, name: &str) -> bool {
        let known = self.name(thread).is_some_and(|one| one.starts_with(name));
        if !known {
            self.names.remove(&thread);
        }
        !known
    }

    /// A thread is gone.
    pub(super) fn forget(&mut self, thread: ThreadId) {
        self.names.remove(&thread);
        self.said.forget(thread);
        self.locks.forget(thread);
    }

    /// A process is gone.
    pub(super) fn exit(&mut self, process: ProcessKey) {
        self.locks.exit(process);
    }
}

#[cfg(test)]
mod tests {
    use super::Runtimes;
    use holdup_evidence::ThreadId;
    use holdup_symbols::ProcessKey;

    #[test]
    fn the_kernels_part_of_a_name_is_no_news() {
        let mut runtimes = Runtimes::default();
        let (process, thread) = (ProcessKey(1), ThreadId(1));
        runtimes.born(process, 7, thread);
        let mut called = |tid| runtimes.called(process, tid, thread, "http-nio-8080-exec-1".into());
        assert!(called(8).is_none(), "that is another's name");
        assert!(called(7).is_some());
        assert!(called(7).is_none());
        assert!(!runtimes.renamed(thread, "http-nio-8080-e"));
        assert_eq!(runtimes.name(thread), Some("http-nio-8080-exec-1"));
        assert!(runtimes.renamed(thread, "sweeper"));
        assert_eq!(runtimes.name(thread), None);
    }
}
