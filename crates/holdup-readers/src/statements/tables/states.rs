//! States of rows that are bad ones.

use holdup_evidence::observed::StatementKind;

/// Bad states, and what each is.
const BAD: [(&str, StatementKind); 37] = [
    // Of a cluster as a whole.
    ("red", StatementKind::Failed),
    ("yellow", StatementKind::Stalled),
    // Of consumers of a queue.
    ("stop", StatementKind::Stalled),
    ("stall", StatementKind::Stalled),
    ("stalled", StatementKind::Stalled),
    ("err", StatementKind::Failed),
    // Of a list of jobs.
    ("pd", StatementKind::Stalled),
    ("down", StatementKind::Unreachable),
    ("unreachable", StatementKind::Unreachable),
    ("unavailable", StatementKind::Unreachable),
    ("offline", StatementKind::Unreachable),
    ("disconnected", StatementKind::Unreachable),
    ("start failed", StatementKind::Failed),
    ("failed", StatementKind::Failed),
    ("error", StatementKind::Failed),
    ("crashed", StatementKind::Ended),
    ("crashloopbackoff", StatementKind::Stalled),
    ("imagepullbackoff", StatementKind::Stalled),
    ("errimagepull", StatementKind::Failed),
    ("oomkilled", StatementKind::Ended),
    ("evicted", StatementKind::Failed),
    ("pending", StatementKind::Stalled),
    ("notready", StatementKind::Stalled),
    ("not ready", StatementKind::Stalled),
    ("unhealthy", StatementKind::Stalled),
    ("blocked", StatementKind::Stalled),
    ("stuck", StatementKind::Stalled),
    ("degraded", StatementKind::Stalled),
    ("faulted", StatementKind::Unreachable),
    ("hung", StatementKind::Stalled),
    ("terminating", StatementKind::Stalled),
    // Of nodes that run batch jobs.
    ("fail", StatementKind::Failed),
    ("drain", StatementKind::Stalled),
    ("drng", StatementKind::Stalled),
    ("draining", StatementKind::Stalled),
    ("drained", StatementKind::Stalled),
    // Of virtual machines and containers.
    ("paused", StatementKind::Stalled),
];

/// Signs that Slurm puts behind the state of a node: it does not answer, is reserved, is to be started anew. They do not make a state good or bad.
const MARKS: [char; 8] = ['*', '~', '#', '!', '%', '$', '@', '^'];

/// What a state is, where it is a bad one.
pub(super) fn bad(cell: &str) -> Option<StatementKind> {
    let word = cell.trim().trim_end_matches(MARKS).to_ascii_lowercase();
    let found = BAD.iter().find(|(bad, _)| word == *bad);
    // `0/1`: of one, none is ready.
    let ready = || {
        let (some, all) = word.split_once('/')?;
        let (some, all): (u64, u64) = (some.parse().ok()?, all.parse().ok()?);
        (some < all).then_some(StatementKind::Stalled)
    };
    found.map(|(_, kind)| *kind).or_else(ready)
}

/// Whether a cell names who is in the way: an identifier that is not zero, or a name.
pub(super) fn is_somebody(cell: &str) -> bool {
    let cell = cell.trim();
    let nobody = [
        "null", "none", "(null)", "<null>", "nil", "no", "false", "n/a", "{}", "[]",
    ];
    cell.contains(|char: char| char.is_ascii_alphabetic() || matches!(char, '1'..='9'))
        && !nobody.iter().any(|known| cell.eq_ignore_ascii_case(known))
}
