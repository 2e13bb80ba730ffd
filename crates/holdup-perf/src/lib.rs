//! Performance events, and the buffers into which the kernel writes their records.
//!
//! In: the attributes of an event. Out: its descriptor ([`open`]), and whole records, each once, oldest first ([`Ring`]). The
//! kernel moves the head of a buffer, we alone move its tail.

use nix::errno::Errno;
use perf_event_open_sys::bindings;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, fence};

/// Data pages: 256 KiB, so that with the first page it stays below what the kernel lets an ordinary user lock for each CPU
/// (`kernel.perf_event_mlock_kb`, 516). They hold some 2,000 announcements of mappings.
const DATA_PAGES: usize = 64;

/// Whose time an event counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// Of a thread, on all CPUs or on one.
    Thread(u32, Option<u32>),
    /// Of all threads, on one CPU.
    Cpu(u32),
}

/// Opens an event; `leader`: of the group that it joins.
///
/// # Errors
/// When the kernel refuses it, or there is no such thread or CPU.
pub fn open(
    attributes: &mut bindings::perf_event_attr,
    of: Of,
    leader: Option<BorrowedFd<'_>>,
) -> Result<OwnedFd, Errno> {
    let number = |cpu: u32| libc::c_int::try_from(cpu).map_err(|_| Errno::EINVAL);
    let (tid, cpu) = match of {
        Of::Thread(tid, cpu) => {
            let tid = libc::pid_t::try_from(tid).map_err(|_| Errno::ESRCH)?;
            (tid, cpu.map_or(Ok(-1), number)?)
        }
        Of::Cpu(cpu) => (-1, number(cpu)?),
    };
    // SAFETY: the attributes outlive the call.
    let event = unsafe {
        perf_event_open_sys::perf_event_open(
            attributes,
            tid,
            cpu,
            leader.map_or(-1, |leader| leader.as_raw_fd()),
            u64::from(bindings::PERF_FLAG_FD_CLOEXEC),
        )
    };
    if event < 0 {
        return Err(Errno::last());
    }
    // SAFETY: a fresh descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(event) })
}

/// The buffer, and the event that it belongs to.
#[derive(Debug)]
pub struct Ring {
    event: OwnedFd,
    base: NonNull<libc::c_void>,
    page: usize,
    /// Pages of data.
    pages: usize,
}

// SAFETY: the mapping belongs to this value alone, and goes where it goes.
unsafe impl Send for Ring {}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl Ring {
    /// Maps an event's buffer.
    ///
    /// # Errors
    /// When the user has no memory left to lock.
    pub fn of(event: OwnedFd) -> Result<Ring, Errno> {
        Ring::with_pages(event, DATA_PAGES)
    }

    /// Maps one of so many pages of data, a power of two.
    ///
    /// # Errors
    /// As above.
    pub fn with_pages(event: OwnedFd, pages: usize) -> Result<Ring, Errno> {
        // SAFETY: sysconf has no preconditions.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        // SAFETY: a fresh mapping of an event's buffer, of a size that the kernel takes: a page and a power of two of them.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                (1 + pages) * page,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        let base = NonNull::new(base).ok_or(Errno::ENOMEM)?;
        Ok(Ring {
            event,
            base,
            page,
            pages,
        })
    }

    /// All records since the last time.
    pub fn drain(&mut self, mut take: impl FnMut(Vec<u8>)) {
        let page = self.base.as_ptr().cast::<bindings::perf_event_mmap_page>();
        // SAFETY: the mapping lives as long as self.
        let (head, mut tail) = unsafe { ((&raw const (*page).data_head).read_volatile(), (*page).data_tail) };
        fence(Ordering::Acquire);
        while tail < head {
            let header = self.copy(tail, size_of::<bindings::perf_event_header>());
            let size = usize::from(u16::from_ne_bytes([header[6], header[7]]));
            if size < header.len() || tail + size as u64 > head {
                break;
            }
            take(self.copy(tail, size));
            tail += size as u64;
        }
        fence(Ordering::Release);
        // SAFETY: as above.
        unsafe { (&raw mut (*page).data_tail).write_volatile(tail) };
    }

    /// Copies `len` bytes at the running offset `at`, around the buffer's end.
    fn copy(&self, at: u64, len: usize) -> Vec<u8> {
        let data = self.pages * self.page;
        let begin = usize::try_from(at % data as u64).expect("below the buffer's size");
        let first = len.min(data - begin);
        let mut bytes = vec![0; len];
        // SAFETY: both pieces lie within the data pages, which follow the first page; a record is shorter than they are.
        unsafe {
            let base = self.base.as_ptr().cast::<u8>().add(self.page);
            std::ptr::copy_nonoverlapping(base.add(begin), bytes.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(base, bytes.as_mut_ptr().add(first), len - first);
        }
        bytes
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: unmaps what `of` mapped.
        unsafe { libc::munmap(self.base.as_ptr(), (1 + self.pages) * self.page) };
    }
}
