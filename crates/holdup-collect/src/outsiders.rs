//! Those in the way who do not belong to what is observed: looked up while they are likely to be there still.
//!
//! In: waits as they are reported. Out: names by process id, who of them is stopped, and threads outside that own a lock which is
//! shared. Who the kernel notes for a file lock may have handed it on and ended; then the wait is told who really has it.

use super::behind::Readers;
use holdup_attribution::attribution::shared_lock_owner;
use holdup_evidence::{Event, LockHolder, Ns, TaskName, Wait, Waker};
use holdup_proc::{Root, file_locks, names};
use std::collections::{BTreeMap, BTreeSet};

/// Threads remembered that own, or owned, a lock: it has one owner at a time.
const MAX_SHARERS: usize = 1024;

/// How often all processes are looked through for who has a lock, at most: it takes some milliseconds for a thousand of them.
const MAX_SEARCHES: usize = 64;

/// Waits from which it is looked again whether the one in the way is stopped, nanoseconds: that takes some 20 µs.
const MIN_WAIT_NS: Ns = 100_000_000;

/// Who was met.
#[derive(Debug, Default)]
pub(super) struct Outsiders {
    names: BTreeMap<u32, String>,
    stopped: BTreeSet<u32>,
    sharers: BTreeSet<u32>,
    /// Owners of such locks under whose ids nobody lives.
    gone: BTreeSet<u32>,
    /// Who has the lock for which another process is noted.
    keepers: BTreeMap<u32, u32>,
    searches: usize,
    searcher: Searcher,
}

/// Whether no thread lives under an id. A process that has ended and whose status nobody has collected is gone as well. Where other users'
/// processes are hidden, nothing is known: the first process is always there.
fn is_gone(root: &Root, tid: u32, process: Option<u32>) -> bool {
    match process {
        Some(pid) => pid == tid && matches!(names::state(root, tid), Some('Z' | 'X')),
        None => names::process_of(root, 1).is_some(),
    }
}

/// Looks through all processes for who has a lock, in a child: a descriptor's page may wait for the locks of its file.
#[derive(Debug)]
struct Searcher(Readers<(u32, u32), Option<u32>>);

impl Default for Searcher {
    fn default() -> Searcher {
        Searcher(Readers::new(|| {
            Box::new(|(noted, own)| file_locks::who_has(&Root::system(), noted, own))
        }))
    }
}

/// What is reported of them at the end.
#[derive(Debug, Default)]
pub(crate) struct Met {
    /// Names by process id.
    pub(crate) names: BTreeMap<u32, String>,
    /// Those that were stopped by a signal when they were last looked at.
    pub(crate) stopped: BTreeSet<u32>,
}

impl Outsiders {
    /// Looks up who is in the way of a wait; `of_run` says of a process id whether it is observed.
    pub(super) fn meet(&mut self, wait: &mut Wait, of_run: &dyn Fn(u32) -> bool, out: &mut Vec<Event>) {
        if let Some(LockHolder::FileLock { pid }) = &mut wait.holder
            && *pid != 0
        {
            *pid = self.keeper(*pid);
        }
        let owner = match &wait.holder {
            Some(
                LockHolder::FileLock { pid }
                | LockHolder::Semaphore { pid }
                | LockHolder::QueueReceiver { pid },
            ) => Some(*pid),
            Some(LockHolder::PiFutex(owner) | LockHolder::Tracer(owner) | LockHolder::Session(owner)) => {
                Some(owner.pid)
            }
            Some(LockHolder::KernelLock(lock)) => lock.owner.map(|owner| owner.pid),
            Some(LockHolder::FutexWords(_)) => {
                self.meet_sharer(wait, of_run, out);
                None
            }
            Some(LockHolder::Runtime(_) | LockHolder::Stopped(_) | LockHolder::NobodyAsked) | None => None,
        };
        if let Some(pid) = owner.filter(|pid| *pid != 0 && !of_run(*pid)) {
            self.name(pid);
            // One that still sleeps has no end yet.
            if wait.end.saturating_sub(wait.start) >= MIN_WAIT_NS || wait.end <= wait.start {
                self.look(pid);
            }
        }
        if let Waker::Outside { task, .. } = &wait.waker {
            self.names.entry(task.pid).or_insert_with(|| task.name.clone());
        }
    }

    /// Looks up the name of a process that is in the way.
    pub(super) fn name(&mut self, pid: u32) {
        if !self.names.contains_key(&pid)
            && let Some(name) = names::comm(&Root::system(), pid)
        {
            self.names.insert(pid, name);
            self.look(pid);
        }
    }

    fn look(&mut self, pid: u32) {
        match names::state(&Root::system(), pid) {
            Some('T') => drop(self.stopped.insert(pid)),
            // What it was when it ended is the last that is known.
            None => {}
            Some(_) => drop(self.stopped.remove(&pid)),
        }
    }

    /// Who has the lock for which this process is noted: itself, if nothing else is known.
    fn keeper(&mut self, noted: u32) -> u32 {
        if let Some(known) = self.keepers.get(&noted) {
            return *known;
        }
        if self.searches >= MAX_SEARCHES {
            return noted;
        }
        self.searches += 1;
        match self.searcher.0.ask(noted, (noted, std::process::id())).flatten() {
            Some(keeper) => {
                self.keepers.insert(noted, keeper);
                keeper
            }
            None => {
                self.keepers.insert(noted, noted);
                noted
            }
        }
    }

    /// A lock that processes share names its owner by thread id alone: which process that is, if it is none of the
    /// run, only the kernel knows.
    fn meet_sharer(&mut self, wait: &Wait, of_run: &dyn Fn(u32) -> bool, out: &mut Vec<Event>) {
        // Whoever was there may be gone by the time of a long wait, or of one that goes on.
        let long = wait.end.saturating_sub(wait.start) >= MIN_WAIT_NS || wait.end <= wait.start;
        let Some(tid) = shared_lock_owner(wait).filter(|tid| long || !self.sharers.contains(tid)) else {
            return;
        };
        let root = Root::system();
        let process = names::process_of(&root, tid);
        if is_gone(&root, tid, process) {
            if self.gone.len() < MAX_SHARERS && self.gone.insert(tid) {
                out.push(Event::OwnerGone { tid });
            }
            return;
        }
        let new = !self.sharers.contains(&tid);
        let Some(pid) = process.filter(|pid| new && !of_run(*pid)) else {
            return;
        };
        if self.sharers.len() >= MAX_SHARERS {
            self.sharers.clear();
        }
        self.sharers.insert(tid);
        self.name(pid);
        out.push(Event::Outsider(TaskName {
            pid,
            tid,
            name: names::comm(&root, tid).unwrap_or_default(),
            kernel: false,
        }));
    }

    /// All that is known.
    pub(super) fn finish(self) -> Met {
        Met {
            names: self.names,
            stopped: self.stopped,
        }
    }
}
