//! What was asked for of sleeping threads, as it comes: in the same round, or later.
//!
//! In: [`Answer`]s. Out: what each thread waits in, with a stack where one was read.

use super::described;
use super::look::Answer;
use super::sampler::{ENDS, Found, MOST_ENDS, Sampler, Stacks};
use super::waiting::Waiting;
use crate::descriptors;
use holdup_evidence::{Event, ThreadId};
use std::sync::Arc;

impl Sampler {
    /// Which of the processes have the other end of a pipe that is waited for.
    pub(super) fn other_end(&mut self, pid: u32, waiting: &Waiting) {
        let Some(object) = waiting.object.filter(|_| described::is_pipe(&waiting.site)) else {
            return;
        };
        let Some(inode) = self.met.pipe(object) else {
            return;
        };
        // Who has which end changes with forks and closes; it costs a link for each open file.
        if self.now.saturating_sub(self.ends_read) < ENDS || self.processes.len() > MOST_ENDS {
            return;
        }
        self.ends_read = self.now;
        let writes = waiting
            .site
            .function
            .as_deref()
            .is_some_and(|name| name.contains("write"));
        let has = |other: &u32| {
            descriptors::ends(&self.root, *other).is_some_and(|ends| match writes {
                true => ends.read.contains(&inode),
                false => ends.written.contains(&inode),
            })
        };
        let others = self.processes.keys().copied().filter(|other| *other != pid);
        let processes = others.filter(has).collect();
        self.events
            .push(Event::OtherEnd(holdup_evidence::OtherEnd { object, processes }));
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
        let mut waiting = self.met.waiting(id, answer, &mut self.events);
        waiting.user_stack = stack;
        let met = waiting.clone();
        if let Some(Found::Looked(look, _)) = self.found.get_mut(&id) {
            thread.unasked = false;
            // It ran between the two: what was read is of a later wait, and as good a sample.
            look.asleep = look.asleep.take().filter(|_| !runs).map(|_| Arc::new(waiting));
        } else if !runs
            && turns.is_none_or(|turns| turns == thread.account.turns())
            && let Some(known) = thread.account.asleep_in()
        {
            let mut better = waiting;
            if !thread.unasked {
                better.user_stack = better.user_stack.or(known.user_stack);
            }
            thread.unasked = false;
            *known = Arc::new(better);
        }
        self.other_end(pid, &met);
    }
}
