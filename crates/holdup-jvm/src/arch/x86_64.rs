//! x86-64.

use holdup_evidence::arch::x86_64::SAVED;
use holdup_symbols::{Registers, StackBytes};

const RBX: usize = 0;
const R12: usize = 2;
const R13: usize = 3;
const R14: usize = 4;
const R15: usize = 5;

/// Where Java code has its thread.
pub(crate) const THREAD: usize = R15;

/// Where the interpreter has the pointer to its bytecode.
pub(crate) const BYTECODE: usize = R13;

/// Below the frame pointer of the stub that calls Java: what it keeps, bytes and register.
pub(crate) const KEPT: [(u64, usize); 5] = [(56, RBX), (64, R12), (72, R13), (80, R14), (88, R15)];

/// Where a function returns to that has just begun, and the stack pointer then: the address is on top of the stack.
pub(crate) fn return_address(now: &Registers<SAVED>, stack: &StackBytes<'_>) -> Option<(u64, u64)> {
    Some((stack.word(now.sp)?, now.sp.checked_add(8)?))
}
