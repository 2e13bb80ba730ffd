//! How holdup keeps up with what it observes where the CPUs are short.
//!
//! In: how many records a turn has found. Out: this process's scheduling.

/// holdup runs at the best nice value. With thousands of runnable threads beside it even that is too small a share
/// of the CPUs to take records as fast as they come: once it has fallen behind, it runs before ordinary threads, and leaves them a good part of the CPU by sleeping between turns ([`super::TURN`], [`super::PERIOD_MS`]). It
/// does not do so from the start, because such a thread stays on a busy CPU where another would have moved to an
/// idle one. CMD, forked before, keeps its own policy.
pub(crate) struct Priority {
    first: bool,
    behind: usize,
}

/// So many records found at the end of a sleep mean that holdup cannot keep up: they fill a quarter of the ring of the usual size, and
/// at [`super::PERIOD_MS`] would stand for a million waits a second. Of another ring it is as many as fill a quarter of that.
const BEHIND: usize = 20_000;

impl Priority {
    /// `buffer`: size of the ring, bytes.
    pub(crate) fn begin(buffer: u32) -> Priority {
        // SAFETY: changes this process's own nice value; without the privilege it stays as it is.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
        let share = u64::from(buffer) * BEHIND as u64 / u64::from(holdup_bpf::DEFAULT_BUFFER);
        Priority {
            first: false,
            behind: usize::try_from(share).unwrap_or(BEHIND),
        }
    }

    /// Back to what any program has: the records are taken.
    pub(crate) fn end() {
        let ordinary = libc::sched_param { sched_priority: 0 };
        // SAFETY: changes this process's own policy and nice value.
        unsafe {
            libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const ordinary);
            libc::setpriority(libc::PRIO_PROCESS, 0, 0);
        }
    }

    /// `found` is how many records a turn took.
    pub(crate) fn adapt(&mut self, found: usize) {
        if !self.first && found > self.behind {
            self.first = true;
            let first = libc::sched_param { sched_priority: 1 };
            // SAFETY: as above, of its scheduling policy.
            unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const first) };
        }
    }
}
