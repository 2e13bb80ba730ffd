//! What is the same in lines that differ in numbers alone, and a line as a sentence.

use crate::gather::text_of;
use crate::prompt::{self, Prompt};

/// Bytes of a message that tell its shape.
const SHAPED: usize = 400;

/// Bytes of a sentence, and where it is cut if what matters stands behind that: so much of the beginning, and so much
/// before and from there.
const LONGEST: usize = 300;
const HEAD: usize = 200;
const BEFORE: usize = 50;
const BEHIND: usize = 150;

/// Bytes of a number with its unit.
const TOKEN: usize = 24;

/// Bytes from what matters to the end that a sentence that is not cut within has.
const ENOUGH: usize = 100;

/// Bytes in which a time stands that a logger puts before its message.
const STAMPED: usize = 60;

/// Where the message begins, behind the time of a line.
pub(super) fn message(line: &[u8], stamp: usize) -> usize {
    if stamp == 0 || stamp > STAMPED {
        return 0;
    }
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

/// A number for all messages that differ in words with digits only, blanks not counted.
pub(super) fn shape(message: &[u8], kind: u64) -> u64 {
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
pub(super) fn is_frame(line: &[u8]) -> bool {
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

/// Whether a line is a command that somebody typed, or one that the text tells to type: its words are of nothing that happened.
pub(super) fn is_command(line: &[u8]) -> bool {
    let starts: [&[u8]; 5] = [b"$ ", b"# ./", b"# /", b"\"echo ", b"Tracing "];
    // The switches that a JVM was started with.
    let switches = memchr::memmem::find_iter(line, b" -XX:").take(2).count() == 2;
    switches || starts.iter().any(|start| line.starts_with(start)) || !matches!(prompt::of(line), Prompt::No)
}

/// Whether a message ends within brackets that it opened.
pub(super) fn is_open(message: &[u8]) -> bool {
    let count = |signs: &[u8]| message.iter().filter(|byte| signs.contains(byte)).count();
    count(b"[({") > count(b"])}")
}

/// Whether a message is only the beginning of what is said: it is short, a heading, or cut at the end of the line.
pub(super) fn is_incomplete(message: &[u8], half: usize) -> bool {
    message.len() < half || message.starts_with(b"# ") || message.ends_with(b":") || message.ends_with(b"=")
}

/// A message as a sentence: blanks are single, and of a long one the beginning and what stands around `focus`.
pub(super) fn sentence(message: &[u8], focus: usize) -> String {
    if message.len() <= LONGEST || focus + ENOUGH <= LONGEST {
        return blanks_single(message.get(..LONGEST).unwrap_or(message));
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
    let told_whole = message.len() <= LONGEST;
    let in_head = at + TOKEN <= HEAD || focus + ENOUGH <= LONGEST && at + TOKEN <= LONGEST;
    let in_focus = (focus.saturating_sub(BEFORE)..focus + BEHIND - TOKEN).contains(&at);
    if !told_whole && !in_head && !in_focus {
        let end = message.len().min(at + TOKEN);
        let around = message.get(at.saturating_sub(BEFORE)..end).unwrap_or_default();
        text.push_str(" ... ");
        text.push_str(&blanks_single(around));
    }
    text
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
    for word in text.split_whitespace() {
        if !single.is_empty() {
            single.push(' ');
        }
        single.push_str(word);
    }
    single
}
