//! The slow requests beside the others: what they had more of, which of them stands for the rest, whether anybody else was answered
//! meanwhile.
//!
//! In: requests that were answered, by length. Out: a [`SlowRequest`].

use super::listeners::only_port;
use super::requests::Answered;
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::SlowRequest;
use std::collections::HashMap;

/// What the slowest hundredth had more of than the middle half, a request; `None` of fewer than two.
pub(super) fn slow(sorted: &[Answered]) -> Option<SlowRequest> {
    let number = sorted.len();
    if number < 2 {
        return None;
    }
    let slowest = &sorted[number - number.div_ceil(100)..];
    let middle = &sorted[number / 4..(number * 3 / 4).max(number / 4 + 1)];
    let mean = |of: &[Answered], ns: &dyn Fn(&Answered) -> Ns| {
        let sum: u128 = of.iter().map(|one| u128::from(ns(one))).sum();
        u64::try_from(sum / of.len().max(1) as u128).unwrap_or(Ns::MAX)
    };
    let in_cause = |one: &Answered, cause: Cause| {
        let found = one.causes.iter().find(|(of, _)| *of == cause);
        found.map_or(0, |(_, ns)| *ns)
    };
    let causes: std::collections::BTreeSet<Cause> = slowest
        .iter()
        .flat_map(|one| one.causes.iter().map(|(cause, _)| *cause))
        .collect();
    let mut more: Vec<(Cause, Ns)> = causes
        .into_iter()
        .map(|cause| {
            let here = mean(slowest, &|one| in_cause(one, cause));
            (
                cause,
                here.saturating_sub(mean(middle, &|one| in_cause(one, cause))),
            )
        })
        .filter(|(_, ns)| *ns > 0)
        .collect();
    more.sort_by_key(|(cause, ns)| (std::cmp::Reverse(*ns), *cause));
    Some(SlowRequest {
        number: slowest.len() as u64,
        ns: mean(slowest, &|one| one.ns),
        usual: mean(middle, &|one| one.ns),
        more,
        line: telling_line(slowest, sorted).map(str::to_owned),
        port: only_port(slowest, sorted),
        nobody_else: one_thread(slowest, sorted),
    })
}

/// Of the lines of the slowest the one whose requests are slow most often: others may have been read beside one that held them up.
fn telling_line<'a>(slowest: &'a [Answered], all: &[Answered]) -> Option<&'a str> {
    let mut counts: HashMap<&str, (u64, u64)> = HashMap::new();
    let lines = |of: &'a [Answered]| of.iter().filter_map(|one| one.line.as_deref());
    for line in lines(slowest) {
        counts.entry(line).or_default().0 += 1;
    }
    for line in all.iter().filter_map(|one| one.line.as_deref()) {
        if let Some(count) = counts.get_mut(line) {
            count.1 += 1;
        }
    }
    // Of fractions as high as each other the one seen more often, and then the slowest: `max_by` takes the last.
    lines(slowest).max_by(|one, other| {
        let ((slow, of), (slow_too, of_too)) = (counts[one], counts[other]);
        (slow * of_too).cmp(&(slow_too * of)).then(slow.cmp(&slow_too))
    })
}

/// Whether one thread answers nearly all requests, and while it is at one of the slowest no other.
fn one_thread(slowest: &[Answered], all: &[Answered]) -> bool {
    let Some(reader) = slowest.first().map(|one| one.reader) else {
        return false;
    };
    let held_up = slowest.iter().all(|one| one.reader == reader && one.alone);
    let theirs = all.iter().filter(|one| one.reader == reader).count();
    held_up && theirs * 10 >= all.len() * 9
}

#[cfg(test)]
mod tests {
    use super::slow;
    use crate::attribution::requests::Answered;
    use holdup_evidence::{Ns, ThreadId};

    #[test]
    fn the_line_that_is_told_is_one_whose_requests_are_slow() {
        let answered = |ns: Ns, line: &str| Answered {
            ns,
            port: 80,
            reader: ThreadId(1),
            alone: true,
            causes: Vec::new(),
            line: Some(line.to_owned()),
        };
        // One quick request was read beside a slow one, and took a little longer for it.
        let mut all: Vec<_> = (0..297).map(|_| answered(100, "GET /quick")).collect();
        all.extend([
            answered(400_000, "GET /slow"),
            answered(400_000, "GET /slow"),
            answered(400_001, "GET /quick"),
        ]);
        assert_eq!(slow(&all).unwrap().line.as_deref(), Some("GET /slow"));
    }
}
