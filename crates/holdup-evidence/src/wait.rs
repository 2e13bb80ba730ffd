//! A wait of which little is known: what most tests begin with.

use crate::{Call, Clock, Ns, Seq, TaskState, ThreadId, Wait, WaitMemory, Waker};

impl Wait {
    /// Of which only this is known: an interruptible sleep, and nobody saw who ended it.
    #[must_use]
    pub fn new(thread: ThreadId, seq: Seq, (start, end): (Ns, Ns), call: Call) -> Self {
        Self {
            thread,
            seq,
            start,
            end,
            clock: Clock::default(),
            state: TaskState::Interruptible,
            iowait: false,
            call,
            object: None,
            ready: None,
            waker: Waker::Unknown,
            holder: None,
            kernel_stack: None,
            serves: false,
            unanswered: None,
            memory_follows: false,
            asked: None,
        }
    }
}

impl WaitMemory {
    /// Memory that says nothing of one wait.
    #[must_use]
    pub const fn empty(thread: ThreadId, seq: Seq) -> WaitMemory {
        WaitMemory {
            thread,
            first: seq,
            seq,
            returned: None,
            polled: Vec::new(),
            polled_truncated: false,
            path: None,
            completed: None,
        }
    }
}
