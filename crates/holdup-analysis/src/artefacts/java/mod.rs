//! What the threads of a JVM's dump do, and who is in whose way.
//!
//! In: the snapshots of [`Observed`]. Out: [`Dump`]s whose threads have a [`Doing`] and whose locks have a graph. A state
//! alone misleads: a thread in a native read is RUNNABLE and waits, a parked worker waits and is idle.

mod doing;
mod graph;
mod series;

pub(crate) use doing::Doing;
pub(crate) use graph::Graph;
pub(crate) use series::{Still, still};

use holdup_evidence::Observed;
use holdup_evidence::observed::{SeenThread, Snapshot, SnapshotKind};

/// One dump.
#[derive(Debug)]
pub(crate) struct Dump<'a> {
    /// As it was read.
    pub(crate) snapshot: &'a Snapshot,
    /// Its threads, in the same order.
    pub(crate) threads: Vec<Seen<'a>>,
}

/// A thread of a dump.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    /// As it was read.
    pub(crate) thread: &'a SeenThread,
    /// Its stack, innermost first.
    pub(crate) frames: Vec<&'a str>,
    /// What it does.
    pub(crate) doing: Doing,
}

/// The dumps of JVMs, in the order in which they were read.
pub(crate) fn dumps(observed: &Observed) -> Vec<Dump<'_>> {
    let jvm = |snapshot: &&Snapshot| snapshot.kind == SnapshotKind::Jvm;
    observed
        .snapshots
        .iter()
        .filter(jvm)
        .map(|snapshot| Dump {
            snapshot,
            threads: snapshot
                .threads
                .iter()
                .map(|thread| seen(observed, thread))
                .collect(),
        })
        .collect()
}

fn seen<'a>(observed: &'a Observed, thread: &'a SeenThread) -> Seen<'a> {
    let frames: Vec<&str> = match thread.stack {
        Some(stack) => observed.stacks.frames(stack).collect(),
        None => Vec::new(),
    };
    let doing = doing::of(thread, &frames);
    Seen {
        thread,
        frames,
        doing,
    }
}

impl<'a> Seen<'a> {
    /// The function that asked: the innermost that is not the runtime's own. Of randomness, the innermost outside of all
    /// generators: a provider's generator is called by the runtime and calls it again.
    pub(crate) fn asker(&self) -> Option<&'a str> {
        let from = if self.doing == Doing::Waits(holdup_evidence::Cause::RandomDevice) {
            let generator = |frame: &&str| doing::is_generator(frame);
            self.frames.iter().rposition(generator).map_or(0, |at| at + 1)
        } else {
            0
        };
        let outside = self.frames.get(from..).unwrap_or_default();
        outside.iter().find(|frame| !doing::of_runtime(frame)).copied()
    }

    /// For whom it asked and during what: the next frame of another class, and the next beyond it that is a beginning.
    pub(crate) fn asked_for(&self) -> (Option<&'a str>, Option<&'a str>) {
        let Some(asker) = self.asker() else {
            return (None, None);
        };
        let mut outer = self.frames.iter().skip_while(|frame| **frame != asker);
        let own = |frame: &&&str| !doing::of_runtime(frame) && doing::class(frame) != doing::class(asker);
        let next = outer.by_ref().find(own).copied();
        (next, outer.find(|frame| doing::is_beginning(frame)).copied())
    }
}
