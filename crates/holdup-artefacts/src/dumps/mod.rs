//! What the threads of a dump do, and who is in whose way.
//!
//! In: the snapshots of [`Observed`]. Out: [`Dump`]s whose threads have a [`Doing`] and whose locks have a graph. A state
//! alone misleads: a thread in a native read is RUNNABLE and waits, a parked worker waits and is idle.

mod doing;
mod dotnet;
mod go;
mod graph;
mod java;
mod native;
mod python;
mod ruby;
mod series;

pub use doing::Doing;
pub use graph::Graph;
pub use series::{Still, still};

use holdup_evidence::Observed;
use holdup_evidence::observed::{LockWait, SeenThread, Snapshot, SnapshotKind, StackId, State};
use holdup_knowledge::java as names;
use std::collections::HashMap;
use std::rc::Rc;

/// One dump.
#[derive(Debug)]
pub struct Dump<'a> {
    /// As it was read.
    pub snapshot: &'a Snapshot,
    /// Its threads, in the same order.
    pub threads: Vec<DumpThread<'a>>,
}

/// A thread of a dump.
#[derive(Debug)]
pub struct DumpThread<'a> {
    /// As it was read.
    pub thread: &'a SeenThread,
    /// What it is a thread of.
    pub kind: SnapshotKind,
    /// The program's name, where the dump tells it.
    pub program: Option<&'a str>,
    /// Its stack, innermost first.
    pub frames: Rc<[&'a str]>,
    /// What it does.
    pub doing: Doing,
}

/// The dumps, in the order in which they were read.
pub fn dumps(observed: &Observed) -> Vec<Dump<'_>> {
    // A list of tasks by the kernel shows states, and no program's frames.
    let dump = |snapshot: &&Snapshot| snapshot.kind != SnapshotKind::Kernel;
    let mut known = Known::default();
    observed
        .snapshots
        .iter()
        .filter(dump)
        .map(|snapshot| Dump {
            snapshot,
            threads: snapshot
                .threads
                .iter()
                .map(|thread| known.seen(observed, snapshot, thread))
                .collect(),
        })
        .collect()
}

/// What a thread with these Java frames does, and who asked, where nothing but the frames is known.
pub fn by_frames<'a>(frames: &[&'a str]) -> (Doing, Option<&'a str>) {
    const PARKED: [&str; 4] = [
        "jdk.internal.misc.Unsafe.park",
        "sun.misc.Unsafe.park",
        "java.lang.Object.wait",
        "java.lang.VirtualThread.park",
    ];
    let parked = frames
        .first()
        .is_some_and(|top| PARKED.iter().any(|method| top.starts_with(method)));
    let thread = SeenThread {
        state: if parked { State::Waiting } else { State::Unknown },
        ..SeenThread::default()
    };
    let doing = java::of(&thread, frames);
    let asker = frames.iter().find(|frame| !names::of_runtime(frame)).copied();
    (doing, asker)
}

/// What tells what a thread does: its stack, its state by two accounts, how it waits for a lock, and whether that is one somebody
/// holds.
type Stands<'a> = (
    SnapshotKind,
    Option<StackId>,
    State,
    &'a str,
    Option<Option<LockWait>>,
    bool,
);

/// Stacks and what they show, each looked at once: most threads stand where others stand, or stood in the dump before.
#[derive(Default)]
struct Known<'a> {
    frames: HashMap<StackId, Rc<[&'a str]>>,
    doing: HashMap<Stands<'a>, Doing>,
}

impl<'a> Known<'a> {
    fn seen(
        &mut self,
        observed: &'a Observed,
        snapshot: &'a Snapshot,
        thread: &'a SeenThread,
    ) -> DumpThread<'a> {
        let frames = match thread.stack {
            Some(stack) => {
                let of = || observed.stacks.frames(stack).collect();
                Rc::clone(self.frames.entry(stack).or_insert_with(of))
            }
            None => Rc::default(),
        };
        let waits = thread.waits_for.as_ref().map(|lock| lock.wait);
        let kind = snapshot.kind;
        let held = java::held(thread);
        let stands = (
            kind,
            thread.stack,
            thread.state,
            thread.words.as_str(),
            waits,
            held,
        );
        let doing = *self
            .doing
            .entry(stands)
            .or_insert_with(|| doing::of(kind, thread, &frames));
        DumpThread {
            thread,
            kind,
            program: snapshot.program.as_deref(),
            frames,
            doing,
        }
    }
}

/// Functions that return when another thread has ended, without their classes.
const JOINS: [&str; 5] = [
    "join",
    "Join",
    "JoinInternal",
    "_wait_for_tstate_lock",
    "pthread_join",
];

impl<'a> DumpThread<'a> {
    /// Whether it waits for another thread's end.
    pub fn joins(&self) -> bool {
        let asker = self.asker();
        let within = self.frames.iter().take_while(|frame| Some(**frame) != asker);
        let function = |frame: &&str| {
            let name = frame.split('(').next().unwrap_or_default();
            name.rsplit(['.', ':', '#']).next().unwrap_or_default().to_owned()
        };
        let joins = |frame: &&str| JOINS.contains(&function(frame).as_str());
        self.doing == Doing::WaitsForTask && within.copied().any(|frame| joins(&frame))
    }

    /// The function that asked: the innermost that is not the runtime's own. Of randomness, the innermost outside of all
    /// generators: a provider's generator is called by the runtime and calls it again.
    pub fn asker(&self) -> Option<&'a str> {
        let from = if self.doing == Doing::Waits(holdup_evidence::Cause::RandomDevice) {
            let generator = |frame: &&str| names::is_generator(frame);
            self.frames.iter().rposition(generator).map_or(0, |at| at + 1)
        } else {
            0
        };
        let outside = self.frames.get(from..).unwrap_or_default();
        let own = |frame: &&&str| !doing::of_runtime(self.kind, frame);
        outside.iter().find(own).copied()
    }

    /// The method in which it waits for a lock of `java.util.concurrent`, where the dump has stacks and no locks (a dump
    /// to a file before JDK 24).
    pub fn takes_untold_lock(&self) -> Option<&'a str> {
        const TAKE: [&str; 4] = [
            "java.util.concurrent.locks.ReentrantLock.lock(",
            "java.util.concurrent.locks.ReentrantLock.lockInterruptibly(",
            "java.util.concurrent.locks.ReentrantReadWriteLock$ReadLock.lock(",
            "java.util.concurrent.locks.ReentrantReadWriteLock$WriteLock.lock(",
        ];
        const PARK: [&str; 2] = ["java.lang.VirtualThread.park", "jdk.internal.misc.Unsafe.park"];
        let parked = self
            .frames
            .first()
            .is_some_and(|top| PARK.iter().any(|method| top.starts_with(method)));
        if !parked || self.thread.waits_for.is_some() {
            return None;
        }
        let by = self
            .frames
            .iter()
            .take(names::NEAR)
            .find(|frame| TAKE.iter().any(|method| frame.starts_with(method)));
        by.copied()
    }

    /// For whom it asked and during what: the next frame of another class, and the next beyond it that is a beginning.
    pub fn asked_for(&self) -> (Option<&'a str>, Option<&'a str>) {
        let Some(asker) = self.asker() else {
            return (None, None);
        };
        let mut outer = self.frames.iter().skip_while(|frame| **frame != asker);
        let own = |frame: &&&str| !names::of_runtime(frame) && names::class(frame) != names::class(asker);
        let next = outer.by_ref().find(own).copied();
        (next, outer.find(|frame| java::is_beginning(frame)).copied())
    }
}
