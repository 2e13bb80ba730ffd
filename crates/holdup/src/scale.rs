//! Many workers that do the same, and what they come to: the measuring half of `holdup scale`.
//!
//! In: a [`Plan`], one for each slice of measuring. Out: an [`Outcome`]. holdup starts itself again as the leader of a slice
//! ([`leader`]), as the user that was asked for; the leader starts the workers ([`worker`]), which do one [`Job`] again and again
//! ([`readers`]) and count in memory that they share with it ([`board`]). Only workers touch what is measured: what hangs there hangs
//! them, and neither leader nor holdup. When holdup dies the leader dies, and with it the workers.

mod board;
mod leader;
mod points;
mod readers;
mod worker;

pub(crate) use leader::lead;
pub(crate) use points::{Arms, Bench, Interrupted, Operations, Taken, notes};
pub(crate) use readers::is_name;

use holdup_comparison::scaling::Slice;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Workers at most: memory that they share is 8 KB each, and more tell nothing that these do not.
pub(crate) const MOST_WORKERS: u32 = 4_096;

/// What a worker does again and again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Job {
    /// Reads so many bytes of a file or device.
    Read { path: PathBuf, size: usize },
    /// Asks the kernel for so many random bytes.
    Getrandom { size: usize },
    /// Writes so many bytes to a file of its own in a directory, and waits until they are safe.
    Sync { directory: PathBuf, size: usize },
    /// Locks a file, reads so many bytes of it, and unlocks it.
    Lock { path: PathBuf, size: usize },
    /// Asks a name server for a name.
    Dns { server: SocketAddr, name: String },
    /// Runs a program to its end.
    Program { argv: Vec<OsString> },
    /// Control: reads so many bytes of a file of its own, in memory.
    PlainRead { size: usize },
    /// Control: the same, locked.
    PlainLock { size: usize },
    /// Control: computes.
    Compute,
}

impl Job {
    /// Whether each operation is a program.
    pub(crate) fn programs(&self) -> bool {
        matches!(self, Job::Program { .. })
    }

    /// One operation.
    pub(crate) fn unit(&self) -> &'static str {
        match self {
            Job::Read { .. } | Job::Getrandom { .. } | Job::PlainRead { .. } => "read",
            Job::Sync { .. } => "sync",
            Job::Lock { .. } | Job::PlainLock { .. } => "locked read",
            Job::Dns { .. } => "question",
            Job::Program { .. } => "run",
            Job::Compute => "round",
        }
    }

    /// What it does, in words: a subject of a sentence, several of it.
    pub(crate) fn words(&self) -> String {
        match self {
            Job::Read { path, size } => format!("reads of {size} bytes from {}", path.display()),
            Job::Getrandom { size } => format!("calls of getrandom for {size} bytes"),
            Job::Sync { directory, size } => format!("fsyncs of {size} bytes in {}", directory.display()),
            Job::Lock { path, size } => format!("reads of {size} bytes of {} under flock", path.display()),
            Job::Dns { server, name } => format!("questions for {name} to {server}"),
            Job::Program { argv } => {
                let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
                format!("runs of {}", words.join(" "))
            }
            Job::PlainRead { size } => {
                format!("reads of {size} bytes from a file of each worker's own, in memory")
            }
            Job::PlainLock { size } => {
                format!("reads of {size} bytes under flock from a file of each worker's own, in memory")
            }
            Job::Compute => "a computation that shares nothing".to_owned(),
        }
    }

    /// What does the like of it and shares nothing.
    pub(crate) fn control(&self) -> Job {
        match self {
            Job::Read { size, .. } | Job::Getrandom { size } | Job::Sync { size, .. } => {
                Job::PlainRead { size: *size }
            }
            Job::Lock { size, .. } => Job::PlainLock { size: *size },
            // As many bytes as a question has.
            Job::Dns { .. } => Job::PlainRead { size: 64 },
            Job::Program { .. } => Job::Compute,
            Job::PlainRead { .. } | Job::PlainLock { .. } | Job::Compute => self.clone(),
        }
    }
}

/// A slice of measuring.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) job: Job,
    pub(crate) workers: u32,
    /// Operations of each; who has done them first ends the slice for all, but for programs, where each does its own.
    pub(crate) operations: u64,
    /// No operation begins after so long, milliseconds.
    pub(crate) most_ms: u64,
    /// After so long, milliseconds, who still is at one is given up.
    pub(crate) timeout_ms: u64,
    /// Where the outcome goes: a descriptor.
    pub(crate) result: i32,
    /// The process that asked: whose end is the leader's.
    pub(crate) parent: i32,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Outcome {
    /// It was measured.
    Measured(Measured),
    /// It could not be.
    Failed(Failure),
}

/// A slice, and what went wrong in it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) slice: Slice,
    /// Programs that ended with another status than 0.
    pub(crate) unsuccessful: u64,
    /// The status of one of them.
    pub(crate) status: i32,
    /// Workers whose time without a CPU the kernel did not tell.
    pub(crate) queue_untold: u32,
}

/// Why a slice could not be measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Failure {
    /// So many workers could be started, and no more.
    Workers { started: u32, errno: i32 },
    /// It could not be opened.
    Open { errno: i32 },
    /// It is of a kind that can't be measured so.
    Kind { what: String },
    /// It was not opened in time.
    OpenHangs,
    /// An operation failed.
    Operation { errno: i32 },
    /// So many workers did not end an operation in time.
    Hangs { workers: u32 },
    /// The leader itself could not go on.
    Own { what: String, errno: i32 },
}
