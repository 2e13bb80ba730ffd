//! What was asked for of sleeping threads, as it comes: in the same round, or later.
//!
//! In: [`Answer`]s. Out: what each thread waits in, with a stack where one was read.

use super::look::Answer;
use super::sampler::{Found, Sampler, Stacks};
use super::waiting::Waiting;
use holdup_evidence::{Event, GoesOn, ThreadId};
use std::sync::Arc;

impl Sampler {
    /// What was asked for of a thread has come; or of one that goes on to wait in the same.
    pub(super) fn answered(&mut self, mut answer: Answer, stacks: &mut dyn Stacks) {
        let id = ThreadId(answer.key);
        if let Some(call) = answer.runs_in {
            self.described_running(id, call, answer.object);
            return;
        }
        let Some(thread) = self.threads.get_mut(&id) else {
            return;
        };
        if answer.kernel_stack.as_ref().is_none_or(Vec::is_empty) && answer.site.function.is_some() {
            self.kernel_stacks = false;
        }
        let pid = thread.pid;
        let unmapped = answer.maps.as_ref().is_none_or(Vec::is_empty);
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
                    let sleeper = (thread.tid, after.map(|turns| turns.count));
                    stacks.stack(pid, sleeper, self.now, registers, &memory)
                }
            }
            _ => None,
        };
        // Of one that ended, or ran, meanwhile nothing is missing. Who shows no call shows nothing else either, and that is said once.
        let there = steady && (before.is_some() || !thread.folder.counts_turns());
        if there && !answer.shown {
            let missing = match answer.site.function {
                None => &mut self.shortfall.calls,
                Some(_) => &mut self.shortfall.arguments,
            };
            *missing += 1;
        }
        self.shortfall.memory += u64::from(answer.refused);
        self.shortfall.mappings += u64::from(there && answer.shown && answer.want.maps && unmapped);
        let runs = answer.site.runs;
        let turns = after.or(before).map(|turns| turns.count);
        let stale = answer.stale;
        let polled = answer.polled.iter().flat_map(|(set, _)| set);
        let polled = polled.filter_map(|one| one.object.as_ref());
        let objects = answer.object.iter().chain(polled).map(|(_, object)| object);
        let became = self.requests.met((pid, id), self.now, objects);
        self.events.extend(became.into_iter().map(Event::Connection));
        let mut waiting = self.met.waiting(id, answer, &mut self.events);
        waiting.user_stack = stack;
        let met = waiting.clone();
        if met.holder.is_some() {
            self.with_holder.push(id);
        }
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
            better.tcp = match (better.tcp, &known.tcp) {
                (Some(now), Some(earlier)) => Some(now.since(earlier)),
                (now, earlier) => now.or_else(|| earlier.clone()),
            };
            // Once more is enough: not every socket is in a table.
            thread.unasked = false;
            *known = Arc::new(better);
        }
        self.goes_on(id, &met);
        self.met_with_ends(pid, &met);
    }

    /// A wait is known that had begun before its thread was found.
    fn goes_on(&mut self, id: ThreadId, waiting: &Waiting) {
        let thread = self.threads.get(&id).filter(|thread| thread.seq == 0);
        let since = thread.and_then(|thread| thread.before);
        if let (Some((start, _)), Some(call)) = (since, waiting.site.call) {
            self.events.push(Event::GoesOn(GoesOn {
                thread: id,
                start,
                call,
                set: None,
            }));
        }
    }
}
