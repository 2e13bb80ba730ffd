//! A lock that somebody else has, in the words of whoever did not get it: `Could not get lock /var/lib/dpkg/lock. It is held by process 17 (apt)`.
//!
//! In: a line. Out: that it speaks of such a lock; the holder where the line names one, else what is locked.

use super::super::kinds::{Found, states};
use super::super::matcher::Matcher;
use super::named;
use crate::gather::text_of;
use holdup_evidence::observed::{How, StatementKind};
use std::sync::LazyLock;

/// Words for a lock that another one has. Package managers, git, databases, Terraform, LVM, Docker, NFS.
const WORDS: [&str; 43] = [
    "could not get lock",
    "could not lock",
    "could not obtain lock",
    "could not obtain a lock",
    "could not acquire lock",
    "could not acquire the lock",
    "could not acquire a lock",
    "couldn't acquire lock",
    "cannot acquire lock",
    "cannot lock",
    "can't lock",
    "can't get lock",
    "cannot get lock",
    "failed to acquire lock",
    "failed to acquire the lock",
    "failed to get lock",
    "failed to lock",
    "failed to obtain lock",
    "unable to acquire lock",
    "unable to acquire the lock",
    "unable to acquire the dpkg",
    "unable to get lock",
    "unable to get exclusive lock",
    "unable to lock",
    "unable to obtain lock",
    "error acquiring the state lock",
    "waiting for cache lock",
    "waiting for file lock",
    "waiting for the lock",
    "waiting for lock on",
    "waiting to acquire lock",
    "blocking waiting for file lock",
    "holding the yum lock",
    "holding the lock",
    "holds the lock",
    "lock is held by",
    "lock held by",
    "is locked by",
    "already locked by",
    "database is locked",
    "database table is locked",
    "existing lock",
    ".lock': file exists",
];

static MATCHER: LazyLock<Option<Matcher<()>>> =
    LazyLock::new(|| Matcher::new(WORDS.iter().map(|word| (*word, ()))));

/// That a line speaks of a lock which another one has.
pub(in crate::statements) fn found(line: &[u8]) -> Option<Found> {
    // All of the words have it, and few lines.
    let has = crate::find::find(line, b"ock").is_some() || crate::find::find(line, b"OCK").is_some();
    let matcher = MATCHER.as_ref().filter(|_| has)?;
    let kind = StatementKind::Stalled;
    let (at, ()) = matcher.find(line).find(|(at, ())| {
        // `existing lockfile` is another thing.
        let goes_on = line.get(at.end).is_some_and(u8::is_ascii_alphabetic);
        if goes_on {
            return false;
        }
        let before = at.start.checked_sub(1).and_then(|at| line.get(at));
        // The end of a path: `/srv/shop/.git/index.lock': File exists`.
        let of_path = line.get(at.start) == Some(&b'.');
        let begins = before.is_none_or(|byte| !byte.is_ascii_alphanumeric());
        of_path || begins && states(line, at, kind)
    })?;
    // What somebody did not lock because he may not, or because it is not there, nobody has.
    // Whoever stands by until another's lease ends has nothing to do meanwhile.
    let other: [&[u8]; 6] = [
        b"has not yet expired",
        b"ermission denied",
        b"o such file",
        b"ead-only file system",
        b"o space left",
        b"o locks available",
    ];
    let of_other = other.iter().any(|words| crate::find::find(line, words).is_some());
    (!of_other).then_some(Found { kind, at: at.start })
}

/// Words behind which a holder is named that is no process with a number.
const BEFORE_HOLDER: [&str; 8] = [
    "lock is held by ",
    "lock held by ",
    "is held by ",
    "is locked by ",
    "already locked by ",
    "currently held by ",
    "locked by ",
    "held by ",
];

/// Words with which a holder is left open.
const NOBODY: [&str; 14] = [
    "another", "other", "the", "a", "an", "some", "someone", "somebody", "process", "pid", "this", "unknown",
    "user", "it",
];

/// Bytes of a line in which a holder is looked for, and of its name.
const MAX_LINE_BYTES: usize = 600;
const MAX_NAME_BYTES: usize = 60;

/// Who has the lock, or else what is locked.
pub(super) fn of(line: &[u8]) -> Option<(String, How)> {
    let text = text_of(line.get(..MAX_LINE_BYTES).unwrap_or(line));
    // A process that is named before is the one that writes the line.
    let at = found(line).map_or(0, |found| found.at);
    let behind = text_of(
        line.get(at..)
            .unwrap_or_default()
            .get(..MAX_LINE_BYTES)
            .unwrap_or(line.get(at..).unwrap_or_default()),
    );
    if let Some(holder) = process(&behind).or_else(|| holder(&text)) {
        return Some((holder, How::HasLock));
    }
    if let Some(path) = named::path(line) {
        return Some((path, How::Locked));
    }
    let lower = text.to_ascii_lowercase();
    let known = [
        "database table",
        "database",
        "state lock",
        "build directory",
        "package cache",
    ];
    let known = known.iter().find(|known| lower.contains(**known))?;
    Some((format!("the {known}"), How::Locked))
}

/// A process by its number, with its name in brackets beside it: `process 1719 (unattended-upgr)`, `PID: 33`, `pid 7 (zypper)`.
fn process(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    for word in ["process", "pid"] {
        for (at, _) in lower.match_indices(word).take(8) {
            let behind = text.get(at + word.len()..)?;
            let behind = behind.strip_prefix(" id").unwrap_or(behind);
            let begin = behind.trim_start_matches([' ', ':', '=', '#', '"', '\'']);
            let digits = begin.bytes().take_while(u8::is_ascii_digit).count();
            if !(1..9).contains(&digits) {
                continue;
            }
            let (number, rest) = begin.split_at_checked(digits)?;
            let name = rest
                .trim_start()
                .strip_prefix('(')
                .and_then(|rest| rest.split(')').next());
            let name = name.filter(|name| !name.is_empty() && name.len() <= MAX_NAME_BYTES);
            return Some(match name {
                Some(name) => format!("process {number} ({name})"),
                None => format!("process {number}{}", machine(rest)),
            });
        }
    }
    None
}

/// The machine that the process is of, where it stands behind its number and nothing else follows but by whom: ` on vault-3 by root`.
fn machine(behind: &str) -> String {
    let of = behind.strip_prefix(" on ").and_then(|rest| {
        let rest = rest.strip_prefix("host ").unwrap_or(rest);
        let is_of_name = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '.' | '_');
        let end = rest.find(|char| !is_of_name(char)).unwrap_or(rest.len());
        let (name, rest) = rest.split_at_checked(end)?;
        let ends = rest.trim().is_empty() || [" by ", ",", ";", ")"].iter().any(|end| rest.starts_with(end));
        let open = NOBODY.iter().any(|nobody| name.eq_ignore_ascii_case(nobody));
        (ends && !open && (1..=MAX_NAME_BYTES).contains(&name.len())).then_some(name)
    });
    of.map_or_else(String::new, |name| format!(" on {}", name.trim_end_matches('.')))
}

/// A holder by its name: `lock held by backup@db-3`.
fn holder(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    BEFORE_HOLDER.iter().find_map(|before| {
        let at = lower.find(before)? + before.len();
        let word = text.get(at..)?.split([' ', ',', ';', ')']).next()?;
        let name = word.trim_matches(['"', '\'', '`', '.', ':', '(']);
        let open = NOBODY.iter().any(|nobody| name.eq_ignore_ascii_case(nobody));
        let fits = name.len() > 1
            && name.len() <= MAX_NAME_BYTES
            && name.contains(|char: char| char.is_alphabetic());
        (!open && fits).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::{found, of};
    use crate::read_text;
    use holdup_evidence::observed::How;

    #[test]
    fn who_has_it_or_what_is_locked() {
        for (line, who, how) in [
            (
                "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 17 (apt-get)",
                "process 17 (apt-get)",
                How::HasLock,
            ),
            (
                "System management is locked by the application with pid 2033 (zypper).",
                "process 2033 (zypper)",
                How::HasLock,
            ),
            (
                "Existing lock /var/run/yum.pid: another copy is running as pid 812.",
                "process 812",
                How::HasLock,
            ),
            (
                "job 4: lock held by backup@db-3, giving up",
                "backup@db-3",
                How::HasLock,
            ),
            (
                "fatal: Unable to create '/srv/shop/.git/index.lock': File exists.",
                "/srv/shop/.git/index.lock",
                How::Locked,
            ),
            (
                "sqlite3.OperationalError: database is locked",
                "the database",
                How::Locked,
            ),
            (
                "    Blocking waiting for file lock on build directory",
                "the build directory",
                How::Locked,
            ),
        ] {
            assert!(found(line.as_bytes()).is_some(), "{line}");
            assert_eq!(of(line.as_bytes()), Some((who.to_owned(), how)), "{line}");
        }
    }

    #[test]
    fn what_nobody_else_has_is_no_lock_of_another() {
        for line in [
            "no process holds the lock",
            "could not lock /run/x: Permission denied",
            "the door is locked",
            "clock is held by a screw",
            "acquired lock on /run/x",
            "warning: Ignoring existing lockfile due to mismatched requirements",
            "I1129 10:00:00 1 leaderelection.go:352] lock is held by cm-1_5f0c and has not yet expired",
        ] {
            assert_eq!(found(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn who_writes_the_line_has_no_lock() {
        for (line, of_lock) in [
            (
                "worker[pid 4711]: could not acquire lock /srv/jobs/7.lock, retrying",
                Some(("/srv/jobs/7.lock".to_owned(), How::Locked)),
            ),
            (
                "level=warn pid=4711 msg=\"could not obtain lock on relation accounts\"",
                None,
            ),
        ] {
            assert_eq!(of(line.as_bytes()), of_lock, "{line}");
        }
    }

    #[test]
    fn a_lock_comes_before_what_tries_again() {
        let text = "Reading lists...\nE: Could not get lock /var/lib/apt/lists/lock. It is held by process 90 (packagekitd)\n\
            Attempt 2 failed! Trying again in 5s... (2/5)\n";
        let all = read_text("t", text.as_bytes()).observed.statements;
        let lock = all.iter().find(|one| !one.blames.is_empty()).unwrap();
        assert_eq!(lock.blames[0].of, "process 90 (packagekitd)");
        assert_eq!(lock.blames[0].how, How::HasLock);
    }
}
