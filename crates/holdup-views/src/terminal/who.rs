//! Naming threads so that a person finds them again: `sleep (pid 3)`, `8 threads of app (pid 12)`.

use super::picture::Entry;
use crate::sheet::Sheet;
use crate::text::{printable, shorten};
use holdup_analysis::report::{Report, Thread};
use std::collections::BTreeSet;

/// Columns that a name may take within what is said of a thread, so that the ids after it stay readable. The
/// kernel's names have 15 bytes; only escapes make them longer.
const NAME: usize = 20;

/// One thread: by its process where it is the main or only one, else by its own name too. `how` is a remark
/// for the parentheses.
pub(super) fn thread(
    sheet: &Sheet,
    report: &Report,
    (pid, tid): (u32, u32),
    (process, thread): (&str, &str),
    how: Option<&str>,
) -> String {
    let how = how.map(|how| format!(", {how}")).unwrap_or_default();
    let process = name(sheet, report, pid, process);
    let thread = brief(sheet, thread);
    match (pid, tid) {
        (0, _) => format!("{process}{how}"),
        (_, 0) => format!("{process} (pid {pid}{how})"),
        _ if pid == tid => format!("{process} (pid {pid}{how})"),
        _ if thread.is_empty() || thread == process => format!("{process} (pid {pid}, thread {tid}{how})"),
        _ => format!("{thread} of {process} (pid {pid}, thread {tid}{how})"),
    }
}

/// A name within [`NAME`] columns.
fn brief(sheet: &Sheet, name: &str) -> String {
    let unicode = sheet.style().unicode;
    shorten(&printable(name, unicode), NAME, unicode)
}

/// A process's name: the one given, else the one its threads are listed under.
fn name(sheet: &Sheet, report: &Report, pid: u32, given: &str) -> String {
    let named = |thread: &&Thread| thread.pid == pid && !thread.process.is_empty();
    let listed = || {
        report
            .threads
            .iter()
            .find(named)
            .map(|thread| thread.process.as_str())
    };
    let given = Some(given).filter(|given| !given.is_empty());
    brief(sheet, given.or_else(listed).unwrap_or("[no name]"))
}

/// Whose waits an entry is made of; `None` when they are CMD's own main thread's, which needs no saying
/// unless `always`.
pub(super) fn members(sheet: &Sheet, report: &Report, entry: &Entry, always: bool) -> Option<String> {
    let threads: BTreeSet<(u32, u32)> = entry
        .members
        .iter()
        .map(|(wait, _)| (wait.asker.pid, wait.asker.tid))
        .collect();
    let asker = &entry.largest()?.asker;
    if threads.len() == 1 {
        let own = report.subject.pids.first() == Some(&asker.pid) && asker.tid == asker.pid;
        let one = || {
            thread(
                sheet,
                report,
                (asker.pid, asker.tid),
                (&asker.process, &asker.thread),
                None,
            )
        };
        return (always || !own).then(one);
    }
    let pids: BTreeSet<u32> = threads.iter().map(|(pid, _)| *pid).collect();
    let processes: BTreeSet<&str> = entry
        .members
        .iter()
        .map(|(wait, _)| wait.asker.process.as_str())
        .collect();
    let process = name(sheet, report, asker.pid, &asker.process);
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
