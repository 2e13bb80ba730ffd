//! Who has the other end of what is waited for: among those that are followed, and beyond.
//!
//! In: waits that go on, and what processes have open. Out: events that name the processes. Who has an end changes with forks and ends, so
//! those of a wait that goes on are looked for again when there are other processes than before. Beyond those that are followed all
//! processes are looked through that the kernel shows, which are the user's own; that costs microseconds for each open file of the machine, so it is
//! for waits that last, and as seldom as keeps it a small part of the time.

use super::sampler::Sampler;
use super::waiting::{Awaited, Waiting};
use crate::clocks as machine;
use crate::descriptors::{self, Open};
use holdup_evidence::{Event, Ns, ObjectId, OtherEnd};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Between two looks of either kind, in nanoseconds, and processes beyond which nobody looks.
const BETWEEN: Ns = 50_000_000;
const MAX_PROCESSES: usize = 64;

/// A wait that has lasted for so long is worth a look at all processes, nanoseconds.
const LASTS: Ns = 10_000_000;

/// The next such look for the same is not before this, nanoseconds: others than before may have it by then.
const AGAIN: Ns = 1_000_000_000;

/// What such a look takes is at most this part of the time.
const SELDOM: Ns = 100;

/// Ends that are remembered.
const REMEMBERED: usize = 4096;

/// What is known of other ends.
#[derive(Debug, Default)]
pub(super) struct OtherEnds {
    read: Ns,
    /// How many processes had begun, and lived, when it was looked last.
    processes: (u64, usize),
    /// Processes that are not followed, by what they have the other end of, and when that was looked for.
    beyond: HashMap<ObjectId, (Ns, Vec<u32>)>,
    /// Not before this instant is it looked beyond again.
    not_before: Ns,
}

impl Sampler {
    /// Of a wait that has just been met: it costs a link for each open file, so not of each.
    pub(super) fn met_with_ends(&mut self, pid: u32, waiting: &Waiting) {
        if waiting.ends.is_empty()
            || self.now.saturating_sub(self.other_ends.read) < BETWEEN
            || self.processes.len() > MAX_PROCESSES
        {
            return;
        }
        self.other_ends.read = self.now;
        self.tell_ends(pid, waiting);
    }

    /// Of all waits that go on: when processes have begun or ended since; and beyond, of those that last.
    pub(super) fn waits_on(&mut self) {
        let due = self.now.saturating_sub(self.other_ends.read) >= BETWEEN;
        let waiting = || {
            let asleep = |thread: &super::sampler::Tracked| {
                let (waiting, since) = thread.account.asleep()?;
                (!waiting.ends.is_empty()).then(|| (thread.pid, Arc::clone(waiting), since))
            };
            self.threads
                .values()
                .filter_map(asleep)
                .take(MAX_PROCESSES)
                .collect()
        };
        let processes = (self.next_process, self.processes.len());
        let changed = due && processes != self.other_ends.processes && self.processes.len() <= MAX_PROCESSES;
        let beyond = self.now >= self.other_ends.not_before;
        if !changed && !beyond {
            return;
        }
        let waiting: Vec<(u32, Arc<Waiting>, Ns)> = waiting();
        if changed {
            self.other_ends.processes = processes;
            if !waiting.is_empty() {
                self.other_ends.read = self.now;
            }
            for (pid, waiting, _) in &waiting {
                self.tell_ends(*pid, waiting);
            }
        }
        if beyond {
            self.other_ends.not_before = self.now.saturating_add(BETWEEN);
            self.look_beyond(&waiting);
        }
    }

    /// Who of those that are followed has the other ends, and who else was found to.
    fn tell_ends(&mut self, pid: u32, waiting: &Waiting) {
        let own_too = |open: &Open| matches!(open, Open::Socket(_));
        for (object, open) in &waiting.ends {
            let has = |other: &u32| {
                descriptors::ends(&self.root, *other).is_some_and(|ends| match open {
                    Open::PipeToRead(inode) => ends.read.contains(inode),
                    Open::PipeToWrite(inode) => ends.written.contains(inode),
                    Open::Socket(inode) => ends.sockets.contains(inode),
                    Open::PathToRead(_) | Open::PathToWrite(_) => false,
                })
            };
            let others = self.processes.keys().copied();
            let others = others.filter(|other| *other != pid || own_too(open));
            let mut processes: Vec<u32> = others.filter(has).collect();
            if let Some((_, beyond)) = self.other_ends.beyond.get(object) {
                // Those that have come to be followed since are among both.
                processes.extend(beyond);
                processes.sort_unstable();
                processes.dedup();
            }
            self.tell_end_of(*object, processes);
        }
    }

    /// These have the other end of it. If nobody has it any more the wait is over, and was for those who had it.
    fn tell_end_of(&mut self, object: ObjectId, processes: Vec<u32>) {
        let processes = self.without_parents_that_wait(processes);
        if !processes.is_empty() {
            self.events.push(Event::OtherEnd(OtherEnd {
                object,
                processes,
                listens: false,
            }));
        }
    }

    /// Those without who sleeps until a child ends that is among them, too: until then only the child can do something with what it has
    /// inherited.
    fn without_parents_that_wait(&self, processes: Vec<u32>) -> Vec<u32> {
        let waits = |pid: &u32| {
            let members = self.processes.get(pid).map(|process| &process.members);
            members.is_some_and(|members| {
                members.iter().all(|id| {
                    let asleep = self.threads.get(id).and_then(|thread| thread.account.asleep());
                    let awaited = asleep.and_then(|(waiting, _)| waiting.awaits_end());
                    matches!(awaited, Some(Awaited::AnyChild | Awaited::Child(_)))
                })
            })
        };
        let has_child = |pid: &u32| {
            let parent = |child: &u32| self.processes.get(child).map(|process| process.parent);
            processes.iter().any(|child| parent(child) == Some(*pid))
        };
        let stays = |pid: &u32| !(waits(pid) && has_child(pid));
        processes.iter().copied().filter(stays).collect()
    }

    /// Looks through all processes for the ends that waits which last are for.
    fn look_beyond(&mut self, waiting: &[(u32, Arc<Waiting>, Ns)]) {
        let known = &self.other_ends.beyond;
        let due = |object: &ObjectId| {
            let before = known.get(object);
            before.is_none_or(|(looked, _)| self.now.saturating_sub(*looked) >= AGAIN)
        };
        let lasting = waiting
            .iter()
            .filter(|(_, _, since)| self.now.saturating_sub(*since) >= LASTS);
        let wanted: Vec<(u32, ObjectId, &Open)> = lasting
            .flat_map(|(pid, waiting, _)| waiting.ends.iter().map(|(object, open)| (*pid, *object, open)))
            .filter(|(_, object, _)| due(object))
            .collect();
        if wanted.is_empty() {
            return;
        }
        let opens: HashSet<Open> = wanted.iter().map(|(_, _, open)| (*open).clone()).collect();
        let began = machine::monotonic();
        let holders = descriptors::holders(&self.root, &opens, std::process::id());
        let took = machine::monotonic().saturating_sub(began);
        self.other_ends.not_before = self.now.saturating_add(took.saturating_mul(SELDOM).max(BETWEEN));
        if self.other_ends.beyond.len() >= REMEMBERED {
            self.other_ends.beyond.clear();
        }
        for (pid, object, open) in wanted {
            let own_too = matches!(open, Open::Socket(_));
            let all = holders.get(open).into_iter().flatten().copied();
            let processes: Vec<u32> = all.filter(|other| *other != pid || own_too).collect();
            let beyond = processes.iter().copied();
            let beyond = beyond
                .filter(|other| !self.processes.contains_key(other))
                .collect();
            self.other_ends.beyond.insert(object, (self.now, beyond));
            self.tell_end_of(object, processes);
        }
    }
}
