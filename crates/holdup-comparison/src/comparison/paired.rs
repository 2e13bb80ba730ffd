//! The same hosts at two times: what changed, and whether that is more than the hosts' own spread.
//!
//! In: what programs waited for on each host, at either time. Out: a [`Comparison`]. The unit is the host: minutes of one host are alike, whatever
//! they are. Each host is its own control, so what counts is its change.
//!
//! - Is the fleet's change more than chance? If nothing had changed, each host's change might as well have had the other sign. All signs
//!   are tried up to [`MAX_SIGNED_HOSTS`] hosts (Fisher's randomisation test of pairs, "The design of experiments", 1935, section 21);
//!   with more, Student's test of the changes says nearly the same. Six hosts are the least that can come below 0.05: 2 of 64.
//! - Lines are corrected for each other by Holm, and must pass both tests, as lines of runs must ([`super::significance`]).
//! - Did one host change unlike the others? By its distance from the median change, in robust standard deviations, as segments of a recording
//!   are found that are unlike the others.

mod words;

use super::runs::{LEAST_SHARE, MAX_PARTS};
use super::significance::{LEVEL, holm, mean, ratio};
use super::student::{quantile, two_sided};
use super::{Incomparable, chance, source};
use holdup_evidence::{Cause, Ns};
use holdup_model::report::{CauseChange, Compared, Comparison, HostChange, ProgramChange};
use std::collections::{BTreeMap, BTreeSet};

/// Hosts that a test needs: of five, no change is less likely than 2 of 32.
const LEAST_HOSTS: usize = 6;

/// Hosts of which all signs are tried: those of 14 are 16,384.
const MAX_SIGNED_HOSTS: usize = 14;

/// Hosts without which none is unlike the others.
const LEAST_ALIKE: usize = 5;

/// Robust standard deviations beyond which a host is unlike the others (Iglewicz and Hoaglin 1993).
const UNLIKE: f64 = 3.5;

/// The median absolute deviation of normal values, times this, is their standard deviation (Hampel 1974).
const OF_NORMAL: f64 = 1.4826;

/// A host is not unlike the others by less than this, nanoseconds a second.
const LEAST_UNLIKE_NS: f64 = 10e6;

/// Programs and causes that are compared: of a fleet anybody may have started any number.
const MAX_PROGRAMS: usize = 2_000;

/// Programs that are listed.
const LISTED: usize = 200;

/// Two sums of the same numbers differ by less than this part of them.
const ROUNDING: f64 = 1e-9;

/// A program, and what it waited for; no name: all whose names were too many.
pub type Key = (Option<String>, Cause);

/// What was observed on a host at one time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observed {
    /// For how long, seconds.
    pub seconds: f64,
    /// Threads' time, nanoseconds.
    pub amounts: BTreeMap<Key, f64>,
}

impl Observed {
    fn rate(&self, key: &Key) -> f64 {
        self.amounts.get(key).map_or(0.0, |amount| amount / self.seconds)
    }

    fn sum(&self, counts: impl Fn(&Key) -> bool) -> f64 {
        let amounts = self
            .amounts
            .iter()
            .filter(|(key, _)| key.1 != Cause::Idle && counts(key));
        amounts.map(|(_, amount)| amount).sum::<f64>() / self.seconds
    }
}

/// A host at both times.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// Its id.
    pub host: String,
    /// BEFORE's.
    pub before: Observed,
    /// AFTER's.
    pub after: Observed,
}

/// Compares the same hosts at two times.
///
/// # Errors
/// When no host was observed at both.
pub fn compare(names: [String; 2], pairs: &[Pair], notes: Vec<String>) -> Result<Comparison, Incomparable> {
    let pairs: Vec<&Pair> = pairs
        .iter()
        .filter(|pair| pair.before.seconds > 0.0 && pair.after.seconds > 0.0)
        .collect();
    if pairs.is_empty() {
        return Err(Incomparable(format!(
            "no host has recordings of both times, {} and {}",
            names[0], names[1]
        )));
    }
    let whole = Line::of(&pairs, &|observed| observed.sum(|_| true));
    let causes = causes(&pairs, &whole);
    let programs = programs(&pairs, &whole);
    let hosts = hosts(&pairs, &whole);
    let explained: i64 = causes
        .iter()
        .filter(|one| one.cause != Cause::Unknown)
        .map(|one| one.change_ns)
        .fold(0, i64::saturating_add);
    let p = whole.chance();
    let seconds = |of: fn(&Pair) -> f64| pairs.iter().map(|pair| of(pair)).sum::<f64>();
    let [before, after] = names;
    let mut comparison = Comparison {
        before,
        after,
        unit: source::SECOND.to_owned(),
        before_ns: Some(whole_ns(mean(&whole.before))),
        after_ns: Some(whole_ns(mean(&whole.after))),
        change_ns: Some(whole.change_ns()),
        interval_ns: whole.interval(),
        significant: p.map(|p| p < LEVEL),
        before_n: count(pairs.len()),
        after_n: count(pairs.len()),
        causes,
        noise_n: 0,
        compared: Compared::Recordings,
        verdict: Vec::new(),
        trade: None,
        method: method(pairs.len()).to_owned(),
        seed: chance::SEED,
        p,
        run_to_run: None,
        before_units: Some(seconds(|pair| pair.before.seconds)),
        after_units: Some(seconds(|pair| pair.after.seconds)),
        explained_ns: Some(explained),
        unexplained_ns: Some(whole.change_ns().saturating_sub(explained)),
        amounts: Vec::new(),
        made: Vec::new(),
        differences: Vec::new(),
        notes,
        stacks: None,
        hosts,
        programs,
    };
    comparison.verdict = words::verdict(&comparison, &whole);
    Ok(comparison)
}

/// One amount of each host, at either time, nanoseconds a second.
#[derive(Debug)]
struct Line {
    before: Vec<f64>,
    after: Vec<f64>,
    changes: Vec<f64>,
}

impl Line {
    fn of(pairs: &[&Pair], rate: &dyn Fn(&Observed) -> f64) -> Line {
        let before: Vec<f64> = pairs.iter().map(|pair| rate(&pair.before)).collect();
        let after: Vec<f64> = pairs.iter().map(|pair| rate(&pair.after)).collect();
        let changes = before.iter().zip(&after).map(|(before, after)| after - before);
        Line {
            changes: changes.collect(),
            before,
            after,
        }
    }

    fn size(&self) -> f64 {
        mean(&self.before) + mean(&self.after)
    }

    fn change_ns(&self) -> i64 {
        difference(mean(&self.before), mean(&self.after))
    }

    /// The standard error of the mean change.
    fn error(&self) -> f64 {
        let (centre, count) = (mean(&self.changes), self.changes.len() as f64);
        let squares = self.changes.iter().map(|change| (change - centre).powi(2));
        (squares.sum::<f64>() / (count - 1.0) / count).sqrt()
    }

    fn student(&self) -> f64 {
        two_sided(
            ratio(mean(&self.changes), self.error()),
            self.changes.len() as f64 - 1.0,
        )
    }

    /// How likely such a change is by chance; `None` with too few hosts.
    fn chance(&self) -> Option<f64> {
        match self.changes.len() {
            ..LEAST_HOSTS => None,
            LEAST_HOSTS..=MAX_SIGNED_HOSTS => Some(signed(&self.changes)),
            _ => Some(self.student()),
        }
    }

    /// Where the true change lies, with 95 %.
    fn interval(&self) -> Option<[i64; 2]> {
        if self.changes.len() < LEAST_HOSTS {
            return None;
        }
        let reach = quantile(LEVEL, self.changes.len() as f64 - 1.0) * self.error();
        let centre = mean(&self.changes);
        Some([centre - reach, centre + reach].map(|end| end.round() as i64))
    }
}

/// How many of all signs that the changes might have had make a sum at least as large.
fn signed(changes: &[f64]) -> f64 {
    let seen = changes.iter().sum::<f64>().abs();
    let slack = ROUNDING * changes.iter().map(|change| change.abs()).sum::<f64>();
    let ways = 1_u32 << changes.len();
    let as_large = |way: &u32| {
        let with_sign = |(at, change): (usize, &f64)| if way >> at & 1 == 0 { *change } else { -change };
        changes.iter().enumerate().map(with_sign).sum::<f64>().abs() >= seen - slack
    };
    let hits = (0..ways).filter(as_large).count();
    hits as f64 / f64::from(ways)
}

/// What chance has to say of lines, corrected for each other. Small lines are not tested: each makes it harder for all others.
fn tested(lines: &[Line], whole: &Line) -> Vec<Option<f64>> {
    let mut large: Vec<usize> = (0..lines.len())
        .filter(|at| lines[*at].size() > 0.0 && lines[*at].size() >= LEAST_SHARE * whole.size())
        .collect();
    large.sort_by(|a, b| lines[*b].size().total_cmp(&lines[*a].size()));
    large.truncate(MAX_PARTS);
    let mut found = vec![None; lines.len()];
    let chances: Vec<(usize, f64)> = large
        .into_iter()
        .filter_map(|at| Some((at, lines[at].chance()?)))
        .collect();
    let students: Vec<f64> = chances.iter().map(|(at, _)| lines[*at].student()).collect();
    for ((at, chance), corrected) in chances.into_iter().zip(holm(&students)) {
        found[at] = Some(chance.max(corrected));
    }
    found
}

fn causes(pairs: &[&Pair], whole: &Line) -> Vec<CauseChange> {
    let names: BTreeSet<Cause> = keys(pairs).into_iter().map(|key| key.1).collect();
    let names: Vec<Cause> = names.into_iter().collect();
    let lines: Vec<Line> = names
        .iter()
        .map(|cause| Line::of(pairs, &|observed| observed.sum(|key| key.1 == *cause)))
        .collect();
    let tested = tested(&lines, whole);
    let mut causes: Vec<CauseChange> = names
        .into_iter()
        .zip(&lines)
        .zip(tested)
        .map(|((cause, line), p)| CauseChange {
            cause,
            before_ns: whole_ns(mean(&line.before)),
            after_ns: whole_ns(mean(&line.after)),
            change_ns: line.change_ns(),
            significant: p.map(|p| p < LEVEL),
            p,
        })
        .collect();
    causes.sort_by_key(|one| (std::cmp::Reverse(one.change_ns.unsigned_abs()), one.cause));
    causes
}

fn programs(pairs: &[&Pair], whole: &Line) -> Vec<ProgramChange> {
    let names = largest_keys(pairs);
    let lines: Vec<Line> = names
        .iter()
        .map(|key| Line::of(pairs, &|observed| observed.rate(key)))
        .collect();
    let tested = tested(&lines, whole);
    let mut programs: Vec<ProgramChange> = names
        .into_iter()
        .zip(&lines)
        .zip(tested)
        .map(|(((process, cause), line), p)| ProgramChange {
            process: process.clone(),
            cause: *cause,
            before_ns: whole_ns(mean(&line.before)),
            after_ns: whole_ns(mean(&line.after)),
            change_ns: line.change_ns(),
            more_on: count(line.changes.iter().filter(|change| **change > 0.0).count()),
            significant: p.map(|p| p < LEVEL),
            p,
        })
        .collect();
    programs.sort_by(|a, b| {
        let key = |one: &ProgramChange| (std::cmp::Reverse(one.change_ns.unsigned_abs()), one.cause);
        key(a).cmp(&key(b)).then_with(|| a.process.cmp(&b.process))
    });
    programs.truncate(LISTED);
    programs
}

/// All programs and causes of any host, without waiting for work.
fn keys<'a>(pairs: &[&'a Pair]) -> BTreeSet<&'a Key> {
    let both = pairs.iter().flat_map(|pair| [&pair.before, &pair.after]);
    both.flat_map(|observed| observed.amounts.keys())
        .filter(|key| key.1 != Cause::Idle)
        .collect()
}

/// Those of them that took most time, both sides together, so that the choice does not favour what differs.
fn largest_keys<'a>(pairs: &[&'a Pair]) -> Vec<&'a Key> {
    let mut sums: BTreeMap<&Key, f64> = BTreeMap::new();
    for observed in pairs.iter().flat_map(|pair| [&pair.before, &pair.after]) {
        for (key, amount) in observed.amounts.iter().filter(|(key, _)| key.1 != Cause::Idle) {
            *sums.entry(key).or_default() += amount / observed.seconds;
        }
    }
    let mut largest: Vec<(&Key, f64)> = sums.into_iter().collect();
    largest.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    largest.truncate(MAX_PROGRAMS);
    largest.into_iter().map(|(key, _)| key).collect()
}

fn hosts(pairs: &[&Pair], whole: &Line) -> Vec<HostChange> {
    let alike = Alike::of(&whole.changes);
    let figures = whole.before.iter().zip(&whole.after).zip(&whole.changes);
    let mut hosts: Vec<HostChange> = pairs
        .iter()
        .zip(figures)
        .map(|(pair, ((before, after), change))| {
            let most = most(pair);
            HostChange {
                host: pair.host.clone(),
                before_ns: whole_ns(*before),
                after_ns: whole_ns(*after),
                change_ns: difference(*before, *after),
                unlike: alike.as_ref().map(|alike| alike.is_unlike(*change)),
                process: most.and_then(|(key, _)| key.0.clone()),
                cause: most.map(|(key, _)| key.1),
                of_it_ns: most.map_or(0, |(_, change)| change.round() as i64),
            }
        })
        .collect();
    hosts.sort_by(|a, b| {
        let key = |one: &HostChange| std::cmp::Reverse(one.change_ns.unsigned_abs());
        key(a).cmp(&key(b)).then_with(|| a.host.cmp(&b.host))
    });
    hosts
}

/// What changed most on a host.
fn most(pair: &Pair) -> Option<(&Key, f64)> {
    let changes = keys(&[pair])
        .into_iter()
        .map(|key| (key, pair.after.rate(key) - pair.before.rate(key)));
    changes.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))
}

/// How alike the changes of hosts are.
struct Alike {
    median: f64,
    least: f64,
}

impl Alike {
    fn of(changes: &[f64]) -> Option<Alike> {
        if changes.len() < LEAST_ALIKE {
            return None;
        }
        let centre = median(changes.to_vec());
        let spread = median(changes.iter().map(|change| (change - centre).abs()).collect());
        Some(Alike {
            median: centre,
            least: (UNLIKE * OF_NORMAL * spread).max(LEAST_UNLIKE_NS),
        })
    }

    fn is_unlike(&self, change: f64) -> bool {
        (change - self.median).abs() > self.least
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 => mean(&values[middle.saturating_sub(1)..=middle]),
        _ => values[middle],
    }
}

fn whole_ns(value: f64) -> Ns {
    value.max(0.0).round() as Ns
}

fn difference(before: f64, after: f64) -> i64 {
    let signed = |value: f64| i64::try_from(whole_ns(value)).unwrap_or(i64::MAX);
    signed(after).saturating_sub(signed(before))
}

fn count(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}

fn method(hosts: usize) -> &'static str {
    match hosts {
        ..LEAST_HOSTS => "none: fewer than six hosts at both times",
        LEAST_HOSTS..=MAX_SIGNED_HOSTS => {
            "all signs of the hosts' changes; parts also by Student's test of the changes, with Holm's correction"
        }
        _ => "Student's test of the hosts' changes; parts with Holm's correction",
    }
}

#[cfg(test)]
mod tests;
