//! Why a file is not written, in one sentence that says what to do.

use std::io::Error;
use std::path::PathBuf;

/// Why a path is not written to.
#[derive(Debug)]
pub enum Refused {
    /// The kernel refused something.
    Io(Error),
    /// A symbolic link on the way belongs to somebody else.
    Link {
        /// The link, as far as it was followed.
        link: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// The path names a directory.
    Directory,
    /// A device that is neither a terminal nor `/dev/null`, a socket, or a link where none may be.
    Special,
    /// A FIFO of somebody else.
    Fifo {
        /// Its owner.
        owner: u32,
    },
    /// No process has the FIFO open for reading, so opening it would block.
    NoReader,
    /// The folder belongs to somebody else.
    Folder {
        /// Which one.
        folder: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// Others may write to the folder.
    Shared {
        /// Which one.
        folder: PathBuf,
    },
}

impl Refused {
    /// The kernel's error number, where it was the kernel.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Refused::Io(error) => error.raw_os_error(),
            _ => None,
        }
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused::Io(error)
    }
}

impl From<nix::errno::Errno> for Refused {
    fn from(errno: nix::errno::Errno) -> Refused {
        Refused::Io(errno.into())
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refused::Io(error) => error.fmt(f),
            Refused::Link { link, owner } => write!(
                f,
                "{link:?} is a symbolic link that user {owner} can change; give the path that it leads to"
            ),
            Refused::Directory => f.write_str("it is a directory; give the name of a file in it"),
            Refused::Special => f.write_str(
                "it is no regular file; give the name of a file, or - for stdout where that is possible",
            ),
            Refused::Fifo { owner } => write!(
                f,
                "it is a FIFO of user {owner}; give a file, or a FIFO of your own that a process reads"
            ),
            Refused::NoReader => f.write_str("no process reads this FIFO; start the reader first"),
            Refused::Folder { folder, owner } => write!(
                f,
                "{folder:?} belongs to user {owner}, who can replace what is in it; give a folder of your own"
            ),
            Refused::Shared { folder } => write!(
                f,
                "other users may write to {folder:?}; give a folder of your own, or take that right away: chmod go-w {folder:?}"
            ),
        }
    }
}

impl std::error::Error for Refused {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Refused::Io(error) => Some(error),
            _ => None,
        }
    }
}
