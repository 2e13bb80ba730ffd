//! Files that several processes have open, and who has them locked.

use serde::{Deserialize, Serialize};

/// A lock on a file, which another process has open as well.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LockedFile {
    /// The file. Hostile text.
    pub file: String,
    /// Who has the lock.
    pub holder: u32,
    /// Its name. Hostile text.
    pub process: String,
    /// Whether a signal had stopped it.
    pub stopped: bool,
    /// Observed processes that have the file open, without the holder.
    pub users: Vec<u32>,
}
