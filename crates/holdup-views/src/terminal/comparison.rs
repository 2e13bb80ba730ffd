//! The report of `holdup diff`: what got slower, what explains it, what was traded for what, and how sure that is.
//!
//! In: a report with a comparison. Out: the sentences first, then a line for each thing that changed, the change in front and
//! BEFORE and AFTER by name in every line, so that none can be read the wrong way round.

mod hosts;

use crate::sheet::{Paint, Piece, Row, Sheet};
use crate::units::duration;
use holdup_model::report::{AmountChange, CauseChange, Compared, Comparison, Measure, Presence};

/// Column at which words begin beside a label.
const WORDS: usize = 11;

/// Columns of a change, and of an amount.
const CHANGE: usize = 13;
const AMOUNT: usize = 9;

/// Column at which the names begin in a line of a change.
const NAMES: usize = 2 + CHANGE + 2 * (AMOUNT + 9);

/// Lines of changes that are printed; `-v` prints all.
const LINES: usize = 12;

/// Causes that changed by less than this part of the largest change are left out but on `-v`.
const SMALL: u64 = 100;

/// What was made anew and changed by less than this part of it is left out but on `-v`.
const ROUNDED: f64 = 0.02;

/// Writes it.
pub(super) fn write(sheet: &mut Sheet, comparison: &Comparison) {
    let style = *sheet.style();
    if !style.quiet {
        header(sheet, comparison);
        sheet.blank();
    }
    sentences(sheet, comparison);
    if style.quiet {
        return;
    }
    if let Some(trade) = &comparison.trade {
        sheet.blank();
        labelled(sheet, "trade", trade, Paint::Bold);
    }
    sheet.blank();
    hosts::write(sheet, comparison);
    causes(sheet, comparison);
    sheet.blank();
    amounts(sheet, comparison);
    sheet.blank();
    made(sheet, comparison);
    sheet.blank();
    for one in &comparison.differences {
        let words = format!("{}: BEFORE {}, AFTER {}", one.what, one.before, one.after);
        labelled(sheet, "differs", &words, Paint::Plain);
    }
    for note in &comparison.notes {
        labelled(sheet, "note", note, Paint::Plain);
    }
    if style.verbose {
        let words = format!("{} (random seed {:#x})", comparison.method, comparison.seed);
        labelled(sheet, "method", &words, Paint::Dim);
    }
}

/// ` holdup   BEFORE  a.json  4 runs, 500 requests each`, and the same of AFTER below it.
fn header(sheet: &mut Sheet, comparison: &Comparison) {
    for (at, (side, name, runs, units)) in [
        (
            "BEFORE",
            &comparison.before,
            comparison.before_n,
            comparison.before_units,
        ),
        (
            "AFTER",
            &comparison.after,
            comparison.after_n,
            comparison.after_units,
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let lead = if at == 0 {
            vec![sheet.name(" holdup").paint(Paint::Dim)]
        } else {
            vec![]
        };
        let body = vec![
            sheet.name(&format!("{side:<6}")).paint(Paint::Bold),
            sheet.name(name).after(2).paint(Paint::Bold),
            sheet.name(&work(comparison, runs, units)).after(3),
        ];
        sheet.led(lead, WORDS - 1, body);
    }
}

/// `4 runs, 2000 requests`.
fn work(comparison: &Comparison, runs: u32, units: Option<f64>) -> String {
    let counted = |count: f64, what: &str| {
        let ending = if count == 1.0 { "" } else { "s" };
        match count == count.round() {
            true => format!("{count:.0} {what}{ending}"),
            false => format!("{count:.1} {what}{ending}"),
        }
    };
    let units = units.filter(|_| comparison.unit != "run" && comparison.compared != Compared::Figures);
    let what = if comparison.hosts.is_empty() {
        "run"
    } else {
        "host"
    };
    let runs = counted(f64::from(runs), what);
    match units {
        Some(units) => format!("{runs}, {}", counted(units, &comparison.unit)),
        None => runs,
    }
}

/// The answer: the first sentence stands out.
pub(super) fn sentences(sheet: &mut Sheet, comparison: &Comparison) {
    for (at, sentence) in comparison.verdict.iter().enumerate() {
        let paint = match (at, comparison.significant, comparison.change_ns) {
            (0, Some(true), Some(1..)) => Paint::Red,
            (0, _, _) => Paint::Bold,
            _ => Paint::Plain,
        };
        let body = vec![sheet.words(sentence).paint(paint)];
        sheet.line(2, body);
    }
}

fn labelled(sheet: &mut Sheet, label: &str, words: &str, paint: Paint) {
    let lead = vec![sheet.name(&format!("  {label}")).paint(Paint::Dim)];
    let body = vec![sheet.words(words).paint(paint)];
    sheet.led(lead, WORDS, body);
}

fn heading(sheet: &mut Sheet, words: &str) {
    let body = vec![sheet.words(words).paint(Paint::Dim)];
    sheet.line(2, body);
}

/// `a request`.
fn each(unit: &str) -> String {
    match unit {
        "whole" => "as shares of the whole".to_owned(),
        unit if unit.starts_with(['a', 'e', 'i', 'o']) => format!("for an {unit}"),
        unit => format!("for a {unit}"),
    }
}

fn causes(sheet: &mut Sheet, comparison: &Comparison) {
    let verbose = sheet.style().verbose;
    if !comparison.causes.iter().any(|one| verbose || one.change_ns != 0) {
        return;
    }
    let largest = comparison
        .causes
        .iter()
        .map(|one| one.change_ns.unsigned_abs())
        .max();
    let least = largest.unwrap_or(0) / SMALL;
    heading(
        sheet,
        &format!("Time by cause, {}, largest change first:", each(&comparison.unit)),
    );
    let large = |one: &&CauseChange| verbose || one.change_ns.unsigned_abs() > least;
    let shown: Vec<&CauseChange> = comparison
        .causes
        .iter()
        .filter(large)
        .take(limit(verbose))
        .collect();
    for one in &shown {
        let name = vec![
            sheet.words(one.cause.phrase()),
            sheet.words(sure(one.significant)).paint(Paint::Dim),
        ];
        let edge = sheet.name(one.cause.id()).paint(Paint::Dim);
        let change = signed(one.change_ns);
        line(
            sheet,
            &change,
            &duration(one.before_ns),
            &duration(one.after_ns),
            name,
            Some(edge),
        );
    }
    rest(sheet, comparison.causes.len() - shown.len(), "cause", "causes");
}

fn amounts(sheet: &mut Sheet, comparison: &Comparison) {
    if comparison.amounts.is_empty() {
        return;
    }
    let verbose = sheet.style().verbose;
    let what = match comparison.compared {
        Compared::Profiles | Compared::Dumps => format!(
            "Functions by self amount (in brackets: with callees), {}:",
            each(&comparison.unit)
        ),
        Compared::Calls => format!("Time in calls, {}:", each(&comparison.unit)),
        _ => "Means of figures:".to_owned(),
    };
    heading(sheet, &what);
    // What samples scatter by themselves is no news.
    let news = |one: &&AmountChange| verbose || one.within_sampling != Some(true);
    let own = |one: &&AmountChange| one.change != 0.0;
    let by_own: Vec<&AmountChange> = comparison
        .amounts
        .iter()
        .filter(news)
        .filter(own)
        .take(limit(verbose))
        .collect();
    let mut by_within: Vec<&AmountChange> = comparison
        .amounts
        .iter()
        .filter(news)
        .filter(|one| !own(one))
        .collect();
    by_within.sort_by(|a, b| within(b).total_cmp(&within(a)));
    by_within.truncate(limit(verbose) / 2);
    let shown = by_own.len() + by_within.len();
    for one in by_own.into_iter().chain(by_within) {
        amount_line(sheet, one);
    }
    rest(
        sheet,
        comparison.amounts.len() - shown,
        "other changed less, or not significantly",
        "others changed less, or not significantly",
    );
}

fn within(one: &AmountChange) -> f64 {
    one.within.map_or(0.0, |within| within[2].abs())
}

fn made(sheet: &mut Sheet, comparison: &Comparison) {
    let verbose = sheet.style().verbose;
    if comparison.made.is_empty() {
        return;
    }
    // The first and the last unit of a recording are cut: a line of which both figures are the same is no news.
    let news = |one: &&AmountChange| verbose || one.change.abs() > ROUNDED * one.before.max(one.after);
    let shown: Vec<&AmountChange> = comparison.made.iter().filter(news).take(limit(verbose)).collect();
    if !shown.is_empty() {
        heading(sheet, &format!("How many, {}:", each(&comparison.unit)));
    }
    for one in &shown {
        amount_line(sheet, one);
    }
    rest(sheet, comparison.made.len() - shown.len(), "more", "more");
}

fn amount_line(sheet: &mut Sheet, one: &AmountChange) {
    let mut name = vec![sheet.name(&one.name)];
    match one.presence {
        Presence::New => name.push(sheet.words("(new: BEFORE had none)").paint(Paint::Yellow)),
        Presence::Gone => name.push(sheet.words("(gone: AFTER has none)").paint(Paint::Yellow)),
        Presence::Both => {}
    }
    name.push(sheet.words(sure(one.significant)).paint(Paint::Dim));
    let mut figures = [one.before, one.after, one.change];
    match one.within {
        // It did nothing itself: what it called did.
        Some(within) if figures == [0.0; 3] => {
            figures = within;
            name.push(sheet.words("(in its callees)"));
        }
        Some(within) if within != figures => {
            let [before, after, change] = within;
            let words = format!(
                "({}: BEFORE {}, AFTER {})",
                change_of(change, one.measure),
                amount(before, one.measure),
                amount(after, one.measure)
            );
            name.push(sheet.words(&words));
        }
        _ => {}
    }
    let [before, after, change] = figures;
    let change = change_of(change, one.measure);
    let (before, after) = (amount(before, one.measure), amount(after, one.measure));
    line(sheet, &change, &before, &after, name, None);
}

/// `   +16.2 ms   BEFORE 20.8 ms   AFTER 37.0 ms   what it is`.
fn line(sheet: &mut Sheet, change: &str, before: &str, after: &str, name: Vec<Piece>, edge: Option<Piece>) {
    let figures = vec![
        sheet.name(&format!("{change:>CHANGE$}")).paint(Paint::Bold),
        sheet.name(&format!("BEFORE {before:<AMOUNT$}")).after(2),
        sheet.name(&format!("AFTER {after:<AMOUNT$}")).after(1),
    ];
    // Names that do not fit beside the figures stand below them.
    let width: usize = name.iter().chain(&edge).map(|piece| piece.width() + 2).sum();
    if sheet.columns() < NAMES + width {
        sheet.line(0, figures);
        sheet.row(Row {
            indent: CHANGE + 2,
            body: name,
            edge,
            ..Row::default()
        });
        return;
    }
    sheet.row(Row {
        lead: figures,
        indent: NAMES,
        body: name,
        edge,
        ..Row::default()
    });
}

fn rest(sheet: &mut Sheet, count: usize, one: &str, many: &str) {
    if count > 0 {
        let what = if count == 1 { one } else { many };
        let body = vec![
            sheet
                .words(&format!("and {count} {what}: -v lists them"))
                .paint(Paint::Dim),
        ];
        sheet.line(CHANGE + 2, body);
    }
}

fn limit(verbose: bool) -> usize {
    if verbose { usize::MAX } else { LINES }
}

fn sure(significant: Option<bool>) -> &'static str {
    match significant {
        Some(true) => "(significant)",
        Some(false) => "(may be noise)",
        None => "",
    }
}

fn signed(ns: i64) -> String {
    match ns {
        0 => "0 s".to_owned(),
        1.. => format!("+{}", duration(ns.unsigned_abs())),
        _ => format!("-{}", duration(ns.unsigned_abs())),
    }
}

fn amount(value: f64, measure: Measure) -> String {
    let value = value.abs();
    match measure {
        Measure::Ns => duration(value.round() as u64),
        Measure::Share => format!("{:.1} %", value * 100.0),
        Measure::Percent => format!("{value:.1} %"),
        Measure::Samples | Measure::Threads | Measure::Count if value == value.round() => {
            format!("{value:.0}")
        }
        Measure::Samples | Measure::Threads | Measure::Count if value < 1.0 => format!("{value:.3}"),
        Measure::Samples | Measure::Threads | Measure::Count => format!("{value:.1}"),
    }
}

fn change_of(value: f64, measure: Measure) -> String {
    let sign = match () {
        () if value > 0.0 => "+",
        () if value < 0.0 => "-",
        () => "",
    };
    match measure {
        Measure::Share => format!("{sign}{:.1} points", value.abs() * 100.0),
        Measure::Percent => format!("{sign}{:.1} points", value.abs()),
        measure => format!("{sign}{}", amount(value, measure)),
    }
}
