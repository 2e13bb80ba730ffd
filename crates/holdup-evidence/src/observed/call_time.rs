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
    /// The traced command, where known.
    pub command: Option<String>,
    /// From its first instant to its last; for a summary the sum of its calls. `None` where no time is reported.
    pub elapsed: Option<Ns>,
    /// Whether durations are of the wall clock; `None` where that cannot be determined (CPU time in a call looks the same).
    pub wall: Option<bool>,
    /// By thread, call and object, longest first.
    pub calls: Vec<CallTime>,
    /// Whether the trace tells of every thread who began it, so that there is one first thread and [`CallTime::main`] is
    /// filled in; where not, only a trace of a single thread tells what was on whose way.
    pub followed: bool,
    /// Whether durations are only reported up to the thread's next call: a log with times and without durations.
    pub at_most: bool,
    /// Peers that refused a connection.
    pub refused: Vec<Refused>,
}

/// A peer that refused connections.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Refused {
    /// Its address and port.
    pub peer: String,
    /// The name of the one that asked last.
    pub by: String,
    /// Its process.
    pub pid: u32,
    /// How many requests were refused.
    pub refused: u64,
    /// How many connections were made.
    pub made: u64,
    /// Sleep of the one that asks, or of its parent or the parent's children, between a refusal and the next request.
    pub slept: Ns,
    /// How many such sleeps.
    pub sleeps: u64,
    /// From the first refusal to the first connection, where one followed and the trace has times.
    pub until: Ns,
}

/// Calls of one kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallTime {
    /// The thread; 0 where known by none.
    pub tid: u32,
    /// Its process; 0 where that is not known.
    pub pid: u32,
    /// Its name, where known.
    pub thread: String,
    /// The call, by name.
    pub call: String,
    /// What it was about, where known: a path, a socket's address.
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
    /// The median of single calls, where they are reported one by one.
    pub median: Option<Ns>,
    /// Of `ns`, how much lies on the way of the trace's first thread: its own calls, and those of a child while it
    /// waited for that one to end.
    pub main: Ns,
    /// Of `ns`, how much of that way passed in a child while this call waited for it.
    pub handed_on: Ns,
    /// Of a wait for children: which, and how long, longest first.
    pub children: Vec<(u32, Ns)>,
    /// When the longest began.
    pub max_began: Option<When>,
    /// Bytes asked for by the longest, where the call has a length.
    pub bytes: Option<u64>,
    /// The first four arguments of the longest as numbers, as far as they decide what it waits for; `None`: not reported.
    pub args: Option<[u64; 4]>,
    /// What the longest returned, a negative error number on failure.
    pub returned: Option<i64>,
    /// Of a poll: whether it awaited room to write.
    pub writing: bool,
    /// Of a poll: whether the object is what ended it.
    pub ready: bool,
    /// Whether the file was opened to be written synchronously (`O_SYNC`, `O_DSYNC`).
    pub durable: bool,
    /// Whether the file was opened to go past the page cache (`O_DIRECT`).
    pub direct: bool,
    /// Whether it had not come back when the trace ended: `ns` and `max` are then at least that.
    pub open: bool,
    /// Who asked, where the trace has stacks (`-k`).
    pub stack: Option<super::StackId>,
    /// Where the longest was read.
    pub quote: Quote,
}
