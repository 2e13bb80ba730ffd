//! A part of a segment: one process, as if it alone had been observed.

use crate::Segment;
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::Attributed;
use holdup_model::attributed::ThreadName;
use holdup_model::report::SubjectKind;
use holdup_model::timeline::Timeline;

/// Leaves what is of processes of this name, or of this id. What is then told is threads' time, as of `attach`: a path
/// through the whole run is none of one process. Returns whether there is such a process.
pub fn only_process(segment: &mut Segment, process: &str) -> bool {
    let pid: Option<u32> = process.parse().ok();
    let of = |name: &ThreadName| name.process == process || Some(name.pid) == pid;
    let attributed = &mut segment.attributed;
    attributed.threads.retain(|thread| of(&thread.name));
    attributed.waits.retain(|wait| of(&wait.asker.name));
    attributed.connections.retain(|one| of(&one.by));
    // They name threads and waits by number, and tell of all.
    attributed.windows.clear();
    attributed.timeline = Timeline::default();
    // Whose requests they were is not kept.
    attributed.requests = None;
    if let Some(churn) = &mut attributed.churn {
        churn.made.retain(|births| of(&births.by.name));
        churn.connections.retain(|one| of(&one.by.name));
        churn.ends.retain(|one| of(&one.by));
    }
    if !attributed.of_threads {
        attributed.wall = attributed.elapsed;
    }
    as_threads(attributed);
    let threads = attributed.threads.iter();
    let unknown = |causes: &std::collections::BTreeMap<Cause, _>| {
        causes
            .get(&Cause::Unknown)
            .map_or(0, |tally: &holdup_model::attributed::Tally| tally.ns)
    };
    let coverage = &mut attributed.coverage;
    coverage.observed = threads
        .clone()
        .map(|thread| thread.wall)
        .fold(0, Ns::saturating_add);
    coverage.unknown = threads
        .map(|thread| unknown(&thread.causes))
        .fold(0, Ns::saturating_add);
    coverage.attributed = coverage.observed.saturating_sub(coverage.unknown);
    let head = &mut segment.head;
    head.kind = SubjectKind::Attach;
    head.exit = None;
    head.command = vec![format!("process {process}")];
    let pids: std::collections::BTreeSet<u32> = segment
        .attributed
        .threads
        .iter()
        .map(|thread| thread.name.pid)
        .collect();
    head.pids.retain(|pid| pids.contains(pid));
    head.elsewhere.retain(|one| pids.contains(&one.pid));
    !pids.is_empty()
}

/// Tells all time as that of threads: every wait costs what it lasted, but for waits for work, which cost nobody anything.
pub(crate) fn as_threads(attributed: &mut Attributed) {
    attributed.of_threads = true;
    attributed.path.clear();
    attributed.elapsed = 0;
    for wait in &mut attributed.waits {
        wait.handed_on_ns = 0;
        wait.path_ns = match wait.cause {
            Cause::Idle => 0,
            _ => wait.ns,
        };
        attributed.elapsed = attributed.elapsed.saturating_add(wait.path_ns);
        let tally = attributed.path.entry(wait.cause).or_default();
        tally.ns = tally.ns.saturating_add(wait.ns);
        tally.count = tally.count.saturating_add(wait.count);
        tally.max = tally.max.max(wait.max);
        tally.open |= wait.open;
    }
    attributed.elapsed = attributed.elapsed.max(attributed.wall);
}
