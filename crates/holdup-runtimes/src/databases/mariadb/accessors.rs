//! Where a field is, by the code of the function that hands it out.
//!
//! In: the address of such a function. Out: the distance of the field from the object that the function gets. Only the few instructions that
//! such a function consists of are understood, those of 64-bit x86; any other says nothing.

use crate::arch::READS_CODE;
use crate::memory::{Memory, Source};

/// Code that is looked at, bytes.
const CODE_BYTES: usize = 64;

/// What a function may begin with: a mark of where calls may land, and the keeping of the frame.
const LANDING: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
const FRAME: &[u8] = &[0x55, 0x48, 0x89, 0xe5];

/// `mov` from memory at `rdi` and a distance, without the byte for operands of 64 bits; `lea` of it.
const LOAD: u8 = 0x8b;
const ADDRESS: u8 = 0x8d;
const WIDE: u8 = 0x48;

/// The first argument as the base, with a distance of 8 or 32 bits, whatever the target.
const BASE_MASK: u8 = 0b1100_0111;
const BASE_NEAR: u8 = 0b0100_0111;
const BASE_FAR: u8 = 0b1000_0111;

/// The target `rax`, in which a function hands out what it does.
const TARGET_MASK: u8 = 0b0011_1000;

/// The farthest field, bytes: a session has some 30,000.
const FARTHEST: u64 = 1 << 17;

/// Fields of an object by the number of a storage engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slots {
    /// Where the first one is.
    pub(super) first: u64,
    /// From one to the next.
    pub(super) step: u64,
}

fn code<S: Source>(memory: &mut Memory<S>, function: u64) -> Option<[u8; CODE_BYTES]> {
    if !READS_CODE {
        return None;
    }
    let mut code = [0; CODE_BYTES];
    memory.read(function, &mut code)?;
    Some(code)
}

/// Behind what says nothing of the field.
fn body(code: &[u8]) -> &[u8] {
    let code = code.strip_prefix(LANDING).unwrap_or(code);
    code.strip_prefix(FRAME).unwrap_or(code)
}

/// The distance that an instruction adds to the first argument: `rest` begins with the byte that names base and target.
fn distance(rest: &[u8], any_target: bool) -> Option<u64> {
    let names = *rest.first()?;
    if !any_target && names & TARGET_MASK != 0 {
        return None;
    }
    let found = match names & BASE_MASK {
        BASE_NEAR => u64::from(*rest.get(1).filter(|byte| **byte < 0x80)?),
        BASE_FAR => u64::from(u32::from_le_bytes(rest.get(1..5)?.try_into().ok()?)),
        _ => return None,
    };
    (found < FARTHEST).then_some(found)
}

/// The field that a function loads and returns.
pub(super) fn loaded<S: Source>(memory: &mut Memory<S>, function: u64) -> Option<u64> {
    let code = code(memory, function)?;
    let body = body(&code);
    let body = body.strip_prefix(&[WIDE]).unwrap_or(body);
    distance(body.strip_prefix(&[LOAD])?, false)
}

/// The field whose address a function returns.
pub(super) fn address_of<S: Source>(memory: &mut Memory<S>, function: u64) -> Option<u64> {
    let code = code(memory, function)?;
    distance(body(&code).strip_prefix(&[WIDE, ADDRESS])?, false)
}

/// The first pointer of its argument that a function loads.
pub(super) fn pointer_within<S: Source>(memory: &mut Memory<S>, function: u64) -> Option<u64> {
    let code = code(memory, function)?;
    code.windows(7)
        .filter_map(|some| some.strip_prefix(&[WIDE, LOAD]))
        .find_map(|rest| distance(rest, true))
}

/// The fields by engine: the number of the engine is loaded and shifted, and the field is loaded at the argument, the shifted number
/// and a distance.
pub(super) fn slots<S: Source>(memory: &mut Memory<S>, function: u64) -> Option<Slots> {
    /// `shl rax, …`; `mov rax, [rax + rdi + …]`, with the two in either order.
    const SHIFT: &[u8] = &[0x48, 0xc1, 0xe0];
    const LOADS: [&[u8]; 2] = [&[0x48, 0x8b, 0x84, 0x38], &[0x48, 0x8b, 0x84, 0x07]];
    let code = code(memory, function)?;
    let after = |wanted: &[u8]| {
        let at = code.windows(wanted.len()).position(|some| some == wanted)?;
        code.get(at + wanted.len()..)
    };
    let shift = u32::from(*after(SHIFT)?.first()?);
    let load = LOADS.iter().find_map(|load| after(load))?;
    let first = u64::from(u32::from_le_bytes(load.get(..4)?.try_into().ok()?));
    (shift < 10 && first < FARTHEST).then(|| Slots {
        first,
        step: 1 << shift,
    })
}

#[cfg(test)]
mod tests {
    use super::{Slots, address_of, loaded, pointer_within, slots};
    use crate::memory::{Memory, Written};

    const FUNCTION: u64 = 0x40_0000;

    fn with(code: &[u8]) -> Memory<Written> {
        let mut written = Written::default();
        written.put(FUNCTION, code);
        Memory::new(written)
    }

    #[test]
    fn a_function_says_where_its_field_is() {
        let far = [0x48, 0x8b, 0x87, 0x18, 0x3f, 0, 0, 0xc3];
        assert_eq!(loaded(&mut with(&far), FUNCTION), Some(0x3f18));
        let half = [0x8b, 0x87, 0xd8, 0x27, 0, 0, 0xc3];
        assert_eq!(loaded(&mut with(&half), FUNCTION), Some(0x27d8));
        let marked = [
            0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b, 0x47, 0x68,
        ];
        assert_eq!(loaded(&mut with(&marked), FUNCTION), Some(0x68));
        let address = [0x48, 0x8d, 0x87, 0x60, 0x01, 0, 0, 0xc3];
        assert_eq!(address_of(&mut with(&address), FUNCTION), Some(0x160));
        let pointer = [
            0x8b, 0x97, 0x3c, 0x3f, 0, 0, 0x85, 0xd2, 0x48, 0x8b, 0x97, 0xc0, 0x02, 0, 0, 0x31,
        ];
        assert_eq!(pointer_within(&mut with(&pointer), FUNCTION), Some(0x2c0));
        let engine = [
            0x8b, 0x46, 0x04, 0x48, 0xc1, 0xe0, 0x06, 0x48, 0x8b, 0x84, 0x38, 0x80, 0x28, 0, 0, 0xc3,
        ];
        let expected = Slots {
            first: 0x2880,
            step: 64,
        };
        assert_eq!(slots(&mut with(&engine), FUNCTION), Some(expected));
    }

    #[test]
    fn other_code_says_nothing() {
        let nop = with(&[0x90; 32]);
        let mut nop = nop;
        assert_eq!(loaded(&mut nop, FUNCTION), None);
        assert_eq!(address_of(&mut nop, FUNCTION), None);
        assert_eq!(pointer_within(&mut nop, FUNCTION), None);
        assert_eq!(slots(&mut nop, FUNCTION), None);
        let of_another = [0x48, 0x8b, 0x86, 0x18, 0x3f, 0, 0];
        assert_eq!(
            loaded(&mut with(&of_another), FUNCTION),
            None,
            "not of the argument"
        );
        let too_far = [0x48, 0x8b, 0x87, 0, 0, 0, 0x10];
        assert_eq!(loaded(&mut with(&too_far), FUNCTION), None);
        assert_eq!(loaded(&mut with(&[]), 8), None);
    }
}
