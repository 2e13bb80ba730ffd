//! Without `disk` or `lock.file`, with `--memory DIR`: what CMD writes below DIR goes to memory, and nowhere else.
//!
//! An overlay over DIR in CMD's own mount namespace, with its upper layer in memory. Reads of what CMD did not write go to the disk as
//! before. Locks on files are taken on the overlay's, so nobody outside holds them.

use super::{Means, Way};
use holdup_evidence::Cause;

pub(super) const DISK: Way = Way {
    name: "disk",
    causes: &[
        Cause::DiskRead,
        Cause::DiskWrite,
        Cause::DiskSync,
        Cause::DiskWriteback,
        Cause::DiskDiscard,
        Cause::DiskJournal,
    ],
    means: Means::Memory,
    how: "what it writes below DIR stays in memory; reads of other files go to the disk as before",
    risk: "durability: memory is empty after a crash or a restart, and what was written is lost",
    escapes: "reads, and files that are not below DIR",
    settles: true,
    refuses: super::never,
};

pub(super) const LOCK: Way = Way {
    name: "lock.file",
    causes: &[Cause::LockFile],
    means: Means::Memory,
    how: "files below DIR are copies of its own, so locks that others hold on them are in nobody's way",
    risk: "ordering: a lock is there because two would damage the file, or see half of what the other writes",
    escapes: "locks that CMD's own processes hold against each other, and files that are not below DIR",
    settles: true,
    refuses: super::never,
};
