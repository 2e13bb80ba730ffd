//! What a prediction does not model and would be changed by.
//!
//! In: what is taken away, the graph and what attribution made of the run. Out: [`Doubt`]s. Only what was seen raises one.

use super::record::Graph;
use super::{Doubt, share};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::Attributed;

/// What counts, as a share: of the waits in question, or of the elapsed time.
const COUNTS: f64 = 0.05;

/// What is for the most part so, as a share.
const MIN_SHARE: f64 = 0.5;

/// Sleeps of one thread from which they may be looks at something.
const AGAIN_AND_AGAIN: u64 = 5;

/// How much longer than the median the long ones of equal sleeps are, as a half of it.
const EQUAL: u64 = 2;

pub(super) fn of(cause: Cause, factor: f64, graph: &Graph, run: &Attributed) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let of_disk = |cause: Cause| {
        matches!(
            cause,
            Cause::DiskRead
                | Cause::DiskWrite
                | Cause::DiskSync
                | Cause::DiskJournal
                | Cause::DiskDiscard
                | Cause::DiskWriteback
                | Cause::MemPagefault
                | Cause::MemSwapin
        )
    };
    // What is taken away whole takes its own queue with it; another cause's waits, and what is left, would change.
    let (beside, own) = overlaps(graph, of_disk, cause);
    let queues = if factor > 0.0 { beside.max(own) } else { beside };
    if of_disk(cause) && share(queues, graph.time_for(cause)) > COUNTS {
        doubts.push(Doubt::DeviceQueueing);
    }
    let commits = matches!(cause, Cause::DiskSync | Cause::DiskJournal);
    if commits && factor > 0.0 && share(own, graph.time_for(cause)) > COUNTS {
        doubts.push(Doubt::GroupCommit);
    }
    if matches!(cause, Cause::DiskWriteback | Cause::DiskWrite) {
        doubts.push(Doubt::DeferredWriteback);
    }
    // A lock is not waited for as work is: with another lock the same work is done side by side.
    let lock = cause.id().starts_with("lock.") || cause == Cause::RuntimeInterpreter;
    if !lock && share(graph.handed_on(cause), graph.time_for(cause)) > MIN_SHARE {
        doubts.push(Doubt::OthersWork);
    }
    let looks = run.waits.iter().any(|row| {
        row.cause == cause
            && row.count >= AGAIN_AND_AGAIN
            && row.p99 <= row.p50 + row.p50 / EQUAL
            && share(row.ns, run.elapsed) > COUNTS
    });
    if cause == Cause::TimerSleep && looks {
        doubts.push(Doubt::Polling);
    }
    let spins = run.waits.iter().filter(|row| row.resource.detail.spins.is_some());
    let spins: Ns = spins.map(|row| row.ns).sum();
    if share(spins, run.elapsed) > COUNTS {
        doubts.push(Doubt::Spinning);
    }
    let throttled: Ns = graph.lines.iter().map(|line| line.throttled).sum();
    if share(throttled, run.elapsed) > COUNTS {
        doubts.push(Doubt::Quota);
    }
    doubts
}

/// For how long a wait for the disk with this cause went on beside one with another, and beside one with the same.
fn overlaps(graph: &Graph, of_disk: impl Fn(Cause) -> bool, wanted: Cause) -> (Ns, Ns) {
    let mut borders: Vec<(Ns, i64, bool)> = Vec::new();
    for (cause, length, end) in graph.waits().filter(|(cause, ..)| of_disk(*cause)) {
        borders.push((end.saturating_sub(length), 1, cause == wanted));
        borders.push((end, -1, cause == wanted));
    }
    borders.sort_unstable();
    let (mut own, mut others, mut before) = (0i64, 0i64, 0);
    let (mut beside, mut together): (Ns, Ns) = (0, 0);
    for (at, change, of_wanted) in borders {
        let passed = at - before;
        if own > 0 && others > 0 {
            beside += passed;
        }
        if own > 1 {
            together += passed;
        }
        before = at;
        *(if of_wanted { &mut own } else { &mut others }) += change;
    }
    (beside, together)
}
