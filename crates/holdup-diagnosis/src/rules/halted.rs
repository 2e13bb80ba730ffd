//! Stopped and traced tasks, as lists of them show: the verdict of `stopped` on artefacts.
//!
//! In: [`Observed`]. Out: a verdict. A process that its user suspended at a terminal is no trouble; a server that stands
//! still is. A tracer holds what it traces for moments, so only what is held in every list counts.

use super::{Extend, RuleId, Run, blocked, say};
use holdup_evidence::observed::{SeenThread, Snapshot, SnapshotKind, State};
use holdup_evidence::{Cause, Observed};
use holdup_model::attributed::{Asker, Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// What a list does not tell.
const MISSING: &str = "which tasks are stopped (T) or traced (t): `ps -eo pid,ppid,stat,tty,comm`";

/// The verdict.
pub(super) fn seen(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let kernel = |snapshot: &&Snapshot| snapshot.kind == SnapshotKind::Kernel && snapshot.states;
    let lists: Vec<&Snapshot> = observed.snapshots.iter().filter(kernel).collect();
    let Some(first) = lists.first() else {
        return Verdict::CannotTell(MISSING.to_owned());
    };
    let halted = |state| {
        let mut tasks: Vec<&SeenThread> = Vec::new();
        for task in lists
            .iter()
            .flat_map(|list| &list.threads)
            .filter(|task| task.state == state)
        {
            let process = |task: &SeenThread| task.pid.or(task.tid);
            if !tasks.iter().any(|other| process(other) == process(task)) {
                tasks.push(task);
            }
        }
        tasks
    };
    let stopped = halted(State::Stopped);
    // What is held for a moment is let go again: the same task in every list is not.
    let traced: Vec<&SeenThread> = halted(State::Traced)
        .into_iter()
        .filter(|task| lists.iter().all(|list| is_traced(list, task)))
        .collect();
    let mut findings = Vec::new();
    if !stopped.is_empty() {
        findings.push(stop(observed, &stopped));
    }
    if !traced.is_empty() {
        findings.push(trace(observed, &traced, lists.len()));
    }
    if !findings.is_empty() {
        return Verdict::Fires(findings);
    }
    let total = lists.iter().filter_map(|list| list.total).max();
    if first.total.is_none_or(|total| total == 0) || !blocked::is_whole(observed, first) {
        return Verdict::CannotTell(MISSING.to_owned());
    }
    Verdict::Clear(format!(
        "none of {} tasks is stopped in {}",
        total.unwrap_or(0),
        say::several(lists.len() as u64, "list")
    ))
}

fn is_traced(list: &Snapshot, task: &SeenThread) -> bool {
    let same = |other: &&SeenThread| other.tid == task.tid;
    list.threads
        .iter()
        .filter(same)
        .any(|other| other.state == State::Traced)
}

fn stop(observed: &Observed, tasks: &[&SeenThread]) -> Finding {
    let away: Vec<&SeenThread> = tasks
        .iter()
        .copied()
        .filter(|task| task.terminal != Some(true))
        .collect();
    let (found, severity) = match away.as_slice() {
        [] => (tasks.to_vec(), Severity::Note),
        _ => (away, Severity::Warning),
    };
    let names = blocked::names(&found);
    let suspended = severity == Severity::Note;
    let title = match (found.len(), suspended) {
        (1, true) => format!("{names} is suspended at its terminal"),
        (_, true) => format!("Suspended at their terminals: {names}"),
        (1, false) => format!("{names} is stopped, and does nothing until it gets SIGCONT"),
        (_, false) => format!("Stopped until they get SIGCONT: {names}"),
    };
    let unknown = found.iter().any(|task| task.terminal.is_none());
    let doubt = unknown.then(|| {
        Evidence::new(
            "the list does not show whether it has a terminal: it may have been suspended there (Ctrl-Z)",
            place(observed, &found),
        )
    });
    let finding = finding(observed, &found, severity, title, "T").and_if(doubt);
    let command = found.iter().find_map(|task| task.pid.or(task.tid));
    let remedy = Remedy::changing(
        "find out why it was stopped, and continue it",
        "it may have been stopped for a reason",
    );
    finding
        .remedy(match command {
            Some(pid) => remedy.with_command(format!("kill -CONT {pid}")),
            None => remedy,
        })
        .confidence(match unknown {
            true => Confidence::Suspect,
            false => Confidence::Proved,
        })
}

fn trace(observed: &Observed, tasks: &[&SeenThread], lists: usize) -> Finding {
    let names = blocked::names(tasks);
    let mut tracers: Vec<u32> = tasks.iter().filter_map(|task| task.tracer).collect();
    tracers.sort_unstable();
    tracers.dedup();
    // Of several it is not said who holds whom.
    let (a_tracer, by) = match tracers.as_slice() {
        [] => ("a tracer", String::new()),
        [pid] => ("a tracer", format!(", pid {pid}")),
        several => ("tracers", format!(", {} processes", several.len())),
    };
    let severity = if lists > 1 {
        Severity::Warning
    } else {
        Severity::Note
    };
    let title = format!("Stopped by {a_tracer}{by}: {names}");
    finding(observed, tasks, severity, title, "t")
        .confidence(if lists > 1 {
            Confidence::Strong
        } else {
            Confidence::Suspect
        })
        .remedy(
            Remedy::safe("detach the debugger or tracer, or make it stop the program less often")
                .with_command("grep TracerPid /proc/[0-9]*/status | grep -v '\\t0$'"),
        )
}

fn finding(
    observed: &Observed,
    tasks: &[&SeenThread],
    severity: Severity,
    title: String,
    letter: &str,
) -> Finding {
    let ids: Vec<String> = tasks
        .iter()
        .take(5)
        .filter_map(|task| task.pid.or(task.tid))
        .map(|pid| pid.to_string())
        .collect();
    let text = format!(
        "state {letter}: {} (pid {})",
        say::several(tasks.len() as u64, "process"),
        ids.join(", ")
    );
    let resource = Resource {
        kind: ResourceKind::Process,
        name: blocked::most_named(tasks).to_owned(),
        ..Resource::default()
    };
    Finding::without_duration(
        RuleId::Stopped.id(),
        severity,
        title,
        Cause::ProcessStopped,
        Evidence::new(text, place(observed, tasks)),
    )
    .about(resource, Asker::default())
}

fn place(observed: &Observed, tasks: &[&SeenThread]) -> String {
    tasks
        .first()
        .map_or_else(String::new, |task| blocked::read_at(observed, &task.quote))
}
