//! Tasks of language runtimes that have failed, and that others wait for in vain.

use crate::Frame;
use serde::{Deserialize, Serialize};

/// A task that has ended with an exception, beside which others wait: their code and its code use the same object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FailedTask {
    /// Whose task it was.
    pub pid: u32,
    /// Its name. Hostile text.
    pub name: Option<String>,
    /// The type of the exception. Hostile text.
    pub exception: String,
    /// Where that was raised, innermost first, up to the task's own function.
    pub frames: Vec<Frame>,
    /// Whether nobody has asked for its result since.
    pub unasked: bool,
    /// The tasks that wait beside it, by number.
    pub waiting: Vec<u64>,
    /// Whether its code names what each of them awaits; else the code of both only works on the same object.
    pub by_name: bool,
}
