//! Windows and the time line agree with the ledgers, whatever happened.

use super::simulator::Machine;
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::Attributed;
use holdup_model::timeline::{MAX_PIECES, MAX_WINDOWS, Piece};
use std::collections::BTreeMap;

/// CPU time is split by samples, so its causes are one here.
fn known(cause: Cause) -> Cause {
    match cause.on_cpu() {
        true => Cause::CpuUser,
        false => cause,
    }
}

fn add(sums: &mut BTreeMap<Cause, Ns>, cause: Cause, ns: Ns) {
    if ns > 0 {
        *sums.entry(cause).or_default() += ns;
    }
}

/// Whether windows hold what the threads' ledgers do, and pieces with what is left hold what the windows do.
pub(super) fn agrees(run: &Attributed) -> Result<(), String> {
    if run.windows.len() > MAX_WINDOWS || run.timeline.pieces.len() > MAX_PIECES {
        return Err("too many".to_owned());
    }
    let mut ledgers = BTreeMap::new();
    for (cause, tally) in run.threads.iter().flat_map(|thread| &thread.causes) {
        add(&mut ledgers, *cause, tally.ns);
    }
    let mut windows = BTreeMap::new();
    for (cause, ns) in run.windows.iter().flat_map(|window| &window.causes) {
        add(&mut windows, *cause, *ns);
    }
    if ledgers != windows {
        return Err(format!("threads have {ledgers:?}, windows {windows:?}"));
    }
    let mut path = BTreeMap::new();
    for (cause, ns) in run.windows.iter().flat_map(|window| &window.path) {
        add(&mut path, *cause, *ns);
    }
    let whole: BTreeMap<Cause, Ns> = run.path.iter().map(|(cause, tally)| (*cause, tally.ns)).collect();
    // Where nobody was seen there is a path of nothing known, and no window.
    if !run.of_threads && !run.windows.is_empty() && path != whole {
        return Err(format!("the path is {whole:?}, in windows {path:?}"));
    }
    for pair in run.windows.windows(2) {
        if pair[0].from.saturating_add(pair[0].ns) != pair[1].from || pair[1].ns > pair[0].ns {
            return Err(format!("windows {:?} and {:?}", pair[0], pair[1]));
        }
    }
    no_overlap(run)?;
    for index in 0..run.windows.len() {
        let window = &run.windows[index];
        // The last is as long as the others for what comes after the end.
        let until = window.from.saturating_add(run.windows[0].ns);
        let mut shown = BTreeMap::new();
        for piece in &run.timeline.pieces {
            add(&mut shown, known(piece.cause), within(piece, window.from, until));
        }
        for rest in &run.timeline.rest {
            let its = index
                .checked_sub(rest.first as usize)
                .and_then(|at| rest.ns.get(at));
            add(&mut shown, known(rest.cause), its.copied().unwrap_or(0));
        }
        let mut all = BTreeMap::new();
        for (cause, ns) in &window.causes {
            add(&mut all, known(*cause), *ns);
        }
        let total = |sums: &BTreeMap<Cause, Ns>| sums.values().sum::<Ns>();
        if total(&shown) != total(&all) {
            return Err(format!(
                "{} of {} in window {index}: {shown:?}, {all:?}",
                total(&shown),
                total(&all)
            ));
        }
        // Where user stacks tell what waits were for, a window's waits are split by them.
        let told_by_stacks = run.waits.iter().any(|row| row.cause == Cause::RuntimeInterpreter);
        if shown != all && !told_by_stacks {
            return Err(format!("window {index}: {shown:?}, {all:?}"));
        }
    }
    Ok(())
}

fn within(piece: &Piece, from: Ns, until: Ns) -> Ns {
    (piece.start + piece.ns)
        .min(until)
        .saturating_sub(piece.start.max(from))
}

fn no_overlap(run: &Attributed) -> Result<(), String> {
    for pair in run.timeline.pieces.windows(2) {
        if pair[0].task == pair[1].task && pair[0].start + pair[0].ns > pair[1].start {
            return Err(format!("{:?} and {:?} overlap", pair[0], pair[1]));
        }
    }
    for piece in &run.timeline.pieces {
        let task = &run.timeline.tasks[piece.task as usize];
        let entry = &run.threads[task.thread.ok_or("a piece of nobody")? as usize];
        let Some(row) = piece.wait.map(|row| &run.waits[row as usize]) else {
            continue;
        };
        if row.cause != piece.cause || row.asker.name != entry.name {
            return Err(format!("{piece:?} of {entry:?} is in {row:?}"));
        }
    }
    Ok(())
}

/// Whether windows and pieces say what happened on a machine, and when.
pub(super) fn truly(run: &Attributed, machine: &Machine) -> Result<(), String> {
    // Of running and queueing without a wait in between, only the sums are reported; user stacks tell more than the machine knows.
    let look_up = |cause: Cause| match cause {
        cause if cause.on_cpu() => Cause::CpuUser,
        Cause::SchedRunqueue | Cause::SchedThrottled => Cause::CpuUser,
        other => other,
    };
    let when = machine.when();
    for window in &run.windows {
        let (from, until) = (run.began + window.from, run.began + window.from + window.ns);
        let mut truth = BTreeMap::new();
        for (_, cause, begin, end) in &when {
            add(
                &mut truth,
                look_up(*cause),
                (*end).min(until).saturating_sub(from.max(*begin)),
            );
        }
        let mut seen = BTreeMap::new();
        for (cause, ns) in &window.causes {
            add(&mut seen, look_up(*cause), *ns);
        }
        if seen != truth {
            return Err(format!("{truth:?} happened in {window:?}"));
        }
    }
    let mut tids: Vec<(u32, u32)> = run.timeline.tasks.iter().map(|task| (task.name.tid, 0)).collect();
    for piece in &run.timeline.pieces {
        let task = &mut tids[piece.task as usize];
        task.1 += 1;
        let begin = run.began + piece.start;
        let its = (task.0, piece.cause, begin, begin + piece.ns);
        if look_up(piece.cause) != Cause::CpuUser && !when.contains(&its) {
            return Err(format!("{piece:?} of {} did not happen", task.0));
        }
    }
    Ok(())
}

/// Whether windows have the path that really was in them, where no memory told later what a wait was for.
pub(super) fn path_truly(run: &Attributed, machine: &Machine) -> Result<(), String> {
    let look_up = |cause: Cause| match cause {
        cause if cause.on_cpu() => Cause::CpuUser,
        Cause::SchedRunqueue | Cause::SchedThrottled => Cause::CpuUser,
        Cause::PollWait => Cause::NetReceive,
        other => other,
    };
    let when = machine.walk_when();
    for window in &run.windows {
        let (from, until) = (run.began + window.from, run.began + window.from + window.ns);
        let mut truth = BTreeMap::new();
        for (cause, begin, end) in &when {
            add(
                &mut truth,
                look_up(*cause),
                (*end).min(until).saturating_sub(from.max(*begin)),
            );
        }
        let mut seen = BTreeMap::new();
        for (cause, ns) in &window.path {
            add(&mut seen, look_up(*cause), *ns);
        }
        if seen != truth {
            return Err(format!("the path was {truth:?} in {window:?}"));
        }
    }
    Ok(())
}
