//! Conditions over the time of causes: `disk.sync>20%`, `net.dns>200ms`.
//!
//! A figure is not a point. Time without a known cause may belong to any cause, samples split time with an error, files prove only what is
//! in them, and an observation that ended before its subject saw only a part. So the figure has a least and a most value, and a condition is
//! decided only where both lie on one side of the limit.

use super::{Condition, Judged, Limit, NORMAL_95};
use holdup_evidence::units::{duration, percent};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{How, Uncertainty, error_together};
use holdup_model::report::{Backend, GateOutcome, GateUnit, Measured, Report, SubjectKind};

/// How much time, at least and at most.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Reach {
    value: Ns,
    low: Ns,
    /// `None`: no bound is known.
    high: Option<Ns>,
    /// All of the time; `None` where the whole is not known.
    whole: Option<Ns>,
    /// Why `low` and `high` are not `value`.
    why: Option<Why>,
}

/// What keeps a figure from being exact.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Why {
    /// So much time has no known cause.
    Unknown(Ns),
    /// Causes of blocked time are estimates.
    Sampled,
    /// Files prove only what is in them.
    Artefacts,
    /// Observation ended before CMD did.
    Cut,
    /// Nothing was observed.
    Nothing,
}

/// Judges it.
pub(super) fn judge(condition: &Condition, causes: &[Cause], limit: Limit, report: &Report) -> Judged {
    let reach = reach(causes, report);
    let name = match condition {
        Condition::Time { named, .. } => named.as_str(),
        _ => "",
    };
    let Some(measured) = measured(&reach, limit) else {
        let text = format!("{name} cannot be compared with {limit}: {}", reason(&reach));
        return Judged::cannot_tell(text);
    };
    let outcome = match measured.high {
        _ if measured.low > measured.limit => GateOutcome::Failed,
        Some(high) if high <= measured.limit => GateOutcome::Passed,
        _ => GateOutcome::CannotTell,
    };
    let value = said(&reach, limit);
    let text = match outcome {
        GateOutcome::Failed => format!("{name} took {value}, more than {limit}"),
        GateOutcome::Passed => format!("{name} took {value}, not more than {limit}"),
        GateOutcome::CannotTell => {
            let whole = reach.whole.unwrap_or_default();
            let most = reach.high.map_or("with no upper bound".to_owned(), |high| {
                format!("at most {}", amount(high, whole, limit))
            });
            let least = amount(reach.low, whole, limit);
            format!(
                "{name} took at least {least}, {most}, so {limit} may be exceeded: {}",
                reason(&reach)
            )
        }
    };
    Judged {
        measured: Some(measured),
        ..Judged::new(outcome, text)
    }
}

/// In the unit of the limit; `None` where there is nothing to compare.
fn measured(reach: &Reach, limit: Limit) -> Option<Measured> {
    if reach.why == Some(Why::Nothing) {
        return None;
    }
    match limit {
        Limit::Time(limit) => Some(Measured {
            unit: GateUnit::Ns,
            value: reach.value as f64,
            low: reach.low as f64,
            high: reach.high.map(|high| high as f64),
            limit: limit as f64,
        }),
        Limit::Share(limit) => {
            let whole = reach.whole.filter(|whole| *whole > 0)?;
            let share = |ns: Ns| (ns as f64 / whole as f64).min(1.0);
            // Of a whole that went on, even the least share is not known.
            let low = if reach.why == Some(Why::Cut) { 0 } else { reach.low };
            Some(Measured {
                unit: GateUnit::Share,
                value: share(reach.value),
                low: share(low),
                high: reach.high.map(share),
                limit,
            })
        }
    }
}

/// How much time causes took.
fn reach(causes: &[Cause], report: &Report) -> Reach {
    let of = |wanted: &dyn Fn(Cause) -> bool| -> Ns {
        let shares = report.causes.iter().filter(|share| wanted(share.cause));
        shares.fold(0, |sum, share| sum.saturating_add(share.ns))
    };
    let (value, whole) = (of(&|cause| causes.contains(&cause)), of(&|_| true));
    let hidden = match causes.contains(&Cause::Unknown) {
        true => 0,
        false => of(&|cause| cause == Cause::Unknown),
    };
    let error = error(causes, value, report);
    let low = value.saturating_sub(error);
    let bounded = |why: Option<Why>| Reach {
        value,
        low,
        high: Some(
            value
                .saturating_add(error)
                .saturating_add(hidden)
                .min(whole.max(value)),
        ),
        whole: Some(whole),
        why,
    };
    let unbounded = |why: Why| Reach {
        high: None,
        ..bounded(Some(why))
    };
    if report.coverage.backend == Backend::Artefact && report.coverage.observed_ns.is_none() {
        return Reach {
            whole: None,
            ..unbounded(Why::Artefacts)
        };
    }
    if report.subject.kind == SubjectKind::Run && report.subject.exit.is_none() {
        return unbounded(Why::Cut);
    }
    match () {
        () if whole == 0 => unbounded(Why::Nothing),
        () if hidden > 0 => bounded(Some(Why::Unknown(hidden))),
        () if error > 0 => bounded(Some(Why::Sampled)),
        () => bounded(None),
    }
}

/// How far off the sum may be with 95 %, where samples split it. Rows are of threads' own time; of a run, only the part of it on the critical
/// path counts, and its error in proportion.
fn error(causes: &[Cause], value: Ns, report: &Report) -> Ns {
    let sampled = report.waits.iter().any(|wait| wait.how == How::Sampled);
    if !sampled {
        return 0;
    }
    let rows = report.waits.iter().map(|wait| Uncertainty {
        thread: (wait.asker.pid, wait.asker.tid),
        of_these: causes.contains(&wait.cause),
        on_cpu: wait.cause.on_cpu(),
        error: wait.error_ns,
    });
    let error = error_together(rows) as f64 * NORMAL_95;
    let own = report.waits.iter().filter(|wait| causes.contains(&wait.cause));
    let own = own.fold(0_u64, |sum, wait| sum.saturating_add(wait.ns));
    let part = if own > value && own > 0 {
        value as f64 / own as f64
    } else {
        1.0
    };
    (error * part).round() as Ns
}

/// The figure in the unit of the limit.
fn amount(ns: Ns, whole: Ns, limit: Limit) -> String {
    match limit {
        Limit::Share(_) => percent(ns.min(whole), whole),
        Limit::Time(_) => duration(ns),
    }
}

fn said(reach: &Reach, limit: Limit) -> String {
    match (limit, reach.whole) {
        (Limit::Share(_), Some(whole)) => {
            let of = duration(whole);
            format!(
                "{} of {of} ({})",
                percent(reach.value, whole),
                duration(reach.value)
            )
        }
        _ => duration(reach.value),
    }
}

fn reason(reach: &Reach) -> String {
    match reach.why {
        Some(Why::Unknown(ns)) => format!("{} has no known cause", duration(ns)),
        Some(Why::Sampled) => "time is split by samples, and there are too few; observe longer".to_owned(),
        Some(Why::Artefacts) => "files prove only the time that is in them".to_owned(),
        Some(Why::Cut) => "observation ended before the command did".to_owned(),
        Some(Why::Nothing) | None => "no time was observed".to_owned(),
    }
}
