//! Naming threads so that a person finds them again: `sleep (pid 3)`, `8 threads of app (pid 12)`.

use super::picture::Entry;
use crate::sheet::Sheet;
use crate::text::{printable, shorten};
use crate::units::counted;
use holdup_model::report::{Report, SubjectKind, Thread};
use std::collections::BTreeSet;

/// Columns that a name may take within what is said of a thread, so that the ids after it stay readable. The
/// kernel's names have 15 bytes; only escapes make them longer.
const NAME: usize = 20;

/// One thread: by its process where it is the main or only one, else by its own name too. `how` is a remark
/// for the parentheses.
pub(crate) fn thread(
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
        _ if thread.is_empty() || thread == process => format!("{process} (pid {pid}, tid {tid}{how})"),
        _ => format!("{thread} of {process} (pid {pid}, tid {tid}{how})"),
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
pub(crate) fn members(sheet: &Sheet, report: &Report, entry: &Entry, always: bool) -> Option<String> {
    let askers = || entry.members.iter().map(|(wait, _)| &wait.asker);
    let largest = &entry.largest()?.asker;
    let threads: BTreeSet<(u32, u32, &str)> = askers()
        .map(|asker| (asker.pid, asker.tid, asker.process.as_str()))
        .collect();
    if threads.len() == 1 && largest.tid != 0 {
        // Of several processes that were asked for, each is named: which number is the smallest says nothing.
        let only = report.subject.kind == SubjectKind::Run || report.subject.pids.len() == 1;
        let first = report.subject.pids.first() == Some(&largest.pid);
        let own = only && first && largest.tid == largest.pid;
        let names = (largest.process.as_str(), largest.thread.as_str());
        let one = || thread(sheet, report, (largest.pid, largest.tid), names, None);
        return (always || !own).then(one);
    }
    let each: Vec<_> = threads.iter().copied().collect();
    if let [one, other] = each[..]
        && one.0 != other.0
        && one.1 != 0
        && other.1 != 0
    {
        let named =
            |(pid, _, process): (u32, u32, &str)| thread(sheet, report, (pid, 0), (process, ""), None);
        let (first, second) = if one.0 == largest.pid {
            (one, other)
        } else {
            (other, one)
        };
        return Some(format!("{} and {}", named(first), named(second)));
    }
    let pids: BTreeSet<u32> = askers().map(|asker| asker.pid).collect();
    let programs: BTreeSet<&str> = askers().map(|asker| asker.process.as_str()).collect();
    let count: u32 = threads.iter().map(|id| standing_for(report, *id)).sum();
    let process = name(sheet, report, largest.pid, &largest.process);
    Some(if pids.len() == 1 && largest.pid != 0 {
        format!("{count} threads of {process} (pid {})", largest.pid)
    } else if programs.len() == 1 {
        let threads = counted(u64::from(count), "thread", "threads");
        format!("{threads} of processes named {process}")
    } else {
        format!("{count} threads of {} programs, mainly {process}", programs.len())
    })
}

/// How many threads a name stands for: the smallest of many share one.
fn standing_for(report: &Report, (pid, tid, process): (u32, u32, &str)) -> u32 {
    let same = |thread: &&Thread| (thread.pid, thread.tid, thread.process.as_str()) == (pid, tid, process);
    report
        .threads
        .iter()
        .find(same)
        .map_or(1, |thread| thread.threads)
}
