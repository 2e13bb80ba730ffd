//! The answer in sentences, and how it was come by.
//!
//! In: a comparison with all its figures. Out: one sentence with what got slower and by how much, what explains it, what stays
//! unexplained and what was traded for what ([`super::trade`]); then each of these with its figures, and what chance has to say.
//! BEFORE and AFTER are in every sentence, so that none can be read the wrong way round.

use super::runs::Changes;
use super::significance::Basis;
use super::source::WHOLE;
use super::trade::Trade;
use holdup_evidence::Cause;
use holdup_evidence::units::duration;
use holdup_model::report::{AmountChange, CauseChange, Compared, Comparison, Measure};

/// Causes that are named; they explain this much of the change, in per cent, or there are no more of them.
const NAMED: usize = 3;
const EXPLAINED: i64 = 80;

/// The whole answer.
pub(super) fn verdict(comparison: &Comparison, trade: &Trade, basis: Basis, within: bool) -> Vec<String> {
    let mut sentences = vec![headline(comparison, trade)];
    sentences.extend(explanation(comparison));
    sentences.extend(unexplained(comparison));
    let same = comparison.change_ns.is_none_or(|change| change == 0) && comparison.amounts.is_empty();
    if !same {
        sentences.push(certainty(comparison, basis, within));
    }
    sentences
}

/// `a request`.
#[must_use]
pub(super) fn each(unit: &str) -> String {
    match unit {
        WHOLE => "of the whole".to_owned(),
        unit if unit.starts_with(['a', 'e', 'i', 'o']) => format!("an {unit}"),
        unit => format!("a {unit}"),
    }
}

/// `+11.7 ms`.
fn signed(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "+" };
    format!("{sign}{}", duration(ns.unsigned_abs()))
}

/// `+25.3 %`, of BEFORE.
fn relative(before: f64, change: f64) -> String {
    if before <= 0.0 {
        "BEFORE had none".to_owned()
    } else {
        format!("{:+.1} %", change / before * 100.0)
    }
}

/// An amount in its measure.
#[must_use]
pub(super) fn amount(value: f64, measure: Measure) -> String {
    match measure {
        Measure::Ns => duration(value.abs().round() as u64),
        Measure::Share => format!("{:.1} %", value.abs() * 100.0),
        Measure::Samples => format!("{:.1} samples", value.abs()),
        Measure::Threads => format!("{:.1} threads", value.abs()),
        Measure::Percent => format!("{:.1} %", value.abs()),
        Measure::Count => short(value.abs()),
    }
}

/// A number with as many places as it needs.
pub(super) fn short(value: f64) -> String {
    match () {
        () if value == value.round() && value < 1e15 => format!("{value:.0}"),
        () if value < 1.0 => format!("{value:.3}"),
        () if value < 100.0 => format!("{value:.1}"),
        () => format!("{value:.0}"),
    }
}

/// The whole answer in one sentence: it is what people pass on.
fn headline(comparison: &Comparison, trade: &Trade) -> String {
    let each = each(&comparison.unit);
    let (Some(before), Some(after), Some(change)) =
        (comparison.before_ns, comparison.after_ns, comparison.change_ns)
    else {
        return without_time(comparison);
    };
    let both = format!("BEFORE {}, AFTER {}", duration(before), duration(after));
    let by = format!("{} ({})", signed(change), relative(before as f64, change as f64));
    let is = match (change, comparison.significant) {
        (0, _) => {
            return format!(
                "No difference: BEFORE and AFTER take {} {each}.",
                duration(before)
            );
        }
        (_, Some(false)) => {
            return format!("No significant difference: {both} {each}, {by}.");
        }
        (1.., Some(true)) => "AFTER is slower than BEFORE",
        (_, Some(true)) => "AFTER is faster than BEFORE",
        (1.., None) => "AFTER took longer than BEFORE",
        (_, None) => "AFTER took less time than BEFORE",
    };
    let why = why(comparison, change).map(|why| format!(", {why}"));
    let trade = trade.clause().map(|trade| format!("; {trade}"));
    format!(
        "{is}: {by} {each} ({both}){}{}.",
        why.unwrap_or_default(),
        trade.unwrap_or_default()
    )
}

/// `most of it (89 %) waiting in a TLS handshake, none of it unexplained`.
fn why(comparison: &Comparison, change: i64) -> Option<String> {
    if !comparison.amounts.is_empty() || comparison.compared != Compared::Recordings {
        return None;
    }
    let mut clauses = match explaining(comparison, change).as_slice() {
        [] => Vec::new(),
        [one] => vec![format!(
            "{} {}",
            part(one.change_ns, change).to_lowercase(),
            one.cause.phrase()
        )],
        several => several
            .iter()
            .map(|one| {
                let share = one.change_ns as f64 / change as f64 * 100.0;
                format!("{share:.0} % of it {}", one.cause.phrase())
            })
            .collect(),
    };
    let rest = comparison.unexplained_ns?;
    clauses.push(if told_in_full(rest, change) {
        "none of it unexplained".to_owned()
    } else {
        format!("{:.0} % of it unexplained", rest as f64 / change as f64 * 100.0)
    });
    Some(clauses.join(", "))
}

/// Whether what no cause tells is too little to be spoken of: less than half a per cent of the change.
fn told_in_full(rest: i64, change: i64) -> bool {
    rest.unsigned_abs().saturating_mul(200) < change.unsigned_abs()
}

/// Of things that tell of no time: what changed most.
fn without_time(comparison: &Comparison) -> String {
    let Some(most) = comparison.amounts.first() else {
        return "No difference: BEFORE and AFTER have the same.".to_owned();
    };
    if comparison
        .amounts
        .iter()
        .all(|one| one.within_sampling == Some(true))
    {
        return "No significant difference: AFTER differs from BEFORE by no more than the sampling error."
            .to_owned();
    }
    format!("The largest change is {}.", of_amount(most, comparison))
}

/// `socketRead: BEFORE 45.0 %, AFTER 64.0 % of the whole, +19.0 points`.
fn of_amount(one: &AmountChange, comparison: &Comparison) -> String {
    let each = match comparison.compared {
        Compared::Figures => String::new(),
        _ => format!(" {}", each(&comparison.unit)),
    };
    let sign = if one.change < 0.0 { '-' } else { '+' };
    let change = match one.measure {
        Measure::Share | Measure::Percent => {
            let points = if one.measure == Measure::Share {
                one.change * 100.0
            } else {
                one.change
            };
            format!("{points:+.1} points")
        }
        measure => format!("{sign}{}", amount(one.change, measure)),
    };
    format!(
        "{}: BEFORE {}, AFTER {}{each}, {change}",
        one.name,
        amount(one.before, one.measure),
        amount(one.after, one.measure),
    )
}

/// What explains the change.
fn explanation(comparison: &Comparison) -> Option<String> {
    let change = comparison.change_ns.filter(|change| *change != 0)?;
    if comparison.significant == Some(false) {
        let sure = comparison
            .causes
            .iter()
            .filter(|one| one.significant == Some(true));
        let list: Vec<String> = sure.take(NAMED).map(of_cause).collect();
        return (!list.is_empty()).then(|| format!("Significant: {}.", list.join("; and ")));
    }
    if !comparison.amounts.is_empty() {
        let same =
            |one: &&AmountChange| one.change.signum() as i64 == change.signum() && one.measure == Measure::Ns;
        let most = comparison.amounts.iter().find(same)?;
        let share = part(most.change.round() as i64, change);
        return Some(format!("{share} is in {}.", of_amount(most, comparison)));
    }
    let named = explaining(comparison, change);
    let found = named.iter().map(|one| one.change_ns).fold(0, i64::saturating_add);
    let list: Vec<String> = named.into_iter().map(of_cause).collect();
    (!list.is_empty()).then(|| format!("{} is {}.", part(found, change), list.join("; and ")))
}

/// The causes that explain the change, largest first.
fn explaining(comparison: &Comparison, change: i64) -> Vec<&CauseChange> {
    let same = |one: &&CauseChange| one.change_ns.signum() == change.signum() && one.cause != Cause::Unknown;
    let mut found = 0_i64;
    let mut named: Vec<&CauseChange> = Vec::new();
    for one in comparison.causes.iter().filter(same).take(NAMED) {
        // What is small beside the rest of the explanation explains nothing.
        if found.saturating_mul(100) / change >= EXPLAINED || one.change_ns.saturating_mul(20) / change < 1 {
            break;
        }
        found = found.saturating_add(one.change_ns);
        named.push(one);
    }
    named
}

/// `sleeping on purpose (timer.sleep), +100 ms (BEFORE 250 ms, AFTER 350 ms)`.
fn of_cause(one: &CauseChange) -> String {
    let chance = match one.significant {
        Some(false) => ", which may be noise",
        _ => "",
    };
    format!(
        "{} ({}), {} (BEFORE {}, AFTER {}){chance}",
        one.cause.phrase(),
        one.cause,
        signed(one.change_ns),
        duration(one.before_ns),
        duration(one.after_ns)
    )
}

/// How much of the change a part of it is.
fn part(of: i64, change: i64) -> String {
    let share = of as f64 / change as f64 * 100.0;
    match share {
        100.5.. => "More than all of it".to_owned(),
        99.5..100.5 => "All of it".to_owned(),
        50.0..99.5 => format!("Most of it ({share:.0} %)"),
        _ => format!("{share:.0} % of it"),
    }
}

/// Which part of the change is known by nothing.
fn unexplained(comparison: &Comparison) -> Option<String> {
    let change = comparison.change_ns.filter(|change| *change != 0)?;
    if comparison.significant == Some(false) {
        return None;
    }
    let rest = comparison.unexplained_ns?;
    let share = rest as f64 / change as f64 * 100.0;
    Some(match comparison.compared {
        Compared::Times if comparison.causes.len() < 2 => {
            let (longer, other) = if change > 0 {
                ("AFTER", "BEFORE")
            } else {
                ("BEFORE", "AFTER")
            };
            format!(
                "The additional wait of {longer} compared with {other} is unexplained: `time` reports only \
                 how long it is."
            )
        }
        Compared::Times => format!(
            "{} from BEFORE to AFTER ({share:.0} % of the change) was waiting. Its reason is unexplained: \
             `time` does not report it.",
            signed(rest)
        ),
        Compared::Profiles => return None,
        _ if told_in_full(rest, change) => return None,
        _ => format!(
            "{} from BEFORE to AFTER ({share:.0} % of the change) is unexplained.",
            signed(rest)
        ),
    })
}

/// What chance has to say.
fn certainty(comparison: &Comparison, basis: Basis, within: bool) -> String {
    let runs = format!(
        "BEFORE has {}, AFTER {}",
        runs(comparison.before_n),
        runs(comparison.after_n)
    );
    let varies = comparison
        .run_to_run
        .map(|share| format!("; runs vary by {:.1} %", share * 100.0));
    let varies = varies.unwrap_or_default();
    let p = comparison.p.map(|p| format!(", p {p:.3}")).unwrap_or_default();
    match basis {
        _ if comparison.compared == Compared::Figures && basis == Basis::TooFew => {
            format!("{runs}, so this may be noise: run-to-run variation was not measured.")
        }
        Basis::Permutation => format!("{runs}{varies}{p}."),
        Basis::OtherRuns => format!(
            "{runs}, and {} like BEFORE measure how much runs vary{varies}{p}.",
            super::words::runs(comparison.noise_n)
        ),
        Basis::TooFew if comparison.before_n == 1 && comparison.after_n == 1 => {
            let inside = match comparison.interval_ns.filter(|_| within) {
                Some([low, high]) => format!(
                    "; from the data within them alone the change is {} to {}",
                    signed(low),
                    signed(high)
                ),
                None => String::new(),
            };
            format!(
                "BEFORE and AFTER are one run each, so this may be noise: run-to-run variation was not \
                 measured{inside}. Record at least four runs of each to know."
            )
        }
        Basis::TooFew => {
            format!("{runs}{varies}; this may be noise. Record at least four runs of each to know.")
        }
    }
}

fn runs(count: u32) -> String {
    format!("{count} {}", if count == 1 { "run" } else { "runs" })
}

/// How it was reported, with the source of the method.
pub(super) fn method(changes: &Changes) -> String {
    match changes.basis {
        Basis::Permutation => {
            "permutation of runs for the whole (interval: the shifts that it does not reject); for its parts \
             also Welch's test, with Holm's correction"
        }
        Basis::OtherRuns => {
            "Student's test with the variation between runs pooled over BEFORE, AFTER and noise; parts corrected by Holm"
        }
        Basis::TooFew if changes.interval_within => "block bootstrap within one run each, 20 blocks: run-to-run variation not measured",
        Basis::TooFew => "none: run-to-run variation not measured",
    }
    .to_owned()
}
