//! Waits that somebody outside must have been in the way of, and nobody could be named for, in words: why, and what would name them.
//!
//! In: what attribution came to. Out: lines of the report, of the waits that matter.

use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{Attributed, AttributedWait};

/// Waits that are worth a line: of the whole such a part, in hundredths, and so long, nanoseconds.
const MIN_PERCENT: Ns = 5;
const MIN_NS: Ns = 10_000_000;

/// Lines at most.
const MAX_LINES: usize = 6;

/// All that is to be said: what, why, and what would show it.
pub(super) fn not_measured(attributed: &Attributed) -> Vec<(String, String, String)> {
    let matters = |wait: &&AttributedWait| {
        // The kernel may note somebody who is gone.
        let nobody = wait.holders.iter().all(|holder| holder.name.process.is_empty());
        nobody && wait.ns >= MIN_NS && wait.ns.saturating_mul(100) >= attributed.elapsed * MIN_PERCENT
    };
    let mut lines: Vec<(String, String, String)> = Vec::new();
    for wait in attributed.waits.iter().filter(matters) {
        let Some((why, fix)) = why(wait.cause) else {
            continue;
        };
        let what = format!(
            "the blocker of {}, which waits for {} ({})",
            wait.asker.name.process,
            wait.resource.name,
            wait.cause.id()
        );
        if lines.len() < MAX_LINES && !lines.iter().any(|(known, ..)| *known == what) {
            lines.push((what, why.to_owned(), fix.to_owned()));
        }
    }
    lines
}

fn why(cause: Cause) -> Option<(&'static str, &'static str)> {
    const ROOT: &str =
        "run holdup as root, which may read the open files of all users, and may trace wakeups";
    const TRACE: &str = "trace: run holdup as root on a kernel that it can trace on";
    Some(match cause {
        Cause::IpcPipe | Cause::IpcUnix | Cause::RandomDevice => (
            "no single process with the other end was found among those whose open files this user may read",
            ROOT,
        ),
        Cause::FsFuse => (
            "the process that serves the file system is not among those whose open files this user may read",
            ROOT,
        ),
        Cause::LockFile => (
            "the kernel stores no process for this lock, or one that has ended: the process that inherited \
             the open file is not among those whose open files this user may read",
            ROOT,
        ),
        Cause::ProcessStopped => (
            "the sender of a signal is visible only at the moment of sending",
            TRACE,
        ),
        Cause::FsFrozen => (
            "the kernel does not store which process froze a file system; the process that thaws it is \
             visible only at that moment",
            TRACE,
        ),
        Cause::SecurityDecision => (
            "the process that decides has a descriptor, which only root may read, and is visible when it \
             answers",
            TRACE,
        ),
        Cause::RuntimeSafepoint => (
            "the last thread to stop shows only in the order of stops, between two samples",
            TRACE,
        ),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::not_measured;
    use holdup_model::attributed::{Attributed, AttributedWait};
    use serde_json::{Value, json};

    fn wait(cause: &str, ns: u64, holders: Value) -> AttributedWait {
        serde_json::from_value(json!({"cause": cause, "ns": ns, "holders": holders})).unwrap()
    }

    #[test]
    fn what_matters_and_has_nobody_named_is_said_once() {
        const SECOND: u64 = 1_000_000_000;
        let somebody = json!([{"name": {"pid": 7, "process": "fsfreeze"}, "how_known": "waker", "ns": 1}]);
        let attributed = Attributed {
            elapsed: SECOND,
            waits: vec![
                wait("ipc.pipe", SECOND, json!([])),
                wait("ipc.pipe", SECOND / 2, json!([])),
                wait("fs.frozen", SECOND, somebody),
                wait("timer.sleep", SECOND, json!([])),
                wait("process.stopped", SECOND / 100, json!([])),
            ],
            ..Attributed::default()
        };
        let lines = not_measured(&attributed);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].0.contains("ipc.pipe") && !lines[0].2.is_empty());
    }
}
