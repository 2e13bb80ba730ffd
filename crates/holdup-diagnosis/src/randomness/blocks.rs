//! The block tests of FIPS 140-2 on a source of random bytes, and what their rejections mean.
//!
//! In: blocks of 20,000 bits. Out: a [`Tally`], and a [`Judgement`] by the binomial distribution. The tests' bounds are those
//! of FIPS 140-2, change notice 1 (10 October 2001), which daemons that feed the generator still use, although the standard
//! dropped the tests a year later. They find a source that is broken, stuck or far too regular. They can't find one that is
//! merely guessable: the output of any counter under a known key passes. Perfect randomness fails them at a known rate, and a
//! single failure says nothing.

/// Bytes of a block: 20,000 bits.
pub const BLOCK: usize = 2_500;

/// Bits of a block.
const BITS: u32 = BLOCK as u32 * 8;

/// Part of all blocks of perfect randomness that are rejected. By the count of ones 1.035e-4 and by a long run 2.976e-4, both
/// computed (the binomial distribution; a chain over the length of the last run), and by equal words 1.5e-7. By poker 1.00e-4 and
/// by runs 3.02e-4, by trial: of 10,000,000 blocks of a generator of good repute (xoshiro256**) 1,000 and 3,018; of the same
/// blocks 1,039 and 2,948 failed the first two, and 7,967 failed any: 7.97e-4, with a standard error of 0.09e-4.
pub const REJECTED: f64 = 8.0e-4;

/// Probability below which rejections are called incompatible with perfect randomness: one wrong verdict in a million.
const INCOMPATIBLE: f64 = 1e-6;

/// Ones in a block lie between these.
const ONES: (u32, u32) = (9_725, 10_275);

/// The poker statistic lies between these, in hundredths.
const POKER: (u64, u64) = (216, 4_617);

/// Runs of one to five and of six or more equal bits: so many of each, of ones and of zeros.
const RUNS: [(u32, u32); 6] = [
    (2_315, 2_685),
    (1_114, 1_386),
    (527, 723),
    (240, 384),
    (103, 209),
    (103, 209),
];

/// Equal bits in a row that are too many.
const LONG_RUN: u32 = 26;

/// Which tests a block failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Failed {
    /// The number of ones.
    pub monobit: bool,
    /// The counts of the sixteen values of four bits.
    pub poker: bool,
    /// How often so many equal bits stand in a row.
    pub runs: bool,
    /// Too many equal bits in a row.
    pub long_run: bool,
    /// Two equal words of 32 bits, one after the other.
    pub continuous: bool,
}

impl Failed {
    /// Whether the block is rejected.
    #[must_use]
    pub fn any(self) -> bool {
        self.monobit || self.poker || self.runs || self.long_run || self.continuous
    }
}

/// Blocks that were tested.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub blocks: u64,
    /// Of those, rejected by any test.
    pub rejected: u64,
    /// By each; a block may fail several.
    pub monobit: u64,
    /// By the values of four bits.
    pub poker: u64,
    /// By runs.
    pub runs: u64,
    /// By a long run.
    pub long_run: u64,
    /// By equal words.
    pub continuous: u64,
}

/// Tests blocks of one source, one after the other.
#[derive(Debug, Clone, Default)]
pub struct Tester {
    /// What was counted.
    pub tally: Tally,
    /// The last word of the block before.
    last: Option<[u8; 4]>,
}

impl Tester {
    /// Tests a block.
    pub fn block(&mut self, block: &[u8; BLOCK]) -> Failed {
        let failed = Failed {
            continuous: self.repeats(block),
            ..of_block(block)
        };
        let tally = &mut self.tally;
        tally.blocks += 1;
        tally.rejected += u64::from(failed.any());
        tally.monobit += u64::from(failed.monobit);
        tally.poker += u64::from(failed.poker);
        tally.runs += u64::from(failed.runs);
        tally.long_run += u64::from(failed.long_run);
        tally.continuous += u64::from(failed.continuous);
        failed
    }

    fn repeats(&mut self, block: &[u8; BLOCK]) -> bool {
        let mut repeats = false;
        for word in block.as_chunks::<4>().0 {
            repeats |= self.last == Some(*word);
            self.last = Some(*word);
        }
        repeats
    }
}

/// What the tests of a block by itself say.
fn of_block(block: &[u8; BLOCK]) -> Failed {
    let ones: u32 = block.iter().map(|byte| byte.count_ones()).sum();
    let mut nibbles = [0_u64; 16];
    let mut runs = [[0_u32; 6]; 2];
    let mut longest = 0;
    let (mut bit, mut length) = (
        usize::from(block.first().is_some_and(|byte| byte & 0x80 != 0)),
        0_u32,
    );
    let mut ended = |bit: usize, length: u32| {
        let kind = (length as usize).clamp(1, RUNS.len()) - 1;
        runs[bit][kind] += 1;
        longest = longest.max(length);
    };
    for byte in block {
        nibbles[usize::from(byte >> 4)] += 1;
        nibbles[usize::from(byte & 0x0f)] += 1;
        for shift in (0..8).rev() {
            let this = usize::from(byte >> shift & 1);
            if this == bit {
                length += 1;
            } else {
                ended(bit, length);
                (bit, length) = (this, 1);
            }
        }
    }
    ended(bit, length);
    // 16 / 5000 of the sum of squares, less 5000; in hundredths all of it is whole but for a 3125th.
    let squares: u64 = nibbles.iter().map(|count| count * count).sum();
    let (least, most) = POKER;
    let hundredths = |bound: u64| (bound + 500_000) * u64::from(BITS) / 4;
    let scaled = squares * 1_600;
    Failed {
        monobit: ones <= ONES.0 || ones >= ONES.1,
        poker: scaled <= hundredths(least) || scaled >= hundredths(most),
        runs: runs.iter().any(|of_bit| {
            of_bit
                .iter()
                .zip(RUNS)
                .any(|(count, (least, most))| *count < least || *count > most)
        }),
        long_run: longest >= LONG_RUN,
        continuous: false,
    }
}

/// What the rejections mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Judgement {
    /// As many as perfect randomness has, as far as so many blocks can tell.
    Compatible {
        /// How many it would have.
        expected: f64,
    },
    /// More than it has, but for once in a million.
    TooMany {
        /// How many it would have.
        expected: f64,
    },
    /// Fewer: rejected blocks were taken out before.
    TooFew {
        /// How many it would have.
        expected: f64,
    },
    /// Even if all of them were rejected, so few blocks would prove nothing.
    CannotTell,
}

/// Judges a tally.
#[must_use]
pub fn judge(tally: &Tally) -> Judgement {
    let expected = tally.blocks as f64 * REJECTED;
    if at_least(tally.blocks, tally.blocks) >= INCOMPATIBLE {
        return Judgement::CannotTell;
    }
    if at_least(tally.rejected, tally.blocks) < INCOMPATIBLE {
        return Judgement::TooMany { expected };
    }
    if 1.0 - at_least(tally.rejected.saturating_add(1), tally.blocks) < INCOMPATIBLE {
        return Judgement::TooFew { expected };
    }
    Judgement::Compatible { expected }
}

/// The probability of so many rejections or more among so many blocks of perfect randomness.
fn at_least(rejected: u64, blocks: u64) -> f64 {
    if rejected == 0 {
        return 1.0;
    }
    // The sum over the smaller side, each term from the one before it.
    let (p, q) = (REJECTED, 1.0 - REJECTED);
    let blocks_f = blocks as f64;
    let mut term = blocks_f * q.ln();
    let mut below = 0.0;
    let mut above = 0.0;
    for count in 0..=blocks {
        if count > 0 {
            let count = count as f64;
            term += ((blocks_f - count + 1.0) / count).ln() + (p / q).ln();
        }
        if count < rejected {
            below += term.exp();
        } else {
            let more = term.exp();
            above += more;
            // Past the peak the terms only fall: what is left is nothing.
            if count as f64 > blocks_f * p && more < above * 1e-17 {
                break;
            }
        }
    }
    // Of two sums that make one, the smaller is the exact one.
    if above < 0.5 { above } else { 1.0 - below }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, Failed, Judgement, REJECTED, Tally, Tester, at_least, judge, of_block};

    /// A generator of good repute, so that the blocks are the same on each run.
    struct Xoshiro([u64; 4]);

    impl Xoshiro {
        fn new(seed: u64) -> Xoshiro {
            let mut state = seed;
            Xoshiro(std::array::from_fn(|_| {
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                mixed ^ (mixed >> 31)
            }))
        }

        fn next(&mut self) -> u64 {
            let Xoshiro(s) = self;
            let result = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
            let shifted = s[1] << 17;
            s[2] ^= s[0];
            s[3] ^= s[1];
            s[1] ^= s[2];
            s[0] ^= s[3];
            s[2] ^= shifted;
            s[3] = s[3].rotate_left(45);
            result
        }

        fn block(&mut self) -> [u8; BLOCK] {
            let mut block = [0; BLOCK];
            for chunk in block.chunks_mut(8) {
                chunk.copy_from_slice(&self.next().to_be_bytes()[..chunk.len()]);
            }
            block
        }
    }

    #[test]
    fn each_test_finds_what_it_is_for() {
        let good = Xoshiro::new(1).block();
        assert_eq!(of_block(&good), Failed::default());
        assert!(of_block(&[0; BLOCK]).monobit);
        let mut biased = good;
        biased[..400].iter_mut().for_each(|byte| *byte |= 0x55);
        assert!(of_block(&biased).monobit);
        // All values of four bits equally often, to the one.
        let mut regular = [0; BLOCK];
        for (at, byte) in regular.iter_mut().enumerate() {
            *byte = (at as u8).wrapping_mul(0x35);
        }
        assert!(of_block(&regular).poker);
        assert!(of_block(&[0xaa; BLOCK]).runs);
        let mut long = good;
        long[100..104].fill(0xff);
        assert!(of_block(&long).long_run);
    }

    #[test]
    fn the_bounds_of_a_long_run_are_26_and_of_ones_exclusive() {
        let good = Xoshiro::new(1).block();
        for (ones, failed) in [(25_u32, false), (26, true)] {
            let mut block = good;
            // A zero on both sides, and no other run.
            let around = 0xaaaa_aaaa_aaaa_aaaa_u64 & !(((1 << (ones + 2)) - 1) << 7);
            block[100..108].copy_from_slice(&(around | ((1 << ones) - 1) << 8).to_be_bytes());
            assert_eq!(of_block(&block).long_run, failed, "{ones}");
        }
        let mut ones = [0; BLOCK];
        ones[..1_250].fill(0xff);
        // 10,000 ones in it; then 274 and 275 more.
        for (more, failed) in [(274, false), (275, true)] {
            let mut block = ones;
            for bit in 0..more {
                block[1_250 + bit / 8] |= 1 << (bit % 8);
            }
            assert_eq!(of_block(&block).monobit, failed, "{more}");
        }
    }

    #[test]
    fn a_word_that_comes_twice_is_found_across_blocks() {
        let mut tester = Tester::default();
        let mut generator = Xoshiro::new(1);
        let first = generator.block();
        assert!(!tester.block(&first).continuous);
        let mut second = generator.block();
        second[..4].copy_from_slice(&first[BLOCK - 4..]);
        assert!(tester.block(&second).continuous);
        assert_eq!((tester.tally.blocks, tester.tally.continuous), (2, 1));
    }

    #[test]
    fn a_good_generator_is_rejected_as_often_as_it_should() {
        let mut generator = Xoshiro::new(2);
        let mut tester = Tester::default();
        for _ in 0..3_000 {
            tester.block(&generator.block());
        }
        assert!(
            matches!(judge(&tester.tally), Judgement::Compatible { .. }),
            "{:?}",
            tester.tally
        );
    }

    #[test]
    fn the_computed_parts_of_the_rate_are_what_is_said() {
        // The count of ones: the binomial distribution, by logarithms.
        let mut term = -20_000.0 * 2_f64.ln();
        let mut ones = 0.0;
        for count in 0..=9_725_u32 {
            if count > 0 {
                term += (f64::from(20_001 - count) / f64::from(count)).ln();
            }
            ones += 2.0 * term.exp();
        }
        assert!((ones - 1.035e-4).abs() < 1e-7, "{ones}");
        // A run of 26: of 19,999 steps between bits, 25 in a row without a change.
        let mut last = [0.0_f64; 25];
        last[0] = 1.0;
        for _ in 0..19_999 {
            let any: f64 = last.iter().sum();
            let mut next = [0.0; 25];
            next[0] = any / 2.0;
            for at in 1..next.len() {
                next[at] = last[at - 1] / 2.0;
            }
            last = next;
        }
        let long = 1.0 - last.iter().sum::<f64>();
        assert!((long - 2.976e-4).abs() < 1e-7, "{long}");
        assert!(ones + long < REJECTED);
    }

    #[test]
    fn rejections_are_judged_by_their_number() {
        let of = |blocks, rejected| {
            judge(&Tally {
                blocks,
                rejected,
                ..Tally::default()
            })
        };
        assert_eq!(of(0, 0), Judgement::CannotTell);
        assert_eq!(of(1, 1), Judgement::CannotTell);
        assert!(matches!(of(2, 2), Judgement::TooMany { .. }));
        assert!(matches!(of(1_000, 3), Judgement::Compatible { .. }));
        assert!(matches!(of(1_000, 12), Judgement::TooMany { .. }));
        assert!(matches!(of(1_000, 0), Judgement::Compatible { .. }));
        assert!(matches!(of(100_000, 0), Judgement::TooFew { .. }));
        assert!(matches!(of(100_000, 75), Judgement::Compatible { .. }));
        assert!(matches!(of(1_000_000, 1_000_000), Judgement::TooMany { .. }));
        assert!((at_least(1, 1_000) - (1.0 - (1.0 - REJECTED).powi(1_000))).abs() < 1e-12);
    }
}
