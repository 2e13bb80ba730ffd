//! What a task of a list waits for, where only its kernel function, or its stack, is known and no wait was observed.
//!
//! In: a state, function names, a system call. Out: a [`Channel`]. The same tables say it as for a wait that was observed;
//! what a name alone leaves open (whether a disk is read or written, who takes a lock) stays open.

use super::{Site, wait};
use holdup_evidence::{Call, Cause, Ns, TaskState, Waker};
use holdup_knowledge::functions::{Meaning, meaning, plain};

/// What a task waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channel {
    /// The cause; [`Cause::Unknown`] where the names tell nothing.
    pub cause: Cause,
    /// Of a disk: whether it is told that it is read, or written; for a finding it counts as read.
    pub direction_told: bool,
}

impl Channel {
    /// In words that complete "34 tasks are …".
    pub fn phrase(self) -> &'static str {
        match self.cause {
            Cause::DiskRead if !self.direction_told => "waiting for a disk",
            cause => cause.phrase(),
        }
    }
}

/// A call whose number is none of any call: which it is in is not known, and it may well be in one.
const UNKNOWN_CALL: Call = Call {
    number: i32::MAX,
    args: [0; 4],
};

/// What a task waits for. `names` are its functions in the kernel, innermost first: a whole stack, or the wait channel alone.
pub fn of_task(state: TaskState, names: &[String], call: Option<Call>) -> Channel {
    let site = Site {
        call: call.unwrap_or(UNKNOWN_CALL),
        state,
        iowait: false,
        object: None,
        ready: None,
        woken_by_socket: None,
        kernel_stack: Some(names),
        kernel_lock: None,
        nobody_asked: false,
        memory: None,
        objects: &|_| None,
        waker: &Waker::Unknown,
        duration: 0 as Ns,
    };
    let look_up = |cause| Channel {
        cause,
        direction_told: true,
    };
    let classified = wait(&site).cause;
    if classified != Cause::Unknown {
        return look_up(classified);
    }
    let mut meanings = names.iter().map(|name| meaning(plain(name)));
    // Going to sleep for I/O is all that old kernels tell of a wait for a page or a request.
    let io = |name: &String| matches!(plain(name), "io_schedule" | "io_schedule_timeout");
    if meanings.clone().any(|known| known == Some(Meaning::Block)) || names.first().is_some_and(io) {
        return Channel {
            cause: Cause::DiskRead,
            direction_told: false,
        };
    }
    if meanings.any(|known| known == Some(Meaning::Lock)) {
        return look_up(Cause::LockKernel);
    }
    look_up(Cause::Unknown)
}

#[cfg(test)]
mod tests {
    use super::of_task;
    use holdup_evidence::{Cause, TaskState};

    fn cause(names: &[&str]) -> (Cause, bool) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let channel = of_task(TaskState::Uninterruptible, &names, None);
        (channel.cause, channel.direction_told)
    }

    #[test]
    fn a_wait_channel_alone_says_what_its_table_says() {
        for (name, wanted) in [
            ("jbd2_log_wait_commit", (Cause::DiskSync, true)),
            ("rpc_wait_bit_killable", (Cause::FsNetwork, true)),
            ("wait_transaction_locked", (Cause::DiskJournal, true)),
            ("balance_dirty_pages", (Cause::DiskWriteback, true)),
            ("folio_wait_bit_common", (Cause::DiskRead, false)),
            ("wait_on_page_bit", (Cause::DiskRead, false)),
            ("io_schedule", (Cause::DiskRead, false)),
            ("rwsem_down_write_slowpath", (Cause::LockKernel, true)),
            ("vm_mmap_pgoff", (Cause::MemMmaplock, true)),
            ("refrigerator", (Cause::ProcessFrozen, true)),
            ("nobody_knows_this", (Cause::Unknown, true)),
        ] {
            assert_eq!(cause(&[name]), wanted, "{name}");
        }
    }

    #[test]
    fn a_stack_says_more() {
        assert_eq!(
            cause(&["folio_wait_bit_common", "filemap_get_pages"]),
            (Cause::DiskRead, true)
        );
        assert_eq!(
            cause(&["folio_wait_bit", "folio_wait_writeback", "ext4_sync_file"]),
            (Cause::DiskSync, true)
        );
        assert_eq!(cause(&[]), (Cause::Unknown, true));
    }
}
