//! What is known of answers that are owed: whether the client came for this one, and what the server does meanwhile.
//!
//! In: lists of processes, and waits for answers. Out: the same waits, with [`Owed`]. A client that is there for hours may wait for whatever
//! comes; one that began when it asked has come for the answer.

use super::looked_up::waiting_threads;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Awaited, SeenWait, Short};
use holdup_knowledge::functions;
use holdup_proc::Root;
use holdup_proc::root::text_if_there;
use holdup_proc::task_list::TaskList;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The shortest wait that is looked at closely.
const MIN_NS: Ns = 1_000_000_000;

/// How long before its question a client may have begun, seconds: it looks up a name, reads its configuration, authenticates.
const MAX_BEFORE_SECONDS: f64 = 2.0;

/// Servers whose threads are looked at, and functions that are kept of each.
const MAX_SERVERS: usize = 64;
const MAX_FUNCTIONS: usize = 3;

/// What was watched for less tells of no rate, seconds.
const MIN_WATCHED_SECONDS: f64 = 0.4;

/// Ticks of `USER_HZ` in a second, percent in a whole, nanoseconds in a second.
const TICKS: f64 = 100.0;
const WHOLE: f64 = 100.0;
const SECOND: f64 = 1e9;

/// Processes with when they began, and their CPU time in the first list and in the last, in ticks.
#[derive(Debug, Default)]
pub(super) struct Processes(HashMap<u32, (u64, u64, u64)>);

impl Processes {
    /// Looks once.
    pub(super) fn turn(&mut self, list: &TaskList) {
        for process in list.processes.iter().filter(|process| !process.kernel) {
            let (began, ticks) = (process.began, process.ticks);
            let known = self.0.entry(process.pid).or_insert((began, ticks, ticks));
            // An id that is used again is another process.
            if known.0 != began {
                *known = (began, ticks, ticks);
            }
            known.2 = ticks;
        }
    }

    /// For how long each process has lived; `now` is in seconds since boot.
    pub(super) fn lived(&self, now: f64) -> HashMap<u32, Ns> {
        let lived = |began: u64| super::standing::ns(now - began as f64 / TICKS);
        let all = self.0.iter();
        all.map(|(pid, (began, ..))| (*pid, lived(*began))).collect()
    }

    /// Says what is known of answers; `now` is in seconds since boot, `blocked` are processes with a thread that is blocked (D).
    pub(super) fn tell(
        &self,
        root: &Root,
        now: f64,
        watched: f64,
        blocked: &BTreeSet<u32>,
        waits: &mut [SeenWait],
    ) {
        let mut sleeps: BTreeMap<u32, Vec<(String, u32)>> = BTreeMap::new();
        for wait in waits {
            let (Awaited::Answer, Short::Answer(owed), Some(holder)) =
                (wait.on, &mut wait.short, &wait.holder)
            else {
                continue;
            };
            if wait.ns < MIN_NS {
                continue;
            }
            owed.came = self.0.get(&wait.waiter.pid).is_some_and(|(began, ..)| {
                let age = now - *began as f64 / TICKS;
                age - wait.ns as f64 / SECOND <= MAX_BEFORE_SECONDS
            });
            owed.cpu_percent = self.0.get(&holder.pid).map(|(_, first, last)| {
                (last.saturating_sub(*first) as f64 / TICKS / watched.max(MIN_WATCHED_SECONDS) * WHOLE)
                    .round() as u32
            });
            owed.blocked = blocked.contains(&holder.pid);
            if !sleeps.contains_key(&holder.pid) && sleeps.len() >= MAX_SERVERS {
                continue;
            }
            let known = sleeps
                .entry(holder.pid)
                .or_insert_with(|| asleep_in(root, holder.pid));
            owed.sleeps.clone_from(known);
        }
    }
}

/// Where the threads of a process sleep.
fn asleep_in(root: &Root, pid: u32) -> Vec<(String, u32)> {
    let mut found: BTreeMap<String, u32> = BTreeMap::new();
    for tid in waiting_threads(root, pid) {
        let text = text_if_there(&root.proc.join(format!("{pid}/task/{tid}/wchan"))).unwrap_or_default();
        let name = functions::plain(text.trim());
        if !name.is_empty() && name != "0" {
            *found.entry(name.to_owned()).or_default() += 1;
        }
    }
    let mut found: Vec<(String, u32)> = found.into_iter().collect();
    found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    found.truncate(MAX_FUNCTIONS);
    found
}

#[cfg(test)]
mod tests {
    use super::Processes;
    use holdup_evidence::observed::{Owed, SeenProcess, SeenWait, Short};
    use holdup_proc::Root;
    use holdup_proc::task_list::{Process, TaskList};
    use std::collections::BTreeSet;

    const S: u64 = 1_000_000_000;

    #[test]
    fn who_began_to_ask_this_has_come_for_it() {
        let folder = tempfile::tempdir().unwrap();
        for (tid, function) in [
            (7, "futex_wait_queue"),
            (8, "futex_wait_queue"),
            (9, "do_epoll_wait"),
        ] {
            let thread = folder.path().join(format!("proc/7/task/{tid}"));
            std::fs::create_dir_all(&thread).unwrap();
            std::fs::write(thread.join("wchan"), function).unwrap();
        }
        let list = |ticks: u64| TaskList {
            processes: [(7, 10, ticks), (20, 99_500, 0), (21, 50_000, 0)]
                .map(|(pid, began, ticks)| Process {
                    pid,
                    began,
                    ticks,
                    ..Process::default()
                })
                .to_vec(),
            ..TaskList::default()
        };
        let mut processes = Processes::default();
        processes.turn(&list(100));
        processes.turn(&list(150));
        let wait = |pid: u32| SeenWait {
            waiter: SeenProcess {
                pid,
                ..SeenProcess::default()
            },
            holder: Some(SeenProcess {
                pid: 7,
                ..SeenProcess::default()
            }),
            ns: 4 * S,
            short: Short::Answer(Owed::default()),
            ..SeenWait::default()
        };
        let mut waits = [wait(20), wait(21)];
        processes.tell(
            &Root::below(folder.path()),
            1000.0,
            5.0,
            &BTreeSet::new(),
            &mut waits,
        );
        let owed = |at: usize| match &waits[at].short {
            Short::Answer(owed) => owed.clone(),
            other => panic!("{other:?}"),
        };
        assert!(owed(0).came && !owed(1).came);
        assert_eq!(owed(0).cpu_percent, Some(10));
        assert_eq!(owed(1).sleeps[0], ("futex_wait_queue".to_owned(), 2));
    }
}
