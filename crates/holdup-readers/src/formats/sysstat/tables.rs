//! The reader of sysstat's tables: a banner, then headings and rows, in reports.
//!
//! A report is what was measured together. `iostat` prints one after another, with or without a line that says when; rows
//! of the others begin with their time, and rows of one time are one report. `sar -f` prints one table for the whole day,
//! and then the next: the reports of the second table are those of the first.

use super::columns::{Kind, sane};
use super::header::{AVERAGE, Header, Key, header, headless, time_of};
use super::reclaim::{self, Reclaim};
use super::stamp::{self, SECOND, banner, civil, from_to};
use crate::format::{LineReader, Understood};
use crate::gather::{Out, SeriesAt};
use crate::numbers::{decimal, words};
use holdup_evidence::Ns;
use holdup_evidence::observed::{Metric, When};
use memchr::memchr2;
use std::collections::HashMap;

/// Words of a row that are looked at; tables of interrupts have one for each CPU.
const WORDS: usize = 48;

/// Headings that are remembered; `sar -A` has about 40.
const TABLES: usize = 256;

/// Rows of a table that are remembered: processes of a busy machine.
const ROWS: usize = 20_000;

/// Reports whose time is remembered, for the next table of `sar -f`: eleven days of seconds.
const TIMES: usize = 1_000_000;

#[derive(Debug, Default)]
pub(super) struct Reader {
    tables: Vec<Table>,
    current: Option<usize>,
    /// Whether the source has its tool's name.
    named: bool,
    /// Day that the banner tells.
    day: Option<i64>,
    /// Whether the next report is the first behind a banner.
    after_banner: bool,
    /// Whether the command was pasted with it and leaves out the report since boot.
    without_first: bool,
    iostat: Iostat,
    timed: Timed,
    reclaim: Reclaim,
    /// A line with odd hyphens and blanks, made plain.
    plain: Vec<u8>,
    /// A row's name that is put together.
    name: Vec<u8>,
}

/// Reports of `iostat`.
#[derive(Debug, Default)]
struct Iostat {
    /// Tables that the report has so far.
    seen: Vec<usize>,
    /// The instant that stands above the report, and its time of day.
    at: Option<(When, Ns)>,
    /// The same of the report before.
    before: Option<Ns>,
}

/// Reports of the tools whose rows begin with a time.
#[derive(Debug, Default)]
struct Timed {
    /// Whether any row did.
    any: bool,
    /// The time that the last heading or row had.
    last: Option<Ns>,
    /// The current report's.
    current: Option<Ns>,
    /// Whether a heading came that is not of the report before.
    restarted: bool,
    /// Days that have gone by since the banner's, in this table.
    days: i64,
    /// Each report's time, with the days before it and its number.
    times: Vec<(i64, Ns, u32)>,
    /// Which of them the current report is.
    place: usize,
}

#[derive(Debug)]
struct Table {
    /// The heading's words behind the time, as they are.
    text: Vec<u8>,
    header: Header,
    /// Where the search for memory is told of, if it is.
    reclaim: Option<reclaim::Columns>,
    rows: Vec<Row>,
    by_name: HashMap<Box<[u8]>, usize>,
    /// The row that is likely next: they come in the same order each time.
    next: usize,
}

#[derive(Debug)]
struct Row {
    name: Box<[u8]>,
    /// For each of the heading's columns.
    at: Box<[Option<SeriesAt>]>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if memchr2(0xe2, 0xc2, line).is_some() {
            let mut plain = std::mem::take(&mut self.plain);
            make_plain(line, &mut plain);
            let understood = self.plain_line(&plain, out);
            self.plain = plain;
            return understood;
        }
        self.plain_line(line, out)
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.reclaim.end(out);
    }

    fn begins_anew(&self, line: &[u8]) -> bool {
        // Another banner: another run, and perhaps another host.
        !self.tables.is_empty() && banner(line).is_some()
    }
}

/// Unicode hyphens and blanks, which come in with what was pasted through a web page, as what was printed.
fn make_plain(line: &[u8], plain: &mut Vec<u8>) {
    plain.clear();
    for character in String::from_utf8_lossy(line).chars() {
        match character {
            '\u{2010}'..='\u{2015}' | '\u{2212}' => plain.push(b'-'),
            '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' => plain.push(b' '),
            other => plain.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// The words of a row.
struct Fields<'a> {
    words: [&'a [u8]; WORDS],
    /// How many there are, those that were not kept included.
    count: usize,
}

impl<'a> Fields<'a> {
    fn of(line: &'a [u8]) -> Fields<'a> {
        let mut fields = Fields {
            words: [&[]; WORDS],
            count: 0,
        };
        for word in words(line) {
            if let Some(place) = fields.words.get_mut(fields.count) {
                *place = word;
            }
            fields.count += 1;
        }
        fields
    }

    fn get(&self, at: usize) -> &'a [u8] {
        self.words.get(at).copied().unwrap_or_default()
    }
}

impl Reader {
    fn plain_line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let fields = Fields::of(line);
        let first = fields.get(0);
        if first.is_empty() {
            return Understood::Ignorable;
        }
        // A row, which nearly all lines are.
        if let Some(understood) = self.row(line, &fields, out) {
            return understood;
        }
        if first == b"Linux"
            && let Some(found) = banner(line)
        {
            self.banner(found, out);
            return Understood::Evidence;
        }
        if let Some(at) = stamp::line(line) {
            self.iostat.at = Some(at);
            self.iostat.seen.clear();
            return Understood::Evidence;
        }
        let restarted = (1..3).any(|at| fields.get(at) == b"LINUX" && fields.get(at + 1) == b"RESTART");
        if restarted {
            self.timed.last = None;
            return Understood::Ignorable;
        }
        if self.is_summary(&fields) {
            self.current = None;
            return Understood::Ignorable;
        }
        if let Some(understood) = self.command(&fields) {
            return understood;
        }
        if self.current.is_none()
            && let Some(header) = headless(line)
        {
            self.heading(Some(header), &fields, out);
            return self.row(line, &fields, out).unwrap_or(Understood::No);
        }
        self.heading(header(line), &fields, out)
    }

    fn banner(&mut self, found: stamp::Banner, out: &mut Out<'_>) {
        out.source().host = Some(found.host);
        let facts = out.facts();
        facts.kernel_release.get_or_insert(found.release);
        if found.cpus.is_some() && facts.cpus.is_none() {
            facts.cpus = found.cpus;
        }
        self.day = found.day;
        self.after_banner = true;
    }

    /// `Average:` in the language of the locale, behind reports with times. It is of all reports together.
    fn is_summary(&self, fields: &Fields<'_>) -> bool {
        let (first, second) = (fields.get(0), fields.get(1));
        let ends = first.ends_with(b":") || second == b":";
        let named = matches!(first, b"Device:" | b"avg-cpu:" | b"Time:");
        self.timed.any && ends && !named && !first.first().is_some_and(u8::is_ascii_digit)
    }

    /// The command itself, where it was pasted with its prompt. It tells what its output does not.
    fn command(&mut self, fields: &Fields<'_>) -> Option<Understood> {
        let all = fields.words.get(..fields.count.min(WORDS))?;
        let tool = |word: &&[u8]| matches!(*word, b"iostat" | b"mpstat" | b"pidstat" | b"sar" | b"sadf");
        let at = all.iter().position(tool)?;
        let prompt = at == 0
            || all
                .get(at - 1)
                .is_some_and(|word| word.ends_with(b"$") || word.ends_with(b"#") || word.ends_with(b">"));
        if !prompt {
            return None;
        }
        let mut options = all.iter().skip(at + 1);
        self.without_first =
            options.any(|word| word.starts_with(b"-") && !word.starts_with(b"--") && word.contains(&b'y'));
        Some(Understood::Ignorable)
    }

    /// Takes the heading of a table that this line is, or that its first row lost.
    fn heading(&mut self, header: Option<Header>, fields: &Fields<'_>, out: &mut Out<'_>) -> Understood {
        let Some(header) = header else {
            return Understood::No;
        };
        // A table that says nothing to us has rows, too: they are told from lines of something else.
        let idle = header.columns.is_empty();
        if !self.named && !idle {
            out.source().tool = Some("sysstat".to_owned());
            out.source().format = header.tool.id().to_owned();
            self.named = true;
        }
        if header.timed
            && let Some((of_day, _)) = time_of(fields.words.iter().copied())
        {
            // A heading that comes again in the same table has the time of the row before.
            self.timed.restarted = self.timed.current.is_some_and(|current| current != of_day);
            self.timed.last = Some(of_day);
            self.timed.any = true;
        }
        let skip = fields.count - header.width.min(fields.count);
        let text = fields
            .words
            .get(skip.min(WORDS)..fields.count.min(WORDS))
            .unwrap_or_default();
        let text = text.join(&b' ');
        let known = self
            .tables
            .iter()
            .position(|table| table.text == text && table.header == header);
        let place = match known {
            Some(place) => place,
            None if self.tables.len() >= TABLES => return Understood::No,
            None => {
                self.tables.push(Table {
                    reclaim: reclaim::Columns::of(&text),
                    text,
                    header,
                    rows: Vec::new(),
                    by_name: HashMap::new(),
                    next: 0,
                });
                self.tables.len() - 1
            }
        };
        self.current = Some(place);
        let Some(table) = self.tables.get_mut(place) else {
            return Understood::No;
        };
        table.next = 0;
        let timed = table.header.timed;
        // Without times a heading that comes again begins the next report.
        if !timed {
            if self.iostat.seen.is_empty() || self.iostat.seen.contains(&place) {
                self.iostat_report(out);
            }
            self.iostat.seen.push(place);
        }
        if idle {
            Understood::Ignorable
        } else {
            Understood::Evidence
        }
    }

    fn iostat_report(&mut self, out: &mut Out<'_>) {
        self.iostat.seen.clear();
        let at = self.iostat.at.take();
        let over = at.and_then(|(_, now)| from_to(self.iostat.before?, now));
        self.iostat.before = at.map(|(_, now)| now);
        let since_boot = self.after_banner && !self.without_first;
        self.after_banner = false;
        out.report(at.map(|(when, _)| when), over.filter(|_| !since_boot), since_boot);
    }

    /// A row of the current table; `None` where the line is none.
    fn row(&mut self, line: &[u8], fields: &Fields<'_>, out: &mut Out<'_>) -> Option<Understood> {
        let table = self.tables.get(self.current?)?;
        let header = &table.header;
        let timed = header.timed;
        let (mut skip, mut unix) = (0, None);
        let mut of_day = None;
        if timed {
            match time_of(fields.words.iter().copied()) {
                Some((clock, taken)) => {
                    skip = taken;
                    of_day = Some(clock);
                }
                // There was no report that it could be the average of: it was all that somebody took.
                None if fields.get(0) == AVERAGE && !self.timed.any => skip = 1,
                None => {
                    // pidstat -h of old versions counts from the epoch.
                    let seconds: u64 = std::str::from_utf8(fields.get(0)).ok()?.parse().ok()?;
                    unix = Some(seconds.checked_mul(SECOND)?).filter(|ns| *ns < u64::MAX / 4);
                    unix?;
                    skip = 1;
                }
            }
        }
        let width = fields.count.checked_sub(skip)?;
        let enough = match header.key {
            Key::Process { .. } => width >= header.width,
            _ => width == header.width,
        };
        let number = |at: usize| figure(fields.get(skip + at)).is_some();
        let is_row = enough && header.columns.iter().all(|(at, ..)| number(*at));
        if !is_row {
            return None;
        }
        if header.columns.is_empty() {
            // Of a table that says nothing: still a row only if there is a number in it.
            let some = (0..width.min(WORDS)).any(number);
            return some.then_some(Understood::Ignorable);
        }
        match (of_day, unix) {
            (Some(of_day), _) => self.timed_report(of_day, out),
            (None, Some(unix)) if self.timed.current != Some(unix) => {
                let over = self.timed.current.and_then(|before| unix.checked_sub(before));
                self.timed.current = Some(unix);
                out.report(i64::try_from(unix).ok().map(When::Unix), over, false);
            }
            _ => {}
        }
        self.take(line, fields, skip, out);
        Some(Understood::Evidence)
    }

    /// Makes the report of a time of day the current one.
    fn timed_report(&mut self, of_day: Ns, out: &mut Out<'_>) {
        let timed = &mut self.timed;
        timed.any = true;
        let before = timed.last;
        if timed.current == Some(of_day) && before == Some(of_day) {
            return;
        }
        let over = before.and_then(|before| from_to(before, of_day));
        // A heading with the time of its row: the tool was started without an interval.
        let since_boot = self.after_banner && before == Some(of_day);
        self.after_banner = false;
        timed.last = Some(of_day);
        if timed.current == Some(of_day) {
            return;
        }
        if over.is_some() && before.is_some_and(|before| of_day < before) {
            timed.days += 1;
        }
        timed.current = Some(of_day);
        // The next table of the same reports begins with the first of them again.
        let back = std::mem::take(&mut timed.restarted)
            .then(|| timed.times.iter().position(|(_, at, _)| *at == of_day))
            .flatten();
        let follows = timed.times.get(timed.place + 1).filter(|next| next.1 == of_day);
        let day = |days| self.day.and_then(|day| day.checked_add(days));
        let place = back.or(follows.map(|_| timed.place + 1));
        if let Some((place, (days, _, number))) = place.and_then(|at| Some((at, *timed.times.get(at)?))) {
            timed.place = place;
            timed.days = days;
            out.report_again(number, Some(civil(day(days), of_day)), over);
            return;
        }
        let number = out.report(Some(civil(day(timed.days), of_day)), over, since_boot);
        timed.place = timed.times.len();
        if timed.times.len() < TIMES {
            timed.times.push((timed.days, of_day, number));
        }
    }

    /// Takes the figures of a row.
    fn take(&mut self, line: &[u8], fields: &Fields<'_>, skip: usize, out: &mut Out<'_>) {
        let mut name = std::mem::take(&mut self.name);
        if let Some(table) = self.current.and_then(|at| self.tables.get_mut(at)) {
            name.clear();
            if name_of(&table.header, line, fields, skip, &mut name) {
                table.take(&name, fields, skip, out);
            }
            if let Some(columns) = table.reclaim {
                self.reclaim.row(columns, |at| fields.get(skip + at), out);
            }
        }
        self.name = name;
    }
}

/// What a row is of, as a report names it; `false` for a row that is part of another one.
fn name_of(header: &Header, line: &[u8], fields: &Fields<'_>, skip: usize, name: &mut Vec<u8>) -> bool {
    match (header.key, header.kind) {
        (Key::None, _) => {}
        (Key::At(at), Kind::Cpu) => match fields.get(skip + at) {
            b"all" | b"-1" => {}
            cpu => {
                name.extend_from_slice(b"cpu");
                name.extend_from_slice(cpu);
            }
        },
        (Key::At(at), _) => name.extend_from_slice(fields.get(skip + at)),
        (Key::Process { pid, tid, command }, _) => {
            let thread = tid.map(|at| fields.get(skip + at)).filter(|tid| *tid != b"-");
            let process = pid.map(|at| fields.get(skip + at)).filter(|pid| *pid != b"-");
            // A thread's time is in its process's row already.
            let (Some(id), None) = (process, thread) else {
                return false;
            };
            // The command to its end, blanks included.
            let word = fields.get(skip + command);
            let from = (word.as_ptr() as usize).saturating_sub(line.as_ptr() as usize);
            let whole = line.get(from..).unwrap_or(word).trim_ascii_end();
            name.extend_from_slice(whole);
            name.extend_from_slice(b" (pid ");
            name.extend_from_slice(id);
            name.push(b')');
        }
    }
    true
}

impl Table {
    fn take(&mut self, name: &[u8], fields: &Fields<'_>, skip: usize, out: &mut Out<'_>) {
        let Some(place) = self.row_of(name, out) else {
            out.account().left_out += 1;
            return;
        };
        self.next = place + 1;
        let Some(row) = self.rows.get(place) else { return };
        for ((at, metric, factor), series) in self.header.columns.iter().zip(&row.at) {
            let value = figure(fields.get(skip + at)).and_then(|figure| figure.in_unit(*metric, *factor));
            if let Some(value) = value {
                out.figure_at(*series, value);
            }
        }
    }

    fn row_of(&mut self, name: &[u8], out: &mut Out<'_>) -> Option<usize> {
        if self.rows.get(self.next).is_some_and(|row| *row.name == *name) {
            return Some(self.next);
        }
        if let Some(place) = self.by_name.get(name) {
            return Some(*place);
        }
        if self.rows.len() >= ROWS {
            return None;
        }
        let text = String::from_utf8_lossy(name);
        let columns = self.header.columns.iter();
        let at = columns
            .map(|(_, metric, _)| out.series_at(*metric, &text))
            .collect();
        let name: Box<[u8]> = name.into();
        self.rows.push(Row {
            name: name.clone(),
            at,
        });
        self.by_name.insert(name, self.rows.len() - 1);
        Some(self.rows.len() - 1)
    }
}

/// A figure with the unit that it names itself (`--human`: `95.1k`, `25.2%`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Figure {
    value: f64,
    /// KiB of its unit.
    kib: Option<f64>,
}

pub(super) fn figure(word: &[u8]) -> Option<Figure> {
    let (digits, kib) = match word.split_last()? {
        (b'0'..=b'9', _) => (word, None),
        (b'%', digits) => (digits, None),
        (b'B', digits) => (digits, Some(1.0 / 1024.0)),
        (b'k' | b'K', digits) => (digits, Some(1.0)),
        (b'M', digits) => (digits, Some(1024.0)),
        (b'G', digits) => (digits, Some(1024.0 * 1024.0)),
        (b'T', digits) => (digits, Some(1024.0 * 1024.0 * 1024.0)),
        _ => return None,
    };
    decimal(digits).map(|value| Figure { value, kib })
}

/// A figure in whatever unit it is.
pub(super) fn figure_of(word: &[u8]) -> Option<f64> {
    figure(word).map(|figure| figure.value)
}

impl Figure {
    /// In the unit of the metric; `None` for what can't be.
    fn in_unit(self, metric: Metric, factor: f64) -> Option<f64> {
        let factor = self.kib.unwrap_or(factor);
        sane(metric, self.value * factor)
    }
}
