//! Versions as language runtimes count them.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A version without its patch release, which changes no structures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version {
    /// `3` of 3.11.
    pub major: u8,
    /// `11` of 3.11.
    pub minor: u8,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}
