//! How much in each window of the observed time.
//!
//! The problem: nobody knows beforehand how long observation will last, and no list of waits is kept that could be cut afterwards. The
//! choice: windows begin short; when there are too many, two become one. Each counter is folded when it is next touched. What is
//! counted falls into the window that came last nearly always, so that one is counted aside, and a piece costs a comparison and
//! an addition.
//!
//! In: pieces of time, as they are booked. Out: for each counter a sum a window; their sum is what was counted.

use super::cpu::apportion;
use holdup_evidence::Ns;
use holdup_model::timeline::{MAX_WINDOWS, MIN_WINDOW_NS, Window};

/// A number for a window and the length of windows: that of the window in `index` when each is `1 << shift` of the shortest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    shift: u8,
    index: u8,
}

/// The windows of an observation so far.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    /// When observation began.
    began: Ns,
    /// The window that was looked for last.
    stamp: Stamp,
    /// When it begins and ends.
    from: Ns,
    until: Ns,
}

impl Default for Axis {
    fn default() -> Axis {
        Axis::beginning(0)
    }
}

impl Axis {
    /// Windows from an instant on.
    pub(super) fn beginning(began: Ns) -> Axis {
        Axis {
            began,
            stamp: Stamp { shift: 0, index: 0 },
            from: began,
            until: began.saturating_add(MIN_WINDOW_NS),
        }
    }

    /// When the first window begins.
    pub(super) fn began(&self) -> Ns {
        self.began
    }

    /// How long each is.
    pub(super) fn width(&self) -> Ns {
        MIN_WINDOW_NS << self.stamp.shift
    }

    /// The window that an instant is in.
    fn index(&self, at: Ns) -> u8 {
        let index = at.saturating_sub(self.began) / self.width();
        u8::try_from(index.min(MAX_WINDOWS as u64 - 1)).expect("there are fewer windows")
    }

    /// Makes windows long enough for an instant to be in one, and looks for it.
    pub(super) fn reach(&mut self, at: Ns) {
        while at.saturating_sub(self.began) / self.width() >= MAX_WINDOWS as u64 {
            self.stamp.shift += 1;
        }
        self.stamp.index = self.index(at);
        self.from = self.begin_of(self.stamp.index);
        self.until = self.from.saturating_add(self.width());
    }

    /// Time of several kinds from an instant on, whose order is not known: cut so that each window has the same mix of them.
    pub(super) fn mixed<K: Copy>(&mut self, from: Ns, kinds: &[(K, Ns)]) -> Vec<(K, Ns, Ns)> {
        let mut left: Vec<Ns> = kinds.iter().map(|(_, ns)| *ns).collect();
        let until = left.iter().fold(from, |until, ns| until.saturating_add(*ns));
        self.reach(until.saturating_sub(1));
        let mut cut = Vec::new();
        let mut at = from;
        while at < until {
            let border = self.begin_of(self.index(at) + 1);
            let border = if border > at { border.min(until) } else { until };
            let parts = apportion(border - at, &left);
            for (((kind, _), left), part) in kinds.iter().zip(&mut left).zip(parts) {
                cut.push((*kind, at, at + part));
                *left = left.saturating_sub(part);
                at += part;
            }
            at = border;
        }
        cut
    }

    fn begin_of(&self, index: u8) -> Ns {
        self.began
            .saturating_add(u64::from(index).saturating_mul(self.width()))
    }

    /// How many windows there are until an instant.
    pub(super) fn count(&mut self, end: Ns) -> usize {
        match end.saturating_sub(self.began) {
            0 => 0,
            _ => {
                self.reach(end - 1);
                usize::from(self.stamp.index) + 1
            }
        }
    }
}

/// Sums by window.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    /// The sum of the window that was counted in last, and which that is.
    latest: Option<(Stamp, u64)>,
    /// The others, for windows of this length.
    shift: u8,
    sums: Vec<u64>,
}

impl Sums {
    /// Adds a piece of time, cut at the borders.
    pub(super) fn spend(&mut self, axis: &mut Axis, from: Ns, until: Ns) {
        let mut from = from.max(axis.began);
        let until = until.max(from);
        if from < axis.from || until > axis.until {
            // Its end is nearest to what comes next.
            axis.reach(until.saturating_sub(1));
        }
        if from < axis.from {
            self.settle();
            self.fold(axis.stamp.shift);
            for index in axis.index(from)..axis.stamp.index {
                let border = axis.begin_of(index + 1);
                self.at(index, border - from);
                from = border;
            }
        }
        self.count(axis.stamp, until - from);
    }

    /// Adds something that happened at an instant.
    pub(super) fn add(&mut self, axis: &mut Axis, at: Ns, amount: u64) {
        if at < axis.from || at >= axis.until {
            axis.reach(at);
        }
        self.count(axis.stamp, amount);
    }

    fn count(&mut self, stamp: Stamp, amount: u64) {
        match &mut self.latest {
            Some((latest, sum)) if *latest == stamp => *sum = sum.saturating_add(amount),
            _ => {
                self.settle();
                self.latest = Some((stamp, amount));
            }
        }
    }

    fn settle(&mut self) {
        if let Some((stamp, sum)) = self.latest.take() {
            self.fold(stamp.shift);
            self.at(stamp.index, sum);
        }
    }

    fn at(&mut self, index: u8, amount: u64) {
        let index = usize::from(index);
        if index >= self.sums.len() {
            self.sums.resize(index + 1, 0);
        }
        self.sums[index] = self.sums[index].saturating_add(amount);
    }

    /// Two windows become one as often as it takes.
    fn fold(&mut self, shift: u8) {
        let times = shift.saturating_sub(self.shift);
        if times == 0 {
            return;
        }
        self.shift = shift;
        let folded = |index: usize| index.checked_shr(u32::from(times)).unwrap_or(0);
        for index in 1..self.sums.len() {
            let sum = std::mem::take(&mut self.sums[index]);
            let target = &mut self.sums[folded(index)];
            *target = target.saturating_add(sum);
        }
        let left = self.sums.len().checked_sub(1).map_or(0, |last| folded(last) + 1);
        self.sums.truncate(left);
    }

    /// Takes over another's.
    pub(super) fn absorb(&mut self, mut other: Sums) {
        self.settle();
        other.settle();
        let shift = self.shift.max(other.shift);
        self.fold(shift);
        other.fold(shift);
        for (index, sum) in (0..=u8::MAX).zip(other.sums) {
            self.at(index, sum);
        }
    }

    /// The sums, one for each of so many windows; there may be more that something was counted in.
    pub(super) fn of_windows(mut self, axis: &Axis, windows: usize) -> Vec<u64> {
        self.settle();
        self.fold(axis.stamp.shift);
        if self.sums.len() < windows {
            self.sums.resize(windows, 0);
        }
        self.sums
    }
}

/// Requests by the window that they were answered in.
#[derive(Debug, Clone, Default)]
pub(super) struct AnsweredIn {
    count: Sums,
    ns: Sums,
}

impl AnsweredIn {
    /// One was answered that stands for so many.
    pub(super) fn add(&mut self, axis: &mut Axis, at: Ns, ns: Ns, weight: u32) {
        self.count.add(axis, at, u64::from(weight));
        self.ns.add(axis, at, ns.saturating_mul(u64::from(weight)));
    }

    /// Tells them.
    pub(super) fn tell(self, windows: &mut [Window], axis: &Axis) {
        let count = self.count.of_windows(axis, windows.len());
        let ns = self.ns.of_windows(axis, windows.len());
        for ((window, count), ns) in windows.iter_mut().zip(count).zip(ns) {
            window.requests = count;
            window.requests_ns = ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Axis, Sums};
    use holdup_model::timeline::{MAX_WINDOWS, MIN_WINDOW_NS};
    use proptest::prelude::*;

    /// What a slow count of the same pieces gives.
    fn slow(axis: &Axis, pieces: &[(u64, u64)], windows: usize) -> Vec<u64> {
        let within = |window: usize, (from, until): &(u64, u64)| {
            let begin = axis.began() + window as u64 * axis.width();
            (*until.min(&(begin + axis.width()))).saturating_sub(*from.max(&begin))
        };
        (0..windows)
            .map(|window| pieces.iter().map(|piece| within(window, piece)).sum())
            .collect()
    }

    proptest! {
        #[test]
        fn each_window_has_what_is_in_it(
            began in 0u64..1 << 40,
            steps in proptest::collection::vec((0u64..1 << 31, prop_oneof![0u64..1 << 20, 0u64..1 << 33], any::<bool>()), 1..60),
        ) {
            let mut axis = Axis::beginning(began);
            let mut sums = [Sums::default(), Sums::default()];
            let mut pieces = Vec::new();
            for (after, length, second) in steps {
                let piece = (began + after, began + after + length);
                sums[usize::from(second)].spend(&mut axis, piece.0, piece.1);
                pieces.push(piece);
            }
            let end = pieces.iter().map(|piece| piece.1).max().unwrap_or(began);
            let windows = axis.count(end);
            prop_assert!(windows <= MAX_WINDOWS);
            prop_assert!(windows > MAX_WINDOWS / 2 || end - began <= MIN_WINDOW_NS * MAX_WINDOWS as u64 / 2 || axis.width() == MIN_WINDOW_NS);
            let [mut all, other] = sums;
            all.absorb(other);
            prop_assert_eq!(all.of_windows(&axis, windows), slow(&axis, &pieces, windows));
        }
    }

    proptest! {
        #[test]
        fn what_is_mixed_is_the_same_everywhere(began in 0u64..1 << 40, after in 0u64..1 << 30, kinds in proptest::collection::vec(0u64..1 << 32, 1..5)) {
            let mut axis = Axis::beginning(began);
            let kinds: Vec<(usize, u64)> = kinds.into_iter().enumerate().collect();
            let cut = axis.mixed(began + after, &kinds);
            let mut at = began + after;
            for (_, from, until) in &cut {
                prop_assert_eq!(*from, at);
                at = *until;
            }
            let total: u64 = kinds.iter().map(|kind| kind.1).sum();
            prop_assert_eq!(at, began + after + total);
            for (kind, ns) in kinds {
                let its = cut.iter().filter(|piece| piece.0 == kind);
                prop_assert_eq!(its.clone().map(|piece| piece.2 - piece.1).sum::<u64>(), ns);
                for window in 0..(at - began) / axis.width() {
                    let begin = began + window * axis.width();
                    if begin < began + after {
                        continue;
                    }
                    let within = its.clone().filter(|piece| piece.1 >= begin && piece.2 <= begin + axis.width());
                    let within: u64 = within.map(|piece| piece.2 - piece.1).sum();
                    let expected = (u128::from(ns) * u128::from(axis.width()) / u128::from(total)) as u64;
                    prop_assert!(within.abs_diff(expected) <= MAX_WINDOWS as u64, "{} of {}", within, expected);
                }
            }
        }
    }

    #[test]
    fn an_instant_that_is_a_lie_has_a_window() {
        let mut axis = Axis::beginning(5);
        let mut sums = Sums::default();
        sums.spend(&mut axis, 5, 9);
        sums.spend(&mut axis, 2, 3);
        sums.spend(&mut axis, 9, u64::MAX);
        let windows = axis.count(u64::MAX);
        assert_eq!(sums.of_windows(&axis, windows).iter().sum::<u64>(), u64::MAX - 5);
    }
}
