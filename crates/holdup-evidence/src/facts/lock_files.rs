//! Files that programs make instead of a lock, and which name their maker.

use super::SessionClient;
use serde::{Deserialize, Serialize};

/// A lock file that a sleeping process was found beside.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LockFile {
    /// Its path. Hostile text.
    pub path: String,
    /// The process that it names.
    pub holder: u32,
    /// The name of that. Hostile text.
    pub process: String,
    /// Whether that process is stopped.
    pub stopped: bool,
    /// The process that sleeps: the file is in its working directory, or in a directory that its arguments name.
    pub beside: u32,
    /// The end of the line of only children below the holder. It is what the holder waits for, if it waits for its child.
    pub last: Option<SessionClient>,
    /// The server whose answer that one, or the holder itself, waits for. Hostile text; empty where there is none.
    pub awaits: String,
}
