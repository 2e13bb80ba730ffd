//! The threads of an interpreter that a child has found.

use super::{SHARE, thread_cpu};
use holdup_evidence::Ns;
use holdup_jvm::Running;
use holdup_proc::clocks;
use holdup_runtimes::interpreted::{Interpreter, Thread};
use std::collections::HashMap;

/// The threads of an interpreter, by their ids in their pid namespace. It costs much to find them all.
#[derive(Debug, Default)]
pub(super) struct Listed {
    pub(super) threads: HashMap<u32, Thread>,
    /// When it was made, and what CPU time that took.
    made: Ns,
    took: Ns,
}

impl Listed {
    /// Makes the list anew, unless it was made lately by what it costs; gives back what it took.
    pub(super) fn renew(&mut self, interpreter: &mut Interpreter<Running>) -> Ns {
        let now = clocks::monotonic();
        if now.saturating_sub(self.made) < self.took.saturating_mul(SHARE) {
            return 0;
        }
        let before = thread_cpu();
        self.threads.clear();
        // Of several states of one thread, the first that its interpreter lists.
        for thread in interpreter.threads().unwrap_or_default() {
            self.threads.entry(thread.tid()).or_insert(thread);
        }
        self.made = now;
        self.took = thread_cpu().saturating_sub(before);
        self.took
    }
}
