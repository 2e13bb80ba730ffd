//! Where CMD runs when that is not where holdup is: in namespaces, with other standard descriptors, under a filter on system calls.
//!
//! In: a [`Setting`]. Out: a child of holdup's that is there and waits to become CMD. A process can't move itself into a PID namespace,
//! its children are born there; so a child goes first, has a sibling of its own born there (CLONE_PARENT), says its number and is gone.

use super::child::{FAILURE_LENGTH, Image, errno, failure, give_up};
use super::{Command, Stage};
use crate::filter;
use crate::room::{Room, fork_sibling};
use anyhow::Context;
use libc::sock_filter;
use nix::sys::stat::fstat;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

/// Where and how CMD is to run.
#[derive(Debug)]
pub struct Setting<'a> {
    /// Namespaces, in the order in which they are entered.
    pub namespaces: Vec<RawFd>,
    /// The working directory there.
    pub directory: Entered,
    /// What becomes stdin, stdout and stderr.
    pub stdio: [RawFd; 3],
    /// A program of classic BPF; none where it is empty.
    pub filter: &'a [sock_filter],
    /// What holdup was before it gave itself precedence.
    pub standing: Standing,
}

/// holdup's working directory: its path, and which directory it is.
#[derive(Debug, Clone)]
pub struct Here {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// The working directory as it is entered in namespaces: by its path, because what is mounted over it counts there. A path can lead
/// elsewhere by then, so it must lead to the same directory as outside, or into what the room has mounted.
#[derive(Debug)]
pub struct Entered {
    path: CString,
    device: u64,
    inode: u64,
    /// The device of what the room has mounted over a directory.
    memory: Option<u64>,
}

impl Here {
    /// holdup's own, now.
    ///
    /// # Errors
    /// When it has none.
    pub fn of_self() -> anyhow::Result<Here> {
        let none = "there is no working directory";
        // A directory may be entered that may not be read.
        let as_path = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(".");
        let directory = as_path.context(none)?;
        Here::new(std::env::current_dir().context(none)?, &directory).context(none)
    }

    /// This directory, which had this path.
    ///
    /// # Errors
    /// When it can't be looked at.
    pub fn new(path: PathBuf, directory: &File) -> std::io::Result<Here> {
        let about = directory.metadata()?;
        Ok(Here {
            path,
            device: about.dev(),
            inode: about.ino(),
        })
    }

    /// How it is entered in a room.
    ///
    /// # Errors
    /// When its path is none for the kernel, or the room is gone.
    pub fn in_room(&self, room: &Room) -> anyhow::Result<Entered> {
        let path = CString::new(self.path.as_os_str().as_bytes())
            .context("the working directory's path contains a NUL byte")?;
        let memory = room.memory().map(fstat).transpose();
        let memory = memory.context("cannot look at what is in memory")?;
        Ok(Entered {
            path,
            device: self.device,
            inode: self.inode,
            memory: memory.map(|about| about.st_dev),
        })
    }
}

impl Entered {
    /// Goes there; with errno set where that fails: ESTALE where it is another directory. Async-signal-safe.
    fn enter(&self) -> bool {
        // SAFETY: NUL-terminated paths, and a struct that may be all zero and is filled in.
        unsafe {
            let mut about: libc::stat = std::mem::zeroed();
            if libc::chdir(self.path.as_ptr()) != 0 || libc::stat(c".".as_ptr(), &raw mut about) != 0 {
                return false;
            }
            let same = (about.st_dev, about.st_ino) == (self.device, self.inode);
            if !same && self.memory != Some(about.st_dev) {
                *libc::__errno_location() = libc::ESTALE;
                return false;
            }
            true
        }
    }
}

/// Precedence among threads: CMD must have the one that it would have had without holdup, in the last run as in the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    nice: i32,
    policy: i32,
    priority: i32,
}

impl Standing {
    /// holdup's own, now.
    pub fn of_self() -> Standing {
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
            if !self.directory.enter() {
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
        // SAFETY: plain system calls with integers.
        unsafe {
            libc::setsid();
            for (number, descriptor) in (0..).zip(self.stdio) {
                if libc::dup2(descriptor, number) != number {
                    return false;
                }
            }
            filter::put_on(self.filter)
        }
    }
}

/// The sibling's number, when the one that went first is gone.
pub(super) fn arrived(first: Pid, file: &mut File, command: &Command) -> anyhow::Result<Pid> {
    let mut message = [0; FAILURE_LENGTH];
    let read = file.read_exact(&mut message);
    waitpid(first, None).ok();
    read.context("the process that was to start the command is gone")?;
    let [a, b, c, d, e, f, g, h] = message;
    if i32::from_ne_bytes([a, b, c, d]) == ARRIVED {
        return Ok(Pid::from_raw(i32::from_ne_bytes([e, f, g, h])));
    }
    Err(failure(message, command).into())
}
