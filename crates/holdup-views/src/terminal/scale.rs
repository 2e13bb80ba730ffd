//! The report of `holdup scale`: the verdict, the plot, the figures of each point.
//!
//! In: a report with a scaling. Out: rows. The plot is drawn in cells of characters, as large as the style's columns allow; marks are
//! distinguished by their shape, and colour only adds to it.

use super::{finding, margins};
use crate::plot::{Plot, power, rate};
use crate::sheet::{Paint, Piece, Row, Sheet};
use crate::units::duration;
use holdup_evidence::Ns;
use holdup_model::finding::Severity;
use holdup_model::report::{Report, Scaling, ScalingPoint, ScalingVerdict};

/// Columns before the plot: room for `1/16 `, and the axis.
const AXIS: usize = 8;

/// Columns of the plot at most: wider ones are no easier to read.
const WIDEST: usize = 72;

/// Rows for a doubling, and rows of a plot at most.
const ROWS: usize = 3;
const HIGHEST: usize = 18;

/// Columns at which the table gets more of its figures: the control's, those of the time of an operation, and those of intervals.
const WITH_CONTROL: usize = 46;
const WITH_TIMES: usize = 74;
const WITH_INTERVALS: usize = 96;

/// Writes it.
pub(super) fn write(sheet: &mut Sheet, report: &Report, scaling: &Scaling) {
    let style = *sheet.style();
    if !style.quiet {
        header(sheet, scaling);
        sheet.blank();
    }
    verdict(sheet, scaling);
    if style.quiet {
        margins::gaps(sheet, report);
        return;
    }
    sheet.blank();
    plot(sheet, scaling);
    sheet.blank();
    table(sheet, scaling);
    sheet.blank();
    remarks(sheet, scaling);
    sheet.blank();
    for one in &report.findings {
        if style.verbose && one.severity != Severity::Note {
            finding::write(sheet, one, finding::Title::Here, report.subject.wall_ns, true);
            sheet.blank();
        } else {
            finding::title(sheet, one, finding::Title::Here);
        }
    }
    sheet.blank();
    margins::gaps(sheet, report);
    if style.verbose {
        margins::threads(sheet, report);
        margins::other_rules(sheet, report);
    }
    foot(sheet, report);
}

/// ` holdup   reads of 4096 bytes from /dev/urandom   1 to 16 workers   2 CPUs   6 times each`.
pub(super) fn header(sheet: &mut Sheet, scaling: &Scaling) {
    let most = scaling.points.last().map_or(0, |point| point.workers);
    let count = |count: u32, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let lead = vec![sheet.name(" holdup").paint(Paint::Dim)];
    let body = vec![
        sheet.name(&scaling.what).paint(Paint::Bold),
        sheet.name(&format!("1 to {}", count(most, "worker"))).after(3),
        sheet.name(&count(scaling.cpus, "CPU")).after(3),
        sheet
            .name(&format!("each point {}", count(scaling.repeats, "time")))
            .after(3),
    ];
    sheet.led(lead, margins::HEADER, body);
}

/// The sentences; the first stands out.
pub(super) fn verdict(sheet: &mut Sheet, scaling: &Scaling) {
    let first = match scaling.verdict {
        ScalingVerdict::Contends => Paint::Yellow,
        ScalingVerdict::CpuBound | ScalingVerdict::Scales => Paint::Bold,
    };
    for (at, sentence) in scaling.words.iter().enumerate() {
        let body = vec![
            sheet
                .words(sentence)
                .paint(if at == 0 { first } else { Paint::Plain }),
        ];
        let edge = (at == 0).then(|| sheet.name(scaling.verdict.id()).paint(Paint::Dim));
        sheet.row(Row {
            indent: 2,
            body,
            edge,
            ..Row::default()
        });
    }
}

/// A cell of the plot: what is drawn later and matters more replaces what was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    Nothing,
    Ideal,
    Fit,
    ControlInterval,
    SubjectInterval,
    Control,
    Subject,
    Both,
}

impl Mark {
    fn glyph(self, unicode: bool) -> char {
        let (drawn, plain) = match self {
            Mark::Nothing => (' ', ' '),
            Mark::Ideal => ('·', '.'),
            Mark::Fit => ('─', '-'),
            Mark::ControlInterval => ('┆', ':'),
            Mark::SubjectInterval => ('│', '|'),
            Mark::Control => ('◇', 'c'),
            Mark::Subject => ('●', 'o'),
            Mark::Both => ('◆', '8'),
        };
        if unicode { drawn } else { plain }
    }

    fn paint(self) -> Paint {
        match self {
            Mark::Subject | Mark::Both | Mark::SubjectInterval => Paint::Bold,
            Mark::Fit => Paint::Yellow,
            Mark::Nothing => Paint::Plain,
            Mark::Ideal | Mark::Control | Mark::ControlInterval => Paint::Dim,
        }
    }
}

/// The plot, its axes and what its marks mean.
fn plot(sheet: &mut Sheet, scaling: &Scaling) {
    let Some(plot) = Plot::new(scaling) else { return };
    let unicode = sheet.style().unicode;
    let columns = (sheet.columns() - AXIS - 2).min(WIDEST);
    let doublings = (plot.highest - plot.lowest).unsigned_abs() as usize;
    let rows = (doublings * ROWS).min(HIGHEST) + 1;
    let cells = drawn(&plot, columns, rows);
    let title = "times the work of one worker, against workers";
    line(sheet, String::new(), vec![sheet.words(title).paint(Paint::Dim)]);
    let place = |up: f64| ((1.0 - up) * (rows - 1) as f64).round() as usize;
    let bar = if unicode { '│' } else { '|' };
    for (at, row) in cells.iter().enumerate() {
        let label = (plot.lowest..=plot.highest).find(|step| place(plot.up(2.0_f64.powi(*step))) == at);
        let label = label.map(power).unwrap_or_default();
        let body = pieces(sheet, row, unicode);
        line(sheet, format!("{label:>6} {bar}"), body);
    }
    let (corner, dash) = if unicode { ('└', "─") } else { ('+', "-") };
    let body = vec![sheet.name(&dash.repeat(columns))];
    line(sheet, format!("{:>6} {corner}", ""), body);
    let mut numbers = vec![' '; columns];
    let mut free = 0;
    for spot in &plot.spots {
        let text = spot.workers.to_string();
        let at = across(&plot, spot.workers, columns)
            .saturating_sub(text.len() / 2)
            .max(free);
        if at + text.len() <= columns {
            for (place, digit) in text.chars().enumerate() {
                numbers[at + place] = digit;
            }
            free = at + text.len() + 1;
        }
    }
    let numbers: String = numbers.into_iter().collect();
    let body = vec![sheet.name(numbers.trim_end())];
    line(sheet, String::new(), body);
    let key = |mark: Mark, words: &str| format!("{} {words}", mark.glyph(unicode));
    let mut keys = vec![
        key(Mark::Subject, "measured"),
        key(Mark::SubjectInterval, "where it lies"),
        key(Mark::Control, "control"),
        key(Mark::Both, "both"),
        key(Mark::Ideal, "ideal"),
    ];
    if plot.spots.iter().any(|spot| spot.fitted.is_some()) {
        keys.push(key(Mark::Fit, "fitted law"));
    }
    let body = keys.iter().map(|words| sheet.name(words).after(3)).collect();
    line(sheet, String::new(), body);
}

fn line(sheet: &mut Sheet, lead: String, body: Vec<Piece>) {
    let lead = match lead.is_empty() {
        true => vec![],
        false => vec![sheet.name(&lead).paint(Paint::Dim)],
    };
    sheet.led(lead, AXIS + 1, body);
}

fn across(plot: &Plot, workers: u32, columns: usize) -> usize {
    (plot.across(workers) * (columns - 1) as f64).round() as usize
}

/// Draws it, the least first.
fn drawn(plot: &Plot, columns: usize, rows: usize) -> Vec<Vec<Mark>> {
    let mut cells = vec![vec![Mark::Nothing; columns]; rows];
    let row = |times: f64| ((1.0 - plot.up(times)) * (rows - 1) as f64).round() as usize;
    let mut put = |column: usize, row: usize, mark: Mark| {
        let cell = &mut cells[row][column];
        *cell = match (*cell, mark) {
            (Mark::Control, Mark::Subject) => Mark::Both,
            (there, mark) => there.max(mark),
        };
    };
    let most = plot.spots.last().map_or(1, |spot| spot.workers);
    // Every second cell of the ideal, so that it stays in the background.
    for column in (0..columns).step_by(2) {
        let workers = f64::from(most).powf(column as f64 / (columns - 1).max(1) as f64);
        put(column, row(workers), Mark::Ideal);
    }
    for pair in plot.spots.windows(2) {
        let [Some(from), Some(to)] = [pair[0].fitted, pair[1].fitted] else {
            continue;
        };
        let (left, right) = (
            across(plot, pair[0].workers, columns),
            across(plot, pair[1].workers, columns),
        );
        for column in left..=right {
            let part = (column - left) as f64 / (right - left).max(1) as f64;
            put(column, row(from * (to / from).powf(part)), Mark::Fit);
        }
    }
    for spot in &plot.spots {
        let column = across(plot, spot.workers, columns);
        for (interval, mark) in [
            (spot.control_interval, Mark::ControlInterval),
            (spot.subject_interval, Mark::SubjectInterval),
        ] {
            for at in row(interval[1])..=row(interval[0]) {
                put(column, at, mark);
            }
        }
        put(column, row(spot.control), Mark::Control);
        put(column, row(spot.subject), Mark::Subject);
    }
    cells
}

/// A row of cells as pieces of one look each.
fn pieces(sheet: &Sheet, row: &[Mark], unicode: bool) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let last = row
        .iter()
        .rposition(|mark| *mark != Mark::Nothing)
        .map_or(0, |at| at + 1);
    let mut rest = &row[..last];
    while let Some(first) = rest.first() {
        let length = rest
            .iter()
            .take_while(|mark| mark.paint() == first.paint())
            .count();
        let text: String = rest[..length].iter().map(|mark| mark.glyph(unicode)).collect();
        pieces.push(sheet.name(&text).paint(first.paint()).after(0));
        rest = &rest[length..];
    }
    pieces
}

/// The figures of each point.
fn table(sheet: &mut Sheet, scaling: &Scaling) {
    let columns = sheet.columns();
    let (controls, times, intervals) = (
        columns >= WITH_CONTROL,
        columns >= WITH_TIMES,
        columns >= WITH_INTERVALS,
    );
    let cells = |cells: [String; 9]| {
        let [workers, rate, interval, control, p50, p99, cpu, queued, blocked] = cells;
        let mut text = format!("{workers:>9} {rate:>7}");
        if intervals {
            text.push_str(&format!(" {interval:>16}"));
        }
        if controls {
            text.push_str(&format!(" {control:>9}"));
        }
        text.push_str(&format!(" {p50:>8} {p99:>8}"));
        if times {
            text.push_str(&format!(" {cpu:>8} {queued:>8} {blocked:>8}"));
        }
        text
    };
    let head = cells(
        [
            "workers",
            "rate/s",
            "lies in",
            "control/s",
            "median",
            "p99",
            "on CPU",
            "no CPU",
            "waiting",
        ]
        .map(str::to_owned),
    );
    let mut row = |text: &str, paint: Paint| {
        let body = vec![sheet.name(text).paint(paint)];
        sheet.line(0, body);
    };
    row(&head, Paint::Dim);
    for point in &scaling.points {
        row(&cells(figures(point)), Paint::Plain);
    }
}

/// The figures of a point: workers, rate, its interval, control, median, p99, on a CPU, without one, waiting.
pub(crate) fn figures(point: &ScalingPoint) -> [String; 9] {
    let [low, high] = point.throughput_interval;
    let time = |ns: f64| duration(ns.round().max(0.0) as Ns);
    [
        point.workers.to_string(),
        rate(point.throughput),
        format!("{} to {}", rate(low), rate(high)),
        rate(point.control),
        duration(point.p50_ns),
        duration(point.p99_ns),
        time(point.each.user_ns + point.each.kernel_ns),
        time(point.each.queued_ns),
        time(point.each.blocked_ns),
    ]
}

/// The law, what the control was, and what is to be kept in mind.
pub(super) fn remarks(sheet: &mut Sheet, scaling: &Scaling) {
    let mut labelled = |label: &str, words: &str| {
        let lead = vec![sheet.name(&format!("  {label}")).paint(Paint::Dim)];
        let body = vec![sheet.words(words)];
        sheet.led(lead, 11, body);
    };
    if let Some(words) = law(scaling) {
        labelled("law", &words);
    }
    labelled("control", &scaling.control);
    for note in &scaling.notes {
        labelled("note", note);
    }
    labelled("order", &format!("random; --seed {} repeats it", scaling.seed));
}

/// What the fitted law says, or why there is none.
pub(crate) fn law(scaling: &Scaling) -> Option<String> {
    let ends = |[low, high]: [f64; 2]| format!("{low:.3} to {high:.3}");
    match (scaling.fit, scaling.sigma, scaling.kappa) {
        (Some([sigma, kappa]), Some(of_sigma), Some(of_kappa)) => Some(format!(
            "universal scalability law beyond the control: contention sigma {sigma:.3} ({}), coherency kappa \
             {kappa:.4} ({}), 95 % intervals",
            ends(of_sigma),
            ends(of_kappa)
        )),
        _ => scaling.no_fit.clone(),
    }
}

fn foot(sheet: &mut Sheet, report: &Report) {
    sheet.blank();
    if report.coverage.observed_ns.is_some() {
        margins::accounting(sheet, report, None);
    }
}
