//! The two files by which a JVM is asked: the one that makes it listen, and its socket. Both are in the `/tmp` that the process has.
//!
//! Everything is looked up below a descriptor of the process's root, without following links; what is found counts only if it is the
//! JVM's user's. The root is opened by whoever may look at the process, and all else is done with the ids of the JVM's user ([`super::ids`]).

use super::Refused;
use super::status::Status;
use holdup_proc::Root;
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::socket::sockopt::SendTimeout;
use nix::sys::socket::{self, AddressFamily, SockFlag, SockType, UnixAddr};
use nix::sys::stat::Mode;
use nix::sys::time::TimeVal;
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;

/// The `/tmp` of a process.
#[derive(Debug)]
pub(super) struct Tmp {
    folder: File,
    status: Status,
}

/// The file that makes a JVM listen; removed when this is dropped.
#[derive(Debug)]
pub(super) struct Trigger<'a> {
    tmp: &'a Tmp,
    name: String,
}

impl Drop for Trigger<'_> {
    fn drop(&mut self) {
        // The JVM removes it, too.
        let _ = unlinkat(&self.tmp.folder, self.name.as_str(), UnlinkatFlags::NoRemoveDir);
    }
}

/// The root of a process: a place, of which nothing is read.
pub(super) fn open_root(root: &Root, pid: u32) -> Result<File, String> {
    let path = root.proc.join(pid.to_string()).join("root");
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let top = nix::fcntl::open(&path, flags, Mode::empty());
    top.map(File::from).map_err(|error| format!("its root: {error}"))
}

/// What the names of such a socket begin with, and what they end with: it is bound before it gets its name.
const SOCKET: &str = ".java_pid";
const UNNAMED: &str = ".tmp";

/// Whether a listening socket's path is where a Java virtual machine answers tools.
pub(super) fn is_socket(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let Some(pid) = name.strip_prefix(SOCKET) else {
        return false;
    };
    let pid = pid.strip_suffix(UNNAMED).unwrap_or(pid);
    !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit())
}

impl Tmp {
    /// Opens it, below the root of the process.
    pub(super) fn open(top: &File, status: &Status) -> Result<Tmp, String> {
        let folder =
            step(top, "tmp", OFlag::O_PATH | OFlag::O_DIRECTORY, 0).map_err(|error| error.to_string())?;
        Ok(Tmp {
            folder,
            status: *status,
        })
    }

    fn socket_name(&self) -> String {
        format!("{SOCKET}{}", self.status.inside)
    }

    /// What is where the socket should be: nothing yet, or a socket of the JVM's user. Anything else is somebody's trap.
    fn socket(&self) -> Result<Option<File>, String> {
        let name = self.socket_name();
        let found = match step(&self.folder, &name, OFlag::O_PATH | OFlag::O_NOFOLLOW, 0) {
            Ok(found) => found,
            Err(Errno::ENOENT) => return Ok(None),
            Err(error) => return Err(format!("{name}: {error}")),
        };
        let metadata = found.metadata().map_err(|error| error.to_string())?;
        if !metadata.file_type().is_socket() {
            return Err(format!("{name} is no socket"));
        }
        if metadata.uid() != self.status.user {
            return Err(format!("{name} belongs to user {}", metadata.uid()));
        }
        Ok(Some(found))
    }

    /// Whether the JVM listens.
    pub(super) fn has_socket(&self) -> Result<bool, String> {
        self.socket().map(|socket| socket.is_some())
    }

    /// Connects to it: to what was looked at, and not to what may have come in its place. Who listens and takes in nobody is waited
    /// for that long.
    pub(super) fn connect(&self, patience: TimeVal) -> Result<UnixStream, Refused> {
        let gone = || Refused::NotItsSocket("it is gone".to_owned());
        let there = self.socket().map_err(Refused::NotItsSocket)?.ok_or_else(gone)?;
        let failed = |error: Errno| match error {
            Errno::EAGAIN => Refused::NoAnswer,
            other => Refused::NotItsSocket(other.to_string()),
        };
        let flags = SockFlag::SOCK_CLOEXEC;
        let own = socket::socket(AddressFamily::Unix, SockType::Stream, flags, None).map_err(failed)?;
        socket::setsockopt(&own, SendTimeout, &patience).map_err(failed)?;
        let path = format!("/proc/self/fd/{}", there.as_raw_fd());
        let address = UnixAddr::new(path.as_str()).map_err(failed)?;
        socket::connect(own.as_raw_fd(), &address).map_err(failed)?;
        Ok(UnixStream::from(own))
    }

    /// Makes the file that has the JVM listen when it gets the signal. It is its user's, or the JVM takes no notice. One that is there
    /// already was left by somebody who was killed while he asked: it serves as well, and is removed as well.
    pub(super) fn trigger(&self) -> Result<Trigger<'_>, String> {
        let name = format!(".attach_pid{}", self.status.inside);
        let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_NOFOLLOW;
        let made = match step(&self.folder, &name, flags, 0o600) {
            Err(Errno::EEXIST) => step(&self.folder, &name, OFlag::O_PATH | OFlag::O_NOFOLLOW, 0),
            made => made,
        };
        let metadata = made
            .map_err(std::io::Error::from)
            .and_then(|file| file.metadata())
            .map_err(|error| format!("{name}: {error}"))?;
        match metadata.is_file() && metadata.uid() == self.status.user {
            true => Ok(Trigger { tmp: self, name }),
            false => Err(format!("{name} is not a file of its user")),
        }
    }
}

fn step(folder: &File, name: &str, flags: OFlag, mode: u32) -> Result<File, Errno> {
    let how = OpenHow::new()
        .flags(flags | OFlag::O_CLOEXEC)
        .mode(Mode::from_bits_truncate(mode))
        .resolve(
            ResolveFlag::RESOLVE_IN_ROOT
                | ResolveFlag::RESOLVE_NO_SYMLINKS
                | ResolveFlag::RESOLVE_NO_MAGICLINKS,
        );
    openat2(folder.as_fd(), name, how).map(File::from)
}
