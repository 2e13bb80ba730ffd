//! How long single pieces were: a histogram that grows with the spread of the lengths, not their number.

use holdup_evidence::Ns;

/// Sub-buckets to a power of two, as bits: a value read back is at most an eighth off.
const SUB_BITS: u32 = 2;
const SUB: u64 = 1 << SUB_BITS;

/// Counts by length; few buckets are ever used, so they are kept as a sorted list.
#[derive(Debug, Clone, Default)]
pub(super) struct Histogram {
    buckets: Vec<(u8, u32)>,
}

impl Histogram {
    /// Counts one piece.
    pub(super) fn record(&mut self, length: Ns) {
        self.record_many(length, 1);
    }

    /// Counts so many of one length.
    pub(super) fn record_many(&mut self, length: Ns, number: u64) {
        self.count(bucket(length), u32::try_from(number).unwrap_or(u32::MAX));
    }

    fn count(&mut self, bucket: u8, number: u32) {
        match self.buckets.binary_search_by_key(&bucket, |entry| entry.0) {
            Ok(at) => self.buckets[at].1 = self.buckets[at].1.saturating_add(number),
            Err(at) => self.buckets.insert(at, (bucket, number)),
        }
    }

    /// Adds another's counts.
    pub(super) fn absorb(&mut self, other: &Histogram) {
        for &(bucket, number) in &other.buckets {
            self.count(bucket, number);
        }
    }

    /// The length that `percent` of the pieces do not exceed, to an eighth; `max` is the longest, which is
    /// known exactly. 0 when there is none.
    pub(super) fn percentile(&self, percent: u64, max: Ns) -> Ns {
        let total: u64 = self.buckets.iter().map(|entry| u64::from(entry.1)).sum();
        if total == 0 {
            return 0;
        }
        let rank = u64::try_from((u128::from(total) * u128::from(percent)).div_ceil(100))
            .expect("a percentile's rank is at most the number of pieces");
        if rank >= total {
            return max;
        }
        let mut seen = 0;
        for &(bucket, number) in &self.buckets {
            seen += u64::from(number);
            if seen >= rank {
                return middle(bucket).min(max);
            }
        }
        max
    }
}

fn bucket(length: Ns) -> u8 {
    if length < SUB {
        return u8::try_from(length).expect("less than four");
    }
    let exponent = length.ilog2();
    let sub = (length >> (exponent - SUB_BITS)) & (SUB - 1);
    u8::try_from(u64::from(exponent - SUB_BITS + 1) * SUB + sub).expect("63 powers of four buckets are 252")
}

fn middle(bucket: u8) -> Ns {
    let bucket = u64::from(bucket);
    if bucket < SUB {
        return bucket;
    }
    let shift = bucket / SUB - 1;
    let low = (SUB + bucket % SUB) << shift;
    low + ((1u64 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use super::Histogram;
    use proptest::prelude::*;

    proptest! {
        /// A percentile is within an eighth of the length that really has that rank.
        #[test]
        fn percentiles_are_an_eighth_off_at_most(
            mut lengths in proptest::collection::vec(0u64..u64::MAX, 1..300), percent in 1u64..100,
        ) {
            let mut histogram = Histogram::default();
            for length in &lengths {
                histogram.record(*length);
            }
            lengths.sort_unstable();
            let rank = (lengths.len() as u64 * percent).div_ceil(100) as usize;
            let truth = lengths[rank - 1];
            let max = *lengths.last().expect("at least one");
            let told = histogram.percentile(percent, max);
            prop_assert!(told.abs_diff(truth) <= truth / 8, "{told} for {truth}");
        }
    }

    #[test]
    fn one_piece_is_known_exactly() {
        let mut histogram = Histogram::default();
        histogram.record(1_234_567);
        assert_eq!(histogram.percentile(50, 1_234_567), 1_234_567);
    }
}
