//! When the time passed: in windows of equal length, and piece by piece.
//!
//! A ledger says how much; to compare parts of a run with each other, or to draw it, one must know when. Windows hold all time, to the
//! nanosecond. Of single pieces only the longest are kept; what the others come to is known by thread and window, so that a picture of
//! both is right from however far one looks.

use crate::attributed::ThreadName;
use holdup_evidence::{Cause, Ns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// Windows at most.
pub const MAX_WINDOWS: usize = 120;

/// The shortest window, in nanoseconds. Windows are this long, or twice, four times … as long: as long as it takes for
/// [`MAX_WINDOWS`] to be enough. So an observation of 61 windows' length or more has more than 60 of them.
pub const MIN_WINDOW_NS: Ns = 1_000_000;

/// Single pieces kept: some 60 bytes each in memory, and 2 MB of a page that shows them.
pub const MAX_PIECES: usize = 20_000;

/// A window of the observed time. All are equally long, but for the last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Window {
    /// When it begins, since observation began.
    #[serde(rename = "from_ns")]
    pub from: Ns,
    /// How long it is.
    pub ns: Ns,
    /// Threads' own time in it by cause. Over all windows this is what the threads' ledgers say.
    #[schemars(with = "BTreeMap<String, Ns>")]
    pub causes: BTreeMap<Cause, Ns>,
    /// Of a run: the elapsed time in it along the critical path, by cause; over all windows that is the run's. Where one call waits several
    /// times, what the thread ran in between stands before its waits.
    #[schemars(with = "BTreeMap<String, Ns>")]
    pub path: BTreeMap<Cause, Ns>,
    /// Requests that were answered in it. Where only a sample of them is told, each counts for those that it stands for.
    pub requests: u64,
    /// How long these took, added up.
    pub requests_ns: Ns,
}

/// Single pieces of time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Timeline {
    /// Whom pieces belong to, and who ended them.
    pub tasks: Vec<Task>,
    /// The longest, by task and then by begin. Those of one task do not overlap.
    pub pieces: Vec<Piece>,
    /// What the pieces that are not there come to. With `pieces`, cut at the borders of windows, it is all of a thread's time: of a
    /// window exactly, and of a cause in it too unless samples split that.
    pub rest: Vec<Rest>,
    /// How many pieces are not there.
    pub left_out: u64,
}

/// A task on the time line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Task {
    /// Which.
    pub name: ThreadName,
    /// Index of the entry among the threads that it belongs to, which may stand for several; `None` of one that was not observed.
    pub thread: Option<u32>,
}

/// A wait, or time on a CPU or queueing for one without a wait in between.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Piece {
    /// Whose: index among the tasks.
    pub task: u32,
    /// When it began, since observation began.
    #[serde(rename = "start_ns")]
    pub start: Ns,
    /// How long it was within the observed time.
    pub ns: Ns,
    /// What for. Of time on a CPU: what most samples in it showed.
    #[schemars(with = "String")]
    pub cause: Cause,
    /// Index of the row among the waits that it belongs to; `None` where who asked in it is not known, and the rows differ by that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<u32>,
    /// Who or what ended a wait; `None` of time on a CPU or queueing, and of a wait that went on as observation ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<EndedBy>,
    /// How much longer it is, because it had begun before observation did.
    #[serde(default, rename = "before_ns", skip_serializing_if = "is_nothing")]
    pub before: Ns,
    /// Whether it went on as observation ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
}

/// Who or what ended a wait. A task that an interrupt happened upon is never named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EndedBy {
    /// A task in its own context: index among the tasks.
    Task(u32),
    /// Its time ran out.
    Timer,
    /// A device: a disk, the network.
    Device,
    /// An interrupt, of a timer or a device.
    Interrupt,
    /// That could not be known.
    Unknown,
}

/// What the pieces of a thread that are not shown come to, of one cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rest {
    /// Index of the entry among the threads.
    pub thread: u32,
    /// The cause.
    #[schemars(with = "String")]
    pub cause: Cause,
    /// Index of the first window with some.
    pub first: u32,
    /// How much, in that window and those that follow it.
    pub ns: Vec<Ns>,
}

/// What is left out of JSON: most pieces did not begin before observation.
// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_nothing(ns: &Ns) -> bool {
    *ns == 0
}

/// Single pieces in a report for other programs, which is a text with a line for each of their fields.
pub const MAX_PIECES_IN_JSON: usize = 2_000;

impl Timeline {
    /// So many of the longest pieces, without what the others come to: that is in the windows.
    #[must_use]
    pub fn longest(&self, most: usize) -> Timeline {
        let mut pieces = self.pieces.clone();
        pieces.sort_by_key(|piece| std::cmp::Reverse(piece.ns));
        pieces.truncate(most);
        pieces.sort_by_key(|piece| (piece.task, piece.start));
        let mut tasks = Vec::new();
        let mut places: HashMap<u32, u32> = HashMap::new();
        let mut place = |task: &mut u32| {
            *task = *places.entry(*task).or_insert_with(|| {
                tasks.push(self.tasks.get(*task as usize).cloned().unwrap_or_default());
                u32::try_from(tasks.len() - 1).expect("two tasks a piece at most")
            });
        };
        for piece in &mut pieces {
            place(&mut piece.task);
            if let Some(EndedBy::Task(task)) = &mut piece.ended_by {
                place(task);
            }
        }
        Timeline {
            left_out: self.left_out + (self.pieces.len() - pieces.len()) as u64,
            tasks,
            pieces,
            rest: Vec::new(),
        }
    }
}
