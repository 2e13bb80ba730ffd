//! What is at its limit by the figures of a line: `Memory used:881321872 allowed:787377356`, `queue capacity = 200, queued tasks = 200`; and
//! a limit that a line says was exceeded, with figures between the words: `Hard time limit (60s) exceeded for mail`.

use super::kinds::Found;
use crate::find::find;
use holdup_evidence::observed::{Statement, StatementKind};

/// Words of names of what is in use, and of names of what may be.
const USED: [&str; 5] = ["used", "usage", "current", "queued", "active"];
const ALLOWED: [&str; 6] = ["allowed", "limit", "max", "maximum", "capacity", "quota"];

/// Words that stand with a name of what is in use or may be, where two of these name the same thing: a queue, a pool.
const BEFORE_ALLOWED: [&str; 2] = ["min", "minimum"];

/// Bytes that are looked at.
const SCANNED: usize = 700;

/// Names with numbers of one line.
const PAIRS: usize = 32;

/// What is used of what is allowed, where that is all or more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Full {
    pub(super) used: f64,
    pub(super) allowed: f64,
}

/// The first pair of figures of a text of which what is used has reached what is allowed.
pub(super) fn full(text: &str) -> Option<Full> {
    // A cut may fall within a character.
    let end = (0..=SCANNED.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    let text = text.get(..end.unwrap_or(0)).unwrap_or_default();
    let mut used: Vec<f64> = Vec::new();
    let mut allowed: Option<f64> = None;
    for (name, value) in pairs(text).take(PAIRS) {
        let has = |known: &[&str]| {
            let mut words = name.split(|char: char| !char.is_ascii_alphabetic());
            words.any(|word| known.iter().any(|one| word.eq_ignore_ascii_case(one)))
        };
        if has(&BEFORE_ALLOWED) {
            continue;
        }
        if has(&ALLOWED) {
            allowed = allowed.or(Some(value));
        } else if has(&USED) {
            used.push(value);
        }
    }
    let allowed = allowed.filter(|allowed| *allowed > 1.0)?;
    let used = used.into_iter().find(|used| *used >= allowed)?;
    // Of other things: an identifier, bytes beside a number of clients.
    (used <= 10.0 * allowed).then_some(Full { used, allowed })
}

/// Bytes of a message that a statement has in any case, and of what stands before its figures.
const MIN_TOLD_BYTES: usize = 240;
const BEFORE: usize = 60;

/// Bytes of a message in which figures are looked for.
const MAX_SEARCHED_BYTES: usize = 4 << 10;

/// Where the figures of a failure begin that say that something is at its limit, if that is behind what is told of a message in any case.
pub(super) fn figures(kind: StatementKind, message: &[u8]) -> Option<usize> {
    let fails = matches!(
        kind,
        StatementKind::Exhausted | StatementKind::TimedOut | StatementKind::Failed
    );
    let behind = message.get(MIN_TOLD_BYTES..).filter(|_| fails)?;
    let behind = behind.get(..MAX_SEARCHED_BYTES).unwrap_or(behind);
    let first = ALLOWED
        .iter()
        .filter_map(|word| find(behind, word.as_bytes()))
        .min()?;
    let at = MIN_TOLD_BYTES + first.saturating_sub(BEFORE);
    let text = crate::gather::text_of(message.get(at..(at + SCANNED).min(message.len()))?);
    full(&text).map(|_| at)
}

/// Says of a failure with figures that something is at its limit, and by how much.
pub(super) fn tell(statement: &mut Statement) {
    let fails = matches!(
        statement.kind,
        StatementKind::Exhausted | StatementKind::TimedOut | StatementKind::Failed
    );
    if !fails {
        return;
    }
    if let Some(full) = full(&statement.text) {
        statement.kind = StatementKind::Exhausted;
        statement.share = Some(full.used / full.allowed);
    }
}

/// Names with a sign and a number behind them.
fn pairs(text: &str) -> impl Iterator<Item = (&str, f64)> {
    let parts = text.split([',', '[', ']', '(', ')', ';', '|']);
    let parts = parts.flat_map(|part| match part.matches([':', '=']).count() {
        // `used:8 allowed:7`: a name and a number in each word.
        0 | 1 => vec![part],
        _ => part.split(' ').collect(),
    });
    parts.filter_map(|part| {
        let (name, value) = part.split_once(['=', ':'])?;
        let value = value.trim();
        let digits = value
            .bytes()
            .take_while(|byte| byte.is_ascii_digit() || *byte == b'.')
            .count();
        let unit = value.get(digits..)?;
        // A length of time is no number of things.
        unit.is_empty()
            .then_some((name.trim(), value.get(..digits)?.parse().ok()?))
    })
}

/// Words of limits, and what they are exceeded by.
const LIMITS: [&[u8]; 4] = [b"limit", b"quota", b"watermark", b"budget"];

/// Words that take it back or make it a condition.
const OPEN: [&[u8]; 5] = [b"not ", b"never ", b"if ", b"when ", b"until "];

/// Bytes between a limit and the word that says that it was exceeded.
const BETWEEN: usize = 24;

/// A limit that was exceeded, with its figure in brackets between the two.
pub(super) fn exceeded(line: &[u8]) -> Option<Found> {
    let at = find(line, b"] exceeded").or_else(|| find(line, b") exceeded"))?;
    let from = at.saturating_sub(BETWEEN);
    let before = line.get(..at)?.to_ascii_lowercase();
    let near = before.get(from..)?;
    let limit = LIMITS.iter().filter_map(|word| find(near, word)).max()?;
    let open = before.get(at.saturating_sub(80)..)?;
    if OPEN.iter().any(|word| find(open, word).is_some()) {
        return None;
    }
    let of_time = near.get(..limit).is_some_and(|near| near.ends_with(b"time "));
    Some(Found {
        kind: if of_time {
            StatementKind::TimedOut
        } else {
            StatementKind::Exhausted
        },
        at: from + limit,
    })
}

#[cfg(test)]
mod tests {
    use super::{exceeded, full};
    use holdup_evidence::observed::StatementKind;

    #[test]
    fn what_is_used_has_reached_what_is_allowed() {
        for (text, used, allowed) in [
            (
                "Memory used:881321872 allowed:787377356",
                881_321_872.0,
                787_377_356.0,
            ),
            (
                "Pool[name = n/search, queue capacity = 200, min queue capacity = 90, x@6 [Running, pool size = 7, active threads = 7, queued tasks = 201, completed tasks = 9]]",
                201.0,
                200.0,
            ),
            ("sessions (current=40, max=40)", 40.0, 40.0),
        ] {
            let found = full(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((found.used, found.allowed), (used, allowed), "{text}");
        }
        for text in [
            "Memory used:700 allowed:787",
            "pool size = 7, active threads = 7, queued tasks = 12",
            "limit=0 current=5",
            "current=1700000000, max=10",
            "used: 5 s, limit: 3 s",
        ] {
            assert_eq!(full(text), None, "{text}");
        }
    }

    #[test]
    fn a_limit_with_its_figure() {
        let kind = |line: &str| exceeded(line.as_bytes()).map(|found| found.kind);
        assert_eq!(
            kind("Hard time limit (60s) exceeded for mail[3]"),
            Some(StatementKind::TimedOut)
        );
        assert_eq!(
            kind("high disk watermark [90%] exceeded on [a1][n1]"),
            Some(StatementKind::Exhausted)
        );
        for line in [
            "retry if the limit (5) exceeded happens",
            "[a] exceeded expectations",
            "limit (5) not reached",
        ] {
            assert_eq!(kind(line), None, "{line}");
        }
    }
}
