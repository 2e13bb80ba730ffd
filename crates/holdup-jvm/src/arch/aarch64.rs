//! aarch64.

use holdup_evidence::arch::aarch64::SAVED;
use holdup_symbols::{Registers, StackBytes};

/// x28 and x22 among x19 to x30, and the link register.
const X28: usize = 9;
const X22: usize = 3;
const LINK: usize = 11;

/// Where Java code has its thread.
pub(crate) const THREAD: usize = X28;

/// Where the interpreter has the pointer to its bytecode.
pub(crate) const BYTECODE: usize = X22;

/// Below the frame pointer of the stub that calls Java: what it keeps, bytes and register. From x19 on, each below the one before.
pub(crate) const KEPT: [(u64, usize); 10] = [
    (72, 0),
    (80, 1),
    (88, 2),
    (96, 3),
    (104, 4),
    (112, 5),
    (120, 6),
    (128, 7),
    (136, 8),
    (144, 9),
];

/// Where a function returns to that has just begun, and the stack pointer then: the address is in the link register.
pub(crate) fn return_address(now: &Registers<SAVED>, _: &StackBytes<'_>) -> Option<(u64, u64)> {
    Some((now.saved[LINK]?, now.sp))
}
