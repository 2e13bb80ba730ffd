//! A directory of small synchronous writes, as a mail queue or a journal makes them: each worker writes its own file over and over,
//! and waits each time until it is safe. The files are without a name from the begin, so that none is left behind.

use super::{Reader, Refused, errno};
use nix::errno::Errno;
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A worker's file.
pub(super) struct Sync {
    file: std::fs::File,
    buffer: Vec<u8>,
}

impl Sync {
    /// Makes it in that directory.
    pub(super) fn open(directory: &Path, size: usize, worker: usize) -> Result<Sync, Refused> {
        let nameless = OpenOptions::new()
            .write(true)
            .mode(0o600)
            .custom_flags(libc::O_TMPFILE)
            .open(directory);
        let file = match nameless {
            // File systems without nameless files.
            Err(error) if errno(&error) == Errno::EOPNOTSUPP => {
                let path = directory.join(format!(".holdup-scale-{}-{worker}", std::process::id()));
                let named = OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(&path);
                std::fs::remove_file(&path).ok();
                named
            }
            other => other,
        };
        let file = file.map_err(|error| Refused::Open(errno(&error)))?;
        // A byte for each worker, so that no two write the same.
        let buffer = vec![worker.to_le_bytes()[0]; size];
        Ok(Sync { file, buffer })
    }
}

impl Reader for Sync {
    fn once(&mut self) -> Result<(), Errno> {
        let (descriptor, from, size) = (self.file.as_raw_fd(), self.buffer.as_ptr(), self.buffer.len());
        // Else the second of two equal writes could be spared.
        if let Some(byte) = self.buffer.first_mut() {
            *byte = byte.wrapping_add(1);
        }
        // SAFETY: writes from a buffer of that size.
        Errno::result(unsafe { libc::pwrite(descriptor, from.cast(), size, 0) })?;
        // SAFETY: takes a descriptor.
        Errno::result(unsafe { libc::fsync(descriptor) }).map(|_| ())
    }
}
