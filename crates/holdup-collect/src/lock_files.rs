//! Lock files beside processes that sleep: whoever waits for one sleeps and looks again, and no wait names the file or its maker.
//!
//! In: waits that go on. Out: files that name another process, which is watched from then on. Files and arguments are read by a child that
//! can be abandoned ([`super::behind`]).

use super::behind::Readers;
use super::moment::Moment;
use super::owed;
use super::sessions::STOPPED;
use holdup_evidence::Wait;
use holdup_evidence::facts::{LockFile, SessionClient};
use holdup_knowledge::system_calls::{self, Kind};
use holdup_proc::lock_files::{self, Found};
use holdup_proc::{Root, names, tasks};
use std::collections::BTreeSet;

/// Sleeping processes that are looked at in all: a machine has many.
const PROCESSES_MAX: usize = 16;

/// Files that are kept.
const KEPT_MAX: usize = 8;

/// Generations below a holder that are looked at.
const GENERATIONS_MAX: usize = 8;

/// What was found so far.
#[derive(Debug)]
pub(super) struct LockFiles {
    readers: Readers<u32, Vec<Found>>,
    looked: BTreeSet<u32>,
    found: Vec<LockFile>,
}

/// The processes that are named of these.
pub(super) fn named(all: &[LockFile]) -> Vec<u32> {
    let last = all.iter().filter_map(|one| one.last.as_ref()?.pid);
    all.iter().map(|one| one.holder).chain(last).collect()
}

/// The end of the line of only children of a process.
fn last_child(root: &Root, pid: u32) -> Option<u32> {
    let only = |pid: &u32| match tasks::children(root, *pid).as_slice() {
        [child] => Some(*child),
        _ => None,
    };
    let below = std::iter::successors(Some(pid), only).skip(1);
    below.take(GENERATIONS_MAX).last()
}

impl Default for LockFiles {
    fn default() -> LockFiles {
        LockFiles {
            readers: Readers::new(|| Box::new(|pid| lock_files::around(&Root::system(), pid))),
            looked: BTreeSet::new(),
            found: Vec::new(),
        }
    }
}

impl LockFiles {
    /// Looks beside those of these that sleep. Out: the processes that are named.
    pub(super) fn look(&mut self, lasting: &[(u32, Wait)], watched: &BTreeSet<u32>) -> BTreeSet<u32> {
        let root = Root::system();
        for (pid, wait) in lasting {
            let sleeps = system_calls::is(&wait.call, Kind::Sleeps | Kind::Polls);
            // A shell has another program sleep for it.
            let parent = names::parent(&root, *pid).filter(|parent| watched.contains(parent));
            for one in parent.into_iter().chain([*pid]).filter(|_| sleeps) {
                if self.looked.len() < PROCESSES_MAX && self.looked.insert(one) {
                    let found = self.readers.ask(one, one).unwrap_or_default();
                    self.keep(one, found, &root);
                }
            }
        }
        self.found.iter().map(|one| one.holder).collect()
    }

    fn keep(&mut self, beside: u32, found: Vec<Found>, root: &Root) {
        for one in found {
            let known = self.found.iter().any(|known| known.path == one.path);
            if !known && self.found.len() < KEPT_MAX {
                self.found.push(LockFile {
                    process: names::comm(root, one.pid).unwrap_or_default(),
                    stopped: names::state(root, one.pid) == Some(STOPPED),
                    path: one.path,
                    holder: one.pid,
                    beside,
                    ..LockFile::default()
                });
            }
        }
    }

    /// All that was found, of makers that live, with what those wait for.
    pub(super) fn finish(&self) -> Vec<LockFile> {
        let root = Root::system();
        let lives = |one: &&LockFile| names::comm(&root, one.holder).is_some();
        let mut found: Vec<LockFile> = self.found.iter().filter(lives).cloned().collect();
        for one in &mut found {
            let last = last_child(&root, one.holder);
            let end = last.unwrap_or(one.holder);
            one.last = last.map(|pid| SessionClient {
                address: None,
                pid: Some(pid),
                process: names::comm(&root, pid).unwrap_or_default(),
                stopped: names::state(&root, pid) == Some(STOPPED),
            });
            let owed = owed::look(&BTreeSet::from([end]), &mut Moment::now());
            one.awaits = owed.into_iter().next().map(|one| one.server).unwrap_or_default();
        }
        found
    }
}
