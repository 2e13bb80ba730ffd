//! What holdup says of a machine's sources of randomness: one line for each thing.
//!
//! `holdup-diagnosis` makes these lines; reports of a boot and of a machine keep them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one thing means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be.
    Good,
    /// Somebody may wait, or has.
    Poor,
    /// It describes.
    Plain,
    /// Something that people do about it, and that does not help here.
    Pointless,
    /// It could not be known.
    Unknown,
}

/// One thing about the machine's randomness.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Aspect {
    /// About what, in a word or two.
    pub about: String,
    /// What it means.
    pub state: State,
    /// In plain words.
    pub text: String,
}
