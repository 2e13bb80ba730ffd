//! The process that is asked, held so that its number can't become another's.
//!
//! A signal that was meant for a JVM would end whatever else has its number by then. So it is sent through a descriptor of the process,
//! which is opened first; then it is seen that this process is a JVM.

use super::Refused;
use crate::is_libjvm;
use holdup_proc::{Root, maps};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A process that has libjvm mapped.
#[derive(Debug)]
pub(super) struct Process(OwnedFd);

impl Process {
    /// Holds it. May block: what it has mapped is read.
    pub(super) fn open(root: &Root, pid: u32) -> Result<Process, Refused> {
        // SAFETY: the call takes two numbers and returns a descriptor that is nobody else's, or an error.
        let opened = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        let opened = i32::try_from(opened).ok().filter(|descriptor| *descriptor >= 0);
        let descriptor = opened.ok_or(Refused::Gone)?;
        // SAFETY: as above.
        let process = Process(unsafe { OwnedFd::from_raw_fd(descriptor) });
        let mapped = maps::executable(root, pid).ok_or(Refused::Gone)?;
        match mapped.iter().any(|mapping| is_libjvm(&mapping.path)) {
            true => Ok(process),
            false => Err(Refused::NoJvm),
        }
    }

    /// Sends it `SIGQUIT`.
    pub(super) fn quit(&self) -> Result<(), Refused> {
        let none = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: the descriptor is open for as long as `self`, and no information is handed over.
        let sent = unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.0.as_raw_fd(),
                libc::SIGQUIT,
                none,
                0,
            )
        };
        match sent {
            0 => Ok(()),
            _ => Err(Refused::Gone),
        }
    }
}
