//! How things stand at an instant, as rules ask about it: the values that one report of one artefact gives together.
//!
//! In: [`Observed`]. Out: [`Level`]s. What two artefacts say is never mixed, and neither is what one says at two times.

use holdup_evidence::Observed;
use holdup_evidence::observed::{Metric, Point, Series};
use holdup_model::finding::Evidence;

/// One report of one artefact.
#[derive(Debug, Clone, Copy)]
pub(super) struct Level<'a> {
    observed: &'a Observed,
    source: u32,
    report: u32,
}

/// All reports that have a metric.
pub(super) fn with(observed: &Observed, metric: Metric) -> impl Iterator<Item = Level<'_>> {
    observed.of(metric).flat_map(move |series| {
        series.points.iter().map(move |point| Level {
            observed,
            source: series.source,
            report: point.report,
        })
    })
}

impl<'a> Level<'a> {
    /// The value of a metric of the machine.
    pub(super) fn value(&self, metric: Metric) -> Option<f64> {
        self.point(metric).map(|point| point.value)
    }

    /// The same with its place.
    pub(super) fn point(&self, metric: Metric) -> Option<&'a Point> {
        let mut own = self.series(metric).filter(|series| series.of.is_empty());
        own.find_map(|series| series.in_report(self.report))
            .filter(|point| !point.since_boot)
    }

    /// Whatever has the most of a metric, and how much.
    pub(super) fn most(&self, metric: Metric) -> Option<(&'a str, &'a Point)> {
        let all = self.series(metric).filter_map(|series| {
            let point = series.in_report(self.report)?;
            Some((series.of.as_str(), point))
        });
        all.max_by(|a, b| a.1.value.total_cmp(&b.1.value))
    }

    /// The first whose name begins so, with its value.
    pub(super) fn named(&self, metric: Metric, begin: &str) -> Option<(&'a str, &'a Point)> {
        let mut own = self.series(metric).filter(|series| series.of.starts_with(begin));
        own.find_map(|series| Some((series.of.as_str(), series.in_report(self.report)?)))
    }

    /// Words, with the place of a value as their source.
    pub(super) fn evidence(&self, text: String, point: &Point) -> Evidence {
        let place = self.observed.place(&point.quote);
        let place = Some(place).filter(|place| !place.is_empty());
        Evidence::new(text, place.unwrap_or_else(|| "the figures".to_owned()))
    }

    fn series(&self, metric: Metric) -> impl Iterator<Item = &'a Series> {
        let source = self.source;
        self.observed
            .of(metric)
            .filter(move |series| series.source == source)
    }
}
