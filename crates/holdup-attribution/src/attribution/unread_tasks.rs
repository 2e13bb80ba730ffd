//! Tasks of a runtime that were not read.
//!
//! The problem: a task that waits has no thread. Where its runtime's structures are not read, a program in which all tasks stand looks idle, and must
//! not be called so without a word. In: what was attributed. Out: for each process in which tokio runs tasks, a sentence that they were not read.

use holdup_knowledge::rust;
use holdup_model::attributed::Attributed;
use std::collections::BTreeMap;

/// Processes that are named.
const PROCESSES_MAX: usize = 16;

/// Says so of each process but of those whose tasks were `read`.
pub(super) fn note(whole: &mut Attributed, read: &[u32]) {
    let mut found: BTreeMap<u32, String> = BTreeMap::new();
    for wait in &whole.waits {
        let name = &wait.asker.name;
        let unread = !read.contains(&name.pid);
        if unread && found.len() < PROCESSES_MAX && rust::runs_tokio(&name.thread, &wait.asker.stack) {
            found.entry(name.pid).or_insert_with(|| name.process.clone());
        }
    }
    let sentences = found.into_iter().map(|(pid, process)| {
        (
            format!("what tasks of tokio in {process} (pid {pid}) wait for"),
            "holdup reads tokio's tasks by the program's debug information, which does not describe them. A task that waits has no thread, so a program whose tasks all wait looks idle".to_owned(),
            "build it with full debug information, also of a release: `debug = true` in `[profile.release]`; lines alone (`line-tables-only`) do not describe tasks".to_owned(),
        )
    });
    whole.coverage.not_measured.extend(sentences);
}

#[cfg(test)]
mod tests {
    use super::note;
    use holdup_evidence::{Cause, Frame};
    use holdup_model::attributed::{Asker, Attributed, AttributedWait, ThreadName};

    fn waits(pid: u32, thread: &str, symbol: &str) -> AttributedWait {
        let wait: AttributedWait = serde_json::from_str(r#"{"cause":"idle"}"#).unwrap();
        AttributedWait {
            cause: Cause::Idle,
            asker: Asker {
                name: ThreadName {
                    pid,
                    tid: pid,
                    process: "shop".to_owned(),
                    thread: thread.to_owned(),
                },
                stack: vec![Frame {
                    symbol: Some(symbol.to_owned()),
                    ..Frame::default()
                }],
                ..Asker::default()
            },
            ..wait
        }
    }

    #[test]
    fn each_process_with_a_runtime_is_named_once_and_others_are_not() {
        let mut whole = Attributed {
            waits: vec![
                waits(7, "tokio-rt-worker", "epoll_wait"),
                waits(7, "shop", "tokio::runtime::park::Inner::park"),
                waits(
                    8,
                    "shop",
                    "tokio::runtime::scheduler::current_thread::Context::park",
                ),
                waits(9, "shop", "std::thread::sleep"),
            ],
            ..Attributed::default()
        };
        note(&mut whole, &[]);
        let named: Vec<&str> = whole
            .coverage
            .not_measured
            .iter()
            .map(|(what, ..)| what.as_str())
            .collect();
        assert_eq!(
            named,
            [
                "what tasks of tokio in shop (pid 7) wait for",
                "what tasks of tokio in shop (pid 8) wait for"
            ]
        );
    }
}
