//! What a person knows an interpreter's process by.

use serde::{Deserialize, Serialize};

/// A process that interprets a script.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Program {
    /// The process.
    pub pid: u32,
    /// The interpreter and the script: `python3 app.py`. Hostile text.
    pub name: String,
}
