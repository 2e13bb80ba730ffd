//! The child process that asks one JVM once, as the JVM's own user.
//!
//! The problem: root that makes a file where a hostile process says its `/tmp` is makes it wherever that process has mounted something. The
//! choice: a child does all of it. It takes its user's ids and gives up every capability before it touches anything of the JVM's, and it
//! can't take them back, so each child asks once. It owns the file that it makes: a pipe tells it that nobody wants the answer any more, or
//! that holdup is gone, and it removes the file and ends.
//!
//! In: what to do in the child. Out: its value, when it comes. Nothing here blocks, whatever the JVM's file system does.

use super::PATIENCE;
use holdup_detached::{Answer, Capabilities, Confinement, Detached, Failed};
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::pipe2;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// How long a child may take in all, seconds: for the socket and for the answer as long as either may take, and as long again for a machine
/// that is busy.
const LIFETIME_SECONDS: u32 = 20;

/// How long the parent waits for it: by then the kernel has ended a child that can be ended.
const GIVEN_UP: Duration = Duration::from_secs(LIFETIME_SECONDS as u64 + 1);

const _: () = assert!(2 * PATIENCE.as_secs() <= LIFETIME_SECONDS as u64);

/// How long the child's question may take to be sent: it has just been started and reads.
const SENT: Duration = Duration::from_secs(1);

const CHILD: Confinement = Confinement {
    name: c"holdup-jvm-ask",
    capabilities: Capabilities::NONE,
    cpu_time: Some(Duration::from_secs(LIFETIME_SECONDS as u64)),
    // The longest dump, the text of it as its reader has it, and what is made of it.
    memory_bytes: 1 << 30,
    files: 64,
};

/// What only a child has that may give up its rights for good, and how it knows that nobody wants its answer any more.
#[derive(Debug)]
pub struct Expendable {
    wanted: OwnedFd,
}

impl Expendable {
    /// Whether the parent has closed its end, or is gone.
    pub(super) fn is_unwanted(&self) -> bool {
        let mut pipe = [PollFd::new(self.wanted.as_fd(), PollFlags::empty())];
        let closed = PollFlags::POLLHUP | PollFlags::POLLERR;
        poll(&mut pipe, PollTimeout::ZERO)
            .is_ok_and(|_| pipe[0].revents().is_some_and(|events| events.intersects(closed)))
    }

    /// One for a test that plays the child itself, and the end that its parent has.
    #[cfg(test)]
    pub(super) fn with_parent() -> (Expendable, OwnedFd) {
        let (wanted, parent) = nix::unistd::pipe().unwrap();
        (Expendable { wanted }, parent)
    }
}

/// A child that asks.
#[derive(Debug)]
pub struct Asking<T> {
    child: Option<Detached<(), T>>,
    /// Closed when nobody wants the answer.
    wants: Option<OwnedFd>,
    since: Instant,
}

/// Why the child has no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silent {
    /// Not yet.
    Late,
    /// It has ended without one, or was given up.
    Gone,
}

impl<T: Serialize + DeserializeOwned> Asking<T> {
    /// Starts the child, which does `work`.
    ///
    /// # Errors
    /// When the system has no process or descriptor left.
    pub fn start(work: impl FnOnce(&Expendable) -> T) -> io::Result<Asking<T>> {
        let (wanted, wants) = pipe2(OFlag::O_CLOEXEC)?;
        let mut work = Some(work);
        let mut child = Detached::start_with_rights(&CHILD, LIFETIME_SECONDS, || {
            move |(): (), mut descriptors: Vec<OwnedFd>| {
                let work = work.take().expect("each child is asked once");
                let wanted = descriptors.pop().expect("the question comes with a pipe");
                Answer::from(work(&Expendable { wanted }))
            }
        })?;
        let asked = child.ask(&(), &[wanted.as_fd()], Instant::now() + SENT);
        asked.map_err(io::Error::other)?;
        Ok(Asking {
            child: Some(child),
            wants: Some(wants),
            since: Instant::now(),
        })
    }

    /// Its value, if that comes before `until`.
    ///
    /// # Errors
    /// [`Silent::Late`] when it may still come.
    pub fn answer(&mut self, until: Instant) -> Result<T, Silent> {
        let child = self.child.as_mut().ok_or(Silent::Gone)?;
        match child.answer(until) {
            Ok(answer) => Ok(answer.value),
            Err(Failed::Late) if self.since.elapsed() < GIVEN_UP => Err(Silent::Late),
            Err(_) => {
                // Killed, and listed where it does not end.
                self.child = None;
                Err(Silent::Gone)
            }
        }
    }
}

impl<T> Asking<T> {
    /// Nobody wants the answer: the child puts away what it has made, and ends.
    pub fn leave_it(&mut self) {
        self.wants = None;
    }
}

impl<T> Drop for Asking<T> {
    /// A child that has something to put away is not killed: it ends by itself, or the kernel ends it.
    fn drop(&mut self) {
        self.leave_it();
        if let Some(child) = self.child.take() {
            child.let_go();
        }
    }
}
