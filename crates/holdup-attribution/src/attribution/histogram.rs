//! How long single pieces were: a histogram that grows with the spread of the lengths, not their number.

use holdup_evidence::Ns;

/// Sub-buckets to a power of two, as bits: a value read back is at most an eighth off, and is the mean of those that are
/// as long or nearly so: of sleeps that are all of one length it is that length.
const SUB_BITS: u32 = 3;
const SUB: u64 = 1 << SUB_BITS;

/// Pieces of about one length.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// Which.
    at: u16,
    /// How many.
    number: u32,
    /// Their time.
    ns: Ns,
}

/// Counts by length; few buckets are ever used, so they are kept as a sorted list.
#[derive(Debug, Clone, Default)]
pub(super) struct Histogram {
    buckets: Vec<Bucket>,
}

impl Histogram {
    /// Counts one piece.
    pub(super) fn record(&mut self, length: Ns) {
        self.record_many(length, 1);
    }

    /// Counts so many of one length.
    pub(super) fn record_many(&mut self, length: Ns, number: u64) {
        self.count(Bucket {
            at: bucket(length),
            number: u32::try_from(number).unwrap_or(u32::MAX),
            ns: length.saturating_mul(number),
        });
    }

    fn count(&mut self, more: Bucket) {
        match self.buckets.binary_search_by_key(&more.at, |known| known.at) {
            Ok(at) => {
                let known = &mut self.buckets[at];
                known.number = known.number.saturating_add(more.number);
                known.ns = known.ns.saturating_add(more.ns);
            }
            Err(at) => self.buckets.insert(at, more),
        }
    }

    /// Adds another's counts.
    pub(super) fn absorb(&mut self, other: &Histogram) {
        for more in &other.buckets {
            self.count(*more);
        }
    }

    /// The length that `percent` of the pieces do not exceed, to an eighth; `max` is the longest, which is
    /// known exactly. 0 when there is none.
    pub(super) fn percentile(&self, percent: u64, max: Ns) -> Ns {
        let total: u64 = self.buckets.iter().map(|bucket| u64::from(bucket.number)).sum();
        if total == 0 {
            return 0;
        }
        let rank = u64::try_from((u128::from(total) * u128::from(percent)).div_ceil(100))
            .expect("a percentile's rank is at most the number of pieces");
        if rank >= total {
            return max;
        }
        let mut seen = 0;
        for bucket in &self.buckets {
            seen += u64::from(bucket.number);
            if seen >= rank {
                return bucket.mean().min(max);
            }
        }
        max
    }
}

impl Bucket {
    /// Within the bucket, also where a sum has reached what can be reported.
    fn mean(&self) -> Ns {
        let (low, high) = limits(self.at);
        (self.ns / u64::from(self.number.max(1))).clamp(low, high)
    }
}

fn bucket(length: Ns) -> u16 {
    if length < SUB {
        return u16::try_from(length).expect("less than eight");
    }
    let exponent = length.ilog2();
    let sub = (length >> (exponent - SUB_BITS)) & (SUB - 1);
    u16::try_from(u64::from(exponent - SUB_BITS + 1) * SUB + sub).expect("62 powers of eight buckets are 496")
}

/// The shortest and the longest that are in it.
fn limits(bucket: u16) -> (Ns, Ns) {
    let bucket = u64::from(bucket);
    if bucket < SUB {
        return (bucket, bucket);
    }
    let shift = bucket / SUB - 1;
    let low = (SUB + bucket % SUB) << shift;
    (low, low + ((1u64 << shift) - 1))
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
            let found = histogram.percentile(percent, max);
            prop_assert!(found.abs_diff(truth) <= truth / 8, "{found} for {truth}");
        }
    }

    #[test]
    fn sleeps_of_one_length_are_told_as_that_long() {
        let mut histogram = Histogram::default();
        for late in 0..30 {
            histogram.record(100_000_000 + late * 1_000);
        }
        histogram.record(180_000_000);
        assert_eq!(histogram.percentile(50, 180_000_000), 100_014_500);
    }

    #[test]
    fn one_piece_is_known_exactly() {
        let mut histogram = Histogram::default();
        histogram.record(1_234_567);
        assert_eq!(histogram.percentile(50, 1_234_567), 1_234_567);
    }
}
