//! How long operations took: counts in buckets that are as wide as a thirty-second of what they hold.
//!
//! A worker counts into memory that it shares with who started it, so the buckets are a fixed array of numbers; what is handed on
//! are the few that are not empty. (A histogram of a library lies on the heap of the process that counts, and would have to be
//! written out and read in.)

use holdup_evidence::Ns;

/// Buckets to a power of two, as bits.
const SUB_BITS: u32 = 4;
const SUB: u64 = 1 << SUB_BITS;

/// How many buckets there are.
pub const BUCKETS: usize = (64 - SUB_BITS as usize + 1) * SUB as usize;

/// A bucket's number, and how many are in it.
pub type Counted = (u32, u64);

/// The bucket of a length.
#[must_use]
pub fn bucket(length: Ns) -> usize {
    if length < SUB {
        return length as usize;
    }
    let exponent = length.ilog2() - SUB_BITS;
    let sub = (length >> exponent) & (SUB - 1);
    (u64::from(exponent + 1) * SUB + sub) as usize
}

/// The length in the middle of a bucket.
fn middle(bucket: u32) -> Ns {
    let bucket = u64::from(bucket);
    if bucket < SUB {
        return bucket;
    }
    let shift = (bucket / SUB - 1).min(u64::from(63 - SUB_BITS));
    let low = (SUB + bucket % SUB) << shift;
    low + ((1_u64 << shift) >> 1)
}

/// The length that `per_cent` of them do not exceed, to a thirty-second; 0 when there is none.
#[must_use]
pub fn percentile(counted: &[Counted], per_cent: u64) -> Ns {
    let mut sorted = counted.to_vec();
    sorted.sort_unstable();
    let total: u128 = sorted.iter().map(|(_, count)| u128::from(*count)).sum();
    let rank = (total * u128::from(per_cent)).div_ceil(100);
    let mut seen = 0_u128;
    for (bucket, count) in sorted {
        seen += u128::from(count);
        if seen >= rank && seen > 0 {
            return middle(bucket);
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::{BUCKETS, Counted, bucket, percentile};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn percentiles_are_a_thirty_second_off_at_most(
            mut lengths in proptest::collection::vec(0_u64..u64::MAX, 1..300), per_cent in 1_u64..=100,
        ) {
            let counted: Vec<Counted> = lengths.iter().map(|length| (bucket(*length) as u32, 1)).collect();
            prop_assert!(lengths.iter().all(|length| bucket(*length) < BUCKETS));
            lengths.sort_unstable();
            let rank = (lengths.len() as u64 * per_cent).div_ceil(100) as usize;
            let truth = lengths[rank - 1];
            let found = percentile(&counted, per_cent);
            prop_assert!(found.abs_diff(truth) <= truth / 32 + 1, "{found} for {truth}");
        }
    }

    #[test]
    fn the_longest_there_is_has_a_bucket_and_nothing_has_no_length() {
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert_eq!(percentile(&[], 50), 0);
        assert_eq!(percentile(&[(3, 5)], 99), 3);
    }
}
