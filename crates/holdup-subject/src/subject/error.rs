//! Why CMD did not start, in one sentence each.

use super::Command;
use nix::errno::Errno;
use std::path::Path;

/// What the child was doing when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Becoming the other user.
    User,
    /// Executing the program.
    Exec,
    /// Getting to where it is to run.
    Enter,
    /// Putting the filter on itself.
    Filter,
}

/// The child never became CMD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotStarted {
    /// What failed.
    pub stage: Stage,
    errno: Errno,
    program: std::ffi::OsString,
    user: Option<String>,
}

/// Exit statuses as env(1) and timeout(1) have them.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;
/// holdup itself failed.
pub const OWN_FAILURE: u8 = 125;

impl NotStarted {
    pub(super) fn new(stage: Stage, errno: i32, command: &Command) -> NotStarted {
        NotStarted {
            stage,
            errno: Errno::from_raw(errno),
            program: command.argv.first().cloned().unwrap_or_default(),
            user: command.user.as_ref().map(|user| user.name.clone()),
        }
    }

    /// A program that another child than a [`super::Subject`] could not become.
    pub fn of_program(errno: i32, program: std::ffi::OsString) -> NotStarted {
        NotStarted {
            stage: Stage::Exec,
            errno: Errno::from_raw(errno),
            program,
            user: None,
        }
    }

    /// 127 when there is no such program, 126 when there is and it can't be executed, 125 when it is not CMD's
    /// fault.
    pub fn exit_status(&self) -> u8 {
        match (self.stage, self.errno) {
            (Stage::User | Stage::Enter | Stage::Filter, _) => OWN_FAILURE,
            (Stage::Exec, Errno::ENOENT) => NOT_FOUND,
            (Stage::Exec, _) => NOT_EXECUTABLE,
        }
    }
}

impl std::fmt::Display for NotStarted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // `{:?}` makes hostile names printable.
        let program = &self.program;
        if self.stage == Stage::Enter && self.errno == Errno::ESTALE {
            return write!(
                f,
                "{program:?} is not started: the working directory was exchanged for another one meanwhile; run holdup from a directory \
                 that only you can move"
            );
        }
        if self.stage == Stage::Enter {
            let why = self.errno.desc();
            return write!(f, "{program:?} can't be started in namespaces of its own: {why}");
        }
        if self.stage == Stage::Filter {
            let why = self.errno.desc();
            return write!(
                f,
                "the kernel takes no filter on system calls (CONFIG_SECCOMP_FILTER, and a right to add one): {why}"
            );
        }
        if self.stage == Stage::User {
            let user = self.user.as_deref().unwrap_or_default();
            return write!(
                f,
                "cannot become user {user:?}: {}; run holdup as root",
                self.errno.desc()
            );
        }
        match self.errno {
            Errno::ENOENT if has_slash(program) && Path::new(program).exists() => {
                write!(
                    f,
                    "{program:?} is there, but the interpreter or loader that it asks for is not"
                )
            }
            Errno::ENOENT if has_slash(program) => write!(f, "there is no program {program:?}"),
            Errno::ENOENT => write!(f, "there is no program {program:?} in any directory of PATH"),
            Errno::EACCES => write!(
                f,
                "{program:?} may not be executed: it is no file with execute permission"
            ),
            Errno::ENOEXEC => {
                write!(
                    f,
                    "{program:?} is no program of this machine; a script needs a first line such as #!/bin/sh"
                )
            }
            errno => write!(f, "cannot execute {program:?}: {}", errno.desc()),
        }
    }
}

impl std::error::Error for NotStarted {}

fn has_slash(program: &std::ffi::OsStr) -> bool {
    program.as_encoded_bytes().contains(&b'/')
}
