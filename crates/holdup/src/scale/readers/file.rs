//! A file or a device, read again and again: a file from begin to end and over again, a device as it comes.

use super::{Reader, Refused, errno};
use nix::errno::Errno;
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// An open file.
pub(in crate::scale) struct File {
    file: std::fs::File,
    buffer: Vec<u8>,
    /// Where to read next, and where the file ends; `None` of a device.
    place: Option<(u64, u64)>,
}

impl File {
    /// Opens it without waiting, and looks what it is.
    pub(in crate::scale) fn open(path: &Path, size: usize) -> Result<File, Refused> {
        let open = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path);
        File::of(open.map_err(|error| Refused::Open(errno(&error)))?, size)
    }

    /// The same of one that is open.
    pub(super) fn of(file: std::fs::File, size: usize) -> Result<File, Refused> {
        let metadata = file.metadata().map_err(|error| Refused::Open(errno(&error)))?;
        let kind = metadata.file_type();
        let place = match () {
            () if kind.is_dir() => return Err(Refused::Directory),
            () if kind.is_fifo() || kind.is_socket() => return Err(Refused::Pipe),
            () if kind.is_char_device() => None,
            // A file of /proc has no size; it is read from its begin each time.
            () if kind.is_file() => Some((0, metadata.size())),
            () if kind.is_block_device() => Some((0, u64::MAX)),
            () => return Err(Refused::Strange),
        };
        // From here on a read that has to wait waits: that is what is measured.
        // SAFETY: changes the flags of a descriptor of our own.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, 0) } == -1 {
            return Err(Refused::Open(Errno::last()));
        }
        let buffer = vec![0; size];
        Ok(File { file, buffer, place })
    }

    /// Its descriptor.
    pub(super) fn descriptor(&self) -> i32 {
        self.file.as_raw_fd()
    }
}

impl File {
    /// Reads once; returns how much that was.
    pub(super) fn read(&mut self) -> Result<usize, Errno> {
        let (descriptor, into, size) = (self.file.as_raw_fd(), self.buffer.as_mut_ptr(), self.buffer.len());
        let read = match self.place {
            // SAFETY: reads at most as much as the buffer holds into it.
            None => unsafe { libc::read(descriptor, into.cast(), size) },
            Some((at, _)) => {
                let offset = i64::try_from(at).unwrap_or(0);
                // SAFETY: as above.
                unsafe { libc::pread(descriptor, into.cast(), size, offset) }
            }
        };
        let read = Errno::result(read)?.cast_unsigned() as u64;
        if let Some((at, end)) = &mut self.place {
            *at = if read == 0 || *at + read >= *end {
                0
            } else {
                *at + read
            };
        } else if read == 0 {
            // A device that is at its end has nothing to measure.
            return Err(Errno::ENODATA);
        }
        Ok(usize::try_from(read).unwrap_or(usize::MAX))
    }
}

impl Reader for File {
    fn once(&mut self) -> Result<(), Errno> {
        self.read().map(|_| ())
    }
}
