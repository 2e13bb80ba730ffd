//! One reader that answers questions about processes: a child that can be left behind, where that works.
//!
//! The problem: Yama (`kernel.yama.ptrace_scope=1`, the default of many distributions) lets a user without `CAP_SYS_PTRACE` read the memory
//! of his descendants only. CMD is a descendant of holdup, and none of holdup's children. The choice: there, and only there, a thread
//! reads. It can keep holdup from ending, but only for a program of the same user. In: what answers. Out: answers, in order.

use holdup_detached::{Answer, Capabilities, Confinement, Detached, Failed};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Instant;

/// Where Yama says whose memory may be read.
const SCOPE: &str = "/proc/sys/kernel/yama/ptrace_scope";

/// A reader.
#[derive(Debug)]
pub struct Reader<Q, A>(Kind<Q, A>);

#[derive(Debug)]
enum Kind<Q, A> {
    Child(Detached<Q, A>),
    Thread {
        ask: Sender<(Q, Vec<OwnedFd>)>,
        answers: Receiver<A>,
    },
}

impl<Q, A> Reader<Q, A>
where
    Q: Serialize + DeserializeOwned + Send + 'static,
    A: Serialize + DeserializeOwned + Send + 'static,
{
    /// Starts one. `begin` makes what answers, in the child; `about` is what it reads, where that is one process.
    ///
    /// # Errors
    /// When the system has no process or descriptor left.
    pub fn start<W>(
        confinement: &Confinement,
        about: Option<u32>,
        begin: impl FnOnce() -> W + Send + 'static,
    ) -> io::Result<Reader<Q, A>>
    where
        W: FnMut(Q, Vec<OwnedFd>) -> A,
    {
        if only_ancestors_read() {
            return Reader::thread(begin);
        }
        let work = || {
            let mut work = begin();
            move |question, descriptors| Answer::from(work(question, descriptors))
        };
        let mut child = Detached::start(confinement, work)?;
        if let Some(pid) = about {
            child.about(&super::process_named(pid));
        }
        Ok(Reader(Kind::Child(child)))
    }

    fn thread<W>(begin: impl FnOnce() -> W + Send + 'static) -> io::Result<Reader<Q, A>>
    where
        W: FnMut(Q, Vec<OwnedFd>) -> A,
    {
        let (ask, questions) = mpsc::channel::<(Q, Vec<OwnedFd>)>();
        let (answer, answers) = mpsc::channel();
        let answer_all = move || {
            let mut work = begin();
            while let Ok((question, descriptors)) = questions.recv() {
                if answer.send(work(question, descriptors)).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new()
            .name("reader".to_owned())
            .spawn(answer_all)?;
        Ok(Reader(Kind::Thread { ask, answers }))
    }

    /// Sends a question; it is taken if that is possible before `until`.
    ///
    /// # Errors
    /// As [`Detached::ask`].
    pub fn ask(&mut self, question: Q, descriptors: &[BorrowedFd<'_>], until: Instant) -> Result<(), Failed> {
        match &mut self.0 {
            Kind::Child(child) => child.ask(&question, descriptors, until),
            Kind::Thread { ask, .. } => {
                let copies = descriptors.iter().map(|one| one.try_clone_to_owned());
                let copies = copies.collect::<io::Result<_>>().map_err(|_| Failed::Gone)?;
                ask.send((question, copies)).map_err(|_| Failed::Gone)
            }
        }
    }

    /// The next answer, if it comes before `until`. An instant that is over asks only whether it is there.
    ///
    /// # Errors
    /// As [`Detached::answer`].
    pub fn answer(&mut self, until: Instant) -> Result<A, Failed> {
        match &mut self.0 {
            Kind::Child(child) => Ok(child.answer(until)?.value),
            Kind::Thread { answers, .. } => {
                let left = until.saturating_duration_since(Instant::now());
                answers.recv_timeout(left).map_err(|error| match error {
                    RecvTimeoutError::Timeout => Failed::Late,
                    RecvTimeoutError::Disconnected => Failed::Gone,
                })
            }
        }
    }
}

impl<Q, A> Reader<Q, A> {
    /// Its process; nothing where a thread reads.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        match &self.0 {
            Kind::Child(child) => Some(child.pid()),
            Kind::Thread { .. } => None,
        }
    }

    /// Leaves it, stuck in a process.
    pub fn abandon(self, pid: u32) {
        match self.0 {
            Kind::Child(child) => child.abandon(&super::process_named(pid)),
            Kind::Thread { .. } => {}
        }
    }
}

/// Whether only ancestors may read a process of the same user, and this process has no capability that stands above that.
fn only_ancestors_read() -> bool {
    let may_all = Capabilities::permitted().is_ok_and(|has| has.contains(Capabilities::SYS_PTRACE));
    !may_all && std::fs::read_to_string(SCOPE).is_ok_and(|scope| scope.trim() == "1")
}

#[cfg(test)]
mod tests {
    use super::Reader;
    use crate::blocking;
    use std::io::Read;
    use std::os::fd::{AsFd, OwnedFd};
    use std::time::{Duration, Instant};

    #[test]
    fn a_child_and_a_thread_answer_alike() {
        let begin = || {
            |number: u32, descriptors: Vec<OwnedFd>| {
                let mut text = String::new();
                for descriptor in descriptors {
                    std::fs::File::from(descriptor).read_to_string(&mut text).unwrap();
                }
                format!("{number}{text}")
            }
        };
        let child = Reader::start(&blocking::reader(c"holdup-test"), None, begin);
        for mut reader in [child.unwrap(), Reader::thread(begin).unwrap()] {
            let (read, write) = nix::unistd::pipe().unwrap();
            nix::unistd::write(&write, b" and a text").unwrap();
            drop(write);
            let until = Instant::now() + Duration::from_secs(60);
            reader.ask(7, &[read.as_fd()], until).unwrap();
            reader.ask(8, &[], until).unwrap();
            assert_eq!(reader.answer(until).unwrap(), "7 and a text");
            assert_eq!(reader.answer(until).unwrap(), "8");
            assert!(reader.answer(Instant::now()).is_err());
        }
    }
}
