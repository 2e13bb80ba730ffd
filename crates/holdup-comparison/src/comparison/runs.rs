//! Runs with amounts for each unit of work, and what becomes of them between BEFORE and AFTER.
//!
//! In: [`Run`]s of any kind. Out: [`Changes`]: the whole and its parts, each with what chance has to say of it.

use super::significance::{self, Amounts, Basis, Single, mean};
use super::within::{self, Stretch};
use holdup_model::report::Measure;
use std::collections::{BTreeMap, BTreeSet};

/// Parts that are smaller than this share of the whole, both sides together, are not tested: each line more makes it
/// harder for all others to be distinguished from chance, and nobody asks for these.
pub(super) const LEAST_SHARE: f64 = 0.005;

/// Parts that are tested: the largest, both sides together, so that the choice does not favour what differs.
pub(super) const MAX_PARTS: usize = 50;

/// A part of a run's amount.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// Whether it counts all that it called too, so that parts overlap.
    pub within: bool,
    /// What it counts, where that is not what the whole counts.
    pub measure: Option<Measure>,
}

impl Part {
    /// A part beside the others.
    #[must_use]
    pub fn own(name: impl Into<String>) -> Part {
        Part {
            name: name.into(),
            within: false,
            measure: None,
        }
    }

    /// A part that counts something else than the whole does.
    #[must_use]
    pub fn measured(name: impl Into<String>, measure: Measure) -> Part {
        Part {
            measure: Some(measure),
            ..Part::own(name)
        }
    }
}

/// One run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Run {
    /// Units of work done in it; above 0.
    pub units: f64,
    /// The amount in all.
    pub total: f64,
    /// By part.
    pub parts: BTreeMap<Part, f64>,
    /// Units and amount of stretches of its time that follow each other; empty where they are not known.
    pub stretches: Vec<Stretch>,
}

impl Run {
    fn rate(&self, amount: f64) -> f64 {
        if self.units > 0.0 {
            amount / self.units
        } else {
            0.0
        }
    }

    fn of(&self, part: &Part) -> f64 {
        self.rate(self.parts.get(part).copied().unwrap_or(0.0))
    }
}

/// What is compared.
#[derive(Debug, Clone, Copy)]
pub struct Sides<'a> {
    /// BEFORE's runs; at least one.
    pub before: &'a [Run],
    /// AFTER's; at least one.
    pub after: &'a [Run],
    /// More runs like BEFORE.
    pub noise: &'a [Run],
}

/// An amount for each unit of work, on both sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// BEFORE's: the mean of its runs.
    pub before: f64,
    /// AFTER's.
    pub after: f64,
    /// Where the true change lies, with 95 %.
    pub interval: Option<[f64; 2]>,
    /// How likely by chance, corrected for all lines.
    pub p: Option<f64>,
    /// Whether it is more than chance.
    pub significant: Option<bool>,
}

/// All that changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Changes {
    /// The whole.
    pub total: Change,
    /// Its parts.
    pub parts: BTreeMap<Part, Change>,
    /// How chance was reported.
    pub basis: Basis,
    /// How much runs vary.
    pub variation: Option<f64>,
    /// Whether the interval of the whole is of what happens within one run each.
    pub interval_within: bool,
}

/// Compares.
#[must_use]
pub fn compare(sides: Sides<'_>) -> Changes {
    let amounts = |of: &dyn Fn(&Run) -> f64| Amounts {
        before: sides.before.iter().map(of).collect(),
        after: sides.after.iter().map(of).collect(),
        noise: sides.noise.iter().map(of).collect(),
    };
    let total = amounts(&|run| run.rate(run.total));
    let every = sides.before.iter().chain(sides.after);
    let names: BTreeSet<&Part> = every.flat_map(|run| run.parts.keys()).collect();
    let parts: Vec<(&Part, Amounts)> = names
        .into_iter()
        .map(|part| (part, amounts(&|run| run.of(part))))
        .collect();
    let tested = tested(&total, &parts);
    let together: Vec<Amounts> = tested.iter().map(|at| parts[*at].1.clone()).collect();
    let by_key = significance::together(&together);
    let (single, significant) = significance::whole(&total);
    let mut whole = change(&total, single, significant);
    let by_key: BTreeMap<usize, (Single, Option<bool>)> = tested.into_iter().zip(by_key).collect();
    let parts = parts.iter().enumerate().map(|(at, (part, amounts))| {
        let (single, significant) = by_key.get(&at).copied().unwrap_or((Single::NOTHING, None));
        ((*part).clone(), change(amounts, single, significant))
    });
    let parts = parts.collect();
    let inside = match (sides.before, sides.after) {
        ([before], [after]) if whole.interval.is_none() => {
            within::interval(&before.stretches, &after.stretches)
        }
        _ => None,
    };
    whole.interval = whole.interval.or(inside);
    Changes {
        total: whole,
        parts,
        basis: significance::basis(sides.before.len(), sides.after.len(), sides.noise.len()),
        variation: significance::variation(&total),
        interval_within: inside.is_some(),
    }
}

/// Which parts are tested, by their place.
fn tested(total: &Amounts, parts: &[(&Part, Amounts)]) -> Vec<usize> {
    let size = |amounts: &Amounts| mean(&amounts.before) + mean(&amounts.after);
    let least = LEAST_SHARE * size(total);
    let mut large: Vec<usize> = (0..parts.len())
        .filter(|at| {
            let size = size(&parts[*at].1);
            size > 0.0 && size >= least
        })
        .collect();
    large.sort_by(|a, b| size(&parts[*b].1).total_cmp(&size(&parts[*a].1)));
    large.truncate(MAX_PARTS);
    large
}

fn change(amounts: &Amounts, single: Single, significant: Option<bool>) -> Change {
    Change {
        before: mean(&amounts.before),
        after: mean(&amounts.after),
        interval: single.interval,
        p: single.p,
        significant,
    }
}

#[cfg(test)]
mod tests;
