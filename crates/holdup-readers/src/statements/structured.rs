//! A line of a structured log (`{"level":"warn","msg":"…","took":"4.9s"}`, with or without a prefix) as a sentence.
//!
//! In: a line, perhaps cut. Out: its message, then its error, then its lengths, then its other values by name. JSON is read as far as it
//! goes: lines are clipped where people copy them, so that a parser of whole documents would refuse them.

use super::durations;
use crate::find::find;
use crate::gather::text_of;

/// Bytes of a sentence, of one value, and pairs that are looked at.
const MAX_MESSAGE_BYTES: usize = 340;
const VALUE: usize = 120;
const PAIRS: usize = 64;

/// Objects within objects that are looked into.
const DEPTH: usize = 6;

/// Keys of what a line says.
const MESSAGES: [&str; 6] = ["msg", "message", "event", "log", "text", "short_message"];

/// Keys of why.
const ERRORS: [&str; 5] = ["error", "err", "exception", "cause", "reason"];

/// Keys of when, where in the code, how grave, and of numbers that name nothing to a reader.
const ASIDE: [&str; 36] = [
    "t",
    "ts",
    "time",
    "timestamp",
    "@timestamp",
    "$date",
    "date",
    "start",
    "end",
    "s",
    "level",
    "lvl",
    "severity",
    "v",
    "caller",
    "logger",
    "source",
    "file",
    "line",
    "func",
    "pid",
    "id",
    "hostname",
    "thread",
    "stream",
    "$uuid",
    "$timestamp",
    "base64",
    "ctx",
    "_id",
    "reslen",
    "numyields",
    "keyid",
    "i",
    "w",
    "r",
];

/// Keys of the status with which a server answered a request.
const STATUS: [&str; 5] = ["status", "status_code", "statuscode", "response_code", "code"];

/// Whether a line tells of a request that a server answered with an error of its own (`"status_code":503`), and where its values begin.
pub(super) fn server_error(line: &[u8]) -> Option<usize> {
    let begin = find(line, b"{\"")?;
    pairs(line.get(begin..)?).iter().any(is_error).then_some(begin)
}

fn is_error(pair: &Pair<'_>) -> bool {
    let of_key = STATUS
        .iter()
        .any(|key| pair.key.eq_ignore_ascii_case(key.as_bytes()));
    of_key && matches!(pair.value, [b'5', b'0'..=b'9', b'0'..=b'9'])
}

/// A value with its key.
struct Pair<'a> {
    key: &'a [u8],
    value: &'a [u8],
    /// Whether the key is of the line's own.
    depth: usize,
}

/// The line as a sentence; `None` where it is no structured one.
pub(crate) fn message_of(line: &[u8]) -> Option<String> {
    let begin = find(line, b"{\"").or_else(|| find(line, b"{ \""))?;
    let pairs = pairs(line.get(begin..)?);
    let is = |pair: &Pair<'_>, keys: &[&str]| {
        keys.iter()
            .any(|key| pair.key.eq_ignore_ascii_case(key.as_bytes()))
    };
    let message = pairs
        .iter()
        .position(|pair| pair.depth == 1 && is(pair, &MESSAGES) && !pair.value.is_empty())
        .or_else(|| pairs.iter().position(is_error))?;
    let rank = |(at, pair): (usize, &Pair<'_>)| match () {
        () if at == message => Some(0),
        () if pair.value.is_empty()
            || is(pair, &ASIDE)
            || pair.key.len() < 2
            || pair.key.starts_with(b"$") =>
        {
            None
        }
        () if is(pair, &ERRORS) => Some(1),
        () if length(pair) => Some(2),
        // Names of things say more than counts.
        () if pair.value.iter().any(u8::is_ascii_alphabetic) => Some(3),
        () => Some(4),
    };
    let mut order: Vec<(i32, usize)> = pairs
        .iter()
        .enumerate()
        .filter_map(|(at, pair)| Some((rank((at, pair))?, at)))
        .collect();
    order.sort_unstable();
    let mut text = String::new();
    for (rank, at) in order {
        let Some(pair) = pairs.get(at) else { continue };
        if text.len() > MAX_MESSAGE_BYTES {
            break;
        }
        let value = text_of(pair.value.get(..VALUE).unwrap_or(pair.value));
        let value = value.replace("\\\"", "\"").replace("\\n", " ");
        let value = value.trim();
        match rank {
            0 if is_error(pair) => text.push_str(&format!("answered with HTTP status {value}")),
            0 => text.push_str(value),
            _ => {
                text.push_str(if text.contains(": ") { ", " } else { ": " });
                text.push_str(&format!("{} {value}", text_of(pair.key)));
            }
        }
    }
    Some(text)
}

/// Whether a pair is a length of time, by its key or its unit.
fn length(pair: &Pair<'_>) -> bool {
    let mut line = pair.key.to_vec();
    line.extend_from_slice(b": ");
    line.extend_from_slice(pair.value.get(..VALUE).unwrap_or(pair.value));
    durations::longest(&line, false).is_some()
}

/// Keys and values in their order, those of objects within with their own keys, those of lists with the list's.
fn pairs(text: &[u8]) -> Vec<Pair<'_>> {
    let mut pairs = Vec::new();
    let mut depth = 0_usize;
    let mut key: &[u8] = b"";
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        if pairs.len() >= PAIRS {
            break;
        }
        match byte {
            b'{' => {
                depth += 1;
                at += 1;
            }
            b'}' => {
                depth = depth.saturating_sub(1);
                at += 1;
                if depth == 0 {
                    break;
                }
            }
            b'"' => {
                let (string, end) = string(text, at + 1);
                let behind = text.get(end..).unwrap_or_default();
                let blanks = behind
                    .iter()
                    .take_while(|byte| byte.is_ascii_whitespace())
                    .count();
                at = end;
                if behind.get(blanks) == Some(&b':') {
                    key = string;
                    at += blanks + 1;
                } else if depth <= DEPTH {
                    pairs.push(Pair {
                        key,
                        value: string,
                        depth,
                    });
                }
            }
            b'0'..=b'9' | b'-' => {
                let rest = text.get(at..).unwrap_or_default();
                let number = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+');
                let end = at + rest.iter().take_while(number).count();
                if depth <= DEPTH {
                    pairs.push(Pair {
                        key,
                        value: text.get(at..end).unwrap_or_default(),
                        depth,
                    });
                }
                at = end.max(at + 1);
            }
            _ => at += 1,
        }
    }
    pairs
}

/// What stands between quotation marks, and where it ends; to the end of a line that is cut.
fn string(text: &[u8], from: usize) -> (&[u8], usize) {
    let mut at = from;
    while let Some(byte) = text.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return (text.get(from..at).unwrap_or_default(), at + 1),
            _ => at += 1,
        }
    }
    (text.get(from..).unwrap_or_default(), text.len())
}

/// Words of a line of a record from which it is a sentence as well.
const SENTENCE: usize = 5;

/// Whether a line of a record has a sentence, a message or a reason, or says how long something took.
pub(super) fn is_sentence(line: &[u8]) -> bool {
    let said = crate::numbers::words(line).take(SENTENCE).count() >= SENTENCE;
    said || durations::longest(line, false).is_some()
}

#[cfg(test)]
mod tests {
    use super::message_of;

    #[test]
    fn message_error_and_length_come_first_and_values_within_are_told() {
        let line = br#"app-1 | {"ts":"2025-01-02T03:04:05Z","level":"warn","msg":"slow call","req":{"path":"/a","bytes":12},"steps":["read (duration: 2s)"],"took":"2.5s","error":"none left"}"#;
        assert_eq!(
            message_of(line).as_deref(),
            Some("slow call: error none left, steps read (duration: 2s), took 2.5s, path /a, bytes 12")
        );
    }

    #[test]
    fn a_request_that_a_server_answered_with_an_error_needs_no_message() {
        let line = br#"{"times":{"tw":104,"tt":208},"http":{"response":{"status_code":503}},"backend":{"name":"shop"}}"#;
        assert_eq!(
            message_of(line).as_deref(),
            Some("answered with HTTP status 503: name shop, tw 104, tt 208")
        );
        assert!(super::server_error(line).is_some());
        for line in [&br#"{"status":200}"#[..], br#"{"bytes":503}"#, b"status 503"] {
            assert_eq!(super::server_error(line), None);
        }
    }

    #[test]
    fn a_line_that_is_cut_is_told_as_far_as_it_goes_and_rubbish_is_none() {
        assert_eq!(
            message_of(br#"{"msg":"half","a":{"path":"xy"#).as_deref(),
            Some("half: path xy")
        );
        for line in [
            &b"{\"a\":1}"[..],
            b"{\"",
            b"{\"msg\"",
            b"{\"msg\":\"",
            b"{\"\\",
            b"no json",
        ] {
            assert_eq!(message_of(line), None, "{}", String::from_utf8_lossy(line));
        }
    }
}
