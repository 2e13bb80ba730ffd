//! Readers of other processes that may be left behind.
//!
//! Reading another's memory or its list of mounts can block for as long as that one is stuck: its address space may be
//! locked, or a page of it be for a process to bring that does not answer. So threads do it that may be left behind. In: a
//! process, and a question about it. Out: the answer; nothing where that took too long.

use std::collections::HashSet;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

/// How long one answer is waited for. A stack or a path takes some 50 µs, a long list of mounts a millisecond. Who is late once may only
/// have waited for a CPU: the answer is waited for once more when the next question comes, and thrown away.
const LIMIT: Duration = Duration::from_millis(200);

/// Readers that may be left behind: after so many processes that can't be read nothing more is.
const MOST_READERS: usize = 4;

/// Answers questions, one at a time.
#[derive(Debug)]
pub(super) struct Readers<Q, A> {
    how: fn(Q) -> A,
    /// The reader that answers, if there is one.
    current: Option<(Sender<Q>, Receiver<A>)>,
    started: usize,
    /// The process about which it owes an answer.
    owed: Option<u32>,
    /// Processes that a reader is stuck in.
    stuck: HashSet<u32>,
}

impl<Q: Send + 'static, A: Send + 'static> Readers<Q, A> {
    /// That answer in this way.
    pub(super) fn new(how: fn(Q) -> A) -> Readers<Q, A> {
        Readers {
            how,
            current: None,
            started: 0,
            owed: None,
            stuck: HashSet::new(),
        }
    }

    /// What is to be said of a process.
    pub(super) fn ask(&mut self, pid: u32, question: Q) -> Option<A> {
        self.ask_for(pid, question, LIMIT)
    }

    /// Processes that did not let themselves be read in time.
    pub(super) fn stuck(&self) -> impl Iterator<Item = u32> {
        self.stuck.iter().copied()
    }

    fn ask_for(&mut self, pid: u32, question: Q, limit: Duration) -> Option<A> {
        self.settle(limit);
        if self.stuck.contains(&pid) {
            return None;
        }
        if self.current.is_none() && self.started < MOST_READERS {
            self.started += 1;
            self.current = start(self.how);
        }
        let (asked, answers) = self.current.as_ref()?;
        asked.send(question).ok()?;
        if let Ok(answer) = answers.recv_timeout(limit) {
            return Some(answer);
        }
        self.owed = Some(pid);
        None
    }

    /// Waits for the answer that is owed; a reader that does not come back now either is left where it is, and with it whatever it may
    /// still say.
    fn settle(&mut self, limit: Duration) {
        let Some(pid) = self.owed.take() else { return };
        let came = self
            .current
            .as_ref()
            .is_some_and(|(_, answers)| answers.recv_timeout(limit).is_ok());
        if !came {
            self.current = None;
            self.stuck.insert(pid);
        }
    }
}

fn start<Q: Send + 'static, A: Send + 'static>(how: fn(Q) -> A) -> Option<(Sender<Q>, Receiver<A>)> {
    let (asked, questions) = mpsc::channel();
    let (answer, answers) = mpsc::channel();
    let read_all = move || {
        while let Ok(question) = questions.recv() {
            if answer.send(how(question)).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name("look".to_owned())
        .spawn(read_all)
        .ok()?;
    Some((asked, answers))
}

#[cfg(test)]
mod tests {
    use super::{MOST_READERS, Readers};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    static GO_ON: AtomicBool = AtomicBool::new(false);

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
        let mut readers = Readers::new(stuck_in_odd_threads);
        let (long, none) = (Duration::from_secs(60), Duration::ZERO);
        let mut ask = |pid, tid, limit| readers.ask_for(pid, tid, limit);
        assert_eq!(ask(10, 10, long), Some(10));
        assert_eq!(ask(11, 11, none), None);
        assert_eq!(ask(11, 12, none), None, "the process is not asked about again");
        assert_eq!(ask(12, 12, long), Some(12));
        for pid in (21..).step_by(2).take(MOST_READERS) {
            assert_eq!(ask(pid, pid, none), None);
        }
        assert_eq!(ask(14, 14, none), None, "no more readers are left behind");
        assert_eq!(readers.stuck().count(), MOST_READERS);
    }

    #[test]
    fn who_is_late_once_is_asked_again() {
        let mut readers = Readers::new(|answer: u32| {
            // It goes on when it is told to, and not before.
            while answer == 1 && !GO_ON.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            answer
        });
        assert_eq!(readers.ask_for(10, 1, Duration::ZERO), None);
        GO_ON.store(true, Ordering::Relaxed);
        let long = Duration::from_secs(60);
        assert_eq!(readers.ask_for(10, 2, long), Some(2), "and not the late answer");
        assert_eq!(readers.stuck().count(), 0);
    }
}
