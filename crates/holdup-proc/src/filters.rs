//! Whether a filter on system calls (seccomp) would end this process for a call that it could do without.
//!
//! The problem: filters may answer a call by killing whoever makes it, as systemd's `SystemCallFilter=` does where it is told nothing
//! else, and holdup would take the report, and CMD's exit status, with it. The choice: where there is a filter, a child makes each such
//! call first, in a way that does nothing. In: the process's status. Out: which calls are not to be made. A process without a filter
//! tries nothing.

use crate::root::Root;
use std::sync::OnceLock;

/// A call that is left out where it would end the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// `process_vm_readv`: memory of others.
    Memory,
    /// `bpf`: tracing.
    Bpf,
    /// `perf_event_open`: tracing, and running threads where sampling.
    PerfEvents,
    /// `pidfd_open`: the end of CMD without a delay.
    ProcessDescriptor,
    /// `socket(AF_NETLINK, …)`: the state of connections where sampling.
    Netlink,
}

impl Call {
    const ALL: [Call; 5] = [
        Call::Memory,
        Call::Bpf,
        Call::PerfEvents,
        Call::ProcessDescriptor,
        Call::Netlink,
    ];

    /// As filters name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Call::Memory => "process_vm_readv",
            Call::Bpf => "bpf",
            Call::PerfEvents => "perf_event_open",
            Call::ProcessDescriptor => "pidfd_open",
            Call::Netlink => "socket(AF_NETLINK)",
        }
    }

    /// Makes the call so that it fails, or changes nothing but the child that makes it. Async-signal-safe.
    fn try_out(self) {
        const NOBODY: libc::pid_t = -1;
        let mut byte = 0u8;
        let place = libc::iovec {
            iov_base: (&raw mut byte).cast(),
            iov_len: 1,
        };
        // SAFETY: one byte of this stack is copied onto itself; the others get numbers and null pointers that the kernel refuses, or make a
        // descriptor that ends with the child.
        unsafe {
            match self {
                Call::Memory => {
                    libc::process_vm_readv(libc::getpid(), &raw const place, 1, &raw const place, 1, 0);
                }
                Call::Bpf => {
                    libc::syscall(libc::SYS_bpf, -1, std::ptr::null::<u8>(), 0);
                }
                Call::PerfEvents => {
                    libc::syscall(
                        libc::SYS_perf_event_open,
                        std::ptr::null::<u8>(),
                        NOBODY,
                        -1,
                        -1,
                        0,
                    );
                }
                Call::ProcessDescriptor => {
                    libc::syscall(libc::SYS_pidfd_open, NOBODY, 0);
                }
                Call::Netlink => {
                    libc::socket(
                        libc::AF_NETLINK,
                        libc::SOCK_DGRAM | libc::SOCK_CLOEXEC,
                        libc::NETLINK_SOCK_DIAG,
                    );
                }
            }
        }
    }
}

/// Calls that end this process; found out once.
static DEADLY: OnceLock<Vec<Call>> = OnceLock::new();

/// Finds out. To be called before anything is observed, so that nobody takes the child for a part of that.
pub fn beware(root: &Root) {
    DEADLY.get_or_init(|| match is_filtered(root) {
        true => deadly(),
        false => Vec::new(),
    });
}

/// Whether a call would end this process; `false` as long as nobody has asked ([`beware`]).
#[must_use]
pub fn kills(call: Call) -> bool {
    DEADLY.get().is_some_and(|deadly| deadly.contains(&call))
}

fn is_filtered(root: &Root) -> bool {
    /// `SECCOMP_MODE_FILTER`.
    const FILTER: &str = "2";
    let status = std::fs::read_to_string(root.proc.join("self/status")).unwrap_or_default();
    let mut lines = status.lines();
    lines
        .find_map(|line| line.strip_prefix("Seccomp:"))
        // A `/proc` that does not say is one of a sandbox.
        .is_none_or(|mode| mode.trim() == FILTER)
}

/// One child for all calls; only where that dies, one for each.
fn deadly() -> Vec<Call> {
    if a_child_survives(&Call::ALL) {
        return Vec::new();
    }
    let mut calls = Call::ALL.to_vec();
    calls.retain(|call| !a_child_survives(&[*call]));
    calls
}

/// Whether a child that makes these calls comes to its end. Its exit status may be nobody's to read, where "ignore SIGCHLD" was inherited, so it
/// says so through a pipe.
fn a_child_survives(calls: &[Call]) -> bool {
    let mut ends = [0; 2];
    // SAFETY: two descriptors are written. The child makes system calls alone, and ends without running anything of its parent's; the parent
    // closes what it has opened.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return false;
        }
        let [read, write] = ends;
        let child = libc::fork();
        if child == 0 {
            // A call that kills leaves no core file.
            libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
            calls.iter().for_each(|call| call.try_out());
            libc::write(write, c"!".as_ptr().cast(), 1);
            libc::_exit(0);
        }
        libc::close(write);
        let mut said = 0u8;
        let survived = child > 0 && libc::read(read, (&raw mut said).cast(), 1) == 1;
        libc::close(read);
        if child > 0 {
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        survived
    }
}

#[cfg(test)]
mod tests {
    use super::{Call, a_child_survives, is_filtered};
    use crate::root::Tree;

    #[test]
    fn a_filter_is_looked_for_in_the_status() {
        let of = |text: &str| is_filtered(&Tree::new(&[("proc/self/status", text)]).root);
        assert!(of("Name:\tx\nSeccomp:\t2\n"));
        assert!(!of("Name:\tx\nSeccomp:\t0\n"));
        assert!(of("Name:\tx\n"), "who does not say is tried");
    }

    #[test]
    fn whoever_lives_says_so() {
        assert!(
            a_child_survives(&Call::ALL),
            "tests run without a filter that kills"
        );
    }
}
