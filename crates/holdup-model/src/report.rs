//! The report, as `holdup.report/1` has it: what every view renders and other programs read.
//!
//! Field names and meanings are a contract; fields are only ever added. Durations are integer nanoseconds in
//! fields that end in `_ns`, shares are 0..1, times are RFC 3339 with zone, every list is present.

mod account;
mod artefact;
mod boot;
mod budget;
mod churn;
mod comparison;
mod experiment;
mod fleet;
mod gate;
mod host;
mod jvm;
mod machine;
mod recording;
mod requests;
mod scaling;
mod task;

pub use account::{AccountBasis, AccountLine, AccountOutcome};
pub use artefact::{Artefact, FilesWithin, Misunderstood};
pub use boot::{Boot, BootPhase, BootWait, ChainUnit, Hole, Milestone, MilestoneKind};
pub use budget::{Budget, ThinnedStep};
pub use churn::{Births, Churn, Conversations, Ends, Handshakes};
pub use comparison::{
    AmountChange, CauseChange, Compared, Comparison, Difference, HostChange, Measure, Presence,
    ProgramChange, StackTree, TreeFrame, TreeFrameKind, TreeNode,
};
pub use experiment::{Experiment, ExperimentCause, Outcome, PredictedBy};
pub use fleet::{FleetHost, FleetPath, FleetStore, PathStep, Reached, ReachedBy};
pub use gate::{Check, Gate, GateOutcome, GateUnit, Measured};
pub use host::{BlockedTasks, Host, HostFact, HostResource, HostResourceName, Load, Runner};
pub use jvm::{Jvm, JvmDump};
pub use machine::Machine;
pub use recording::{Recording, RecordingBreak, Unlike, UnlikeCause, UnlikeSegment};
pub use requests::{ListenerRequests, MoreOf, Requests, SlowRequests, UpstreamRequests};
pub use scaling::{PerOperation, Scaling, ScalingPoint, ScalingVerdict};
pub use task::{Task, TaskAsker};

use crate::attributed::{How, HowKnown, JudgedBy, Resource};
use crate::finding::{Confidence, Severity};
use crate::host_figures::HostFigures;
use crate::prediction::Prediction;
use crate::timeline::{Timeline, Window};
use holdup_evidence::{Cause, Language, Ns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The schema's name.
pub const SCHEMA: &str = "holdup.report/1";

/// The whole report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Always `holdup.report/1`.
    pub schema: String,
    /// The tool.
    pub holdup: Tool,
    /// What was observed.
    pub subject: Subject,
    /// Where; null of artefacts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// What was seen and what was not.
    pub coverage: Coverage,
    /// Where the elapsed time went along the critical path; shares add up to 1.
    pub causes: Vec<CauseShare>,
    /// Request windows; null for a run.
    pub requests: Option<Requests>,
    /// Each thread's own time.
    pub threads: Vec<Thread>,
    /// Threads' own waits and CPU time, longest first.
    pub waits: Vec<Wait>,
    /// What is wrong, worst first.
    pub findings: Vec<Finding>,
    /// Rules that say "not that", and why.
    pub ruled_out: Vec<RuledOut>,
    /// Rules that could not tell, and what they miss.
    pub cannot_tell: Vec<CannotTell>,
    /// The artefacts that were read, and how much of each was understood; empty but for `holdup read` and `holdup boot`.
    #[serde(default)]
    pub artefacts: Vec<Artefact>,
    /// The largest things that the artefacts show, with or without a finding, the first of them first; only of `holdup read`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Vec<AccountLine>>,
    /// What the artefacts come to; only of `holdup read`, and only where they show something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<AccountOutcome>,
    /// How the machine came up; only of `holdup boot`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<Boot>,
    /// How a whole machine does; only of `holdup host`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    /// Threads, processes and connections that were made anew; only of what was watched live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub churn: Option<Churn>,
    /// Java virtual machines among what was observed.
    #[serde(default)]
    pub jvms: Vec<Jvm>,
    /// Tasks of language runtimes, as they were when observation ended: goroutines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<Task>,
    /// BEFORE beside AFTER; only of `holdup diff`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// Throughput and latency as workers are added; only of `holdup scale`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Scaling>,
    /// CMD as it is beside CMD without a wait; only of `holdup try`, whose other fields are of one run as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<Experiment>,
    /// What the elapsed time would be without a cause, worth most first; only of `holdup run --predict`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction: Option<Vec<Prediction>>,
    /// Conditions of `--fail-on` and whether one holds; only where some were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// When and where it was recorded; only of what was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<Recording>,
    /// The observed time in windows of equal length, 120 at most and more than 60 where it is longer than 60 ms; only of what was watched
    /// live.
    #[serde(default)]
    pub windows: Vec<Window>,
    /// The longest single pieces of threads' time; only of what was watched live. In a report for other programs these are the 2,000
    /// longest of them, and `rest` is empty; a page and a recording hold up to 20,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// Figures of the whole machine on the same clock; only of `holdup host`, `holdup attach` and recordings.
    #[serde(default, skip_serializing_if = "HostFigures::is_empty")]
    pub host_figures: HostFigures,
    /// The hosts; only of `holdup fleet`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<FleetHost>,
    /// What was read of the store; only of `holdup fleet`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<FleetStore>,
    /// Paths of waits that lead from one host to another; only of `holdup fleet`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<FleetPath>,
}

impl Report {
    /// The time that shares are of, in nanoseconds: of what runs already that of all its threads, else the elapsed time.
    #[must_use]
    pub fn whole_ns(&self) -> Ns {
        if self.of_threads() {
            self.causes.iter().map(|share| share.ns).sum()
        } else {
            self.subject.wall_ns
        }
    }

    /// Whether it tells of threads' time added up rather than of the elapsed time of a command.
    #[must_use]
    pub fn of_threads(&self) -> bool {
        matches!(
            self.subject.kind,
            SubjectKind::Attach | SubjectKind::Host | SubjectKind::Fleet
        )
    }
}

/// The tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Its version.
    pub version: String,
}

/// What kind of observation this was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SubjectKind {
    /// `holdup run`.
    Run,
    /// `holdup attach`.
    Attach,
    /// `holdup host`.
    Host,
    /// `holdup boot`.
    Boot,
    /// `holdup read`.
    Read,
    /// `holdup diff`.
    Diff,
    /// `holdup try`.
    Try,
    /// `holdup scale`.
    Scale,
    /// `holdup fleet`.
    Fleet,
}

/// What was observed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Subject {
    /// Kind.
    pub kind: SubjectKind,
    /// The command line.
    pub command: Vec<String>,
    /// Process ids.
    pub pids: Vec<u32>,
    /// When it began, RFC 3339.
    pub started: String,
    /// Elapsed time.
    pub wall_ns: Ns,
    /// Exit status as a shell has it (128+N for a signal); null while it runs on.
    pub exit: Option<i32>,
    /// Processes that have other numbers or paths than holdup, as those in containers.
    #[serde(default)]
    pub elsewhere: Vec<Elsewhere>,
}

/// A process in a pid or mount namespace that is not holdup's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Elsewhere {
    /// Its id as holdup has it, and as the report does.
    pub pid: u32,
    /// Its id as it has it itself; null where that is the same.
    pub pid_inside: Option<u32>,
    /// Where its paths, which the report has as it sees them, begin for holdup; null where they are the same.
    pub root: Option<String>,
    /// Its cgroup, which mostly names the container; null where it is holdup's own, the root, or not known.
    pub cgroup: Option<String>,
}

/// Where evidence came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// Tracing.
    Bpf,
    /// Sampling.
    Proc,
    /// Files.
    Artefact,
}

/// What was seen and what was not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Coverage {
    /// Source of evidence.
    pub backend: Backend,
    /// Sum over threads of the time each existed while observed.
    pub observed_ns: Option<Ns>,
    /// Of that, under a cause other than unknown.
    pub attributed_ns: Option<Ns>,
    /// Of that, unknown.
    pub unknown_ns: Option<Ns>,
    /// Dropped records.
    pub lost: Vec<Lost>,
    /// What could not be seen.
    pub not_measured: Vec<NotMeasured>,
    /// CPU time of holdup and run time of its BPF programs.
    pub own_cost_ns: Ns,
    /// How much observation might take, and what was left out for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

/// Dropped records of one class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lost {
    /// What.
    pub what: String,
    /// How many.
    pub count: u64,
    /// Thread time they stood for.
    pub ns: Ns,
}

/// Something that could not be seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NotMeasured {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
    /// What would make it visible.
    pub fix: String,
}

/// A cause and its share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CauseShare {
    /// The cause.
    #[schemars(with = "String")]
    pub cause: Cause,
    /// Total.
    pub ns: Ns,
    /// Of the whole.
    pub share: f64,
    /// How many pieces.
    pub count: u64,
    /// Longest piece.
    pub max_ns: Ns,
    /// Still waiting when observation ended.
    pub open: bool,
}

/// A thread's own time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Thread {
    /// Process id.
    pub pid: u32,
    /// Thread id; 0 for an entry that stands for several threads.
    pub tid: u32,
    /// Process name.
    pub process: String,
    /// Thread name.
    pub name: String,
    /// Its life under observation.
    pub wall_ns: Ns,
    /// Its time by cause.
    pub causes: Vec<CauseShare>,
    /// How many threads this entry stands for.
    pub threads: u32,
    /// Whether it lived on when observation ended.
    pub open: bool,
    /// The host's id, as in `hosts`; only of `holdup fleet`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// Waits of one thread with one cause, resource and asker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    /// The cause.
    #[schemars(with = "String")]
    pub cause: Cause,
    /// Total.
    pub ns: Ns,
    /// Of `coverage.observed_ns`.
    pub share: f64,
    /// How often the thread blocked.
    pub count: u64,
    /// Longest single wait.
    pub max_ns: Ns,
    /// Median.
    pub p50_ns: Ns,
    /// 99th percentile.
    pub p99_ns: Ns,
    /// When the longest began, RFC 3339.
    pub max_started: Option<String>,
    /// The same since boot.
    pub max_started_boot_ns: Option<Ns>,
    /// Exact or sampled.
    pub how: How,
    /// One standard error of `ns`.
    pub error_ns: Ns,
    /// Still open when observation ended.
    pub open: bool,
    /// Of `count`, how many ended because their time ran out.
    pub timed_out: u64,
    /// How much of the critical path these waits themselves are.
    pub path_ns: Ns,
    /// How much of it was spent elsewhere while this thread, on the path, waited here.
    pub handed_on_ns: Ns,
    /// The system call.
    pub call: Option<String>,
    /// Bytes asked for, where the call has a length.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// What was waited for.
    pub resource: Resource,
    /// Who asked.
    pub asker: Asker,
    /// The one that was in the way longest.
    pub held_by: Option<Holder>,
    /// All that were.
    pub holders: Vec<Holder>,
    /// From the waiter to where the time really went.
    pub chain: Vec<Link>,
    /// Whether `chain` is a circle: the threads in it waited for each other's locks, and none could go on.
    #[serde(default)]
    pub deadlock: bool,
    /// Who ran instead, for `sched.runqueue`.
    pub ran_instead: Vec<RanInstead>,
    /// Kernel stack the most of this time was seen in, innermost first.
    pub kernel_stack: Vec<String>,
    /// For `unknown`: why.
    pub why_unknown: Option<String>,
    /// Who judged the longest of these waits, and by what evidence; absent for CPU time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged_by: Option<JudgedBy>,
    /// The host's id, as in `hosts`; only of `holdup fleet`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// Who ran instead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RanInstead {
    /// Name.
    pub process: String,
    /// For how long.
    pub ns: Ns,
}

/// Who asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Asker {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Process name.
    pub process: String,
    /// Thread name.
    pub thread: String,
    /// The function to look at.
    pub frame: Option<String>,
    /// Its module.
    pub module: Option<String>,
    /// The whole stack, innermost first.
    pub stack: Vec<StackFrame>,
}

/// One frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StackFrame {
    /// Function.
    pub symbol: Option<String>,
    /// File the code came from.
    pub module: Option<String>,
    /// Bytes from the symbol, or from the module's start.
    pub offset: u64,
    /// Source file.
    pub file: Option<String>,
    /// Line.
    pub line: Option<u32>,
    /// Kind of code.
    pub language: Language,
    /// Inlined into the next frame.
    pub inlined: bool,
}

/// Who was in the way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Holder {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Process name.
    pub process: String,
    /// Thread name.
    pub thread: String,
    /// How that is known.
    pub how_known: HowKnown,
    /// What it did meanwhile.
    #[schemars(with = "Option<String>")]
    pub doing: Option<Cause>,
    /// How much of the waits it was in the way of.
    pub ns: Ns,
    /// Where in the application's code it stood meanwhile: the function.
    #[serde(default)]
    pub frame: Option<String>,
    /// The function's source file.
    #[serde(default)]
    pub file: Option<String>,
    /// The line in it.
    #[serde(default)]
    pub line: Option<u32>,
    /// Its stack meanwhile.
    pub stack: Vec<StackFrame>,
}

/// A link of a chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Process name.
    pub process: String,
    /// What it was in.
    #[schemars(with = "String")]
    pub cause: Cause,
    /// For how long.
    pub ns: Ns,
    /// The host's id, as in `hosts`; only of `holdup fleet`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The rule's id.
    pub rule: String,
    /// How bad.
    pub severity: Severity,
    /// One sentence.
    pub title: String,
    /// The main clause of `title`, where that has further ones: who waits for what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headline: Option<String>,
    /// The further clauses of `title`, one by one: why, where it was asked for, who waits behind it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clauses: Vec<String>,
    /// The cause.
    #[schemars(with = "String")]
    pub cause: Cause,
    /// Of the critical path.
    pub ns: Option<Ns>,
    /// The same as a share.
    pub share: Option<f64>,
    /// One standard error of `ns`, where that is an estimate; else 0.
    #[serde(default)]
    pub error_ns: Ns,
    /// What it is about.
    pub resource: Resource,
    /// Who asked.
    pub asker: Asker,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// What to do.
    pub remedies: Vec<Remedy>,
    /// What the command's elapsed time would be without the cause, where that was predicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_ns: Option<Ns>,
    /// How sure.
    pub confidence: Confidence,
    /// The host's id, as in `hosts`; only of `holdup fleet`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// One observation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// In plain words.
    pub text: String,
    /// Where it was seen.
    pub source: String,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Remedy {
    /// In plain words.
    pub text: String,
    /// The command.
    pub command: Option<String>,
    /// Whether it changes nothing that others rely on.
    pub safe: bool,
    /// What may go wrong.
    pub risk: Option<String>,
    /// Something people try that does not help here.
    pub pointless: bool,
}

/// A rule that says "not that".
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuledOut {
    /// The rule.
    pub rule: String,
    /// The number that says so.
    pub why: String,
}

/// A rule that could not tell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CannotTell {
    /// The rule.
    pub rule: String,
    /// What it misses.
    pub missing: String,
}
