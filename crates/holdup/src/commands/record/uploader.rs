//! `--to URL`: the process that brings segments to a store.
//!
//! The problem: a network may stand still for hours, and what talks to it is large; a recorder must not wait, grow or end for it. The choice:
//! a program of its own, which reads finished segments from the directory and says in a file there which the store has. It has no
//! capabilities, and a pipe that it is never written to: when that closes, the recorder has ended. In: the directory and the URL. Out: a
//! process that is started again when it ends. The recorder waits for it only at its own end, and not for long.

use super::super::fleet;
use crate::output::say;
use crate::usage::Usage;
use holdup_detached::Capabilities;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Before it is started again: at first, and at the most.
const FIRST_REST: Duration = Duration::from_secs(5);
const MAX_REST: Duration = Duration::from_secs(300);

/// How long the recorder waits at its end for the last segments to be uploaded.
const LAST: Duration = Duration::from_secs(8);

/// Between two looks at whether it has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Niceness: the programs of the machine come first.
const NICE: i32 = 10;

/// The process, and how it does.
#[derive(Debug)]
pub(super) struct Uploader {
    program: PathBuf,
    directory: PathBuf,
    url: String,
    child: Option<Child>,
    /// When it may be started again.
    again: Instant,
    rest: Duration,
}

impl Uploader {
    /// Nothing is started yet.
    ///
    /// # Errors
    /// When the program is not there, or the URL is none.
    pub(super) fn new(directory: &Path, url: &str) -> anyhow::Result<Uploader> {
        if !url.starts_with("s3://") && !url.starts_with("file:///") {
            anyhow::bail!(Usage::Wrong(format!(
                "--to needs s3://BUCKET/PREFIX or file:///DIRECTORY, not {url}"
            )));
        }
        Ok(Uploader {
            program: fleet::program()?,
            directory: directory.to_owned(),
            url: url.to_owned(),
            child: None,
            again: Instant::now(),
            rest: FIRST_REST,
        })
    }

    /// Its process id, while it runs.
    pub(super) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Starts it where it does not run. Never waits.
    pub(super) fn tend(&mut self) {
        if let Some(child) = &mut self.child {
            let Ok(Some(status)) = child.try_wait() else {
                return;
            };
            say(&format!(
                "the process that uploads recordings ended ({status}); recording continues, and it is started again in {}",
                holdup_times::lengths::said(self.rest)
            ));
            self.child = None;
            self.again = Instant::now() + self.rest;
            self.rest = (self.rest * 2).min(MAX_REST);
        }
        if Instant::now() < self.again {
            return;
        }
        match self.command().spawn() {
            Ok(child) => self.child = Some(child),
            Err(error) => {
                say(&format!(
                    "cannot start {:?}: {error}; recording continues",
                    self.program
                ));
                self.again = Instant::now() + self.rest;
                self.rest = (self.rest * 2).min(MAX_REST);
            }
        }
    }

    fn command(&self) -> Command {
        let mut command = fleet::command(&self.program);
        command
            .arg("upload")
            .arg("--dir")
            .arg(&self.directory)
            .arg("--to")
            .arg(&self.url)
            .arg("--follow")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            // Ctrl-C is for the recorder, which then closes the pipe.
            .process_group(0);
        // SAFETY: this process has one thread only, so its copy may do whatever a program does.
        unsafe { command.pre_exec(give_up) };
        command
    }

    /// Tells it that the recorder ends, and waits for a moment while it uploads the last segments. It ends by itself, later if it must.
    pub(super) fn end(&mut self) {
        let Some(child) = &mut self.child else {
            return;
        };
        drop(child.stdin.take());
        let until = Instant::now() + LAST;
        while Instant::now() < until {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        say(
            "the last segments are not uploaded yet; what is missing stays on the disk for the next `holdup record --to`",
        );
    }
}

/// All rights that it does not need, which is all.
fn give_up() -> std::io::Result<()> {
    Capabilities::NONE.bound();
    Capabilities::NONE.keep_only()?;
    nix::sys::prctl::set_no_new_privs()?;
    // SAFETY: changes the niceness of this process alone.
    unsafe { libc::nice(NICE) };
    Ok(())
}
