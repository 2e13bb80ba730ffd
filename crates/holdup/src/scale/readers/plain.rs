//! The control of readers: a file of each worker's own, in memory (tmpfs), so that nothing but the machine is shared.

use super::file::File;
use super::{Reader, Refused, errno};
use nix::errno::Errno;
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::io::Write;

/// Such a file.
pub(super) struct Plain(File);

/// Makes one with so many bytes in it.
pub(super) fn file(size: usize) -> Result<std::fs::File, Refused> {
    let memory = memfd_create(c"holdup-control", MFdFlags::MFD_CLOEXEC).map_err(Refused::Open)?;
    let mut file = std::fs::File::from(memory);
    file.write_all(&vec![0x5a; size])
        .map_err(|error| Refused::Open(errno(&error)))?;
    Ok(file)
}

impl Plain {
    /// Makes it.
    pub(super) fn open(size: usize) -> Result<Plain, Refused> {
        Ok(Plain(File::of(file(size)?, size)?))
    }
}

impl Reader for Plain {
    fn once(&mut self) -> Result<(), Errno> {
        self.0.once()
    }
}
