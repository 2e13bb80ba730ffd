//! How a thread's time in the kernel splits into its calls, from a few of each that were seen to begin and to end.
//!
//! In: [`Hit`]s at the places of calls. Out: [`Part`]s of the thread's CPU time. Nothing here reads anything.
//!
//! Each hit costs the thread time of its own, which is in all that is measured. The shortest way from one hit to the next is taken for that
//! and left out, so a call that takes less than it can be distinguished from nothing is reported as nothing.

use super::probe::{HITS, Hit, INSTRUCTION};
use holdup_evidence::{Call, Ns};

/// Calls from one place that must have been seen.
const MIN_CALLS: usize = 3;

/// Highest number of a call that is believed.
const HIGHEST: u64 = 1023;

/// A call from one place, and its part of the CPU time that the thread would use if it were not measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Part {
    /// The address after it.
    pub(super) place: u64,
    /// Its number and arguments, as it was seen first.
    pub(super) call: Call,
    /// 0 to 1.
    pub(super) share: f64,
    /// Whether the call and all that the thread does until it makes it again are over sooner than a hit is: then the share says nothing.
    pub(super) too_fast: bool,
}

/// Addresses that calls returned to, the most frequent first.
pub(super) fn places(hits: &[Hit]) -> Vec<(u64, usize)> {
    let mut places: Vec<(u64, usize)> = Vec::new();
    for hit in hits {
        match places.iter_mut().find(|(place, _)| *place == hit.cx) {
            Some((_, count)) => *count += 1,
            None => places.push((hit.cx, 1)),
        }
    }
    places.sort_by_key(|(place, count)| (std::cmp::Reverse(*count), *place));
    places
}

/// What calls from these places, which were measured together, had of the thread's CPU time.
pub(super) fn parts(hits: &[Hit], places: &[u64]) -> Vec<Part> {
    let gaps = hits.windows(2).map(|two| two[1].clock - two[0].clock);
    let Some(cost) = gaps.filter(|gap| *gap > 0).min() else {
        return Vec::new();
    };
    places
        .iter()
        .filter_map(|place| part(hits, *place, cost))
        .collect()
}

fn part(hits: &[Hit], place: u64, cost: Ns) -> Option<Part> {
    let begins = |hit: &&Hit| hit.ip == place.saturating_sub(INSTRUCTION);
    // While both breakpoints are on: the kernel turns each off by itself.
    let first = hits.iter().find(begins)?;
    let calls: Vec<(&Hit, &Hit)> = hits
        .iter()
        .filter(begins)
        .filter_map(|begin| {
            // A call leaves in rcx where it returns to; what is not a call does not.
            let end = hits
                .iter()
                .find(|hit| hit.ip == place && hit.cx == place && hit.clock >= begin.clock)?;
            Some((begin, end))
        })
        .collect();
    let [.., (last, _)] = calls.as_slice() else {
        return None;
    };
    let number = i32::try_from(first.ax).ok().filter(|_| first.ax <= HIGHEST)?;
    if calls.len() < MIN_CALLS || calls.len() > usize::from(HITS) {
        return None;
    }
    let mut lasted: Vec<Ns> = calls.iter().map(|(begin, end)| end.clock - begin.clock).collect();
    lasted.sort_unstable();
    // One that was interrupted does not count for more.
    let usual = lasted[lasted.len() / 2].saturating_sub(cost);
    let between = hits
        .iter()
        .filter(|hit| first.clock <= hit.clock && hit.clock < last.clock)
        .count();
    let window = (last.clock - first.clock).saturating_sub(cost.saturating_mul(between as u64));
    let all = usual.saturating_mul(calls.len() as u64 - 1);
    Some(Part {
        too_fast: window < cost.saturating_mul(calls.len() as u64 - 1),
        place,
        call: Call {
            number,
            args: first.args,
        },
        share: if usual == 0 {
            0.0
        } else {
            (all as f64 / window.max(all) as f64).min(1.0)
        },
    })
}

#[cfg(test)]
mod tests {
    use super::{parts, places};
    use crate::sampling::probe::Hit;

    const READ: u64 = 0x1002;
    const WRITE: u64 = 0x2002;

    fn at(clock: u64, ip: u64, cx: u64, ax: u64) -> Hit {
        Hit {
            clock,
            ip,
            cx,
            ax,
            args: [3, 4, 5, 6],
        }
    }

    /// A loop of a slow read and a fast write, each hit taking 10.
    fn copying() -> Vec<Hit> {
        let mut hits = Vec::new();
        let mut clock = 100;
        for _ in 0..8 {
            for (place, number, lasts) in [(READ, 0, 90), (WRITE, 1, 0)] {
                hits.push(at(clock, place - 2, 7, number));
                clock += 10 + lasts;
                hits.push(at(clock, place, place, 0));
                clock += 10 + 5;
            }
        }
        hits
    }

    #[test]
    fn the_slow_call_has_the_time_whatever_looking_costs() {
        let found = parts(&copying(), &[READ, WRITE]);
        assert_eq!([found[0].call.number, found[1].call.number], [0, 1]);
        assert_eq!(found[0].call.args, [3, 4, 5, 6]);
        assert!((0.85..0.95).contains(&found[0].share), "{found:?}");
        assert_eq!(found[1].share, 0.0);
        assert!(found.iter().all(|part| !part.too_fast));
    }

    #[test]
    fn of_calls_that_are_faster_than_a_hit_the_share_is_not_known() {
        let calls = (0..8).flat_map(|call| {
            let clock = 100 + call * 21;
            [at(clock, READ - 2, 7, 0), at(clock + 10, READ, READ, 0)]
        });
        let listed = parts(&calls.collect::<Vec<_>>(), &[READ]);
        assert!(listed[0].too_fast, "{listed:?}");
    }

    #[test]
    fn what_is_no_call_is_not_told() {
        let of = |change: fn(&mut Hit)| {
            let mut hits = copying();
            hits.iter_mut().for_each(change);
            parts(&hits, &[READ]).len()
        };
        assert_eq!(of(|_| {}), 1);
        assert_eq!(of(|hit| hit.cx = 7), 0, "rcx stays what it was");
        assert_eq!(of(|hit| hit.ax = 1 << 40), 0, "no call has that number");
        assert_eq!(parts(&copying()[..8], &[READ]).len(), 0, "seen twice");
        assert!(parts(&[], &[READ]).is_empty());
    }

    #[test]
    fn places_are_those_that_calls_returned_to() {
        let seen = [at(1, 5, WRITE, 0), at(2, 6, READ, 0), at(3, 7, READ, 0)];
        assert_eq!(places(&seen), [(READ, 2), (WRITE, 1)]);
    }
}
