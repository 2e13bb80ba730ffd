//! Where an interpreter keeps its state and the names of its methods.
//!
//! In: addresses of exported symbols. Out: the interpreter, and the table of names. Some builds export a pointer to the interpreter. The
//! others have functions that read it, whose instructions say where it is. What an instruction leads to is believed only if the
//! structures there point to each other as an interpreter's do.

use super::Place;
use super::objects::{self, Kind};
use super::threads;
use super::versions::Layout;
use crate::arch::READS_CODE;
use crate::memory::{Memory, Source};

/// Bytes of a function that are looked through for an address.
const CODE_BYTES: usize = 256;

/// Instructions with an address relative to themselves end with it, or have up to so many bytes behind it.
const BEHIND_MAX: u64 = 4;

/// Names are kept in parts of so many, with two words for each.
pub(super) const NAMES_IN_PART: u64 = 512;
pub(super) const WORDS_A_NAME: u64 = 2;

/// Every Ruby has more names than that when it has begun, and none has so many.
const NAMES_MIN: u32 = 256;
const NAMES_MAX: u32 = 1 << 28;

/// Offset of the list of parts in the table of names.
const PARTS_OFFSET: u64 = 16;

/// What is behind the opcode and the operands of a jump to a near address.
const JUMP: u8 = 0xe9;
const JUMP_BYTES: usize = 5;

/// The interpreter.
pub(super) fn interpreter<S: Source>(
    memory: &mut Memory<S>,
    layout: &Layout,
    place: &Place,
) -> Option<Option<u64>> {
    if let Some(exported) = place.interpreter {
        return Some(memory.pointer(exported));
    }
    let code = code(memory, place.reads_interpreter?)?;
    let mut empty = false;
    for at in referenced(place.reads_interpreter?, &code) {
        let Some(direct) = memory.word(at) else { continue };
        // The program's table of addresses may be in between.
        for candidate in [Some(direct), memory.word(direct)] {
            match candidate {
                Some(0) => empty = true,
                Some(found) if threads::is_interpreter(memory, layout, found) => return Some(Some(found)),
                _ => {}
            }
        }
    }
    // Before there is one, the pointer is empty.
    empty.then_some(None)
}

/// The list of the parts of the table of names.
pub(super) fn names<S: Source>(memory: &mut Memory<S>, layout: &Layout, place: &Place) -> Option<u64> {
    let begin = place.reads_names?;
    let first = code(memory, begin)?;
    let target = jump(begin, &first);
    let second = target.and_then(|target| code(memory, target));
    let within = target.zip(second.as_ref()).into_iter();
    let within = within.flat_map(|(target, code)| referenced(target, code));
    let all: Vec<u64> = referenced(begin, &first).chain(within).collect();
    all.into_iter().find_map(|at| {
        [0, PARTS_OFFSET].into_iter().find_map(|offset| {
            let table = at.checked_sub(offset)?;
            is_names(memory, layout, table)?.then(|| table + PARTS_OFFSET)
        })
    })
}

/// Whether a table of names is there: as many parts as its number of names says, each a list.
fn is_names<S: Source>(memory: &mut Memory<S>, layout: &Layout, table: u64) -> Option<bool> {
    if !table.is_multiple_of(8) {
        return None;
    }
    let count = memory.int(table)?;
    if !(NAMES_MIN..NAMES_MAX).contains(&count) {
        return None;
    }
    let parts = memory.word(table.checked_add(PARTS_OFFSET)?)?;
    let (begin, length) = objects::array(memory, layout, parts)?;
    let full = u64::from(count) / NAMES_IN_PART + 1;
    let first = memory.word(begin)?;
    Some((full..=full + 1).contains(&length) && objects::is(memory, first, Kind::Array)?)
}

fn code<S: Source>(memory: &mut Memory<S>, at: u64) -> Option<[u8; CODE_BYTES]> {
    if !READS_CODE {
        return None;
    }
    let mut code = [0; CODE_BYTES];
    memory.read(at, &mut code)?;
    Some(code)
}

/// The addresses that code refers to relative to itself, if at each of its bytes such an address ended.
fn referenced(begin: u64, code: &[u8]) -> impl Iterator<Item = u64> + use<'_> {
    code.windows(4).zip(0_u64..).flat_map(move |(bytes, offset)| {
        let distance = i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let next = begin.wrapping_add(offset + 4);
        [0, 1, BEHIND_MAX].map(|behind| next.wrapping_add(behind).wrapping_add_signed(distance.into()))
    })
}

/// Where a function that only hands on goes on.
fn jump(begin: u64, code: &[u8]) -> Option<u64> {
    let at = code.windows(JUMP_BYTES).position(|bytes| bytes[0] == JUMP)?;
    let distance = i32::from_le_bytes(code.get(at + 1..at + JUMP_BYTES)?.try_into().ok()?);
    let next = begin.wrapping_add((at + JUMP_BYTES) as u64);
    Some(next.wrapping_add_signed(distance.into()))
}
