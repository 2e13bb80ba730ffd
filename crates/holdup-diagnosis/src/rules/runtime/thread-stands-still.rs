//! A thread stands in the same wait in every dump of a series.

use crate::rules::{Extend, Generality, Rule, RuleId, Run, dumps as dumped, duration, say};
use holdup_artefacts::dumps::{Doing, Still, dumps, still};
use holdup_evidence::{Cause, Ns, Observed};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeMap;

/// From the first dump to the last, ns: below it, standing in one place says nothing. A second is more than what a
/// request that people wait for should take in one call.
const MIN_NS: Ns = 1_000_000_000;

/// Kinds of waits that are reported; the largest first.
const MAX_KINDS: usize = 3;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::ThreadStandsStill, check)
    .about("threads are in the same wait in every dump of a series")
    .causes(&[Cause::LockMonitor, Cause::NetReceive])
    .generality(Generality::Describes)
    .intermediate();

fn check(run: &Run<'_>, observed: &Observed) -> Verdict {
    let dumps = dumps(observed);
    if dumps.is_empty() {
        return Verdict::CannotTell(dumped::NO_DUMP.to_owned());
    }
    let all = still(&dumps);
    if dumps.len() < 2 || all.is_empty() {
        return Verdict::CannotTell(
            "whether a thread moves: a second dump of the same JVM, some seconds after the first".to_owned(),
        );
    }
    let mut places: BTreeMap<(Cause, &str), Vec<&Still<'_, '_>>> = BTreeMap::new();
    for one in &all {
        // A time limit of the program's own, or no work: nothing is wrong with standing there.
        let (Doing::Waits(cause), Some(asker)) = (one.first.doing, one.first.asker()) else {
            continue;
        };
        let long = one.span.is_some_and(|span| span >= MIN_NS);
        if cause != Cause::TimerSleep && long {
            places.entry((cause, asker)).or_default().push(one);
        }
    }
    let mut findings: Vec<(usize, Finding)> = places
        .into_iter()
        .filter_map(|((cause, asker), same)| Some((same.len(), finding(run, cause, asker, &same)?)))
        .collect();
    if findings.is_empty() {
        return Verdict::Clear(format!(
            "{} did not move, 0 of them in a wait for something that the dumps show",
            say::several(all.len() as u64, "thread")
        ));
    }
    findings.sort_by_key(|(threads, _)| std::cmp::Reverse(*threads));
    Verdict::Fires(
        findings
            .into_iter()
            .take(MAX_KINDS)
            .map(|(_, finding)| finding)
            .collect(),
    )
}

fn finding(run: &Run<'_>, cause: Cause, asker: &str, same: &[&Still<'_, '_>]) -> Option<Finding> {
    let one = same.first()?;
    let span = duration(one.span?);
    let who = match same.len() {
        1 => dumped::name(one.first),
        more => format!("{more} threads"),
    };
    let verb = if same.len() == 1 { "is stuck" } else { "are stuck" };
    let title = format!(
        "{who} {verb}: {} in all {} dumps of {span}",
        cause.phrase(),
        one.dumps
    );
    let text = format!("{asker} has not returned between the first dump and the last");
    let cpu = one.last.thread.cpu.zip(one.first.thread.cpu);
    let used = cpu.and_then(|(last, first)| last.checked_sub(first)).map(|used| {
        let text = format!(
            "it used {} of a CPU in that time: it waits, it does not spin",
            duration(used)
        );
        Evidence::new(text, dumped::place(run, one.last))
    });
    // One that runs through the same place again and again has used the CPU in between.
    let spent = cpu.and_then(|(last, first)| last.checked_sub(first));
    if spent.is_some_and(|spent| spent.saturating_mul(10) > one.span.unwrap_or(0)) {
        return None;
    }
    let lock = one.first.thread.waits_for.as_ref().map(dumped::lock);
    Some(
        Finding::without_duration(
            RULE.id.id(),
            Severity::Warning,
            title,
            cause,
            dumped::stands(run, one.first),
        )
        .and(Evidence::new(text, dumped::place(run, one.last)))
        .and_if(used)
        .about(lock.unwrap_or_default(), dumped::asker(one.first))
        .confidence(if used_little(spent) {
            Confidence::Strong
        } else {
            Confidence::Suspect
        })
        .remedy(Remedy::safe(
            "look at the peer of this wait, and set a timeout for the call, so that it fails instead of \
             hanging",
        )),
    )
}

/// Whether the CPU time of the thread is known, so that it can't have come by this place twice.
fn used_little(spent: Option<Ns>) -> bool {
    spent.is_some()
}
