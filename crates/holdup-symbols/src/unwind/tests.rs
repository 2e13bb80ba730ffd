//! Rules from tables of real and made-up files, and callers found by them.

use super::sections::DESCRIPTION_BYTES_MAX;
use super::*;
use crate::arch::x86_64::MACHINE;
use holdup_evidence::arch::x86_64::SAVED;

#[test]
fn a_leaf_has_its_return_address_on_top_of_the_stack() {
    let words: Vec<u8> = [0x1234u64, 0x5678]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let stack = StackBytes {
        start: 0x7000,
        bytes: &words,
    };
    let frame = Registers {
        ip: 0x1000,
        sp: 0x7000,
        sp_known: true,
        saved: [Some(7); SAVED],
    };
    let caller = caller_of_leaf(&MACHINE, &frame, &stack).unwrap();
    assert_eq!(
        (caller.ip, caller.sp, caller.saved),
        (0x1234, 0x7008, [Some(7); SAVED])
    );
    let beyond = Registers { sp: 0x7010, ..frame };
    assert!(caller_of_leaf(&MACHINE, &beyond, &stack).is_none());
}

const CODE: u64 = 0x1000;
const CODE_BYTES: u64 = 0x100;

/// DWARF opcodes.
const DEF_CFA_EXPRESSION: u8 = 0x0f;
const BREG7: u8 = 0x77;
const DEREF: u8 = 0x06;
const SKIP: u8 = 0x2f;
const LIT8: u8 = 0x38;
const PLUS: u8 = 0x22;

/// An `.eh_frame` for one function at [`CODE`], of which the frame's address (CFA) is `expression`.
fn table(expression: &[u8]) -> FrameTable<SAVED> {
    let length = expression.len() as u8;
    described(&[&[DEF_CFA_EXPRESSION, length], expression].concat(), CODE_BYTES)
}

/// An `.eh_frame` for one function at [`CODE`] with so many bytes, and these instructions.
fn described(instructions: &[u8], code_bytes: u64) -> FrameTable<SAVED> {
    let mut bytes = Vec::new();
    // Common part: version 1, "R", code and data alignment 1 and -8, return address in register 16;
    // pointers are absolute; the return address is at CFA-8.
    entry(
        &mut bytes,
        &[0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0, 0x90, 1],
    );
    let function = [
        &(bytes.len() as u32 + 4).to_le_bytes()[..],
        &CODE.to_le_bytes(),
        &code_bytes.to_le_bytes(),
        &[0],
        instructions,
    ];
    entry(&mut bytes, &function.concat());
    let section = Section {
        machine: &MACHINE,
        kind: Kind::Eh,
        bytes,
        bases: BaseAddresses::default(),
    };
    FrameTable {
        sections: vec![DescribedFunctions::of(section)],
        ..FrameTable::default()
    }
}

pub(super) fn entry(bytes: &mut Vec<u8>, content: &[u8]) {
    let padding = content.len().wrapping_neg() % 4;
    bytes.extend_from_slice(&((content.len() + padding) as u32).to_le_bytes());
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len() + padding, 0);
}

/// A frame with its stack at 0x7000: the words there are the pointer to 0x7010, and 1, 2, 3.
fn caller(table: &mut FrameTable<SAVED>) -> Option<Registers<SAVED>> {
    let words = [0x7010_u64, 1, 2, 3];
    let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
    let frame = Registers {
        ip: CODE + 1,
        sp: 0x7000,
        sp_known: true,
        saved: [Some(9); SAVED],
    };
    table.make(frame.ip).0?.caller(
        &MACHINE,
        &frame,
        &StackBytes {
            start: 0x7000,
            bytes: &bytes,
        },
    )
}

#[test]
fn an_expression_can_read_the_stack() {
    // CFA = *(rsp + 0) + 8 = 0x7018; the return address is below it.
    let caller = caller(&mut table(&[BREG7, 0, DEREF, LIT8, PLUS])).unwrap();
    assert_eq!(
        caller,
        Registers {
            ip: 2,
            sp: 0x7018,
            sp_known: true,
            saved: [Some(9); SAVED]
        }
    );
}

#[test]
fn an_expression_that_jumps_back_for_ever_ends() {
    let back_to_itself = [SKIP, 0xfd, 0xff];
    let mut table = table(&back_to_itself);
    assert!(table.make(CODE + 1).0.is_some());
    assert_eq!(caller(&mut table), None);
}

#[test]
fn a_caller_that_is_not_above_the_frame_ends_the_stack() {
    assert_eq!(caller(&mut table(&[BREG7, 0])), None);
    assert_eq!(caller(&mut table(&[BREG7, 0x78])), None);
}

#[test]
fn memory_outside_the_copy_ends_the_stack() {
    // The return address would be the word that reaches over the end of the copy, and the one behind it.
    for offset in [33, 40] {
        assert_eq!(caller(&mut table(&[BREG7, offset])), None, "{offset}");
    }
    assert!(caller(&mut table(&[BREG7, 32])).is_some());
}

#[test]
fn rules_hold_for_their_function_only() {
    let mut table = table(&[BREG7, 8]);
    for (address, covered) in [
        (CODE - 1, false),
        (CODE, true),
        (CODE + CODE_BYTES - 1, true),
        (CODE + CODE_BYTES, false),
    ] {
        assert_eq!(table.make(address).0.is_some(), covered, "{address:#x}");
    }
}

#[test]
fn the_rules_that_are_kept_stay_few() {
    let mut table = table(&[BREG7, 8]);
    for address in 0..3 * RULES_MAX as u64 {
        table.make(address);
    }
    assert!(table.rules.len() <= RULES_MAX);
}

/// DWARF instructions: go on by so many bytes; put the row aside, and take it back.
const ADVANCE_BY_1: u8 = 0x41;
const DEF_CFA: [u8; 3] = [0x0c, 7, 16];
const REMEMBER: u8 = 0x0a;
const RESTORE: u8 = 0x0b;

#[test]
fn a_long_description_is_run_once_and_not_for_each_address() {
    const ROWS: usize = 10_000;
    let instructions = [&DEF_CFA[..], &[ADVANCE_BY_1, REMEMBER, RESTORE].repeat(ROWS)].concat();
    let mut table = described(&instructions, ROWS as u64);
    let (first, steps) = table.make(CODE);
    assert!(first.is_some() && steps >= instructions.len() as u64);
    for address in (CODE..CODE + ROWS as u64).rev() {
        assert!(table.known(address).unwrap().is_some(), "{address:#x}");
    }
    assert!(table.known(CODE + ROWS as u64 + 1).is_none());
}

#[test]
fn a_description_that_is_too_long_is_not_run_and_one_with_many_rows_is_not_kept_whole() {
    let long = vec![0; DESCRIPTION_BYTES_MAX + 1];
    let (rule, steps) = described(&long, CODE_BYTES).make(CODE);
    assert!(rule.is_none() && steps == STEPS_A_RULE);
    let rows = [&DEF_CFA[..], &[ADVANCE_BY_1].repeat(3 * ROWS_MAX)].concat();
    let mut table = described(&rows, 3 * ROWS_MAX as u64);
    assert!(table.make(CODE).0.is_some());
    assert!(table.rows.len() <= ROWS_MAX);
    // Behind those that are kept there is none, and each try has its price.
    let (rule, steps) = table.make(CODE + 2 * ROWS_MAX as u64);
    assert!(rule.is_none() && steps >= rows.len() as u64);
}
