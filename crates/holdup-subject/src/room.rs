//! A room for CMD: a mount namespace and a PID namespace of its own, and where holdup is not root a user namespace around them.
//!
//! In: what is to be mounted in it. Out: descriptors of the namespaces, which a child enters before it becomes CMD. Nothing in the room
//! outlives it: its first process, the keeper, ends when holdup lets go of a pipe, when holdup dies (the pipe closes, and the kernel
//! kills the keeper too), and with a PID namespace's first process the kernel kills all others in it; with the last of them its mounts and
//! the memory behind them are gone. No file is written outside, no mount is seen outside.
//!
//! A child of holdup's unshares, for that changes its caller for good; it makes the keeper a child of holdup's (CLONE_PARENT) and is gone.
//! Between fork and exec only system calls are made: everything is prepared before.

use super::mounts::{Mount, Mounter};
use anyhow::Context;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, getegid, geteuid, pipe2};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

/// A room, until it is dropped.
#[derive(Debug)]
pub struct Room {
    /// Closed when it is over.
    stay: Option<OwnedFd>,
    keeper: Pid,
    /// User namespace where there is one, mount, PID: in the order in which they are to be entered.
    namespaces: Vec<File>,
    /// What is mounted over the directory of `--memory`, as those in the room see it.
    memory: Option<File>,
}

/// What went wrong while a room was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Step {
    /// A user namespace.
    User = 1,
    /// Mount and PID namespace.
    Namespaces = 2,
    /// The keeper.
    Keeper = 3,
    /// `/proc` of the PID namespace.
    Proc = 4,
    /// What is to be mounted.
    Mounts = 5,
    /// The directory of `--memory` is not the one that was looked at.
    Exchanged = 6,
}

/// A room could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRoom {
    /// What failed.
    pub step: Step,
    /// Why.
    pub errno: Errno,
}

impl std::fmt::Display for NoRoom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match self.step {
            Step::Exchanged => {
                return f.write_str(
                    "the directory of --memory was moved or replaced, so nothing was run; name a directory that no other user can move",
                );
            }
            Step::User => {
                "a user namespace, which is needed without root (see sysctl user.max_user_namespaces, \
                 kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns; or run holdup as root)"
            }
            Step::Namespaces => {
                "a mount and a PID namespace (this needs CAP_SYS_ADMIN, which containers often lack)"
            }
            Step::Keeper => "a process in a new PID namespace",
            Step::Proc => {
                "/proc in a new PID namespace (containers that hide parts of /proc do not allow it)"
            }
            Step::Mounts => "the mounts that replace files for CMD",
        };
        write!(
            f,
            "CMD cannot be isolated from the rest of this machine: the kernel refuses {what}: {}; nothing was run. `holdup run --predict`, \
             as root, needs no isolation",
            self.errno.desc()
        )
    }
}

impl std::error::Error for NoRoom {}

/// Exit status of a keeper that never kept anything; nobody looks at it.
const FAILED: i32 = 125;

/// Descriptors of the keeper's two pipes: it has no stdin and no stdout.
const STAY: i32 = 0;
const READY_PIPE: i32 = 1;
/// What it keeps for holdup: what is mounted over the directory of `--memory`.
pub(super) const MEMORY: i32 = 10;

/// What the keeper tells when all is there.
const READY: [i32; 2] = [0, 0];

/// Lines for `/proc/self/{setgroups,uid_map,gid_map}`: everyone stays who he is.
struct Maps {
    files: [(CString, Vec<u8>); 3],
}

impl Maps {
    fn of_self() -> Maps {
        let (uid, gid) = (geteuid(), getegid());
        let path = |name: &str| CString::new(format!("/proc/self/{name}")).expect("no NUL is in it");
        Maps {
            files: [
                (path("setgroups"), b"deny".to_vec()),
                (path("uid_map"), format!("{uid} {uid} 1").into_bytes()),
                (path("gid_map"), format!("{gid} {gid} 1").into_bytes()),
            ],
        }
    }

    /// Async-signal-safe.
    fn write(&self) -> bool {
        self.files.iter().all(|(path, line)| {
            // SAFETY: a NUL-terminated path, and a buffer with its length.
            unsafe {
                let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                let written = libc::write(file, line.as_ptr().cast(), line.len());
                libc::close(file);
                file >= 0 && usize::try_from(written) == Ok(line.len())
            }
        })
    }
}

impl Room {
    /// Makes a room with these mounts.
    ///
    /// # Errors
    /// [`NoRoom`] when the kernel refuses something, or the system a process or a pipe.
    pub fn make(mounts: &[Mount]) -> anyhow::Result<Room> {
        let maps = (!geteuid().is_root()).then(Maps::of_self);
        let mounter = Mounter::new(mounts)?;
        let (stay_read, stay_write) = pipe2(OFlag::O_CLOEXEC).context("cannot make a pipe")?;
        let (told_read, told_write) = pipe2(OFlag::O_CLOEXEC).context("cannot make a pipe")?;
        // SAFETY: the child makes system calls only and does not return.
        let maker = match unsafe { libc::fork() } {
            -1 => return Err(Errno::last()).context("cannot make a process"),
            0 => {
                // SAFETY: as above. With a copy of its own the keeper would not see holdup let go.
                unsafe { libc::close(stay_write.as_raw_fd()) };
                unshare_and_keep(
                    maps.as_ref(),
                    &mounter,
                    stay_read.as_raw_fd(),
                    told_write.as_raw_fd(),
                )
            }
            pid => Pid::from_raw(pid),
        };
        drop(told_write);
        drop(stay_read);
        let mut file = File::from(told_read);
        // The maker tells the keeper's process id or its own trouble, the keeper whether it is ready: in any order.
        let words = [read_word(&mut file), read_word(&mut file)];
        waitpid(maker, None).ok();
        let word = |which: fn(&[i32; 2]) -> bool| words.iter().flatten().copied().find(which);
        let Some([_, keeper]) = word(|[step, pid]| *step == 0 && *pid != 0) else {
            return Err(no_room(word(|[step, _]| *step != 0)).into());
        };
        let keeper = Pid::from_raw(keeper);
        let mut room = Room {
            stay: Some(stay_write),
            keeper,
            namespaces: Vec::new(),
            memory: None,
        };
        if word(|file| *file == READY).is_none() {
            return Err(no_room(word(|[step, _]| *step != 0)).into());
        }
        let names = if maps.is_some() {
            &["user", "mnt", "pid"][..]
        } else {
            &["mnt", "pid"]
        };
        for name in names {
            let path = format!("/proc/{keeper}/ns/{name}");
            let namespace = File::open(&path).context("cannot open a namespace of its own")?;
            room.namespaces.push(namespace);
        }
        if mounts.iter().any(|mount| matches!(mount, Mount::Memory { .. })) {
            // The keeper is our child and not waited for, so the number is its own; what it holds is what it has mounted.
            let mounted = OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_PATH)
                .open(format!("/proc/{keeper}/fd/{MEMORY}"));
            room.memory = Some(mounted.context("cannot open what is in memory")?);
        }
        Ok(room)
    }

    /// The namespaces, in the order in which they are to be entered.
    pub fn namespaces(&self) -> impl Iterator<Item = i32> {
        self.namespaces.iter().map(AsRawFd::as_raw_fd)
    }

    /// The process that is given what loses its parent there.
    pub fn keeper(&self) -> u32 {
        self.keeper.as_raw().cast_unsigned()
    }

    /// What is mounted over the directory of `--memory`: to be reached below this descriptor, and never by a path, which another user may
    /// have made to lead out of the room.
    pub fn memory(&self) -> Option<BorrowedFd<'_>> {
        self.memory.as_ref().map(AsFd::as_fd)
    }
}

impl Drop for Room {
    /// Returns when all that ran in it is gone. Children of holdup's own in it must have been waited for: the kernel waits for that.
    fn drop(&mut self) {
        drop(self.stay.take());
        waitpid(self.keeper, None).ok();
    }
}

fn no_room(word: Option<[i32; 2]>) -> NoRoom {
    let [step, errno] = word.unwrap_or([Step::Keeper as i32, libc::ECHILD]);
    let steps = [
        Step::User,
        Step::Namespaces,
        Step::Keeper,
        Step::Proc,
        Step::Exchanged,
    ];
    let step = steps
        .into_iter()
        .find(|known| *known as i32 == step)
        .unwrap_or(Step::Mounts);
    NoRoom {
        step,
        errno: Errno::from_raw(errno),
    }
}

fn read_word(from: &mut File) -> Option<[i32; 2]> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes).ok()?;
    let [a, b, c, d, e, f, g, h] = bytes;
    Some([i32::from_ne_bytes([a, b, c, d]), i32::from_ne_bytes([e, f, g, h])])
}

/// The maker. Async-signal-safe.
fn unshare_and_keep(maps: Option<&Maps>, mounter: &Mounter, stay: i32, given: i32) -> ! {
    // SAFETY: plain system calls with integers; the child that is made runs `keep`, which is of the same kind.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if let Some(maps) = maps
            && (libc::unshare(libc::CLONE_NEWUSER) != 0 || !maps.write())
        {
            give_up(given, Step::User);
        }
        if libc::unshare(libc::CLONE_NEWNS | libc::CLONE_NEWPID) != 0 {
            give_up(given, Step::Namespaces);
        }
        match fork_sibling() {
            -1 => give_up(given, Step::Keeper),
            0 => keep(mounter, stay, given),
            pid => {
                tell(given, [0, pid]);
                libc::_exit(0)
            }
        }
    }
}

/// As fork(2), but the child is one of the caller's parent, which can wait for it. Async-signal-safe; so must be what the child does.
pub fn fork_sibling() -> i32 {
    let flags = libc::CLONE_PARENT | libc::SIGCHLD;
    // SAFETY: without a stack of its own the child goes on with a copy of the caller's, as after fork.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    i32::try_from(pid).unwrap_or(-1)
}

/// The keeper: the first process of the PID namespace. Async-signal-safe.
fn keep(mounter: &Mounter, stay: i32, given: i32) -> ! {
    // SAFETY: plain system calls, strings that are NUL-terminated, and buffers of the length that is said.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // A terminal's signals are for holdup, which ends this process in order.
        libc::setsid();
        // What dies without a parent left is reaped by nobody else; ignored, children leave nothing to reap.
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        // Nothing that is open in holdup stays open here, or the other end of a pipe would not see that it was closed.
        libc::dup2(stay, STAY);
        libc::dup2(given, READY_PIPE);
        close_from(READY_PIPE + 1);
        if let Err(step) = mounter.mount() {
            give_up(READY_PIPE, step);
        }
        tell(READY_PIPE, READY);
        close_range(READY_PIPE, MEMORY - 1);
        close_from(MEMORY + 1);
        let mut byte = 0_u8;
        while libc::read(STAY, (&raw mut byte).cast(), 1) == -1 && errno() == libc::EINTR {}
        libc::_exit(0)
    }
}

/// Closes this descriptor and all above it.
fn close_from(first: i32) {
    close_range(first, i32::MAX);
}

/// Closes these descriptors.
fn close_range(first: i32, last: i32) {
    // SAFETY: integers; the keeper uses none of those that are closed.
    unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first.cast_unsigned(),
            last.cast_unsigned(),
            0,
        )
    };
}

fn tell(given: i32, word: [i32; 2]) {
    // SAFETY: the bytes of a local array; less than a pipe holds, so all or nothing.
    unsafe { libc::write(given, word.as_ptr().cast(), size_of_val(&word)) };
}

fn give_up(given: i32, step: Step) -> ! {
    tell(given, [step as i32, errno()]);
    // SAFETY: ends the process at once, without its parent's exit handlers.
    unsafe { libc::_exit(FAILED) }
}

fn errno() -> i32 {
    // SAFETY: the location is valid for as long as the thread lives.
    unsafe { *libc::__errno_location() }
}
