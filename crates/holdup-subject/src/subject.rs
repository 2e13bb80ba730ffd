//! CMD as a child process: forked early, started when the tracer is ready, waited for.
//!
//! [`Subject::prepare`] makes the child, which waits on a pipe: its process id is known before its first
//! instruction, and it is forked before holdup maps and opens what tracing needs. [`Subject::go`] lets it exec.
//! If holdup dies before that, the pipe closes and the child ends without having run CMD; afterwards nothing
//! ties CMD to holdup. Process group, session and terminal are holdup's own, and every descriptor that holdup
//! makes is closed at exec.
//!
//! An exec that failed is reported through a second pipe, so [`Subject::try_wait`] can say why.

mod apart;
mod child;
mod error;
mod setting;
mod user;

pub use apart::no_terminal_input;
pub use error::{NotStarted, OWN_FAILURE, Stage};
pub use setting::{Here, Setting, Standing};
pub use user::User;

use crate::inherited::Inherited;
use anyhow::Context;
use holdup_proc::{Root, filters};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{Pid, pipe2};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// What is to be run.
#[derive(Debug, Clone)]
pub struct Command {
    /// The program and its arguments; at least the program.
    pub argv: Vec<OsString>,
    /// As whom, if not as holdup itself.
    pub user: Option<User>,
}

/// A child that will be CMD, is CMD, or was. Dropped before [`Subject::go`] it ends without having done anything;
/// dropped after, CMD goes on undisturbed.
#[derive(Debug)]
pub struct Subject {
    command: Command,
    pid: Pid,
    /// Tells at once when it ends; `None` where the kernel, or a filter, has no such descriptors.
    pidfd: Option<OwnedFd>,
    /// Until the go-ahead.
    go: Option<File>,
    failure: File,
    ended: Option<Ended>,
}

/// `/proc` does not show the process that holdup has started, or is that of another PID namespace.
#[derive(Debug)]
pub struct NotShown;

impl std::fmt::Display for NotShown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "/proc does not show the processes of this PID namespace, so holdup sees none of them: mount one that does (mount -t proc proc /proc)",
        )
    }
}

impl std::error::Error for NotShown {}

/// How CMD ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this status.
    Exited(u8),
    /// By this signal.
    Killed(i32),
}

impl Ended {
    /// The exit status as a shell has it: 128+N for signal N.
    pub fn status(self) -> u8 {
        match self {
            Ended::Exited(status) => status,
            // Signal numbers end at 64.
            Ended::Killed(signal) => 128_u8.saturating_add(u8::try_from(signal).unwrap_or(u8::MAX)),
        }
    }
}

impl Subject {
    /// Makes the child.
    ///
    /// # Errors
    /// When the system refuses a process or a descriptor, or an argument contains a NUL byte.
    pub fn prepare(command: &Command) -> anyhow::Result<Subject> {
        Subject::prepare_in(command, None)
    }

    /// Makes the child elsewhere than where holdup is.
    ///
    /// # Errors
    /// As above, and when the child can't get there.
    pub fn prepare_in(command: &Command, setting: Option<&Setting<'_>>) -> anyhow::Result<Subject> {
        filters::beware(&Root::system());
        let image = child::Image::new(command, Inherited::at_start())?;
        // An inherited "ignore SIGCHLD" would make the kernel throw CMD's exit status away. CMD itself gets
        // the inherited one back.
        // SAFETY: SIG_DFL is not a handler.
        unsafe { nix::sys::signal::signal(Signal::SIGCHLD, nix::sys::signal::SigHandler::SigDfl) }
            .context("cannot watch for the end of a child")?;
        let (go_read, go_write) = pipe2(OFlag::O_CLOEXEC).context("cannot make a pipe")?;
        let (failure_read, failure_write) = pipe2(OFlag::O_CLOEXEC).context("cannot make a pipe")?;
        // SAFETY: the child only calls `become_cmd`, which keeps to async-signal-safe calls and does not return.
        let pid = match unsafe { libc::fork() } {
            -1 => return Err(Errno::last()).context("cannot make a process"),
            0 => {
                // SAFETY: as above. With its own copy open the child would not see holdup die.
                unsafe { libc::close(go_write.as_raw_fd()) };
                let (go, failure) = (go_read.as_raw_fd(), failure_write.as_raw_fd());
                match setting {
                    None => image.become_cmd(go, failure),
                    Some(setting) => setting.enter(&image, go, failure),
                }
            }
            pid => Pid::from_raw(pid),
        };
        drop(failure_write);
        let mut failure = File::from(failure_read);
        let pid = match setting {
            None => pid,
            Some(_) => setting::arrived(pid, &mut failure, command)?,
        };
        // An error from here on closes the go pipe, at which the child ends.
        Ok(Subject {
            command: command.clone(),
            pid,
            pidfd: pidfd_open(pid).ok(),
            go: Some(go_write.into()),
            failure,
            ended: None,
        })
    }

    /// Whether the child has not ended.
    fn lives(&self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        waitid(Id::Pid(self.pid), flags) == Ok(WaitStatus::StillAlive)
    }

    /// Returns when the child sleeps on its pipe, so that letting it go is a waking that the tracer sees.
    ///
    /// # Errors
    /// When the child is gone, or `/proc` does not show it: [`NotShown`].
    pub fn wait_until_ready(&self) -> anyhow::Result<()> {
        loop {
            let stat = match std::fs::read_to_string(format!("/proc/{}/stat", self.pid)) {
                Ok(stat) if proc_is_ours() => stat,
                Err(_) if !self.lives() => anyhow::bail!("the child that becomes the command is gone"),
                _ => return Err(NotShown.into()),
            };
            // The state follows the name, which is in brackets and may hold any character.
            match stat
                .rsplit_once(')')
                .and_then(|(_, rest)| rest.trim_start().chars().next())
            {
                Some('S') => return Ok(()),
                None => return Err(NotShown.into()),
                Some('Z' | 'X') => anyhow::bail!("the child that becomes the command is gone"),
                Some(_) => std::thread::yield_now(),
            }
        }
    }

    /// Lets the child become CMD; returns at once. Whether that worked [`Subject::try_wait`] tells.
    pub fn go(&mut self) {
        if let Some(mut go) = self.go.take() {
            // A child that was killed while it waited is found by `try_wait`.
            go.write_all(b"!").ok();
        }
    }

    /// Whether CMD was let go and has not ended.
    pub fn runs(&self) -> bool {
        self.go.is_none() && self.ended.is_none()
    }

    /// Whether CMD was not let go yet.
    pub fn is_held_back(&self) -> bool {
        self.go.is_some()
    }

    /// CMD's process id, known before it is CMD.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw().cast_unsigned()
    }

    /// Becomes readable when CMD ends, where there is such a thing.
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Whether CMD has ended and is still there to be looked at, as it is until [`Subject::try_wait`] has told how. Never blocks.
    pub fn can_be_reaped(&self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        self.ended.is_none()
            && !matches!(
                waitid(Id::Pid(self.pid), flags),
                Ok(WaitStatus::StillAlive) | Err(Errno::EINTR)
            )
    }

    /// How CMD ended, `None` while it runs. Never blocks.
    ///
    /// # Errors
    /// [`NotStarted`] when the child never became CMD.
    pub fn try_wait(&mut self) -> anyhow::Result<Option<Ended>> {
        self.reap(WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG)
    }

    /// Waits for CMD's end.
    ///
    /// # Errors
    /// [`NotStarted`] when the child never became CMD.
    pub fn wait(&mut self) -> anyhow::Result<Ended> {
        loop {
            if let Some(ended) = self.reap(WaitPidFlag::WEXITED)? {
                return Ok(ended);
            }
        }
    }

    /// Sends CMD a signal. One that has ended, or that may not be signalled, doesn't get it.
    pub fn signal(&self, signal: i32) {
        if self.ended.is_none() {
            // SAFETY: the process was not waited for yet, so the number is still its own.
            unsafe { libc::kill(self.pid.as_raw(), signal) };
        }
    }

    /// Whether the terminal's signals miss CMD, and would not if it had been started without holdup: it has made a process group of its own
    /// in the same session, as `timeout` does. Where a shell had started it, that would be the foreground group.
    pub fn left_group(&self) -> bool {
        use nix::unistd::{getpgid, getpgrp, getsid};
        let group = getpgid(Some(self.pid));
        self.ended.is_none()
            && group.is_ok_and(|group| group == self.pid && group != getpgrp())
            && getsid(Some(self.pid)).is_ok_and(|session| getsid(None) == Ok(session))
    }

    /// Sends a signal to the process group that CMD leads.
    pub fn signal_group(&self, signal: i32) {
        if self.ended.is_none() {
            // SAFETY: as above, and a group of that number is CMD's for as long as CMD has its number.
            unsafe { libc::killpg(self.pid.as_raw(), signal) };
        }
    }

    fn reap(&mut self, flags: WaitPidFlag) -> anyhow::Result<Option<Ended>> {
        if self.ended.is_none() {
            self.ended = match waitid(Id::Pid(self.pid), flags) {
                Ok(WaitStatus::Exited(_, status)) => Some(Ended::Exited(status.to_le_bytes()[0])),
                Ok(WaitStatus::Signaled(_, signal, _)) => Some(Ended::Killed(signal as i32)),
                Ok(_) | Err(Errno::EINTR) => None,
                Err(error) => return Err(error).context("cannot wait for the command"),
            };
            if self.ended.is_some() {
                self.check_started()?;
            }
        }
        Ok(self.ended)
    }

    /// The child is gone, so the pipe holds what it wrote, or nothing, and reading it does not block.
    fn check_started(&mut self) -> Result<(), NotStarted> {
        let mut message = [0; child::FAILURE_LENGTH];
        match self.failure.read_exact(&mut message) {
            Ok(()) => Err(child::failure(message, &self.command)),
            Err(_) => Ok(()),
        }
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        if self.go.take().is_some() {
            self.wait().ok();
        }
    }
}

/// Whether `/proc` shows this PID namespace: in that of another one, processes have other numbers.
pub fn proc_is_ours() -> bool {
    let own = std::fs::read_link("/proc/self").ok();
    own.is_some_and(|own| own.to_str() == Some(&std::process::id().to_string()))
}

/// Linux 5.3 has it; older versions of containers' filters refuse what they do not know.
fn pidfd_open(pid: Pid) -> nix::Result<OwnedFd> {
    if filters::kills(filters::Call::ProcessDescriptor) {
        return Err(Errno::EPERM);
    }
    // SAFETY: the call takes two integers; what it returns is a descriptor that nobody else owns, closed at
    // exec by the kernel's own choice.
    unsafe {
        let descriptor = Errno::result(libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0))?;
        Ok(OwnedFd::from_raw_fd(
            i32::try_from(descriptor).map_err(|_| Errno::EBADF)?,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::{Command, Ended, NotStarted, Stage, Subject};
    use nix::sys::signal::Signal;
    use std::ffi::OsString;
    use std::os::fd::AsRawFd;

    fn command(words: &[&str]) -> Command {
        Command {
            argv: words.iter().map(OsString::from).collect(),
            user: None,
        }
    }

    fn started(words: &[&str]) -> Subject {
        let mut subject = Subject::prepare(&command(words)).unwrap();
        assert!(!subject.runs());
        subject.go();
        subject
    }

    fn run(words: &[&str]) -> anyhow::Result<Ended> {
        started(words).wait()
    }

    #[test]
    fn the_status_is_cmds() {
        assert_eq!(run(&["sh", "-c", "exit 77"]).unwrap(), Ended::Exited(77));
        let killed = run(&["sh", "-c", "kill -KILL $$"]).unwrap();
        assert_eq!(killed, Ended::Killed(Signal::SIGKILL as i32));
        assert_eq!(killed.status(), 137);
    }

    #[test]
    fn nothing_runs_before_it_is_let_go_and_nothing_after_it_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ran");
        let touch = ["touch", file.to_str().unwrap()];
        drop(Subject::prepare(&command(&touch)).unwrap());
        assert!(!file.exists());
        assert_eq!(run(&touch).unwrap(), Ended::Exited(0));
        assert!(file.exists());
    }

    #[test]
    fn an_exec_that_fails_says_why_and_how() {
        let directory = tempfile::tempdir().unwrap();
        let text = directory.path().join("text");
        std::fs::write(&text, "no program\n").unwrap();
        let text = text.to_str().unwrap().to_owned();
        let why = |words: &[&str]| run(words).unwrap_err().downcast::<NotStarted>().unwrap();
        assert_eq!(why(&["no-such-program-anywhere"]).exit_status(), 127);
        assert_eq!(why(&["/no/such/program"]).exit_status(), 127);
        assert_eq!(why(&[""]).exit_status(), 127);
        assert_eq!(why(&[&text]).exit_status(), 126);
        assert_eq!(why(&["/"]).exit_status(), 126);
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&text, std::fs::Permissions::from_mode(0o755)).unwrap();
        let error = why(&[&text]);
        assert_eq!((error.stage, error.exit_status()), (Stage::Exec, 126));
        assert!(error.to_string().contains("#!"), "{error}");
    }

    #[test]
    fn descriptors_of_holdup_do_not_reach_cmd() {
        let mut subject = Subject::prepare(&command(&["true"])).unwrap();
        let own = [
            subject.pidfd.as_ref().unwrap().as_raw_fd(),
            subject.failure.as_raw_fd(),
            subject.go.as_ref().unwrap().as_raw_fd(),
        ];
        for descriptor in own {
            // SAFETY: only asks.
            let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFD) };
            assert_ne!(flags & libc::FD_CLOEXEC, 0, "{descriptor} would reach CMD");
        }
        subject.go();
        subject.wait().unwrap();
    }

    #[test]
    fn a_signal_before_the_start_ends_it_without_a_start() {
        let mut running = started(&["true"]);
        assert!(running.runs());
        running.signal(Signal::SIGKILL as i32);
        // It may have been quicker; it must not be anything else.
        let ended = running.wait().unwrap();
        assert!([Ended::Exited(0), Ended::Killed(9)].contains(&ended), "{ended:?}");
        assert_eq!(running.try_wait().unwrap(), Some(ended));
        running.signal(Signal::SIGKILL as i32);
    }
}
