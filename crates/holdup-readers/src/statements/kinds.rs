//! What kind of thing a line states, by its words.
//!
//! In: a line. Out: the gravest kind of which it has a word that is not taken back (`no errors`, `0 errors`, `error: null`), and is
//! no name of a setting (`timeout=30s`) or of a function.

use super::matcher::Matcher;
use super::words::{End, HARMLESS, WORDS};
use super::words_of_none::{NOTHING, TAKEN_BACK};
use super::{errno, limits};
use crate::find::find;
use holdup_evidence::observed::StatementKind;
use std::ops::Range;
use std::sync::LazyLock;

/// A kind, and where its word stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) kind: StatementKind,
    pub(crate) at: usize,
}

static MATCHER: LazyLock<Option<Matcher<(StatementKind, End)>>> = LazyLock::new(|| {
    let each = WORDS.iter();
    Matcher::new(each.flat_map(|(kind, end, words)| words.iter().map(|word| (*word, (*kind, *end)))))
});

/// The gravest kind that a line states.
pub(crate) fn of(line: &[u8]) -> Option<Found> {
    let matcher = MATCHER.as_ref()?;
    if is_of_no_trouble(line) {
        return None;
    }
    let mut gravest: Option<Found> = by_letter(line);
    for (at, (kind, end)) in matcher.find(line) {
        if gravest.is_none_or(|gravest| kind < gravest.kind)
            && is_word(line, &at, end)
            && (!is_word_full(line, &at) || is_full(line, &at))
            && states(line, &at, kind)
        {
            gravest = Some(Found { kind, at: at.start });
        }
    }
    let named = gravest.filter(|gravest| gravest.kind >= StatementKind::Unreachable);
    let numbered = named.and_then(|gravest| errno::of(line, gravest.kind));
    limits::exceeded(line)
        .or(numbered)
        .filter(|found| gravest.is_none_or(|gravest| found.kind < gravest.kind))
        .or(gravest)
}

/// Whether a line says by its form that what it names is no trouble: it went well, is an ordinary event, or lists abilities.
pub(super) fn is_of_no_trouble(line: &[u8]) -> bool {
    is_done(line) || is_normal(line) || lists_abilities(line) || is_over(line)
}

/// Words of lines that report the end of a trouble with the words of the trouble: Ceph's health checks, smartd's warnings.
const OVER: [&[u8]; 2] = [b"Health check cleared: ", b"warning condition reset after "];

fn is_over(line: &[u8]) -> bool {
    OVER.iter().any(|words| find(line, words).is_some())
}

/// Ends of names of registers, as lspci prints them, that say what a device could do or may do, and not what it does.
const ABILITIES: [&[u8]; 4] = [b"Cap", b"Cap2", b"Ctl", b"Ctl2"];

/// Whether a line has the abilities or the settings of a device: `DevCap2: Completion Timeout: Range ABCD`.
fn lists_abilities(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    let letters = line
        .iter()
        .take(12)
        .take_while(|byte| byte.is_ascii_alphanumeric());
    let name = line.get(..letters.count()).unwrap_or_default();
    let behind = line.get(name.len()..).unwrap_or_default();
    behind.starts_with(b":") && name.len() > 4 && ABILITIES.iter().any(|end| name.ends_with(end))
}

/// What can be full.
const CONTAINERS: [&[u8]; 16] = [
    b"queue",
    b"table",
    b"disk",
    b"pool",
    b"backlog",
    b"buffer",
    b"ring",
    b"partition",
    b"filesystem",
    b"file system",
    b"volume",
    b"cache",
    b"heap",
    b"swap",
    b"storage",
    b"mailbox",
];

fn is_word_full(line: &[u8], at: &Range<usize>) -> bool {
    line.get(at.clone())
        .is_some_and(|word| word.eq_ignore_ascii_case(b"full"))
}

/// Bytes before the word in which it is looked for what is full.
const BEFORE_FULL: usize = 80;

/// Words that may stand behind `full` where it is said of something before it.
const BEHIND_FULL: [&[u8]; 10] = [
    b"on",
    b"in",
    b"at",
    b"for",
    b"so",
    b"and",
    b"after",
    b"dropping",
    b"rejecting",
    b"waiting",
];

/// Whether something is said to be full (`listen queue of socket 4 full !!! (129/128)`), and not that something is done in full (`full scan`).
fn is_full(line: &[u8], at: &Range<usize>) -> bool {
    let before = line
        .get(at.start.saturating_sub(BEFORE_FULL)..at.start)
        .unwrap_or_default();
    let before = before.to_ascii_lowercase();
    let behind = line.get(at.end..).unwrap_or_default().trim_ascii_start();
    let letters = behind
        .iter()
        .take_while(|byte| byte.is_ascii_alphabetic())
        .count();
    let word = behind.get(..letters).unwrap_or_default();
    let ends = word.is_empty() || BEHIND_FULL.iter().any(|known| word.eq_ignore_ascii_case(known));
    // `full: false`, `full=0` name a setting.
    let assigned = matches!(behind.first(), Some(b'=' | b':' | b'"'));
    ends && !assigned && CONTAINERS.iter().any(|name| find(&before, name).is_some())
}

/// `[  OK  ] Started Remount Root and Kernel File Systems`: what is named after a trouble went well.
fn is_done(line: &[u8]) -> bool {
    let status = line.strip_prefix(b"[").map(<[u8]>::trim_ascii_start);
    let rest = status.and_then(|status| status.strip_prefix(b"OK"));
    rest.is_some_and(|rest| rest.trim_ascii_start().starts_with(b"]"))
}

/// `Normal  SandboxChanged  5m (x74 over 8m)  kubelet  …`: an event of Kubernetes that is no warning.
fn is_normal(line: &[u8]) -> bool {
    let rest = line.strip_prefix(b"Normal").unwrap_or_default();
    matches!(rest, [b' ' | b'\t', b' ' | b'\t', ..]) || rest.starts_with(b"\t")
}

/// The level that glog puts before a line, and klog: `E0507 11:59:43.923954`.
fn by_letter(line: &[u8]) -> Option<Found> {
    let kind = match line {
        [b'E' | b'F', ..] => StatementKind::Failed,
        [b'W', ..] => StatementKind::Warned,
        _ => return None,
    };
    let digits = line.get(1..5)?.iter().all(u8::is_ascii_digit) && line.get(5) == Some(&b' ');
    digits.then_some(Found { kind, at: 0 })
}

/// Whether a match is a word of its own, or a part of a name in camel case (`GetConnectionTimeoutException`).
pub(crate) fn is_word(line: &[u8], at: &Range<usize>, end: End) -> bool {
    let byte = |at: usize| line.get(at).copied().unwrap_or(b' ');
    let (first, second) = (byte(at.start), byte(at.start + 1));
    let before = at.start.checked_sub(1).map_or(b' ', byte);
    let begins = !before.is_ascii_alphabetic()
        || first.is_ascii_uppercase() && (before.is_ascii_lowercase() || second.is_ascii_lowercase());
    let (last, next, after) = (byte(at.end - 1), byte(at.end), byte(at.end + 1));
    let ends = !next.is_ascii_alphabetic()
        || next.is_ascii_uppercase() && (last.is_ascii_lowercase() || after.is_ascii_lowercase());
    // `critical-chain` is a name.
    let joined = before == b'-' || next == b'-';
    begins && (ends && !joined || end == End::Open)
}

/// Whether a word stands for what it says.
pub(crate) fn states(line: &[u8], at: &Range<usize>, kind: StatementKind) -> bool {
    let letters = line.get(at.end..).unwrap_or_default();
    let word_end = at.end
        + letters
            .iter()
            .take_while(|byte| byte.is_ascii_alphabetic())
            .count();
    let word = line.get(at.start..word_end).unwrap_or_default();
    if HARMLESS
        .iter()
        .any(|harmless| word.eq_ignore_ascii_case(harmless.as_bytes()))
    {
        return false;
    }
    let part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'$');
    let before = line.get(..at.start).unwrap_or_default();
    let name_start = at.start - before.iter().rev().take_while(part).count();
    let behind = line.get(word_end..).unwrap_or_default();
    let name_end = word_end + behind.iter().take_while(part).count();
    let name = line.get(name_start..name_end).unwrap_or_default();
    let behind = line.get(name_end..).unwrap_or_default();
    // A function, in a stack of the kernel's or in code.
    let called = behind.starts_with(b"+0x") || behind.starts_with(b"(");
    if called
        && name
            .first()
            .is_some_and(|first| first.is_ascii_lowercase() || *first == b'_')
        && name.iter().any(|byte| matches!(byte, b'_' | b'.'))
    {
        return false;
    }
    // Code: `std::panicking::try`.
    let joined = behind.starts_with(b"::")
        || line
            .get(..name_start)
            .is_some_and(|before| before.ends_with(b"::"));
    if joined && !is_exception(line, name_start) {
        return false;
    }
    // An option, a path to a file.
    let path = name_start.checked_sub(1).and_then(|at| line.get(at)) == Some(&b'/');
    if name.starts_with(b"-") || path && (kind >= StatementKind::Failed || name.contains(&b'.')) {
        return false;
    }
    // A flag that is not set, as lspci prints it: `NonFatalErr-`.
    if name.ends_with(b"-") && name.first().is_some_and(u8::is_ascii_uppercase) && !name.contains(&b'_') {
        return false;
    }
    // A switch: `-XX:+ExitOnOutOfMemoryError`.
    if name_start.checked_sub(1).and_then(|at| line.get(at)) == Some(&b'+') {
        return false;
    }
    // A setting by its unit: `hung_task_timeout_secs`.
    let units: [&[u8]; 5] = [b"_secs", b"_seconds", b"_ms", b"_sec", b"_us"];
    if kind == StatementKind::TimedOut && units.iter().any(|unit| name.ends_with(unit)) {
        return false;
    }
    // In the middle of a name: `log_slow_rate_limit`. Codes of errors are in capitals.
    let within = before.last() == Some(&b'_') && line.get(word_end) == Some(&b'_');
    if within && word.iter().all(u8::is_ascii_lowercase) {
        return false;
    }
    // A figure of memory that nobody uses: `inactive_file:30`.
    if word.eq_ignore_ascii_case(b"inactive") && name.get(word.len()) == Some(&b'_') {
        return false;
    }
    // `waiting for connections`: nobody keeps them from it.
    let waits = line
        .get(at.clone())
        .is_some_and(|found| found.eq_ignore_ascii_case(b"waiting for"));
    if waits && crate::rest::is_work(line.get(at.end..).unwrap_or_default()) {
        return false;
    }
    // `a git process may have crashed earlier`, `list of executors to be killed`: nobody says that it happened.
    if kind == StatementKind::Ended && is_supposed(before) {
        return false;
    }
    // `Unless it gets more CPU time, OOM is expected`: a condition.
    if is_condition(before) {
        return false;
    }
    let word_is_plural = word.last() == Some(&b's');
    let value = value(behind);
    if let Some(value) = value {
        let is_nothing = NOTHING
            .iter()
            .any(|nothing| value.text.eq_ignore_ascii_case(nothing.as_bytes()));
        let empty = value.text.is_empty() && value.quoted;
        if is_nothing && (value.assigned || value.text == b"0") || empty {
            return false;
        }
        let number = value.text.first().is_some_and(u8::is_ascii_digit);
        // `connect ETIMEDOUT 10.0.0.7:443`: an errno's name is nobody's setting.
        let errno = word.starts_with(b"E") && word.iter().all(u8::is_ascii_uppercase);
        if number && !errno && is_setting(kind, word_is_plural, &value, behind) {
            return false;
        }
    }
    // Where programs print, not what happened.
    let stream = word.eq_ignore_ascii_case(b"error") && before.to_ascii_lowercase().ends_with(b"standard ");
    !stream && !taken_back(before)
}

/// Whether the name around a place is that of a class of exceptions, as Ruby and Perl print it before its message:
/// `Timeout::Error: waited 1 sec`, `Net::ReadTimeout with …`.
fn is_exception(line: &[u8], at: usize) -> bool {
    let part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':');
    let (before, rest) = line.split_at_checked(at).unwrap_or_default();
    let start = at - before.iter().rev().take_while(part).count();
    let end = at + rest.iter().take_while(part).count();
    let name = line.get(start..end).unwrap_or_default();
    let bare = name.strip_suffix(b":").unwrap_or(name);
    let ends = matches!(line.get(end), None | Some(b' ' | b'\t' | b'\r' | b'\n'));
    let mut parts = bare.split(|byte| *byte == b':').filter(|part| !part.is_empty());
    ends && parts.all(|part| part.first().is_some_and(u8::is_ascii_uppercase))
}

/// Words right before a verb that make it a guess or a plan.
const SUPPOSED: [&[u8]; 5] = [
    b"may have ",
    b"might have ",
    b"could have ",
    b"to be ",
    b"may be ",
];

fn is_supposed(before: &[u8]) -> bool {
    let near = before.get(before.len().saturating_sub(16)..).unwrap_or_default();
    let near = near.to_ascii_lowercase();
    SUPPOSED.iter().any(|words| near.ends_with(words))
}

/// Bytes before a word in which its sentence may begin.
const CONDITION: usize = 120;

/// Whether what stands before makes a condition of what follows.
fn is_condition(before: &[u8]) -> bool {
    let near = before
        .get(before.len().saturating_sub(CONDITION)..)
        .unwrap_or_default();
    find(near, b"nless ").is_some_and(|at| matches!(near.get(at.wrapping_sub(1)), Some(b'u' | b'U')))
}

/// What stands behind a name.
struct Value<'a> {
    text: &'a [u8],
    /// Whether `=` or `:` is between.
    assigned: bool,
    quoted: bool,
}

fn value(behind: &[u8]) -> Option<Value<'_>> {
    let quote = |byte: &u8| matches!(byte, b'"' | b'\'' | b'\\');
    let mut rest = behind;
    while let Some((first, more)) = rest.split_first().filter(|(first, _)| quote(first)) {
        let _ = first;
        rest = more;
    }
    let rest = rest.trim_ascii_start();
    let (assigned, rest) = match rest {
        [b'=' | b':', rest @ ..] => (true, rest.trim_ascii_start()),
        _ => (false, rest),
    };
    // Within a text of JSON its quotes have a stroke before them: `\"staleTimeout\":\"30\"`.
    let rest = rest.strip_prefix(b"\\").filter(|_| assigned).unwrap_or(rest);
    let (quoted, rest) = match rest {
        [b'"' | b'\'', rest @ ..] => (assigned, rest),
        _ => (false, rest),
    };
    let end = rest.iter().take(16).position(|byte| {
        matches!(
            byte,
            b' ' | b',' | b';' | b')' | b'}' | b']' | b'"' | b'\'' | b'\t' | b'\\'
        )
    });
    let text = rest.get(..end.unwrap_or(rest.len().min(16)))?;
    Some(Value {
        text,
        assigned,
        quoted,
    })
}

/// Whether a word with a number is the name of a setting: `timeout=30s`, `panic=10`. Several of them are a count.
fn is_setting(kind: StatementKind, plural: bool, value: &Value<'_>, behind: &[u8]) -> bool {
    match kind {
        StatementKind::TimedOut => {
            let exceeded: [&[u8]; 4] = [b"exceeded", b"expired", b"reached", b"elapsed"];
            let near = behind.get(..behind.len().min(48)).unwrap_or_default();
            !plural && !exceeded.iter().any(|word| find(near, word).is_some())
        }
        StatementKind::Deadlock | StatementKind::Ended | StatementKind::Exhausted => {
            !plural && value.assigned
        }
        _ => false,
    }
}

/// Whether one of the three words before takes back what follows; a sign between ends the sentence.
fn taken_back(before: &[u8]) -> bool {
    let near = before.get(before.len().saturating_sub(32)..).unwrap_or_default();
    let mut rest = near;
    let mut of_unit = false;
    for number in 0..3 {
        let Some(text) = rest.strip_suffix(b" ").or_else(|| rest.strip_suffix(b"-")) else {
            return false;
        };
        let length = text
            .iter()
            .rev()
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'\'' | b'_'))
            .count();
        let word = text.get(text.len() - length..).unwrap_or_default();
        // `gfx_0.0.0`: the last part of a name.
        let before = text.get(..text.len() - length).unwrap_or_default();
        if matches!(before.last(), Some(b'.' | b':' | b'/')) {
            return false;
        }
        let only_before = [&b"on"[..], b"log", b"any", b"not", b"0"];
        let known = TAKEN_BACK
            .iter()
            .any(|taken| word.eq_ignore_ascii_case(taken.as_bytes()));
        // `0 MB lost`
        let unit = [&b"mb"[..], b"kb", b"gb", b"bytes", b"ms", b"s"];
        of_unit |= number == 0 && unit.iter().any(|unit| word.eq_ignore_ascii_case(unit));
        if known
            && (number == 0
                || number == 1 && of_unit
                || !only_before.iter().any(|only| word.eq_ignore_ascii_case(only)))
        {
            return true;
        }
        rest = text.get(..text.len() - length).unwrap_or_default();
    }
    false
}
