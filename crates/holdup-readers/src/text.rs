//! Text of any encoding as lines can be cut from: UTF-16 becomes UTF-8, what a terminal was reported is taken out, and a line
//! ends with `\n`.
//!
//! In: bytes of a stream. Out: bytes that are ASCII where they are ASCII in the artefact. Latin-1 stays as it is, because
//! no tool prints a letter with an accent into a number.

use memchr::{memchr, memchr2, memchr3};
use std::io::{ErrorKind, Read};

/// The byte order mark of UTF-8.
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

/// Bytes from which UTF-16 without a mark is reported.
const SNIFFED: usize = 4096;

/// Fewer characters are too few to tell UTF-16 by its zeros.
const MIN_CHARACTERS: usize = 8;

/// A control sequence that is longer is none, bytes: colours and titles are shorter.
const SEQUENCE: usize = 512;

/// A no-break space in UTF-8: pages and mail programs put it in place of blanks.
pub(crate) const HIGH_BLANK: u8 = 0xc2;
const LOW_BLANK: u8 = 0xa0;

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;

/// What an artefact's beginning says of its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Text {
    /// UTF-16, and whether its first byte is the higher one.
    pub(crate) utf16: Option<bool>,
    /// Bytes of the mark that says so.
    pub(crate) mark: usize,
    /// Whether lines end with `\r` alone.
    pub(crate) returns: bool,
    /// Whether blanks are written as no-break spaces.
    pub(crate) blanks: bool,
    /// Whether there is anything to take out or to change.
    pub(crate) plain: bool,
}

impl Text {
    /// Looks at the beginning of an artefact.
    pub(crate) fn of(head: &[u8]) -> Text {
        let (utf16, mark) = match head {
            [0xff, 0xfe, ..] => (Some(false), 2),
            [0xfe, 0xff, ..] => (Some(true), 2),
            _ if head.starts_with(UTF8_MARK) => (None, UTF8_MARK.len()),
            _ => (utf16_by_zeros(head), 0),
        };
        let returns = utf16.is_none() && memchr(b'\n', head).is_none() && memchr(b'\r', head).is_some();
        let blanks = memchr::memmem::find(head, &[HIGH_BLANK, LOW_BLANK]).is_some();
        Text {
            utf16,
            mark,
            returns,
            blanks,
            plain: !blanks && mark == 0 && utf16.is_none() && !returns && memchr2(0, ESCAPE, head).is_none(),
        }
    }
}

/// Text of Latin letters has a zero in every other byte, and almost none in the others.
fn utf16_by_zeros(head: &[u8]) -> Option<bool> {
    let pairs = head[..head.len().min(SNIFFED)].chunks_exact(2);
    let all = pairs.len();
    let (mut first, mut second) = (0, 0);
    for pair in pairs {
        first += usize::from(pair[0] == 0);
        second += usize::from(pair[1] == 0);
    }
    let most = |zeros: usize| zeros * 10 > all * 9;
    let few = |zeros: usize| zeros * 50 < all;
    match () {
        () if all < MIN_CHARACTERS => None,
        () if most(second) && few(first) => Some(false),
        () if most(first) && few(second) => Some(true),
        () => None,
    }
}

/// Whether it is no text: more than a fifth of it is neither a character nor white space. Zeros do not count: a machine
/// that lost power leaves blocks of them in its logs.
pub(crate) fn is_binary(head: &[u8]) -> bool {
    let head = &head[..head.len().min(SNIFFED)];
    let text = String::from_utf8_lossy(head);
    let (mut odd, mut all) = (0, 0);
    for character in text.chars().filter(|character| *character != '\0') {
        all += 1;
        let control =
            character.is_control() && !matches!(character, '\t' | '\n' | '\r' | '\x1b' | '\x07' | '\x08');
        odd += usize::from(control || character == char::REPLACEMENT_CHARACTER);
    }
    odd * 5 > all
}

/// Takes out of text what is none.
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    state: State,
    /// Bytes of the sequence so far.
    length: usize,
    /// Whether `\r` ends lines.
    returns: bool,
    /// Whether no-break spaces are to become blanks.
    blanks: bool,
}

/// Where in a control sequence the text is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// Behind an escape.
    Escape,
    /// Behind an escape and a byte that has another behind it (a character set).
    Intermediate,
    /// Within `ESC [ … letter`.
    Control,
    /// Within `ESC ] … BEL`, or another that ends like it.
    Command,
    /// The same, behind the escape of `ESC \`.
    CommandEscape,
}

impl Cleaner {
    pub(crate) fn new(text: Text) -> Cleaner {
        Cleaner {
            returns: text.returns,
            blanks: text.blanks,
            ..Cleaner::default()
        }
    }

    /// Whether the next piece has to be cleaned together with the last byte of this one.
    pub(crate) fn is_half(&self, bytes: &[u8]) -> bool {
        self.blanks && self.state == State::Text && bytes.last() == Some(&HIGH_BLANK)
    }

    /// Cleans in place; how many bytes are left.
    pub(crate) fn clean(&mut self, bytes: &mut [u8]) -> usize {
        let first = match (self.state, self.returns, self.blanks) {
            (State::Text, false, false) => memchr2(0, ESCAPE, bytes),
            (State::Text, false, true) => memchr3(0, ESCAPE, HIGH_BLANK, bytes),
            (State::Text, true, false) => memchr3(0, ESCAPE, b'\r', bytes),
            _ => Some(0),
        };
        let Some(first) = first else { return bytes.len() };
        let mut to = first;
        for from in first..bytes.len() {
            let Some(byte) = self.take(bytes[from]) else {
                continue;
            };
            if self.blanks && byte == LOW_BLANK && to > 0 && bytes[to - 1] == HIGH_BLANK {
                bytes[to - 1] = b' ';
                continue;
            }
            bytes[to] = byte;
            to += 1;
        }
        to
    }

    /// What becomes of a byte.
    fn take(&mut self, byte: u8) -> Option<u8> {
        self.length += 1;
        // No sequence goes over the end of a line, or on for ever: a log is not lost for one that was cut.
        if self.state != State::Text && (byte == b'\n' || self.length > SEQUENCE) {
            self.state = State::Text;
        }
        self.state = match (self.state, byte) {
            (State::Text, 0) => return None,
            (State::Text, b'\r') if self.returns => return Some(b'\n'),
            (State::Text, ESCAPE) => {
                self.length = 0;
                State::Escape
            }
            (State::Text, _) => return Some(byte),
            (State::Escape, b'[') => State::Control,
            (State::Escape, b']' | b'P' | b'_' | b'^' | b'X') => State::Command,
            (State::Escape, 0x20..=0x2f) => State::Intermediate,
            (State::Control, 0x20..=0x3f) => State::Control,
            (State::Command, ESCAPE) => State::CommandEscape,
            (State::Command, byte) if byte != BELL => State::Command,
            _ => State::Text,
        };
        None
    }
}

/// UTF-16 as UTF-8.
pub(crate) struct Utf16<R> {
    stream: R,
    high_first: bool,
    /// Bytes that were read and are no pair yet.
    raw: Vec<u8>,
    /// The first half of a character of two.
    half: Option<u16>,
    /// Text that was not handed out yet, from `at`.
    text: Vec<u8>,
    at: usize,
}

impl<R: Read> Utf16<R> {
    pub(crate) fn new(stream: R, high_first: bool) -> Utf16<R> {
        Utf16 {
            stream,
            high_first,
            raw: Vec::new(),
            half: None,
            text: Vec::new(),
            at: 0,
        }
    }

    fn decode(&mut self) {
        self.text.clear();
        self.at = 0;
        let whole = self.raw.len() / 2 * 2;
        let high_first = self.high_first;
        let pairs = self.raw[..whole].chunks_exact(2);
        let units = pairs.map(|pair| {
            let pair = [pair[0], pair[1]];
            if high_first {
                u16::from_be_bytes(pair)
            } else {
                u16::from_le_bytes(pair)
            }
        });
        let units: Vec<u16> = self.half.take().into_iter().chain(units).collect();
        let units = match units.split_last() {
            Some((last, rest)) if (0xd800..0xdc00).contains(last) => {
                self.half = Some(*last);
                rest
            }
            _ => &units,
        };
        for character in char::decode_utf16(units.iter().copied()) {
            let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
            let mut buffer = [0; 4];
            self.text
                .extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
        }
        self.raw.drain(..whole);
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut chunk = [0; 8 << 10];
        while self.at == self.text.len() {
            match self.stream.read(&mut chunk) {
                Ok(0) => return Ok(0),
                Ok(length) => self.raw.extend_from_slice(&chunk[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            self.decode();
        }
        let length = buffer.len().min(self.text.len() - self.at);
        buffer[..length].copy_from_slice(&self.text[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::{Cleaner, Text, Utf16, is_binary};
    use std::io::Read;

    fn cleaned(text: &[u8], piece: usize) -> Vec<u8> {
        let mut cleaner = Cleaner::new(Text::of(text));
        let mut all = Vec::new();
        for piece in text.chunks(piece) {
            let mut piece = piece.to_vec();
            let left = cleaner.clean(&mut piece);
            all.extend_from_slice(&piece[..left]);
        }
        all
    }

    #[test]
    fn what_a_terminal_was_told_is_taken_out() {
        let text = b"\x1b]0;title\x07\x1b[1;31mred\x1b[0m \x1b(Bplain\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n\x1b[K\x1b=a\0b\n";
        for piece in [1, 2, 3, 1000] {
            assert_eq!(cleaned(text, piece), b"red plainlink\nab\n", "{piece}");
        }
    }

    #[test]
    fn a_sequence_without_end_costs_no_more_than_its_line() {
        assert_eq!(cleaned(b"a\x1b]0;no end\nb\x1b[12\nc", 1000), b"a\nb\nc");
        let long = [&b"\x1b]"[..], &[b'x'; 4096], b"y\n"].concat();
        assert!(cleaned(&long, 1000).ends_with(b"xy\n"));
    }

    #[test]
    fn returns_end_lines_where_nothing_else_does() {
        assert_eq!(cleaned(b"a\rb\r", 1000), b"a\nb\n");
        assert_eq!(cleaned(b"a\r\nb\0\r\n", 1000), b"a\r\nb\r\n");
    }

    #[test]
    fn utf_16_is_told_with_and_without_its_mark() {
        let text = "Zeit: 0,5 ms für 𝄞 eine Zeile\r\n".repeat(2_000);
        for high_first in [false, true] {
            let bytes: Vec<u8> = text
                .encode_utf16()
                .flat_map(|unit| {
                    if high_first {
                        unit.to_be_bytes()
                    } else {
                        unit.to_le_bytes()
                    }
                })
                .collect();
            assert_eq!(Text::of(&bytes).utf16, Some(high_first));
            let mut marked = if high_first {
                vec![0xfe, 0xff]
            } else {
                vec![0xff, 0xfe]
            };
            marked.extend_from_slice(&bytes);
            assert_eq!(
                (Text::of(&marked).utf16, Text::of(&marked).mark),
                (Some(high_first), 2)
            );
            let mut read = String::new();
            Utf16::new(&bytes[..], high_first)
                .read_to_string(&mut read)
                .unwrap();
            assert_eq!(read, text);
        }
        assert_eq!(Text::of(&[0; 4096]).utf16, None);
        assert_eq!(Text::of(b"plain text, long enough to tell").utf16, None);
    }

    #[test]
    fn text_is_told_from_rubbish() {
        assert!(!is_binary(b""));
        assert!(!is_binary(
            &[b"a log line f\xfcr dich\n".repeat(9), vec![0; 300]].concat()
        ));
        assert!(!is_binary("日本語のログ\n".repeat(500).as_bytes()));
        let rubbish: Vec<u8> = (0..4096_u32)
            .map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        assert!(is_binary(&rubbish));
    }
}
