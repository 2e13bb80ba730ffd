//! Words of memory that processes share, and for which threads wait.

use serde::{Deserialize, Serialize};

/// A futex in a file that processes share, for which a thread waits as observation ends. All text is hostile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedWord {
    /// The process that waits.
    pub pid: u32,
    /// The address in that process.
    pub address: u64,
    /// The file.
    pub path: String,
    /// What the word has, where it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<u32>,
    /// The processes that have the file mapped, the one that waits among them.
    #[serde(default)]
    pub users: Vec<SharedUser>,
    /// Whether all processes could be asked.
    #[serde(default)]
    pub all_asked: bool,
}

/// A process that shares a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedUser {
    /// Its id.
    pub pid: u32,
    /// Its name.
    pub process: String,
    /// Whether all of its threads wait for words of that file.
    pub waits: bool,
    /// Whether one of its threads reads or writes, or waits until it can, or did not sleep in a call. `None` where that was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfers: Option<bool>,
}
