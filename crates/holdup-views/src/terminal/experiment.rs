//! The experiment of `holdup try`: the answer, predicted beside measured, what is left, what it would cost, where the time goes now.
//!
//! In: a report with an experiment. Out: rows; what follows them in the report is a run as it is.

use crate::sheet::{Paint, Row, Sheet};
use crate::terminal::margins::quoted;
use crate::units::{duration, percent};
use holdup_evidence::units::factor;
use holdup_model::report::{Experiment, ExperimentCause, Outcome, PredictedBy, Report};

/// Column at which words begin beside a label.
const WORDS: usize = 13;

/// Columns of a duration.
const AMOUNT: usize = 9;

/// Causes that are printed; `-v` prints all.
const CAUSES: usize = 6;

/// A cause with less than this part of the elapsed time, either way, is left out but on `-v`.
const SMALL: u64 = 100;

/// Writes it. With `-q` the answer alone.
pub(super) fn write(sheet: &mut Sheet, report: &Report, experiment: &Experiment) {
    if sheet.style().quiet {
        answer(sheet, experiment);
        return;
    }
    header(sheet, report, experiment);
    sheet.blank();
    answer(sheet, experiment);
    sheet.blank();
    facts(sheet, experiment);
    sheet.blank();
    causes(sheet, experiment);
    sheet.blank();
    let words = match experiment.outcome {
        Outcome::NotThere => "The unchanged run:",
        _ => "The median of the unchanged runs:",
    };
    let body = vec![sheet.words(words).paint(Paint::Dim)];
    sheet.line(2, body);
    sheet.blank();
}

/// ` holdup   sqlite3 visits.db   without disk.sync   6 and 6 runs`.
fn header(sheet: &mut Sheet, report: &Report, experiment: &Experiment) {
    let words: Vec<String> = report.subject.command.iter().map(|word| quoted(word)).collect();
    let runs = match experiment.outcome {
        Outcome::NotThere => "1 unchanged run".to_owned(),
        _ => format!("{} unchanged runs, {} without", experiment.runs, experiment.runs),
    };
    let lead = vec![sheet.name(" holdup").paint(Paint::Dim)];
    let body = vec![
        sheet.name(&words.join(" ")).paint(Paint::Bold),
        sheet
            .name(&format!("without {}", experiment.without))
            .after(3)
            .paint(Paint::Bold),
        sheet.name(&runs).after(3),
    ];
    sheet.led(lead, super::margins::HEADER, body);
}

/// The sentences; the first stands out.
fn answer(sheet: &mut Sheet, experiment: &Experiment) {
    let all = if sheet.style().quiet {
        1
    } else {
        experiment.verdict.len()
    };
    for (at, sentence) in experiment.verdict.iter().take(all).enumerate() {
        let paint = match (at, experiment.outcome) {
            (0, Outcome::Remains) => Paint::Yellow,
            (0, _) => Paint::Bold,
            _ => Paint::Plain,
        };
        let body = vec![sheet.words(sentence).paint(paint)];
        sheet.line(2, body);
    }
}

/// Kinds of facts about an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fact {
    Predicted,
    Measured,
    Factor,
    Remaining,
    How,
    Risk,
    Note,
    Contained,
    NotContained,
    Pairs,
}

impl Fact {
    /// Its label in front of the text.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Fact::Predicted => "predicted",
            Fact::Measured => "measured",
            Fact::Factor => "factor",
            Fact::Remaining => "remaining",
            Fact::How => "how",
            Fact::Risk => "risk",
            Fact::Note => "note",
            Fact::Contained => "contained",
            Fact::NotContained => "reached",
            Fact::Pairs => "pairs",
        }
    }
}

/// Prediction, measurement and risk of an experiment, as text.
pub(crate) fn facts_of(experiment: &Experiment) -> Vec<(Fact, String)> {
    let mut facts = Vec::new();
    if let Some(ns) = experiment.predicted_ns {
        let by = match experiment.predicted_by {
            Some(PredictedBy::Replay) => "by a replay without that wait",
            _ => "a lower bound from the critical path: another branch may become critical",
        };
        facts.push((Fact::Predicted, format!("{} ({by})", duration(ns))));
    }
    if let Some(ns) = experiment.measured_ns {
        let baseline = duration(experiment.baseline_ns);
        facts.push((Fact::Measured, format!("{}, unchanged {baseline}", duration(ns))));
    }
    if let Some((speedup, [low, high])) = experiment.speedup.zip(experiment.interval) {
        let words = format!(
            "{} to {}, most likely {}",
            factor(low),
            factor(high),
            factor(speedup)
        );
        facts.push((Fact::Factor, format!("{words} (95 % interval, pairs of runs)")));
    }
    if let Some(ns) = experiment.remaining_ns {
        let share = percent(ns, experiment.baseline_ns);
        facts.push((
            Fact::Remaining,
            format!(
                "{} of {}, {share} of the unchanged time",
                duration(ns),
                experiment.without
            ),
        ));
    }
    facts.push((Fact::How, experiment.how.clone()));
    facts.push((Fact::Risk, experiment.risk.clone()));
    facts.extend(experiment.notes.iter().map(|note| (Fact::Note, note.clone())));
    facts
}

fn facts(sheet: &mut Sheet, experiment: &Experiment) {
    let mut facts = facts_of(experiment);
    if sheet.style().verbose {
        facts.extend(
            experiment
                .contained
                .iter()
                .map(|one| (Fact::Contained, one.clone())),
        );
        facts.extend(
            experiment
                .not_contained
                .iter()
                .map(|one| (Fact::NotContained, one.clone())),
        );
        let pairs = experiment
            .pairs
            .iter()
            .map(|[as_is, without]| format!("{}/{}", duration(*as_is), duration(*without)));
        facts.push((Fact::Pairs, pairs.collect::<Vec<_>>().join(", ")));
    }
    for (fact, words) in facts.iter().filter(|(_, words)| !words.is_empty()) {
        let lead = vec![sheet.name(&format!("  {}", fact.label())).paint(Paint::Dim)];
        let paint = match fact {
            Fact::Risk => Paint::Bold,
            _ => Paint::Plain,
        };
        let body = vec![sheet.words(words).paint(paint)];
        sheet.led(lead, WORDS, body);
    }
}

/// Those that matter either way.
pub(crate) fn causes_that_matter(experiment: &Experiment) -> impl Iterator<Item = &ExperimentCause> {
    let least = experiment
        .baseline_ns
        .max(experiment.measured_ns.unwrap_or_default())
        / SMALL;
    experiment
        .causes
        .iter()
        .filter(move |one| one.baseline_ns.max(one.measured_ns) > least)
}

fn causes(sheet: &mut Sheet, experiment: &Experiment) {
    let verbose = sheet.style().verbose;
    let shown: Vec<&ExperimentCause> = match verbose {
        true => experiment.causes.iter().collect(),
        false => causes_that_matter(experiment).take(CAUSES).collect(),
    };
    if shown.is_empty() {
        return;
    }
    let heading = format!("{:>AMOUNT$}   {:>AMOUNT$}", "unchanged", "without");
    let lead = vec![sheet.name(&format!("  {heading}")).paint(Paint::Dim)];
    let body = vec![
        sheet
            .words("where the time goes (mean of the runs)")
            .paint(Paint::Dim),
    ];
    let indent = 2 + 2 * AMOUNT + 3 + 3;
    sheet.led(lead, indent, body);
    for one in shown {
        let figures = format!(
            "{:>AMOUNT$}   {:>AMOUNT$}",
            duration(one.baseline_ns),
            duration(one.measured_ns)
        );
        let lead = vec![sheet.name(&format!("  {figures}"))];
        let body = vec![sheet.words(one.cause.phrase())];
        let edge = Some(sheet.name(one.cause.id()).paint(Paint::Dim));
        sheet.row(Row {
            lead,
            indent,
            body,
            edge,
            ..Row::default()
        });
    }
}
