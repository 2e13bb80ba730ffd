//! Disks and swap areas, as `lsblk`, `swapon` and `/proc/swaps` list them.

use super::Quote;
use serde::{Deserialize, Serialize};

/// A list of the swap areas that are switched on. An empty one is a fact: none is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SwapList {
    /// The areas, in the list's order.
    pub areas: Vec<SeenSwap>,
    /// Where the list begins.
    pub quote: Quote,
}

/// A swap area that is switched on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenSwap {
    /// Device or file.
    pub path: String,
    /// Its size, KiB.
    pub size_kib: u64,
    /// How much of it is used, KiB.
    pub used_kib: Option<u64>,
    /// The one with the highest is used first.
    pub priority: Option<i64>,
    /// Where it was read.
    pub quote: Quote,
}

/// A block device of a list of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenDevice {
    /// Its kernel name, or its path where the list has that.
    pub name: String,
    /// `disk`, `part`, `lvm`, `loop`; empty where not told.
    pub kind: String,
    /// Its size, bytes; as exact as the list has it.
    pub size: Option<u64>,
    /// The file system on it, empty for none; `None` where the list does not tell.
    pub file_system: Option<String>,
    /// Where it is mounted (`[SWAP]` for a swap area that is switched on), empty for nowhere; `None` where not told.
    pub mount: Option<String>,
    /// The device that it is a part of, where the list shows that.
    pub parent: Option<String>,
    /// Where it was read.
    pub quote: Quote,
}
