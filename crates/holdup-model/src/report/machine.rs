//! What a report says of the machine that was observed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The machine that was observed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// Its name, as `uname -n` has it.
    pub host: String,
    /// Its kernel's release, as `uname -r` has it.
    pub kernel: String,
}
