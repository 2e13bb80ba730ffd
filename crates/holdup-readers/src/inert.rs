//! Lines that differ in numbers alone from one that said nothing: most lines of a long log do.
//!
//! In: a line. Out: its shape, and whether a line of this shape was looked at before and said nothing. A number is a part of the shape by
//! its length, and one of up to three digits by its digits: those are codes (`status 503`, `exit code 137`), and nothing (`errors: 0`).
//! Whether a line has a figure whose size matters is kept with its shape: then each of the same shape is judged by its figures. Digits of the time at the beginning of a line count by their places. Memory: one table of a fixed size.

use std::hash::BuildHasher;

/// Places of the table.
const PLACES: usize = 1 << 12;

/// Bytes of a line that has a shape; a longer one is looked at each time.
const MAX_LINE_BYTES: usize = 512;

/// Bytes of a time at the beginning of a line.
const MAX_STAMP_BYTES: usize = 40;
const ISO_BYTES: usize = 26;
const SYSLOG_BYTES: usize = 15;

/// Digits of a number that are its own and no measure.
const CODE_DIGITS: usize = 3;

/// The bit of a shape that says that its numbers matter.
const COUNTS: u64 = 2;

/// The shapes that said nothing.
#[derive(Debug, Default)]
pub(crate) struct Inert {
    /// One for each place, the last that was put there; empty until the first.
    places: Vec<u64>,
    hash: foldhash::fast::FixedState,
    /// The line that is made a shape.
    room: Vec<u8>,
}

/// A shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape(u64);

impl Inert {
    /// The shape of a line; `None` of one without a number, that heads others by its end, or that is too long.
    pub(crate) fn shape(&mut self, line: &[u8]) -> Option<Shape> {
        if line.len() > MAX_LINE_BYTES || matches!(line.last(), Some(b':' | b'{' | b'[')) {
            return None;
        }
        let shape = &mut self.room;
        shape.clear();
        shape.extend_from_slice(line);
        let stamp = stamp(line).min(line.len());
        let (head, body) = shape.split_at_mut_checked(stamp)?;
        for byte in head {
            // A time is padded with blanks.
            if byte.is_ascii_digit() || *byte == b' ' {
                *byte = b'1';
            }
        }
        // Long numbers lose their digits.
        let mut some = stamp > 0;
        let mut rest = body;
        while let Some(begin) = rest.iter().position(u8::is_ascii_digit) {
            let number = rest.get_mut(begin..)?;
            let digits = number.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (number, behind) = number.split_at_mut_checked(digits)?;
            if digits > CODE_DIGITS {
                number.fill(b'1');
            }
            some = true;
            rest = behind;
        }
        some.then(|| Shape(self.hash.hash_one(self.room.as_slice()) & !COUNTS | 1))
    }

    /// Whether the words of such a line said nothing.
    pub(crate) fn has(&self, shape: Shape) -> bool {
        let known = self.places.get(place(shape));
        known.is_some_and(|known| known & !COUNTS == shape.0)
    }

    /// Whether such a line has a known figure, or says what others are of.
    pub(crate) fn counts(&self, shape: Shape) -> bool {
        self.places.get(place(shape)) == Some(&(shape.0 | COUNTS))
    }

    /// The words of such a line said nothing; `counts` says whether its numbers may.
    pub(crate) fn add(&mut self, shape: Shape, counts: bool) {
        if self.places.is_empty() {
            self.places.resize(PLACES, 0);
        }
        if let Some(known) = self.places.get_mut(place(shape)) {
            *known = shape.0 | if counts { COUNTS } else { 0 };
        }
    }
}

fn place(shape: Shape) -> usize {
    (shape.0 >> 7) as usize % PLACES
}

/// Bytes of the time at the beginning of a line.
fn stamp(line: &[u8]) -> usize {
    match line.first() {
        Some(b'[') => {
            let head = line.get(..MAX_STAMP_BYTES).unwrap_or(line);
            let begins = head
                .get(1)
                .is_some_and(|byte| *byte == b' ' || byte.is_ascii_digit());
            memchr::memchr(b']', head).filter(|_| begins).unwrap_or(0)
        }
        Some(b'0'..=b'9') if line.get(4) == Some(&b'-') => ISO_BYTES,
        Some(b'A'..=b'Z') if line.get(3) == Some(&b' ') && line.get(9) == Some(&b':') => SYSLOG_BYTES,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::Inert;

    #[test]
    fn lines_that_differ_in_measures_and_times_have_one_shape_and_codes_their_own() {
        let mut inert = Inert::default();
        let mut shape = |line: &str| inert.shape(line.as_bytes());
        for (one, other) in [
            (
                "[    5.020000] usb 1-1: id 12345",
                "[   17.310022] usb 1-1: id 98211",
            ),
            (
                "Mar 03 10:00:01 box app[4711]: done",
                "Mar 04 22:17:59 box app[1234]: done",
            ),
            ("2026-03-03T10:00:00.123456 a", "2026-11-30T23:59:59.999999 a"),
        ] {
            assert!(shape(one).is_some() && shape(one) == shape(other), "{one}");
        }
        for (one, other) in [
            ("exit code 137", "exit code 143"),
            ("errors: 0", "errors: 5"),
            ("took 123456 ms", "took 1234567 ms"),
            ("a 12345", "b 12345"),
        ] {
            assert_ne!(shape(one), shape(other), "{one}");
        }
        for line in [
            "",
            "no number",
            "12345 begins a list:",
            "\"12345\": {",
            &"1".repeat(600),
        ] {
            assert_eq!(shape(line), None, "{line}");
        }
    }

    #[test]
    fn what_said_nothing_is_known() {
        let mut inert = Inert::default();
        let shape = inert.shape(b"[ 1.000000] nothing 44444").unwrap();
        assert!(!inert.has(shape));
        inert.add(shape, false);
        assert!(inert.has(shape) && !inert.counts(shape));
        inert.add(shape, true);
        assert!(inert.has(shape) && inert.counts(shape));
        let other = inert.shape(b"[ 1.000000] other 44444").unwrap();
        assert!(!inert.has(other) && !inert.counts(other));
    }
}
