//! Time in system calls, as strace and its kin measure it.

use super::{Quote, When};
use crate::Ns;
use serde::{Deserialize, Serialize};

/// What one trace shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Calls {
    /// Which artefact, as a [`Quote`] has it.
    pub source: u32,
    /// The traced command, where told.
    pub command: Option<String>,
    /// From its first instant to its last; for a summary the sum of its calls. `None` where no time is told.
    pub elapsed: Option<Ns>,
    /// Whether durations are of the wall clock; `None` where that can't be told (CPU time in a call looks the same).
    pub wall: Option<bool>,
    /// By thread, call and object, longest first.
    pub calls: Vec<CallTime>,
}

/// Calls of one kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallTime {
    /// The thread; 0 where told by none.
    pub tid: u32,
    /// Its name, where told.
    pub thread: String,
    /// The call, by name.
    pub call: String,
    /// What it was about, where told: a path, a socket's address.
    pub object: Option<String>,
    /// How many.
    pub count: u64,
    /// How many of them failed.
    pub errors: u64,
    /// How many ended because their time ran out.
    pub timed_out: u64,
    /// Together.
    pub ns: Ns,
    /// The longest.
    pub max: Ns,
    /// When the longest began.
    pub max_began: Option<When>,
    /// Bytes asked for by the longest, where the call has a length.
    pub bytes: Option<u64>,
    /// Whether it had not come back when the trace ended: `ns` and `max` are then at least that.
    pub open: bool,
    /// Who asked, where the trace has stacks (`-k`).
    pub stack: Option<super::StackId>,
    /// Where the longest was read.
    pub quote: Quote,
}
