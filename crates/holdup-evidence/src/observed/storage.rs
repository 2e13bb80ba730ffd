//! Disks, swap areas and file systems, as `lsblk`, `swapon`, `df` and `mount` list them.

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
    /// `disk`, `part`, `lvm`, `loop`; empty where not known.
    pub kind: String,
    /// Its size, bytes; as exact as the list has it.
    pub size: Option<u64>,
    /// The file system on it, empty for none; `None` where the list does not tell.
    pub file_system: Option<String>,
    /// Where it is mounted (`[SWAP]` for a swap area that is switched on), empty for nowhere; `None` where not known.
    pub mount: Option<String>,
    /// The device that it is a part of, where the list shows that.
    pub parent: Option<String>,
    /// Where it was read.
    pub quote: Quote,
}

/// A mounted file system.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenFileSystem {
    /// What is mounted: a device, a server's path, a name that the kernel made up.
    pub source: String,
    /// Its type (`ext4`), where known.
    pub kind: Option<String>,
    /// Where it is mounted.
    pub mount: String,
    /// Share of what users may use that is used, percent, rounded up as `df` does; `None` where not known.
    pub used_percent: Option<f64>,
    /// What users can still use, KiB; as exact as the list has it.
    pub available_kib: Option<f64>,
    /// Its size, KiB.
    pub size_kib: Option<f64>,
    /// Share of the inodes that is used, percent.
    pub inodes_used_percent: Option<f64>,
    /// Inodes that are free.
    pub inodes_free: Option<f64>,
    /// Inodes in all, used and free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inodes: Option<f64>,
    /// The options it is mounted with, comma separated; `None` where the list does not tell.
    pub options: Option<String>,
    /// Where it was read.
    pub quote: Quote,
}

/// What a program read from disks or wrote to them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenTransfer {
    /// The program, as lists of tasks name it.
    pub program: String,
    /// Who that is, in words: with the id of its process, or their number, and who ran it.
    pub who: String,
    /// Whether it wrote.
    pub writes: bool,
    /// KiB a second, of all disks.
    pub kib_per_second: f64,
    /// Where it was read.
    pub quote: Quote,
}
