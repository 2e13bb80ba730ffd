//! What the report has of a comparison: `holdup diff`.
//!
//! Durations here are for each unit of work, and changes are AFTER less BEFORE: above zero is slower.

use holdup_evidence::{Cause, Ns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// BEFORE beside AFTER.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// What BEFORE is: the names of its files.
    pub before: String,
    /// What AFTER is.
    pub after: String,
    /// What all figures are for: `request`, `run`, `second`, `message`, or what was given. `whole`: shares of all there is,
    /// where no unit of work is known.
    pub unit: String,
    /// BEFORE's time for each unit; null of artefacts that tell of no time.
    pub before_ns: Option<Ns>,
    /// AFTER's.
    pub after_ns: Option<Ns>,
    /// The change.
    pub change_ns: Option<i64>,
    /// Where the true change lies, with 95 %: over runs where there are enough of them; else, of one run each, by what happens
    /// within these runs alone, and run-to-run variation is not in it. Null where neither can be known.
    pub interval_ns: Option<[i64; 2]>,
    /// Whether the change is more than chance; null where that can't be known.
    pub significant: Option<bool>,
    /// Runs of BEFORE.
    pub before_n: u32,
    /// Runs of AFTER.
    pub after_n: u32,
    /// Where the time went, largest change first.
    pub causes: Vec<CauseChange>,
    /// More runs like BEFORE, which only tell how much runs vary.
    pub noise_n: u32,
    /// What was compared.
    pub compared: Compared,
    /// The answer, in plain words.
    pub verdict: Vec<String>,
    /// What was won and what was paid for it, where something became less and something else more.
    pub trade: Option<String>,
    /// How it was decided whether the change is more than chance.
    pub method: String,
    /// What drawn numbers begin with: the same input gives the same answer.
    pub seed: u64,
    /// How likely such a change of the whole is by chance, corrected for the number of lines.
    pub p: Option<f64>,
    /// How much runs vary: standard deviation over mean of BEFORE.
    pub run_to_run: Option<f64>,
    /// Units of work in all of BEFORE; null where none is known.
    pub before_units: Option<f64>,
    /// Units of work in all of AFTER.
    pub after_units: Option<f64>,
    /// Of the change: the causes that are reported.
    pub explained_ns: Option<i64>,
    /// The rest of it.
    pub unexplained_ns: Option<i64>,
    /// Amounts that are no causes: frames of profiles and dumps, calls, figures of devices. Largest change first.
    pub amounts: Vec<AmountChange>,
    /// What was made anew, for each unit of work: threads, processes, connections, handshakes.
    pub made: Vec<AmountChange>,
    /// What else is not the same: kernel, packages, command lines, options.
    pub differences: Vec<Difference>,
    /// What is to be kept in mind.
    pub notes: Vec<String>,
    /// Stacks of both sides, where a picture of them was asked for and both have some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stacks: Option<StackTree>,
    /// Of a fleet: what changed on each host that was observed at both times, largest change first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostChange>,
    /// Of a fleet: programs and what they waited for, each a second and host, largest change first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramChange>,
}

/// A host at two times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostChange {
    /// The host, by its id.
    pub host: String,
    /// BEFORE's time of threads, a second of observation, nanoseconds; without waiting for work.
    pub before_ns: Ns,
    /// AFTER's.
    pub after_ns: Ns,
    /// The change.
    pub change_ns: i64,
    /// Whether it changed unlike the other hosts; null where there are too few to tell.
    pub unlike: Option<bool>,
    /// The program that changed most; null of all that were too many to be kept apart.
    pub process: Option<String>,
    /// What that program waited for.
    #[schemars(with = "Option<String>")]
    pub cause: Option<Cause>,
    /// By how much that changed, a second of observation, nanoseconds.
    pub of_it_ns: i64,
}

/// What a program waited for, at two times, on the same hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramChange {
    /// Its name; null of all that were too many to be kept apart.
    pub process: Option<String>,
    /// What for.
    #[schemars(with = "String")]
    pub cause: Cause,
    /// BEFORE's time, a second of observation and host, nanoseconds.
    pub before_ns: Ns,
    /// AFTER's.
    pub after_ns: Ns,
    /// The change.
    pub change_ns: i64,
    /// On how many hosts it became more; of two groups, on how many of AFTER's it is more than BEFORE's mean.
    pub more_on: u32,
    /// Whether it is more than the hosts' own spread; null where that can't be known.
    pub significant: Option<bool>,
    /// How likely by chance, corrected for the number of lines.
    pub p: Option<f64>,
}

/// Stacks of both sides as one tree, for each unit of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StackTree {
    /// What its amounts count.
    pub measure: Measure,
    /// Names, each once.
    pub frames: Vec<TreeFrame>,
    /// Callers before what they call; the first is the root.
    pub nodes: Vec<TreeNode>,
    /// Nodes that are too small to be shown: their amounts are their callers' own.
    pub left_out: u64,
    /// Stacks of which frames found no room: they end where there was some.
    pub cut: u64,
}

/// A name in a stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct TreeFrame {
    /// Of a function, without what is of one run; or the id of a cause.
    pub name: String,
    /// What it names.
    pub kind: TreeFrameKind,
}

/// What a name in a stack is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TreeFrameKind {
    /// A function of the kernel.
    Kernel,
    /// Machine code.
    Native,
    /// A method in Java.
    Java,
    /// A function in Python.
    Python,
    /// A function in JavaScript.
    #[serde(rename = "javascript")]
    JavaScript,
    /// A function in Ruby.
    Ruby,
    /// A function in PHP.
    Php,
    /// A function in Perl.
    Perl,
    /// A function of a script of Bash.
    Bash,
    /// A cause.
    Cause,
    /// Something else.
    Other,
}

/// A function under its caller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TreeNode {
    /// Who calls it, by its place in the list; null of the root.
    pub parent: Option<u32>,
    /// Its name, by its place in the list of names.
    pub frame: u32,
    /// BEFORE's own amount, without what it calls.
    pub before: f64,
    /// AFTER's.
    pub after: f64,
}

/// Kinds of things that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Compared {
    /// Recordings and reports of holdup.
    Recordings,
    /// What `time` printed.
    Times,
    /// Collapsed stacks and other profiles.
    Profiles,
    /// Tables of system calls.
    Calls,
    /// Figures over time, as of iostat.
    Figures,
    /// Thread dumps.
    Dumps,
}

/// A cause, for each unit of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CauseChange {
    /// The cause.
    #[schemars(with = "String")]
    pub cause: Cause,
    /// BEFORE's time for each unit.
    pub before_ns: Ns,
    /// AFTER's.
    pub after_ns: Ns,
    /// The change.
    pub change_ns: i64,
    /// Whether it is more than chance; null where that can't be known.
    pub significant: Option<bool>,
    /// How likely by chance, corrected for the number of lines.
    #[serde(default)]
    pub p: Option<f64>,
}

/// What an amount counts, for each unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Nanoseconds.
    Ns,
    /// Samples of a profile.
    Samples,
    /// A part of all samples, 0 to 1.
    Share,
    /// Threads.
    Threads,
    /// Per cent, as a tool printed it.
    Percent,
    /// Whatever the name says.
    Count,
}

/// An amount that is no cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AmountChange {
    /// Of what: a function, a call, a device and its figure.
    pub name: String,
    /// What the figures count.
    pub measure: Measure,
    /// BEFORE's. Of a function: its own (self).
    pub before: f64,
    /// AFTER's.
    pub after: f64,
    /// The change.
    pub change: f64,
    /// Of a function: itself and all that it called (inclusive): BEFORE, AFTER and the change.
    pub within: Option<[f64; 3]>,
    /// Whether it is on one side only: `new` is not in BEFORE, `gone` not in AFTER.
    pub presence: Presence,
    /// Whether the change is more than chance; null where that can't be known.
    pub significant: Option<bool>,
    /// Of a profile: whether samples alone, each taken for itself, would scatter as much; null where that can't be known. True
    /// is no difference; false is none yet either, for runs differ too.
    pub within_sampling: Option<bool>,
}

/// On which side something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Presence {
    /// On both.
    Both,
    /// Not in BEFORE.
    New,
    /// Not in AFTER.
    Gone,
}

/// Something that is not the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// What: `kernel`, `command`, `package openssl`.
    pub what: String,
    /// In BEFORE.
    pub before: String,
    /// In AFTER.
    pub after: String,
}
