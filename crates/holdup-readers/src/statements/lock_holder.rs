//! Who has a lock that somebody did not get, where that stands below as names and values: `Who: app@build-7`, `Created: 2026-03-03 …`.

use crate::gather::text_of;

/// Lines below such a statement that are looked at.
pub(super) const LINES: u32 = 12;

/// Bytes of a value that is told.
const VALUE: usize = 80;

/// Digits of an instant that begins with the name of a day or a month: of its day and its time.
const MIN_DIGITS: usize = 5;

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

/// Words behind a lock in a sentence that says since when it is held: `lock was created at 2026-03-03 10:00:00 (51h ago)`.
const SINCE: [&str; 12] = [
    "created at ",
    "created on ",
    "acquired at ",
    "acquired on ",
    "taken at ",
    "taken on ",
    "obtained at ",
    "held since ",
    "locked since ",
    "held for ",
    "lock age: ",
    "lock age is ",
];

/// Words that may stand between the two.
const BETWEEN: [&str; 8] = [
    "was",
    "is",
    "has",
    "been",
    "file",
    "already",
    "being",
    "currently",
];

/// A sentence that says since when a lock is held, from the lock on. An instant or a length has figures.
fn since(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    SINCE.iter().find_map(|words| {
        let at = lower.find(words)?;
        let own = words.find("lock");
        let begin = match own {
            Some(_) => at,
            None => {
                let before = lower.get(..at)?;
                let lock = before.rfind("lock")?;
                let free = before
                    .get(..lock)?
                    .chars()
                    .next_back()
                    .is_none_or(|c| !c.is_alphanumeric());
                let between = before.get(lock + "lock".len()..)?;
                let fits = between.split_whitespace().all(|word| BETWEEN.contains(&word));
                (free && fits && between.starts_with(' ')).then_some(lock)?
            }
        };
        let figure = lower.get(at + words.len()..)?.trim_start().chars().next()?;
        let told: String = text.get(begin..)?.trim_end().chars().take(VALUE).collect();
        // `Mar 3`, `Tue Mar 3`: instants begin with a name, too.
        let instant =
            figure.is_ascii_digit() || told.chars().filter(char::is_ascii_digit).count() >= MIN_DIGITS;
        instant.then_some(told)
    })
}

/// A line that says so.
pub(super) fn of(line: &[u8]) -> Option<String> {
    let text = text_of(line.get(..2 * VALUE).unwrap_or(line));
    if let Some(told) = since(&text) {
        return Some(told);
    }
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
    fn since_when_a_lock_is_held_stands_in_a_sentence_below() {
        for (below, told) in [
            (
                "store | lock was created at 2026-02-01 03:04:05 (51h10m7s ago)",
                "lock was created at 2026-02-01 03:04:05 (51h10m7s ago)",
            ),
            (
                "the lock has been held since Tue Feb  3 03:04:05 2026",
                "lock has been held since Tue Feb  3 03:04:05 2026",
            ),
            ("Lock age: 4 days", "Lock age: 4 days"),
        ] {
            let text = format!(
                "cannot lock the store: it is already locked by PID 711 on vault-3 by root\n{below}\n"
            );
            let said = read_text("t", text.as_bytes()).observed.statements;
            assert!(said[0].text.ends_with(&format!("| {told}")), "{said:?}");
            assert_eq!(said[0].blames[0].of, "process 711 on vault-3");
        }
        // What is made at an instant, and is no lock.
        for below in [
            "clock was created at 2026-02-01 03:04:05",
            "lock and key, table created at 10:00",
            "lock held for everybody",
        ] {
            assert_eq!(super::of(below.as_bytes()), None, "{below}");
        }
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
