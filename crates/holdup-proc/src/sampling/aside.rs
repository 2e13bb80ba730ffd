//! What may block is read by a thread that may be left behind.
//!
//! The problem: `syscall` and `stack` take the lock that an exec of the process holds, and reading its memory may wait for a page
//! that somebody else is to bring; whoever is stuck there would take the sampler with it. The choice: all such questions of one
//! round go to a reader in one piece. If it is late, rounds go on without answers; if it stays so, the process that it was at is
//! given up, and another reader takes over. In: questions ([`Question`]). Out: answers.

use super::look::{self, Answer, Eye, Question};
use crate::root::Root;
use holdup_evidence::Ns;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

/// How long answers are waited for in a round; a round's take a millisecond or so, and those of the first of hundreds of threads some ten. What
/// comes later is thrown away for who has run meanwhile.
const PATIENCE: Duration = Duration::from_millis(100);

/// Who has been silent for so long, in nanoseconds, is stuck and not merely waiting for a CPU.
const STUCK: Ns = 2_000_000_000;

/// Readers in all: after so many stuck processes nothing more is read that may block.
const MOST_READERS: u32 = 4;

/// A reader.
#[derive(Debug)]
struct Reader {
    ask: Sender<Vec<Question>>,
    answers: Receiver<Vec<Answer>>,
    /// The process that it is at; 0 between questions.
    at: Arc<AtomicU32>,
    /// Since when answers are owed.
    owes: Option<Ns>,
}

/// Has questions answered.
#[derive(Debug)]
pub struct Aside {
    root: Root,
    reader: Option<Reader>,
    started: u32,
    /// Whether a reader was refused.
    refused: bool,
    stuck: HashSet<u32>,
}

impl Aside {
    /// Reads below this root.
    #[must_use]
    pub fn new(root: Root) -> Aside {
        Aside {
            root,
            reader: None,
            started: 0,
            refused: false,
            stuck: HashSet::new(),
        }
    }

    /// Processes that were given up.
    pub fn stuck(&self) -> impl Iterator<Item = u32> {
        self.stuck.iter().copied()
    }

    /// Whether nobody reads, because no thread could be started.
    pub fn is_without_reader(&self) -> bool {
        self.refused && self.reader.is_none()
    }

    /// Answers that have come; those to these questions, if they come in time.
    pub fn ask(&mut self, mut questions: Vec<Question>, now: Ns) -> Vec<Answer> {
        let mut answers = self.owed(now);
        questions.retain(|question| !self.stuck.contains(&question.pid));
        if questions.is_empty() || self.reader.as_ref().is_some_and(|reader| reader.owes.is_some()) {
            return answers;
        }
        if self.reader.is_none() && self.started < MOST_READERS {
            self.started += 1;
            self.reader = start(&self.root);
            self.refused |= self.reader.is_none();
        }
        let Some(reader) = &mut self.reader else {
            return answers;
        };
        if reader.ask.send(questions).is_err() {
            return answers;
        }
        match reader.answers.recv_timeout(PATIENCE) {
            Ok(more) => answers.extend(more),
            Err(_) => reader.owes = Some(now),
        }
        answers
    }

    /// What is owed, if it has come; a reader that owes for too long is left behind.
    fn owed(&mut self, now: Ns) -> Vec<Answer> {
        let Some(reader) = &mut self.reader else {
            return Vec::new();
        };
        let Some(since) = reader.owes else {
            return Vec::new();
        };
        if let Ok(answers) = reader.answers.try_recv() {
            reader.owes = None;
            return answers;
        }
        if now.saturating_sub(since) > STUCK {
            self.stuck.insert(reader.at.load(Ordering::Relaxed));
            self.reader = None;
        }
        Vec::new()
    }
}

fn start(root: &Root) -> Option<Reader> {
    let (ask, questions) = mpsc::channel::<Vec<Question>>();
    let (answer, answers) = mpsc::channel();
    let at = Arc::new(AtomicU32::new(0));
    let mut eye = Eye::new(root.clone());
    let here = Arc::clone(&at);
    let read_all = move || {
        while let Ok(questions) = questions.recv() {
            let mut said = Vec::with_capacity(questions.len());
            for question in questions {
                here.store(question.pid, Ordering::Relaxed);
                said.push(look::at(&mut eye, question));
            }
            here.store(0, Ordering::Relaxed);
            if answer.send(said).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name("look".to_owned())
        .spawn(read_all)
        .ok()?;
    Some(Reader {
        ask,
        answers,
        at,
        owes: None,
    })
}

#[cfg(test)]
mod tests {
    use super::{Aside, STUCK};
    use crate::root::Tree;
    use crate::sampling::look::{Question, Want};
    use crate::sampling::task::Folder;
    use holdup_evidence::TaskState;

    fn question(tree: &Tree, pid: u32) -> Question {
        Question {
            key: pid,
            pid,
            tid: pid,
            folder: Folder::open(&tree.root, pid, pid).unwrap().again(),
            state: TaskState::Interruptible,
            want: Want::default(),
            runs_in: None,
        }
    }

    #[test]
    fn who_is_stuck_is_left_behind_and_others_are_read() {
        let tree = Tree::new(&[("proc/7/task/7/wchan", "a"), ("proc/8/task/8/wchan", "b")]);
        let mut aside = Aside::new(tree.root.clone());
        let mut answers = aside.ask(vec![question(&tree, 7)], 0);
        // However late it is on a busy machine, it comes.
        while answers.is_empty() {
            answers = aside.ask(Vec::new(), 0);
        }
        assert_eq!(answers[0].site.function.as_deref(), Some("a"));
        // A reader that never answers: its questions go nowhere.
        let reader = aside.reader.as_mut().unwrap();
        let (_kept, never) = std::sync::mpsc::channel();
        reader.answers = never;
        reader.owes = Some(0);
        reader.at.store(7, std::sync::atomic::Ordering::Relaxed);
        assert!(aside.ask(vec![question(&tree, 8)], 1).is_empty());
        let mut answers = aside.ask(vec![question(&tree, 7), question(&tree, 8)], STUCK + 1);
        while answers.is_empty() {
            answers = aside.ask(Vec::new(), 0);
        }
        assert_eq!(aside.stuck().collect::<Vec<_>>(), [7]);
        let keys: Vec<u32> = answers.iter().map(|answer| answer.key).collect();
        assert_eq!(keys, [8]);
    }
}
