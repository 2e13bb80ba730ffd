//! What is the same in lines that differ in numbers alone, and a line as a sentence.

use crate::find::find;
use crate::gather::text_of;
use crate::prompt::{self, Prompt};

/// Bytes of a message that tell its shape.
const SHAPED: usize = 400;

/// Bytes of a sentence, and where it is cut if what matters stands behind that: so much of the beginning, and so much
/// before and from there.
const MAX_SENTENCE_BYTES: usize = 300;
const HEAD: usize = 200;
const BEFORE: usize = 50;
const BEHIND: usize = 150;

/// Bytes of a number with its unit.
const TOKEN: usize = 24;

/// Signs in a row that only lead the eye.
const LEADERS: usize = 5;

/// Bytes from what matters to the end that a sentence that is not cut within has.
const MIN_TAIL_BYTES: usize = 100;

/// Bytes in which a time stands that a logger puts before its message.
const STAMPED: usize = 60;

/// Where the message begins, behind the time of a line.
pub(crate) fn message(line: &[u8], stamp: usize) -> usize {
    if stamp == 0 || stamp > STAMPED {
        return 0;
    }
    let rest = line.get(stamp..).unwrap_or_default();
    // `[Sat Oct 22 13:51:35.557407 2022] message`: Apache has the year behind the time.
    let year = match rest {
        [b' ', digits @ ..] if digits.get(4) == Some(&b']') => {
            let digits = digits.iter().take(4).filter(|byte| byte.is_ascii_digit());
            if digits.count() == 4 { 5 } else { 0 }
        }
        _ => 0,
    };
    let stamp = stamp + year;
    let rest = line.get(stamp..).unwrap_or_default();
    // Zone, brackets and separators belong to the time.
    let zone = match rest {
        [b'Z', ..] => 1,
        [b'+' | b'-', rest @ ..] => {
            let digits = rest
                .iter()
                .take(5)
                .take_while(|byte| byte.is_ascii_digit() || **byte == b':');
            1 + digits.count()
        }
        _ => 0,
    };
    let behind = rest.get(zone..).unwrap_or_default();
    let between = behind
        .iter()
        .take_while(|byte| {
            matches!(
                byte,
                b' ' | b'\t' | b']' | b')' | b',' | b':' | b'|' | b'-' | b'"'
            )
        })
        .count();
    // A line that ends with its time has its message before it.
    let from = stamp + zone + between;
    let message = line.get(from..).unwrap_or_default();
    if message.iter().any(u8::is_ascii_alphanumeric) {
        from
    } else {
        0
    }
}

/// Words of levels that loggers put before a message.
const LEVELS: [&str; 17] = [
    "trace", "debug", "info", "notice", "warn", "warning", "error", "err", "fatal", "severe", "critical",
    "crit", "config", "log", "w", "e", "i",
];

/// What loggers put before a message, one after the other.
const BEFORE_MESSAGE: usize = 6;

/// Where the words of a message begin, behind the level, the process's number and the dashes that a logger puts before them. Names
/// stay: of the thread, of the part of the program.
pub(crate) fn words(message: &[u8]) -> usize {
    let mut at = 0;
    for _ in 0..BEFORE_MESSAGE {
        let rest = message.get(at..).unwrap_or_default();
        let Some(next) = before_words(rest) else { break };
        at += next;
    }
    let rest = message.get(at..).unwrap_or_default();
    let letters = rest
        .iter()
        .filter(|byte| byte.is_ascii_alphabetic())
        .take(4)
        .count();
    if letters == 4 { at } else { 0 }
}

/// Where a message begins behind the name of a container and a bar, as composed logs have it: `queue-1    | message`.
pub(super) fn behind_container(message: &[u8]) -> usize {
    let name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    let named = message.iter().take_while(name).count();
    let rest = message.get(named..).unwrap_or_default();
    let blanks = rest.iter().take_while(|byte| **byte == b' ').count();
    match rest.get(blanks..) {
        Some([b'|', b' ', ..]) if named > 0 && blanks > 0 => named + blanks + 2,
        _ => 0,
    }
}

/// How long the next thing is that is no word of the message, with the blanks behind it.
fn before_words(rest: &[u8]) -> Option<usize> {
    let blank = |byte: &u8| byte.is_ascii_whitespace();
    let end = rest.iter().position(blank)?;
    let (word, behind) = rest.split_at_checked(end)?;
    let blanks = behind.iter().take_while(|byte| blank(byte)).count();
    let digits = !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    let sign = |word: &[u8]| !word.is_empty() && word.iter().all(|byte| b"-|:*".contains(byte));
    let next = behind.get(blanks..).unwrap_or_default();
    let next = next.get(..next.iter().position(blank).unwrap_or(next.len()))?;
    // A number alone may count what the words behind it name.
    let is_before = sign(word) || is_level(word) || digits && (sign(next) || is_level(next));
    // `[WARN ][a.b.C] …`, `[WARN] [a.b.C] …`.
    let bracketed = || {
        let inner = rest.strip_prefix(b"[")?;
        let close = inner.iter().position(|byte| *byte == b']')?;
        let level = inner.get(..close)?.trim_ascii();
        let behind = inner.get(close + 1..)?;
        let blanks = behind.iter().take_while(|byte| blank(byte)).count();
        is_level(level).then_some(close + 2 + blanks)
    };
    if is_before {
        Some(end + blanks)
    } else {
        bracketed()
    }
}

/// `WARN`, `WARN:`, `CRITICAL/MainProcess]`.
fn is_level(word: &[u8]) -> bool {
    let letters = word.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let (name, behind) = word.split_at_checked(letters).unwrap_or_default();
    let capital = name.first().is_some_and(u8::is_ascii_uppercase) || behind == b":";
    let known = LEVELS
        .iter()
        .any(|level| name.eq_ignore_ascii_case(level.as_bytes()));
    // A letter alone is a level only as one.
    let alone = name.len() > 1 || behind.is_empty();
    let ends = matches!(behind, b"" | b":" | b"]") || behind.starts_with(b"/") && behind.ends_with(b"]");
    known && (capital || name.len() > 3 && behind == b"]") && alone && ends
}

/// A number for all messages that differ in words with digits only, blanks not counted.
pub(crate) fn shape(message: &[u8], kind: u64) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325 ^ kind;
    let mut word: u64 = 0;
    let mut digits = false;
    let end = [b' '];
    for &byte in message.iter().take(SHAPED).chain(&end) {
        match byte {
            b'0'..=b'9' => digits = true,
            // Within a word, so that an address or an id is one.
            b'.' | b':' | b'-' | b'_' | b'@' | b'#' | b'+' => {}
            b'a'..=b'z' | b'A'..=b'Z' | 128.. => word = word.wrapping_mul(PRIME) ^ u64::from(byte),
            _ => {
                if word != 0 && !digits {
                    hash = (hash.rotate_left(5) ^ word).wrapping_mul(PRIME);
                }
                word = 0;
                digits = false;
            }
        }
    }
    hash
}

/// Whether a line is a frame of a stack: the function's name tells nothing of what happened.
pub(crate) fn is_frame(line: &[u8]) -> bool {
    let java = line.starts_with(b"at ") && line.ends_with(b")");
    // `#3  0x00007f03 in poll ()`, `frame #3: 0x00007f03 …`.
    let native = || {
        let rest = line.strip_prefix(b"frame ").unwrap_or(line).strip_prefix(b"#")?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let rest = rest.get(digits..)?;
        let rest = rest.strip_prefix(b":").unwrap_or(rest).trim_ascii_start();
        (digits > 0).then(|| rest.starts_with(b"0x"))
    };
    java || line.starts_with(b"File \"") || native() == Some(true)
}

/// What stands before each switch of a JVM.
const SWITCH: &[u8] = b" -XX:";

/// Whether a line is a command that somebody typed, or one that the text tells to type: its words are of nothing that happened.
pub(crate) fn is_command(line: &[u8]) -> bool {
    let starts: [&[u8]; 5] = [b"$ ", b"# ./", b"# /", b"\"echo ", b"Tracing "];
    // The switches that a JVM was started with.
    let behind_first = find(line, SWITCH).and_then(|at| line.get(at + SWITCH.len()..));
    let switches = behind_first.is_some_and(|rest| find(rest, SWITCH).is_some());
    switches
        || is_typed(line)
        || starts.iter().any(|start| line.starts_with(start))
        || !matches!(prompt::of(line), Prompt::No)
}

/// Programs that people call for an output and whose command they paste without a prompt.
const TYPED: [&[u8]; 20] = [
    b"curl ",
    b"sudo ",
    b"kubectl ",
    b"docker ",
    b"psql ",
    b"mysql ",
    b"redis-cli ",
    b"nodetool ",
    b"rabbitmqctl ",
    b"systemctl ",
    b"journalctl ",
    b"ceph ",
    b"zpool ",
    b"gluster ",
    b"etcdctl ",
    b"mysqladmin ",
    b"squeue ",
    b"GET /_",
    b"GET _",
    b"kafka-consumer-groups",
];

/// Whether a line is the call of such a program: what follows is a switch, an address or one more word, and no sentence.
fn is_typed(line: &[u8]) -> bool {
    let Some(start) = TYPED.iter().find(|start| line.starts_with(start)) else {
        return false;
    };
    let rest = line.get(start.len()..).unwrap_or_default();
    let switch = |word: &[u8]| word.starts_with(b"-") || word.starts_with(b"http") || word.starts_with(b"'");
    let mut words = crate::numbers::words(rest);
    start.starts_with(b"GET") || words.clone().any(switch) || words.by_ref().take(5).count() <= 4
}

/// Letters of the longest word that begins a statement of SQL.
const LONGEST_WORD: usize = 8;

/// Whether a line is a statement of SQL, alone or in a cell: its words are names, and tell nothing that happened.
pub(crate) fn is_sql(line: &[u8]) -> bool {
    const BEGIN: [&[u8]; 10] = [
        b"SELECT ",
        b"INSERT INTO ",
        b"UPDATE ",
        b"DELETE FROM ",
        b"ALTER TABLE ",
        b"CREATE ",
        b"WITH ",
        b"MERGE ",
        b"REPLACE INTO ",
        b"COPY ",
    ];
    let from = line
        .iter()
        .take_while(|byte| matches!(byte, b'|' | b' ' | b'"' | b'\t'))
        .count();
    let line = line.get(from..).unwrap_or_default();
    // A word and a blank: nearly every line of a log ends the look here.
    let word = line
        .iter()
        .take(LONGEST_WORD)
        .take_while(|byte| byte.is_ascii_alphabetic())
        .count();
    if word < 4 || line.get(word) != Some(&b' ') {
        return false;
    }
    BEGIN.iter().any(|begin| {
        let word = line.get(..begin.len()).unwrap_or_default();
        word == *begin
            || word.eq_ignore_ascii_case(begin) && word.iter().all(|byte| !byte.is_ascii_uppercase())
    })
}

/// The table that a line of SQL reads, as whoever asks a database for what it does writes it: `FROM system.merges`.
pub(super) fn selected(line: &[u8]) -> Option<&[u8]> {
    let from = match line.get(..5)? {
        b"FROM " | b"from " => 0,
        _ if is_sql(line) => find(line, b" FROM ").or_else(|| find(line, b" from "))? + 1,
        _ => return None,
    };
    let rest = line.get(from + 5..)?;
    let part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$');
    let name = rest.get(..rest.iter().take_while(part).count())?;
    let ends = rest
        .get(name.len())
        .is_none_or(|next| matches!(next, b' ' | b';' | b'\\'));
    // A word of a sentence has no sign in it.
    let named = name.iter().any(|byte| matches!(byte, b'_' | b'.' | b'$'));
    (ends && named).then_some(name)
}

/// Whether a line is drawn as a part of a tree: `| |- 13:0:0:2 sdg`, `├─ db`, `+- x`.
pub(super) fn is_of_tree(line: &[u8]) -> bool {
    let lead = line.iter().take_while(|byte| matches!(byte, b'|' | b' ')).count();
    let rest = line.get(lead..).unwrap_or_default();
    let behind_bar = lead > 0 && matches!(rest, [b'-', b' ' | b'-' | b'+', ..]);
    behind_bar
        || matches!(rest, [b'`' | b'+', b'-', b' ' | b'-' | b'+', ..])
        || rest.starts_with("├".as_bytes())
        || rest.starts_with("└".as_bytes())
        || rest.starts_with("│".as_bytes())
}

/// Whether a line explains signs: `'x' = may be in error, '~' = too variable`.
pub(super) fn is_legend(line: &[u8]) -> bool {
    // Below the signs, what stands in the columns: `||   |  |  zzzz = estimated error.`
    if line.starts_with(b"||") && !line.iter().any(u8::is_ascii_digit) {
        return true;
    }
    let Some(first) = find(line, b"' = ") else {
        return false;
    };
    line.get(first + 4..)
        .is_some_and(|rest| find(rest, b"' = ").is_some())
}

/// Whether a message ends within brackets that it opened.
pub(super) fn is_open(message: &[u8]) -> bool {
    let count = |signs: &[u8]| message.iter().filter(|byte| signs.contains(byte)).count();
    count(b"[({") > count(b"])}")
}

/// Bytes of the name of a list's item.
const MAX_ITEM_BYTES: usize = 40;

/// The name of an item of a numbered list: `command` of `1. command: 3 latency spikes`.
pub(super) fn item(line: &[u8]) -> Option<&[u8]> {
    let digits = line
        .iter()
        .take(3)
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let rest = line.get(digits..).filter(|_| digits > 0)?.strip_prefix(b". ")?;
    let end = rest.iter().take(MAX_ITEM_BYTES).position(|byte| *byte == b':')?;
    rest.get(..end)
        .filter(|name| name.iter().any(u8::is_ascii_alphabetic))
}

/// Whether a line begins a record of pairs with the name of what it is of: `JobId=812 JobName=train`.
pub(super) fn names_record(line: &[u8]) -> bool {
    let Some(at) = line.iter().take(MAX_ITEM_BYTES).position(|byte| *byte == b'=') else {
        return false;
    };
    let name = line.get(..at).unwrap_or_default();
    let named = name.ends_with(b"Id") || name.ends_with(b"Name");
    named && line.len() < 2 * MAX_ITEM_BYTES && name.iter().all(u8::is_ascii_alphanumeric)
}

/// Whether a message is cut within a sentence or a list: it ends with a comma, or with a word that needs another.
pub(super) fn is_cut(message: &[u8]) -> bool {
    const NEEDS: [&[u8]; 9] = [
        b" on", b" to", b" for", b" at", b" the", b" of", b" by", b" with", b" from",
    ];
    let message = message.trim_ascii_end();
    message.ends_with(b",") || NEEDS.iter().any(|word| message.ends_with(word))
}

/// Whether a message is only the beginning of what is said: it is short, a heading, or cut at the end of the line.
pub(super) fn is_incomplete(message: &[u8], half: usize) -> bool {
    message.len() < half || message.starts_with(b"# ") || message.ends_with(b":") || message.ends_with(b"=")
}

/// A message as a sentence: blanks are single, and of a long one the beginning and what stands around `focus`.
pub(crate) fn sentence(message: &[u8], focus: usize) -> String {
    if message.len() <= MAX_SENTENCE_BYTES || focus + MIN_TAIL_BYTES <= MAX_SENTENCE_BYTES {
        return blanks_single(message.get(..MAX_SENTENCE_BYTES).unwrap_or(message));
    }
    let head = message.get(..HEAD).unwrap_or(message);
    let from = focus.saturating_sub(BEFORE).max(HEAD);
    let around = message
        .get(from..message.len().min(focus + BEHIND))
        .unwrap_or_default();
    format!("{} ... {}", blanks_single(head), blanks_single(around))
}

/// The same, with what stands around a length that the cut would leave out.
pub(super) fn sentence_with(message: &[u8], focus: usize, length: Option<usize>) -> String {
    let mut text = sentence(message, focus);
    let Some(at) = length else { return text };
    let told_whole = message.len() <= MAX_SENTENCE_BYTES;
    let in_head = at + TOKEN <= HEAD
        || focus + MIN_TAIL_BYTES <= MAX_SENTENCE_BYTES && at + TOKEN <= MAX_SENTENCE_BYTES;
    let in_focus = (focus.saturating_sub(BEFORE)..focus + BEHIND - TOKEN).contains(&at);
    if !told_whole && !in_head && !in_focus {
        let end = message.len().min(at + TOKEN);
        let around = message.get(at.saturating_sub(BEFORE)..end).unwrap_or_default();
        text.push_str(" ... ");
        text.push_str(&blanks_single(around));
    }
    if let Some(reason) = reason_at_end(message).filter(|_| !told_whole) {
        let reason = blanks_single(reason);
        if !text.contains(&reason) {
            text.push_str(" ... ");
            text.push_str(&reason);
        }
    }
    text
}

/// Words with which the end of a long message says in which state something is, or why.
const REASONS: [&[u8]; 8] = [
    b" currently ",
    b" waiting for ",
    b" blocked by ",
    b" blocked on ",
    b" because ",
    b" due to ",
    b" caused by ",
    b" held by ",
];

/// Bytes of such an end.
const MAX_REASON_BYTES: usize = 120;

/// The end of a message that says so.
fn reason_at_end(message: &[u8]) -> Option<&[u8]> {
    let from = message.len().saturating_sub(MAX_REASON_BYTES);
    let end = message.get(from..)?;
    let first = REASONS.iter().filter_map(|word| find(end, word)).min()?;
    end.get(first + 1..)
}

fn blanks_single(text: &[u8]) -> String {
    // A cut may fall within a character.
    let from = text
        .iter()
        .take(3)
        .take_while(|byte| matches!(byte, 0x80..=0xbf))
        .count();
    let text = text_of(text.get(from..).unwrap_or_default());
    let mut single = String::with_capacity(text.len());
    // Dashes and stars that lead the eye from a name to its figure.
    let leads = |word: &str| word.len() >= LEADERS && word.bytes().all(|byte| b"-*.=_".contains(&byte));
    for word in text.split_whitespace().filter(|word| !leads(word)) {
        if !single.is_empty() {
            single.push(' ');
        }
        single.push_str(word);
    }
    single
}

/// `=WARNING REPORT==== 6-May-2019::03:56:36 ===`: what Erlang prints above each message.
pub(super) fn is_report(line: &[u8]) -> bool {
    let line = line.strip_prefix(b">").unwrap_or(line);
    line.first() == Some(&b'=') && find(line, b" REPORT====").is_some()
}

/// Words of lengths that something took.
const TOOK: [&[u8]; 7] = [
    b"took ", b"taken", b"spent", b"waited", b"waiting", b"elapsed", b"delay",
];

/// Whether a line says that something took a time.
pub(super) fn says_slow(line: &[u8]) -> bool {
    TOOK.iter().any(|word| find(line, word).is_some())
}
