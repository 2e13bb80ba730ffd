//! The control of programs: a computation in registers. What becomes of it with more workers is what the machine's CPUs give.

use super::Reader;
use nix::errno::Errno;
use std::hint::black_box;

/// Steps of one operation: some ten microseconds, far above what it costs to look at the clock.
const STEPS: u32 = 10_000;

/// A number that goes on.
pub(super) struct Compute(u64);

impl Compute {
    /// From any.
    pub(super) fn new() -> Compute {
        Compute(0x9e37_79b9_7f4a_7c15)
    }
}

impl Reader for Compute {
    fn once(&mut self) -> Result<(), Errno> {
        for _ in 0..STEPS {
            self.0 = black_box(self.0 ^ (self.0 << 13)).rotate_left(7).wrapping_mul(5);
        }
        Ok(())
    }
}
