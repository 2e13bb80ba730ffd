//! What frames hold: their variables, and the values that they work on.
//!
//! In: a frame. Out: its variables; and the values below a block that it is in (`with`, `try`), which are alive while it is. Of the values
//! above, some may be left over from before, and nobody says which.

use super::Interpreter;
use super::objects_layout::Values;
use super::versions::{Entry, Place};
use crate::memory::Source;
use std::collections::HashSet;

/// Variables and values of a frame that are read.
const VALUES_MAX: u64 = 512;

/// Blocks that a frame can be in, to 3.10.
const BLOCKS_MAX: u32 = 20;

/// Bytes of a table of blocks that are read.
const TABLE_MAX: u64 = 64 * 1024;

impl<S: Source> Interpreter<S> {
    /// The frames of a thread, innermost first, by their addresses.
    pub(super) fn frame_addresses(&mut self, thread: u64, most: usize) -> Option<Vec<u64>> {
        let layout = self.layout;
        let mut frames = Vec::new();
        let mut met = HashSet::new();
        let mut frame = super::frames::innermost(&mut self.memory, &layout, thread)?;
        while frame != 0 && frames.len() < most && met.insert(frame) {
            let stands_for_call = match layout.entry {
                Entry::Before(owner, least) => self.memory.byte(frame.checked_add(owner)?)? >= least,
                Entry::Each | Entry::Flag(_) => false,
            };
            if !stands_for_call {
                frames.push(frame);
            }
            frame = self.at(frame, layout.previous)?;
        }
        Some(frames)
    }

    /// The variables of a frame, empty ones as 0, and how many of all values they are: behind them come those that it works on.
    pub(super) fn variables(&mut self, frame: u64) -> Option<(u64, u64)> {
        match self.layout.objects?.values {
            Values::Blocks { stack, variables, .. } => {
                let begin = frame.checked_add(variables)?;
                let count = self.at(frame, stack)?.checked_sub(begin)? / 8;
                (count <= VALUES_MAX).then_some((begin, count))
            }
            Values::Table { variables, count, .. } => {
                let code = self.at(frame, self.layout.executable)? & !self.layout.tag;
                let count = u64::from(self.memory.int(code.checked_add(count)?)?);
                (count <= VALUES_MAX).then_some((frame.checked_add(variables)?, count))
            }
        }
    }

    /// All that a frame may refer to, with what may be left over from before.
    pub(super) fn references(&mut self, frame: u64) -> Option<Vec<u64>> {
        let (begin, count) = self.variables(frame)?;
        let code = self.at(frame, self.layout.executable)? & !self.layout.tag;
        let depth = match self.layout.objects?.values {
            Values::Blocks { depth, .. } | Values::Table { depth, .. } => depth,
        };
        let depth = u64::from(self.memory.int(code.checked_add(depth)?)?);
        let mut all = Vec::new();
        for number in 0..count + depth.min(VALUES_MAX) {
            // A frame that is not deep ends before.
            match self.at(begin, number * 8) {
                Some(0) => {}
                Some(value) => all.push(value),
                None => break,
            }
        }
        Some(all)
    }

    /// The first variable: of a method the object.
    pub(super) fn first_variable(&mut self, frame: u64) -> Option<u64> {
        let (begin, count) = self.variables(frame)?;
        self.at(begin, 0).filter(|value| count > 0 && *value != 0)
    }

    /// The values below the innermost block that a frame is in: each is alive.
    pub(super) fn below_blocks(&mut self, frame: u64) -> Option<Vec<u64>> {
        let (begin, count) = self.variables(frame)?;
        let stack = begin.checked_add(count * 8)?;
        let depth = match self.layout.objects?.values {
            Values::Blocks {
                blocks_count, blocks, ..
            } => {
                let blocks_count = self.memory.int(frame.checked_add(blocks_count)?)?.min(BLOCKS_MAX);
                let Some(last) = blocks_count.checked_sub(1) else {
                    return Some(Vec::new());
                };
                // Of a block: its kind, where it is handled, and how many values are below it.
                let level = blocks + u64::from(last) * 12 + 8;
                u64::from(self.memory.int(frame.checked_add(level)?)?)
            }
            Values::Table { table, .. } => {
                let code = self.at(frame, self.layout.executable)? & !self.layout.tag;
                let Place::Pointer(offset, bytecode) = self.layout.place else {
                    return None;
                };
                let within = self.at(frame, offset)?.checked_sub(code.checked_add(bytecode)?)?;
                let table = self.at(code, table)?;
                let size = self.at(table, self.layout.text.bytes_size)?;
                let mut bytes = vec![0; usize::try_from(size.min(TABLE_MAX)).ok()?];
                self.memory
                    .read(table.checked_add(self.layout.text.bytes)?, &mut bytes)?;
                depth_at(&bytes, within / 2).unwrap_or(0)
            }
        };
        let mut values = Vec::new();
        for number in 0..depth.min(VALUES_MAX) {
            let value = self.at(stack, number * 8)?;
            if value != 0 {
                values.push(value);
            }
        }
        Some(values)
    }
}

/// How many values are below the block that an instruction is in; the table has, for each range of instructions, where it is handled and
/// that number.
fn depth_at(table: &[u8], unit: u64) -> Option<u64> {
    let mut rest = table;
    while !rest.is_empty() {
        let (start, size) = (number(&mut rest)?, number(&mut rest)?);
        let (_handler, depth) = (number(&mut rest)?, number(&mut rest)?);
        if (start..start.checked_add(size)?).contains(&unit) {
            return Some(depth >> 1);
        }
    }
    None
}

/// Six bits a byte, the highest first; bit 6 says that more follow.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut value: u64 = 0;
    for _ in 0..8 {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value = value << 6 | u64::from(byte & 63);
        if byte & 64 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::depth_at;

    #[test]
    fn the_table_of_blocks_has_ranges_and_depths() {
        // Two ranges: units 6 to 24 with two values below, and 70 to 75 with one.
        let table = [0x86, 18, 30, 5, 0x80 | 0x40 | 1, 6, 5, 40, 2];
        let depths = [0, 6, 23, 24, 69, 70, 74, 75].map(|unit| depth_at(&table, unit));
        assert_eq!(
            depths,
            [None, Some(2), Some(2), None, None, Some(1), Some(1), None]
        );
        assert_eq!(depth_at(&[0xff; 9], 0), None);
    }
}
