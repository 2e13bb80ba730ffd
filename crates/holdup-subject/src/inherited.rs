//! What holdup was started with and must hand on to CMD unchanged: signal dispositions, signal mask, and which
//! of the standard descriptors were closed.
//!
//! The problem: before `main` begins, Rust's runtime ignores SIGPIPE and opens `/dev/null` on closed standard
//! descriptors, so `main` can no longer tell. The choice: a constructor that the loader calls first notes them.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Signal numbers 1 to 64; 32 and 33 are the C library's own and refuse to be asked.
pub const SIGNALS: std::ops::RangeInclusive<i32> = 1..=64;

static IGNORED: AtomicU64 = AtomicU64::new(0);
static BLOCKED: AtomicU64 = AtomicU64::new(0);
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// What was inherited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inherited {
    ignored: u64,
    blocked: u64,
    closed: u8,
}

impl Inherited {
    /// As it was when holdup began.
    pub fn at_start() -> Inherited {
        Inherited {
            ignored: IGNORED.load(Ordering::Relaxed),
            blocked: BLOCKED.load(Ordering::Relaxed),
            closed: CLOSED.load(Ordering::Relaxed),
        }
    }

    /// These signals ignored, and nothing else out of the ordinary.
    #[cfg(test)]
    pub fn ignoring(signals: &[i32]) -> Inherited {
        Inherited {
            ignored: signals.iter().fold(0, |all, signal| all | bit(*signal)),
            blocked: 0,
            closed: 0,
        }
    }

    /// Whether a signal was ignored.
    pub fn ignores(&self, signal: i32) -> bool {
        self.ignored & bit(signal) != 0
    }

    /// Gives the calling process the inherited dispositions, closed descriptors and, last, mask: signals that
    /// came in the meantime act now. Async-signal-safe.
    pub fn restore(&self) {
        // SAFETY: all of these may be called between fork and exec; the structs are valid when all zero, and
        // a refused call (SIGKILL, SIGSTOP, the C library's own) changes nothing.
        unsafe {
            for descriptor in 0..3 {
                if self.closed & (1 << descriptor) != 0 {
                    libc::close(descriptor);
                }
            }
            for signal in SIGNALS {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = if self.ignores(signal) {
                    libc::SIG_IGN
                } else {
                    libc::SIG_DFL
                };
                libc::sigaction(signal, &raw const action, std::ptr::null_mut());
            }
            let mut mask: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut mask);
            for signal in SIGNALS {
                if self.blocked & bit(signal) != 0 {
                    libc::sigaddset(&raw mut mask, signal);
                }
            }
            libc::sigprocmask(libc::SIG_SETMASK, &raw const mask, std::ptr::null_mut());
        }
    }
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

#[used]
// SAFETY: functions in this section are called once, before main, with nothing that this one relies upon.
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = note;

extern "C" fn note() {
    // SAFETY: the calls only ask; the structs are valid when all zero and filled when the call succeeds.
    unsafe {
        let mut ignored = 0;
        let mut blocked = 0;
        let mut mask: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut mask);
        for signal in SIGNALS {
            let mut action: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0
                && action.sa_sigaction == libc::SIG_IGN
            {
                ignored |= bit(signal);
            }
            if libc::sigismember(&raw const mask, signal) == 1 {
                blocked |= bit(signal);
            }
        }
        let closed = (0..3_i32)
            .filter(|descriptor| libc::fcntl(*descriptor, libc::F_GETFD) == -1)
            .fold(0_u8, |closed, descriptor| closed | 1 << descriptor);
        IGNORED.store(ignored, Ordering::Relaxed);
        BLOCKED.store(blocked, Ordering::Relaxed);
        CLOSED.store(closed, Ordering::Relaxed);
    }
}
