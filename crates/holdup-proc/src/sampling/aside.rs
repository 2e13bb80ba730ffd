//! What may block is read by a child process that can be left behind.
//!
//! The problem: `syscall` and `stack` take the lock that an exec of the process holds, and reading its memory may wait for a page
//! that somebody else is to bring; whoever is stuck there would take the sampler with it. The choice: all such questions of one
//! round go to a reader in one piece ([`blocking::Reader`]). If it is late for want of a CPU, rounds go on without answers. If it is
//! blocked, another reader takes over all processes but the one that it is at, and that process is given up if the answer does not
//! come. In: questions ([`Question`]). Out: answers.

use super::look::{self, Answer, Eye, Question};
use super::sockets::diag;
use crate::blocking;
use crate::root::Root;
use holdup_detached::{Failed, SharedNumber, WaitBudget};
use holdup_evidence::Ns;
use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// How long answers are waited for in a round; a round's take a millisecond or so, and those of the first of hundreds of threads some ten. What
/// comes later is thrown away for who has run meanwhile.
const PATIENCE: Duration = Duration::from_millis(100);

/// Who has been silent for so long, in nanoseconds, is stuck and not merely waiting for a CPU.
const STUCK: Ns = 2_000_000_000;

/// Readers at once: so many processes may be slow to read.
const READERS_MAX: usize = 16;

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

impl Reader {
    /// Whether it waits for something other than a CPU.
    fn is_blocked(&self) -> bool {
        let state = |pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // The name before it is our own, and in parentheses.
            stat.rsplit(") ").next().and_then(|rest| rest.chars().next())
        };
        self.reader
            .pid()
            .and_then(state)
            .is_some_and(|state| state != 'R')
    }
}

/// Has questions answered.
#[derive(Debug)]
pub struct Aside {
    root: Root,
    reader: Option<Reader>,
    /// Readers that are blocked in a process and may yet come back.
    blocked: Vec<Reader>,
    budget: WaitBudget,
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
            blocked: Vec::new(),
            budget: WaitBudget::new(),
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
        questions.retain(|question| {
            let is_at = |reader: &Reader| reader.at.get() == question.pid;
            !self.stuck.contains(&question.pid) && !self.blocked.iter().any(is_at)
        });
        if questions.is_empty() || self.reader.as_ref().is_some_and(|reader| reader.owes.is_some()) {
            return answers;
        }
        if self.reader.is_none() && self.blocked.len() < READERS_MAX && self.budget.may_start() {
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
            Err(Failed::Late) => {
                reader.owes = Some(now);
                if reader.is_blocked() {
                    self.budget.charge(PATIENCE);
                    self.blocked.extend(self.reader.take());
                }
            }
            Err(Failed::Gone) => self.broke(),
        }
        answers
    }

    /// What is owed, if it has come; a reader that owes for too long is left behind.
    fn owed(&mut self, now: Ns) -> Vec<Answer> {
        let mut answers = Vec::new();
        let owing = |reader: &mut Reader| reader.owes.is_some();
        let mut readers = std::mem::take(&mut self.blocked);
        readers.extend(self.reader.take_if(owing));
        for mut reader in readers {
            match reader.reader.answer(Instant::now()) {
                Ok(come) => {
                    answers.extend(come);
                    reader.owes = None;
                    self.reader.get_or_insert(reader);
                }
                Err(Failed::Gone) => {
                    self.stuck.insert(reader.at.get());
                }
                Err(Failed::Late) if reader.owes.is_none_or(|since| now.saturating_sub(since) > STUCK) => {
                    self.leave(reader);
                }
                Err(Failed::Late) if self.reader.is_none() && !reader.is_blocked() => {
                    self.reader = Some(reader);
                }
                Err(Failed::Late) => self.blocked.push(reader),
            }
        }
        answers
    }

    /// The reader has ended over a process, of which nothing more is asked.
    fn broke(&mut self) {
        if let Some(reader) = self.reader.take() {
            self.stuck.insert(reader.at.get());
        }
    }

    /// Leaves a reader that owes answers where it is.
    fn leave(&mut self, reader: Reader) {
        let pid = reader.at.get();
        self.stuck.insert(pid);
        reader.reader.abandon(pid);
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        let owing = |reader: &mut Reader| reader.owes.is_some();
        let mut left = std::mem::take(&mut self.blocked);
        left.extend(self.reader.take_if(owing));
        for reader in left {
            self.leave(reader);
        }
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
        // Others are read meanwhile, however long it takes until it is seen to be blocked.
        let mut answers = Vec::new();
        while answers.is_empty() {
            answers = aside.ask(vec![question(7), question(8)], 1);
        }
        let keys: Vec<u32> = answers.iter().map(|answer| answer.key).collect();
        assert_eq!(keys, [8]);
        assert_eq!(aside.stuck().count(), 0, "it may yet come back");
        aside.ask(Vec::new(), STUCK + 1);
        assert_eq!(aside.stuck().collect::<Vec<_>>(), [7]);
    }
}
