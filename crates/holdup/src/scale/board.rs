//! Memory that a leader and its workers share: the begin, the end, and what each worker counted.
//!
//! A worker writes its own slot, and the leader reads it when the worker has gone; what both use at the same time is atomic.

use super::readers::Refused;
use holdup_comparison::scaling::lengths::BUCKETS;
use nix::errno::Errno;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What all share.
#[repr(C, align(128))]
struct Head {
    stop: AtomicU32,
}

/// What a worker counted; on cache lines of its own, so that counting is no contention.
#[repr(C, align(128))]
pub(super) struct Slot {
    /// Whether the rest is whole.
    pub(super) whole: AtomicU32,
    /// A [`Refused`], as a number; 0: none.
    refused: AtomicU32,
    errno: AtomicU32,
    pub(super) operations: AtomicU64,
    pub(super) unsuccessful: AtomicU64,
    pub(super) status: AtomicU32,
    pub(super) queue_untold: AtomicU32,
    pub(super) wall: AtomicU64,
    pub(super) cpu: AtomicU64,
    pub(super) queued: AtomicU64,
    pub(super) blocked: AtomicU64,
    pub(super) ticks_user: AtomicU64,
    pub(super) ticks_kernel: AtomicU64,
    lengths: [AtomicU64; BUCKETS],
}

impl Slot {
    /// Counts an operation of so long.
    pub(super) fn count(&self, length: u64) {
        let bucket = &self.lengths[holdup_comparison::scaling::lengths::bucket(length)];
        // Nobody else writes there.
        bucket.store(bucket.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let operations = self.operations.load(Ordering::Relaxed);
        self.operations.store(operations + 1, Ordering::Relaxed);
    }

    /// The counts that are not 0.
    pub(super) fn lengths(&self) -> impl Iterator<Item = (u32, u64)> {
        let counts = self.lengths.iter().map(|count| count.load(Ordering::Relaxed));
        (0_u32..).zip(counts).filter(|(_, count)| *count > 0)
    }

    /// Notes why the worker can't go on.
    pub(super) fn refuse(&self, why: Refused) {
        let (kind, errno) = why.as_numbers();
        self.errno.store(errno.cast_unsigned(), Ordering::Relaxed);
        self.refused.store(kind, Ordering::Release);
    }

    /// Why it could not.
    pub(super) fn refused(&self) -> Option<Refused> {
        let kind = self.refused.load(Ordering::Acquire);
        Refused::from_numbers(kind, self.errno.load(Ordering::Relaxed).cast_signed())
    }
}

/// The memory.
pub(super) struct Board {
    at: *mut libc::c_void,
    length: usize,
    workers: usize,
}

impl Board {
    /// For so many workers, all zero.
    pub(super) fn new(workers: u32) -> Result<Board, Errno> {
        let workers = workers as usize;
        let length = size_of::<Head>() + workers * size_of::<Slot>();
        // SAFETY: new memory of the kernel's choosing, shared with children that are forked later.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        Ok(Board { at, length, workers })
    }

    fn head(&self) -> &Head {
        // SAFETY: the mapping begins with one, lives as long as this, is a page's alignment, and zeroes are a valid one.
        unsafe { &*self.at.cast::<Head>() }
    }

    /// A worker's own.
    pub(super) fn slot(&self, worker: usize) -> &Slot {
        assert!(worker < self.workers, "workers are counted from 0");
        // SAFETY: behind the head there are so many, aligned as it is; zeroes are valid ones, and all fields are atomic.
        unsafe { &*self.at.byte_add(size_of::<Head>()).cast::<Slot>().add(worker) }
    }

    /// All of them.
    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot> {
        (0..self.workers).map(|worker| self.slot(worker))
    }

    /// No operation is to begin any more.
    pub(super) fn stop(&self) {
        self.head().stop.store(1, Ordering::Relaxed);
    }

    /// Whether that is so.
    pub(super) fn stopped(&self) -> bool {
        self.head().stop.load(Ordering::Relaxed) != 0
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        // SAFETY: it is our mapping, and no reference into it outlives this.
        unsafe { libc::munmap(self.at, self.length) };
    }
}
