//! What got slower between BEFORE and AFTER, by how much for each unit of work, and whether that is more than chance.
//!
//! In: [`Source`]s of both sides. Out: a [`Comparison`], or in one sentence why there is none. The arithmetic is
//! [`runs`]'s, chance is [`significance`]'s, the sentences are [`words`]'s.

pub mod artefacts;
mod build;
pub(crate) mod chance;
pub mod frames;
pub mod groups;
pub mod made;
mod names;
pub mod paired;
pub mod runs;
pub mod significance;
pub mod source;
pub mod stacks;
pub(crate) mod student;
mod trade;
mod within;
mod words;

#[cfg(test)]
mod tests;

pub(crate) use names::normal as normal_name;

use holdup_model::report::{Compared, Comparison, Measure, StackTree};
use runs::{Run, Sides};
use source::{DUMP, Measured, REPORT, REQUEST, RUN, SECOND, Source, WHOLE};
use std::collections::BTreeSet;

/// BEFORE or AFTER.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Side {
    /// What it is called: the names of its files.
    pub name: String,
    /// What is in them.
    pub sources: Vec<Source>,
}

/// For which unit of work.
#[derive(Debug, Clone, PartialEq)]
pub enum Per {
    /// One that the sources count.
    Counted(String),
    /// So many in each run.
    Given {
        /// What they are called.
        unit: String,
        /// In each of BEFORE's, and of noise.
        before: f64,
        /// In each of AFTER's.
        after: f64,
    },
}

/// Why two sides can't be compared, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incomparable(pub String);

/// Compares.
///
/// # Errors
/// When they are of different kinds, or have no unit of work in common.
pub fn compare(
    before: &Side,
    after: &Side,
    noise: &[Source],
    per: Option<&Per>,
) -> Result<Comparison, Incomparable> {
    let what = common(before, after)?;
    let whole = match what {
        What::One(what) | What::Timed(what) => what,
    };
    let of = |side: &[Source], what: Compared| -> Vec<Measured> {
        let own = side.iter().filter(|source| source.what == Some(what));
        own.flat_map(|source| source.runs.iter().cloned()).collect()
    };
    let measured = if let What::Timed(_) = what {
        Compared::Times
    } else {
        whole
    };
    let three = [&before.sources[..], &after.sources, noise].map(|side| {
        let runs = of(side, measured);
        if measured == Compared::Dumps {
            series(runs)
        } else {
            runs
        }
    });
    if !noise.is_empty() && three[2].is_empty() {
        return Err(Incomparable(format!(
            "--noise has nothing of what BEFORE is, {}; give more of the same kind",
            kind(measured)
        )));
    }
    let (unit, [before_runs, after_runs, noise_runs]) = scaled(&three, measured, per)?;
    let changes = runs::compare(Sides {
        before: &before_runs,
        after: &after_runs,
        noise: &noise_runs,
    });
    let mut built = build::Built {
        before,
        after,
        what: whole,
        unit,
        measure: measure(before, measured, per),
        runs: [&before_runs, &after_runs, &noise_runs],
        changes,
        frames: None,
        stacks: None,
    };
    if let What::Timed(profiles) = what {
        let rate = [built.changes.total.before, built.changes.total.after];
        let [one, other] = [&before.sources[..], &after.sources].map(|side| of(side, profiles));
        let scale = |runs: Vec<Measured>, rate: f64| -> Vec<Run> {
            let units = |run: &Measured| if rate > 0.0 { run.run.total / rate } else { 0.0 };
            runs.iter().map(|run| run.of(units(run))).collect()
        };
        let (one, other) = (scale(one, rate[0]), scale(other, rate[1]));
        let sides = Sides {
            before: &one,
            after: &other,
            noise: &[],
        };
        built.frames = Some((runs::compare(sides), [one[0].total, other[0].total]));
    }
    built.stacks = picture(&built, what);
    Ok(built.finish())
}

/// Both sides' stacks, for each unit of work.
fn picture(built: &build::Built<'_>, what: What) -> Option<StackTree> {
    let sides = [&built.before.sources[..], &built.after.sources];
    let units = |side: usize| built.runs[side].iter().map(|run| run.units).sum::<f64>();
    match what {
        What::One(_) => stacks::tree(sides, [units(0), units(1)], built.measure),
        // So many samples are so much time.
        What::Timed(_) => {
            let (changes, _) = built.frames.as_ref()?;
            let [samples, time] = [changes.total, built.changes.total];
            let own = |side: &Side| -> f64 {
                let of = side
                    .sources
                    .iter()
                    .filter(|one| one.what == Some(Compared::Profiles));
                of.flat_map(|one| &one.runs).map(|run| run.run.total).sum()
            };
            let [one, other] = [own(built.before), own(built.after)];
            let per = |samples: f64, time: f64| if time > 0.0 { samples / time } else { 0.0 };
            let found = samples.before > 0.0 && samples.after > 0.0;
            let units = [per(one, time.before), per(other, time.after)];
            found.then(|| stacks::tree(sides, units, Measure::Ns)).flatten()
        }
    }
}

/// What is compared: things of one kind; or profiles with the time that a unit of work took, by `time`.
#[derive(Debug, Clone, Copy)]
enum What {
    One(Compared),
    Timed(Compared),
}

fn common(before: &Side, after: &Side) -> Result<What, Incomparable> {
    let kinds = |side: &Side| -> BTreeSet<u8> {
        let all = side.sources.iter().filter_map(|source| source.what);
        all.map(|what| what as u8).collect()
    };
    let named = |side: &Side| -> String {
        let mut all: Vec<&str> = side
            .sources
            .iter()
            .filter_map(|source| source.what)
            .map(kind)
            .collect();
        all.sort_unstable();
        all.dedup();
        all.join(" and ")
    };
    for (name, side) in [("BEFORE", before), ("AFTER", after)] {
        if kinds(side).is_empty() {
            return Err(Incomparable(format!(
                "{name} ({}) has nothing that can be compared; what can be: recordings and reports of holdup, time, \
                 collapsed stacks and other profiles, strace -c, iostat and its kin, thread dumps",
                side.name
            )));
        }
    }
    if kinds(before) != kinds(after) {
        return Err(Incomparable(format!(
            "BEFORE is {}, AFTER is {}: give two of one kind",
            named(before),
            named(after)
        )));
    }
    let mut all: Vec<Compared> = before.sources.iter().filter_map(|source| source.what).collect();
    all.sort_by_key(|what| *what as u8);
    all.dedup();
    match all[..] {
        [one] => Ok(What::One(one)),
        [Compared::Times, Compared::Profiles] => Ok(What::Timed(Compared::Profiles)),
        _ => Err(Incomparable(format!(
            "BEFORE and AFTER are {}: compare one kind at a time (time goes with a profile)",
            named(before)
        ))),
    }
}

fn kind(what: Compared) -> &'static str {
    match what {
        Compared::Recordings => "recordings of holdup",
        Compared::Times => "times",
        Compared::Profiles => "profiles",
        Compared::Calls => "tables of calls",
        Compared::Figures => "figures over time",
        Compared::Dumps => "thread dumps",
    }
}

/// Dumps of one series are one run, whichever files they are in.
fn series(dumps: Vec<Measured>) -> Vec<Measured> {
    let series = dumps.into_iter().reduce(|mut series, dump| {
        series.append(dump);
        series
    });
    series.into_iter().collect()
}

/// All runs for one unit of work: its name, and BEFORE's, AFTER's and noise.
fn scaled(
    three: &[Vec<Measured>; 3],
    what: Compared,
    per: Option<&Per>,
) -> Result<(String, [Vec<Run>; 3]), Incomparable> {
    let every = |unit: &str| -> Option<[Vec<Run>; 3]> {
        let of =
            |side: &Vec<Measured>| -> Option<Vec<Run>> { side.iter().map(|run| run.per(unit)).collect() };
        Some([of(&three[0])?, of(&three[1])?, of(&three[2])?])
    };
    match per {
        Some(Per::Given { unit, before, after }) => {
            let of = |side: usize, units: f64| three[side].iter().map(|run| run.of(units)).collect();
            Ok((unit.clone(), [of(0, *before), of(1, *after), of(2, *before)]))
        }
        Some(Per::Counted(unit)) => every(unit).map(|runs| (unit.clone(), runs)).ok_or_else(|| {
            let without = ["BEFORE", "AFTER", "--noise"].into_iter().zip(three);
            let without = without.filter(|(_, side)| side.iter().any(|run| run.per(unit).is_none()));
            let names: Vec<&str> = without.map(|(name, _)| name).collect();
            Incomparable(format!(
                "{} counts no {unit}s: give how many there were, --per {unit}=BEFORE,AFTER",
                names.join(" and ")
            ))
        }),
        None => {
            let units: &[&str] = match what {
                Compared::Recordings => &[REQUEST, RUN, SECOND],
                Compared::Times => &[REQUEST, RUN],
                Compared::Calls => &[RUN],
                Compared::Profiles => &[WHOLE],
                Compared::Dumps => &[DUMP],
                Compared::Figures => &[REPORT],
            };
            let found = units
                .iter()
                .find_map(|unit| Some(((*unit).to_owned(), every(unit)?)));
            found.ok_or_else(|| {
                Incomparable(
                    "BEFORE and AFTER have no unit of work in common: give how many there were in each, --per BEFORE,AFTER"
                        .to_owned(),
                )
            })
        }
    }
}

/// What amounts count.
fn measure(before: &Side, what: Compared, per: Option<&Per>) -> Measure {
    let own = before.sources.iter().find(|source| source.what == Some(what));
    match own.map_or(Measure::Count, |source| source.measure) {
        Measure::Samples | Measure::Ns if what == Compared::Profiles && per.is_none() => Measure::Share,
        measure => measure,
    }
}
