//! x86-64.

use super::{Call, Machine};
use gimli::{Vendor, X86_64};
use holdup_evidence::arch::x86_64::{FRAME_POINTER, SAVED};

/// x86-64.
pub(crate) static MACHINE: Machine<SAVED> = Machine {
    elf: object::elf::EM_X86_64.0,
    vendor: Vendor::Default,
    saved: [
        X86_64::RBX,
        X86_64::RBP,
        X86_64::R12,
        X86_64::R13,
        X86_64::R14,
        X86_64::R15,
    ],
    frame_pointer: FRAME_POINTER,
    stack_pointer: X86_64::RSP,
    return_address: X86_64::RA,
    call: Call::OnStack,
    address: u64::MAX,
    trampoline: None,
};
