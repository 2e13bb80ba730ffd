//! Lengths of time in a line: `12.3s`, `250 ms`, `2m30s`, `took 8 seconds`, `"duration_ms":517`, `Query_time: 12.5`.
//!
//! Only lengths of what happened: no settings (`timeout=30s`, `interval 10s`), no times of day, no ages, no rates.

use crate::find::find;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use holdup_evidence::Ns;
use std::sync::LazyLock;

/// A length, and where in the line it stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Length {
    pub(super) ns: Ns,
    pub(super) at: usize,
}

/// Bytes before a number that tell what it is.
const BEFORE: usize = 40;

/// Parts of one length: `1d 2h 3min 4s 5ms`.
const MAX_PARTS: usize = 6;

const US: f64 = 1e3;
const MS: f64 = 1e6;
const SECOND: f64 = 1e9;
const MINUTE: f64 = 60.0 * SECOND;
const HOUR: f64 = 3_600.0 * SECOND;
const DAY: f64 = 86_400.0 * SECOND;

/// The longest length that is believed: a larger number is an identifier.
const MAX_LENGTH_NS: f64 = 3_650.0 * DAY;

/// Bytes of a number; a longer one is an identifier.
const LONGEST_NUMBER: usize = 18;

/// Words before a number that make it a setting, a date, an age or a promise, in the programs' own words.
const NO_LENGTHS: &[&str] = &[
    "interval",
    "ttl",
    "period",
    "every",
    "threshold",
    "keepalive",
    "keep-alive",
    "lease",
    "expir",
    "retention",
    "retain",
    "maximum",
    "max_",
    "max-",
    "max ",
    "minimum",
    "min_",
    "uptime",
    // Of a table of what runs: `Up 4 minutes`.
    "  up ",
    "rate",
    "resolution",
    "frequency",
    "default",
    "grace",
    "next ",
    "retry in",
    "retrying in",
    "again in",
    "retry after",
    "will retry",
    "sleeping for",
    "back-off",
    "backoff",
    "age",
    "window",
    "schedule",
    "delay=",
    "eta",
    "remaining",
    "resync",
    "finish=",
    "budget",
    "since boot",
    "clocksource",
    "version",
    "target",
    "lifetime",
    "power",
    "higher than",
    "slower than",
    "out of",
    // `spent [1.4s] collecting in the last [1.8s]`: the time that was looked at.
    "the last",
];

/// Words before a number that make it a setting unless the line says that it ran out.
const TIMEOUTS: &[&str] = &["timeout", "time-out", "time out", "deadline", "limit"];

static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostLongest)
        .kind(Some(AhoCorasickKind::DFA))
        .build(TIMEOUTS.iter().chain(NO_LENGTHS))
        .ok()
});

/// The longest length of a line. Where a wait was given up, its limit is how long it was.
pub(super) fn longest(line: &[u8], timed_out: bool) -> Option<Length> {
    let mut longest: Option<Length> = None;
    if is_setting(line) {
        return None;
    }
    if let Some(known) = stages(line).or_else(|| sampled(line)) {
        return Some(known);
    }
    let mut at = 0;
    while let Some(digit) = line
        .get(at..)
        .and_then(|rest| rest.iter().position(u8::is_ascii_digit))
    {
        let from = at + digit;
        if let Some((ns, behind)) = on_a_clock(line, from) {
            at = behind;
            if longest.is_none_or(|longest| ns > longest.ns) && happened(line, from, behind, timed_out) {
                longest = Some(Length { ns, at: from });
            }
            continue;
        }
        let (number, end) = number(line, from);
        at = end.max(from + 1);
        let inside = from
            .checked_sub(1)
            .and_then(|before| line.get(before))
            .is_some_and(|before| {
                before.is_ascii_alphanumeric()
                    || matches!(before, b'_' | b'.' | b'/' | b'-' | b'#' | b'%')
                    || *before == b':'
                        && from
                            .checked_sub(2)
                            .and_then(|two| line.get(two))
                            .is_some_and(u8::is_ascii_digit)
            });
        if inside {
            at = skip_word(line, end);
            continue;
        }
        let Some(number) = number else {
            at = skip_word(line, end);
            continue;
        };
        let Some((ns, behind)) = length(line, from, number, end) else {
            continue;
        };
        at = behind.max(at);
        // `(1min 14s / 2min 17s)`: of what may pass.
        if longest.is_some() && line.get(..from).is_some_and(|before| before.ends_with(b" / ")) {
            continue;
        }
        let longer = longest.is_none_or(|longest| ns > longest.ns as f64);
        if longer && (1.0..MAX_LENGTH_NS).contains(&ns) && happened(line, from, behind, timed_out) {
            longest = Some(Length {
                ns: ns as Ns,
                at: from,
            });
        }
    }
    longest
}

/// A length as a clock shows it, with the unit of its last or first part behind it: `12:37.724s`, `01:12 min`, `1:02 h`.
fn on_a_clock(line: &[u8], from: usize) -> Option<(Ns, usize)> {
    let digits = |from: usize| {
        let rest = line.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let minutes = digits(from);
    // Nearly every number ends the look here.
    if minutes > 3 || line.get(from + minutes) != Some(&b':') || digits(from + minutes + 1) != 2 {
        return None;
    }
    let named = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'-' | b'.' | b'T' | b'/');
    if from
        .checked_sub(1)
        .and_then(|before| line.get(before))
        .is_some_and(named)
    {
        return None;
    }
    let seconds = from + minutes + 1;
    let mut end = seconds + 2;
    if line.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    let (unit, behind) = unit(line, end)?;
    let small = match unit {
        SECOND => SECOND,
        MINUTE => SECOND,
        HOUR => MINUTE,
        _ => return None,
    };
    let whole = crate::numbers::decimal(line.get(from..from + minutes)?)?;
    let part = crate::numbers::decimal(line.get(seconds..end)?).filter(|part| *part < 60.0)?;
    let ns = (whole * 60.0 + part) * small;
    (1.0..MAX_LENGTH_NS).contains(&ns).then_some((ns as Ns, behind))
}

/// What Postfix puts before the seconds of a message's four stages.
const STAGES: &[u8] = b", delays=";

/// The longest of the stages that Postfix tells of each message: `delay=151, delays=0.03/0.01/150/0`, seconds before the queue manager, in
/// it, until it was connected, and of the transmission.
fn stages(line: &[u8]) -> Option<Length> {
    let from = find(line, STAGES)? + STAGES.len();
    let rest = line.get(from..)?;
    let end = rest.iter().position(|byte| *byte == b',')?;
    let mut longest: Option<Length> = None;
    let mut at = from;
    for stage in rest.get(..end)?.split(|byte| *byte == b'/') {
        let seconds = crate::numbers::decimal(stage)?;
        let ns = (seconds * SECOND).clamp(0.0, MAX_LENGTH_NS) as Ns;
        if longest.is_none_or(|longest| ns > longest.ns) {
            longest = Some(Length { ns, at });
        }
        at += stage.len() + 1;
    }
    longest.filter(|longest| longest.ns > 0)
}

/// What `redis-cli --latency` prints, in milliseconds: `min: 0, max: 1289, avg: 14.02 (1821 samples)`.
fn sampled(line: &[u8]) -> Option<Length> {
    let rest = line.strip_prefix(b"min: ")?;
    let from = find(rest, b", max: ")? + b", max: ".len();
    let behind = rest.get(from..)?;
    let end = find(behind, b", avg: ")?;
    // `--latency-history` has the time over which they were taken behind them.
    let (_, last) = behind.split_at_checked(find(behind, b" samples)")?)?;
    (last == b" samples)" || last.ends_with(b" seconds range")).then_some(())?;
    let ms = crate::numbers::decimal(behind.get(..end)?)?;
    let ns = (ms * MS).clamp(0.0, MAX_LENGTH_NS) as Ns;
    (ns > 0).then_some(Length {
        ns,
        at: from + b"min: ".len(),
    })
}

/// `kernel.sched_latency_ns = 24000000`: what is set, and nothing that happened.
fn is_setting(line: &[u8]) -> bool {
    let mut words = crate::numbers::words(line);
    let (Some(name), Some(b"="), Some(value), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return false;
    };
    name.contains(&b'.') && value.iter().all(u8::is_ascii_digit)
}

/// Digits of a number; of most that a log has the value is never asked for.
#[derive(Debug, Clone, Copy)]
struct Number<'a> {
    digits: &'a [u8],
    /// Whether a comma in it is between thousands.
    thousands: bool,
}

impl Number<'_> {
    fn value(self) -> Option<f64> {
        let mut text = [0; LONGEST_NUMBER];
        let mut length = 0;
        for byte in self
            .digits
            .iter()
            .filter(|byte| !(self.thousands && **byte == b','))
        {
            *text.get_mut(length)? = if *byte == b',' { b'.' } else { *byte };
            length += 1;
        }
        std::str::from_utf8(text.get(..length)?).ok()?.parse().ok()
    }
}

/// The number that begins here, and where it ends; none where it is a date, a time of day, an address or a version.
fn number(line: &[u8], from: usize) -> (Option<Number<'_>>, usize) {
    let digits = |from: usize| {
        let rest = line.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut end = from + digits(from);
    let whole = end - from;
    let mut thousands = false;
    if let Some(b'.' | b',') = line.get(end) {
        let fraction = digits(end + 1);
        let comma = line.get(end) == Some(&b',');
        // `1,234 ms`, but `0,123 s`.
        thousands = comma && fraction == 3 && whole <= 3 && line.get(from) != Some(&b'0');
        if fraction > 0 {
            end += 1 + fraction;
        }
    }
    let digit_behind = line.get(end + 1).is_some_and(u8::is_ascii_digit);
    if digit_behind && matches!(line.get(end), Some(b'.' | b':' | b'/' | b'-')) {
        return (None, end);
    }
    let digits = line.get(from..end).unwrap_or_default();
    let number = (digits.len() <= LONGEST_NUMBER).then_some(Number { digits, thousands });
    (number, end)
}

/// Passes over the rest of a word: of a date, an address, an identifier.
fn skip_word(line: &[u8], from: usize) -> usize {
    let rest = line.get(from..).unwrap_or_default();
    let word = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/' | b'-' | b':');
    from + rest.iter().take_while(word).count()
}

/// The length in nanoseconds of a number with its unit, and where it ends.
fn length(line: &[u8], from: usize, number: Number<'_>, end: usize) -> Option<(f64, usize)> {
    let Some((unit, mut behind)) = unit(line, end) else {
        // `7579.592..7922.997` of EXPLAIN is from the first row to the last.
        let word = line.get(..from)?;
        if word.ends_with(b"actual time=") && line.get(end..)?.starts_with(b"..") {
            let (last, end) = self::number(line, end + 2);
            return Some((last?.value()? * MS, end));
        }
        let unit = unit_of_key(word)?;
        let ended = line
            .get(end)
            .is_none_or(|next| !next.is_ascii_alphanumeric() && !matches!(next, b'%' | b'_' | b':' | b'/'));
        return ended.then_some((number.value()? * unit, end));
    };
    let mut ns = number.value()? * unit;
    let mut last = unit;
    let mut parts = 1;
    for _ in 1..MAX_PARTS {
        let blank = usize::from(line.get(behind) == Some(&b' '));
        if !line.get(behind + blank).is_some_and(u8::is_ascii_digit) {
            break;
        }
        let (Some(more), end) = self::number(line, behind + blank) else {
            break;
        };
        let Some((unit, end)) = self::unit(line, end) else {
            break;
        };
        if unit >= last {
            break;
        }
        ns += more.value()? * unit;
        last = unit;
        behind = end;
        parts += 1;
    }
    // A letter alone may be metres or millions.
    let letter = unit > SECOND && behind == end + 1 && parts == 1;
    let weak = letter && !after_a_word_of_time(line.get(..from)?);
    // A part of something else: `10 ms/op` is one, `5m-avg` is none.
    let ended = line
        .get(behind)
        .is_none_or(|next| !matches!(next, b'-' | b'=' | b'%'));
    (!weak && ended).then_some((ns, behind))
}

/// A unit behind a number, with at most one blank between.
fn unit(line: &[u8], end: usize) -> Option<(f64, usize)> {
    let rest = line.get(end..)?;
    let blank = usize::from(matches!(rest.first(), Some(b' ' | b'-')));
    let word = rest.get(blank..)?;
    let letter = |byte: &&u8| byte.is_ascii_alphabetic() || matches!(byte, 0xc2 | 0xb5 | 0xce | 0xbc);
    let length = word.iter().take(13).take_while(letter).count();
    let ns = match word.get(..length)? {
        b"ns" | b"nsec" | b"nsecs" | b"nanoseconds" => 1.0,
        b"us" | b"usec" | b"usecs" | b"micros" | b"microseconds" | b"\xc2\xb5s" | b"\xce\xbcs" => US,
        b"ms" | b"msec" | b"msecs" | b"millis" | b"milliseconds" | b"millisecond" => MS,
        b"s" | b"sec" | b"secs" | b"second" | b"seconds" | b"Seconds" | b"Sekunden" | b"segundos"
        | b"secondes" => SECOND,
        b"m" | b"min" | b"mins" | b"minute" | b"minutes" => MINUTE,
        b"h" | b"hr" | b"hrs" | b"hour" | b"hours" => HOUR,
        b"d" | b"day" | b"days" => DAY,
        _ => return None,
    };
    let behind = end + blank + length;
    let ended = line
        .get(behind)
        .is_none_or(|next| *next != b'_' && (blank == 0 || !next.is_ascii_digit()));
    ended.then_some((ns, behind))
}

/// The unit that a key says: `"duration_ms":`, `elapsedMillis=`, `Query_time: `.
fn unit_of_key(before: &[u8]) -> Option<f64> {
    let separator = |byte: &u8| matches!(byte, b' ' | b'"' | b'\'' | b':' | b'=');
    if !before.last().is_some_and(separator) {
        return None;
    }
    let end = before.iter().rposition(|byte| !separator(byte))? + 1;
    if !before.get(end..)?.iter().any(|byte| matches!(byte, b':' | b'=')) {
        return None;
    }
    let key = before.get(..end)?;
    let start = key
        .iter()
        .rposition(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'.' | b'-'));
    let key = key.get(start.map_or(0, |at| at + 1)..)?;
    const KEYS: &[(&str, f64)] = &[
        // HAProxy, nginx, MySQL, TiDB, dig.
        ("query_time", SECOND),
        ("lock_time", SECOND),
        ("request_time", SECOND),
        ("response_time", SECOND),
        ("cop_time", SECOND),
        ("process_time", SECOND),
        ("wait_time", SECOND),
        ("elapsed_seconds", SECOND),
        ("duration_seconds", SECOND),
        ("real", SECOND),
    ];
    const ENDINGS: &[(&str, f64)] = &[
        ("_ms", MS),
        ("_msec", MS),
        ("_millis", MS),
        ("millis", MS),
        ("timems", MS),
        ("durationms", MS),
        ("elapsedms", MS),
        ("latencyms", MS),
        ("_us", US),
        ("_usec", US),
        ("_micros", US),
        ("durationns", 1.0),
        ("_ns", 1.0),
        ("_secs", SECOND),
        ("_seconds", SECOND),
    ];
    let known = KEYS
        .iter()
        .find(|(name, _)| key.eq_ignore_ascii_case(name.as_bytes()));
    let ending = || {
        ENDINGS.iter().find(|(ending, _)| {
            let from = key.len().checked_sub(ending.len());
            let tail = from.and_then(|from| key.get(from..));
            tail.is_some_and(|tail| tail.eq_ignore_ascii_case(ending.as_bytes()))
        })
    };
    known.or_else(ending).map(|(_, unit)| *unit)
}

/// Whether the word before a number says that it is a length: `after 5m`, `for 3h`.
fn after_a_word_of_time(before: &[u8]) -> bool {
    const WORDS: [&[u8]; 8] = [
        b"after",
        b"for",
        b"took",
        b"in",
        b"elapsed",
        b"duration",
        b"last",
        b"waited",
    ];
    let before = before.trim_ascii_end();
    WORDS.iter().any(|word| {
        let at = before.len().checked_sub(word.len());
        at.and_then(|at| before.get(at..))
            .is_some_and(|end| end.eq_ignore_ascii_case(word))
    })
}

/// Whether a length is of something that happened, by what stands around it.
fn happened(line: &[u8], from: usize, behind: usize, timed_out: bool) -> bool {
    let rest = line.get(behind..).unwrap_or_default();
    // `was last seen active 3m25s ago`: for so long it has done nothing since. Other ages are of things that are well.
    let since_last = || {
        let before = line.get(from.saturating_sub(BEFORE)..from).unwrap_or_default();
        find(before, b"last ").is_some()
    };
    // `(Count / 1 sec)`: in which time it is counted.
    if rest.starts_with(b")") && line.get(..from).is_some_and(|before| before.ends_with(b" / ")) {
        return false;
    }
    // `total [702ms]/[10.3s]`: of how much.
    if line.get(..from).is_some_and(|before| before.ends_with(b"]/[")) {
        return false;
    }
    if rest.starts_with(b" ago") && !since_last()
        || rest.starts_with(b" old")
        || rest.starts_with(b" left")
        || rest.starts_with(b" interval")
        || rest.starts_with(b" range")
        || rest.starts_with(b" timeout") && !timed_out
    {
        return false;
    }
    let before = line.get(from.saturating_sub(BEFORE)..from).unwrap_or_default();
    if is_mark(before, rest, from)
        || before == b"up "
        || before.ends_with(b" up ")
        || is_of_option(before)
        || is_bound(before, line.get(from..behind))
    {
        return false;
    }
    let column = |blanks: &[u8]| blanks.contains(&b'\t') || blanks == b"  ";
    // A column of a table is an age (`kubectl get`) as often as a length.
    if before.len() >= 2
        && column(before.get(before.len() - 2..).unwrap_or_default())
        && column(rest.get(..2).unwrap_or_default())
    {
        return false;
    }
    // A number before it is of other words.
    let clause = before
        .iter()
        .rposition(|byte| matches!(byte, b',' | b';' | b'|' | b'{' | b'(' | b'0'..=b'9'));
    let clause = before.get(clause.map_or(0, |at| at + 1)..).unwrap_or_default();
    let Some(words) = &*WORDS else { return true };
    // What is closest counts.
    words.find_iter(clause).all(|found| {
        let before = found.start().checked_sub(1).and_then(|at| clause.get(at));
        let next = clause.get(found.end()).copied().unwrap_or(b' ');
        let begins = before.is_none_or(|before| !before.is_ascii_alphabetic());
        // `age` is not in `agent`, and `expir` is in `expires`.
        let ends = !next.is_ascii_lowercase()
            || next == b's'
            || clause
                .get(found.range())
                .is_some_and(|word| word.eq_ignore_ascii_case(b"expir"));
        !(begins && ends) || timed_out && found.pattern().as_usize() < TIMEOUTS.len()
    })
}

/// Whether a line begins with the time since its program's start, where a report stands: `[7217.868s]`, `[ 10s ] 4100 ops`, `[t=10s]`.
fn is_mark(before: &[u8], rest: &[u8], from: usize) -> bool {
    let of_line = from == before.len();
    let closed = rest.trim_ascii_start().starts_with(b"]");
    of_line && closed && matches!(before.trim_ascii(), b"[" | b"[t=")
}

/// Whether the word before a number is an option of a command: `stress -t 600s`, `--timeout 5s`.
fn is_of_option(before: &[u8]) -> bool {
    let Some(before) = before.strip_suffix(b" ").or_else(|| before.strip_suffix(b"=")) else {
        return false;
    };
    let word = before
        .iter()
        .rposition(|byte| *byte == b' ')
        .map_or(before, |at| before.get(at + 1..).unwrap_or_default());
    matches!(word, [b'-', letter] if letter.is_ascii_alphabetic())
        || matches!(word, [b'-', b'-', letter, ..] if letter.is_ascii_alphabetic())
}

/// Whether a number is a round bound that something passed: `blocked > 32 sec`. What was measured has a fraction.
fn is_bound(before: &[u8], length: Option<&[u8]>) -> bool {
    let measured = length.is_some_and(|length| length.contains(&b'.'));
    !measured
        && matches!(
            before,
            [.., b'>', b' '] | [.., b'<', b' '] | [.., b'>', b'=', b' ']
        )
}
