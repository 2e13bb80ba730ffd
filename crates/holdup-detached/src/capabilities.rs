//! Capabilities of this process: which it has, and giving up the others.
//!
//! In: a set. Out: a process that has no more than that, for good. The two system calls are made directly: a library for them would
//! be larger than this file.

use std::io;
use std::ops::BitOr;

/// A set of capabilities, one bit each, as the kernel numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities(u64);

/// `_LINUX_CAPABILITY_VERSION_3`: two words of 32 bits for each set.
const VERSION: u32 = 0x2008_0522;

/// The kernel numbers capabilities from 0 on; a set has room for so many.
const NUMBERS: u32 = 64;

#[repr(C)]
struct Header {
    version: u32,
    pid: libc::c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Words {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

impl Capabilities {
    /// None at all.
    pub const NONE: Capabilities = Capabilities(0);
    /// Reading files and searching folders of anybody.
    pub const DAC_READ_SEARCH: Capabilities = Capabilities(1 << 2);
    /// Signals to anybody's processes.
    pub const KILL: Capabilities = Capabilities(1 << 5);
    /// Reading the memory, links and mappings of anybody's processes.
    pub const SYS_PTRACE: Capabilities = Capabilities(1 << 19);
    /// Reading the kernel's log, and addresses in it.
    pub const SYSLOG: Capabilities = Capabilities(1 << 34);
    /// Following `/proc/PID/map_files` (Linux 5.9 and later).
    pub const CHECKPOINT_RESTORE: Capabilities = Capabilities(1 << 40);

    /// By the kernel's number.
    #[must_use]
    pub const fn number(number: u32) -> Capabilities {
        Capabilities(1 << number)
    }

    /// Those in either set; as `|`, for constants.
    #[must_use]
    pub const fn or(self, other: Capabilities) -> Capabilities {
        Capabilities(self.0 | other.0)
    }

    /// Those in both sets.
    #[must_use]
    pub const fn and(self, other: Capabilities) -> Capabilities {
        Capabilities(self.0 & other.0)
    }

    /// Whether all of these are in the set.
    #[must_use]
    pub const fn contains(self, other: Capabilities) -> bool {
        self.0 & other.0 == other.0
    }

    /// The permitted set of this thread.
    ///
    /// # Errors
    /// When the kernel has no capabilities.
    pub fn permitted() -> io::Result<Capabilities> {
        let mut header = Header {
            version: VERSION,
            pid: 0,
        };
        let mut words = [Words::default(); 2];
        // SAFETY: both are as version 3 wants them, and outlive the call.
        let done = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, words.as_mut_ptr()) };
        match done {
            0 => Ok(Capabilities(
                u64::from(words[0].permitted) | u64::from(words[1].permitted) << 32,
            )),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Makes these the permitted and effective set of this thread, and empties the inheritable and ambient sets.
    ///
    /// # Errors
    /// When one of them is not permitted.
    pub fn keep_only(self) -> io::Result<()> {
        let (low, high) = (self.0 as u32, (self.0 >> 32) as u32);
        let words = [low, high].map(|bits| Words {
            effective: bits,
            permitted: bits,
            inheritable: 0,
        });
        let header = Header {
            version: VERSION,
            pid: 0,
        };
        // SAFETY: both are as version 3 wants them, and outlive the call.
        match unsafe { libc::syscall(libc::SYS_capset, &raw const header, words.as_ptr()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Takes all others out of the bounding set, as far as that is allowed: without `CAP_SETPCAP` it stays as it is.
    pub fn bound(self) {
        for number in (0..NUMBERS).filter(|number| self.0 & 1 << number == 0) {
            // SAFETY: takes integers only; a number that the kernel does not know is refused.
            if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(number), 0, 0, 0) } != 0 {
                return;
            }
        }
    }
}

impl BitOr for Capabilities {
    type Output = Capabilities;

    fn bitor(self, other: Capabilities) -> Capabilities {
        self.or(other)
    }
}
