//! Logs that observed processes write themselves: what they say about work that waits or is refused.
//!
//! The problem: what holds a service up is often a number in its own memory (a limit on requests, an alarm, a quota), and no wait shows it.
//! The program says it in its log, which it has open. In: processes, when observation begins and when it ends. Out: their logs with the
//! lines that explain a wait ([`holdup_readers::own_log`]), and of which processes the log could not be read. A log is a file that others
//! chose, on a file system that may not answer, so a child reads and judges it ([`super::behind`], [`reading`]).

mod reading;

use super::behind::Readers;
use holdup_evidence::facts::OwnLog;
use holdup_evidence::{NotMeasured, Ns};
use holdup_proc::{Root, names};
use reading::{Answer, FileId, Found, Leads, Question, Sizes};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Processes whose logs are read.
const PROCESSES_MAX: usize = 64;

/// Log files that are reported of.
const FILES_MAX: usize = 64;

/// Bytes of all logs together that are read at the end.
const BYTES_MAX: u64 = 8 << 20;

/// Names of processes in a sentence.
const NAMES_MAX: usize = 5;

/// Logs as observation began.
pub(super) struct OwnLogs {
    sizes: Sizes,
    began: Instant,
}

impl OwnLogs {
    /// Notes how long the logs of these processes are; `None`: nobody asked for logs.
    pub(super) fn begin(wanted: bool, pids: &BTreeSet<u32>) -> Option<OwnLogs> {
        wanted.then(|| {
            let mut logs = OwnLogs {
                sizes: Sizes::new(),
                began: Instant::now(),
            };
            logs.note(pids);
            logs
        })
    }

    /// The same of more processes: those that were found in the way.
    pub(super) fn note(&mut self, pids: &BTreeSet<u32>) {
        let mut readers = readers();
        for pid in pids.iter().take(PROCESSES_MAX) {
            let Some(Answer::Sizes(sizes)) = readers.ask(*pid, Question::Sizes(*pid)) else {
                continue;
            };
            for (id, size) in sizes {
                if self.sizes.len() < FILES_MAX {
                    self.sizes.entry(id).or_insert(size);
                }
            }
        }
    }

    /// What was written since, of those that were asked about and of those in their way.
    pub(super) fn finish(
        self,
        asked: &BTreeSet<u32>,
        in_the_way: &BTreeSet<u32>,
    ) -> (Vec<OwnLog>, Option<NotMeasured>) {
        let root = Root::system();
        let watched = Ns::try_from(self.began.elapsed().as_nanos()).unwrap_or(Ns::MAX);
        let mut readers = readers();
        let mut logs: BTreeMap<FileId, OwnLog> = BTreeMap::new();
        let mut elsewhere: Vec<(u32, Leads)> = Vec::new();
        let mut bytes: u64 = 0;
        let all = asked.iter().chain(in_the_way.difference(asked));
        for pid in all.take(PROCESSES_MAX) {
            let question = Question::Said {
                pid: *pid,
                sizes: self.sizes.clone(),
                known: logs.keys().copied().collect(),
                watched,
                bytes: BYTES_MAX.saturating_sub(bytes),
            };
            let Some(Answer::Said { logs: found, leads }) = readers.ask(*pid, question) else {
                continue;
            };
            if let (Some(leads), true, true) = (leads, found.is_empty(), asked.contains(pid)) {
                elsewhere.push((*pid, leads));
            }
            for Found { id, said } in found {
                let room = logs.len() < FILES_MAX;
                match (logs.get_mut(&id), said) {
                    (Some(known), _) => known.writers.push(*pid),
                    (None, Some(mut log)) if room => {
                        bytes = bytes.saturating_add(log.added).saturating_add(log.before);
                        log.process = names::comm(&root, *pid).unwrap_or_default();
                        log.writers.push(*pid);
                        log.asked = asked.contains(pid);
                        logs.insert(id, log);
                    }
                    (None, _) => {}
                }
            }
        }
        (logs.into_values().collect(), not_read(&root, &elsewhere))
    }
}

/// What the logs of these processes say of the time before now.
#[must_use]
pub fn said(pids: &BTreeSet<u32>) -> Vec<OwnLog> {
    let logs = OwnLogs {
        sizes: Sizes::new(),
        began: Instant::now(),
    };
    let (mut logs, _) = logs.finish(pids, &BTreeSet::new());
    logs.retain(|log| !log.said.is_empty());
    logs
}

fn readers() -> Readers<Question, Answer> {
    Readers::new(|| Box::new(|question| reading::answer(question, &Root::system())))
}

/// Whose log goes where nobody but its reader can read it.
fn not_read(root: &Root, elsewhere: &[(u32, Leads)]) -> Option<NotMeasured> {
    let (_, leads) = elsewhere.first()?;
    let name = |(pid, _): &(u32, Leads)| {
        let name = names::comm(root, *pid).unwrap_or_else(|| "a process".to_owned());
        format!("{name} (pid {pid})")
    };
    let named: Vec<String> = elsewhere.iter().take(NAMES_MAX).map(name).collect();
    let more = match elsewhere.len().saturating_sub(NAMES_MAX) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    let (to, fix) = match leads {
        Leads::Socket => (
            "a socket, as of the journal",
            "read it with `journalctl --since -1min _PID=PID`, and give it to `holdup read`",
        ),
        Leads::Pipe => (
            "a pipe",
            "read the log where it ends up, and give it to `holdup read`",
        ),
    };
    Some(NotMeasured {
        what: format!("the log of {}{more}", named.join(", ")),
        why: format!("its standard error leads to {to}"),
        fix: fix.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::OwnLogs;
    use holdup_evidence::facts::LogReason;
    use std::collections::BTreeSet;
    use std::fs::OpenOptions;
    use std::io::Write;

    #[test]
    fn a_log_of_ones_own_is_read_with_what_was_added() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.log");
        let mut log = OpenOptions::new().append(true).create(true).open(&path).unwrap();
        let mut data = OpenOptions::new()
            .append(true)
            .create(true)
            .open(folder.path().join("app.db"))
            .unwrap();
        writeln!(log, "pool ready").unwrap();
        writeln!(data, "pool exhausted").unwrap();
        let own = BTreeSet::from([std::process::id()]);
        let logs = OwnLogs::begin(true, &own).unwrap();
        writeln!(log, "WARNING: pool exhausted, request 7 waits").unwrap();
        writeln!(log, "WARNING: pool exhausted, request 8 waits").unwrap();
        writeln!(data, "pool exhausted").unwrap();
        let (found, _) = logs.finish(&own, &BTreeSet::new());
        let mine: Vec<_> = found
            .iter()
            .filter(|one| one.file.starts_with(&*folder.path().to_string_lossy()))
            .collect();
        let [one] = mine.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!(one.file, path.to_string_lossy());
        assert_eq!((one.added, one.before), (82, 11));
        assert_eq!(one.writers, [std::process::id()]);
        let [said] = one.said.as_slice() else {
            panic!("{one:?}")
        };
        assert_eq!(
            (said.reason, said.during, said.line),
            (LogReason::Limit, 2, Some(3))
        );
        assert!(OwnLogs::begin(false, &own).is_none());
    }
}
