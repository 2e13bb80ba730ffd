//! Java frames that a machine reported of its threads, for the waits in which they were reported.
//!
//! In: frames of a thread and the time in which it did not run, from a dump; waits as they are met. Out: the frames of a wait that lasted
//! for the whole of that time.

use holdup_evidence::{Frame, Ns, Seq, ThreadId, Wait};
use std::collections::HashMap;
use std::sync::Arc;

/// Threads of which frames are kept, before all are forgotten.
const THREADS_MAX: usize = 65_536;

/// Java frames, innermost first.
pub(super) type Frames = Arc<[Arc<Frame>]>;

/// What was said.
#[derive(Debug, Default)]
pub(super) struct SaidStacks {
    said: HashMap<ThreadId, (Ns, Ns, Frames)>,
    /// The wait of a thread that its frames belong to.
    of: HashMap<ThreadId, (Seq, Frames)>,
}

impl SaidStacks {
    /// A thread was in these frames from one instant to the other, and did not run.
    pub(super) fn said(&mut self, thread: ThreadId, from: Ns, to: Ns, frames: Frames) {
        if self.said.len() >= THREADS_MAX {
            *self = SaidStacks::default();
        }
        self.said.insert(thread, (from, to, frames));
    }

    /// A wait is met; it may be so again.
    pub(super) fn meet(&mut self, wait: &Wait) {
        if let Some((from, to, frames)) = self.said.get(&wait.thread)
            && wait.start <= *from
            && *to <= wait.end
        {
            self.of.insert(wait.thread, (wait.seq, Arc::clone(frames)));
        }
    }

    /// The frames of a wait that was met.
    pub(super) fn of(&self, thread: ThreadId, seq: Seq) -> Option<Frames> {
        let (of, frames) = self.of.get(&thread)?;
        (*of == seq).then(|| Arc::clone(frames))
    }

    /// A thread is gone.
    pub(super) fn forget(&mut self, thread: ThreadId) {
        self.said.remove(&thread);
        self.of.remove(&thread);
    }
}
