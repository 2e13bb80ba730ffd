//! Signs that pages, phones and input methods put in place of those that a program printed: `：` for `:`, `“` for `"`, a thin blank.
//!
//! In: bytes of a stream whose beginning has such signs. Out: the same with the signs that programs print. They stand in texts
//! that were copied by way of a word processor or typed beside Chinese or Japanese.

use memchr::memmem::Finder;
use std::io::Read;
use std::sync::LazyLock;

/// Bytes of each such sign in UTF-8.
const LENGTH: usize = 3;

/// First and second bytes: full width, punctuation, ideographic blanks, mathematical signs.
const BEGINNINGS: [&[u8]; 5] = [
    b"\xef\xbc",
    b"\xef\xbd",
    b"\xe2\x80",
    b"\xe3\x80\x80",
    b"\xe2\x88\x92",
];

/// Bytes that are changed at once.
const CHUNK: usize = 64 << 10;

/// What a sign stands for.
fn plain(sign: &[u8]) -> Option<u8> {
    match sign {
        // The forms of `!` to `~` that are as wide as an ideograph.
        [0xef, 0xbc, last @ 0x81..=0xbf] => Some(last - 0x81 + b'!'),
        [0xef, 0xbd, last @ 0x80..=0x9e] => Some(last - 0x80 + b'`'),
        // Blanks of a certain width, and those at which no line breaks.
        [0xe2, 0x80, 0x80..=0x8a | 0xaf] | [0xe3, 0x80, 0x80] => Some(b' '),
        [0xe2, 0x80, 0x90..=0x92] | [0xe2, 0x88, 0x92] => Some(b'-'),
        [0xe2, 0x80, 0x98 | 0x99] => Some(b'\''),
        [0xe2, 0x80, 0x9c..=0x9e] => Some(b'"'),
        _ => None,
    }
}

/// Whether the beginning of a text has such signs.
pub(crate) fn has_signs(head: &[u8]) -> bool {
    static FINDERS: LazyLock<Vec<Finder<'static>>> =
        LazyLock::new(|| BEGINNINGS.iter().map(|begin| Finder::new(*begin)).collect());
    if head.is_ascii() {
        return false;
    }
    FINDERS.iter().any(|finder| {
        finder
            .find_iter(head)
            .any(|at| head.get(at..at + LENGTH).and_then(plain).is_some())
    })
}

/// Whether a sign keeps its form in a text that has plain quotation marks: a word processor changes all of them, so a program printed both,
/// and a plain one in its place would end a string of JSON.
fn ends_strings(sign: u8) -> bool {
    matches!(sign, b'"' | b'\\')
}

/// Puts the plain signs in their place.
pub(crate) struct Plain<'a> {
    stream: &'a mut dyn Read,
    /// Whether the text has plain quotation marks.
    has_quotes: bool,
    /// The beginning of a sign, at the end of what was read.
    kept: Vec<u8>,
    ended: bool,
}

impl<'a> Plain<'a> {
    /// `head` is the beginning of the text.
    pub(crate) fn new(stream: &'a mut dyn Read, head: &[u8]) -> Plain<'a> {
        Plain {
            stream,
            has_quotes: head.contains(&b'"'),
            kept: Vec::new(),
            ended: false,
        }
    }
}

impl Read for Plain<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            if buffer.is_empty() || self.ended && self.kept.is_empty() {
                return Ok(0);
            }
            // What comes out is never longer than what went in.
            let room = buffer.len().clamp(LENGTH, CHUNK);
            if self.kept.len() < room && !self.ended {
                let old = self.kept.len();
                self.kept.resize(room, 0);
                let read = self.stream.read(self.kept.get_mut(old..).unwrap_or_default());
                self.kept.truncate(old + *read.as_ref().unwrap_or(&0));
                self.ended = read? == 0;
            }
            let (mut from, mut to) = (0, 0);
            while let Some(&byte) = self.kept.get(from) {
                let Some(place) = buffer.get_mut(to) else { break };
                let sign = self.kept.get(from..from + LENGTH);
                // Of the last bytes it is not known yet whether they begin a sign.
                if sign.is_none() && !self.ended && matches!(byte, 0xe2 | 0xe3 | 0xef) {
                    break;
                }
                let changed = sign
                    .and_then(plain)
                    .filter(|sign| !self.has_quotes || !ends_strings(*sign));
                *place = changed.unwrap_or(byte);
                from += if changed.is_some() { LENGTH } else { 1 };
                to += 1;
            }
            self.kept.drain(..from);
            if to > 0 {
                return Ok(to);
            }
            if self.ended && from == 0 {
                return Ok(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Plain, has_signs};
    use std::io::Read;

    const TEXT: &str = "avg-cpu：　%user｛１｝ “a” ‘b’ 2\u{202f}000 \u{2212}1 é … 日本 ＿\u{2010}";

    fn changed(text: &[u8], chunk: usize) -> Vec<u8> {
        let mut text = text;
        let head = text;
        let mut stream = Plain::new(&mut text, head);
        let mut all = Vec::new();
        let mut buffer = vec![0; chunk];
        loop {
            match stream.read(&mut buffer).unwrap() {
                0 => return all,
                length => all.extend_from_slice(&buffer[..length]),
            }
        }
    }

    #[test]
    fn signs_are_plain_wherever_they_are_cut() {
        for chunk in [1, 2, 3, 4, 7, 4096] {
            assert_eq!(
                String::from_utf8(changed(TEXT.as_bytes(), chunk)).unwrap(),
                "avg-cpu: %user{1} \"a\" 'b' 2 000 -1 é … 日本 _-",
                "{chunk}"
            );
        }
        assert_eq!(changed(b"a\xe2\x80", 9), b"a\xe2\x80");
        assert_eq!(changed(b"\xef", 1), b"\xef");
    }

    #[test]
    fn strings_of_json_are_not_ended() {
        let json = "{\"msg\": \"no “prices”：＼n\"}";
        assert_eq!(
            String::from_utf8(changed(json.as_bytes(), 9)).unwrap(),
            "{\"msg\": \"no “prices”:＼n\"}"
        );
    }

    #[test]
    fn other_texts_are_left_alone() {
        assert!(has_signs(TEXT.as_bytes()));
        for text in ["", "plain: text", "für …", "日本語", "└─a.service"] {
            assert!(!has_signs(text.as_bytes()), "{text}");
        }
    }
}
