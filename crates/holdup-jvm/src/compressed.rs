//! Numbers as HotSpot packs them into bytes, and what it packs: places in source files.
//!
//! A number takes one to five bytes; each but the last is high, and adds six bits. Since JDK 20 no byte is zero: each is one
//! more than before, and there is one low value less.

use crate::layout::WITHOUT_ZEROS;
use crate::memory::{Memory, Source};

/// Most bytes of one number.
const MAX_BYTES: u32 = 5;

/// Values that a byte can have and mean that another follows.
const HIGH: u32 = 64;

/// Pairs of a line table that are run through. A method has at most 65,535 bytes of code.
const PAIRS_MAX: usize = 65_536;

/// Numbers, one behind another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers {
    at: u64,
    /// What is taken off each byte.
    excluded: u32,
}

impl Numbers {
    /// Those at an address, of a machine of this version.
    pub(crate) fn at(at: u64, version: u32) -> Numbers {
        Numbers {
            at,
            excluded: u32::from(version >= WITHOUT_ZEROS),
        }
    }

    /// The next one.
    pub(crate) fn next<S: Source>(&mut self, memory: &mut Memory<S>) -> Option<u32> {
        let low = 256 - HIGH;
        let mut sum = 0_u32;
        for index in 0..MAX_BYTES {
            let byte = u32::from(memory.byte(self.at)?);
            self.at = self.at.checked_add(1)?;
            let value = byte.checked_sub(self.excluded)?;
            sum = sum.wrapping_add(value.wrapping_shl(6 * index));
            if byte < low {
                break;
            }
        }
        Some(sum)
    }

    /// The next one, with a sign in its lowest bit.
    fn signed<S: Source>(&mut self, memory: &mut Memory<S>) -> Option<i32> {
        let number = self.next(memory)?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// The line of a bytecode, from a table of lines: that of the nearest one before it that has one.
    pub(crate) fn line<S: Source>(mut self, memory: &mut Memory<S>, bytecode: u32) -> Option<u32> {
        let wanted = i32::try_from(bytecode).ok()?;
        let (mut at, mut line) = (0_i32, 0_i32);
        let mut best: Option<(i32, i32)> = None;
        for _ in 0..PAIRS_MAX {
            match memory.byte(self.at)? {
                0 => break,
                0xff => {
                    self.at = self.at.checked_add(1)?;
                    at = at.wrapping_add(self.signed(memory)?);
                    line = line.wrapping_add(self.signed(memory)?);
                }
                both => {
                    self.at = self.at.checked_add(1)?;
                    at = at.wrapping_add(i32::from(both >> 3));
                    line = line.wrapping_add(i32::from(both & 7));
                }
            }
            if at <= wanted && best.is_none_or(|(before, _)| at >= before) {
                best = Some((at, line));
            }
            if at == wanted {
                break;
            }
        }
        best.and_then(|(_, line)| u32::try_from(line).ok())
            .filter(|line| *line != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::Numbers;
    use crate::memory::Memory;
    use holdup_runtimes::memory::Written;

    fn memory(bytes: &[u8]) -> Memory<Written> {
        let mut written = Written::default();
        written.put(0x1000, bytes);
        Memory::new(written)
    }

    fn all(version: u32, bytes: &[u8], count: usize) -> Vec<u32> {
        let mut memory = memory(bytes);
        let mut numbers = Numbers::at(0x1000, version);
        (0..count).filter_map(|_| numbers.next(&mut memory)).collect()
    }

    #[test]
    fn numbers_of_both_kinds_are_read() {
        // 191 is the last low byte of the old kind; 192 is high: 192 + 64 * 1.
        assert_eq!(all(17, &[0, 7, 191, 192, 1], 4), [0, 7, 191, 256]);
        // Of the new kind all are one more, and 192 is high already: 191 + 64 * (2 - 1).
        assert_eq!(all(25, &[1, 8, 191, 192, 2], 4), [0, 7, 190, 255]);
        // Five bytes at most, whatever they are.
        assert_eq!(all(17, &[255; 6], 1).len(), 1);
        assert_eq!(all(25, &[0], 1), [0; 0], "there is no such byte");
    }

    #[test]
    fn the_line_is_that_of_the_last_pair_before() {
        // bci 0 line 7; bci 4 line 9; an escape: bci +4, line +100 (signed: 8 and 200); the end.
        let mut table = vec![7, 4 << 3 | 2, 0xff];
        table.extend([8, 200, 0, 0]);
        let mut memory = memory(&table);
        let mut line = |bytecode| Numbers::at(0x1000, 17).line(&mut memory, bytecode);
        assert_eq!(line(0), Some(7));
        assert_eq!(line(3), Some(7));
        assert_eq!(line(4), Some(9));
        assert_eq!(line(100), Some(109));
    }
}
