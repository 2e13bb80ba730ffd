//! When the time of several segments passed: windows of one length over all of them.
//!
//! In: each segment's windows, and when it began after the first one. Out: 120 windows at most. What lies across a border is split by
//! how much of it lies on either side, to the nanosecond of the sum; where nothing was recorded windows are empty.

use holdup_evidence::Ns;
use holdup_model::timeline::{MAX_WINDOWS, MIN_WINDOW_NS, Window};

/// Windows on their way.
#[derive(Debug)]
pub(super) struct Windows {
    length: Ns,
    end: Ns,
    windows: Vec<Window>,
}

impl Default for Windows {
    fn default() -> Windows {
        Windows {
            length: MIN_WINDOW_NS,
            end: 0,
            windows: Vec::new(),
        }
    }
}

impl Windows {
    /// Adds those of a segment that begins so long after the first.
    pub(super) fn add(&mut self, begin: Ns, windows: &[Window]) {
        for window in windows.iter().filter(|window| window.ns > 0) {
            let from = begin.saturating_add(window.from);
            let until = from.saturating_add(window.ns);
            self.reach(until);
            self.spend(window, from, until);
        }
    }

    /// Two become one until there are few enough for this instant.
    fn reach(&mut self, until: Ns) {
        self.end = self.end.max(until);
        while until.div_ceil(self.length) > MAX_WINDOWS as u64 {
            self.length = self.length.saturating_mul(2);
            let pairs = std::mem::take(&mut self.windows);
            for (place, window) in pairs.into_iter().enumerate() {
                match self.windows.get_mut(place / 2) {
                    Some(sum) => add(sum, &window, |whole| whole),
                    None => self.windows.push(window),
                }
            }
        }
        let most = usize::try_from(until.div_ceil(self.length)).expect("few enough");
        while self.windows.len() < most {
            self.windows.push(Window::default());
        }
    }

    fn spend(&mut self, window: &Window, from: Ns, until: Ns) {
        let whole = u128::from(until - from).max(1);
        let mut at = from;
        while at < until {
            let place = at / self.length;
            let next = until.min((place + 1).saturating_mul(self.length));
            let sum = &mut self.windows[usize::try_from(place).expect("few enough")];
            // Of what had passed by either end, so that the parts add up to the whole.
            let by = |ns: u64, instant: Ns| u128::from(ns) * u128::from(instant - from) / whole;
            add(sum, window, |ns| {
                u64::try_from(by(ns, next) - by(ns, at)).expect("no more than the whole")
            });
            at = next;
        }
    }

    /// All of them.
    pub(super) fn finish(mut self) -> Vec<Window> {
        for (place, window) in self.windows.iter_mut().enumerate() {
            window.from = place as u64 * self.length;
            window.ns = self.length.min(self.end.saturating_sub(window.from));
        }
        self.windows
    }
}

/// Adds a part of a window.
fn add(sum: &mut Window, window: &Window, part: impl Fn(u64) -> u64) {
    for (causes, more) in [(&mut sum.causes, &window.causes), (&mut sum.path, &window.path)] {
        for (cause, ns) in more {
            let ns = part(*ns);
            if ns > 0 {
                let known = causes.entry(*cause).or_default();
                *known = known.saturating_add(ns);
            }
        }
    }
    sum.requests = sum.requests.saturating_add(part(window.requests));
    sum.requests_ns = sum.requests_ns.saturating_add(part(window.requests_ns));
}

#[cfg(test)]
mod tests {
    use super::Windows;
    use holdup_evidence::{Cause, Ns};
    use holdup_model::timeline::{MAX_WINDOWS, Window};

    const SECOND: Ns = 1_000_000_000;

    fn windows(count: u64, ns: Ns, each: Ns) -> Vec<Window> {
        let one = |number| Window {
            from: number * ns,
            ns,
            causes: [(Cause::DiskSync, each)].into(),
            requests: 3,
            requests_ns: each,
            ..Window::default()
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn what_is_put_together_is_all_and_where_it_was() {
        let mut all = Windows::default();
        all.add(0, &windows(60, SECOND, 7));
        // Nothing was recorded for a minute.
        all.add(120 * SECOND + 12_345, &windows(60, SECOND, 1_001));
        let all = all.finish();
        assert!(
            all.len() <= MAX_WINDOWS && all.len() > MAX_WINDOWS / 2,
            "{}",
            all.len()
        );
        let sum = |of: fn(&Window) -> u64| all.iter().map(of).sum::<u64>();
        assert_eq!(
            sum(|window| window.causes.get(&Cause::DiskSync).copied().unwrap_or(0)),
            60 * 7 + 60 * 1_001
        );
        assert_eq!(
            (sum(|window| window.requests), sum(|window| window.requests_ns)),
            (360, 60 * 7 + 60 * 1_001)
        );
        assert_eq!(sum(|window| window.ns), 180 * SECOND + 12_345);
        assert!(
            all.windows(2)
                .all(|pair| pair[0].from + pair[0].ns == pair[1].from)
        );
        let empty = all.iter().filter(|window| window.causes.is_empty());
        let gap: Ns = empty.map(|window| window.ns).sum();
        assert!((56 * SECOND..60 * SECOND).contains(&gap), "{gap}");
    }

    #[test]
    fn instants_of_hostile_recordings_are_taken() {
        let mut all = Windows::default();
        all.add(u64::MAX - 5, &windows(3, u64::MAX / 2, u64::MAX));
        all.add(0, &windows(2, 1, 0));
        assert!(all.finish().len() <= MAX_WINDOWS);
    }
}
