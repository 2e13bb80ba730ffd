//! Where CMD runs when that is not where holdup is: in namespaces, with other standard descriptors, under a filter on system calls.
//!
//! In: a [`Setting`]. Out: a child of holdup's that is there and waits to become CMD. A process can't move itself into a PID namespace,
//! its children are born there; so a child goes first, has a sibling of its own born there (CLONE_PARENT), says its number and is gone.

use super::child::{FAILURE_LENGTH, Image, errno, failure, give_up};
use super::{Command, Stage};
use crate::experiment::room::fork_sibling;
use anyhow::Context;
use libc::sock_filter;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use std::ffi::CString;
use std::fs::File;
use std::io::Read;
use std::os::fd::RawFd;

/// Where and how CMD is to run.
#[derive(Debug)]
pub(crate) struct Setting<'a> {
    /// Namespaces, in the order in which they are entered.
    pub(crate) namespaces: Vec<RawFd>,
    /// The working directory there, by its path: what is mounted over it counts.
    pub(crate) directory: CString,
    /// What becomes stdin, stdout and stderr.
    pub(crate) stdio: [RawFd; 3],
    /// A program of classic BPF; none where it is empty.
    pub(crate) filter: &'a [sock_filter],
    /// What holdup was before it gave itself precedence.
    pub(crate) standing: Standing,
}

/// Precedence among threads: CMD must have the one that it would have had without holdup, in the last run as in the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    nice: i32,
    policy: i32,
    priority: i32,
}

impl Standing {
    /// holdup's own, now.
    pub(crate) fn of_self() -> Standing {
        let mut parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: the calls ask about the calling process, and fill in a struct of the type that they want.
        unsafe {
            libc::sched_getparam(0, &raw mut parameters);
            Standing {
                nice: libc::getpriority(libc::PRIO_PROCESS, 0),
                policy: libc::sched_getscheduler(0),
                priority: parameters.sched_priority,
            }
        }
    }

    /// Gives it back. Async-signal-safe.
    fn assume(self) {
        let parameters = libc::sched_param {
            sched_priority: self.priority,
        };
        // SAFETY: integers, and a struct of the type that is wanted. What is refused stays as it is.
        unsafe {
            libc::sched_setscheduler(0, self.policy, &raw const parameters);
            libc::setpriority(libc::PRIO_PROCESS, 0, self.nice);
        }
    }
}

/// What is written through the failure pipe before the sibling's number. A failure begins with a stage, of which none is this.
const ARRIVED: i32 = -1;

impl Setting<'_> {
    /// Runs in the child that goes first, and in its sibling; allocates nothing.
    pub(super) fn enter(&self, image: &Image, go: RawFd, failure: RawFd) -> ! {
        // SAFETY: plain system calls with integers and a NUL-terminated path.
        unsafe {
            for namespace in &self.namespaces {
                if libc::setns(*namespace, 0) != 0 {
                    give_up(failure, Stage::Enter, errno());
                }
            }
            if libc::chdir(self.directory.as_ptr()) != 0 {
                give_up(failure, Stage::Enter, errno());
            }
            self.standing.assume();
            match fork_sibling() {
                -1 => give_up(failure, Stage::Enter, errno()),
                0 => image.become_cmd_after(go, failure, || self.put_on()),
                pid => {
                    let word = [ARRIVED, pid];
                    libc::write(failure, word.as_ptr().cast(), FAILURE_LENGTH);
                    libc::_exit(0)
                }
            }
        }
    }

    /// A session of its own: no terminal's signal and no question at a terminal reaches CMD. Then what it reads and writes, and the
    /// filter: while it still may without giving up more (no_new_privs would break programs that become another user).
    fn put_on(&self) -> bool {
        // SAFETY: plain system calls with integers, and a program whose length is said; the kernel checks it.
        unsafe {
            libc::setsid();
            for (number, descriptor) in (0..).zip(self.stdio) {
                if libc::dup2(descriptor, number) != number {
                    return false;
                }
            }
            let Ok(len) = u16::try_from(self.filter.len()) else {
                return false;
            };
            let program = libc::sock_fprog {
                len,
                filter: self.filter.as_ptr().cast_mut(),
            };
            // Without the flag, kernels before 5.16 slow the process down for fear of it.
            len == 0
                || libc::syscall(
                    libc::SYS_seccomp,
                    libc::SECCOMP_SET_MODE_FILTER,
                    libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW,
                    &raw const program,
                ) == 0
        }
    }
}

/// The sibling's number, when the one that went first is gone.
pub(super) fn arrived(first: Pid, told: &mut File, command: &Command) -> anyhow::Result<Pid> {
    let mut message = [0; FAILURE_LENGTH];
    let read = told.read_exact(&mut message);
    waitpid(first, None).ok();
    read.context("the process that was to start the command is gone")?;
    let [a, b, c, d, e, f, g, h] = message;
    if i32::from_ne_bytes([a, b, c, d]) == ARRIVED {
        return Ok(Pid::from_raw(i32::from_ne_bytes([e, f, g, h])));
    }
    Err(failure(message, command).into())
}
