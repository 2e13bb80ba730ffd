//! What was asked for of sleeping threads, as it comes: in the same round, or later.
//!
//! In: [`Answer`]s. Out: what each thread waits in, with a stack where one was read.

use super::look::Answer;
use super::sampler::{ENDS, Found, MOST_ENDS, Sampler, Stacks};
use super::waiting::Waiting;
use crate::descriptors::{self, Open};
use holdup_evidence::{Event, OtherEnd, ThreadId};
use std::sync::Arc;

impl Sampler {
    /// Which of the processes have the other ends of what is waited for. Who has one changes with forks and ends, so those of a wait
    /// that goes on are looked for again when there are other processes than before (`waits_on`).
    fn other_ends(&mut self, pid: u32, waiting: &Waiting) {
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
            let processes = self.first_of(pid, others.filter(has).collect());
            self.events.push(Event::OtherEnd(OtherEnd {
                object: *object,
                processes,
            }));
        }
    }

    /// Of several that have the other end, the one that all others have it from: what it waits for its children with, its own way tells. Not
    /// one from which the waiter has its end as well, as a shell has both before it closes them.
    fn first_of(&self, waiter: u32, processes: Vec<u32>) -> Vec<u32> {
        /// Parents that are looked through.
        const GENERATIONS: usize = 64;
        let parent = |pid: &u32| self.processes.get(pid).map(|process| process.parent);
        let descends = |pid: u32, from: u32| {
            let mut before = std::iter::successors(Some(pid), parent).skip(1).take(GENERATIONS);
            before.any(|one| one == from)
        };
        let of_all = |one: &&u32| processes.iter().all(|pid| pid == *one || descends(*pid, **one));
        let first = processes
            .iter()
            .find(of_all)
            .filter(|one| !descends(waiter, **one));
        first.map_or_else(|| processes.clone(), |one| vec![*one])
    }

    /// The same of a wait that has just been met: it costs a link for each open file, so not of each.
    fn met_with_ends(&mut self, pid: u32, waiting: &Waiting) {
        if waiting.ends.is_empty()
            || self.now.saturating_sub(self.ends_read) < ENDS
            || self.processes.len() > MOST_ENDS
        {
            return;
        }
        self.ends_read = self.now;
        self.other_ends(pid, waiting);
    }

    /// The same of all waits that go on, when processes have begun or ended since.
    pub(super) fn waits_on(&mut self) {
        let known = (self.next_process, self.processes.len());
        let due = self.now.saturating_sub(self.ends_read) >= ENDS;
        if known == self.ends_known || !due || self.processes.len() > MOST_ENDS {
            return;
        }
        self.ends_known = known;
        let waiting: Vec<(u32, Arc<Waiting>)> = self
            .threads
            .values()
            .filter_map(|thread| Some((thread.pid, Arc::clone(thread.account.asleep()?.0))))
            .filter(|(_, waiting)| !waiting.ends.is_empty())
            .take(MOST_ENDS)
            .collect();
        if !waiting.is_empty() {
            self.ends_read = self.now;
        }
        for (pid, waiting) in waiting {
            self.other_ends(pid, &waiting);
        }
    }

    /// What was asked for of a thread has come; or of one that goes on to wait in the same.
    pub(super) fn answered(&mut self, mut answer: Answer, stacks: &mut dyn Stacks) {
        let id = ThreadId(answer.key);
        let Some(thread) = self.threads.get_mut(&id) else {
            return;
        };
        if answer.kernel_stack.as_ref().is_none_or(Vec::is_empty) && answer.site.function.is_some() {
            self.kernel_stacks = false;
        }
        let pid = thread.pid;
        if let Some(mappings) = answer.maps.take().filter(|mappings| !mappings.is_empty()) {
            stacks.mapped(pid, &mappings);
            if let Some(process) = self.processes.get_mut(&pid) {
                process.mapped = true;
            }
        }
        let (before, after) = answer.turns;
        let steady = before == after;
        let registers = answer.site.registers;
        let memory = answer.stack.take().filter(|_| steady);
        let stack = match (registers, memory) {
            (Some(registers), Some(memory)) => {
                if !stacks.knows(pid, registers.1)
                    && let Some(process) = self.processes.get_mut(&pid)
                {
                    // It runs another program by now, or has loaded more: its code is read with the next stack.
                    process.mapped = false;
                    thread.stack_asked = false;
                    None
                } else {
                    thread.stack_asked = true;
                    stacks.stack(pid, self.now, registers, &memory)
                }
            }
            _ => None,
        };
        if answer.site.call.is_none() && answer.site.function.is_none() && !answer.site.runs {
            self.shortfall.calls += 1;
        }
        let runs = answer.site.runs;
        let turns = after.or(before).map(|turns| turns.count);
        let stale = answer.stale;
        let mut waiting = self.met.waiting(id, answer, &mut self.events);
        waiting.user_stack = stack;
        let met = waiting.clone();
        if let Some(Found::Looked(look, _)) = self.found.get_mut(&id) {
            thread.unasked = stale;
            // It ran between the two: what was read is of a later wait, and as good a sample.
            look.asleep = look.asleep.take().filter(|_| !runs).map(|_| Arc::new(waiting));
        } else if !runs
            && turns.is_none_or(|turns| turns == thread.account.turns())
            && let Some(known) = thread.account.asleep_in()
        {
            let mut better = waiting;
            better.user_stack = better.user_stack.or(known.user_stack);
            // Once more is enough: not every socket is in a table.
            thread.unasked = false;
            *known = Arc::new(better);
        }
        self.met_with_ends(pid, &met);
    }
}
