//! Where a machine's randomness comes from and who feeds it: what `holdup doctor` and `holdup host` tell of it.
//!
//! `None` always means "not measured", never "no". `holdup-proc` fills it; what rules need of it is in
//! [`RandomFacts`].

use crate::Ns;
use crate::facts::RandomFacts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Everything that is known of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Randomness {
    /// The generator, and what rules know of its sources.
    pub generator: RandomFacts,
    /// The CPU's instructions for it, by name; empty where it has none.
    pub instructions: Option<Vec<String>>,
    /// How good the kernel takes the hardware source to be: bits of entropy in 1,024 bits; 0 is none.
    pub quality: Option<u32>,
    /// Whether the kernel's own thread that feeds the generator from the hardware source is there.
    pub feeding_thread: Option<bool>,
    /// Whether the boot loader handed a seed over, and what tells.
    pub loader_seed: Option<(bool, String)>,
    /// `random.trust_bootloader=` of the kernel's command line, where given.
    pub trust_loader: Option<bool>,
    /// The seed that the last shutdown saved.
    pub saved_seed: Option<SavedSeed>,
    /// Daemons that feed the generator, as far as they are running.
    pub daemons: Vec<FeedingDaemon>,
    /// Whether the generator answers now without waiting (`getrandom` with `GRND_NONBLOCK`).
    pub ready: Option<bool>,
    /// Whether the kernel knows `GRND_INSECURE`: it came with the generator whose `/dev/random` waits only once.
    pub insecure_flag: Option<bool>,
    /// Who reads how much and how long it takes, where somebody has watched; the most first.
    pub readers: Vec<RandomReader>,
}

/// A seed in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedSeed {
    /// The file.
    pub path: String,
    /// Whether whoever loads it has the kernel count it as entropy; `None` where that can't be known.
    pub credited: Option<bool>,
}

/// A daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedingDaemon {
    /// Its name.
    pub name: String,
    /// Its process.
    pub pid: u32,
}

/// Who reads randomness.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RandomReader {
    /// Process.
    pub process: String,
    /// Its id.
    pub pid: u32,
    /// What it reads: `getrandom`, `/dev/urandom`, `/dev/random`.
    pub from: String,
    /// How often.
    pub calls: u64,
    /// Bytes.
    pub bytes: u64,
    /// For how long in all.
    pub ns: Ns,
}
