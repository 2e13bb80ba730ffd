//! Asks one machine, in a thread that may be left behind.
//!
//! In: questions, one at a time. Out: what became of each.

use super::text::{self, SaidThread};
use super::{WORTH, is_machines};
use holdup_evidence::Ns;
use holdup_jvm::attach::{self, Question, Refused, Wanted};
use holdup_proc::Root;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Instant;

/// What became of a question.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It was not asked: none of the program's threads has waited for long enough.
    NobodyWaits,
    /// It was not asked, or did not answer.
    Refused(Refused),
    /// It answered.
    Told(Told),
}

/// An answer.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) from: Ns,
    pub(super) to: Ns,
    /// Threads that the process had.
    pub(super) count: u32,
    pub(super) threads: Vec<SaidThread>,
}

/// The one who asks.
#[derive(Debug)]
pub(super) struct Asker {
    ask: Sender<Question>,
    answers: Receiver<Outcome>,
    asked: bool,
    over: Arc<AtomicBool>,
}

impl Asker {
    pub(super) fn start(pid: u32) -> Option<Asker> {
        let (ask, questions) = mpsc::channel::<Question>();
        let (answer, answers) = mpsc::channel();
        let over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&over);
        let ask_all = move || {
            while let Ok(question) = questions.recv() {
                if answer
                    .send(outcome(&Root::system(), pid, &question, &until))
                    .is_err()
                {
                    return;
                }
            }
        };
        std::thread::Builder::new()
            .name("ask".to_owned())
            .spawn(ask_all)
            .ok()?;
        Some(Asker {
            ask,
            answers,
            asked: false,
            over,
        })
    }

    /// Whether it has something to answer still.
    pub(super) fn is_asked(&self) -> bool {
        self.asked
    }

    pub(super) fn ask(&mut self, question: Question) {
        self.asked = self.ask.send(question).is_ok();
    }

    /// Nobody wants the answer any more.
    pub(super) fn leave_it(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// What became of the question; nothing where that is not known in time.
    pub(super) fn answer(&mut self, until: Instant) -> Option<Outcome> {
        if !self.asked {
            return None;
        }
        let patience = until.saturating_duration_since(Instant::now());
        let outcome = self.answers.recv_timeout(patience).ok()?;
        self.asked = false;
        Some(outcome)
    }
}

fn outcome(root: &Root, pid: u32, question: &Question, over: &AtomicBool) -> Outcome {
    if !attach::waits(root, pid, WORTH, &is_machines) {
        return Outcome::NobodyWaits;
    }
    match attach::dump(root, pid, question, Wanted::until(over)) {
        Err(refused) => Outcome::Refused(refused),
        Ok(dump) => Outcome::Told(Told {
            threads: text::threads(&dump),
            from: dump.from,
            to: dump.to,
            count: dump.threads,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, outcome};
    use holdup_jvm::attach::{Question, Refused};
    use holdup_proc::Root;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn whoever_is_gone_waits_for_nobody_and_whoever_is_no_jvm_is_not_asked() {
        let over = AtomicBool::new(false);
        let question = Question {
            budget: u64::MAX,
            java: None,
            options: None,
        };
        let nobody = outcome(&Root::system(), u32::MAX, &question, &over);
        assert!(matches!(nobody, Outcome::NobodyWaits), "{nobody:?}");
        // The first thread of this process waits for the one that runs this test.
        let own = outcome(&Root::system(), std::process::id(), &question, &over);
        assert!(matches!(own, Outcome::Refused(Refused::NoJvm)), "{own:?}");
    }
}
