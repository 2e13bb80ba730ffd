//! Where readers put what they understood: bounded, so that memory goes with the answer and not with the artefact.

use crate::Reading;
use crate::account::Account;
use crate::format::{Format, Understood};
use holdup_evidence::observed::{
    Calls, Happening, Metric, Point, Quote, Samples, SeenDevice, Series, Snapshot, SocketTable, Source, Span, StackId,
    SwapList, What, When,
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

/// Threads of all snapshots of one artefact, lists of swap areas or sockets and block devices of all that are kept.
const THREADS: u64 = 100_000;
const LISTS: usize = 2_000;
const DEVICES: usize = 10_000;

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
}

/// The part of it that a reader of one artefact sees.
pub(crate) struct Out<'a> {
    gather: &'a mut Gather,
    source: u32,
    line: u64,
    report: Report,
    happenings: u64,
    snapshots: u64,
    threads: u64,
    spans: u64,
}

/// The report that figures belong to.
#[derive(Debug, Default)]
struct Report {
    /// How many there were; the current one is the last.
    count: u32,
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
            threads: 0,
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
    /// since boot.
    pub(crate) fn report(&mut self, at: Option<When>, over: Option<Ns>, since_boot: bool) {
        self.report = Report {
            count: self.report.count.saturating_add(1),
            stride: self.report.stride,
            at,
            over,
            since_boot,
        };
        if self.report.count > REPORTS.saturating_mul(self.report.stride) {
            self.report.stride = self.report.stride.saturating_mul(2);
            let (source, stride) = (self.source, self.report.stride);
            let own = self.gather.observed.series.iter_mut();
            for series in own.filter(|series| series.source == source) {
                thin(series, stride);
            }
        }
    }

    /// A figure of the current report; `of` is the device, CPU or process, empty for the machine.
    pub(crate) fn figure(&mut self, metric: Metric, of: &str, value: f64) {
        if !value.is_finite() {
            return;
        }
        if self.report.count == 0 {
            self.report(None, None, false);
        }
        let place = self.series_of(metric, of);
        let Some(series) = place.map(|place| &mut self.gather.observed.series[place]) else {
            self.account().left_out += 1;
            return;
        };
        series.count += 1;
        series.sum += value;
        let number = self.report.count - 1;
        let greatest = !self.report.since_boot && series.greatest().is_none_or(|most| value > most.value);
        // Twice in a report: a table that names a thing twice; the first stands.
        let again = series.points.last().is_some_and(|last| last.report == number);
        if !again && (number % self.report.stride == 0 || greatest) {
            series.points.push(Point {
                report: number,
                value,
                at: self.report.at,
                over: self.report.over,
                since_boot: self.report.since_boot,
                quote: Quote {
                    source: self.source,
                    line: self.line,
                },
            });
        }
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
        self.threads = self.threads.saturating_add(snapshot.threads.len() as u64);
        if self.snapshots > SNAPSHOTS || (self.snapshots > 1 && self.threads > THREADS) {
            self.account().left_out += 1;
            return;
        }
        self.gather.observed.snapshots.push(snapshot);
    }

    /// What was taken for figures of an interval in the first report was an average since boot: that shows only when a
    /// second report follows.
    pub(crate) fn first_was_since_boot(&mut self, metrics: &[Metric]) {
        let source = self.source;
        let own = self.gather.observed.series.iter_mut();
        for series in own.filter(|series| series.source == source && metrics.contains(&series.metric)) {
            if let Some(first) = series.points.first_mut().filter(|point| point.report == 0) {
                first.since_boot = true;
            }
        }
    }

    /// Swap areas that are switched on, or that there is none.
    pub(crate) fn swap_list(&mut self, list: SwapList) {
        if self.gather.observed.swap_lists.len() >= LISTS {
            self.account().left_out += 1;
            return;
        }
        self.gather.observed.swap_lists.push(list);
    }

    /// A block device.
    pub(crate) fn device(&mut self, device: SeenDevice) {
        if self.gather.observed.devices.len() >= DEVICES {
            self.account().left_out += 1;
            return;
        }
        self.gather.observed.devices.push(device);
    }

    /// A list of sockets.
    pub(crate) fn sockets(&mut self, table: SocketTable) {
        if self.gather.observed.sockets.len() >= LISTS {
            self.account().left_out += 1;
            return;
        }
        self.gather.observed.sockets.push(table);
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
fn thin(series: &mut Series, stride: u32) {
    let greatest = series.greatest().map(|point| point.report);
    series
        .points
        .retain(|point| point.report % stride == 0 || Some(point.report) == greatest);
}

/// A line as it is quoted: its beginning, whatever its encoding.
pub(crate) fn quoted(line: &[u8]) -> String {
    let cut = &line[..line.len().min(QUOTED)];
    String::from_utf8_lossy(cut).trim_end().to_owned()
}
