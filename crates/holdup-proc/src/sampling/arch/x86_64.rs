//! x86-64.

use super::{Calls, Stack};
use holdup_evidence::arch::x86_64::SAVED;

/// rbx, rbp, rsp, rip, r12 to r15.
pub(in super::super) const STACK: u64 = 1 << 1 | 1 << 6 | 1 << 7 | 1 << 8 | 0xf << 20;

/// The values of [`STACK`].
pub(in super::super) fn stack(values: &[u64; STACK.count_ones() as usize]) -> Stack<SAVED> {
    let [rbx, rbp, rsp, rip, r12, r13, r14, r15] = *values;
    (rip, rsp, [rbx, rbp, r12, r13, r14, r15])
}

/// rax, rcx, rdx, rsi, rdi, rip, r10: `syscall` leaves the address behind it in rcx.
pub(in super::super) const X86_64_CALLS: Calls = Calls {
    mask: 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 18,
    number: 0,
    returned_to: 1,
    args: [4, 3, 2, 6],
    ip: 5,
};

/// These.
pub(in super::super) const CALLS: Option<Calls> = Some(X86_64_CALLS);
