//! Where readers put what they understood: bounded, so that memory goes with the answer and not with the artefact.

use crate::Reading;
use crate::account::Account;
use crate::figures::{Figures, thin};
use crate::format::Understood;
use holdup_evidence::observed::{
    Calls, Happening, Metric, Point, Quote, Samples, SeenDevice, SeenFileSystem, SeenThread, Snapshot,
    SocketTable, Source, Span, StackId, Statement, StatementKind, SwapList, What, When,
};
use holdup_evidence::{Ns, Observed, SystemFacts};

/// Reports of an artefact that are kept. Of more, every second one goes, and again: an hour of seconds is kept whole.
const REPORTS: u32 = 4096;

/// Series of all artefacts together: a top of a busy machine names some thousands of processes.
const SERIES: usize = 20_000;

/// Points of all series together: some 100 bytes each. Of more, every second report of every artefact goes.
const POINTS: usize = 500_000;

/// Happenings, snapshots and spans of one artefact that are kept.
const HAPPENINGS: u64 = 20_000;
const SNAPSHOTS: u64 = 1_000;
const SPANS: u64 = 20_000;

/// The same of all artefacts together: of a folder with thousands of logs.
const ALL_HAPPENINGS: usize = 60_000;
const ALL_SPANS: usize = 60_000;

/// Statements of all artefacts together: lines that differ in more than numbers.
const ALL_STATEMENTS: usize = 20_000;

/// Threads of all snapshots together, and the bytes of their names and locks.
const ALL_THREADS: usize = 300_000;
const ALL_THREADS_BYTES: usize = 64 << 20;

/// Bytes of all stacks and of the names of their frames; what comes after has a stack that says so.
const ALL_STACKS_BYTES: usize = 64 << 20;

/// Tables of calls, and profiles.
const TABLES: usize = 20_000;

/// Rows of all tables of calls together.
const ALL_CALLS: usize = 100_000;

/// Lists of swap areas, and block devices, of all artefacts that are kept.
const LISTS: usize = 2_000;
const DEVICES: usize = 10_000;

/// Mounted file systems, and lists of sockets: a container host has some thousands of mounts.
const FILE_SYSTEMS: usize = 20_000;
const SOCKET_TABLES: usize = 2_000;

/// Bytes of a quoted line.
const QUOTED: usize = 240;

/// The frame of a stack that was left out because there were too many others.
const LEFT_OUT: &str = "(left out)";

/// Everything that is being gathered.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    observed: Observed,
    facts: SystemFacts,
    accounts: Vec<Account>,
    /// Of each artefact: reports whose number is a multiple of this are kept.
    strides: Vec<u32>,
    /// Points of all series.
    points: usize,
    threads: usize,
    threads_bytes: usize,
    calls: usize,
}

/// The part of it that a reader of one artefact sees.
pub(crate) struct Out<'a> {
    gather: &'a mut Gather,
    source: u32,
    line: u64,
    report: Report,
    figures: Figures,
    happenings: u64,
    snapshots: u64,
    spans: u64,
}

/// A series that a reader puts figures into, looked up once instead of at every figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeriesAt(usize);

/// The report that figures belong to.
#[derive(Debug, Default)]
struct Report {
    /// How many there were.
    count: u32,
    /// Which of them is the current one, from 0: the last, but where figures are reported in another order.
    number: u32,
    at: Option<When>,
    over: Option<Ns>,
    since_boot: bool,
}

impl Gather {
    /// Begins an artefact, or a part of one that is of another format. The id of the format is empty where it is of none.
    pub(crate) fn begin(&mut self, name: &str, format: &str) -> Out<'_> {
        let source = u32::try_from(self.observed.sources.len()).expect("artefacts are far fewer than 2^32");
        self.observed.sources.push(Source {
            name: name.to_owned(),
            format: format.to_owned(),
            ..Source::default()
        });
        self.accounts.push(Account::default());
        self.strides.push(1);
        self.out_of(source)
    }

    /// An artefact that was begun before.
    pub(crate) fn out_of(&mut self, source: u32) -> Out<'_> {
        Out {
            gather: self,
            source,
            line: 0,
            report: Report::default(),
            figures: Figures::default(),
            happenings: 0,
            snapshots: 0,
            spans: 0,
        }
    }

    /// Begins a folder, an archive or another whole whose parts are artefacts; which artefact it is itself.
    pub(crate) fn begin_whole(&mut self, name: &str, format: &str) -> u32 {
        self.begin(name, format).source
    }

    /// How many artefacts there are, parts counted.
    pub(crate) fn sources(&self) -> usize {
        self.observed.sources.len()
    }

    /// Takes back the last artefact if it is of no format but text, and came to nothing, with what was wrong with it.
    pub(crate) fn take_back(&mut self) -> Option<Account> {
        let format = &self.observed.sources.last()?.format;
        let unrecognised = format.is_empty() || format == crate::formats::text::ID;
        let nothing = self.accounts.last()?.evidence == 0;
        if !unrecognised || !nothing {
            return None;
        }
        self.observed.sources.pop();
        self.strides.pop();
        self.accounts.pop()
    }

    /// Keeps every second report of every artefact.
    fn thin(&mut self) {
        for stride in &mut self.strides {
            *stride = stride.saturating_mul(2);
        }
        for series in &mut self.observed.series {
            thin(series, self.strides[series.source as usize]);
        }
        self.points = self
            .observed
            .series
            .iter()
            .map(|series| series.points.len())
            .sum();
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
        let stacks = &mut self.gather.observed.stacks;
        if stacks.bytes() < ALL_STACKS_BYTES {
            return stacks.intern(frames);
        }
        self.account().left_out += 1;
        self.gather.observed.stacks.intern([LEFT_OUT])
    }

    /// Figures that follow belong to a new report: when it was made, what time it covers, and whether it is of the time
    /// since boot. Its number, from 0.
    pub(crate) fn report(&mut self, at: Option<When>, over: Option<Ns>, since_boot: bool) -> u32 {
        self.report = Report {
            count: self.report.count.saturating_add(1),
            number: self.report.count,
            at,
            over,
            since_boot,
        };
        let (source, stride) = (self.source, self.stride());
        if self.report.count > REPORTS.saturating_mul(stride) {
            let stride = stride.saturating_mul(2);
            self.gather.strides[source as usize] = stride;
            let own = self.gather.observed.series.iter_mut();
            for series in own.filter(|series| series.source == source) {
                self.gather.points -= series.points.len();
                thin(series, stride);
                self.gather.points += series.points.len();
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

    /// Reports whose number is a multiple of this are kept.
    fn stride(&self) -> u32 {
        self.gather.strides[self.source as usize]
    }

    /// A figure of the current report; `of` is the device, CPU or process, empty for the machine.
    pub(crate) fn figure(&mut self, metric: Metric, of: &str, value: f64) {
        let at = self.series_at(metric, of);
        self.figure_at(at, value);
    }

    /// The series of a metric; `None` where there are too many.
    pub(crate) fn series_at(&mut self, metric: Metric, of: &str) -> Option<SeriesAt> {
        let all = &mut self.gather.observed.series;
        let entry = self.figures.find(metric, of, self.source, all, SERIES);
        entry.map(SeriesAt)
    }

    /// A figure of the current report, into a series of this artefact.
    pub(crate) fn figure_at(&mut self, at: Option<SeriesAt>, value: f64) {
        if !value.is_finite() {
            return;
        }
        if self.report.count == 0 {
            self.report(None, None, false);
        }
        if self.gather.points >= POINTS {
            self.gather.thin();
        }
        let Some(SeriesAt(entry)) = at else {
            self.account().left_out += 1;
            return;
        };
        let series = &mut self.gather.observed.series[self.figures.place(entry)];
        series.count += 1;
        series.sum += value;
        let number = self.report.number;
        // A state is of now, whatever else its report is of.
        let since_boot = self.report.since_boot && !series.metric.is_state();
        let greatest = !since_boot && self.figures.is_greatest(entry, value);
        let stride = self.gather.strides[self.source as usize];
        let last = series.points.last();
        // Twice in a report: a table that names a thing twice; the first stands. Nor does a table go back to an earlier one.
        let again = last.is_some_and(|last| last.report >= number);
        if again || !(number.is_multiple_of(stride) || greatest) {
            return;
        }
        // What grows all the time is not kept whole: the last one was the greatest until now, and had no other reason.
        if greatest && last.is_some_and(|last| !last.report.is_multiple_of(stride)) {
            series.points.pop();
            self.gather.points -= 1;
        }
        self.gather.points += 1;
        series.points.push(Point {
            report: number,
            value,
            at: self.report.at,
            over: self.report.over,
            since_boot,
            perhaps_since_boot: false,
            quote: Quote {
                source: self.source,
                line: self.line,
            },
        });
    }

    /// Something happened; `line` is quoted.
    pub(crate) fn happened(&mut self, what: What, at: Option<When>, since_boot: Option<Ns>, line: &[u8]) {
        let quote = self.here();
        self.happening(Happening {
            what,
            at,
            since_boot,
            quote,
            text: quoted(line),
        });
    }

    /// The same for what is reported over several lines: it keeps the place and text of its first.
    pub(crate) fn happening(&mut self, happening: Happening) {
        self.happenings += 1;
        if self.happenings > HAPPENINGS || self.gather.observed.happenings.len() >= ALL_HAPPENINGS {
            self.account().left_out += 1;
            return;
        }
        self.gather.observed.happenings.push(happening);
    }

    /// Threads at an instant.
    pub(crate) fn snapshot(&mut self, snapshot: Snapshot) {
        self.snapshots += 1;
        let threads = self.gather.threads.saturating_add(snapshot.threads.len());
        let bytes = self.gather.threads_bytes.saturating_add(bytes_of(&snapshot));
        if self.snapshots > SNAPSHOTS || threads > ALL_THREADS || bytes > ALL_THREADS_BYTES {
            self.account().left_out += 1;
            return;
        }
        (self.gather.threads, self.gather.threads_bytes) = (threads, bytes);
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

    /// There is one report only, and nothing tells whether it is an average since boot.
    pub(crate) fn only_may_be_since_boot(&mut self, metrics: &[Metric]) {
        let source = self.source;
        let own = self.gather.observed.series.iter_mut();
        for series in own.filter(|series| series.source == source && metrics.contains(&series.metric)) {
            for point in &mut series.points {
                point.perhaps_since_boot = true;
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

    /// A mounted file system.
    pub(crate) fn file_system(&mut self, file_system: SeenFileSystem) {
        if self.gather.observed.file_systems.len() >= FILE_SYSTEMS {
            self.account().left_out += 1;
            return;
        }
        self.gather.observed.file_systems.push(file_system);
    }

    /// A list of sockets.
    pub(crate) fn sockets(&mut self, table: SocketTable) {
        if self.gather.observed.sockets.len() >= SOCKET_TABLES {
            self.account().left_out += 1;
            return;
        }
        self.gather.observed.sockets.push(table);
    }

    /// Time in calls; the source is filled in.
    pub(crate) fn calls(&mut self, mut calls: Calls) {
        let room = ALL_CALLS.saturating_sub(self.gather.calls);
        if room == 0 || self.gather.observed.calls.len() >= TABLES {
            self.account().left_out += 1;
            return;
        }
        if calls.calls.len() > room {
            self.account().left_out += (calls.calls.len() - room) as u64;
            calls.calls.truncate(room);
        }
        // What was cut, and what a reader had in reserve, is not kept.
        calls.calls.shrink_to_fit();
        self.gather.calls += calls.calls.len();
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
        if self.spans > SPANS || self.gather.observed.spans.len() >= ALL_SPANS {
            self.account().left_out += 1;
            return;
        }
        self.gather.observed.spans.push(span);
    }

    /// What lines of text state.
    pub(crate) fn statement(&mut self, statement: Statement) {
        if self.gather.observed.statements.len() >= ALL_STATEMENTS {
            self.account().left_out += 1;
            return;
        }
        self.gather.observed.statements.push(statement);
    }

    /// Whether it is stated of this artefact that something is wrong at a line. A mere size that is stated there is taken back.
    pub(crate) fn states_at(&mut self, line: u64) -> bool {
        let source = self.source;
        let statements = &mut self.gather.observed.statements;
        let here = |one: &Statement| one.quote.source == source && one.quote.line == line;
        statements.retain(|one| one.kind != StatementKind::Took || !here(one));
        let beyond_norm = |one: &Statement| one.kind != StatementKind::WithinNorm;
        statements.iter().any(|one| here(one) && beyond_norm(one))
    }
}

/// Bytes of the texts of a snapshot.
fn bytes_of(snapshot: &Snapshot) -> usize {
    let locks = |thread: &SeenThread| -> usize {
        let locks = thread.holds.iter().chain(&thread.waits_for);
        locks.map(|lock| lock.id.len() + lock.class.len()).sum()
    };
    let threads = snapshot.threads.iter();
    threads.map(|thread| thread.name.len() + locks(thread)).sum()
}

/// A line as it is quoted: its beginning, whatever its encoding.
pub(crate) fn quoted(line: &[u8]) -> String {
    let cut = &line[..line.len().min(QUOTED)];
    text_of(cut).trim_end().to_owned()
}

/// Bytes as text: UTF-8, perhaps cut within a character; or else each byte is a character of Latin-1, as files from
/// before Unicode have it.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(error) if error.error_len().is_none() => {
            String::from_utf8_lossy(&bytes[..error.valid_up_to()]).into_owned()
        }
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Gather, POINTS, REPORTS, text_of};
    use holdup_evidence::observed::Metric::{CpuIdlePercent, DiskUtilPercent};

    #[test]
    fn a_series_keeps_its_greatest_value_and_bounded_points() {
        let mut gather = Gather::default();
        let mut out = gather.begin("a", "iostat");
        for number in 0..3 * REPORTS {
            out.report(None, None, number == 0);
            // Since boot: never the greatest. Then it grows all the time.
            out.figure(
                DiskUtilPercent,
                "sda",
                if number == 0 { 1e9 } else { f64::from(number) },
            );
            out.figure(DiskUtilPercent, "sdb", if number == 77 { 5.0 } else { 1.0 });
            out.figure(CpuIdlePercent, "", 50.0);
        }
        let reading = gather.finish();
        let [sda, sdb, cpu] = reading.observed.series.as_slice() else {
            panic!("{:?}", reading.observed.series)
        };
        assert_eq!((&*sda.of, &*sdb.of, &*cpu.of), ("sda", "sdb", ""));
        assert_eq!(sda.greatest().map(|point| point.report), Some(3 * REPORTS - 1));
        assert_eq!(sdb.greatest().map(|point| point.report), Some(77));
        for series in [sda, sdb, cpu] {
            assert_eq!(series.count, u64::from(3 * REPORTS));
            assert!(
                series.points.len() <= REPORTS as usize + 1,
                "{}",
                series.points.len()
            );
            assert!(series.points.is_sorted_by_key(|point| point.report));
        }
    }

    #[test]
    fn many_series_share_the_points_that_there_are() {
        let names: Vec<String> = (0..5_000).map(|number| number.to_string()).collect();
        let mut gather = Gather::default();
        let mut out = gather.begin("a", "top");
        for _ in 0..300 {
            out.report(None, None, false);
            for name in &names {
                out.figure(CpuIdlePercent, name, 1.0);
            }
        }
        let observed = gather.finish().observed;
        let points: usize = observed.series.iter().map(|series| series.points.len()).sum();
        assert_eq!(observed.series.len(), names.len());
        assert!(points <= POINTS && points > POINTS / 4, "{points}");
        let first: Vec<u32> = observed.series[0]
            .points
            .iter()
            .map(|point| point.report)
            .collect();
        let last: Vec<u32> = observed.series[4_999]
            .points
            .iter()
            .map(|point| point.report)
            .collect();
        assert_eq!(first[..20], last[..20], "reports are kept whole");
    }

    #[test]
    fn text_is_utf8_or_latin_1() {
        assert_eq!(text_of("Zeit für".as_bytes()), "Zeit für");
        assert_eq!(text_of(b"Zeit f\xfcr"), "Zeit für");
        assert_eq!(text_of(&"für".as_bytes()[..2]), "f");
    }
}
