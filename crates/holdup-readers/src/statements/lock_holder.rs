//! Who has a lock that somebody did not get, where that stands below as names and values: `Who: app@build-7`, `Created: 2026-03-03 …`.

use crate::gather::text_of;

/// Lines below such a statement that are looked at.
pub(super) const LINES: u32 = 12;

/// Bytes of a value that is told.
const VALUE: usize = 80;

/// Names under which programs say who has a lock, since when, and for what.
const NAMES: [&str; 21] = [
    "who",
    "owner",
    "holder",
    "held by",
    "locked by",
    "lock owner",
    "operation",
    "created",
    "since",
    "acquired",
    "pid",
    "process",
    "host",
    "hostname",
    "user",
    "client",
    // yum.
    "the other application is",
    "started",
    "owner pid",
    "owner operation",
    "state",
];

/// Whether a statement is about a lock, so that who has it may follow.
pub(super) fn may_follow(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let mut words = text.split(|char: char| !char.is_ascii_alphabetic());
    words.any(|word| matches!(word, "lock" | "locked" | "locking" | "lease"))
}

/// Names under which stands who it is, and not since when or for what.
const WHO: [&str; 9] = [
    "who",
    "owner",
    "holder",
    "held by",
    "locked by",
    "lock owner",
    "the other application is",
    "owner pid",
    "client",
];

/// The holder that a line of [`of`] names.
pub(super) fn named(told: &str) -> Option<String> {
    let (name, value) = told.split_once(": ")?;
    let who = WHO.iter().any(|known| name.eq_ignore_ascii_case(known));
    who.then(|| match value.bytes().all(|byte| byte.is_ascii_digit()) {
        true => format!("process {value}"),
        false => value.to_owned(),
    })
}

/// A line that says so.
pub(super) fn of(line: &[u8]) -> Option<String> {
    let text = text_of(line.get(..2 * VALUE).unwrap_or(line));
    let (name, value) = text.split_once(':')?;
    let name = name.trim().trim_start_matches(['-', '*', '|', ' ', '\u{2502}']);
    let value = value.trim();
    let known = NAMES.iter().any(|known| name.eq_ignore_ascii_case(known));
    let told: String = value.chars().take(VALUE).collect();
    (known && !value.is_empty() && !value.eq_ignore_ascii_case("unknown")).then(|| format!("{name}: {told}"))
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn who_has_a_lock_stands_below_the_line_that_says_that_it_is_taken() {
        let text = "Error: could not acquire the state lock: condition failed\nLock Info:\n  ID:   5-9\n  Path: box/a.state\n  \
            Operation: Apply\n  Who:  kim@build-7\n  Created: 2026-03-03 10:00:00\n";
        let said = read_text("t", text.as_bytes()).observed.statements;
        assert!(
            said[0]
                .text
                .ends_with("| Operation: Apply | Who: kim@build-7 | Created: 2026-03-03 10:00:00"),
            "{said:?}"
        );
        assert_eq!(said[0].blames[0].of, "kim@build-7");
    }

    #[test]
    fn since_when_a_holder_runs_is_told_too() {
        let text = "Another app is currently holding the yum lock; waiting for it to exit...\n  The other application is: yum\n    \
            Memory :  91 M RSS (1.1 GB VSZ)\n    Started: Tue Mar  3 10:00:00 2026 - 12:07 ago\n    State  : Sleeping, pid: 811\n";
        let said = read_text("t", text.as_bytes()).observed.statements;
        assert!(
            said[0].text.contains("12:07 ago | State: Sleeping, pid: 811"),
            "{said:?}"
        );
    }
}
