//! A file that everybody locks before reading it: `flock`, read, unlock. Each worker has opened it for itself, as other programs do:
//! a lock belongs to an open file.

use super::file::File;
use super::{Reader, Refused, plain};
use nix::errno::Errno;
use std::path::Path;

/// An open file that is locked for each read.
pub(super) struct Lock {
    file: File,
    size: usize,
}

impl Lock {
    /// Opens it.
    pub(super) fn open(path: &Path, size: usize) -> Result<Lock, Refused> {
        File::open(path, size).map(|file| Lock { file, size })
    }

    /// One of the worker's own, in memory.
    pub(super) fn of_own(size: usize) -> Result<Lock, Refused> {
        File::of(plain::file(size)?, size).map(|file| Lock { file, size })
    }

    /// So many bytes, from the begin again where the file ends; of an empty one nothing.
    fn read(&mut self) -> Result<(), Errno> {
        let mut left = self.size;
        while left > 0 {
            match self.file.read()? {
                0 => return Ok(()),
                read => left = left.saturating_sub(read),
            }
        }
        Ok(())
    }

    fn flock(&self, how: i32) -> Result<(), Errno> {
        // SAFETY: takes a descriptor and a number.
        Errno::result(unsafe { libc::flock(self.file.descriptor(), how) }).map(|_| ())
    }
}

impl Reader for Lock {
    fn once(&mut self) -> Result<(), Errno> {
        self.flock(libc::LOCK_EX)?;
        let read = self.read();
        self.flock(libc::LOCK_UN)?;
        read
    }
}
