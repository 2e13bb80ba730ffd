//! Where a report goes: a new file, or something that already takes text.
//!
//! In: a path. Out: what to write to. Besides regular files these are written to: `/dev/stdout`, `/dev/stderr` and descriptors by number
//! (what a shell puts in place of `>(command)`), `/dev/null`, terminals, and a FIFO of the caller's own that a process reads.

use crate::Refused;
use crate::new_file::NewFile;
use crate::reach::{Final, Reached, kind, reach};
use crate::trust::trusted;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, major, minor};
use std::fs::File;
use std::os::fd::{BorrowedFd, RawFd};
use std::path::Path;

/// Where descriptors have names.
const DESCRIPTORS: [&str; 2] = ["/dev/fd/", "/proc/self/fd/"];
const STANDARD: [(&str, RawFd); 2] = [("/dev/stdout", 1), ("/dev/stderr", 2)];

/// Numbers of devices, as Documentation/admin-guide/devices.txt of the kernel lists them.
const NULL: (u64, u64) = (1, 3);
const VIRTUAL_CONSOLES: u64 = 4;
const TTY: (u64, u64) = (5, 0);
const PSEUDO_TERMINALS: std::ops::RangeInclusive<u64> = 136..=143;

/// What to write to.
#[derive(Debug)]
pub enum Destination {
    /// A file that gets its name when it is complete.
    New(NewFile),
    /// A stream: what was written to it before stays.
    Stream(File),
}

impl Destination {
    /// Opens what a path names; never waits for anybody.
    ///
    /// # Errors
    /// [`Refused`], before anything is changed.
    pub fn open(path: &Path) -> Result<Destination, Refused> {
        if let Some(number) = descriptor(path) {
            return duplicate(number).map(Destination::Stream);
        }
        let reached = reach(path, Final::Follow)?;
        match reached.there.as_ref().map(kind) {
            Some(SFlag::S_IFIFO | SFlag::S_IFCHR) => stream(&reached).map(Destination::Stream),
            _ => NewFile::at(reached).map(Destination::New),
        }
    }
}

/// The descriptor that a path names.
fn descriptor(path: &Path) -> Option<RawFd> {
    let path = path.to_str()?;
    let standard = STANDARD.iter().find(|(name, _)| *name == path);
    let number = || {
        DESCRIPTORS
            .iter()
            .find_map(|folder| path.strip_prefix(folder))?
            .parse()
            .ok()
    };
    standard.map(|(_, number)| *number).or_else(number)
}

/// A second descriptor for what the caller has opened: nothing is opened again, so the place in it and its permissions are the caller's.
fn duplicate(number: RawFd) -> Result<File, Refused> {
    if number < 0 {
        return Err(Errno::EBADF.into());
    }
    // SAFETY: it is only borrowed for the calls below, which fail where nothing is open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    let flags = OFlag::from_bits_truncate(fcntl(borrowed, FcntlArg::F_GETFL)?);
    if flags & OFlag::O_ACCMODE == OFlag::O_RDONLY || flags.contains(OFlag::O_PATH) {
        return Err(Errno::EBADF.into());
    }
    Ok(borrowed.try_clone_to_owned()?.into())
}

/// Opens a FIFO, a terminal or `/dev/null`, and makes sure that it is what was looked at.
fn stream(reached: &Reached) -> Result<File, Refused> {
    let there = reached.there.as_ref().ok_or(Errno::ENOENT)?;
    may_be_written(there)?;
    let how = OFlag::O_WRONLY | OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let file = match openat(&reached.folder, reached.name.as_os_str(), how, Mode::empty()) {
        Err(Errno::ENXIO) if kind(there) == SFlag::S_IFIFO => return Err(Refused::NoReader),
        opened => File::from(opened?),
    };
    let opened = fstat(&file)?;
    if (opened.st_dev, opened.st_ino) != (there.st_dev, there.st_ino) {
        return Err(Refused::Special);
    }
    Ok(file)
}

fn may_be_written(there: &FileStat) -> Result<(), Refused> {
    if kind(there) == SFlag::S_IFIFO {
        return match trusted(there.st_uid) {
            true => Ok(()),
            false => Err(Refused::Fifo { owner: there.st_uid }),
        };
    }
    // Opening another device can already do something: a watchdog starts to count.
    let number = (major(there.st_rdev), minor(there.st_rdev));
    let terminal = number == TTY || number.0 == VIRTUAL_CONSOLES || PSEUDO_TERMINALS.contains(&number.0);
    match number == NULL || terminal && (number == TTY || trusted(there.st_uid)) {
        true => Ok(()),
        false => Err(Refused::Special),
    }
}
