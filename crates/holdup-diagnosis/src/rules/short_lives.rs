//! Processes and threads that a program starts and that soon end.
//!
//! In: [`Births`]. Out: what `many-short-programs` and `many-short-threads` say alike of what runs.

use super::{Extend, Rule, Run, Waits, say};
use holdup_model::churn::{Births, Churn};
use holdup_model::finding::{Confidence, Evidence, Finding, Severity};

/// What was made anew and ended meanwhile, where threads were attached to.
pub(super) fn of_threads<'a>(run: &Run<'a>) -> Option<&'a Churn> {
    let churn = run.attributed.churn.as_ref();
    churn.filter(|_| run.attributed.of_threads)
}

/// A finding about starting and ending them. `lived`: how many, and for how long; `starts`: the system call that starts one.
pub(super) fn finding(
    rule: &Rule,
    title: String,
    waits: &Waits<'_>,
    by: &Births,
    lived: String,
    starts: &str,
) -> Finding {
    let place = by.by.frame.as_deref().map(|frame| {
        let text = format!("made in {frame}, by {}", say::who(&by.by.name));
        Evidence::new(text, format!("user stacks at {starts}"))
    });
    let mut finding = rule
        .finding(Severity::Warning, title, waits)
        .and(Evidence::new(lived, "process and thread starts and exits"))
        .and_if(place)
        .confidence(Confidence::Strong);
    finding.asker = by.by.clone();
    finding
}
