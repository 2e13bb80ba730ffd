//! What a program's own log says about work that waits or is refused, while that program is observed.
//!
//! In: the bytes that were written during observation, some of those before, and when the file was last written. Out: a
//! [`LogLine`] for all lines that differ in numbers alone and explain a wait. The judge is that of `holdup read`
//! ([`crate::statements`]), with a narrower table of phrases ([`reasons`]): a line becomes a finding here, and not one among others that
//! a person reads. Times of lines count from the file's last write, so that zone and date need not be known.

mod bound;
mod level;
mod reasons;

use crate::formats::Stamps;
use crate::statements::kinds;
use crate::statements::matcher::Matcher;
use crate::statements::words::End;
use crate::statements::{shape, structured};
use crate::text::is_binary;
use holdup_evidence::Ns;
use holdup_evidence::facts::{LogLine, LogReason};
use holdup_evidence::observed::{StatementKind, When};
use level::Level;
use reasons::{ASIDE, ENDED, Lasts, PHRASES};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

/// How long before observation began a line may have been written that reports what happened then, nanoseconds: a program that runs into a
/// limit again and again mostly says so once in a while only.
pub const BEFORE_NS: Ns = 60_000_000_000;

/// Lines at the end of a file without any time that may be as young as the file.
const UNTIMED_LINES: usize = 5;

/// Lines that are judged of one file, the last ones.
const LINES_MAX: usize = 20_000;

/// Kinds of lines that are kept.
const KEPT_MAX: usize = 24;

/// Kinds of lines that are reported.
const SAID_MAX: usize = 6;

/// Bytes of a line that are scanned.
const SCANNED_BYTES: usize = 2 << 10;

/// Letters of a word that tells what a state is one of, and how many such words two lines must share.
const WORD_LETTERS: usize = 4;
const WORDS_SHARED: usize = 2;

/// A part of a log that ends where the file ended when observation did.
#[derive(Debug, Clone, Copy)]
pub struct LogText<'a> {
    /// Whole lines, but for the last.
    pub bytes: &'a [u8],
    /// Where in `bytes` begins what was written during observation; `None` where only the times of lines tell.
    pub added: Option<usize>,
    /// The number of its first line in the file, from 1, where that is known.
    pub first_line: Option<u64>,
    /// How long before the end of observation the file was last written.
    pub written_ago: Ns,
    /// How long observation lasted.
    pub watched: Ns,
    /// How long its writer had lived when observation ended: an older line is of another process.
    pub lives: Ns,
    /// Whether its name or descriptor says that it is a log. Of another file only lines with a time count.
    pub named: bool,
}

static PHRASE: LazyLock<Option<Matcher<(LogReason, Lasts, End)>>> = LazyLock::new(|| {
    let rows = PHRASES.iter();
    Matcher::new(rows.flat_map(|(reason, lasts, end, phrases)| {
        phrases
            .iter()
            .map(move |phrase| (*phrase, (*reason, *lasts, *end)))
    }))
});

static SIDE: LazyLock<Option<Matcher<Side>>> = LazyLock::new(|| {
    let ended = ENDED.iter().map(|phrase| (*phrase, Side::Ended));
    let aside = ASIDE.iter().map(|phrase| (*phrase, Side::Aside));
    Matcher::new(ended.chain(aside))
});

/// What a line is beside its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// It ends a state.
    Ended,
    /// It explains nothing.
    Aside,
}

/// Lines that are alike.
#[derive(Debug)]
struct Group {
    key: u64,
    reason: LogReason,
    state: bool,
    during: u64,
    before: u64,
    ago: Option<Ns>,
    number: usize,
    text: String,
}

/// What it says.
#[must_use]
pub fn judge(log: &LogText<'_>) -> Vec<LogLine> {
    if log.bytes.is_empty() || is_binary(log.bytes) {
        return Vec::new();
    }
    let lines: Vec<(usize, &[u8])> = numbered(log.bytes);
    let Some(last) = last_time(&lines) else {
        return said(groups(log, &lines, None), log);
    };
    said(groups(log, &lines, Some(last)), log)
}

/// The last lines with where each begins.
fn numbered(bytes: &[u8]) -> Vec<(usize, &[u8])> {
    let mut at = 0;
    let mut lines: Vec<(usize, &[u8])> = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        lines.push((at, line));
        at += line.len() + 1;
    }
    lines
}

/// The time of the last line that has one.
fn last_time(lines: &[(usize, &[u8])]) -> Option<When> {
    let mut stamps = Stamps::default();
    let last = lines.iter().rev().take(LINES_MAX);
    last.filter_map(|(_, line)| stamps.of(line)?.when()).next()
}

fn groups(log: &LogText<'_>, lines: &[(usize, &[u8])], last: Option<When>) -> Vec<Group> {
    let mut stamps = Stamps::default();
    let mut groups: Vec<Group> = Vec::new();
    let mut ago: Option<Ns> = None;
    let first = lines.len().saturating_sub(LINES_MAX);
    for (number, (at, whole)) in lines.iter().enumerate().skip(first) {
        let line = whole.get(..SCANNED_BYTES).unwrap_or(whole);
        let stamp = stamps.of(line);
        // A line without a time is as old as the one above it.
        if let Some(when) = stamp.and_then(|stamp| stamp.when()) {
            let behind = last.and_then(|last| last.since(when));
            ago = behind.map(|ns| {
                log.written_ago
                    .saturating_add(Ns::try_from(ns.max(0)).unwrap_or(Ns::MAX))
            });
        }
        if !log.named && stamp.is_none() {
            continue;
        }
        let stamped = stamp.map_or(0, |stamp| stamp.end);
        if ends_a_state(line) {
            let lasts = |group: &Group| group.state || group.reason == LogReason::Defers;
            groups.retain(|group| !(lasts(group) && same_matter(&group.text, line)));
        }
        let Some((reason, lasts, focus)) = reason(line) else {
            continue;
        };
        let during = match log.added {
            Some(added) => *at >= added,
            None => ago.is_some_and(|ago| ago <= log.watched),
        };
        let state = lasts == Lasts::State;
        if !during && !counts_still(log, state, ago, lines.len() - number) {
            continue;
        }
        let from = shape::message(line, stamped);
        let message = line.get(from..).unwrap_or_default();
        let key = shape::shape(message, reason as u64);
        let group = match groups.iter().position(|group| group.key == key) {
            Some(place) => groups.get_mut(place),
            None if groups.len() < KEPT_MAX => {
                groups.push(Group {
                    key,
                    reason,
                    state,
                    during: 0,
                    before: 0,
                    ago,
                    number,
                    text: String::new(),
                });
                groups.last_mut()
            }
            None => None,
        };
        let Some(group) = group else { continue };
        match during {
            true => group.during += 1,
            false => group.before += 1,
        }
        group.ago = ago;
        group.number = number;
        group.text = sentence(line, from, focus);
    }
    groups
}

/// Whether a line that was written before observation began still says something about it.
fn counts_still(log: &LogText<'_>, state: bool, ago: Option<Ns>, from_end: usize) -> bool {
    let (window, oldest) = (log.watched.saturating_add(BEFORE_NS), log.lives);
    match ago {
        Some(ago) if state => ago <= oldest,
        Some(ago) => ago <= window.min(oldest),
        // It was not ended since, whenever that was; but a file may be older than its writer.
        None if state => log.written_ago <= oldest,
        None => from_end <= UNTIMED_LINES && log.written_ago <= window.min(oldest),
    }
}

/// What a line says, without what its logger puts before it.
fn sentence(line: &[u8], from: usize, focus: usize) -> String {
    let message = line.get(from..).unwrap_or_default();
    let words = shape::words(message);
    let words = words + labels(message.get(words..).unwrap_or_default());
    structured::message_of(line).unwrap_or_else(|| {
        let told = message.get(words..).unwrap_or_default();
        shape::sentence(told, focus.saturating_sub(from + words))
    })
}

/// Things before a message that a line begins with.
const LABELS_MAX: usize = 8;

/// Letters that a message has at least.
const MESSAGE_LETTERS: usize = 8;

/// How much of the beginning of a message is numbers of processes, threads and connections, and levels: `[warn] 77#77: *9 `.
fn labels(message: &[u8]) -> usize {
    let mut at = 0;
    for _ in 0..LABELS_MAX {
        let rest = message.get(at..).unwrap_or_default();
        let end = rest
            .iter()
            .position(u8::is_ascii_whitespace)
            .unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default();
        let number = word
            .iter()
            .all(|byte| !byte.is_ascii_alphabetic() && byte.is_ascii());
        // A place in the code: `(server.c.1939)`.
        let place = word.starts_with(b"(") && (word.ends_with(b")") || word.ends_with(b"):"));
        let zone = at == 0 && (word == b"UTC" || word == b"GMT");
        if !(number || zone || place || level::is_level(word)) {
            break;
        }
        let blanks = rest.get(end..).unwrap_or_default();
        let blanks = blanks
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
        if end + blanks == 0 {
            break;
        }
        at += end + blanks;
    }
    let left = message.get(at..).unwrap_or_default();
    let letters = left
        .iter()
        .filter(|byte| byte.is_ascii_alphabetic())
        .take(MESSAGE_LETTERS)
        .count();
    // A count belongs to the words behind it: `16 worker_connections are not enough`.
    if letters < MESSAGE_LETTERS {
        0
    } else {
        at - count_before(message.get(..at).unwrap_or_default())
    }
}

/// How long the plain number is with which text ends, and the blanks behind it.
fn count_before(text: &[u8]) -> usize {
    let blanks = text
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count();
    let text = text.get(..text.len() - blanks).unwrap_or_default();
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let begins = text.len() == digits
        || text
            .get(text.len() - digits - 1)
            .is_some_and(u8::is_ascii_whitespace);
    if digits > 0 && begins { digits + blanks } else { 0 }
}

/// Why work waits by this line, for how long that is true, and where its phrase stands.
fn reason(line: &[u8]) -> Option<(LogReason, Lasts, usize)> {
    if line.len() < 8
        || shape::is_frame(line)
        || shape::is_command(line)
        || shape::is_sql(line)
        || level::is_access(line)
    {
        return None;
    }
    let level = level::of(line);
    if level == Level::Debug {
        return None;
    }
    let plain = without_data(line);
    if sides(&plain).any(|side| side == Side::Aside) {
        return None;
    }
    if let Some((reason, lasts, at)) = phrase(&plain, level) {
        return Some((reason, lasts, at));
    }
    // `max connections (1) reached`, `all 4 workers are busy`.
    if let Some((reason, lasts, _)) = without_numbers(&plain)
        .and_then(|plain| phrase(&plain, level))
        .filter(|(reason, ..)| !is_of_others(*reason))
    {
        return Some((reason, lasts, 0));
    }
    if let Some(at) = bound::reached(&plain) {
        return Some((LogReason::Limit, Lasts::Event, at));
    }
    // What its words say in general counts only where the program itself calls it worth a look.
    let found = kinds::of(&plain).filter(|_| level == Level::Warning)?;
    let reason = match found.kind {
        StatementKind::Exhausted => LogReason::Limit,
        StatementKind::Deadlock => LogReason::Lock,
        _ => return None,
    };
    Some((reason, Lasts::Event, found.at))
}

/// The phrase of a line, with where it stands.
fn phrase(plain: &[u8], level: Level) -> Option<(LogReason, Lasts, usize)> {
    let phrases = PHRASE.as_ref()?.find(plain).filter(|(at, (reason, _, end))| {
        let kind = match reason {
            LogReason::NoAnswer => StatementKind::TimedOut,
            _ => StatementKind::Stalled,
        };
        // At the level of what happens every day, these are ordinary.
        !(is_name(plain, at) || is_of_others(*reason) && level == Level::Info)
            && kinds::is_word(plain, at, *end)
            && kinds::states(plain, at, kind)
    });
    // A pool that is used up says that a request timed out, too: what a program says of itself comes before what it says of others.
    let (at, (reason, lasts, _)) = phrases.min_by_key(|(_, (reason, ..))| is_of_others(*reason))?;
    Some((reason, lasts, at.start))
}

/// The line without words that are numbers, in brackets or not; `None` where there are none.
fn without_numbers(line: &[u8]) -> Option<Vec<u8>> {
    let is_number = |word: &[u8]| {
        word.iter().any(u8::is_ascii_digit)
            && word
                .iter()
                .all(|byte| byte.is_ascii_digit() || b"()[]/,.".contains(byte))
    };
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let left: Vec<&[u8]> = words.iter().filter(|word| !is_number(word)).copied().collect();
    (left.len() < words.len()).then(|| left.join(&b' '))
}

/// Whether a reason is mostly another's: a peer that does not answer, or a part that lags.
fn is_of_others(reason: LogReason) -> bool {
    matches!(
        reason,
        LogReason::NoAnswer | LogReason::Unreachable | LogReason::Stalled
    )
}

/// Whether a phrase is a part of a name, or has a number as its value: `async-timeout`, `nr_throttled 7`, `backoff:4`, `TCPTimeouts: 28`.
fn is_name(line: &[u8], at: &Range<usize>) -> bool {
    let joins = |byte: Option<&u8>| byte.is_some_and(|byte| matches!(byte, b'_' | b'-' | b'='));
    let rest = line.get(at.end..).unwrap_or_default();
    let letters = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let behind = rest.get(letters..).unwrap_or_default();
    let before = at.start.checked_sub(1).and_then(|at| line.get(at));
    let plural = rest.get(..letters) == Some(b"s") && line.get(at.start).is_some_and(u8::is_ascii_uppercase);
    let valued = match behind {
        [b':', b'0'..=b'9', ..] => true,
        [b':' | b' ', more @ ..] => plural && more.trim_ascii_start().first().is_some_and(u8::is_ascii_digit),
        _ => false,
    };
    joins(before) || joins(behind.first()) || valued
}

fn sides(line: &[u8]) -> impl Iterator<Item = Side> + '_ {
    let matcher = SIDE.as_ref().into_iter();
    matcher.flat_map(move |matcher| matcher.find(line).map(|(_, side)| side))
}

fn ends_a_state(line: &[u8]) -> bool {
    sides(line).any(|side| side == Side::Ended)
}

/// Whether a line is about the same as one that was kept: they share words, and a name where the kept one has any, such as `a.example/IN`.
fn same_matter(kept: &str, line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line).to_ascii_lowercase();
    let kept = kept.to_ascii_lowercase();
    let words = |text: &str| -> Vec<String> {
        let word =
            |word: &&str| word.len() >= WORD_LETTERS && word.bytes().all(|byte| byte.is_ascii_alphabetic());
        let parts = text.split(|char: char| !char.is_ascii_alphanumeric());
        parts.filter(word).map(str::to_owned).collect()
    };
    let mut own = words(&kept);
    own.sort_unstable();
    own.dedup();
    let others = words(&line);
    let shares_words = own.iter().filter(|word| others.contains(word)).count() >= WORDS_SHARED;
    let name = |word: &&str| word.contains(['.', '@', '/', '_']) && word.len() >= WORD_LETTERS;
    let names: Vec<&str> = kept.split_whitespace().map(bare).filter(name).collect();
    shares_words && (names.is_empty() || names.iter().any(|name| line.contains(name)))
}

/// A word without the signs around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|char: char| !char.is_ascii_alphanumeric())
}

/// The line with blanks for what is data in it: a quoted request or name, a path, an address on the web. The message of a structured line is
/// quoted, and stays.
fn without_data(line: &[u8]) -> Cow<'_, [u8]> {
    let mut plain = without_quotes(line);
    let mut at = 0;
    for word in line.split(u8::is_ascii_whitespace) {
        let is_path = word.len() > 1 && word.starts_with(b"/") || crate::find::find(word, b"://").is_some();
        if is_path && let Some(data) = plain.to_mut().get_mut(at..at + word.len()) {
            data.fill(b' ');
        }
        at += word.len() + 1;
    }
    plain
}

fn without_quotes(line: &[u8]) -> Cow<'_, [u8]> {
    let quotes = line.iter().filter(|byte| **byte == b'"').count();
    if quotes < 2 || crate::find::find(line, b"{\"").is_some() {
        return Cow::Borrowed(line);
    }
    let mut plain = line.to_vec();
    let mut open: Option<usize> = None;
    for at in 0..line.len() {
        if line[at] != b'"' || at > 0 && line[at - 1] == b'\\' {
            continue;
        }
        match open.take() {
            // `msg="…"`.
            Some(begin) if begin > 0 && line[begin - 1] == b'=' => {}
            Some(begin) => plain[begin + 1..at].fill(b' '),
            None => open = Some(at),
        }
    }
    Cow::Owned(plain)
}

/// What counts most first: a state, then what goes on, then what came before.
fn said(mut groups: Vec<Group>, log: &LogText<'_>) -> Vec<LogLine> {
    groups.sort_by_key(|group| {
        (
            group.during == 0 && !group.state,
            group.reason,
            std::cmp::Reverse(group.during),
            std::cmp::Reverse(group.before),
            group.number,
        )
    });
    let line = |group: Group| LogLine {
        reason: group.reason,
        standing: group.state,
        text: group.text,
        line: log.first_line.map(|first| first + group.number as u64),
        during: group.during,
        before: group.before,
        ago: group.ago,
    };
    groups.into_iter().take(SAID_MAX).map(line).collect()
}

#[cfg(test)]
mod tests;
