//! Numbers that are drawn, the same each time: a report must not say something else when it is made again.
//!
//! SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014): 64 bits of state,
//! good enough to shuffle some runs, and short enough to be read.

/// What every draw begins with: the letters of `holdup`. It stands in the report.
pub(super) const SEED: u64 = 0x68_6f_6c_64_75_70;

/// A sequence of numbers.
#[derive(Debug, Clone)]
pub(crate) struct Draws(u64);

impl Draws {
    /// From a seed.
    pub(crate) fn new(seed: u64) -> Draws {
        Draws(seed)
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Any of `0..end`; `end` is not 0. The bias is below `end` in 2^64.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let product = u128::from(self.next()) * end as u128;
        (product >> 64) as usize
    }

    /// Puts `count` of them, any, at the beginning.
    pub(crate) fn shuffle<T>(&mut self, of: &mut [T], count: usize) {
        for at in 0..count.min(of.len()) {
            let other = at + self.below(of.len() - at);
            of.swap(at, other);
        }
    }
}
