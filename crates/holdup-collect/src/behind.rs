//! Readers of other processes that can be left behind.
//!
//! Reading another process's memory or its list of mounts can block for as long as that process is stuck: its address space is locked, or
//! a page of it does not come. So a child process does it ([`Reader`]), which can be abandoned. In: a process, and a question
//! about it. Out: the answer; nothing where that took too long.

use holdup_detached::{Failed, WaitBudget, is_runnable};
use holdup_proc::blocking::{self, Reader};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// How long one answer is waited for. A stack or a path takes some 50 µs, a long list of mounts a millisecond. Who is late once may only
/// have waited for a CPU: the answer is waited for once more when the next question comes, and thrown away.
const LIMIT: Duration = Duration::from_millis(200);

/// The same of what is asked once, and is missed for good if it does not come.
const PATIENT_LIMIT: Duration = Duration::from_secs(2);

/// The same of a reader that is not blocked but lacks a CPU.
const LIMIT_WITHOUT_CPU: Duration = Duration::from_secs(2);

/// What a child does with each question. It may keep something for the next one.
pub(super) type Answerer<Q, A> = Box<dyn FnMut(Q) -> A>;

/// Answers questions, one at a time.
#[derive(Debug)]
pub(super) struct Readers<Q, A> {
    begin: fn() -> Answerer<Q, A>,
    /// The reader that answers, if there is one.
    current: Option<Reader<Q, A>>,
    /// How long may be waited for processes that can't be read.
    budget: WaitBudget,
    /// The process about which it owes an answer.
    owed: Option<u32>,
    /// Processes that a reader is stuck in.
    stuck: HashSet<u32>,
}

impl<Q, A> Readers<Q, A>
where
    Q: Serialize + DeserializeOwned + Send + 'static,
    A: Serialize + DeserializeOwned + Send + 'static,
{
    /// That answer in the way that each child begins with.
    pub(super) fn new(begin: fn() -> Answerer<Q, A>) -> Readers<Q, A> {
        Readers {
            begin,
            current: None,
            budget: WaitBudget::new(),
            owed: None,
            stuck: HashSet::new(),
        }
    }

    /// What is to be said of a process.
    pub(super) fn ask(&mut self, pid: u32, question: Q) -> Option<A> {
        self.ask_for(pid, question, LIMIT, LIMIT_WITHOUT_CPU)
    }

    /// The same of what is asked once, and is missed for good if it does not come: on a machine in trouble everything takes longer.
    pub(super) fn ask_patiently(&mut self, pid: u32, question: Q) -> Option<A> {
        self.ask_for(pid, question, PATIENT_LIMIT, LIMIT_WITHOUT_CPU)
    }

    /// Processes that did not let themselves be read in time.
    pub(super) fn stuck(&self) -> impl Iterator<Item = u32> {
        self.stuck.iter().copied()
    }

    /// Waits for `limit`, and until `most` has passed for a reader that would run if it had a CPU.
    fn ask_for(&mut self, pid: u32, question: Q, limit: Duration, most: Duration) -> Option<A> {
        self.settle(limit);
        if self.stuck.contains(&pid) {
            return None;
        }
        if self.current.is_none() && self.budget.may_start() {
            let begin = self.begin;
            let begin = move || {
                let mut answer = begin();
                move |question: Q, _| answer(question)
            };
            self.current = Reader::start(&blocking::reader(c"holdup-reader"), None, begin).ok();
        }
        let reader = self.current.as_mut()?;
        let began = Instant::now();
        let asked = reader.ask(question, &[], began + limit);
        let mut answer = asked.and_then(|()| reader.answer(began + limit));
        while matches!(answer, Err(Failed::Late))
            && began.elapsed() < most
            && reader.pid().is_some_and(is_runnable)
        {
            answer = reader.answer(Instant::now() + limit);
        }
        // What an ordinary answer takes is free. More is charged, whether it came or not.
        self.budget.charge(began.elapsed().saturating_sub(limit));
        match answer {
            Ok(answer) => Some(answer),
            Err(Failed::Late) => {
                self.owed = Some(pid);
                self.budget.charge(limit);
                None
            }
            Err(Failed::Gone) => {
                self.current = None;
                None
            }
        }
    }

    /// Waits for the answer that is owed; a reader that does not come back now either is left where it is, and with it whatever it may
    /// still say.
    fn settle(&mut self, limit: Duration) {
        let Some(pid) = self.owed else { return };
        let until = Instant::now() + limit;
        let came = self
            .current
            .as_mut()
            .is_some_and(|reader| reader.answer(until).is_ok());
        if came {
            self.owed = None;
        } else {
            self.stuck.insert(pid);
            self.budget.charge(limit);
            self.leave();
        }
    }
}

impl<Q, A> Readers<Q, A> {
    /// Leaves the reader, and says in which process, if it owes an answer.
    fn leave(&mut self) {
        let Some(reader) = self.current.take() else { return };
        match self.owed.take() {
            Some(pid) => reader.abandon(pid),
            None => drop(reader),
        }
    }
}

impl<Q, A> Drop for Readers<Q, A> {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::Readers;
    use std::path::PathBuf;
    use std::sync::OnceLock;
    use std::time::Duration;

    static GO_ON: OnceLock<PathBuf> = OnceLock::new();

    fn stuck_in_odd_threads(tid: u32) -> u32 {
        if tid % 2 == 1 {
            loop {
                std::thread::park();
            }
        }
        tid
    }

    #[test]
    fn who_cannot_be_read_is_left_behind_and_the_others_are_read() {
        let mut readers = Readers::new(|| Box::new(stuck_in_odd_threads));
        let (long, none) = (Duration::from_secs(60), Duration::ZERO);
        let mut ask = |pid, tid: u32, limit| readers.ask_for(pid, tid, limit, limit);
        assert_eq!(ask(10, 10, long), Some(10));
        assert_eq!(ask(11, 11, none), None);
        assert_eq!(ask(11, 12, none), None, "the process is not asked about again");
        assert_eq!(ask(12, 12, long), Some(12));
        for pid in (21..41).step_by(2) {
            assert_eq!(ask(pid, pid, none), None);
        }
        assert_eq!(ask(14, 14, none), None, "it may only be late");
        assert_eq!(ask(16, 16, long), Some(16), "however many are stuck");
        assert_eq!(readers.stuck().count(), 11);
        readers.budget.charge(Duration::from_hours(1));
        readers.leave();
        let none_left = readers.ask_for(18, 18, long, long);
        assert_eq!(none_left, None, "too much time went into waiting");
    }

    #[test]
    fn who_is_late_once_is_asked_again() {
        let folder = tempfile::tempdir().unwrap();
        let go_on = GO_ON.get_or_init(|| folder.path().join("go on"));
        let mut readers = Readers::new(|| {
            Box::new(|answer: u32| {
                // It goes on when the file is there, and not before.
                while answer == 1 && !GO_ON.get().is_some_and(|go_on| go_on.exists()) {
                    std::thread::yield_now();
                }
                answer
            })
        });
        assert_eq!(readers.ask_for(10, 1, Duration::ZERO, Duration::ZERO), None);
        std::fs::write(go_on, "").unwrap();
        let long = Duration::from_secs(60);
        assert_eq!(
            readers.ask_for(10, 2, long, long),
            Some(2),
            "and not the late answer"
        );
        assert_eq!(readers.stuck().count(), 0);
    }

    #[test]
    fn one_that_breaks_is_replaced() {
        let mut readers =
            Readers::new(|| Box::new(|number: u32| number.checked_sub(1).expect("a panic of the child's")));
        let long = Duration::from_secs(60);
        assert_eq!(readers.ask_for(10, 0, long, long), None);
        assert_eq!(readers.ask_for(10, 2, long, long), Some(1));
    }
}
