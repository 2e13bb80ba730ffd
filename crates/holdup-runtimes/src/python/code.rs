//! Code objects: a function's name, its file, and the line of an instruction.
//!
//! In: the address of a code object, and how far into its bytecode a frame is. Out: name, file and line. Three encodings
//! of lines are read: `co_lnotab` (to 3.9), the ranges of 3.10, and the location table (from 3.11).

use super::versions::{Layout, Lines, TextFields};
use crate::memory::{Memory, Source};
use std::sync::Arc;

/// Characters of a name or path that are kept; more is cut off.
const TEXT_MAX: u64 = 1024;

/// Bytes of a line table that are read. A function of ten thousand lines has some 60 KB.
const TABLE_MAX: u64 = 256 * 1024;

/// The longest line number that is plausible.
const LINE_MAX: i64 = 100_000_000;

/// What is kept of a code object.
#[derive(Debug)]
pub(super) struct Code {
    /// The words by which it is recognised when its address is met again.
    pub(super) words: [u64; 4],
    pub(super) name: Arc<str>,
    pub(super) file: Arc<str>,
    /// The package that an installer put its file there with.
    pub(super) package: Option<Arc<str>>,
    first_line: u32,
    table: Vec<u8>,
    lines: Lines,
}

impl Code {
    /// The words that tell one code object from another that later has the same address.
    pub(super) fn words<S: Source>(memory: &mut Memory<S>, layout: &Layout, at: u64) -> Option<[u64; 4]> {
        let fields = layout.code;
        let name = fields.qualified.unwrap_or(fields.name);
        Some([
            memory.pointer(at.checked_add(name)?)?,
            memory.pointer(at.checked_add(fields.file)?)?,
            memory.pointer(at.checked_add(fields.table)?)?,
            u64::from(memory.int(at.checked_add(fields.first_line)?)?),
        ])
    }

    /// Reads a code object whose words are known.
    pub(super) fn read<S: Source>(memory: &mut Memory<S>, layout: &Layout, words: [u64; 4]) -> Option<Code> {
        let [name, file, table, first_line] = words;
        Some(Code {
            words,
            name: text(memory, &layout.text, name)?.into(),
            file: text(memory, &layout.text, file)?.into(),
            package: None,
            first_line: u32::try_from(first_line).ok()?,
            table: bytes(memory, &layout.text, table)?,
            lines: layout.code.lines,
        })
    }

    /// The line of the instruction at so many bytes into the bytecode; before the first it is that of the definition.
    pub(super) fn line(&self, offset: Option<u64>) -> Option<u32> {
        let first = i64::from(self.first_line);
        let Some(offset) = offset else {
            return Some(self.first_line);
        };
        let line = match self.lines {
            Lines::Notab => of_notab(&self.table, first, offset),
            Lines::Ranges => of_ranges(&self.table, first, offset),
            Lines::Locations => of_locations(&self.table, first, offset / 2),
        };
        line.filter(|line| (0..LINE_MAX).contains(line))
            .and_then(|line| u32::try_from(line).ok())
    }
}

/// Pairs of bytes: so many bytes of code further, so many lines further.
fn of_notab(table: &[u8], first: i64, offset: u64) -> Option<i64> {
    let (mut line, mut at) = (first, 0_u64);
    for [code, lines] in table.as_chunks::<2>().0 {
        at += u64::from(*code);
        if at > offset {
            break;
        }
        line += i64::from(lines.cast_signed());
    }
    Some(line)
}

/// Pairs of bytes: the length of a range of code, and how far its line is from the last one; −128 is a range without one.
fn of_ranges(table: &[u8], first: i64, offset: u64) -> Option<i64> {
    const NO_LINE: i8 = -128;
    let (mut line, mut end) = (first, 0_u64);
    for [code, lines] in table.as_chunks::<2>().0 {
        end += u64::from(*code);
        let lines = lines.cast_signed();
        if lines != NO_LINE {
            line += i64::from(lines);
        }
        if offset < end {
            return (lines != NO_LINE).then_some(line);
        }
    }
    None
}

/// Entries of one byte or more. The first has its highest bit set, and says how the rest is to be read and how many units of
/// code the entry is for.
fn of_locations(table: &[u8], first: i64, unit: u64) -> Option<i64> {
    let (mut line, mut end) = (first, 0_u64);
    let mut rest = table;
    while let [head, after @ ..] = rest {
        rest = after;
        let kind = (head >> 3) & 15;
        end += u64::from(head & 7) + 1;
        let lines = match kind {
            15 => None,
            13 | 14 => Some(signed(number(&mut rest)?)),
            10..=12 => Some(i64::from(kind - 10)),
            _ => Some(0),
        };
        line = line.checked_add(lines.unwrap_or(0))?;
        if unit < end {
            return lines.map(|_| line);
        }
        // Columns follow; the next entry begins with the next byte that has its highest bit.
        let columns = rest.iter().take_while(|byte| **byte & 0x80 == 0).count();
        rest = &rest[columns..];
    }
    None
}

/// Six bits a byte, the lowest first; bit 6 says that more follow.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..60).step_by(6) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 63) << shift;
        if byte & 64 == 0 {
            return Some(value);
        }
    }
    None
}

/// The lowest bit is the sign.
fn signed(value: u64) -> i64 {
    let size = i64::try_from(value >> 1).unwrap_or(i64::MAX);
    if value & 1 == 1 { -size } else { size }
}

/// A `str`.
pub(super) fn text<S: Source>(memory: &mut Memory<S>, fields: &TextFields, at: u64) -> Option<String> {
    let length = memory.word(at.checked_add(fields.length)?)?;
    // A text of half the address space is none.
    if length > u64::from(u32::MAX) {
        return None;
    }
    let state = memory.int(at.checked_add(fields.state)?)? >> fields.kind;
    let (kind, compact, ascii) = (state & 7, state & 8 != 0, state & 16 != 0);
    if !compact || !matches!(kind, 1 | 2 | 4) || (ascii && kind != 1) {
        return None;
    }
    let begins = at.checked_add(if ascii { fields.ascii } else { fields.other })?;
    let characters = usize::try_from(length.min(TEXT_MAX)).ok()?;
    let mut bytes = vec![0; characters * kind as usize];
    memory.read(begins, &mut bytes)?;
    let character = |number: u32| char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
    Some(match kind {
        1 => bytes.into_iter().map(char::from).collect(),
        2 => {
            let units = bytes.as_chunks::<2>().0.iter();
            units
                .map(|unit| character(u16::from_le_bytes(*unit).into()))
                .collect()
        }
        _ => {
            let units = bytes.as_chunks::<4>().0.iter();
            units.map(|unit| character(u32::from_le_bytes(*unit))).collect()
        }
    })
}

/// A `bytes`, the beginning of a long one.
fn bytes<S: Source>(memory: &mut Memory<S>, fields: &TextFields, at: u64) -> Option<Vec<u8>> {
    let size = memory.word(at.checked_add(fields.bytes_size)?)?;
    if size > u64::from(u32::MAX) {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(size.min(TABLE_MAX)).ok()?];
    memory.read(at.checked_add(fields.bytes)?, &mut bytes)?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{of_locations, of_notab, of_ranges};

    #[test]
    fn lines_to_3_9_are_steps() {
        // Line 10 for 4 bytes, 12 for 6, 11 for the rest.
        let table = [4, 2, 6, 255];
        let line = |offset| of_notab(&table, 10, offset);
        assert_eq!(
            [0, 3, 4, 9, 10, 500].map(line),
            [10, 10, 12, 12, 11, 11].map(Some)
        );
        assert_eq!(of_notab(&[], 7, 3), Some(7));
        // Steps of more than 255 bytes or 127 lines take several pairs.
        assert_eq!(of_notab(&[255, 0, 45, 127, 0, 73], 1, 300), Some(201));
    }

    #[test]
    fn lines_of_3_10_are_ranges() {
        let table = [4, 0, 2, 128, 6, 255, 2, 3];
        let line = |offset| of_ranges(&table, 10, offset);
        assert_eq!(
            [0, 4, 6, 11, 12, 14].map(line),
            [Some(10), None, Some(9), Some(9), Some(12), None]
        );
    }

    #[test]
    fn lines_from_3_11_are_locations() {
        let table = [
            0x80 | 10 << 3,
            4,
            9, // one unit, the same line
            0x80 | 11 << 3 | 7,
            4,
            9,                  // eight units, the next line
            0x80 | 15 << 3 | 1, // two units without a line
            0x80 | 14 << 3,
            70,
            1,
            0,
            1,
            1, // one unit, 35 lines further
            0x80 | 13 << 3,
            7, // three lines back
            0x80 | 2 << 3,
            0x12, // the same
        ];
        let line = |unit| of_locations(&table, 10, unit);
        assert_eq!(
            [0, 1, 8, 9, 11, 12, 13, 14].map(line),
            [
                Some(10),
                Some(11),
                Some(11),
                None,
                Some(46),
                Some(43),
                Some(43),
                None
            ]
        );
        assert_eq!(
            of_locations(&[0x80 | 14 << 3, 0x7f, 0x7f], 10, 0),
            None,
            "cut off"
        );
    }
}
