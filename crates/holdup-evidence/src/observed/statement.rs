//! What a line of any text states: a failure, a wait that was given up, a duration.
//!
//! Logs of programs that no reader knows still say in words what went wrong and for how long. Lines that differ in numbers
//! alone are one statement, with a count.

use super::{Quote, When};
use crate::Ns;
use serde::{Deserialize, Serialize};

/// One statement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// What kind of thing is stated.
    pub kind: StatementKind,
    /// The longest duration that is stated with it.
    #[serde(default)]
    pub ns: Option<Ns>,
    /// The part of a whole that is stated with it: of a limit, of a CPU; more than 1 of several CPUs.
    #[serde(default)]
    pub share: Option<f64>,
    /// How often it is stated.
    #[serde(default)]
    pub times: u64,
    /// When it is first stated.
    #[serde(default)]
    pub first: Option<When>,
    /// When it is last stated.
    #[serde(default)]
    pub last: Option<When>,
    /// Whether the reader of a known format says it, and no line in its own words.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_reader: bool,
    /// What is known of the message, where it is a well-known one of a well-known program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
    /// Where the line stands that is quoted: that of the longest duration, else the first.
    #[serde(default)]
    pub quote: Quote,
    /// The line, without what a logger puts before it, cut to a bearable length.
    #[serde(default)]
    pub text: String,
    /// What its lines blame, each with how often.
    #[serde(default)]
    pub blames: Vec<Blame>,
}

/// What is known of a message that a program prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Whether it is a cause or a sign.
    pub role: MessageRole,
    /// The program that prints it, or the part of the kernel.
    pub program: String,
    /// What it means, in a sentence without a full stop.
    pub means: String,
}

/// Whether a message names what others suffer from, or what suffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessageRole {
    /// A full table, a limit, a failing device: it makes others wait or fail.
    Cause,
    /// A timeout, a task that hangs: it suffers from something else.
    Sign,
}

/// What a line blames: a peer, a path, a pool, a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blame {
    /// Which, as the line names it.
    pub of: String,
    /// What it did or did not do.
    pub how: How,
    /// How often.
    #[serde(default)]
    pub times: u64,
}

/// What a thing that is blamed did or did not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// A name that no resolver knows, or that none could be asked for.
    Unresolved,
    /// It has a lock that somebody else wants.
    HasLock,
    /// Somebody else has the lock of it.
    Locked,
    /// It refused a connection.
    Refused,
    /// There is no space left on it.
    NoSpace,
    /// A pool had no free connection.
    NoFreeConnection,
    /// It takes no more connections, or is open too often.
    TooMany,
    /// Access to it was denied.
    Denied,
    /// It can only be read.
    ReadOnly,
    /// It was killed.
    Killed,
    /// The connection to it broke.
    Broken,
    /// No connection to it could be made.
    NoConnection,
    /// It did not answer in time.
    NoAnswer,
    /// It did not get done in time.
    TimedOut,
    /// It is down, or cannot be had.
    Unavailable,
    /// It does not exist.
    NotFound,
}

/// Kinds of statements, gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StatementKind {
    /// Threads or transactions wait for each other.
    Deadlock,
    /// A process was ended or ended itself: out of memory, a crash, a panic.
    Ended,
    /// Something is used up: space, memory, connections, descriptors.
    Exhausted,
    /// A wait was given up.
    TimedOut,
    /// Something could not be reached, or refused.
    Unreachable,
    /// Something stands or stood still, or was slow, in the text's own words.
    Stalled,
    /// Something failed, and none of the above is said.
    Failed,
    /// Something took a stated time, or reached a stated size.
    Took,
    /// A warning.
    Warned,
    /// A figure that is within its norm, which is reported with it.
    WithinNorm,
}
