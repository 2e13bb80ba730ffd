//! How processes end that somebody starts: a service that fails, is started again and fails again is up only in the eyes of its supervisor.
//!
//! In: starts of processes, ends with their status. Out: [`Ends`] by who started them and what they were called at the end. Memory is bounded
//! by [`MAX_PROGRAMS`] and by the processes that are alive.

use super::super::histogram::Histogram;
use super::super::numbers::NumberMap;
use super::super::task_table::{NameId, Named, TaskTable};
use holdup_evidence::{End, Ns, ThreadId};
use holdup_model::churn::{Ends, Failure};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Programs distinguished, each with who starts it; of further ones nothing is kept.
const MAX_PROGRAMS: usize = 1024;

/// Of these, how many are in the report.
const MAX_LISTED: usize = 64;

/// Ways to fail that are distinguished of one program.
const MAX_FAILURES: usize = 8;

/// Signals that end a process because of a defect of its own, by number: SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS. The numbers
/// are those of x86 and ARM (`signal(7)`).
const OF_DEFECTS: [u8; 7] = [4, 5, 6, 7, 8, 11, 31];

/// How a process ended, by what the kernel keeps for `wait`: a status in the second byte, or a signal in the lower bits of the first.
fn failure(exit_code: i32) -> Option<Failure> {
    let [first, status, ..] = exit_code.to_le_bytes();
    let signal = first & 0x7f;
    match signal {
        0 => (status != 0).then_some(Failure::Status(status)),
        signal => OF_DEFECTS.contains(&signal).then_some(Failure::Signal(signal)),
    }
}

/// Those of one name that one process started.
#[derive(Debug, Clone)]
struct Program {
    by: Named,
    ended: u64,
    failures: Vec<(Failure, u64)>,
    failed: u64,
    lives: Histogram,
    longest: Ns,
}

/// What is kept of all this.
#[derive(Debug, Clone, Default)]
pub(super) struct Endings {
    alive: NumberMap<ThreadId, Named>,
    programs: HashMap<(u32, NameId), Program>,
}

impl Endings {
    /// A process is started, by its first thread.
    pub(super) fn started(&mut self, thread: ThreadId, by: Named) {
        self.alive.insert(thread, by);
    }

    /// A thread has ended; `name` is its name then.
    pub(super) fn ended(&mut self, end: &End, name: NameId) {
        let Some(by) = self.alive.remove(&end.thread) else {
            return;
        };
        let key = (by.pid, name);
        if self.programs.len() >= MAX_PROGRAMS && !self.programs.contains_key(&key) {
            return;
        }
        let program = self.programs.entry(key).or_insert_with(|| Program {
            by,
            ended: 0,
            failures: Vec::new(),
            failed: 0,
            lives: Histogram::default(),
            longest: 0,
        });
        let lived = end.at.saturating_sub(end.born);
        program.ended += 1;
        program.lives.record(lived);
        program.longest = program.longest.max(lived);
        if let Some(failure) = failure(end.exit_code) {
            program.failed += 1;
            super::count(&mut program.failures, failure, MAX_FAILURES);
        }
    }

    /// What it comes to.
    pub(super) fn finish(self, tasks: &TaskTable) -> Vec<Ends> {
        let each = self.programs.into_iter().map(|((_, name), program)| {
            let most = program.failures.iter().max_by_key(|one| (one.1, Reverse(one.0)));
            Ends {
                by: tasks.describe(&program.by),
                program: tasks.text(name).to_owned(),
                ended: program.ended,
                failed: program.failed,
                failure: most.map(|one| one.0),
                alike: most.map_or(0, |one| one.1),
                p50: program.lives.percentile(50, program.longest),
            }
        });
        let mut all: Vec<Ends> = each.collect();
        all.sort_by_cached_key(|one| {
            (
                Reverse(one.failed),
                Reverse(one.ended),
                one.by.pid,
                one.program.clone(),
            )
        });
        all.truncate(MAX_LISTED);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::failure;
    use holdup_model::churn::Failure;

    #[test]
    fn a_status_or_a_signal_of_a_defect_is_a_failure() {
        assert_eq!(failure(0), None);
        assert_eq!(failure(1 << 8), Some(Failure::Status(1)));
        assert_eq!(failure(127 << 8), Some(Failure::Status(127)));
        // With a core, and without.
        assert_eq!(failure(0x80 | 11), Some(Failure::Signal(11)));
        assert_eq!(failure(6), Some(Failure::Signal(6)));
        // Somebody ended it, or nobody read what it wrote.
        for signal in [2, 9, 13, 15] {
            assert_eq!(failure(signal), None);
        }
    }
}
