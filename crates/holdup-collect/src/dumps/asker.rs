//! Asks one machine, by a child process for each question.
//!
//! The child has the ids of the machine and none of root's rights; what the machine says is hostile text, and it is read there, too. In:
//! questions, one at a time. Out: what became of each.

use super::text::{self, SaidThread};
use super::{WORTH, is_machines};
use holdup_evidence::Ns;
use holdup_jvm::attach::{self, Asking, Expendable, Question, Refused, Silent};
use holdup_proc::Root;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// What became of a question.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Outcome {
    /// It was not asked: none of the program's threads has waited for long enough.
    NobodyWaits,
    /// It was not asked, or did not answer.
    Refused(Refused),
    /// It answered.
    Received(ReceivedDump),
}

/// An answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ReceivedDump {
    pub(super) from: Ns,
    pub(super) to: Ns,
    /// Threads that the process had.
    pub(super) count: u32,
    pub(super) threads: Vec<SaidThread>,
}

/// The one who asks.
#[derive(Debug)]
pub(super) struct Asker {
    pid: u32,
    asking: Option<Asking<Outcome>>,
}

impl Asker {
    /// Nobody is asked yet.
    pub(super) fn of(pid: u32) -> Asker {
        Asker { pid, asking: None }
    }

    /// Whether it has something to answer still.
    pub(super) fn is_asked(&self) -> bool {
        self.asking.is_some()
    }

    /// Asks, where the system has a process for that.
    pub(super) fn ask(&mut self, question: Question) {
        let pid = self.pid;
        self.asking = Asking::start(|child| outcome(&Root::system(), pid, &question, child)).ok();
    }

    /// Nobody wants the answer any more.
    pub(super) fn leave_it(&mut self) {
        if let Some(asking) = &mut self.asking {
            asking.leave_it();
        }
    }

    /// What became of the question; nothing where that is not known in time.
    pub(super) fn answer(&mut self, until: Instant) -> Option<Outcome> {
        let outcome = match self.asking.as_mut()?.answer(until) {
            Ok(outcome) => outcome,
            Err(Silent::Late) => return None,
            Err(Silent::Gone) => Outcome::Refused(Refused::NoAnswer),
        };
        self.asking = None;
        Some(outcome)
    }
}

fn outcome(root: &Root, pid: u32, question: &Question, child: &Expendable) -> Outcome {
    if !attach::waits(root, pid, WORTH, &is_machines) {
        return Outcome::NobodyWaits;
    }
    match attach::dump(root, pid, question, child) {
        Err(refused) => Outcome::Refused(refused),
        Ok(dump) => Outcome::Received(ReceivedDump {
            threads: text::threads(&dump),
            from: dump.from,
            to: dump.to,
            count: dump.threads,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::{Asker, Outcome};
    use holdup_jvm::attach::{Question, Refused};
    use std::time::{Duration, Instant};

    /// Enough for any machine: a test that is right never waits for as long.
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn whoever_is_gone_waits_for_nobody_and_whoever_is_no_jvm_is_not_asked() {
        let outcome = |pid| {
            let mut asker = Asker::of(pid);
            asker.ask(Question {
                budget: u64::MAX,
                java: None,
                options: None,
            });
            let outcome = asker.answer(Instant::now() + LONG).unwrap();
            assert!(!asker.is_asked());
            outcome
        };
        let nobody = outcome(u32::MAX);
        assert!(matches!(nobody, Outcome::NobodyWaits), "{nobody:?}");
        // The first thread of this process waits for the one that runs this test.
        let own = outcome(std::process::id());
        assert!(matches!(own, Outcome::Refused(Refused::NoJvm)), "{own:?}");
    }
}
