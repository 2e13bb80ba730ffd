//! From changes to the [`Comparison`] of a report.
//!
//! In: what changed, and the sources it is from. Out: integers, sorted lists, sentences. What is above zero is slower.

use super::made::Made;
use super::runs::{Change, Changes, Part, Run};
use super::significance::Basis;
use super::source::{BUILD, Source};
use super::trade::Trade;
use super::{Side, chance, words};
use holdup_evidence::{Cause, Ns};
use holdup_model::report::{
    AmountChange, CauseChange, Compared, Comparison, Difference, Measure, Presence, StackTree,
};
use std::collections::{BTreeMap, BTreeSet};

/// Amounts that are listed.
const LISTED: usize = 200;

/// Characters of a name that are reported.
const NAME: usize = 1_000;

/// Standard errors beyond which samples would scatter in one of twenty cases.
const SCATTER: f64 = 1.96;

/// Changes smaller than this part of the amount are rounding.
const ROUNDING: f64 = 1e-9;

/// All that a comparison is made of.
pub(super) struct Built<'a> {
    pub(super) before: &'a Side,
    pub(super) after: &'a Side,
    pub(super) what: Compared,
    pub(super) unit: String,
    pub(super) measure: Measure,
    /// BEFORE's, AFTER's, noise.
    pub(super) runs: [&'a Vec<Run>; 3],
    pub(super) changes: Changes,
    /// Of profiles whose time is known by others: their functions, and the samples of the first profile on either side.
    pub(super) frames: Option<(Changes, [f64; 2])>,
    /// Both sides' stacks.
    pub(super) stacks: Option<StackTree>,
}

impl Built<'_> {
    pub(super) fn finish(self) -> Comparison {
        let total = self.changes.total;
        let timed = self.measure == Measure::Ns && total.before + total.after > 0.0;
        let before_ns = timed.then(|| whole(total.before));
        let after_ns = timed.then(|| whole(total.after));
        let change_ns = before_ns
            .zip(after_ns)
            .map(|(before, after)| difference(before, after));
        let causes = self.causes();
        let found = causes
            .iter()
            .filter(|one| one.cause != Cause::Unknown)
            .map(|one| one.change_ns);
        let explained_ns = change_ns
            .filter(|_| !causes.is_empty())
            .map(|_| found.sum::<i64>());
        let units = |side: usize| -> Option<f64> {
            let sum: f64 = self.runs[side].iter().map(|run| run.units).sum();
            (self.unit != super::WHOLE).then_some(sum)
        };
        let made = self.made();
        let mut comparison = Comparison {
            before: self.before.name.clone(),
            after: self.after.name.clone(),
            unit: self.unit.clone(),
            before_ns,
            after_ns,
            change_ns,
            interval_ns: total
                .interval
                .filter(|_| timed)
                .map(|ends| ends.map(|end| end.round() as i64)),
            significant: total.significant,
            before_n: count(self.runs[0]),
            after_n: count(self.runs[1]),
            causes,
            noise_n: count(self.runs[2]),
            compared: self.what,
            verdict: Vec::new(),
            trade: None,
            method: words::method(&self.changes),
            seed: chance::SEED,
            p: total.p,
            run_to_run: self.changes.variation,
            before_units: units(0),
            after_units: units(1),
            explained_ns,
            unexplained_ns: change_ns
                .zip(explained_ns)
                .map(|(change, explained)| change - explained),
            amounts: self.amounts(),
            made: made.iter().map(|(_, change)| change.clone()).collect(),
            differences: differences(self.before, self.after),
            notes: self.notes(),
            stacks: self.stacks,
            hosts: Vec::new(),
            programs: Vec::new(),
        };
        // Of what tells of no time, the whole is always the same; its parts may differ.
        if !timed {
            let found = comparison.amounts.iter().filter_map(|one| one.significant);
            comparison.significant = found.reduce(|one, other| one || other);
            comparison.p = None;
            comparison.run_to_run = None;
        }
        let trade = Trade::of(&comparison, &made);
        comparison.trade = trade.sentence();
        comparison.verdict = words::verdict(
            &comparison,
            &trade,
            self.changes.basis,
            self.changes.interval_within,
        );
        comparison
    }

    /// Parts that are causes.
    fn causes(&self) -> Vec<CauseChange> {
        let parts = self.changes.parts.iter();
        let mut causes: Vec<CauseChange> = parts
            .filter_map(|(part, change)| {
                let cause = Cause::from_id(&part.name).filter(|_| self.measure == Measure::Ns)?;
                let (before_ns, after_ns) = (whole(change.before), whole(change.after));
                Some(CauseChange {
                    cause,
                    before_ns,
                    after_ns,
                    change_ns: difference(before_ns, after_ns),
                    significant: change.significant,
                    p: change.p,
                })
            })
            .filter(|one| one.before_ns > 0 || one.after_ns > 0)
            .collect();
        causes.sort_by_key(|one| {
            let size = one.before_ns.max(one.after_ns);
            (std::cmp::Reverse((one.change_ns.unsigned_abs(), size)), one.cause)
        });
        causes
    }

    /// Parts that are none.
    fn amounts(&self) -> Vec<AmountChange> {
        let (parts, measure, samples) = match &self.frames {
            Some((changes, samples)) => (&changes.parts, Measure::Ns, Some(*samples)),
            None if matches!(self.what, Compared::Recordings | Compared::Times) => return Vec::new(),
            None => (&self.changes.parts, self.measure, self.samples()),
        };
        let names: BTreeSet<(&str, Option<Measure>)> = parts
            .keys()
            .map(|part| (part.name.as_str(), part.measure))
            .collect();
        let of = |name: &str, measure: Option<Measure>, within: bool| {
            let name = name.to_owned();
            parts.get(&Part {
                name,
                within,
                measure,
            })
        };
        let whole = match &self.frames {
            Some((changes, _)) => changes.total,
            None => self.changes.total,
        };
        let amounts = names.into_iter().filter_map(|(name, own_measure)| {
            let (own, with) = (of(name, own_measure, false)?, of(name, own_measure, true));
            let largest = with.unwrap_or(own);
            let change = |one: &Change| {
                let change = one.after - one.before;
                if change.abs() <= ROUNDING * one.after.max(one.before) {
                    0.0
                } else {
                    change
                }
            };
            let scattered = samples.map(|samples| scatters(largest, whole, samples));
            let significant = with.and_then(|with| with.significant).or(own.significant);
            Some(AmountChange {
                name: cut(name),
                measure: own_measure.unwrap_or(measure),
                before: own.before,
                after: own.after,
                change: change(own),
                within: with.map(|with| [with.before, with.after, change(with)]),
                presence: presence(largest.before, largest.after),
                significant: significant.filter(|_| self.what != Compared::Figures || self.runs[0].len() > 1),
                within_sampling: scattered,
            })
        });
        let mut amounts: Vec<AmountChange> = amounts.filter(|one| size(one) > 0.0).collect();
        // Figures are in many units: the one that changed most for what it is comes first.
        let by_part = self.what == Compared::Figures;
        let key = |one: &AmountChange| {
            let own = one.change.abs();
            if by_part {
                own / one.before.abs().max(one.after.abs())
            } else {
                own
            }
        };
        amounts.sort_by(|a, b| {
            let first = key(b).total_cmp(&key(a));
            first
                .then_with(|| size(b).total_cmp(&size(a)))
                .then_with(|| a.name.cmp(&b.name))
        });
        amounts.truncate(LISTED);
        amounts
    }

    /// Samples of one profile each, which scatter by themselves.
    fn samples(&self) -> Option<[f64; 2]> {
        let single = self.runs[0].len() == 1 && self.runs[1].len() == 1;
        let counted = |side: &Side| {
            side.sources
                .iter()
                .any(|source| source.measure == Measure::Samples)
        };
        (single && counted(self.before) && counted(self.after))
            .then(|| [self.runs[0][0].total, self.runs[1][0].total])
    }

    /// What was made anew, for each unit of work.
    fn made(&self) -> Vec<(Made, AmountChange)> {
        let rates = |side: &Side, runs: &[Run]| -> BTreeMap<Made, f64> {
            let mut all: BTreeMap<Made, f64> = BTreeMap::new();
            let units: f64 = runs.iter().map(|run| run.units).sum();
            for source in &side.sources {
                for (what, count) in source.runs.iter().flat_map(|run| &run.made) {
                    let scale = if source.what.is_some() && units > 0.0 {
                        units
                    } else {
                        1.0
                    };
                    *all.entry(what.clone()).or_default() += count / scale;
                }
            }
            all
        };
        let (before, after) = (rates(self.before, self.runs[0]), rates(self.after, self.runs[1]));
        // Where one side's sources count nothing at all, that is no nought.
        if before.is_empty() || after.is_empty() {
            return Vec::new();
        }
        let all: BTreeSet<&Made> = before.keys().chain(after.keys()).collect();
        let of = |side: &BTreeMap<Made, f64>, what: &Made| side.get(what).copied().unwrap_or(0.0);
        let mut made: Vec<(Made, AmountChange)> = all
            .into_iter()
            .map(|what| {
                let (before, after) = (of(&before, what), of(&after, what));
                let change = AmountChange {
                    name: what.to_string(),
                    measure: Measure::Count,
                    before,
                    after,
                    change: after - before,
                    within: None,
                    presence: presence(before, after),
                    significant: None,
                    within_sampling: None,
                };
                (what.clone(), change)
            })
            .filter(|(_, one)| one.change.abs() > ROUNDING * one.before.max(one.after))
            .collect();
        made.sort_by(|(_, a), (_, b)| {
            b.change
                .abs()
                .total_cmp(&a.change.abs())
                .then_with(|| a.name.cmp(&b.name))
        });
        made.truncate(LISTED);
        made
    }

    fn notes(&self) -> Vec<String> {
        let sources = self.before.sources.iter().chain(&self.after.sources);
        let mut notes: Vec<String> = sources.flat_map(|source: &Source| source.notes.clone()).collect();
        if self.frames.is_some() {
            notes.push("the shares of the profiles are scaled to the time from `time`".to_owned());
        }
        if self.changes.basis == Basis::OtherRuns {
            notes.push("AFTER is taken to vary as BEFORE and --noise do".to_owned());
        }
        notes
    }
}

/// The name, of which the end is left out where it is longer than anybody reads.
fn cut(name: &str) -> String {
    match name.char_indices().nth(NAME) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

fn size(one: &AmountChange) -> f64 {
    let within = one.within.map_or(0.0, |within| within[2].abs());
    one.change.abs().max(within)
}

/// Whether two parts of so many samples, each taken for itself, are no farther apart than they would scatter.
fn scatters(part: &Change, whole: Change, samples: [f64; 2]) -> bool {
    let share = |part: f64, whole: f64| {
        if whole > 0.0 {
            (part / whole).clamp(0.0, 1.0)
        } else {
            0.0
        }
    };
    let (a, b) = (share(part.before, whole.before), share(part.after, whole.after));
    let all = samples[0] + samples[1];
    if samples[0] <= 0.0 || samples[1] <= 0.0 {
        return true;
    }
    let pooled = (a * samples[0] + b * samples[1]) / all;
    let error = (pooled * (1.0 - pooled) * (1.0 / samples[0] + 1.0 / samples[1])).sqrt();
    (a - b).abs() <= SCATTER * error
}

fn presence(before: f64, after: f64) -> Presence {
    match () {
        () if before == 0.0 && after > 0.0 => Presence::New,
        () if after == 0.0 && before > 0.0 => Presence::Gone,
        () => Presence::Both,
    }
}

/// What else is not the same on both sides.
fn differences(before: &Side, after: &Side) -> Vec<Difference> {
    let of = |side: &Side| -> BTreeMap<String, BTreeSet<String>> {
        let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (what, is) in side.sources.iter().flat_map(|source| &source.facts) {
            all.entry(what.clone()).or_default().insert(is.clone());
        }
        all
    };
    let (before, after) = (of(before), of(after));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let said = |side: &BTreeMap<String, BTreeSet<String>>, what: &String| match side.get(what) {
        Some(all) => all.iter().cloned().collect::<Vec<_>>().join(", "),
        None => "unknown".to_owned(),
    };
    // A library's build is known once one of its frames was seen: what one side does not tell is no difference.
    let one_sided =
        |what: &str| what.starts_with(BUILD) && !(before.contains_key(what) && after.contains_key(what));
    names
        .into_iter()
        .filter(|what| before.get(*what) != after.get(*what) && !one_sided(what))
        .map(|what| Difference {
            what: what.clone(),
            before: cut(&said(&before, what)),
            after: cut(&said(&after, what)),
        })
        .collect()
}

fn whole(amount: f64) -> Ns {
    amount.max(0.0).round() as Ns
}

fn difference(before: Ns, after: Ns) -> i64 {
    let limited = |ns: Ns| i64::try_from(ns).unwrap_or(i64::MAX);
    limited(after).saturating_sub(limited(before))
}

fn count(runs: &[Run]) -> u32 {
    u32::try_from(runs.len()).unwrap_or(u32::MAX)
}
