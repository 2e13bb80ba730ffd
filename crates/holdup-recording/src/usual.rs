//! What is usual on a machine, by hour and program: kept beside the segments, which are gone after a day.
//!
//! In: of each segment how much thread time each program had of each cause. Out: whether some minutes were as usual at their hour, and how far
//! above it they were. Kept is the highest rate of a day in each hour, for some days, on a scale of half octaves: a job that runs at three at
//! night is usual then and not at noon, however short it is. The usual is the second highest of these days, so that one bad day is not
//! what counts as usual from then on; hours next to it count too, for a job may come a little early. Week-ends have hours of their own. An
//! hour that was seen on fewer than [`MIN_DAYS`] days is held against all hours of all days. Only more is unusual: what a program no longer
//! does, nobody waits for. The day itself does not count as usual.

mod file;

pub use file::{FILE, learn, read};

use crate::Segment;
use holdup_evidence::{Cause, Ns};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Hours of a day, and of the two kinds of days.
const HOURS: u8 = 24;
const SLOTS: usize = 48;

/// Days of an hour that are kept.
const KEPT_DAYS: usize = 7;

/// Days on which an hour was seen from which it stands for itself.
const MIN_DAYS: usize = 3;

/// Days that a program was seen on from which all its hours say what is usual.
const MIN_DAYS_OF_ALL: usize = 1;

/// Hours of other days that a program's history must have, to stand for an hour that was never seen.
const MIN_HOURS_OF_ALL: usize = 18;

/// How many times the usual is unusual: load doubles with a deployment or a good day, and a scale of half octaves is off by up to 1.41.
const MIN_TIMES: f64 = 4.0;

/// The least rate that is worth a word: a quarter of a thread's time.
const MIN_RATE: f64 = 250_000_000.0;

/// What the usual is taken for at least, nanoseconds a second: next to nothing is no measure of anything.
const LEAST_USUAL: f64 = 10_000_000.0;

/// Rates below are nothing; this is where the scale begins.
const LEAST_RATE: f64 = 1_000_000.0;

/// Steps of the scale in an octave, and the last step.
const STEPS: f64 = 2.0;
const MAX_STEP: u8 = 60;

/// Programs that are kept, those that were there last.
const MAX_PROGRAMS: usize = 300;

/// Nanoseconds in a second, seconds in a day.
const SECOND: i64 = 1_000_000_000;
const DAY_SECONDS: i64 = 86_400;
const HOUR_SECONDS: i64 = 3_600;

/// When something was, by the machine's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct When {
    /// Days since 1970.
    pub day: u32,
    /// The hour.
    pub hour: u8,
    /// Whether that day is a Saturday or a Sunday.
    pub weekend: bool,
}

impl When {
    /// Of a Unix time, nanoseconds, so many seconds east of UTC.
    #[must_use]
    pub fn of(unix_ns: i64, offset: i32) -> When {
        let local = unix_ns.div_euclid(SECOND) + i64::from(offset);
        let day = local.div_euclid(DAY_SECONDS);
        When {
            day: u32::try_from(day).unwrap_or(0),
            hour: (local.rem_euclid(DAY_SECONDS) / HOUR_SECONDS) as u8,
            // The first of January 1970 was a Thursday.
            weekend: matches!(day.rem_euclid(7), 2 | 3),
        }
    }

    fn slot(self, hour: u8) -> u8 {
        hour % HOURS + if self.weekend { HOURS } else { 0 }
    }

    /// Its hour, and those next to it.
    fn near(self) -> [u8; 3] {
        [HOURS - 1, 0, 1].map(|by| self.slot(self.hour + by))
    }
}

/// Thread time by program and cause, nanoseconds a second.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Loads(pub BTreeMap<(String, Cause), f64>);

impl Loads {
    /// Those of a segment.
    #[must_use]
    pub fn of(segment: &Segment) -> Loads {
        let seconds = segment.head.length.max(1) as f64 / SECOND as f64;
        let mut loads = BTreeMap::new();
        for thread in &segment.attributed.threads {
            for (cause, tally) in &thread.causes {
                if !matches!(cause, Cause::Idle | Cause::Unknown) {
                    let key = (thread.name.process.clone(), *cause);
                    *loads.entry(key).or_default() += tally.ns as f64 / seconds;
                }
            }
        }
        Loads(loads)
    }
}

/// Highest rates of days, as steps of the scale; latest last.
type Days = Vec<(u32, u8)>;

/// A program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Program {
    first_day: u32,
    last_day: u32,
    causes: BTreeMap<Cause, BTreeMap<u8, Days>>,
}

/// What is usual.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usual {
    /// On which days each hour was seen.
    hours: BTreeMap<u8, Vec<u32>>,
    programs: BTreeMap<String, Program>,
}

/// What a rate is held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The same hour of so many days.
    Hour(usize),
    /// All hours of so many days.
    AllHours(usize),
}

/// A program that had more of a cause than usual.
#[derive(Debug, Clone, PartialEq)]
pub struct Above {
    /// The program.
    pub program: String,
    /// The cause.
    pub cause: Cause,
    /// Nanoseconds a second.
    pub rate: Ns,
    /// The same of what is usual; 0 where that is next to nothing.
    pub usual: Ns,
    /// How many times the usual that is, or how many times next to nothing.
    pub times: f64,
    /// What it is held against.
    pub basis: Basis,
}

/// How some minutes were.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Judgement {
    /// What was unusual, most first.
    pub above: Vec<Above>,
    /// Programs and causes that were worth a word, and as usual.
    pub as_usual: usize,
    /// The same where too little is known of the program to say.
    pub unknown: usize,
    /// On how many days this hour was seen.
    pub days: usize,
}

fn step(rate: f64) -> u8 {
    match rate >= LEAST_RATE {
        true => (((rate / LEAST_RATE).log2() * STEPS) as u8)
            .saturating_add(1)
            .min(MAX_STEP),
        false => 0,
    }
}

/// The upper end of a step.
fn rate(step: u8) -> f64 {
    match step {
        0 => 0.0,
        step => LEAST_RATE * (f64::from(step) / STEPS).exp2(),
    }
}

/// The second highest, or the highest of one.
fn second_highest(mut all: Vec<u8>) -> u8 {
    all.sort_unstable_by(|one, other| other.cmp(one));
    all.get(1).or(all.first()).copied().unwrap_or(0)
}

impl Usual {
    /// Learns from a segment.
    pub fn learn(&mut self, when: When, loads: &Loads) {
        let slot = when.slot(when.hour);
        let seen = self.hours.entry(slot).or_default();
        if !seen.contains(&when.day) {
            seen.push(when.day);
            seen.drain(..seen.len().saturating_sub(KEPT_DAYS));
        }
        for ((name, cause), rate) in &loads.0 {
            let program = self.programs.entry(name.clone()).or_insert_with(|| Program {
                first_day: when.day,
                ..Program::default()
            });
            program.last_day = when.day;
            let step = step(*rate);
            if step == 0 {
                continue;
            }
            let days = program.causes.entry(*cause).or_default().entry(slot).or_default();
            match days.iter_mut().find(|(day, _)| *day == when.day) {
                Some((_, highest)) => *highest = step.max(*highest),
                None => {
                    days.push((when.day, step));
                    days.drain(..days.len().saturating_sub(KEPT_DAYS));
                }
            }
        }
        while self.programs.len() > MAX_PROGRAMS {
            let oldest = self
                .programs
                .iter()
                .min_by_key(|(name, one)| (one.last_day, *name));
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else {
                break;
            };
            self.programs.remove(&oldest);
        }
    }

    /// How some minutes were, if what is known is of other days.
    #[must_use]
    pub fn judge(&self, when: When, loads: &Loads) -> Judgement {
        let mut judged = Judgement {
            days: self.known(when.slot(when.hour), when.day, 0).len(),
            ..Judgement::default()
        };
        for ((name, cause), rate) in loads.0.iter().filter(|(_, rate)| **rate >= MIN_RATE) {
            let Some((usual, basis)) = self.usual(when, name, *cause) else {
                judged.unknown += 1;
                continue;
            };
            let times = rate / usual.max(LEAST_USUAL);
            if times < MIN_TIMES {
                judged.as_usual += 1;
                continue;
            }
            judged.above.push(Above {
                program: name.clone(),
                cause: *cause,
                rate: *rate as Ns,
                usual: if usual >= LEAST_USUAL { usual as Ns } else { 0 },
                times,
                basis,
            });
        }
        judged.above.sort_by_key(|one| std::cmp::Reverse(one.rate));
        judged
    }

    /// The other days on which an hour was seen, from the first day of a program on.
    fn known(&self, slot: u8, today: u32, first_day: u32) -> Vec<u32> {
        let days = self.hours.get(&slot).into_iter().flatten();
        days.copied()
            .filter(|day| *day != today && *day >= first_day)
            .collect()
    }

    /// What a program usually has of a cause at that hour; `None` where that is not known.
    fn usual(&self, when: When, name: &str, cause: Cause) -> Option<(f64, Basis)> {
        let program = self.programs.get(name)?;
        let hours = program.causes.get(&cause);
        let of_hour = |slot: u8| hours.and_then(|hours| hours.get(&slot)).into_iter().flatten();
        let others = |slot: u8| of_hour(slot).filter(|(day, _)| *day != when.day);
        let days = self
            .known(when.slot(when.hour), when.day, program.first_day)
            .len();
        if days >= MIN_DAYS {
            let near = when.near().map(|slot| {
                let known = self.known(slot, when.day, program.first_day).len();
                let mut steps: Vec<u8> = others(slot).map(|(_, step)| *step).collect();
                // On the other days it had nothing of it.
                steps.resize(known.max(steps.len()), 0);
                second_highest(steps)
            });
            let highest = near.into_iter().max().unwrap_or(0);
            return Some((rate(highest), Basis::Hour(days)));
        }
        let all: Vec<u32> = (0..SLOTS as u8)
            .flat_map(|slot| self.known(slot, when.day, program.first_day))
            .collect();
        let distinct = all.iter().collect::<BTreeSet<_>>().len();
        if distinct < MIN_DAYS_OF_ALL || all.len() < MIN_HOURS_OF_ALL {
            return None;
        }
        let highest = (0..SLOTS as u8).flat_map(others).map(|(_, step)| *step).max();
        Some((rate(highest.unwrap_or(0)), Basis::AllHours(distinct)))
    }
}

#[cfg(test)]
mod tests;
