//! Without `disk.sync`: calls that wait for data to be safe on disk return at once.
//!
//! Answered are fsync, fdatasync, sync, syncfs, sync_file_range, and msync where it would wait (MS_SYNC). Not msync with MS_ASYNC: it
//! never waits, and programs that unwind stacks call it to ask whether memory is there.

use super::{Means, Way};
use holdup_evidence::Cause;
use holdup_subject::filter::Call;

/// linux/mman.h.
const MS_SYNC: u32 = 4;

/// Which argument of msync its flags are.
const MSYNC_FLAGS: u32 = 2;

/// The calls.
pub(in crate::experiment) const CALLS: &[Call] = &[
    Call::new("fsync", 74, 118).on_arm(82, 118),
    Call::new("fdatasync", 75, 148).on_arm(83, 148),
    Call::new("sync", 162, 36).on_arm(81, 36),
    Call::new("syncfs", 306, 344).on_arm(267, 373),
    Call::new("sync_file_range", 277, 314).on_arm(84, 341),
    Call::new("msync", 26, 144)
        .on_arm(227, 144)
        .only_if(MSYNC_FLAGS, MS_SYNC),
];

pub(super) const WAY: Way = Way {
    name: "disk.sync",
    causes: &[Cause::DiskSync],
    means: Means::Calls(CALLS),
    how: "fsync, fdatasync, sync, syncfs, sync_file_range and msync(MS_SYNC) return at once and do nothing",
    risk: "durability: after a crash or power loss, data written in about the last 30 s is lost, and a database \
           may be damaged",
    escapes: "writes that make no such call: files opened with O_SYNC or O_DSYNC, RWF_DSYNC, sync mounts, and io_uring",
    settles: true,
    refuses: super::never,
};
