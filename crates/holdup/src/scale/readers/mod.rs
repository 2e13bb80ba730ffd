//! What workers do again and again, a file for each kind.
//!
//! In: a [`Job`], in the worker's process. Out: one operation at a time. What is opened may hang or be anything: it is opened in the
//! worker, without waiting, and looked at before it is read.

mod compute;
mod dns;
mod file;
mod getrandom;
mod lock;
mod plain;
mod program;
mod sync;

pub(super) use program::Run;

/// Whether a name server can be asked for it.
pub(crate) fn is_name(name: &str) -> bool {
    dns::question(name).is_some()
}

use super::Job;
use nix::errno::Errno;

/// One kind.
pub(super) trait Reader {
    /// One operation.
    fn once(&mut self) -> Result<(), Errno>;

    /// What the last operation was, if it was a program of its own.
    fn run(&self) -> Option<Run> {
        None
    }
}

/// Why a worker can't do its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// It can't be opened.
    Open(Errno),
    /// It is a directory.
    Directory,
    /// It is a pipe or a socket: who reads it takes from others, or waits for them.
    Pipe,
    /// It is neither file nor device.
    Strange,
    /// An operation failed.
    Operation(Errno),
}

impl Refused {
    /// For memory that is shared.
    pub(super) fn as_numbers(self) -> (u32, i32) {
        match self {
            Refused::Open(errno) => (1, errno as i32),
            Refused::Directory => (2, 0),
            Refused::Pipe => (3, 0),
            Refused::Strange => (4, 0),
            Refused::Operation(errno) => (5, errno as i32),
        }
    }

    /// Back again.
    pub(super) fn from_numbers(kind: u32, errno: i32) -> Option<Refused> {
        let errno = Errno::from_raw(errno);
        Some(match kind {
            1 => Refused::Open(errno),
            2 => Refused::Directory,
            3 => Refused::Pipe,
            4 => Refused::Strange,
            5 => Refused::Operation(errno),
            _ => return None,
        })
    }
}

/// Makes ready for it.
pub(super) fn open(job: &Job, worker: usize) -> Result<Box<dyn Reader>, Refused> {
    Ok(match job {
        Job::Read { path, size } => Box::new(file::File::open(path, *size)?),
        Job::Getrandom { size } => Box::new(getrandom::Getrandom::new(*size)),
        Job::Sync { directory, size } => Box::new(sync::Sync::open(directory, *size, worker)?),
        Job::Lock { path, size } => Box::new(lock::Lock::open(path, *size)?),
        Job::Dns { server, name } => Box::new(dns::Dns::open(*server, name)?),
        Job::Program { argv } => Box::new(program::Program::new(argv)),
        Job::PlainRead { size } => Box::new(plain::Plain::open(*size)?),
        Job::PlainLock { size } => Box::new(lock::Lock::of_own(*size)?),
        Job::Compute => Box::new(compute::Compute::new()),
    })
}

/// What the library said, as a number.
fn errno(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}
