//! States of rows that are bad ones.

use super::Row;
use crate::find::find;
use crate::statements::cells::number;
use crate::statements::kinds;
use holdup_evidence::observed::StatementKind;

/// Bad states, and what each is.
const BAD: [(&str, StatementKind); 47] = [
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
    // Of devices of a pool.
    ("unavail", StatementKind::Unreachable),
    ("removed", StatementKind::Unreachable),
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
    // Of replicas of volumes.
    ("inconsistent", StatementKind::Stalled),
    ("synctarget", StatementKind::Stalled),
    ("outdated", StatementKind::Stalled),
    ("out of sync", StatementKind::Stalled),
    ("rebuilding", StatementKind::Stalled),
    ("standalone", StatementKind::Unreachable),
    ("dunknown", StatementKind::Unreachable),
    // Of transactions of InnoDB.
    ("lock wait", StatementKind::Stalled),
    // Of virtual machines and containers.
    ("paused", StatementKind::Stalled),
];

/// Signs that Slurm puts behind the state of a node: it does not answer, is reserved, is to be started anew. They do not make a state good or bad.
const MARKS: [char; 8] = ['*', '~', '#', '!', '%', '$', '@', '^'];

/// States of what has ended well: that none of its parts is ready any more is no trouble.
const DONE: [&str; 3] = ["completed", "complete", "succeeded"];

/// Whether a state is of what has ended well.
pub(super) fn is_done(cell: &str) -> bool {
    DONE.iter().any(|done| cell.trim().eq_ignore_ascii_case(done))
}

/// What a state is, where it is a bad one.
pub(super) fn bad(cell: &str) -> Option<StatementKind> {
    let word = cell.trim().trim_end_matches(MARKS).to_ascii_lowercase();
    // `SyncTarget(97.93%)`: how far it has come.
    let word = word
        .split_once('(')
        .map_or(word.as_str(), |(word, _)| word.trim_end());
    let found = BAD.iter().find(|(bad, _)| word == *bad);
    // `0/1`: of one, none is ready.
    let ready = || {
        let (some, all) = word.split_once('/')?;
        let (some, all): (u64, u64) = (some.parse().ok()?, all.parse().ok()?);
        (some < all).then_some(StatementKind::Stalled)
    };
    found.map(|(_, kind)| *kind).or_else(ready)
}

/// Columns that say whether a row is there at all, and whether it works.
const THERE: [&str; 7] = [
    "online",
    "up",
    "alive",
    "connected",
    "reachable",
    "is up",
    "is_up",
];
/// What the name of a column has in it where the rows are parts of a service: a user or a headset may be away.
const OF_SERVICES: [&str; 9] = [
    "node", "host", "server", "member", "replica", "broker", "peer", "brick", "osd",
];

const WORKS: [&str; 4] = ["healthy", "in sync", "is_healthy", "operational"];

/// Whether a column says whether its row is there or works.
pub(super) fn is_switch(column: &str) -> bool {
    THERE
        .iter()
        .chain(&WORKS)
        .any(|name| column.eq_ignore_ascii_case(name))
}

/// Whether the rows of a table with such a column are parts of a service, which have to be there.
pub(super) fn is_of_service(column: &str) -> bool {
    let small = column.to_ascii_lowercase();
    OF_SERVICES.iter().any(|of| small.contains(of))
}

/// What a row is whose column says `N` where it should be `Y`; `of_service` where it has to be there.
pub(super) fn bad_switch(column: &str, cell: &str, of_service: bool) -> Option<StatementKind> {
    let no = ["n", "no", "false"]
        .iter()
        .any(|no| cell.trim().eq_ignore_ascii_case(no));
    let is = |names: &[&str]| no && names.iter().any(|name| column.eq_ignore_ascii_case(name));
    match () {
        () if of_service && is(&THERE) => Some(StatementKind::Unreachable),
        () if is(&WORKS) => Some(StatementKind::Stalled),
        () => None,
    }
}

/// What a cell complains of that has the text of an error; `None` where it says that there is none.
pub(super) fn complaint(cell: &str) -> Option<StatementKind> {
    let said = is_somebody(cell) && cell.contains(|char: char| char.is_ascii_alphabetic());
    let said = said
        && !["true", "ok", "success"]
            .iter()
            .any(|known| cell.eq_ignore_ascii_case(known));
    said.then(|| kinds::of(cell.as_bytes()).map_or(StatementKind::Failed, |found| found.kind))
}

/// Bytes of a line in which states are looked for.
const SCANNED: usize = 400;

/// A bad state that a line has as a name with its value, and where: `JobState=PENDING Reason=Resources`.
pub(in crate::statements) fn of_pairs(line: &[u8]) -> Option<(StatementKind, usize)> {
    let line = line.get(..SCANNED).unwrap_or(line);
    let names: [&[u8]; 4] = [b"State=", b"state=", b"Status=", b"STATE="];
    names.iter().find_map(|name| {
        let at = find(line, name)?;
        let value = line.get(at + name.len()..)?;
        let end = value
            .iter()
            .position(|byte| byte.is_ascii_whitespace() || matches!(byte, b',' | b';' | b'+'));
        let value = std::str::from_utf8(value.get(..end.unwrap_or(value.len()))?).ok()?;
        bad(value).map(|kind| (kind, at))
    })
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

/// Whether a row in a bad state has a figure that is not zero beside it, or a note behind one.
pub(super) fn explains(row: &Row, state: usize) -> bool {
    let cells = row
        .cells
        .iter()
        .enumerate()
        .skip(1)
        .filter(|(at, _)| *at != state);
    cells
        .filter_map(|(_, cell)| Some((number(cell)?, cell)))
        .any(|((figure, _), cell)| figure > 0.0 || cell.contains(' '))
}

#[cfg(test)]
mod tests {
    use super::{bad_switch, complaint, is_of_service, is_somebody, of_pairs};
    use holdup_evidence::observed::StatementKind;

    #[test]
    fn who_is_in_the_way_and_who_is_not() {
        for cell in ["71", "{17001}", "app@db"] {
            assert!(is_somebody(cell), "{cell}");
        }
        for cell in ["", "0", "{}", "NULL", "(null)", "-", "None"] {
            assert!(!is_somebody(cell), "{cell}");
        }
    }

    #[test]
    fn who_has_to_be_there() {
        assert_eq!(
            bad_switch("Online", "N", is_of_service("Brick")),
            Some(StatementKind::Unreachable)
        );
        assert_eq!(bad_switch("CONNECTED", "no", is_of_service("SSID")), None);
        assert_eq!(bad_switch("online", "no", is_of_service("name")), None);
        assert_eq!(bad_switch("healthy", "no", false), Some(StatementKind::Stalled));
    }

    #[test]
    fn errors_and_states() {
        assert_eq!(
            complaint("memberID:1 alarm:NOSPACE"),
            Some(StatementKind::Exhausted)
        );
        assert_eq!(complaint("duplicate key"), Some(StatementKind::Failed));
        for cell in ["", "0", "none", "false", "null", "12"] {
            assert_eq!(complaint(cell), None, "{cell}");
        }
        let kind = |line: &str| of_pairs(line.as_bytes()).map(|(kind, _)| kind);
        assert_eq!(
            kind("JobState=PENDING Reason=Resources"),
            Some(StatementKind::Stalled)
        );
        assert_eq!(
            kind("State=DOWN*+DRAIN ThreadsPerCore=2"),
            Some(StatementKind::Unreachable)
        );
        for line in ["JobState=RUNNING Reason=None", "State=", "my state is pending"] {
            assert_eq!(kind(line), None, "{line}");
        }
    }
}
