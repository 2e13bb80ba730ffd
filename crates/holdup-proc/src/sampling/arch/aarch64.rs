//! aarch64.

use super::{Calls, Stack};
use holdup_evidence::arch::aarch64::SAVED;

/// x19 to x30, sp, pc.
pub(in super::super) const STACK: u64 = 0x3fff << 19;

/// The values of [`STACK`].
pub(in super::super) fn stack(values: &[u64; STACK.count_ones() as usize]) -> Stack<SAVED> {
    let [saved @ .., sp, pc] = *values;
    (pc, sp, saved)
}

/// `svc` leaves no trace of where it was.
pub(in super::super) const CALLS: Option<Calls> = None;
