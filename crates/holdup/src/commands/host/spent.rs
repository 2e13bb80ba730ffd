//! CPU time by program, of processes that live on and of those that come and go between two lists.
//!
//! In: all processes, at some times. Out: [`Use`]s in ticks. A compiler that lives for a second is in one list or in none, and its program
//! is what uses the CPU. What a list has seen counts for the program; what no list has seen is charged to the parent when the parent waits
//! for it, and counts as the parent's short-lived children.

use holdup_evidence::host::Use;
use holdup_proc::task_list::Process;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Processes that are remembered: a machine that makes more in a look is reported of the first ones.
const MAX_PROCESSES: usize = 50_000;

/// Part of a tick's second from which children that nobody saw are worth a line of their own, ticks.
const MIN_UNSEEN_TICKS: u64 = 10;

/// A process as it was listed first and last.
#[derive(Debug, Clone)]
struct Seen {
    first: Process,
    last: Process,
    name: String,
    /// The first list that it was in, and the last.
    since: u32,
    turn: u32,
}

/// Ticks of a program, its processes, and the one of them with most: ticks and id.
type Sum = (u64, u32, (u64, u32));

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Spent {
    seen: HashMap<(u32, u64), Seen>,
    turns: u32,
}

impl Spent {
    /// Adds a list.
    pub(super) fn turn(&mut self, processes: &[Process]) {
        self.turns += 1;
        let is_first = self.turns == 1;
        let turn = self.turns;
        for process in processes {
            let key = (process.pid, process.began);
            if let Some(seen) = self.seen.get_mut(&key) {
                seen.last.clone_from(process);
                seen.name.clone_from(&process.name);
                seen.turn = turn;
            } else if self.seen.len() < MAX_PROCESSES {
                let first = match is_first {
                    true => process.clone(),
                    // One that is new began with nothing.
                    false => Process {
                        ticks: 0,
                        children_ticks: 0,
                        ..process.clone()
                    },
                };
                let (last, name) = (process.clone(), process.name.clone());
                self.seen.insert(
                    key,
                    Seen {
                        first,
                        last,
                        name,
                        since: turn,
                        turn,
                    },
                );
            }
        }
    }

    /// Gives a process another name.
    pub(super) fn name(&mut self, key: (u32, u64), name: &str) {
        if let Some(seen) = self.seen.get_mut(&key) {
            name.clone_into(&mut seen.name);
        }
    }

    /// Ticks by program; `own` says which processes are holdup's.
    pub(super) fn by_program(&self, own: impl Fn(u32) -> bool) -> Vec<Use> {
        let mut programs: BTreeMap<(&str, i32), Sum> = BTreeMap::new();
        let mut own_ones: HashSet<u32> = HashSet::new();
        for seen in self.seen.values() {
            let ticks = seen.last.ticks.saturating_sub(seen.first.ticks);
            if ticks == 0 {
                continue;
            }
            if own(seen.last.pid) {
                own_ones.insert(seen.last.pid);
                continue;
            }
            let program = programs.entry((seen.name.as_str(), seen.last.nice)).or_default();
            program.0 += ticks;
            program.1 += 1;
            program.2 = program.2.max((ticks, seen.last.pid));
        }
        let found = programs
            .into_iter()
            .map(|((name, nice), (ticks, processes, (_, pid)))| Use {
                process: name.to_owned(),
                pid,
                amount: ticks as f64,
                processes,
                nice,
                run_by: String::new(),
            });
        let mut found: Vec<Use> = found.collect();
        found.extend(self.unseen(&own_ones));
        found
    }

    /// The program that most children of a process ran that came or went meanwhile; `None` where there were none.
    pub(super) fn short_lived(&self, parent: u32) -> Option<&str> {
        let passes = |seen: &&Seen| seen.last.parent == parent && (seen.since > 1 || seen.turn < self.turns);
        let mut programs: BTreeMap<&str, u32> = BTreeMap::new();
        for seen in self.seen.values().filter(passes) {
            *programs.entry(seen.name.as_str()).or_default() += 1;
        }
        let most = programs
            .into_iter()
            .max_by_key(|(name, count)| (*count, std::cmp::Reverse(*name)));
        most.map(|(name, _)| name)
    }

    /// What ended children were seen to have used in their lives, by parent. A child that ended after the last list of its parent, which has
    /// ended, too, is part of what the grandparent was charged with.
    fn ended(&self) -> HashMap<u32, u64> {
        let mut over: Vec<&Seen> = self.seen.values().filter(|seen| seen.turn < self.turns).collect();
        // Children begin after their parents.
        over.sort_by_key(|seen| std::cmp::Reverse((seen.last.began, seen.last.pid)));
        let mut ended: HashMap<u32, u64> = HashMap::new();
        let mut later: HashMap<(u32, u32), u64> = HashMap::new();
        for seen in over {
            let own = seen.last.ticks.saturating_add(seen.last.children_ticks);
            let below = later.get(&(seen.last.pid, seen.turn)).copied().unwrap_or(0);
            let whole = own.saturating_add(below);
            for sum in [
                ended.entry(seen.last.parent).or_default(),
                later.entry((seen.last.parent, seen.turn)).or_default(),
            ] {
                *sum = sum.saturating_add(whole);
            }
        }
        ended
    }

    /// What children used that no list has seen, by parent.
    fn unseen(&self, own: &HashSet<u32>) -> Vec<Use> {
        // What ended children had used in all, as far as it was seen, by parent: their parent was charged with all of it.
        let ended = self.ended();
        let parents = self.seen.values().filter(|seen| !own.contains(&seen.last.pid));
        let mut programs: BTreeMap<&str, Sum> = BTreeMap::new();
        for seen in parents {
            let charged = seen.last.children_ticks.saturating_sub(seen.first.children_ticks);
            let known = ended.get(&seen.last.pid).copied().unwrap_or(0);
            let ticks = charged.saturating_sub(known);
            if ticks == 0 {
                continue;
            }
            let program = programs.entry(seen.name.as_str()).or_default();
            program.0 += ticks;
            program.1 += 1;
            program.2 = program.2.max((ticks, seen.last.pid));
        }
        let found = programs
            .into_iter()
            .filter(|(_, (ticks, ..))| *ticks >= MIN_UNSEEN_TICKS)
            .map(|(name, (ticks, processes, (_, pid)))| Use {
                process: format!("short-lived children of {name}"),
                pid,
                amount: ticks as f64,
                processes,
                ..Use::default()
            });
        found.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Spent;
    use holdup_proc::task_list::Process;
    use std::collections::HashSet;

    fn process(pid: u32, name: &str, ticks: u64, children_ticks: u64) -> Process {
        Process {
            pid,
            name: name.to_owned(),
            began: u64::from(pid),
            ticks,
            children_ticks,
            parent: if pid == 1 { 0 } else { 1 },
            ..Process::default()
        }
    }

    #[test]
    fn a_program_of_many_short_processes_is_counted_as_one() {
        let mut spent = Spent::default();
        spent.turn(&[
            process(1, "make", 5, 1000),
            process(2, "cc", 50, 0),
            process(9, "holdup", 1, 0),
        ]);
        spent.turn(&[
            process(1, "make", 6, 1080),
            process(3, "cc", 60, 0),
            process(9, "holdup", 90, 0),
        ]);
        // Of 200 that make is charged with 80 are the first, seen at 50; the second ended after 90, seen at 60; the rest nobody saw.
        spent.turn(&[process(1, "make", 7, 1200), process(9, "holdup", 190, 0)]);
        let rows: Vec<(String, f64)> = (spent.by_program(|pid| pid == 9).into_iter())
            .map(|one| (one.who(), one.amount))
            .collect();
        assert_eq!(
            rows,
            [
                ("cc (pid 3)".to_owned(), 60.0),
                ("make (pid 1)".to_owned(), 2.0),
                ("short-lived children of make (pid 1)".to_owned(), 90.0),
            ]
        );
    }

    /// What is reported of children that no list has seen, for lists of (id, parent, ticks, ticks of children).
    fn unseen(lists: &[&[(u32, u32, u64, u64)]]) -> Vec<(u32, f64)> {
        let mut spent = Spent::default();
        for list in lists {
            let one = |(pid, parent, ticks, children): &(u32, u32, u64, u64)| Process {
                parent: *parent,
                ..process(*pid, "sh", *ticks, *children)
            };
            spent.turn(&list.iter().map(one).collect::<Vec<_>>());
        }
        let found = spent.unseen(&HashSet::new()).into_iter();
        found.map(|one| (one.pid, one.amount)).collect()
    }

    #[test]
    fn what_a_grandchild_used_before_the_look_is_no_short_lived_child_s() {
        // A compiler that ran for a minute ends with its build: the shell is charged with both, and 30 ticks are new.
        let before: &[_] = &[(1, 0, 0, 0), (2, 1, 10, 500), (3, 2, 6000, 0)];
        assert_eq!(unseen(&[before, &[(1, 0, 0, 6540)]]), [(1, 30.0)]);
        assert_eq!(unseen(&[before, before, &[(1, 0, 0, 6515)]]), []);
        // The same through one more.
        let four: &[_] = &[(1, 0, 0, 0), (2, 1, 1, 0), (3, 2, 1, 0), (4, 3, 7000, 0)];
        assert_eq!(unseen(&[four, &[(1, 0, 0, 7002)]]), []);
        // A grandchild that ended a list earlier is in what its parent was charged with by then: 20 ticks are that one's, 50 the shell's.
        let later: &[_] = &[(1, 0, 0, 0), (2, 1, 10, 6520)];
        assert_eq!(unseen(&[before, later, &[(1, 0, 0, 6580)]]), [(1, 70.0)]);
    }

    #[test]
    fn children_that_come_and_go_have_a_program_and_those_that_stay_do_not_count() {
        let mut spent = Spent::default();
        spent.turn(&[
            process(1, "sh", 0, 0),
            process(2, "dd", 0, 0),
            process(3, "logger", 0, 0),
        ]);
        spent.turn(&[
            process(1, "sh", 0, 0),
            process(4, "dd", 0, 0),
            process(3, "logger", 0, 0),
        ]);
        assert_eq!((spent.short_lived(1), spent.short_lived(3)), (Some("dd"), None));
    }

    #[test]
    fn who_is_niced_is_apart_and_who_lives_on_is_no_child_that_ended() {
        let mut spent = Spent::default();
        let niced = |ticks| Process {
            nice: 19,
            ..process(4, "cc", ticks, 0)
        };
        spent.turn(&[
            process(1, "make", 0, 0),
            process(2, "cc", 0, 0),
            process(3, "cc", 0, 0),
            niced(0),
        ]);
        spent.turn(&[
            process(1, "make", 0, 0),
            process(2, "cc", 70, 0),
            process(3, "cc", 40, 0),
            niced(30),
        ]);
        let rows: Vec<(String, f64)> = (spent.by_program(|_| false).into_iter())
            .map(|one| (one.who(), one.amount))
            .collect();
        assert_eq!(
            rows,
            [
                ("cc (2 processes)".to_owned(), 110.0),
                ("cc (pid 4, nice 19)".to_owned(), 30.0)
            ]
        );
    }
}
