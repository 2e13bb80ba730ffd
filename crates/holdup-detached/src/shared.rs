//! A number that a child writes and its parent reads, so that a child that is stuck need not say where it is.
//!
//! In: made before the child is started, and moved into it. Out: the same number on both sides.

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::io;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number; clones, and the copies that forks have, are of the same.
#[derive(Debug, Clone)]
pub struct SharedNumber(Arc<Page>);

#[derive(Debug)]
struct Page(NonNull<AtomicU32>);

// SAFETY: the page is there until this is dropped, and all access to it is atomic.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

const LENGTH: NonZeroUsize = NonZeroUsize::new(size_of::<AtomicU32>()).expect("four bytes");

impl SharedNumber {
    /// A zero.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn zero() -> io::Result<SharedNumber> {
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: new memory at a place that the kernel chooses. It is all zero, which is a number, and aligned to a page.
        let page = unsafe { mmap_anonymous(None, LENGTH, access, MapFlags::MAP_SHARED)? };
        Ok(SharedNumber(Arc::new(Page(page.cast()))))
    }

    /// What it is now.
    #[must_use]
    pub fn get(&self) -> u32 {
        self.number().load(Ordering::Relaxed)
    }

    /// Makes it another.
    pub fn set(&self, number: u32) {
        self.number().store(number, Ordering::Relaxed);
    }

    fn number(&self) -> &AtomicU32 {
        // SAFETY: it is mapped for as long as the page is not dropped.
        unsafe { self.0.0.as_ref() }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nobody has a reference into it.
        unsafe { munmap(self.0.cast(), LENGTH.get()).ok() };
    }
}
