//! Where evidence was seen, if the program was looked at now and then.
//!
//! Rules name the probes of tracing. What they judge has the same shape when it comes from looks, and another source: it is named here, in one
//! place. In: findings. Out: the same, with the sources that were really read.

use super::say::{NOT_OBSERVED, SCHEDULER};
use holdup_model::finding::Finding;

/// What tracing calls it, and where looks have it from.
const BY_LOOKS: [(&str, &str); 12] = [
    (SCHEDULER, "looks at /proc/PID/task, and its counters"),
    ("sched_switch", "looks at /proc/PID/task, and its counters"),
    ("kernel stacks", "/proc/PID/wchan"),
    ("CPU samples", "the kernel's ticks, in /proc/PID/stat"),
    (
        "entry and exit of interrupts",
        "/proc/interrupts, and moments in which holdup looked at the clock on that CPU",
    ),
    ("what poll returned", "its time limit, and how long it lasted"),
    (
        "births, ends and wakings",
        "looks at /proc/PID/task, and /proc/PID/fd",
    ),
    (
        "births and ends",
        "looks at /proc/PID/task, and what the parent was charged with for its children (/proc/PID/stat)",
    ),
    ("the open file", "/proc/PID/fd"),
    ("the open files", "/proc/PID/fd"),
    (
        "the socket's state as the wait began",
        "the socket's state as it was looked at first (sock_diag)",
    ),
    (
        "the socket's state as the wait ended",
        "the socket's state as it was looked at last (sock_diag)",
    ),
];

/// Names the sources of a finding about a program that was looked at.
pub(super) fn by_looks(finding: &mut Finding) {
    for evidence in finding.evidence_mut() {
        // It may be of the run, and have lived between two looks.
        if let Some(who) = evidence.text.strip_suffix(NOT_OBSERVED) {
            evidence.text = format!("{who}was not seen to do anything meanwhile");
        }
        let known = BY_LOOKS.iter().find(|(traced, _)| *traced == evidence.source);
        if let Some((_, looked)) = known {
            evidence.source = (*looked).to_owned();
        }
    }
}
