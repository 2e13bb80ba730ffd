//! File systems without room, and who writes there.

use serde::{Deserialize, Serialize};

/// A file system of which nothing, or next to nothing, was left when observation ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FullFileSystem {
    /// Where it is mounted.
    pub mount: String,
    /// What is mounted.
    pub source: String,
    /// Its size, bytes.
    pub size: u64,
    /// What users can still use, bytes.
    pub left: u64,
    /// Whether it is inodes that are used up, and not bytes.
    pub inodes: bool,
    /// Processes that have files open there to write to, lowest id first.
    pub writers: Vec<FileWriter>,
}

/// A process that has a file open to write to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileWriter {
    /// The process.
    pub pid: u32,
    /// Its name. Hostile text.
    pub process: String,
    /// One of those files. Hostile text.
    pub file: String,
}
