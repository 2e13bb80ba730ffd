//! Mail's quoted-printable: `=3D` for `=`, and lines that are broken after `=`.
//!
//! In: bytes of a stream whose beginning looks like that, as texts copied from archives of mailing lists do. Out: the bytes as they
//! were written.

use std::io::Read;

/// Broken lines, and bytes in their form, from which it is no chance.
const BROKEN: usize = 2;
const ESCAPED: usize = 2;

/// Bytes in their form that are no chance beside one broken line.
const SURE: usize = 6;

/// Bytes of a line that a mail program has broken: as many as fit into 76, words whole.
const WIDTH: std::ops::RangeInclusive<usize> = 50..=77;

/// Bytes of a line that was broken within a word.
const FULL: std::ops::RangeInclusive<usize> = 75..=77;

/// Whether the beginning of a text is in that form.
pub(crate) fn is_quoted(head: &[u8]) -> bool {
    let is_broken = |line: &&[u8]| {
        let line = line.trim_ascii_end();
        line.ends_with(b"=") && WIDTH.contains(&line.len())
    };
    let lines = || head.split(|byte| *byte == b'\n');
    let broken = lines().filter(is_broken).take(BROKEN).count();
    // A text without other signs: its lines are broken as far right as mail allows.
    let mut right = lines().filter(is_broken).map(|line| line.trim_ascii_end().len());
    let all_right = right.all(|length| FULL.contains(&length));
    // In that form each `=` of the text itself is written as `=3D`.
    let (mut all, mut forms, mut escaped) = (0, 0, 0);
    for at in memchr::memchr_iter(b'=', head) {
        all += 1;
        match head.get(at + 1..at + 3) {
            Some([high, low]) if is_digit(*high) && is_digit(*low) => {
                forms += 1;
                escaped += 1;
            }
            Some([b'\n', _] | [b'\r', b'\n']) | None => forms += 1,
            Some(_) => {}
        }
    }
    (broken >= BROKEN && (escaped >= ESCAPED || all_right) || broken > 0 && escaped >= SURE)
        && forms * 20 >= all * 19
}

/// Whether a byte is a digit as mail programs write them.
fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte)
}

/// Undoes it.
pub(crate) struct Unquoted<'a> {
    stream: &'a mut dyn Read,
    /// The beginning of a form, at the end of what was read.
    kept: Vec<u8>,
    ended: bool,
}

impl<'a> Unquoted<'a> {
    pub(crate) fn new(stream: &'a mut dyn Read) -> Unquoted<'a> {
        Unquoted {
            stream,
            kept: Vec::new(),
            ended: false,
        }
    }

    /// What the bytes are, into `into`; how many were taken. The last two may begin a form.
    fn decode(from: &[u8], ended: bool, into: &mut Vec<u8>) -> usize {
        let mut at = 0;
        while let Some(&byte) = from.get(at) {
            if byte != b'=' {
                into.push(byte);
                at += 1;
                continue;
            }
            let digit = |at: usize| from.get(at).and_then(|byte| char::from(*byte).to_digit(16));
            match (from.get(at + 1), from.get(at + 2)) {
                (Some(b'\n'), _) => at += 2,
                (Some(b'\r'), Some(b'\n')) => at += 3,
                (Some(_), Some(_)) => match (digit(at + 1), digit(at + 2)) {
                    (Some(high), Some(low)) => {
                        into.push((high * 16 + low) as u8);
                        at += 3;
                    }
                    _ => {
                        into.push(byte);
                        at += 1;
                    }
                },
                _ if ended => {
                    into.push(byte);
                    at += 1;
                }
                _ => break,
            }
        }
        at
    }
}

impl Read for Unquoted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            if buffer.is_empty() || self.ended && self.kept.is_empty() {
                return Ok(0);
            }
            // What comes out is never longer than what went in.
            let room = buffer.len().min(CHUNK);
            if self.kept.len() < room && !self.ended {
                let old = self.kept.len();
                self.kept.resize(room, 0);
                let read = self.stream.read(self.kept.get_mut(old..).unwrap_or_default());
                self.kept.truncate(old + *read.as_ref().unwrap_or(&0));
                self.ended = read? == 0;
            }
            let mut decoded = Vec::new();
            let from = self.kept.get(..self.kept.len().min(room)).unwrap_or_default();
            let whole = from.len() == self.kept.len();
            let taken = Unquoted::decode(from, self.ended && whole || room < 3, &mut decoded);
            self.kept.drain(..taken);
            if let Some(to) = buffer.get_mut(..decoded.len()) {
                to.copy_from_slice(&decoded);
            }
            if !decoded.is_empty() {
                return Ok(decoded.len());
            }
        }
    }
}

/// Bytes that are decoded at once.
const CHUNK: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::{Unquoted, is_quoted};
    use std::io::Read;

    const TEXT: &[u8] = b"a=3D1 b=3D2=\n c\nline =\r\nends=20\n= =G1 =\xff=4";

    fn undone(text: &[u8], chunk: usize) -> Vec<u8> {
        let mut text = text;
        let mut stream = Unquoted::new(&mut text);
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
    fn forms_are_undone_wherever_they_are_cut() {
        for chunk in [3, 4, 5, 7, 64, 4096] {
            assert_eq!(
                undone(TEXT, chunk),
                b"a=1 b=2 c\nline ends \n= =G1 =\xff=4",
                "{chunk}"
            );
        }
        assert_eq!(undone(b"", 9), b"");
        assert_eq!(undone(b"=", 9), b"=");
    }

    #[test]
    fn other_texts_are_left_alone() {
        let broken = format!("{}=\n", "word ".repeat(14)).repeat(2);
        assert!(is_quoted(format!("a=3D1 b=3D2\n{broken}").as_bytes()));
        assert!(!is_quoted(broken.as_bytes()));
        for text in [
            &b"a=3D1 b=20"[..],
            b"x =\ny =\n",
            b"==> a <==\nb=20 c=20\n==> d <==\n",
        ] {
            assert!(!is_quoted(text));
        }
    }
}
