//! Processors, as unwinding sees them: which registers a caller gets back, and where a call puts its return address.
//!
//! All of them are there on all of them, so that each is tested everywhere; [`HERE`] is the one that stacks come from.

#[cfg_attr(
    all(target_arch = "x86_64", not(test)),
    expect(dead_code, reason = "of the other processor")
)]
pub(crate) mod aarch64;
#[cfg_attr(
    all(target_arch = "aarch64", not(test)),
    expect(dead_code, reason = "of the other processor")
)]
pub(crate) mod x86_64;

use gimli::{Register, Vendor};
use holdup_evidence::arch::SAVED;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::MACHINE as HERE;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::MACHINE as HERE;

/// A kind of processor.
#[derive(Debug)]
pub(crate) struct Machine<const N: usize = { SAVED }> {
    /// `e_machine` of its files.
    pub(crate) elf: u16,
    /// Whose instructions of call frame information it has beside the common ones.
    pub(crate) vendor: Vendor,
    /// The registers whose value in the caller can be known, beside the stack pointer.
    pub(crate) saved: [Register; N],
    /// Where among these the frame pointer is.
    pub(crate) frame_pointer: usize,
    /// The stack pointer.
    pub(crate) stack_pointer: Register,
    /// What stands for the return address in call frame information.
    pub(crate) return_address: Register,
    /// How it calls.
    pub(crate) call: Call,
    /// Bits that an address of user code has; others may hold a signature of it.
    pub(crate) address: u64,
    /// Where a signal handler returns to, on a processor whose kernel describes that nowhere.
    pub(crate) trampoline: Option<Trampoline>,
}

/// Code of the vdso that goes on with what a signal interrupted, and where its stack has the registers of that, bytes from the stack pointer.
#[derive(Debug)]
pub(crate) struct Trampoline {
    /// Its symbol.
    pub(crate) symbol: &'static str,
    /// Its bytes, and those before it that belong to it: who looks for a call before a return address finds it so.
    pub(crate) bytes: u64,
    pub(crate) before: u64,
    /// The first of the saved registers; the others follow.
    pub(crate) saved: u64,
    /// The stack pointer.
    pub(crate) stack_pointer: u64,
    /// The place in the code.
    pub(crate) code: u64,
}

/// Where a call leaves the address to return to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// On top of the stack, so that a frame ends with it.
    OnStack,
    /// In a register, at this place among the saved ones: whoever calls further puts it somewhere in its frame.
    InRegister(usize),
}

impl<const N: usize> Machine<N> {
    /// The address behind a pointer to code, without its signature.
    pub(crate) fn code(&self, pointer: u64) -> u64 {
        pointer & self.address
    }
}
