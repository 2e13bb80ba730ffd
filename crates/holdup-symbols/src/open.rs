//! Opening files that somebody else may have chosen.
//!
//! In comes a path, out comes the file if it is a regular one that the caller accepts. It is looked at by an
//! `O_PATH` descriptor before it is really opened, because opening a device can have effects, and opening a
//! FIFO can block. All of this can block on a file system that does not answer, so it is done by a process that can be abandoned
//! (see `files`), and file systems that are known for it are kept away from (see `mounts`).

use nix::libc::{O_CLOEXEC, O_NOCTTY, O_NONBLOCK, O_PATH};
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A file, and a descriptor of its place, which can be held without effects and closed without waiting for anybody.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) place: File,
    pub(crate) file: File,
}

/// Opens `path` for reading if it is a regular file.
pub(crate) fn regular(path: &Path) -> Option<Opened> {
    let place = place(path, 0)?;
    let file = again(&place, |_| true)?;
    Some(Opened { place, file })
}

/// Whether a place has a regular file.
pub(crate) fn is_regular(place: &File) -> bool {
    place.metadata().is_ok_and(|found| found.is_file())
}

/// A descriptor of what is at `path`, whatever that is; `flags` may be `O_NOFOLLOW`.
pub(crate) fn place(path: &Path, flags: i32) -> Option<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(O_PATH | O_CLOEXEC | flags)
        .open(path)
        .ok()
}

/// Opens what a descriptor of a place is at.
pub(crate) fn again(place: &File, accept: impl FnOnce(&File) -> bool) -> Option<File> {
    if !is_regular(place) || !accept(place) {
        return None;
    }
    let path = format!("/proc/self/fd/{}", place.as_raw_fd());
    OpenOptions::new()
        .read(true)
        .custom_flags(O_NONBLOCK | O_CLOEXEC | O_NOCTTY)
        .open(path)
        .ok()
}
