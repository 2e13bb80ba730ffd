//! The code of a method or block: its name, its file, and the line of an instruction.
//!
//! In: the address of the code, and a place in it. Out: name, file and line. An entry for each run of instructions of one line; which
//! entry an instruction belongs to is kept as a table of counts: so many entries have begun up to here.

use super::objects::{self, Kind};
use super::versions::Layout;
use crate::memory::{Memory, Source};
use std::sync::Arc;

/// Offset of the body in the code's object.
const BODY: u64 = 16;

/// Offsets in the body, of all versions.
const KIND: u64 = 0;
const SIZE: u64 = 4;
const ENCODED: u64 = 8;
const PATH: u64 = 64;
const LABEL: u64 = 80;
const FIRST_LINE: u64 = 88;

/// Kinds of code: a handler of exceptions, what is done in any case, and code that is evaluated.
const WITHIN_OTHER: [u32; 3] = [4, 5, 6];
const HANDLES: [u32; 2] = [4, 5];

/// Such code that is within other such code.
const AROUND_MAX: usize = 16;

/// Instructions and entries beyond which it is no code.
const SIZE_MAX: u32 = 1 << 28;

/// The longest line number that is plausible.
const LINE_MAX: u32 = 100_000_000;

/// Of the first so many instructions, each has its count: nine of seven bits in a word.
const SINGLE: u64 = 54;
const IN_WORD: u64 = 9;
const SINGLE_BITS: u64 = 7;

/// The others are in blocks: the count before the block, the counts before seven of its eight words, and a bit for each instruction with
/// which an entry begins.
const BLOCK: u64 = 512;
const BLOCK_BYTES: u64 = 80;
const WORD_COUNTS: u64 = 8;
const WORD_COUNT_BITS: u64 = 9;
const BITS: u64 = 16;

/// What is kept of code.
#[derive(Debug)]
pub(super) struct Code {
    /// The words by which it is recognised when its address is met again.
    pub(super) words: [u64; 4],
    pub(super) name: Arc<str>,
    pub(super) file: Arc<str>,
    /// Whether it handles an exception of the code around it, and is shown in its place.
    pub(super) in_place: bool,
}

impl Code {
    /// The words that tell code from other code that later has the same address; the first is where its body is.
    pub(super) fn words<S: Source>(memory: &mut Memory<S>, at: u64) -> Option<[u64; 4]> {
        let body = memory.pointer(at.checked_add(BODY)?)?;
        Some([
            body,
            memory.pointer(body.checked_add(ENCODED)?)?,
            memory.pointer(body.checked_add(LABEL)?)?,
            memory.pointer(body.checked_add(PATH)?)?,
        ])
    }

    /// The address of its first instruction.
    pub(super) fn encoded(&self) -> u64 {
        self.words[1]
    }

    /// Reads code whose words are known.
    pub(super) fn read<S: Source>(memory: &mut Memory<S>, layout: &Layout, words: [u64; 4]) -> Option<Code> {
        let [body, _, _, path] = words;
        let named = named(memory, layout, body)?;
        let label = memory.pointer(named.checked_add(LABEL)?)?;
        Some(Code {
            words,
            name: objects::text(memory, layout, label)?.into(),
            file: file(memory, layout, path)?.into(),
            in_place: layout.around.is_some() && HANDLES.contains(&memory.int(body.checked_add(KIND)?)?),
        })
    }
}

/// The body of the code whose name counts.
fn named<S: Source>(memory: &mut Memory<S>, layout: &Layout, body: u64) -> Option<u64> {
    let Some(around) = layout.around else {
        return Some(body);
    };
    let mut body = body;
    for _ in 0..AROUND_MAX {
        if !WITHIN_OTHER.contains(&memory.int(body.checked_add(KIND)?)?) {
            break;
        }
        let code = memory.word(body.checked_add(around)?)?;
        if code == 0 || !objects::is(memory, code, Kind::Code)? {
            break;
        }
        body = memory.pointer(code.checked_add(BODY)?)?;
    }
    Some(body)
}

/// The absolute path, or else the one that the program has for it. Both are kept where they differ.
fn file<S: Source>(memory: &mut Memory<S>, layout: &Layout, path: u64) -> Option<String> {
    if objects::is(memory, path, Kind::Text)? {
        return objects::text(memory, layout, path);
    }
    let (begin, length) = objects::array(memory, layout, path)?;
    if length < 2 {
        return None;
    }
    let (said, real) = (memory.word(begin)?, memory.word(begin.checked_add(8)?)?);
    // Code that is evaluated has no file of its own.
    objects::text(memory, layout, real).or_else(|| objects::text(memory, layout, said))
}

/// An address within the function that executes the instructions, where they are kept as addresses.
pub(super) fn executor<S: Source>(memory: &mut Memory<S>, code: &Code) -> Option<u64> {
    memory.pointer(code.encoded())
}

/// The line of the instruction before `pc`.
pub(super) fn line<S: Source>(memory: &mut Memory<S>, layout: &Layout, code: &Code, pc: u64) -> Option<u32> {
    let body = code.words[0];
    let size = memory.int(body.checked_add(SIZE)?)?;
    let at = pc.checked_sub(code.encoded())? / 8;
    if size > SIZE_MAX || at > u64::from(size) {
        return None;
    }
    let fields = layout.lines;
    let count = memory.int(body.checked_add(fields.count)?)?;
    let entry = match count {
        0 => return first_line(memory, layout, body),
        1 => 0,
        _ => {
            let index = memory.pointer(body.checked_add(fields.index)?)?;
            // The place is that of the next instruction.
            begun(memory, index, at.saturating_sub(1))?.checked_sub(1)?
        }
    };
    if entry >= u64::from(count) {
        return None;
    }
    let entries = memory.pointer(body.checked_add(fields.entries)?)?;
    let line = memory.int(entries.checked_add(entry * fields.entry)?)?;
    match line {
        0 => first_line(memory, layout, body),
        line => plausible(line),
    }
}

fn first_line<S: Source>(memory: &mut Memory<S>, layout: &Layout, body: u64) -> Option<u32> {
    let at = body.checked_add(FIRST_LINE)?;
    if !layout.lines.first_is_object {
        return plausible(memory.int(at)?);
    }
    // A number object is twice the number, and one.
    let object = memory.word(at)?;
    plausible(u32::try_from(object >> 1).ok()?)
}

fn plausible(line: u32) -> Option<u32> {
    (1..LINE_MAX).contains(&line).then_some(line)
}

/// How many entries have begun up to an instruction.
fn begun<S: Source>(memory: &mut Memory<S>, index: u64, at: u64) -> Option<u64> {
    let Some(later) = at.checked_sub(SINGLE) else {
        let word = memory.word(index.checked_add(at / IN_WORD * 8)?)?;
        return Some((word >> (at % IN_WORD * SINGLE_BITS)) & ((1 << SINGLE_BITS) - 1));
    };
    let blocks = index.checked_add(SINGLE / IN_WORD * 8)?;
    let block = blocks.checked_add(later / BLOCK * BLOCK_BYTES)?;
    let (word, bit) = (later % BLOCK / 64, later % 64);
    let before = u64::from(memory.int(block)?);
    let counts = memory.word(block + WORD_COUNTS)?;
    let words = match word.checked_sub(1) {
        None => 0,
        Some(earlier) => (counts >> (earlier * WORD_COUNT_BITS)) & ((1 << WORD_COUNT_BITS) - 1),
    };
    let bits = memory.word(block + BITS + word * 8)? << (63 - bit);
    Some(before + words + u64::from(bits.count_ones()))
}

#[cfg(test)]
mod tests {
    use super::begun;
    use crate::memory::{Memory, Written};

    /// The table of entries that begin at these instructions.
    fn table(begins: &[u64], size: u64) -> Written {
        let mut image = Written::default();
        let count = |at: u64| begins.iter().filter(|begin| **begin <= at).count() as u64;
        for word in 0..6 {
            let each = (0..9).map(|one| count(word * 9 + one) << (one * 7));
            image.word(0x1000 + word * 8, each.sum());
        }
        for block in 0..size.saturating_sub(54).div_ceil(512) {
            let (at, first) = (0x1000 + 48 + block * 80, 54 + block * 512);
            image.put(at, &u32::try_from(count(first - 1)).unwrap().to_le_bytes());
            let before = |word: u64| count(first + word * 64 - 1) - count(first - 1);
            image.word(at + 8, (1..8).map(|word| before(word) << ((word - 1) * 9)).sum());
            for word in 0..8 {
                let from = first + word * 64;
                let bits = begins.iter().filter(|begin| (from..from + 64).contains(begin));
                image.word(at + 16 + word * 8, bits.map(|begin| 1 << (begin - from)).sum());
            }
        }
        image
    }

    #[test]
    fn each_instruction_has_as_many_entries_before_it_as_have_begun() {
        let begins = [0, 3, 9, 53, 54, 60, 118, 200, 565, 566, 700, 1500];
        let mut memory = Memory::new(table(&begins, 1600));
        for at in 0..1600 {
            let expected = begins.iter().filter(|begin| **begin <= at).count() as u64;
            assert_eq!(begun(&mut memory, 0x1000, at), Some(expected), "{at}");
        }
        assert_eq!(begun(&mut memory, 0x1000, u64::MAX), None);
    }
}
