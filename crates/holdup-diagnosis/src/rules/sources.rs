//! Where evidence was seen, if the program was looked at now and then.
//!
//! Rules name the probes of tracing. What they judge has the same shape when it comes from looks, and another source: it is named here, in one
//! place. In: findings. Out: the same, with the sources that were really read.

use super::say::{NOT_OBSERVED, SCHEDULER};
use holdup_model::finding::Finding;

/// What tracing calls it, and where looks have it from.
const OF_SAMPLES: [(&str, &str); 12] = [
    (SCHEDULER, "samples of /proc/PID/task and its counters"),
    ("sched_switch", "samples of /proc/PID/task and its counters"),
    ("kernel stacks", "/proc/PID/wchan"),
    ("CPU samples", "the kernel's ticks, in /proc/PID/stat"),
    (
        "entry and exit of interrupts",
        "/proc/interrupts, and clock readings of holdup on that CPU",
    ),
    ("what poll returned", "its time limit, and how long it lasted"),
    (
        "process starts, exits and wakeups",
        "samples of /proc/PID/task and /proc/PID/fd",
    ),
    (
        "process and thread starts and exits",
        "samples of /proc/PID/task, and the CPU time that the parent was charged for its children \
         (/proc/PID/stat)",
    ),
    ("the open file", "/proc/PID/fd"),
    ("the open files", "/proc/PID/fd"),
    (
        "the state of the socket when the wait began",
        "the first sample of the state of the socket (sock_diag)",
    ),
    (
        "the state of the socket when the wait ended",
        "the last sample of the state of the socket (sock_diag)",
    ),
];

/// Names the sources of a finding about a program that was sampled.
pub(super) fn name_samples(finding: &mut Finding) {
    for evidence in finding.evidence_mut() {
        // It may be of the run, and have lived between two samples.
        if let Some(who) = evidence.text.strip_suffix(NOT_OBSERVED) {
            evidence.text = format!("{who}was not observed to do anything in that time");
        }
        let known = OF_SAMPLES.iter().find(|(traced, _)| *traced == evidence.source);
        if let Some((_, looked)) = known {
            evidence.source = (*looked).to_owned();
        }
    }
}
