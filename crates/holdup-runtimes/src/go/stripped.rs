//! Where a stripped program keeps its goroutines and the texts of their reasons: where the runtime's own code refers to them.
//!
//! In: the machine code of functions of the runtime, found by name in the linker's table, which stripping leaves. Out: addresses,
//! taken only if what is there has the shape that it must have. x86-64.

use super::table::Table;
use crate::arch::READS_CODE;
use crate::memory::{Memory, Source};
use std::collections::BTreeSet;

/// Who appends to the list of goroutines, and so refers to the list's address, its length and its room; and who turns reasons into text.
const FUNCTIONS: [&str; 3] = [
    "runtime.allgadd",
    "runtime.waitReason.String",
    "runtime.goroutineheader",
];

/// Reasons whose texts are looked at, from 1 on: all versions have more. And the longest of them, bytes.
const REASONS: u64 = 8;
const REASON_BYTES_MAX: u64 = 64;

/// Bytes of a text: an address and a length.
const TEXT_BYTES: u64 = 16;

/// Machine code of one function that is searched, bytes.
const CODE_BYTES_MAX: usize = 8_192;

/// Bits of a `REX` prefix that must be as in one of a 64-bit operand, and those that may differ: the register.
const REX: u8 = 0x48;
const REX_MASK: u8 = 0xfb;

/// Loads, stores and address computations, and the form of an operand relative to the instruction.
const MOVES: [u8; 2] = [0x8b, 0x89];
const ADDRESSES: [u8; 1] = [0x8d];
const RELATIVE: u8 = 0x05;
const RELATIVE_MASK: u8 = 0xc7;

/// Bytes of such an instruction, and where in it the distance is.
const INSTRUCTION: usize = 7;
const DISTANCE: usize = 3;

/// The address of the list of goroutines, and that of the texts of reasons.
pub(super) fn found<S: Source>(memory: &mut Memory<S>, table: &Table) -> Option<(u64, Option<u64>)> {
    if !READS_CODE {
        return None;
    }
    let [appends, prints @ ..] = &FUNCTIONS;
    let functions = table.named(memory, &FUNCTIONS);
    let (_, appending) = functions.iter().find(|(name, _)| name == appends)?;
    let referred = references(memory, *appending, &MOVES)?;
    let has = |address: Option<u64>| address.is_some_and(|address| referred.contains(&address));
    let slice = |at: &&u64| has(at.checked_add(8)) && has(at.checked_add(16));
    let mut slices = referred.iter().filter(slice);
    // The one of three that lie side by side.
    let list = slices.next().copied().filter(|_| slices.next().is_none())?;
    let printing = functions.iter().filter(|(name, _)| prints.contains(name));
    let reasons = printing.filter_map(|(_, function)| {
        let referred = references(memory, *function, &ADDRESSES)?;
        referred.into_iter().find(|at| is_reasons(memory, *at))
    });
    let reasons = reasons.collect::<Vec<_>>().into_iter().next();
    Some((list, reasons))
}

/// Whether texts lie there, one behind the other.
fn is_reasons<S: Source>(memory: &mut Memory<S>, at: u64) -> bool {
    (1..=REASONS).all(|number| {
        let mut text = || {
            let at = at.checked_add(number * TEXT_BYTES)?;
            let (text, bytes) = (memory.pointer(at)?, memory.word(at.checked_add(8)?)?);
            let bytes = usize::try_from(bytes)
                .ok()
                .filter(|_| bytes <= REASON_BYTES_MAX)?;
            memory.text(text, bytes)
        };
        text().is_some_and(|text| !text.is_empty() && text.bytes().all(|byte| matches!(byte, b' '..=b'~')))
    })
}

/// What instructions of a function refer to, by the distance from themselves.
fn references<S: Source>(
    memory: &mut Memory<S>,
    (start, end): (u64, u64),
    operations: &[u8],
) -> Option<BTreeSet<u64>> {
    let mut code = vec![0; usize::try_from(end.checked_sub(start)?).ok()?.min(CODE_BYTES_MAX)];
    memory.read(start, &mut code)?;
    let mut found = BTreeSet::new();
    for (at, bytes) in code.windows(INSTRUCTION).enumerate() {
        let relative = bytes[0] & REX_MASK == REX
            && operations.contains(&bytes[1])
            && bytes[2] & RELATIVE_MASK == RELATIVE;
        if !relative {
            continue;
        }
        let distance = i32::from_le_bytes(bytes[DISTANCE..].try_into().expect("four bytes are left"));
        let next = start.checked_add((at + INSTRUCTION) as u64)?;
        found.extend(next.checked_add_signed(distance.into()));
    }
    Some(found)
}
