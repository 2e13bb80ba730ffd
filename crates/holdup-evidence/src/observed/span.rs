//! A duration that an artefact states or proves.

use super::{Quote, When};
use crate::Ns;
use serde::{Deserialize, Serialize};

/// One duration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// Of what.
    pub kind: SpanKind,
    /// Its name: a unit, a pair of log lines, a command.
    #[serde(default)]
    pub name: String,
    /// When it began.
    #[serde(default)]
    pub began: Option<When>,
    /// How long.
    pub ns: Ns,
    /// The thread or request that it belongs to, where the lines carry one.
    #[serde(default)]
    pub thread: Option<String>,
    /// What is usual for its kind in the same artefact, and from how many that is known.
    #[serde(default)]
    pub usual: Option<(Ns, u64)>,
    /// Where it begins.
    #[serde(default)]
    pub quote: Quote,
    /// The line or lines, cut to a bearable length.
    #[serde(default)]
    pub text: String,
}

/// Kinds of durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpanKind {
    /// Nothing was logged for so long after a line that says that something begins; where `thread` is reported, by that thread.
    LogGap,
    /// Nothing was logged for so long after any other line: there may have been nothing to do.
    LogSilence,
    /// One thread logged two lines one after the other, the first of which says that something begins.
    LogStep,
    /// The same, and meanwhile other threads were started and ended: `name` has their number, as its first word.
    StepWithThreads,
    /// From the first to the last time in a log; `name` has the number of its lines with a time, as its first word.
    LogCovers,
    /// From the first to the last line that a JVM wrote.
    JvmLogCovers,
    /// A unit took so long to start.
    UnitStart,
    /// Between what a unit waited for and its own start nothing is reported.
    ChainHole,
    /// When, after boot, a unit or target was reached.
    UnitReached,
    /// A part of the boot: firmware, loader, kernel, initrd, userspace.
    BootPhase,
    /// The kernel logged nothing for so long, in the first minutes of a boot: `name` is the line before it, `text` that after
    /// it.
    KernelPause,
    /// All threads of a JVM stood still.
    SafepointPause,
    /// Of that: until all had come to stand.
    SafepointReach,
    /// A garbage collection stopped the threads.
    GcPause,
    /// A thread had to wait for memory from the collector.
    AllocationStall,
    /// A command ran: elapsed time.
    CommandElapsed,
    /// Of that: on a CPU, in user mode.
    CommandUser,
    /// Of that: on a CPU, in the kernel.
    CommandSystem,
    /// Of that: on a CPU, where the artefact does not tell user mode from the kernel.
    CommandCpu,
    /// So many requests took so long: `name` has their number, as its first word.
    Requests,
}
