//! Where readers put what they understood: bounded, so that memory goes with the answer and not with the artefact.

use crate::Reading;
use crate::account::Account;
use crate::format::{Format, Understood};
use holdup_evidence::observed::{
    Calls, Happening, Metric, Point, Quote, Samples, Series, Snapshot, Source, Span, StackId, What, When,
};
use holdup_evidence::{Ns, Observed, SystemFacts};
use std::collections::HashMap;

/// Reports of an artefact that are kept. Of more, every second one goes, and again: an hour of seconds is kept whole.
const REPORTS: u32 = 4096;

/// Series of all artefacts together: a top of a busy machine names some thousands of processes.
const SERIES: usize = 20_000;

/// Happenings, snapshots and spans of one artefact that are kept.
const HAPPENINGS: u64 = 20_000;
const SNAPSHOTS: u64 = 1_000;
const SPANS: u64 = 20_000;

/// Bytes of a quoted line.
const QUOTED: usize = 240;

/// Everything that is being gathered.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    observed: Observed,
    facts: SystemFacts,
    accounts: Vec<Account>,
    /// Place of each series in `observed.series`, by artefact, metric and what it is of.
    series: HashMap<(u32, Metric, String), usize>,
    /// The greatest value of each series, in their order: asked for at every figure.
    peaks: Vec<Peak>,
}

/// The greatest value of a series.
#[derive(Debug, Clone, Copy)]
struct Peak {
    value: f64,
    /// Its report, where that is kept for this value alone.
    alone: Option<u32>,
}

/// A series that a reader puts figures into, looked up once instead of at every figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeriesAt(usize);

/// The part of it that a reader of one artefact sees.
pub(crate) struct Out<'a> {
    gather: &'a mut Gather,
    source: u32,
    line: u64,
    report: Report,
    happenings: u64,
    snapshots: u64,
    spans: u64,
}

/// The report that figures belong to.
#[derive(Debug, Default)]
struct Report {
    /// How many there were.
    count: u32,
    /// Which of them is the current one, from 0: the last, but where figures are told in another order.
    number: u32,
    /// Reports whose number is a multiple of this are kept.
    stride: u32,
    at: Option<When>,
    over: Option<Ns>,
    since_boot: bool,
}

impl Gather {
    /// Begins an artefact, or a part of one that is of another format.
    pub(crate) fn begin(&mut self, name: &str, format: Option<&Format>) -> Out<'_> {
        let source = u32::try_from(self.observed.sources.len()).expect("artefacts are far fewer than 2^32");
        self.observed.sources.push(Source {
            name: name.to_owned(),
            format: format.map(|format| format.id.to_owned()).unwrap_or_default(),
            ..Source::default()
        });
        self.accounts.push(Account::default());
        Out {
            gather: self,
            source,
            line: 0,
            report: Report {
                stride: 1,
                ..Report::default()
            },
            happenings: 0,
            snapshots: 0,
            spans: 0,
        }
    }

    pub(crate) fn finish(self) -> Reading {
        Reading {
            observed: self.observed,
            facts: self.facts,
            accounts: self.accounts,
        }
    }
}

impl Out<'_> {
    /// The reader is at this line now.
    pub(crate) fn at_line(&mut self, line: u64) {
        self.line = line;
    }

    /// What was made of the line.
    pub(crate) fn count(&mut self, line: &[u8], understood: Understood) {
        let number = self.line;
        let account = self.account();
        account.lines += 1;
        match understood {
            Understood::Evidence => account.evidence += 1,
            Understood::Ignorable => account.ignorable += 1,
            Understood::No => account.misunderstand(number, line),
        }
    }

    /// The account of this artefact.
    pub(crate) fn account(&mut self) -> &mut Account {
        &mut self.gather.accounts[self.source as usize]
    }

    /// Something is wrong with the artefact as a whole, in a sentence.
    pub(crate) fn problem(&mut self, sentence: impl Into<String>) {
        self.account().problem(sentence.into());
    }

    /// This line, to be quoted.
    pub(crate) fn here(&self) -> Quote {
        Quote {
            source: self.source,
            line: self.line,
        }
    }

    /// The artefact itself: its host, its tool.
    pub(crate) fn source(&mut self) -> &mut Source {
        &mut self.gather.observed.sources[self.source as usize]
    }

    /// What the artefact says of the machine.
    pub(crate) fn facts(&mut self) -> &mut SystemFacts {
        &mut self.gather.facts
    }

    /// The id of a stack, innermost frame first.
    pub(crate) fn stack<'s>(&mut self, frames: impl IntoIterator<Item = &'s str>) -> StackId {
        self.gather.observed.stacks.intern(frames)
    }

    /// Figures that follow belong to a new report: when it was made, what time it covers, and whether it is of the time
    /// since boot. Its number, from 0.
    pub(crate) fn report(&mut self, at: Option<When>, over: Option<Ns>, since_boot: bool) -> u32 {
        self.report = Report {
            number: self.report.count,
            count: self.report.count.saturating_add(1),
            stride: self.report.stride,
            at,
            over,
            since_boot,
        };
        if self.report.count > REPORTS.saturating_mul(self.report.stride) {
            self.report.stride = self.report.stride.saturating_mul(2);
            let (source, stride) = (self.source, self.report.stride);
            let all = self.gather.observed.series.iter_mut();
            let all = all.zip(&mut self.gather.peaks);
            for (series, peak) in all.filter(|(series, _)| series.source == source) {
                thin(series, peak, stride);
            }
        }
        self.report.number
    }

    /// Figures that follow belong to a report that there was, from 0: some tools print one table of all reports, and then
    /// the next.
    pub(crate) fn report_again(&mut self, number: u32, at: Option<When>, over: Option<Ns>) {
        self.report.number = number.min(self.report.count.saturating_sub(1));
        self.report.at = at;
        self.report.over = over;
        self.report.since_boot = false;
    }

    /// A figure of the current report; `of` is the device, CPU or process, empty for the machine.
    pub(crate) fn figure(&mut self, metric: Metric, of: &str, value: f64) {
        let at = self.series_at(metric, of);
        self.figure_at(at, value);
    }

    /// The series of a metric; `None` where there are too many.
    pub(crate) fn series_at(&mut self, metric: Metric, of: &str) -> Option<SeriesAt> {
        self.series_of(metric, of).map(SeriesAt)
    }

    /// A figure of the current report, into a series of this artefact.
    pub(crate) fn figure_at(&mut self, at: Option<SeriesAt>, value: f64) {
        if !value.is_finite() {
            return;
        }
        if self.report.count == 0 {
            self.report(None, None, false);
        }
        let place = at.map(|at| at.0);
        let series = place.and_then(|place| self.gather.observed.series.get_mut(place));
        let peak = place.and_then(|place| self.gather.peaks.get_mut(place));
        let (Some(series), Some(peak)) = (series, peak) else {
            self.account().left_out += 1;
            return;
        };
        series.count += 1;
        series.sum += value;
        let number = self.report.number;
        // A state is of now, whatever else its report is of.
        let since_boot = self.report.since_boot && !series.metric.is_state();
        let kept = number % self.report.stride == 0;
        let greatest = !since_boot && value > peak.value;
        // Twice in a report: a table that names a thing twice; the first stands.
        let again = series.points.last().is_some_and(|last| last.report == number);
        if again || !(kept || greatest) {
            return;
        }
        if greatest {
            // Of a figure that only grows each would be the greatest: one is kept.
            let old = peak.alone.take();
            let old = old.and_then(|report| {
                let by = |point: &Point| point.report;
                series.points.binary_search_by_key(&report, by).ok()
            });
            if let Some(old) = old {
                series.points.remove(old);
            }
            *peak = Peak {
                value,
                alone: (!kept).then_some(number),
            };
        }
        series.points.push(Point {
            report: number,
            value,
            at: self.report.at,
            over: self.report.over,
            since_boot,
            quote: Quote {
                source: self.source,
                line: self.line,
            },
        });
    }

    fn series_of(&mut self, metric: Metric, of: &str) -> Option<usize> {
        // A key with an owned name only where the series is new: this is done for every figure.
        let key = (self.source, metric, of.to_owned());
        if let Some(place) = self.gather.series.get(&key) {
            return Some(*place);
        }
        let all = &mut self.gather.observed.series;
        if all.len() >= SERIES {
            return None;
        }
        all.push(Series {
            metric,
            of: of.to_owned(),
            source: self.source,
            points: Vec::new(),
            count: 0,
            sum: 0.0,
        });
        self.gather.peaks.push(Peak {
            value: f64::NEG_INFINITY,
            alone: None,
        });
        self.gather.series.insert(key, all.len() - 1);
        Some(all.len() - 1)
    }

    /// Something happened; `line` is quoted.
    pub(crate) fn happened(&mut self, what: What, at: Option<When>, since_boot: Option<Ns>, line: &[u8]) {
        self.happenings += 1;
        if self.happenings > HAPPENINGS {
            self.account().left_out += 1;
            return;
        }
        let quote = self.here();
        self.gather.observed.happenings.push(Happening {
            what,
            at,
            since_boot,
            quote,
            text: quoted(line),
        });
    }

    /// Threads at an instant.
    pub(crate) fn snapshot(&mut self, snapshot: Snapshot) {
        self.snapshots += 1;
        if self.snapshots > SNAPSHOTS {
            self.account().left_out += 1;
            return;
        }
        self.gather.observed.snapshots.push(snapshot);
    }

    /// Time in calls; the source is filled in.
    pub(crate) fn calls(&mut self, calls: Calls) {
        let source = self.source;
        self.gather.observed.calls.push(Calls { source, ..calls });
    }

    /// A profile; the source is filled in.
    pub(crate) fn samples(&mut self, samples: Samples) {
        let source = self.source;
        self.gather.observed.samples.push(Samples { source, ..samples });
    }

    /// A duration. Readers of formats with many keep the longest and count the others themselves.
    pub(crate) fn span(&mut self, span: Span) {
        self.spans += 1;
        if self.spans > SPANS {
            self.account().left_out += 1;
            return;
        }
        self.gather.observed.spans.push(span);
    }
}

/// Keeps the points of every so manieth report, and the greatest.
fn thin(series: &mut Series, peak: &mut Peak, stride: u32) {
    let greatest = series.greatest().map(|point| point.report);
    series
        .points
        .retain(|point| point.report % stride == 0 || Some(point.report) == greatest);
    peak.alone = greatest.filter(|report| report % stride != 0);
}

/// A line as it is quoted: its beginning, whatever its encoding.
pub(crate) fn quoted(line: &[u8]) -> String {
    let cut = &line[..line.len().min(QUOTED)];
    String::from_utf8_lossy(cut).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{Gather, REPORTS};
    use holdup_evidence::observed::Metric;

    #[test]
    fn a_long_series_is_thinned_and_keeps_its_greatest() {
        let mut gather = Gather::default();
        let mut out = gather.begin("x", None);
        for number in 0..3 * REPORTS {
            out.report(None, None, number == 0);
            // Only grows, but for one value in the middle that nothing comes near.
            let value = if number == REPORTS + 1 { 1e9 } else { f64::from(number) };
            out.figure(Metric::ContextSwitchesPerSecond, "", value);
            out.figure(Metric::InterruptsPerSecond, "", f64::from(number));
            out.figure(Metric::MemoryFreeKib, "", 1.0);
        }
        let reading = gather.finish();
        for series in &reading.observed.series {
            assert!(series.points.len() <= REPORTS as usize + 1, "{}", series.points.len());
            assert_eq!(series.count, u64::from(3 * REPORTS));
            assert!(series.points.is_sorted_by_key(|point| point.report));
        }
        let greatest = |at: usize| reading.observed.series[at].greatest().map(|point| point.report);
        assert_eq!(greatest(0), Some(REPORTS + 1));
        assert_eq!(greatest(1), Some(3 * REPORTS - 1));
        // The average since boot is none of an interval; what is free is of now in any report.
        assert!(reading.observed.series[0].points[0].since_boot);
        assert!(!reading.observed.series[2].points[0].since_boot);
    }
}
