//! Figures as lines of an account tell them: the greatest of each thing, and what was measured beside it.

use crate::rules::figures::often;
use holdup_evidence::Observed;
use holdup_evidence::observed::{Metric, Point, Series};

/// The greatest value of one thing in one artefact.
#[derive(Debug, Clone, Copy)]
pub(super) struct Value<'a> {
    pub(super) observed: &'a Observed,
    pub(super) series: &'a Series,
    pub(super) point: &'a Point,
}

/// The greatest value of each thing that has a metric, largest first. Averages since boot count where there is nothing else.
pub(super) fn largest(observed: &Observed, metric: Metric) -> Vec<Value<'_>> {
    let mut all: Vec<Value<'_>> = observed
        .of(metric)
        .filter_map(|series| {
            let point = series.greatest().or_else(|| series.points.first())?;
            Some(Value {
                observed,
                series,
                point,
            })
        })
        .collect();
    all.sort_by(|one, other| other.point.value.total_cmp(&one.point.value));
    all
}

impl<'a> Value<'a> {
    /// What it is of.
    pub(super) fn of(&self) -> &'a str {
        &self.series.of
    }

    /// The value.
    pub(super) fn value(&self) -> f64 {
        self.point.value
    }

    /// Another metric of the same thing in the same report.
    pub(super) fn beside(&self, metric: Metric) -> Option<f64> {
        self.other(metric, self.of())
    }

    /// A metric of something else in the same report; `""` is the machine.
    pub(super) fn other(&self, metric: Metric, of: &str) -> Option<f64> {
        let mut all = self.observed.of(metric);
        let series = all.find(|series| series.source == self.series.source && series.of == of)?;
        series.in_report(self.point.report).map(|point| point.value)
    }

    /// Whether it is at least so high often enough to matter.
    pub(super) fn often(&self, least: f64) -> bool {
        let all = self.series.of_intervals().count();
        let high = self.series.of_intervals().filter(|point| point.value >= least);
        often(high.count(), all)
    }

    /// Whether it is, or may be, an average since boot: then it rules nothing out.
    pub(super) fn is_average(&self) -> bool {
        self.point.since_boot || self.point.perhaps_since_boot
    }

    /// ` on average since boot`, where it is that.
    pub(super) fn since_boot(&self) -> &'static str {
        match self.point.since_boot {
            true => " on average since boot",
            false => "",
        }
    }
}

/// A figure as tools print it: one decimal where it is small, and none where that says nothing.
pub(super) fn figure(value: f64) -> String {
    let text = match value.abs() {
        1000.0.. => format!("{value:.0}"),
        1.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    };
    match text.split_once('.') {
        Some((whole, decimals)) if decimals.bytes().all(|digit| digit == b'0') => whole.to_owned(),
        _ => text,
    }
}

/// `1 core`, `12 tasks`.
pub(super) fn parts(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::{figure, parts};
    use holdup_evidence::Observed;
    use holdup_evidence::observed::{Metric, Point, Quote, Series, Source};

    /// One report of figures: metric, what it is of, value.
    pub(in crate::account) fn report(figures: &[(Metric, &str, f64)]) -> Observed {
        reports(&[figures])
    }

    /// Several reports of one artefact.
    pub(in crate::account) fn reports(reports: &[&[(Metric, &str, f64)]]) -> Observed {
        let mut observed = Observed {
            sources: vec![Source {
                name: "figures".to_owned(),
                ..Source::default()
            }],
            ..Observed::default()
        };
        for (number, figures) in (0u32..).zip(reports) {
            for (metric, of, value) in *figures {
                let point = Point {
                    report: number,
                    value: *value,
                    quote: Quote {
                        source: 0,
                        line: u64::from(number) + 1,
                    },
                    ..Point::default()
                };
                let known = observed
                    .series
                    .iter_mut()
                    .find(|series| series.metric == *metric && series.of == *of);
                match known {
                    Some(series) => {
                        series.points.push(point);
                        series.count += 1;
                        series.sum += value;
                    }
                    None => observed.series.push(Series {
                        metric: *metric,
                        of: (*of).to_owned(),
                        source: 0,
                        points: vec![point],
                        count: 1,
                        sum: *value,
                    }),
                }
            }
        }
        observed
    }

    #[test]
    fn figures_are_as_tools_print_them() {
        assert_eq!(figure(98.96), "99");
        assert_eq!(figure(67.33), "67.3");
        assert_eq!(figure(1_398_830.0), "1398830");
        assert_eq!(figure(0.0), "0");
        assert_eq!(
            parts(&["a".to_owned(), "b".to_owned(), "c".to_owned()]),
            "a, b and c"
        );
    }
}
