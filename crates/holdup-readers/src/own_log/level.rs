//! How grave a line is by its own word for it, and whether it is a line of an access log.

/// How grave a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// For whoever writes the program.
    Debug,
    /// What happens every day.
    Info,
    /// Without a level.
    None,
    /// Worth a look, or worse.
    Warning,
}

/// Bytes at the beginning of a line in which its level stands.
const LEVEL_WITHIN: usize = 160;

/// Words for each level, in small letters.
const WORDS: [(Level, &[&str]); 3] = [
    (
        Level::Debug,
        &["debug", "trace", "dbg", "verbose", "fine", "finer", "finest"],
    ),
    (Level::Info, &["info", "notice", "note", "log", "inf"]),
    (
        Level::Warning,
        &[
            "warn", "warning", "wrn", "error", "err", "fatal", "crit", "critical", "severe", "alert",
            "emerg", "panic", "ftl",
        ],
    ),
];

/// The level of a line: the first word for one near its beginning that stands as a level does, in capitals, in brackets, before a colon or
/// behind `level=`.
pub(super) fn of(line: &[u8]) -> Level {
    let head = line.get(..LEVEL_WITHIN).unwrap_or(line);
    if let Some(level) = by_letter(head) {
        return level;
    }
    let mut at = 0;
    while at < head.len() {
        let rest = head.get(at..).unwrap_or_default();
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        if length == 0 {
            at += 1;
            continue;
        }
        let word = rest.get(..length).unwrap_or_default();
        let before = at.checked_sub(1).and_then(|at| head.get(at)).copied();
        let after = rest.get(length).copied();
        let stands = word.iter().all(u8::is_ascii_uppercase) && length > 2
            || matches!((before, after), (Some(b'['), Some(b']')))
            || matches!((before, after), (Some(b'"'), Some(b'"')))
            || matches!(before, Some(b'=')) && head.get(..at).is_some_and(ends_with_key)
            || matches!(after, Some(b':'));
        let level = WORDS.iter().find_map(|(level, words)| {
            let same = |known: &&str| word.eq_ignore_ascii_case(known.as_bytes());
            words.iter().any(same).then_some(*level)
        });
        if let Some(level) = level.filter(|_| stands) {
            return level;
        }
        at += length;
    }
    Level::None
}

/// Whether a word is that of a level, with brackets or a colon around it.
pub(super) fn is_level(word: &[u8]) -> bool {
    let sign = |byte: &u8| b"[]<>():".contains(byte);
    let from = word.iter().position(|byte| !sign(byte)).unwrap_or(word.len());
    let to = word
        .iter()
        .rposition(|byte| !sign(byte))
        .map_or(from, |at| at + 1);
    let bare = word.get(from..to).unwrap_or_default();
    let known = WORDS.iter().flat_map(|(_, words)| words.iter());
    let is_known = known
        .into_iter()
        .any(|known| bare.eq_ignore_ascii_case(known.as_bytes()));
    is_known && (bare.len() < word.len() || bare.iter().all(u8::is_ascii_uppercase))
}

/// Whether text ends with the key of a level and `=`.
fn ends_with_key(before: &[u8]) -> bool {
    let keys: [&[u8]; 3] = [b"level=", b"lvl=", b"severity="];
    keys.iter().any(|key| before.ends_with(key))
}

/// glog's letter (`W0507 11:59:43`), and the one between a time and a process of etcd's and Java's short forms is not looked for.
fn by_letter(line: &[u8]) -> Option<Level> {
    let level = match line {
        [b'E' | b'F', ..] | [b'W', ..] => Level::Warning,
        [b'I', ..] => Level::Info,
        [b'D', ..] => Level::Debug,
        _ => return None,
    };
    let digits = line.get(1..5)?.iter().all(u8::is_ascii_digit) && line.get(5) == Some(&b' ');
    digits.then_some(level)
}

/// Whether a line is one of an access log: a request in quotes, and its status behind it.
pub(super) fn is_access(line: &[u8]) -> bool {
    let begin: &[u8] = b" HTTP/";
    let mut from = 0;
    while let Some(at) = crate::find::find(line.get(from..).unwrap_or_default(), begin) {
        let at = from + at;
        // `1.1" 200`.
        let rest = line.get(at + begin.len()..).unwrap_or_default();
        let version = rest
            .iter()
            .take(4)
            .take_while(|byte| byte.is_ascii_digit() || **byte == b'.')
            .count();
        if let [b'"', b' ', status @ ..] = rest.get(version..).unwrap_or_default() {
            return status.len() > 2 && status.iter().take(3).all(u8::is_ascii_digit);
        }
        from = at + begin.len();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{Level, is_access, of};

    #[test]
    fn the_level_is_where_loggers_put_it() {
        for (line, level) in [
            (
                "2026/11/28 15:30:07 [notice] 31961#31961: *68 delaying request",
                Level::Info,
            ),
            (
                "2026-11-28 15:30:07.123 UTC [77] FATAL:  sorry, too many clients already",
                Level::Warning,
            ),
            (
                "[28-Nov-2026 15:30:07] WARNING: [pool www] server reached pm.max_children",
                Level::Warning,
            ),
            (
                "28-Nov-2026 15:39:44.573 xfer-in: info: zone a/IN: zone transfer deferred",
                Level::Info,
            ),
            (r#"{"level":"warn","ts":"2026","msg":"slow"}"#, Level::Warning),
            ("time=2026 level=debug msg=x", Level::Debug),
            ("W0507 11:59:43.923954 1 a.go:7] slow", Level::Warning),
            ("printed by hand: the error is gone", Level::None),
            ("an error was found in the log", Level::None),
        ] {
            assert_eq!(of(line.as_bytes()), level, "{line}");
        }
    }

    #[test]
    fn a_line_of_an_access_log_has_a_status_behind_its_request() {
        assert!(is_access(
            br#"127.0.0.1 - - [28/Nov] "GET /limit-exceeded HTTP/1.1" 200 17"#
        ));
        let error = br#"limiting requests, client: ::1, request: "GET / HTTP/1.1", host: "x""#;
        assert!(!is_access(error));
    }
}
