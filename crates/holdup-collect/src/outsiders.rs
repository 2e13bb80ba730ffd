//! Those in the way who do not belong to what is observed: looked up while they are likely to be there still.
//!
//! In: waits as they are reported. Out: names by process id, who of them is stopped, and threads outside that own a lock which is
//! shared. Who the kernel notes for a file lock may have handed it on and ended; then the wait is told who really has it.

use super::behind::Readers;
use holdup_attribution::attribution::shared_lock_owner;
use holdup_evidence::{Event, LockHolder, Ns, TaskName, Wait, Waker};
use holdup_knowledge::system_calls::{self, Kind};
use holdup_proc::{Root, file_locks, names};
use shared_owners::{Named, SharedOwners, Shares};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) mod shared_owners;

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
    keepers: BTreeMap<u32, Option<u32>>,
    searches: usize,
    searcher: Searcher,
    owners: SharedOwners,
}

/// Who is asked for: the process that is noted for a lock, holdup itself, which has none, and the waiter with its descriptor of the file.
type Searched = (u32, u32, Option<(u32, u64)>);

/// Looks through all processes for who has a lock, in a child: a descriptor's page may wait for the locks of its file.
#[derive(Debug)]
struct Searcher(Readers<Searched, Option<u32>>);

impl Default for Searcher {
    fn default() -> Searcher {
        Searcher(Readers::new(|| {
            Box::new(|(noted, own, at)| {
                let root = Root::system();
                let link = at.map(|(pid, fd)| root.proc.join(format!("{pid}/fd/{fd}")));
                let path = link.and_then(|link| std::fs::read_link(link).ok());
                file_locks::who_has(&root, noted, own, path.as_deref())
            })
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
    /// Looks up who is in the way of a wait of this process; `of_run` says of a process id whether it is observed.
    pub(super) fn meet(
        &mut self,
        waiter: Option<u32>,
        wait: &mut Wait,
        of_run: &dyn Fn(u32) -> bool,
        out: &mut Vec<Event>,
    ) {
        if let Some(LockHolder::FileLock { pid: noted }) = wait.holder
            && noted != 0
        {
            let pid = self.keeper(noted, waiter, wait);
            wait.holder = Some(LockHolder::FileLock { pid });
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
                self.meet_sharer(waiter, wait, of_run, out);
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

    /// Who has the lock for which this process is noted: itself, if nothing else is known; nobody where it is gone, while the wait goes on,
    /// and nobody else was found.
    fn keeper(&mut self, noted: u32, waiter: Option<u32>, wait: &Wait) -> u32 {
        let found = match self.keepers.get(&noted) {
            Some(known) => *known,
            None if self.searches >= MAX_SEARCHES => None,
            None => {
                self.searches += 1;
                let by_descriptor = system_calls::is(&wait.call, Kind::LocksFiles);
                let at = waiter
                    .filter(|_| by_descriptor)
                    .map(|pid| (pid, wait.call.args[0]));
                let found = self
                    .searcher
                    .0
                    .ask_patiently(noted, (noted, std::process::id(), at));
                // A search that took too long has found nothing, which is not that there is nobody.
                if let Some(found) = found {
                    self.keepers.insert(noted, found);
                }
                found.flatten()
            }
        };
        let goes_on = wait.end <= wait.start;
        let is_gone = || matches!(names::state(&Root::system(), noted), None | Some('Z' | 'X'));
        match found {
            Some(keeper) => keeper,
            None if goes_on && is_gone() => 0,
            None => noted,
        }
    }

    /// A lock that processes share names its owner by thread id alone: which process that is, if it is none of the
    /// run, only the kernel knows. And its memory is anybody's who has it: whom it names is believed if that one has it as well.
    fn meet_sharer(
        &mut self,
        waiter: Option<u32>,
        wait: &mut Wait,
        of_run: &dyn Fn(u32) -> bool,
        out: &mut Vec<Event>,
    ) {
        // Whoever was there may be gone by the time of a long wait, or of one that goes on.
        let long = wait.end.saturating_sub(wait.start) >= MIN_WAIT_NS || wait.end <= wait.start;
        let Some(id) = shared_lock_owner(wait).filter(|tid| long || !self.sharers.contains(tid)) else {
            return;
        };
        let Some(waiter) = waiter else { return };
        let root = Root::system();
        let (pid, tid) = match shared_owners::named(&root, waiter, id) {
            Named::Thread { pid, tid } => (pid, tid),
            Named::Nobody => {
                if self.gone.len() < MAX_SHARERS && self.gone.insert(id) {
                    out.push(Event::OwnerGone { tid: id });
                }
                return;
            }
            Named::Unknown => return,
        };
        let shares = self.owners.share(waiter, wait.call.args[0], pid);
        if of_run(pid) {
            // Nothing else would keep it from being told as what holds the lock.
            if shares == Shares::No {
                wait.holder = None;
            }
            return;
        }
        if shares != Shares::Yes || self.sharers.contains(&tid) {
            return;
        }
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
