//! Figures over time, as rules ask about them: what was so in how many intervals, and what else the same reports say.
//!
//! In: [`Observed`]. Out: [`Intervals`] of a series, without averages since boot. Figures are joined only within one
//! artefact and one report: what was measured together.

use holdup_evidence::Observed;
use holdup_evidence::observed::{Metric, Point, Series};
use holdup_model::finding::Evidence;

/// Values up to which each is reported; of more the median and the greatest are.
const EACH: usize = 6;

/// The intervals of a series.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Intervals<'a> {
    pub(crate) observed: &'a Observed,
    pub(crate) series: &'a Series,
}

/// All series of a metric that have intervals.
pub(crate) fn of(observed: &Observed, metric: Metric) -> impl Iterator<Item = Intervals<'_>> {
    observed
        .of(metric)
        .map(move |series| Intervals { observed, series })
        .filter(|intervals| intervals.count() > 0)
}

/// What a single CPU is called: some formats write its number alone.
pub(crate) fn cpu_name(of: &str) -> String {
    format!("CPU {}", of.trim_start_matches("cpu"))
}

/// Why a metric can't be judged: it is not there, or of the time since boot only.
pub(crate) fn missing(observed: &Observed, metric: Metric, what: &str) -> String {
    match observed.of(metric).next() {
        Some(_) => format!("{what} now: there is only the average since boot. A second report would show it"),
        None => what.to_owned(),
    }
}

/// Why a figure that may be of the time since boot rules nothing out.
pub(crate) fn doubted(what: &str) -> String {
    format!(
        "{what} now: the only report of top may cover the time since boot. A second one (`top -b -n2`) would \
         show it"
    )
}

/// Whether something was so often enough to matter: in more than one interval, or in all there are, and in a tenth of them.
pub(crate) fn often(how_many: usize, of_all: usize) -> bool {
    how_many > 0 && (how_many > 1 || of_all == 1) && how_many * 10 >= of_all
}

/// Values in words: `99, 90 and 48`; of many the median and the greatest.
pub(crate) fn span(values: &[f64], digits: usize) -> String {
    let one = |value: f64| format!("{value:.digits$}");
    match values {
        [] => String::new(),
        [value, rest @ ..] if rest.iter().all(|other| one(*other) == one(*value)) => one(*value),
        [all @ .., last] if values.len() <= EACH => {
            let all: Vec<String> = all.iter().map(|value| one(*value)).collect();
            format!("{} and {}", all.join(", "), one(*last))
        }
        _ => {
            let most = values.iter().copied().fold(f64::MIN, f64::max);
            format!("median {}, at most {}", one(median(values)), one(most))
        }
    }
}

/// The value in the middle; 0 of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// Their mean; 0 of none.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

impl<'a> Intervals<'a> {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.points().count()
    }

    /// Them.
    pub(crate) fn points(&self) -> impl Iterator<Item = &'a Point> + use<'a> {
        self.series.of_intervals()
    }

    /// What they are of.
    pub(crate) fn of(&self) -> &'a str {
        &self.series.of
    }

    /// Whether all of them may be of the time since boot, so that what is little in them is ruled out by nothing.
    pub(crate) fn doubtful(&self) -> bool {
        self.points().all(|point| point.perhaps_since_boot)
    }

    /// Their values.
    pub(crate) fn values(&self) -> Vec<f64> {
        self.points().map(|point| point.value).collect()
    }

    /// The reports whose value is at least this.
    pub(crate) fn from(&self, least: f64) -> Vec<u32> {
        let high = self.points().filter(|point| point.value >= least);
        high.map(|point| point.report).collect()
    }

    /// The greatest value.
    pub(crate) fn most(&self) -> f64 {
        self.series.greatest().map_or(0.0, |point| point.value)
    }

    /// Another metric of the same thing in the same artefact.
    pub(crate) fn beside(&self, metric: Metric) -> Option<Intervals<'a>> {
        self.other(metric, self.of())
    }

    /// A metric of something else in the same artefact; `""` is the machine.
    pub(crate) fn other(&self, metric: Metric, of: &str) -> Option<Intervals<'a>> {
        let (observed, source) = (self.observed, self.series.source);
        let found = observed
            .of(metric)
            .find(|series| series.source == source && series.of == of)?;
        let intervals = Intervals {
            observed,
            series: found,
        };
        (intervals.count() > 0).then_some(intervals)
    }

    /// The values in these reports, as far as there are any.
    pub(crate) fn in_reports(&self, reports: &[u32]) -> Vec<f64> {
        let points = reports.iter().filter_map(|report| self.series.in_report(*report));
        points
            .filter(|point| !point.since_boot)
            .map(|point| point.value)
            .collect()
    }

    /// Evidence about them, with the line of the greatest value.
    pub(crate) fn evidence(&self, text: impl Into<String>) -> Evidence {
        let quote = self.series.greatest().map(|point| &point.quote);
        let place = quote.map(|quote| self.observed.place(quote));
        let place = place.filter(|place| !place.is_empty());
        Evidence::new(text, place.unwrap_or_else(|| "the figures".to_owned()))
    }
}

/// Of a metric of many things the one with the greatest mean, with what it is of.
pub(crate) fn leader(observed: &Observed, metric: Metric) -> Option<Intervals<'_>> {
    let weight = |intervals: &Intervals<'_>| mean(&intervals.values());
    of(observed, metric).max_by(|a, b| weight(a).total_cmp(&weight(b)))
}

#[cfg(test)]
mod tests {
    use super::{often, span};

    #[test]
    fn values_in_words() {
        assert_eq!(span(&[98.96, 90.16, 48.32], 0), "99, 90 and 48");
        assert_eq!(span(&[5.0], 1), "5.0");
        assert_eq!(span(&[4.01, 4.02, 3.99], 1), "4.0");
        let many: Vec<f64> = (0..=10).map(f64::from).collect();
        assert_eq!(span(&many, 0), "median 5, at most 10");
    }

    #[test]
    fn one_interval_of_many_is_not_often() {
        assert!(often(1, 1) && often(2, 20) && often(2, 3));
        assert!(!often(1, 2) && !often(2, 21) && !often(0, 0));
    }
}
