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

/// A process that a signal had stopped when observation ended, and whose standard input or output is a pipe or a socket: so a program
/// uses it, and no terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoppedChild {
    /// The process.
    pub pid: u32,
    /// Whose child it is.
    pub parent: u32,
}
