//! Callers on aarch64, by tables that were put together by hand: the link register at leaves, signed return addresses, frame pointers that
//! do not tell the stack pointer.

use super::sections::{DescribedFunctions, Kind, Section};
use super::tests::entry;
use super::*;
use crate::arch::aarch64::{LINK, MACHINE};
use holdup_evidence::arch::aarch64::{FRAME_POINTER, SAVED};

/// Where the function begins.
const CODE: u64 = 0x40_1000;
/// Where the stack pointer is, and where the words of the stack begin.
const SP: u64 = 0x7f_0000;
/// Two return addresses, and what a signature makes of one.
const CALLER: u64 = 0x40_2004;
const FURTHER: u64 = 0x40_3008;
const SIGNED: u64 = 0x00a5_0000_0040_2004;

/// DWARF instructions: go on by one instruction; the frame's address is the stack pointer; it is so many bytes above that; the return address
/// is signed from here on; x29 and x30 are at the lower end of a frame of 32 bytes; there is no caller.
const NEXT: u8 = 0x41;
const DEF_CFA_SP: [u8; 3] = [0x0c, 31, 0];
const DEF_CFA_FRAME_POINTER_32: [u8; 3] = [0x0c, 29, 32];
const FRAME_OF_32: [u8; 2] = [0x0e, 32];
const NEGATE_RA_STATE: u8 = 0x2d;
const RECORD_IN_32: [u8; 4] = [0x80 | 29, 4, 0x80 | 30, 3];
const NO_CALLER: [u8; 2] = [0x07, 30];
/// The same of x30 alone.
const LINK_IN_32: [u8; 2] = [0x80 | 30, 3];

/// `.eh_frame` for one function at [`CODE`], with this augmentation and these instructions.
fn table(augmentation: &[u8], instructions: &[u8]) -> FrameTable<SAVED> {
    let mut bytes = Vec::new();
    // Common part: version 1, code and data alignment 4 and -8, return address in x30; pointers are absolute.
    let common = [
        &[0, 0, 0, 0, 1],
        augmentation,
        &[0, 4, 0x78, 30, 1, 0],
        &DEF_CFA_SP,
    ];
    entry(&mut bytes, &common.concat());
    let function = [
        &(bytes.len() as u32 + 4).to_le_bytes()[..],
        &CODE.to_le_bytes(),
        &0x100_u64.to_le_bytes(),
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

/// What most functions begin with: the return address is signed, x29 and x30 are put down.
fn signing() -> FrameTable<SAVED> {
    let instructions = [&[NEXT, NEGATE_RA_STATE][..], &[NEXT], &FRAME_OF_32, &RECORD_IN_32];
    table(b"zR", &instructions.concat())
}

fn frame(ip: u64) -> Registers<SAVED> {
    let mut saved = [Some(9); SAVED];
    saved[FRAME_POINTER] = Some(SP);
    saved[LINK] = Some(SIGNED);
    Registers {
        ip,
        sp: SP,
        sp_known: true,
        saved,
    }
}

/// The caller by the table, with these words on the stack.
fn caller(
    table: &mut FrameTable<SAVED>,
    frame: &Registers<SAVED>,
    words: &[u64],
) -> Option<Registers<SAVED>> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let stack = StackBytes {
        start: SP,
        bytes: &bytes,
    };
    table.make(frame.ip).0?.caller(&MACHINE, frame, &stack)
}

#[test]
fn a_function_that_has_begun_returns_by_the_link_register() {
    for (into, link) in [(0, CALLER), (4, SIGNED)] {
        let mut began = frame(CODE + into);
        began.saved[LINK] = Some(link);
        let caller = caller(&mut signing(), &began, &[]).unwrap();
        assert_eq!(
            (caller.ip, caller.sp, caller.sp_known),
            (CALLER, SP, true),
            "{into}"
        );
        assert_eq!(
            (caller.saved[0], caller.saved[FRAME_POINTER], caller.saved[LINK]),
            (Some(9), Some(SP), None)
        );
    }
}

#[test]
fn a_signed_return_address_on_the_stack_loses_its_signature() {
    let caller = caller(&mut signing(), &frame(CODE + 8), &[SP + 0x40, SIGNED, 3, 4]).unwrap();
    assert_eq!((caller.ip, caller.sp), (CALLER, SP + 32));
    assert_eq!(
        (caller.saved[FRAME_POINTER], caller.saved[LINK], caller.saved[9]),
        (Some(SP + 0x40), None, Some(9))
    );
}

#[test]
fn the_link_register_is_believed_once() {
    // The caller says that it has put nothing down either: it can't have called.
    let mut leaf = signing();
    let first = caller(&mut leaf, &frame(CODE), &[]).unwrap();
    let again = Registers { ip: CODE, ..first };
    assert_eq!(caller(&mut leaf, &again, &[1, 2, 3, 4]), None);
}

#[test]
fn the_outermost_function_has_no_caller() {
    let outermost = [&NO_CALLER[..]].concat();
    assert_eq!(
        caller(&mut table(b"zR", &outermost), &frame(CODE), &[1, 2, 3, 4]),
        None
    );
}

#[test]
fn what_a_signal_interrupted_has_its_link_register_back() {
    let trampoline = [&FRAME_OF_32[..], &LINK_IN_32].concat();
    let mut table = table(b"zRS", &trampoline);
    let rule = table.make(CODE).0.unwrap();
    assert!(rule.signal());
    let interrupted = caller(&mut table, &frame(CODE), &[1, CALLER, 3, 4]).unwrap();
    assert_eq!(interrupted.saved[LINK], Some(CALLER));
}

#[test]
fn a_leaf_without_a_table_returns_by_the_link_register() {
    let stack = StackBytes {
        start: SP,
        bytes: &[],
    };
    let caller = caller_of_leaf(&MACHINE, &frame(CODE), &stack).unwrap();
    assert_eq!((caller.ip, caller.sp, caller.saved[LINK]), (CALLER, SP, None));
    assert_eq!(caller_of_leaf(&MACHINE, &caller, &stack), None);
}

#[test]
fn a_frame_pointer_does_not_tell_the_stack_pointer() {
    // Two records, the second with a larger frame between.
    let words = [SP + 0x30, SIGNED, 0, 0, 0, 0, 0, FURTHER, 0, 0];
    let bytes: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
    let stack = StackBytes {
        start: SP,
        bytes: &bytes,
    };
    let first = caller_by_frame_pointer(&MACHINE, &frame(CODE), &stack).unwrap();
    assert_eq!((first.ip, first.sp, first.sp_known), (CALLER, SP + 16, false));
    // Its own table counts from the stack pointer: that finds nothing, and the pointer goes on.
    let by_stack_pointer = Registers {
        ip: CODE + 8,
        ..first
    };
    assert_eq!(caller(&mut signing(), &by_stack_pointer, &words), None);
    let second = caller_by_frame_pointer(&MACHINE, &first, &stack).unwrap();
    assert_eq!((second.ip, second.sp), (FURTHER, SP + 0x40));
    // A table that counts from the frame pointer finds the frame's end.
    let mut by_frame_pointer = table(b"zR", &[&DEF_CFA_FRAME_POINTER_32[..], &RECORD_IN_32].concat());
    let found = caller(&mut by_frame_pointer, &Registers { ip: CODE, ..first }, &words).unwrap();
    assert_eq!((found.ip, found.sp, found.sp_known), (FURTHER, SP + 0x50, true));
    assert_eq!(caller_by_frame_pointer(&MACHINE, &second, &stack), None);
}

#[test]
fn frames_of_go_have_their_return_address_at_the_lower_end() {
    let words = [SIGNED, 2, 3, 4, FURTHER];
    let bytes: Vec<u8> = [SP + 0x70]
        .iter()
        .chain(&words)
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let stack = StackBytes {
        start: SP - 8,
        bytes: &bytes,
    };
    let of = |frame_bytes, frame| caller_in_go(&MACHINE, frame_bytes, &frame, &stack);
    let leaf = of(0, frame(CODE)).unwrap();
    assert_eq!(
        (leaf.ip, leaf.sp, leaf.saved[FRAME_POINTER]),
        (CALLER, SP, Some(SP))
    );
    assert_eq!(of(0, leaf), None, "it has called");
    let framed = of(32, frame(CODE)).unwrap();
    assert_eq!(
        (framed.ip, framed.sp, framed.saved[FRAME_POINTER]),
        (CALLER, SP + 32, Some(SP + 0x70))
    );
    assert_eq!(of(32, framed).map(|next| next.ip), Some(FURTHER));
}

#[test]
fn a_signal_handler_returns_to_what_the_kernel_has_put_on_the_stack() {
    let mut words = vec![0_u64; 80];
    // Behind 128 bytes about the signal, 176 of its context and an address that it was about: x0 to x30, sp, pc.
    let first = (128 + 176 + 8) / 8;
    for register in 0..31 {
        words[first + register] = 100 + register as u64;
    }
    words[first + 31] = SP + 0x1000;
    words[first + 32] = CALLER;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let walk = |bytes: &[u8]| {
        let stack = StackBytes { start: SP, bytes };
        Rule::Trampoline.caller(&MACHINE, &frame(CODE), &stack)
    };
    let found = walk(&bytes).unwrap();
    assert_eq!((found.ip, found.sp, found.sp_known), (CALLER, SP + 0x1000, true));
    assert_eq!(
        (found.saved[0], found.saved[FRAME_POINTER], found.saved[LINK]),
        (Some(119), Some(129), Some(130))
    );
    assert_eq!(walk(&bytes[..500]), None, "it was not copied");
}
