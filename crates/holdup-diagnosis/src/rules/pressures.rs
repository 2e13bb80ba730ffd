//! Pressure, as rules ask about it: for what share of the time tasks stood still for want of something.
//!
//! In: [`Observed`]. Out: the worst [`Pressure`] of a metric. The kernel's own files have averages over ten seconds, one
//! minute and five; sar has one of each interval.

use super::figures::{self, Intervals, often};
use holdup_evidence::observed::{Metric, Point};
use holdup_evidence::{Ns, Observed};
use holdup_model::finding::Evidence;

/// The shortest average of the kernel's files, nanoseconds. It follows a burst, so it must be as much higher to count alone.
const SHORT_NS: Ns = 10_000_000_000;
const BURST: f64 = 1.5;

/// The pressure of the machine or of a cgroup.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pressure<'a> {
    intervals: Intervals<'a>,
    /// The highest figure.
    pub(crate) worst: &'a Point,
}

/// The highest pressure of a metric that is at least so high for long enough; the machine's before a cgroup's.
pub(crate) fn high(observed: &Observed, metric: Metric, least: f64) -> Option<Pressure<'_>> {
    let mut all: Vec<Pressure<'_>> = figures::of(observed, metric)
        .filter_map(|intervals| {
            let worst = intervals.series.greatest()?;
            is_high(&intervals, least).then_some(Pressure { intervals, worst })
        })
        .collect();
    all.sort_by(|a, b| {
        let key = |one: &Pressure<'_>| one.of().is_empty();
        let by_value = b.worst.value.total_cmp(&a.worst.value);
        key(b).cmp(&key(a)).then(by_value)
    });
    all.first().copied()
}

/// The highest figure of a metric that there is at all.
pub(crate) fn most(observed: &Observed, metric: Metric) -> Option<f64> {
    let values = figures::of(observed, metric).map(|intervals| intervals.most());
    values.reduce(f64::max)
}

fn is_high(intervals: &Intervals<'_>, least: f64) -> bool {
    let averages = intervals
        .points()
        .any(|point| point.over.is_some_and(|over| over > SHORT_NS));
    let long = |point: &&Point| averages && point.over.is_some_and(|over| over > SHORT_NS);
    if intervals.points().filter(long).any(|point| point.value >= least) {
        return true;
    }
    let short: Vec<f64> = intervals
        .points()
        .filter(|point| !long(point))
        .map(|point| point.value)
        .collect();
    let least = if averages { least * BURST } else { least };
    let high = short.iter().filter(|value| **value >= least).count();
    often(high, short.len())
}

impl Pressure<'_> {
    /// The cgroup, empty for the machine.
    pub(crate) fn of(&self) -> &str {
        self.intervals.of()
    }

    /// `, in cgroup /a`.
    pub(crate) fn place(&self) -> String {
        match self.of() {
            "" => String::new(),
            cgroup => format!(" in cgroup {cgroup}"),
        }
    }

    /// `71 % of the last minute`.
    pub(crate) fn words(&self) -> String {
        share_at(self.worst)
    }

    /// The averages of the reading in which it was highest, with their line.
    pub(crate) fn evidence(&self, what: &str) -> Evidence {
        let of_reading: Vec<String> = self
            .intervals
            .points()
            .filter(|point| point.quote == self.worst.quote)
            .map(share_at)
            .collect();
        self.intervals
            .evidence(format!("{what}{}: {}", self.place(), of_reading.join(", ")))
    }
}

fn share_at(point: &Point) -> String {
    const SECOND: Ns = 1_000_000_000;
    let share = format!("{:.0} %", point.value);
    match point.over.map(|over| over / SECOND) {
        Some(10) => format!("{share} of the last 10 s"),
        Some(60) => format!("{share} of the last minute"),
        Some(300) => format!("{share} of the last 5 minutes"),
        _ => format!("{share} of the time"),
    }
}
