//! Between what a unit waited for and its own start nothing is reported, for long.

use crate::boot::units::{behind, starts};
use crate::rules::{Rule, RuleId, Run, fires, logs};
use holdup_artefacts::clock::Clock;
use holdup_evidence::observed::{Span, SpanKind, When};
use holdup_evidence::{Cause, Ns, Observed};
use holdup_model::finding::{Evidence, Finding, Remedy, Severity, Verdict};

const SECOND: Ns = 1_000_000_000;

/// Nanoseconds from which a hole is trouble: a unit begins some tens of milliseconds after what it waits for, on a slow
/// and busy machine a second or two.
const HOLE: Ns = 5 * SECOND;

/// How much longer than its time-out a hole may be, as one part in so many: stopping what timed out, and starting what waits,
/// takes some seconds on a busy boot.
const LATE: Ns = 20;

/// Limits that services wait for in full when what they wait for does not come, seconds, and whose they are.
const TIME_OUTS: [(Ns, &str); 5] = [
    (25, "the timeout of a D-Bus call"),
    (30, "the timeout of a SCSI command"),
    (60, "a common limit of one minute"),
    (
        90,
        "the default start timeout of systemd (DefaultTimeoutStartSec=): the first try was probably killed, \
         and this is the second",
    ),
    (
        120,
        "the default timeout of the services that wait for network-online and udev",
    ),
];

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::HoleInCriticalChain, check)
    .about("the critical chain of the boot has a gap that no unit explains")
    .causes(&[Cause::Unknown]);

fn check(run: &Run<'_>, observed: &Observed) -> Verdict {
    let clock = Clock::of(observed);
    let starts = starts(observed);
    let holes = observed
        .spans
        .iter()
        .filter(|span| span.kind == SpanKind::ChainHole && span.ns >= HOLE)
        .map(|span| (span, behind(observed, &clock, &starts, span)));
    // A start that ran out of time is known by its own rule.
    let untold = holes.filter(|(_, start)| start.is_none_or(|start| start.timed_out.is_none()));
    let Some((longest, start)) = untold.max_by_key(|(span, _)| span.ns) else {
        return clear(observed);
    };
    let after = longest.thread.as_deref().unwrap_or("what it waited for");
    let hole = logs::seconds(longest.ns);
    let title = match start {
        Some(start) => format!(
            "{} began {hole} after {after} was reached: {} was still starting",
            longest.name, start.unit
        ),
        None => format!(
            "{} began {hole} after {after} was reached; the chain does not show why",
            longest.name
        ),
    };
    let mut finding = Finding::without_duration(
        RULE.id.id(),
        Severity::Warning,
        title,
        Cause::Unknown,
        evidence(observed, longest, longest.text.clone()),
    );
    if let Some(When::SinceStart(ended)) = longest.began {
        let text = format!(
            "the chain has it begin at {}, and {after} reached at {}",
            logs::seconds(ended.saturating_add(longest.ns)),
            logs::seconds(ended)
        );
        finding = finding.and(evidence(observed, longest, text));
    }
    if let Some(own) = own_start(observed, longest) {
        let text = format!(
            "its own start took {}, and the gap is not part of that",
            logs::seconds(own.ns)
        );
        finding = finding.and(evidence(observed, own, text));
    }
    if let Some(start) = start
        && let (Some(took), Some(up)) = (start.took(&clock), start.up.or(start.listens))
    {
        let text = format!(
            "{} took {}, and was up when {} began",
            start.unit,
            logs::seconds(took),
            longest.name
        );
        finding = finding.and(logs::about(observed, up, text));
    } else if let Some(slow) = not_in_chain(observed, longest) {
        let text = format!(
            "{} took {} and is not in the chain, which does not show units that have ended",
            slow.name,
            logs::seconds(slow.ns)
        );
        finding = finding.and(evidence(observed, slow, text));
    }
    if let Some((seconds, whose)) = time_out(longest.ns).filter(|_| start.is_none()) {
        let text = format!("{hole} is as long as a timeout of {seconds} s: {whose}");
        finding = finding.and(evidence(observed, longest, text));
    }
    finding.ns = run.boot.then_some(longest.ns);
    if let Some(start) = start {
        let unit = crate::rules::say::quoted(start.unit);
        return fires(
            finding.remedy(
                Remedy::safe("find out what it does, and whether later units must wait for it")
                    .with_command(format!("systemctl cat {unit}; journalctl -b -u {unit}")),
            ),
        );
    }
    let unit = crate::rules::say::quoted(&longest.name);
    fires(
        finding
            .remedy(
                Remedy::safe("read the earlier log of the unit: the chain does not show an earlier attempt")
                    .with_command(format!(
                        "journalctl -b -u {unit}; journalctl -b -k | grep -E 'random|I/O error|timeout'"
                    )),
            )
            .remedy(
                Remedy::safe("then run its start command under holdup")
                    .with_command(format!("systemctl show -p ExecStartPre -p ExecStart {unit}")),
            ),
    )
}

fn clear(observed: &Observed) -> Verdict {
    let reached = observed
        .spans
        .iter()
        .filter(|span| span.kind == SpanKind::UnitReached);
    let of_chain = |span: &&Span| {
        let source = observed.sources.get(span.quote.source as usize);
        source.is_none_or(|source| source.format != "systemd-time")
    };
    match reached.filter(of_chain).count() {
        0 => Verdict::CannotTell("what each unit waited for: `systemd-analyze critical-chain`".to_owned()),
        units => {
            let holes = observed
                .spans
                .iter()
                .filter(|span| span.kind == SpanKind::ChainHole);
            let longest = holes.map(|span| span.ns).max();
            let longest = longest.map_or("below 1 s".to_owned(), logs::seconds);
            Verdict::Clear(format!(
                "the longest gap between {units} units of the chain is {longest}"
            ))
        }
    }
}

/// How long the unit itself took, by the same chain.
fn own_start<'a>(observed: &'a Observed, hole: &Span) -> Option<&'a Span> {
    let mut spans = observed.spans.iter();
    spans.find(|span| {
        span.kind == SpanKind::UnitStart && span.name == hole.name && span.quote.source == hole.quote.source
    })
}

/// The service that took longest, and at least as long as the hole, of those that the chain does not have.
fn not_in_chain<'a>(observed: &'a Observed, hole: &Span) -> Option<&'a Span> {
    let in_chain = |name: &str| {
        let mut spans = observed.spans.iter();
        spans.any(|span| span.quote.source == hole.quote.source && span.name == name)
    };
    let spans = observed.spans.iter();
    let services = spans.filter(|span| span.kind == SpanKind::UnitStart && span.name.ends_with(".service"));
    services
        .filter(|span| span.ns >= hole.ns && !in_chain(&span.name))
        .max_by_key(|span| span.ns)
}

fn time_out(ns: Ns) -> Option<(Ns, &'static str)> {
    let fits = |(seconds, _): &&(Ns, &str)| {
        let limit = *seconds * SECOND;
        ns >= limit && ns <= limit + limit / LATE
    };
    TIME_OUTS.iter().find(fits).copied()
}

fn evidence(observed: &Observed, span: &Span, text: String) -> Evidence {
    let place = observed.place(&span.quote);
    let source = if place.is_empty() {
        "the critical chain".to_owned()
    } else {
        place
    };
    Evidence::new(text, source)
}
