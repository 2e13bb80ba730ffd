//! Naming threads so that a person finds them again: `sleep (pid 3)`, `8 threads of app (pid 12)`.

use super::picture::Entry;
use holdup_analysis::report::Report;
use std::collections::BTreeSet;

/// One thread: by its process where it is the main or only one, else by its own name too. `how` is a remark
/// for the parentheses.
pub(super) fn thread(
    report: &Report,
    pid: u32,
    tid: u32,
    process: &str,
    thread: &str,
    how: Option<&str>,
) -> String {
    let how = how.map(|how| format!(", {how}")).unwrap_or_default();
    let process = name(report, pid, process);
    match (pid, tid) {
        (0, _) => format!("{process}{how}"),
        (_, 0) => format!("{process} (pid {pid}{how})"),
        _ if pid == tid => format!("{process} (pid {pid}{how})"),
        _ if thread.is_empty() || thread == process => format!("{process} (pid {pid}, thread {tid}{how})"),
        _ => format!("{thread} of {process} (pid {pid}, thread {tid}{how})"),
    }
}

/// A process's name: the one given, else the one its threads are listed under.
fn name<'a>(report: &'a Report, pid: u32, given: &'a str) -> &'a str {
    if !given.is_empty() {
        return given;
    }
    report
        .threads
        .iter()
        .find(|thread| thread.pid == pid && !thread.process.is_empty())
        .map_or("[no name]", |thread| &thread.process)
}

/// Whose waits an entry is made of; `None` when they are CMD's own main thread's, which needs no saying
/// unless `always`.
pub(super) fn members(report: &Report, entry: &Entry, always: bool) -> Option<String> {
    let threads: BTreeSet<(u32, u32)> = entry
        .members
        .iter()
        .map(|(wait, _)| (wait.asker.pid, wait.asker.tid))
        .collect();
    let asker = &entry.largest()?.asker;
    if threads.len() == 1 {
        let own = report.subject.pids.first() == Some(&asker.pid) && asker.tid == asker.pid;
        let one = || thread(report, asker.pid, asker.tid, &asker.process, &asker.thread, None);
        return (always || !own).then(one);
    }
    let pids: BTreeSet<u32> = threads.iter().map(|(pid, _)| *pid).collect();
    let processes: BTreeSet<&str> = entry
        .members
        .iter()
        .map(|(wait, _)| wait.asker.process.as_str())
        .collect();
    let process = name(report, asker.pid, &asker.process);
    Some(if pids.len() == 1 {
        format!("{} threads of {process} (pid {})", threads.len(), asker.pid)
    } else if processes.len() == 1 {
        format!("{} processes named {process}", pids.len())
    } else {
        format!(
            "{} threads of {} processes, most of it in {process} (pid {})",
            threads.len(),
            pids.len(),
            asker.pid
        )
    })
}
