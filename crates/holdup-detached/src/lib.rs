//! Child processes that read hostile data, answer typed questions, and can be abandoned.
//!
//! The problem: holdup reads memory, files and mappings of programs that nobody trusts. Such a read can block for ever (a FUSE
//! daemon that never answers, an address space whose lock is held), can use up a CPU, and can break the reader. A thread that is
//! stuck in the kernel keeps its process from ending, whatever signal it gets. A process that is stuck keeps nobody else.
//!
//! The choice: the process that must end never does such a read. It starts a [`Detached`] process for it, sends a question,
//! and waits for the answer until a deadline. Who is late is killed and not waited for. The child is a fork without any of the
//! parent's descriptors (`channel.rs` is all it has), and it gives up what it does not need: user id, capabilities, system calls,
//! CPU time, memory (`confine.rs`). Children that did not end after SIGKILL are listed ([`left_behind`]), so that the report can name them.
//!
//! In: a function that answers questions. Out: answers, or [`Failed`].

mod arch;
mod bytes;
mod capabilities;
mod channel;
mod children;
mod confine;
mod crew;
mod runnable;
mod shared;
mod wait_budget;

pub use bytes::Bytes;
pub use capabilities::Capabilities;
pub use channel::DESCRIPTORS_MAX;
pub use children::{LeftBehind, cpu_time, ended_cpu_time, is_ours, left_behind};
pub use confine::Confinement;
pub use crew::Crew;
pub use runnable::is_runnable;
pub use shared::SharedNumber;
pub use wait_budget::WaitBudget;

use channel::Channel;
use children::Child;
use confine::Rights;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Failed {
    /// Not yet: it may come, or the child is stuck.
    #[error("no answer in time")]
    Late,
    /// It never will: the child has ended, or has sent what is no answer.
    #[error("the reader has ended")]
    Gone,
}

/// An answer, and descriptors that come with it.
#[derive(Debug)]
pub struct Answer<A> {
    /// What was asked for.
    pub value: A,
    /// Descriptors that were opened for the parent. Only those that can be closed without blocking belong here: `O_PATH`, memfd, pipes.
    pub descriptors: Vec<OwnedFd>,
}

impl<A> From<A> for Answer<A> {
    fn from(value: A) -> Answer<A> {
        Answer {
            value,
            descriptors: Vec::new(),
        }
    }
}

/// A child process that answers questions of type `Q` by answers of type `A`, in their order.
#[derive(Debug)]
pub struct Detached<Q, A> {
    child: Child,
    channel: Channel,
    /// Questions without an answer so far.
    owed: usize,
    types: PhantomData<fn(Q) -> A>,
}

impl<Q: Serialize + DeserializeOwned, A: Serialize + DeserializeOwned> Detached<Q, A> {
    /// Starts a child. `begin` runs in the child, after it has given up all that `confinement` does not leave to it, and makes what answers.
    ///
    /// Start it where no other thread holds a lock that the child needs: a fork has the calling thread only. The child ends with the
    /// thread that started it.
    ///
    /// # Errors
    /// When the system has no process or descriptor left.
    pub fn start<W>(confinement: &Confinement, begin: impl FnOnce() -> W) -> io::Result<Detached<Q, A>>
    where
        W: FnMut(Q, Vec<OwnedFd>) -> Answer<A>,
    {
        Detached::with(confinement, Rights::GivenUp, begin)
    }

    /// Starts a child that has its parent's rights and must give them up by itself: one that acts as another user. What it does may have to
    /// be put away, so neither the end of its parent nor a signal for the parent's group ends it. The kernel does after `lifetime_seconds`.
    /// Of `confinement` its name and its limits count.
    ///
    /// # Errors
    /// As [`Detached::start`].
    pub fn start_with_rights<W>(
        confinement: &Confinement,
        lifetime_seconds: u32,
        begin: impl FnOnce() -> W,
    ) -> io::Result<Detached<Q, A>>
    where
        W: FnMut(Q, Vec<OwnedFd>) -> Answer<A>,
    {
        Detached::with(confinement, Rights::ItsOwnToGiveUp { lifetime_seconds }, begin)
    }

    fn with<W>(
        confinement: &Confinement,
        rights: Rights,
        begin: impl FnOnce() -> W,
    ) -> io::Result<Detached<Q, A>>
    where
        W: FnMut(Q, Vec<OwnedFd>) -> Answer<A>,
    {
        let (ours, theirs) = Channel::pair()?;
        let child = Child::start(confinement, rights, theirs, |mut channel| {
            let work = AssertUnwindSafe(|| serve(&mut channel, begin()));
            // A panic must not unwind into what the parent was doing.
            catch_unwind(work).ok();
        })?;
        Ok(Detached {
            child,
            channel: ours,
            owed: 0,
            types: PhantomData,
        })
    }

    /// Sends a question. It is taken if that is possible before `until`.
    ///
    /// # Errors
    /// [`Failed::Late`] when the child takes no more questions: it can only be abandoned then.
    pub fn ask(
        &mut self,
        question: &Q,
        descriptors: &[BorrowedFd<'_>],
        until: Instant,
    ) -> Result<(), Failed> {
        let bytes = postcard::to_stdvec(question).map_err(|_| Failed::Gone)?;
        self.channel.send(&bytes, descriptors, Some(until))?;
        self.owed += 1;
        Ok(())
    }

    /// The next answer, if it comes before `until`. An instant that is over asks only whether it is there.
    ///
    /// # Errors
    /// [`Failed::Late`] when it may still come; ask again for it, or drop this child.
    pub fn answer(&mut self, until: Instant) -> Result<Answer<A>, Failed> {
        let (bytes, descriptors) = self.channel.receive(Some(until))?;
        self.owed = self.owed.saturating_sub(1);
        let value = postcard::from_bytes(&bytes).map_err(|_| Failed::Gone)?;
        Ok(Answer { value, descriptors })
    }

    /// Asks and waits for the answer.
    ///
    /// # Errors
    /// As [`Detached::ask`] and [`Detached::answer`].
    pub fn ask_and_wait(
        &mut self,
        question: &Q,
        descriptors: &[BorrowedFd<'_>],
        limit: Duration,
    ) -> Result<Answer<A>, Failed> {
        let until = Instant::now() + limit;
        self.ask(question, descriptors, until)?;
        self.answer(until)
    }
}

impl<Q, A> Detached<Q, A> {
    /// How many answers it owes.
    #[must_use]
    pub fn owed(&self) -> usize {
        self.owed
    }

    /// The child's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// CPU time that the child has used so far.
    #[must_use]
    pub fn cpu_time(&self) -> Duration {
        self.child.cpu_time()
    }

    /// Says what it reads, a process or a file, for the case that it is left behind.
    pub fn about(&mut self, what: &str) {
        self.child.stuck_in(what);
    }

    /// Lets it come to its end by itself, unheard.
    pub fn let_go(self) {
        // Dropped, it would be killed.
        std::mem::forget(self.child);
    }

    /// Kills it. If it does not end, it is listed in [`left_behind`] as stuck in `what`: a process, or a file.
    pub fn abandon(mut self, what: &str) {
        self.child.stuck_in(what);
    }
}

/// Readable when an answer has come, or the child has ended.
impl<Q, A> AsFd for Detached<Q, A> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

/// The child's life: one question after the other until the parent is gone.
fn serve<Q, A, W>(channel: &mut Channel, mut work: W)
where
    Q: DeserializeOwned,
    A: Serialize,
    W: FnMut(Q, Vec<OwnedFd>) -> Answer<A>,
{
    while let Ok((bytes, descriptors)) = channel.receive(None) {
        let Ok(question) = postcard::from_bytes(&bytes) else {
            return;
        };
        let Answer { value, descriptors } = work(question, descriptors);
        let Ok(bytes) = postcard::to_stdvec(&value) else {
            return;
        };
        let descriptors: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
        if channel.send(&bytes, &descriptors, None).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
