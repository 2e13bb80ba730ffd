//! A wait that has ended, as judges and the books see it. Nothing changes it any more.

use super::thread::Pending;
use holdup_evidence::{Ns, UserStackId, Wait, WaitMemory};

/// A wait whose thread has moved on to its end.
#[derive(Clone, Copy)]
pub(super) struct EndedWait<'a> {
    pub(super) wait: &'a Wait,
    /// Its length within the observed time.
    pub(super) waited: Ns,
    /// Of that: the part on the thread's own path, unless the path went to the waker.
    pub(super) on_path: Ns,
    /// When it ended, in the thread's books.
    pub(super) until: Ns,
    /// Whether the path went to the waker.
    pub(super) handed_on: bool,
    /// User stacks that came already: stack, weight.
    pub(super) askers: &'a [(UserStackId, Ns)],
    pub(super) memory: Option<&'a WaitMemory>,
    /// Whether observation ended before it.
    pub(super) open: bool,
    /// Of an event loop that waits for an answer, no matter who woke it: how long that was outstanding as this wait ended.
    pub(super) for_answer: Option<Ns>,
}

impl Pending {
    /// The wait, now that the memory has come or will not come.
    pub(super) fn ended<'a>(&'a self, memory: Option<&'a WaitMemory>) -> EndedWait<'a> {
        EndedWait {
            wait: &self.wait,
            waited: self.waited,
            on_path: self.on_path,
            until: self.until,
            handed_on: self.handed_on,
            askers: &self.askers,
            memory,
            open: false,
            for_answer: None,
        }
    }
}
