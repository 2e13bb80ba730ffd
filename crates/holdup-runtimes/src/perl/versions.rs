//! Which Perl this is, and where its structures have what is read.
//!
//! In: memory, and where Perl's symbols are. Out: the offsets of that version.

use super::Place;
use crate::memory::{Memory, Source};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The version, as a byte; the interpreter of the first thread; a build with threads has the third.
pub const SYMBOLS: [&str; 3] = ["PL_version", "PL_curinterp", "PL_thr_key"];

/// A version of Perl 5: `36` of 5.36.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version(pub u8);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "5.{}", self.0)
    }
}

/// Why frames of Perl are not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Refused {
    /// It starts: there is no interpreter so far.
    #[error("Perl has no interpreter yet")]
    NoInterpreter,
    /// holdup has no table for it.
    #[error("Perl {0} is not supported")]
    Unsupported(Version),
    /// Such a build keeps its state elsewhere.
    #[error("the build of Perl {0} without threads is not supported")]
    WithoutThreads(Version),
    /// Its memory cannot be read.
    #[error("its memory cannot be read")]
    Memory,
}

/// Where a package keeps its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PackageName {
    /// Behind the table of what is in it.
    BehindTable,
    /// Within its body, at this offset.
    InBody(u64),
}

/// Where structures have what is read, bytes. The rest is the same in all versions, and stands beside what reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) version: Version,
    /// In an interpreter: the statement that runs, and the innermost stack of contexts.
    pub(super) statement: u64,
    pub(super) contexts: u64,
    pub(super) package_name: PackageName,
}

const fn table(version: u8, statement: u64, contexts: u64, package_name: PackageName) -> Layout {
    Layout {
        version: Version(version),
        statement,
        contexts,
        package_name,
    }
}

/// Patch releases keep the structures: modules are built for all of them.
const LAYOUTS: [Layout; 5] = [
    table(32, 224, 240, PackageName::BehindTable),
    table(34, 208, 224, PackageName::BehindTable),
    table(36, 208, 224, PackageName::InBody(32)),
    table(38, 208, 224, PackageName::InBody(32)),
    table(40, 208, 224, PackageName::InBody(32)),
];

impl Layout {
    /// The offsets of this Perl.
    pub(super) fn find<S: Source>(memory: &mut Memory<S>, place: Place) -> Result<Layout, Refused> {
        let version = memory.byte(place.version).ok_or(Refused::Memory)?;
        let version = Version(version);
        let known = LAYOUTS.iter().find(|layout| layout.version == version);
        let layout = known.ok_or(Refused::Unsupported(version))?;
        match place.threads {
            true => Ok(*layout),
            false => Err(Refused::WithoutThreads(version)),
        }
    }
}
