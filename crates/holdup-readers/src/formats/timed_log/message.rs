//! What a line says apart from its time: who logged it, which of its kind it is, whether something begins.

use crate::rest;

/// With which words somebody says that he waits.
const WAITING: &[u8] = b"waiting for ";

/// How far after the time the name of a thread or process is looked for.
const WITHIN: usize = 96;

/// The longest name.
const NAME: usize = 48;

/// Bytes of a message that tell its kind.
const TEMPLATE: usize = 48;

/// What a word says of what its line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    /// Something begins; so what follows is the rest of it.
    Begins,
    /// It is over, whatever else the line says.
    Ends,
}

/// Words that say either, in alphabetical order.
const WORDS: &[(&str, Says)] = &[
    ("acquiring", Says::Begins),
    ("authenticating", Says::Begins),
    ("begin", Says::Begins),
    ("beginning", Says::Begins),
    ("begins", Says::Begins),
    ("building", Says::Begins),
    ("calling", Says::Begins),
    ("checking", Says::Begins),
    ("closed", Says::Ends),
    ("closing", Says::Begins),
    ("compiling", Says::Begins),
    ("complete", Says::Ends),
    ("completed", Says::Ends),
    ("connecting", Says::Begins),
    ("creating", Says::Begins),
    ("deploying", Says::Begins),
    ("done", Says::Ends),
    ("downloading", Says::Begins),
    ("ended", Says::Ends),
    ("entering", Says::Begins),
    ("executing", Says::Begins),
    ("exiting", Says::Ends),
    ("exporting", Says::Begins),
    ("failed", Says::Ends),
    ("fetching", Says::Begins),
    ("finished", Says::Ends),
    ("flushing", Says::Begins),
    ("generating", Says::Begins),
    ("handling", Says::Begins),
    ("idle", Says::Ends),
    ("importing", Says::Begins),
    ("init", Says::Begins),
    ("initialising", Says::Begins),
    ("initialize", Says::Begins),
    ("initializing", Says::Begins),
    ("installing", Says::Begins),
    ("invoking", Says::Begins),
    ("launching", Says::Begins),
    ("loading", Says::Begins),
    ("migrating", Says::Begins),
    ("opening", Says::Begins),
    ("preparing", Says::Begins),
    ("processing", Says::Begins),
    ("querying", Says::Begins),
    ("reading", Says::Begins),
    ("ready", Says::Ends),
    ("requesting", Says::Begins),
    ("resolving", Says::Begins),
    ("retrying", Says::Begins),
    ("running", Says::Begins),
    ("scanning", Says::Begins),
    ("sending", Says::Begins),
    ("shutting", Says::Begins),
    ("start", Says::Begins),
    ("started", Says::Ends),
    ("starting", Says::Begins),
    ("stopped", Says::Ends),
    ("stopping", Says::Begins),
    ("succeeded", Says::Ends),
    ("success", Says::Ends),
    ("syncing", Says::Begins),
    ("trying", Says::Begins),
    ("uploading", Says::Begins),
    ("waiting", Says::Begins),
    ("writing", Says::Begins),
];

/// Levels are in brackets too, and no thread.
const LEVELS: &[&[u8]] = &[
    b"TRACE",
    b"DEBUG",
    b"INFO",
    b"NOTICE",
    b"WARN",
    b"WARNING",
    b"ERROR",
    b"FATAL",
    b"SEVERE",
    b"CRITICAL",
    b"CONFIG",
    b"FINE",
    b"FINER",
    b"FINEST",
    b"CRIT",
    b"EMERG",
    b"ALERT",
    b"ERR",
];

/// The thread, request or process of a line, from the first brackets after its time that hold a name, and where what
/// follows begins.
#[inline]
pub(super) fn who(line: &[u8], after: usize) -> Option<(&[u8], usize)> {
    let mut from = after;
    let end = line.len().min(after + WITHIN);
    // A level, and what comes behind it.
    for _ in 0..3 {
        let open = from + memchr::memchr(b'[', line.get(from..end)?)?;
        let inner = line.get(open + 1..line.len().min(open + 1 + NAME))?;
        let close = memchr::memchr(b']', inner)?;
        let name = inner.get(..close)?.trim_ascii();
        from = open + close + 2;
        if name.is_empty() || LEVELS.iter().any(|level| level.eq_ignore_ascii_case(name)) {
            continue;
        }
        // `sshd[123]`: the process's name belongs to it.
        let word = line.get(after..open)?;
        let start = word
            .iter()
            .rposition(|byte| !byte.is_ascii_alphanumeric() && !b"-_./".contains(byte));
        let start = after + start.map_or(0, |at| at + 1);
        return match start < open {
            true => Some((line.get(start..open + close + 2)?, from)),
            false => Some((name, from)),
        };
    }
    None
}

/// What a byte is to the words of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Between,
    Letter,
    Digit,
}

/// The class of each byte: asked of most bytes of a log.
const CLASSES: [Class; 256] = {
    let mut classes = [Class::Between; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'0'..=b'9' => Class::Digit,
            b'a'..=b'z' | b'A'..=b'Z' | 128.. => Class::Letter,
            _ => Class::Between,
        };
        byte += 1;
    }
    classes
};

/// A number for all lines that differ in words with digits only.
#[inline]
pub(super) fn template(line: &[u8], from: usize) -> u32 {
    let end = line.len().min(from + TEMPLATE);
    let mut hash: u32 = 0x811c_9dc5;
    let mut word: u32 = 0;
    let mut digits = false;
    for &byte in line.get(from..end).unwrap_or_default() {
        match CLASSES[usize::from(byte)] {
            Class::Letter => word = word.wrapping_mul(31).wrapping_add(u32::from(byte)),
            Class::Digit => digits = true,
            Class::Between => {
                let with = (hash ^ word).wrapping_mul(0x0100_0193);
                hash = if digits { hash } else { with };
                word = 0;
                digits = false;
            }
        }
    }
    // A word that is cut here counts, or lines of one long word would all be the same.
    if !digits {
        hash = (hash ^ word).wrapping_mul(0x0100_0193);
    }
    hash
}

/// What a line says, without level and logger: behind the last ` : ` or ` - ` of its beginning.
pub(super) fn text(line: &[u8], from: usize) -> String {
    String::from_utf8_lossy(said(line, from)).trim_end().to_owned()
}

/// The same as it stands there.
fn said(line: &[u8], from: usize) -> &[u8] {
    let rest = line.get(from..).unwrap_or_default();
    let head = rest.get(..80).unwrap_or(rest);
    let is = |at: usize, byte: u8| head.get(at) == Some(&byte);
    let alone = |at: &usize| at.checked_sub(1).is_some_and(|before| is(before, b' ')) && is(at + 1, b' ');
    // `Servlet: init` is a message; `Logger : message` has a logger.
    let behind_logger = memchr::memchr_iter(b':', head)
        .find(alone)
        .or_else(|| memchr::memchr_iter(b'-', head).find(alone))
        .map_or(0, |at| at + 2);
    let message = rest.get(behind_logger..).unwrap_or_default().trim_ascii();
    // `sshd[12]: message` has its colon behind the name.
    let message = message.strip_prefix(b":").unwrap_or(message).trim_ascii_start();
    message.get(..60).unwrap_or(message)
}

/// Whether a line says that something begins and not that it is over.
#[inline]
pub(super) fn begins(line: &[u8], from: usize) -> bool {
    begins_by(said(line, from))
}

/// The same of a message.
fn begins_by(message: &[u8]) -> bool {
    let message = message.trim_ascii_end();
    let mut begins = message.ends_with(b"...");
    let letter = |at: usize| message.get(at).is_some_and(u8::is_ascii_alphabetic);
    let mut at = 0;
    while at < message.len() {
        let start = at;
        while letter(at) {
            at += 1;
        }
        match word_says(message.get(start..at).unwrap_or_default()) {
            Some(Says::Ends) => return false,
            // Who waits for work has begun nothing.
            Some(Says::Begins) if waits_for_work(message.get(start..).unwrap_or_default()) => return false,
            Some(Says::Begins) => begins = true,
            None => {}
        }
        at += 1;
    }
    begins
}

/// Whether a text from `waiting` on is about work that may come.
fn waits_for_work(text: &[u8]) -> bool {
    let head = text.get(..WAITING.len()).unwrap_or_default();
    head.eq_ignore_ascii_case(WAITING) && rest::is_work(text.get(WAITING.len()..).unwrap_or_default())
}

/// What a word says. Nearly all say nothing, and are known by their first letter and length.
#[inline]
fn word_says(word: &[u8]) -> Option<Says> {
    let letter = word.first()?.to_ascii_lowercase().wrapping_sub(b'a');
    let (lengths, from, to) = *BY_LETTER.get(usize::from(letter))?;
    if lengths.checked_shr(u32::try_from(word.len()).ok()?)? & 1 == 0 {
        return None;
    }
    let mut known = WORDS.get(usize::from(from)..usize::from(to))?.iter();
    let is = |known: &str| known.len() == word.len() && known.as_bytes().eq_ignore_ascii_case(word);
    known.find(|(known, _)| is(known)).map(|(_, says)| *says)
}

/// By first letter: of which lengths its words are, a bit for each, and where among all words they stand.
const BY_LETTER: [(u32, u8, u8); 26] = {
    let mut letters = [(0, 0, 0); 26];
    let mut at = 0;
    while at < WORDS.len() {
        let word = WORDS[at].0.as_bytes();
        let letter = &mut letters[(word[0] - b'a') as usize];
        if letter.0 == 0 {
            letter.1 = at as u8;
        }
        letter.0 |= 1 << word.len();
        letter.2 = at as u8 + 1;
        at += 1;
    }
    letters
};

#[cfg(test)]
mod tests {
    use super::{WORDS, begins, begins_by, template, text, who, word_says};

    #[test]
    fn threads_requests_and_processes() {
        let name = |line: &'static str| {
            who(line.as_bytes(), 0).map(|(name, _)| String::from_utf8_lossy(name).into_owned())
        };
        assert_eq!(
            name(" INFO 1 --- [nio-8443-exec-3] a.B : x").as_deref(),
            Some("nio-8443-exec-3")
        );
        assert_eq!(name(" [INFO] [main] x").as_deref(), Some("main"));
        assert_eq!(name(" host sshd[12]: x").as_deref(), Some("sshd[12]"));
        for none in ["", " x", " [", " [INFO] x", " []", " [a"] {
            assert_eq!(name(none), None, "{none}");
        }
    }

    #[test]
    fn lines_of_a_kind() {
        let of = |line: &str| template(line.as_bytes(), 0);
        assert_eq!(of("took 12 ms for order a12"), of("took 345 ms for order b7"));
        assert_ne!(of("took 12 ms"), of("lost 12 ms"));
        assert_ne!(of("startup"), of("shutdown"));
    }

    #[test]
    fn every_word_is_found() {
        assert!(WORDS.is_sorted_by_key(|(word, _)| *word));
        for (word, says) in WORDS {
            assert_eq!(word_says(word.to_uppercase().as_bytes()), Some(*says), "{word}");
            assert_eq!(word_says(format!("{word}x").as_bytes()), None, "{word}");
        }
        assert_eq!(word_says(&[b'a'; 99]), None);
    }

    #[test]
    fn what_begins() {
        for yes in [
            "Starting sql...",
            "MessageBrokerServlet: init",
            "Invoking WS",
            "opening index 7",
        ] {
            assert!(begins_by(yes.as_bytes()), "{yes}");
        }
        for no in [
            "WS Invoked",
            "Server started",
            "initializing done",
            "Pool Manager Started",
            "",
            "x",
        ] {
            assert!(!begins_by(no.as_bytes()), "{no}");
        }
        assert!(begins(b" a.b.Client : Invoking WS", 0) && !begins(b" a.b.Starting : Invoked", 0));
        assert_eq!(text(b"  pl.ks.ClientController  : Invoking WS", 0), "Invoking WS");
        assert_eq!(
            text(b" user MessageBrokerServlet: init", 0),
            "user MessageBrokerServlet: init"
        );
        assert_eq!(text(b" - Starting sql...", 0), "Starting sql...");
        assert_eq!(text(b": Accepted key", 0), "Accepted key");
    }
}
