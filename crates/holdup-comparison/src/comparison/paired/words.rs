//! What became of a fleet, in sentences.
//!
//! In: a comparison of hosts with themselves, and the change of each. Out: by how much, what changed most, which hosts changed unlike the others, and what
//! chance has to say. BEFORE and AFTER are in the first, so that it cannot be read the wrong way round.

use super::{LEAST_HOSTS, Line};
use holdup_evidence::units::duration;
use holdup_model::report::{Comparison, HostChange, ProgramChange};

/// Hosts that are named as unlike the others.
const NAMED: usize = 5;

/// The whole answer.
pub(super) fn verdict(comparison: &Comparison, whole: &Line) -> Vec<String> {
    let mut sentences = vec![headline(comparison, whole)];
    sentences.extend(
        comparison
            .programs
            .first()
            .and_then(|one| largest(one, comparison)),
    );
    sentences.extend(unlike(&comparison.hosts));
    sentences.push(certainty(comparison));
    sentences
}

fn headline(comparison: &Comparison, whole: &Line) -> String {
    let (before, after) = (
        comparison.before_ns.unwrap_or_default(),
        comparison.after_ns.unwrap_or_default(),
    );
    let change = comparison.change_ns.unwrap_or_default();
    let both = format!("BEFORE {}, AFTER {}", duration(before), duration(after));
    let hosts = whole.changes.len();
    let on = |sign: f64| {
        let on = whole.changes.iter().filter(|one| **one * sign > 0.0).count();
        format!("on {on} of {}", hosts_in_words(hosts))
    };
    let by = signed_words(change);
    match (change, comparison.significant) {
        (0, _) => format!(
            "No difference: BEFORE and AFTER take {} a second and host.",
            duration(before)
        ),
        (_, Some(false)) => format!("No significant difference: {both} a second and host, {by}."),
        (1.., Some(true)) => format!(
            "AFTER is slower than BEFORE: {by} a second and host ({both}), {}.",
            on(1.0)
        ),
        (_, Some(true)) => format!(
            "AFTER is faster than BEFORE: {by} a second and host ({both}), {}.",
            on(-1.0)
        ),
        (1.., None) => format!(
            "AFTER took longer than BEFORE: {by} a second and host ({both}), {}.",
            on(1.0)
        ),
        (_, None) => format!(
            "AFTER took less time than BEFORE: {by} a second and host ({both}), {}.",
            on(-1.0)
        ),
    }
}

fn largest(one: &ProgramChange, comparison: &Comparison) -> Option<String> {
    (one.change_ns != 0).then(|| {
        let name = one.process.as_deref().unwrap_or("all other programs");
        format!(
            "Largest change: {name}, {} ({}): {} a second and host; more on {} of {}.",
            one.cause.phrase(),
            one.cause.id(),
            signed_words(one.change_ns),
            one.more_on,
            hosts_in_words(comparison.hosts.len())
        )
    })
}

fn unlike(hosts: &[HostChange]) -> Option<String> {
    let unlike: Vec<&HostChange> = hosts.iter().filter(|one| one.unlike == Some(true)).collect();
    let named = unlike.iter().take(NAMED);
    let named: Vec<String> = named
        .map(|one| format!("{} ({})", one.host, signed_words(one.change_ns)))
        .collect();
    let more = unlike.len().saturating_sub(NAMED);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    (!named.is_empty()).then(|| format!("Changed unlike the other hosts: {}{more}.", named.join(", ")))
}

fn certainty(comparison: &Comparison) -> String {
    let hosts = hosts_in_words(comparison.hosts.len());
    match (comparison.p, comparison.interval_ns) {
        (Some(p), Some([from, to])) => format!(
            "{hosts}, each compared with itself: p = {p:.3}; the true change is between {} and {} (95 %).",
            signed_words(from),
            signed_words(to)
        ),
        _ => format!("{hosts} at both times: this may be noise. It takes at least {LEAST_HOSTS} to know."),
    }
}

fn hosts_in_words(count: usize) -> String {
    format!("{count} {}", if count == 1 { "host" } else { "hosts" })
}

fn signed_words(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "+" };
    format!("{sign}{}", duration(ns.unsigned_abs()))
}
