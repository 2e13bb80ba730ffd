//! What a recorder's segment keeps, whatever the machine did.
//!
//! The problem: a machine that is busy with thousands of short programs has thousands of kinds of waits a minute and a million single
//! ones; a recorder that keeps a day or months of minutes has ten megabytes for an hour of them. The choice: a number of rows and of
//! pieces of the time line. The rows that cost most stand as they are; the others are one for each program and cause, and
//! their time, count and longest are kept. The ledgers of the threads stay as they are, so every sum stays. In: a segment. Out: the same
//! within these bounds, which says what was summed.

use crate::Segment;
use crate::merge::{percentile, waits};
use holdup_evidence::facts::Workers;
use holdup_evidence::{Cause, Ns, SystemFacts};
use holdup_model::attributed::{Asker, AttributedWait, Resource, ThreadName};
use holdup_model::timeline::Timeline;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

/// Rows of waits that are reported one by one; of an ordinary server that is all of them.
pub const MAX_WAITS: usize = 400;

/// Rows of these that are of processes that observation found to be in somebody's way, however little they did. What such a server was in is all
/// that tells why its clients wait, and it may be one idle thread of hundreds.
const MAX_POINTED_AT: usize = 100;

/// Programs that the other rows are distinguished by; those of further ones are one row a cause.
const MOST_PROGRAMS: usize = 40;

/// Single pieces on the time line, some 16 bytes each once they are packed.
pub const MAX_PIECES: usize = 1_500;

/// What stands in the place of the names of further programs.
const OTHERS: &str = "(other programs)";

/// Keeps a segment within its bounds.
pub fn bound(segment: &mut Segment) {
    let pointed_at = pointed_at(&segment.facts);
    let attributed = &mut segment.attributed;
    let summed = fold_waits(&mut attributed.waits, &pointed_at);
    let shown = attributed.timeline.pieces.len();
    if let Some(places) = &summed {
        for piece in &mut attributed.timeline.pieces {
            piece.wait = piece.wait.and_then(|wait| places.get(wait as usize).copied());
        }
    }
    shorten(&mut attributed.timeline);
    let not_measured = &mut attributed.coverage.not_measured;
    if summed.is_some() {
        not_measured.push((
            "short waits one by one".to_owned(),
            format!(
                "a segment stores the {MAX_WAITS} most expensive kinds of waits; the others are summed up by program and cause"
            ),
            "--on CONDITION keeps all of them, or `holdup attach` while it lasts".to_owned(),
        ));
    }
    if attributed.timeline.pieces.len() < shown || attributed.timeline.left_out > 0 {
        not_measured.push((
            "short intervals of the time line".to_owned(),
            format!(
                "a segment stores the {MAX_PIECES} longest intervals; the others are in the sums of each thread and window"
            ),
            "--on CONDITION keeps 20,000 around a moment".to_owned(),
        ));
    }
}

/// Leaves the pieces that say most: first those that are no waits for work, then the longest.
fn shorten(timeline: &mut Timeline) {
    if timeline.pieces.len() > MAX_PIECES {
        let pieces = &mut timeline.pieces;
        pieces.sort_by_key(|piece| (piece.cause == Cause::Idle, Reverse(piece.ns)));
        timeline.left_out += (pieces.len() - MAX_PIECES) as u64;
        pieces.truncate(MAX_PIECES);
    }
    // What the others come to is in the windows, and by thread in the ledgers; here it would be ten times the pieces.
    *timeline = timeline.longest(MAX_PIECES);
}

/// Servers whose clients are queued, and sessions of databases that have or want a lock.
fn pointed_at(facts: &SystemFacts) -> BTreeSet<u32> {
    let queues = facts.unaccepted.iter().flatten();
    let servers = queues.flat_map(|queue| queue.processes.iter().copied());
    let stands = |one: &&Workers| one.at.iter().any(|at| at.before > 0 && at.after > 0);
    let workers = facts.workers.iter().filter(stands);
    let workers = workers.flat_map(|one| one.pids.iter().copied());
    let set_aside = facts.set_aside.iter().flatten().map(|one| one.pid);
    let sessions = facts.lock_sessions.iter().map(|one| one.pid);
    servers.chain(workers).chain(set_aside).chain(sessions).collect()
}

/// Folds what is beyond the bound. Returns where each row is then, if any was folded.
fn fold_waits(waits: &mut Vec<AttributedWait>, pointed_at: &BTreeSet<u32>) -> Option<Vec<u32>> {
    if waits.len() <= MAX_WAITS {
        return None;
    }
    let mut order: Vec<usize> = (0..waits.len()).collect();
    let mut first: Vec<usize> = order.clone();
    first.retain(|at| pointed_at.contains(&waits[*at].asker.name.pid));
    first.sort_by_key(|at| (Reverse(waits[*at].ns), *at));
    first.truncate(MAX_POINTED_AT);
    let first: BTreeSet<usize> = first.into_iter().collect();
    // A row of a deadlock is a finding by itself, whatever it has cost so far. What rests is alike, and there is most of it.
    order.sort_by_key(|at| {
        let wait = &waits[*at];
        (
            !wait.deadlock,
            !first.contains(at),
            wait.cause.rests(),
            Reverse(wait.path_ns),
            Reverse(wait.ns),
            *at,
        )
    });
    let rest = order.split_off(MAX_WAITS);
    let programs = programs(rest.iter().map(|at| &waits[*at]));
    let mut old: Vec<Option<AttributedWait>> = std::mem::take(waits).into_iter().map(Some).collect();
    let mut take = |at: usize| old[at].take().expect("each row has one place");
    let mut rows: Vec<(AttributedWait, Vec<usize>)> = order.iter().map(|at| (take(*at), vec![*at])).collect();
    rows.extend(folded(&rest, &programs, &mut take));
    rows.sort_by_key(|(row, _)| (Reverse(row.ns), row.cause, row.asker.name.pid, row.asker.name.tid));
    let mut places = vec![0; old.len()];
    for (place, (row, from)) in (0..).zip(rows) {
        from.into_iter().for_each(|at| places[at] = place);
        waits.push(row);
    }
    Some(places)
}

/// The names of the programs that most of these rows' time is of.
fn programs<'a>(rows: impl Iterator<Item = &'a AttributedWait>) -> Vec<String> {
    let mut times: HashMap<&str, Ns> = HashMap::new();
    for row in rows {
        let time = times.entry(&row.asker.name.process).or_default();
        *time = time.saturating_add(row.ns);
    }
    let mut times: Vec<(&str, Ns)> = times.into_iter().collect();
    times.sort_by_key(|(name, ns)| (Reverse(*ns), *name));
    times.truncate(MOST_PROGRAMS);
    times.into_iter().map(|(name, _)| name.to_owned()).collect()
}

/// Takes off what is true of this row and not of a sum.
fn one_of_many(row: &mut AttributedWait) {
    row.asker = Asker {
        name: ThreadName {
            tid: 0,
            thread: String::new(),
            ..std::mem::take(&mut row.asker.name)
        },
        ..Asker::default()
    };
    row.resource = Resource {
        kind: row.resource.kind,
        name: row.resource.kind.many().to_owned(),
        ..Resource::default()
    };
    row.kernel_stack.clear();
    row.chain.clear();
    row.bytes = None;
    row.holders.iter_mut().for_each(|holder| holder.stack.clear());
}

/// One row a program and cause, with the rows that it is made of.
fn folded(
    rest: &[usize],
    programs: &[String],
    take: &mut impl FnMut(usize) -> AttributedWait,
) -> Vec<(AttributedWait, Vec<usize>)> {
    struct Sum {
        row: AttributedWait,
        from: Vec<usize>,
        p50: Vec<(Ns, u64)>,
        p99: Vec<(Ns, u64)>,
    }
    let mut sums: HashMap<(String, Cause), Sum> = HashMap::new();
    for at in rest {
        let mut row = take(*at);
        one_of_many(&mut row);
        let name = &mut row.asker.name;
        if !programs.contains(&name.process) {
            (name.pid, name.process) = (0, OTHERS.to_owned());
        }
        let key = (name.process.clone(), row.cause);
        let parts = ((row.p50, row.count), (row.p99, row.count));
        match sums.get_mut(&key) {
            Some(sum) => {
                let open = sum.row.open || row.open;
                let (pid, call) = (row.asker.name.pid, row.call.clone());
                if sum.row.why_unknown != row.why_unknown {
                    sum.row.why_unknown = None;
                }
                let of_one = sum.row.asker.name.pid == pid;
                waits::add(&mut sum.row, row);
                sum.row.open = open;
                if !of_one {
                    sum.row.asker.name.pid = 0;
                }
                if sum.row.call != call {
                    sum.row.call = None;
                }
                sum.from.push(*at);
                sum.p50.push(parts.0);
                sum.p99.push(parts.1);
            }
            None => {
                let (p50, p99) = (vec![parts.0], vec![parts.1]);
                let from = vec![*at];
                sums.insert(key, Sum { row, from, p50, p99 });
            }
        }
    }
    let finished = sums.into_values().map(|mut sum| {
        sum.row.p50 = percentile(&mut sum.p50, 50);
        sum.row.p99 = percentile(&mut sum.p99, 99);
        (sum.row, sum.from)
    });
    finished.collect()
}
