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
    how: "writes below DIR stay in memory; reads of other files still use the disk",
    risk: "durability: a crash or a reboot clears memory, and all data written is lost",
    escapes: "reads, and files that are not below DIR",
    settles: true,
    refuses: super::never,
};

pub(super) const LOCK: Way = Way {
    name: "lock.file",
    causes: &[Cause::LockFile],
    means: Means::Memory,
    how: "CMD uses its own copies of the files below DIR, so locks of other programs do not block it",
    risk: "ordering: without the lock, two programs may damage the file, or read data that is half written",
    escapes: "locks between CMD's own processes, and files that are not below DIR",
    settles: true,
    refuses: super::never,
};
