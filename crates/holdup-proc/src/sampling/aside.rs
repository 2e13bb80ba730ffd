//! What may block is read by a child process that can be left behind.
//!
//! The problem: `syscall` and `stack` take the lock that an exec of the process holds, and reading its memory may wait for a page
//! that somebody else is to bring; whoever is stuck there would take the sampler with it. The choice: all such questions of one
//! round go to a reader in one piece ([`blocking::Reader`]). If it is late, rounds go on without answers; if it stays so, the process that
//! it was at is given up, and another reader takes over. In: questions ([`Question`]). Out: answers.

use super::look::{self, Answer, Eye, Question};
use super::sockets::diag;
use crate::blocking;
use crate::root::Root;
use holdup_detached::{Failed, SharedNumber};
use holdup_evidence::Ns;
use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

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
    reader: blocking::Reader<Vec<Question>, Vec<Answer>>,
    /// The process that it is at; 0 between questions.
    at: SharedNumber,
    /// What it needs to ask about sockets, until it has it.
    sockets: Vec<OwnedFd>,
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

    /// Whether nobody reads, because no process could be started.
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
        let until = Instant::now() + PATIENCE;
        let sockets = std::mem::take(&mut reader.sockets);
        let sockets: Vec<BorrowedFd<'_>> = sockets.iter().map(AsFd::as_fd).collect();
        let asked = reader.reader.ask(questions, &sockets, until);
        match asked.and_then(|()| reader.reader.answer(until)) {
            Ok(more) => answers.extend(more),
            Err(Failed::Late) => reader.owes = Some(now),
            Err(Failed::Gone) => self.broke(),
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
        match reader.reader.answer(Instant::now()) {
            Ok(answers) => {
                reader.owes = None;
                return answers;
            }
            Err(Failed::Gone) => self.broke(),
            Err(Failed::Late) if now.saturating_sub(since) > STUCK => self.leave(),
            Err(Failed::Late) => {}
        }
        Vec::new()
    }

    /// The reader has ended over a process, of which nothing more is asked.
    fn broke(&mut self) {
        if let Some(reader) = self.reader.take() {
            self.stuck.insert(reader.at.get());
        }
    }

    /// Leaves a reader that owes answers where it is.
    fn leave(&mut self) {
        if let Some(reader) = self.reader.take_if(|reader| reader.owes.is_some()) {
            let pid = reader.at.get();
            self.stuck.insert(pid);
            reader.reader.abandon(pid);
        }
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        self.leave();
    }
}

fn start(root: &Root) -> Option<Reader> {
    let at = SharedNumber::zero().ok()?;
    let (root, here) = (root.clone(), at.clone());
    let begin = move || {
        let mut eye = None;
        move |questions: Vec<Question>, sockets: Vec<OwnedFd>| {
            if !sockets.is_empty() {
                diag::give(sockets);
            }
            let eye = eye.get_or_insert_with(|| Eye::new(root.clone()));
            let look = |question: Question| {
                here.set(question.pid);
                look::at(eye, question)
            };
            let answers = questions.into_iter().filter_map(look).collect();
            here.set(0);
            answers
        }
    };
    let reader = blocking::Reader::start(&blocking::reader_of_stacks(c"holdup-look"), None, begin).ok()?;
    Some(Reader {
        reader,
        at,
        sockets: diag::to_give(),
        owes: None,
    })
}

#[cfg(test)]
mod tests {
    use super::{Aside, STUCK};
    use crate::blocking;
    use crate::root::Tree;
    use crate::sampling::look::{Question, Want};
    use holdup_evidence::TaskState;
    use std::os::fd::OwnedFd;

    fn question(pid: u32) -> Question {
        Question {
            key: pid,
            pid,
            tid: pid,
            state: TaskState::Interruptible,
            want: Want::default(),
            runs_in: None,
        }
    }

    #[test]
    fn who_is_stuck_is_left_behind_and_others_are_read() {
        let tree = Tree::new(&[("proc/7/task/7/wchan", "a"), ("proc/8/task/8/wchan", "b")]);
        let mut aside = Aside::new(tree.root.clone());
        let mut answers = aside.ask(vec![question(7)], 0);
        // However late it is on a busy machine, it comes.
        while answers.is_empty() {
            answers = aside.ask(Vec::new(), 0);
        }
        assert_eq!(answers[0].site.function.as_deref(), Some("a"));
        // A reader that never answers.
        let never = || {
            |_: Vec<Question>, _: Vec<OwnedFd>| loop {
                std::thread::park();
            }
        };
        let reader = aside.reader.as_mut().unwrap();
        let silent = blocking::Reader::start(&blocking::reader(c"holdup-test"), None, never);
        reader.reader = silent.unwrap();
        reader.owes = Some(0);
        reader.at.set(7);
        assert!(aside.ask(vec![question(8)], 1).is_empty());
        let mut answers = aside.ask(vec![question(7), question(8)], STUCK + 1);
        while answers.is_empty() {
            answers = aside.ask(Vec::new(), 0);
        }
        assert_eq!(aside.stuck().collect::<Vec<_>>(), [7]);
        let keys: Vec<u32> = answers.iter().map(|answer| answer.key).collect();
        assert_eq!(keys, [8]);
    }
}
