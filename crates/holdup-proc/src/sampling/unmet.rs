//! Children that were born and were gone between two looks: known by what their parent was charged with for them.
//!
//! The problem: a shell that calls a thousand short programs is met waiting for a pipe or a child, and never the one that it waits for. The
//! choice: the kernel adds up the CPU time of children that a process has waited for. What of it nobody used who was met was used by
//! some that were not. A wait for a child, or for what a child writes, that was never seen twice, while none lived that was met, was for such
//! a one, if most of it was spent so: whoever lives longer is met. How many there were nobody counts; a wait was for one at least. Of a
//! process that is shorter than a tick the kernel does not know either how much of its time was its own code's, whatever the counters say: that is not known.
//!
//! In: what a process's `stat` says of its children, what those had used that were met, pieces of its time. Out: threads that stand for
//! those in between, without ids, known from birth to end.

use super::account::Piece;
use super::clocks::{Stat, TICK};
use super::sampler::{Found, Sampler};
use super::spent::wait;
use super::waiting::Waiting;
use crate::descriptors::Open;
use holdup_evidence::{Call, Clock, End, Estimated, Event, INTERRUPTS, Ns, Start, TaskName, ThreadId, Waker};
use std::sync::Arc;

/// What a process was charged with comes in ticks: of an interval's, so much may be due to the one before, nanoseconds.
const LATE: Ns = 2 * TICK;

/// Names of children that are distinguished.
const NAMES: usize = 8;

/// A process's children.
#[derive(Debug, Clone, Default)]
pub(super) struct Unmet {
    /// CPU time of those that were met and have ended, and of theirs.
    met: Ns,
    /// That of those that were not, as far as it was noticed.
    noticed: Ns,
    /// Of it, what was not known yet.
    left: Ns,
    /// What those were called that were met, and how many were.
    names: Vec<(String, u64)>,
}

impl Unmet {
    /// The process was looked at; `ending`: CPU time of those that were found to have ended just now.
    fn counted(&mut self, stat: &Stat, ending: Ns) {
        let (user, kernel) = stat.of_children;
        let all = user.saturating_add(kernel).saturating_mul(TICK);
        let known = self.met.saturating_add(ending).saturating_add(self.noticed);
        let new = all.saturating_sub(known);
        self.noticed += new;
        self.left = self.left.min(LATE) + new;
    }

    /// All that its children have used.
    fn all(&self) -> Ns {
        self.met.saturating_add(self.noticed)
    }

    /// A child that was met has ended, having used this.
    fn ended(&mut self, name: &str, used: Ns) {
        self.met = self.met.saturating_add(used);
        match self.names.iter().position(|(known, _)| known == name) {
            Some(at) => self.names[at].1 += 1,
            None if self.names.len() < NAMES => self.names.push((name.to_owned(), 1)),
            None => {}
        }
    }

    /// What those are called that were not met: as most of those that were.
    fn name(&self) -> Option<&str> {
        let all: u64 = self.names.iter().map(|(_, count)| count).sum();
        let (name, count) = self.names.iter().max_by_key(|(_, count)| *count)?;
        (count * 2 > all).then_some(name)
    }

    /// How much of a wait of this length was spent on the CPU by such children; `None` where most of it was not.
    fn take(&mut self, length: Ns) -> Option<Ns> {
        let used = self.left.min(length);
        let most = used > 0 && used.saturating_mul(2) >= length;
        self.left -= if most { used } else { 0 };
        most.then_some(used)
    }
}

impl Sampler {
    /// What its parent was charged with for children, as a process is looked at.
    pub(super) fn children_counted(&mut self, id: ThreadId, stat: &Stat) {
        let Some(thread) = self.threads.get(&id).filter(|thread| thread.tid == thread.pid) else {
            return;
        };
        let pid = thread.pid;
        let ending = self
            .found
            .iter()
            .filter(|(_, found)| matches!(found, Found::Ended(_)));
        let ending = ending.filter_map(|(id, _)| {
            let thread = self.threads.get(id)?;
            let process = self
                .processes
                .get(&thread.pid)
                .filter(|process| process.parent == pid)?;
            let leads = thread.tid == thread.pid;
            Some(thread.account.counted().cpu + if leads { process.unmet.all() } else { 0 })
        });
        let ending = ending.sum();
        if let Some(process) = self.processes.get_mut(&pid) {
            process.unmet.counted(stat, ending);
        }
    }

    /// A thread that was met is gone: who waits for its process is charged with what it has used.
    pub(super) fn child_ended(&mut self, pid: u32, leads: bool, name: &str, cpu: Ns) {
        let Some(process) = self.processes.get(&pid) else {
            return;
        };
        let used = cpu + if leads { process.unmet.all() } else { 0 };
        let parent = process.parent;
        if let Some(parent) = self.processes.get_mut(&parent) {
            match leads {
                true => parent.unmet.ended(name, used),
                false => parent.unmet.met = parent.unmet.met.saturating_add(used),
            }
        }
    }

    /// Tells of those for which a wait was, if it was for children that were not met: the last of them has ended it.
    pub(super) fn tell_unmet(&mut self, id: ThreadId, piece: &Piece<Arc<Waiting>>) -> Option<Waker> {
        let length = piece.end - piece.start;
        let thread = self.threads.get(&id)?;
        let pid = thread.pid;
        let site = piece
            .site
            .as_ref()
            .filter(|_| piece.doubt >= length && thread.tid == pid)?;
        // Who is new is met in the wait that goes on.
        let lived = |id: &ThreadId| {
            let ended = matches!(self.found.get(id), Some(Found::Ended(_)));
            let born = self.threads.get(id).map(|thread| thread.born);
            !ended && born.is_some_and(|born| born <= self.last)
        };
        let lives = |(other, process): (&u32, &super::sampler::Process)| {
            *other != pid && process.parent == pid && process.members.iter().any(lived)
        };
        if !for_a_child(site) || self.processes.iter().any(lives) {
            return None;
        }
        let process = self.processes.get_mut(&pid)?;
        let used = process.unmet.take(length)?;
        let name = process.unmet.name().unwrap_or("child, not sampled").to_owned();
        let role = process.role;
        let born = Clock {
            blocked: piece.clock.blocked.saturating_sub(length),
            ..piece.clock
        };
        let stands = ThreadId(self.next);
        self.next += 1;
        let task = TaskName {
            pid: 0,
            tid: 0,
            name,
            kernel: false,
        };
        let on_cpu = Clock {
            cpu: used,
            ..Clock::default()
        };
        let clock = Clock {
            blocked: length - used,
            ..on_cpu
        };
        self.events.push(Event::Start(Start {
            at: piece.start,
            thread: stands,
            task: task.clone(),
            parent: Some((id, born)),
            inside: None,
            role,
            adopted: None,
        }));
        if length > used {
            let rest = Piece {
                site: None,
                start: piece.start + used,
                end: piece.end,
                count: 1,
                doubt: length - used,
                seen: false,
                clock,
            };
            self.events.push(Event::Estimated(Estimated {
                thread: stands,
                count: rest.count,
                doubt: rest.doubt,
            }));
            self.events
                .push(Event::Wait(Box::new(wait(stands, 1, &rest, Waker::Unknown))));
        }
        self.events.push(Event::End(Box::new(End {
            at: piece.end,
            thread: stands,
            task,
            born: piece.start,
            clock,
            blockings: u64::from(length > used),
            lost: (0, 0),
            interrupts: [0; INTERRUPTS.len()],
            account: None,
            open: None,
            exit_code: 0,
        })));
        Some(Waker::Thread {
            thread: stands,
            clock,
            call: Call::named("exit"),
        })
    }
}

/// Whether it is a wait for the end of a child, or for something from a pipe.
fn for_a_child(waiting: &Waiting) -> bool {
    use super::waiting::Awaited;
    let child = matches!(waiting.awaits_end(), Some(Awaited::AnyChild | Awaited::Child(_)));
    let pipe = |(_, open): &(_, Open)| matches!(open, Open::PipeToWrite(_));
    let reads = waiting.site.call.and_then(|call| call.name()) == Some("read");
    child || reads && !waiting.by_own && waiting.ends.iter().any(pipe)
}

#[cfg(test)]
mod tests {
    use super::{LATE, Unmet};
    use crate::sampling::clocks::{Stat, TICK};

    fn charged(user: u64, kernel: u64) -> Stat {
        Stat {
            of_children: (user, kernel),
            ..Stat::default()
        }
    }

    #[test]
    fn what_nobody_used_who_was_met_was_used_by_others() {
        let mut unmet = Unmet::default();
        unmet.ended("expr", TICK);
        unmet.counted(&charged(2, 6), TICK);
        assert_eq!(unmet.take(100 * TICK), None, "most of it was spent otherwise");
        assert_eq!(unmet.take(5 * TICK), Some(5 * TICK));
        assert_eq!(unmet.take(TICK), Some(TICK));
        assert_eq!(unmet.take(TICK), None);
        unmet.counted(&charged(2, 6), 0);
        assert_eq!(
            unmet.take(TICK),
            Some(TICK),
            "the one that was ending has not come to count"
        );
        unmet.counted(&charged(2, 6), 0);
        assert_eq!(unmet.take(TICK), None);
    }

    #[test]
    fn what_was_not_told_soon_was_beside_what_the_process_did() {
        let mut unmet = Unmet::default();
        unmet.counted(&charged(0, 50), 0);
        unmet.counted(&charged(0, 50), 0);
        assert_eq!(unmet.take(LATE), Some(LATE));
        assert_eq!(unmet.take(TICK), None);
    }

    #[test]
    fn they_are_called_as_most_of_those_that_were_met() {
        let mut unmet = Unmet::default();
        assert_eq!(unmet.name(), None);
        unmet.ended("expr", 0);
        assert_eq!(unmet.name(), Some("expr"));
        unmet.ended("bash", 0);
        assert_eq!(unmet.name(), None);
    }
}
