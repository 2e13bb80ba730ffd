//! The child between fork and exec: everything is prepared before the fork, and only async-signal-safe calls
//! are made after it.
//!
//! In: the command. Out: CMD, or stage and errno through the failure pipe. The search through PATH is
//! execvp(3)'s but for one thing: a file that is no program is not handed to a shell, it is an error.

use super::{Command, NotStarted, Stage, User, apart};
use crate::filter;
use crate::inherited::Inherited;
use anyhow::Context;
use libc::sock_filter;
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::RawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Stage, then errno, as native integers.
pub(super) const FAILURE_LENGTH: usize = 8;
/// Where programs are looked for without PATH, as the C library does.
const DEFAULT_PATH: &str = "/bin:/usr/bin";
/// Never seen: holdup is gone, or reads the pipe.
const STATUS_WITHOUT_START: i32 = 125;

/// All that the child needs, in the shape in which the system calls want it.
pub(super) struct Image {
    /// Paths to try, in order.
    candidates: Vec<CString>,
    argv: Strings,
    environment: Strings,
    user: Option<User>,
    /// What keeps another user from holdup's terminal; none where CMD is no other.
    filter: Vec<sock_filter>,
    inherited: Inherited,
}

/// A NULL-terminated array of C strings.
struct Strings {
    _owned: Vec<CString>,
    pointers: Vec<*const libc::c_char>,
}

impl Strings {
    fn new(owned: Vec<CString>) -> Strings {
        let pointers = owned
            .iter()
            .map(|text| text.as_ptr())
            .chain([std::ptr::null()])
            .collect();
        Strings {
            _owned: owned,
            pointers,
        }
    }
}

impl Image {
    pub(super) fn new(command: &Command, inherited: Inherited) -> anyhow::Result<Image> {
        let program = command.argv.first().context("there is no command to run")?;
        let environment = environment(command.user.as_ref());
        // CMD's own: what another user would find.
        let path = environment.iter().find(|(name, _)| name == "PATH");
        let path = path.map_or_else(|| DEFAULT_PATH.into(), |(_, path)| path.clone());
        let candidates = candidates(program, &path)
            .into_iter()
            .map(c_string)
            .collect::<Result<_, _>>()?;
        let argv = command
            .argv
            .iter()
            .cloned()
            .map(c_string)
            .collect::<Result<_, _>>()?;
        let environment = environment
            .into_iter()
            .map(|(name, value)| OsString::from_vec([name.as_bytes(), b"=", value.as_bytes()].concat()))
            .map(c_string)
            .collect::<Result<_, _>>()?;
        Ok(Image {
            candidates,
            argv: Strings::new(argv),
            environment: Strings::new(environment),
            filter: match &command.user {
                Some(user) if user.is_other() => apart::no_terminal_input(),
                _ => vec![],
            },
            user: command.user.clone(),
            inherited,
        })
    }

    /// Waits for the go-ahead and becomes CMD. Runs in the child; allocates nothing.
    pub(super) fn become_cmd(&self, go: RawFd, failure: RawFd) -> ! {
        self.become_cmd_after(go, failure, || true)
    }

    /// The same, with something to be done before it becomes another user, while it still may; if that fails errno says why.
    pub(super) fn become_cmd_after(&self, go: RawFd, failure: RawFd, first: impl FnOnce() -> bool) -> ! {
        if !told_to_go(go) {
            // SAFETY: ends the child at once, without the parent's exit handlers.
            unsafe { libc::_exit(STATUS_WITHOUT_START) };
        }
        if !first() {
            give_up(failure, Stage::Filter, errno());
        }
        // While it still may.
        if !filter::put_on(&self.filter) {
            // Who may not add a filter is not root, and may not become another user either.
            let stage = if errno() == libc::EACCES {
                Stage::User
            } else {
                Stage::Filter
            };
            give_up(failure, stage, errno());
        }
        if let Some(user) = &self.user {
            if !user.assume() {
                give_up(failure, Stage::User, errno());
            }
            if !self.filter.is_empty() {
                apart::leave_keyring();
                apart::close_at_exec(user.handed_on());
            }
        }
        self.inherited.restore();
        let errno = self.execute();
        give_up(failure, Stage::Exec, errno)
    }

    /// Returns the errno that tells most: a program that may not be executed rather than "not found" further
    /// down the path.
    fn execute(&self) -> i32 {
        let mut denied = false;
        for candidate in &self.candidates {
            // SAFETY: all three point to NUL-terminated strings or NULL-terminated arrays of such, which
            // `self` owns.
            unsafe {
                libc::execve(
                    candidate.as_ptr(),
                    self.argv.pointers.as_ptr(),
                    self.environment.pointers.as_ptr(),
                );
            }
            match errno() {
                libc::EACCES => denied = true,
                libc::ENOENT | libc::ENOTDIR | libc::ENODEV | libc::ESTALE | libc::ETIMEDOUT
                    if self.candidates.len() > 1 => {}
                errno => return errno,
            }
        }
        if denied { libc::EACCES } else { libc::ENOENT }
    }
}

/// What the child wrote, as an error.
pub(super) fn failure(message: [u8; FAILURE_LENGTH], command: &Command) -> NotStarted {
    let [a, b, c, d, e, f, g, h] = message;
    let number = i32::from_ne_bytes([a, b, c, d]);
    let stage = [Stage::User, Stage::Enter, Stage::Filter]
        .into_iter()
        .find(|stage| *stage as i32 == number)
        .unwrap_or(Stage::Exec);
    NotStarted::new(stage, i32::from_ne_bytes([e, f, g, h]), command)
}

fn told_to_go(go: RawFd) -> bool {
    let mut byte = 0_u8;
    loop {
        // SAFETY: reads one byte into a byte.
        match unsafe { libc::read(go, (&raw mut byte).cast(), 1) } {
            1 => return true,
            -1 if errno() == libc::EINTR => {}
            _ => return false,
        }
    }
}

pub(super) fn give_up(failure: RawFd, stage: Stage, errno: i32) -> ! {
    let message = [stage as i32, errno];
    // SAFETY: writes the bytes of a local array; less than a pipe holds, so all or nothing.
    unsafe {
        libc::write(failure, message.as_ptr().cast(), FAILURE_LENGTH);
        libc::_exit(STATUS_WITHOUT_START)
    }
}

pub(super) fn errno() -> i32 {
    // SAFETY: the location is valid for as long as the thread lives.
    unsafe { *libc::__errno_location() }
}

fn candidates(program: &OsStr, path: &OsStr) -> Vec<OsString> {
    if program.is_empty() || program.as_bytes().contains(&b'/') {
        return vec![program.to_owned()];
    }
    path.as_bytes()
        .split(|byte| *byte == b':')
        .map(|directory| {
            // An empty entry is the working directory.
            let directory = if directory.is_empty() { b"." } else { directory };
            OsString::from_vec([directory, b"/", program.as_bytes()].concat())
        })
        .collect()
}

/// holdup's own environment, or that of another user.
fn environment(user: Option<&User>) -> Vec<(OsString, OsString)> {
    user.map_or_else(|| std::env::vars_os().collect(), User::environment)
}

fn c_string(text: OsString) -> anyhow::Result<CString> {
    CString::new(text.into_vec()).context("the command contains a NUL byte, which no program can be given")
}

#[cfg(test)]
mod tests {
    use super::candidates;
    use std::ffi::OsStr;

    #[test]
    fn path_is_searched_only_for_bare_names() {
        let of = |program: &str| candidates(OsStr::new(program), OsStr::new("/a::/b"));
        assert_eq!(of("x"), ["/a/x", "./x", "/b/x"]);
        assert_eq!(of("d/x"), ["d/x"]);
        assert_eq!(of(""), [""]);
    }
}
