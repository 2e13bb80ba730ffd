//! aarch64.
//!
//! A return address may be signed (pointer authentication): its upper bits then hold a code that the processor checks as it returns.
//! Call frame information says between which instructions it is (`DW_CFA_AARCH64_negate_ra_state`), which need not be known to take the code
//! off: addresses of user code do not have those bits. Nor has the word in a frame record that says that it is signed.

use super::{Call, Machine, Trampoline};
use gimli::{AArch64, Vendor};
use holdup_evidence::arch::aarch64::{FRAME_POINTER, SAVED};

/// Where x30 is among the saved registers.
pub(crate) const LINK: usize = 11;

/// Bits of an address: programs get more than 48 only where they ask for such a place, and code has none there.
const ADDRESS: u64 = (1 << 48) - 1;

/// Where `struct rt_sigframe` has registers (`uc.uc_mcontext.regs`), bytes: an ABI.
const REGISTERS: u64 = 312;

/// Two instructions behind one that does nothing. The kernel's own description of it was taken out, because it can't say where the stack pointer
/// was (Linux 5.8), and leads past the frame that was interrupted before.
const TRAMPOLINE: Trampoline = Trampoline {
    symbol: "__kernel_rt_sigreturn",
    bytes: 8,
    before: 4,
    saved: REGISTERS + 19 * 8,
    stack_pointer: REGISTERS + 31 * 8,
    code: REGISTERS + 32 * 8,
};

/// aarch64.
pub(crate) static MACHINE: Machine<SAVED> = Machine {
    elf: object::elf::EM_AARCH64.0,
    vendor: Vendor::AArch64,
    saved: [
        AArch64::X19,
        AArch64::X20,
        AArch64::X21,
        AArch64::X22,
        AArch64::X23,
        AArch64::X24,
        AArch64::X25,
        AArch64::X26,
        AArch64::X27,
        AArch64::X28,
        AArch64::X29,
        AArch64::X30,
    ],
    frame_pointer: FRAME_POINTER,
    stack_pointer: AArch64::SP,
    return_address: AArch64::X30,
    call: Call::InRegister(LINK),
    address: ADDRESS,
    trampoline: Some(TRAMPOLINE),
};
