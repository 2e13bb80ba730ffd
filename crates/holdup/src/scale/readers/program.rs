//! A program, run to its end: nothing to read, what it prints thrown away.
//!
//! What the kernel counted for it is asked for when it has ended and before it is gone: queueing is reported of its main thread alone, CPU
//! time of all its threads and of those of its children that it waited for.

use super::{Reader, errno};
use nix::errno::Errno;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// The program, and what its last run was.
pub(super) struct Program {
    argv: Vec<OsString>,
    last: Option<Run>,
}

/// One run.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::scale) struct Run {
    /// As a shell has it.
    pub(in crate::scale) status: i32,
    /// Nanoseconds in its own code, in the kernel, and without a CPU.
    pub(in crate::scale) user: u64,
    pub(in crate::scale) kernel: u64,
    pub(in crate::scale) queued: Option<u64>,
}

impl Program {
    /// What is to be run.
    pub(super) fn new(argv: &[OsString]) -> Program {
        Program {
            argv: argv.to_vec(),
            last: None,
        }
    }
}

impl Reader for Program {
    fn once(&mut self) -> Result<(), Errno> {
        let (program, arguments) = self.argv.split_first().ok_or(Errno::ENOENT)?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // SAFETY: one system call, between fork and exec.
        unsafe {
            command.pre_exec(|| {
                // It ends with its worker.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        let child = command.spawn().map_err(|error| errno(&error))?;
        let pid = libc::pid_t::try_from(child.id()).map_err(|_| Errno::EOVERFLOW)?;
        // Its end, without taking it away.
        loop {
            // SAFETY: fills a struct that may be all zero.
            let ended = unsafe {
                let mut info: libc::siginfo_t = std::mem::zeroed();
                libc::waitid(
                    libc::P_PID,
                    child.id(),
                    &raw mut info,
                    libc::WEXITED | libc::WNOWAIT,
                )
            };
            match Errno::result(ended) {
                Ok(_) => break,
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        let queued = std::fs::read_to_string(format!("/proc/{pid}/schedstat"))
            .ok()
            .and_then(|text| text.split_ascii_whitespace().nth(1)?.parse().ok());
        // SAFETY: as above; it is our child, and nobody else waits for it.
        let (status, usage) = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            let mut status = 0;
            Errno::result(libc::wait4(pid, &raw mut status, 0, &raw mut usage))?;
            (status, usage)
        };
        let time = |time: libc::timeval| {
            time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_usec.cast_unsigned() * 1_000
        };
        self.last = Some(Run {
            status: match libc::WIFSIGNALED(status) {
                true => 128 + libc::WTERMSIG(status),
                false => libc::WEXITSTATUS(status),
            },
            user: time(usage.ru_utime),
            kernel: time(usage.ru_stime),
            queued,
        });
        Ok(())
    }

    fn run(&self) -> Option<Run> {
        self.last
    }
}
