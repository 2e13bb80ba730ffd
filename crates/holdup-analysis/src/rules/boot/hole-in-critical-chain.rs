//! Between what a unit waited for and its own start nothing is told, for long.

use crate::finding::{Evidence, Finding, Remedy, Severity, Verdict};
use crate::rules::{Check, MATTERS, Need, Place, Rule, RuleId, Run, fires, logs};
use holdup_evidence::observed::{Span, SpanKind, When};
use holdup_evidence::{Cause, Ns, Observed};

const SECOND: Ns = 1_000_000_000;

/// Nanoseconds from which a hole is trouble: a unit begins some tens of milliseconds after what it waits for, on a slow
/// and busy machine a second or two.
const HOLE: Ns = 5 * SECOND;

/// How much longer than its time-out a hole may be, as one part in so many: stopping what timed out takes a moment.
const LATE: Ns = 50;

/// Limits that services wait for in full when what they wait for does not come, seconds, and whose they are.
const TIME_OUTS: [(Ns, &str); 5] = [
    (25, "D-Bus's time-out for a call"),
    (30, "the time-out of a SCSI command"),
    (60, "a common limit of one minute"),
    (
        90,
        "systemd's default time-out for a start (DefaultTimeoutStartSec=): the first try was likely killed, and what is shown is the second",
    ),
    (
        120,
        "the default time-out of network-online's and udev's waiting services",
    ),
];

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::HoleInCriticalChain,
    about: "the critical chain of the boot has a hole that no unit explains",
    needs: &[Need::Artefacts],
    causes: &[Cause::Unknown],
    from: MATTERS,
    gives_way_to: &[],
    place: Place::End,
    check: Check::Artefacts(check),
};

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let holes = observed
        .spans
        .iter()
        .filter(|span| span.kind == SpanKind::ChainHole);
    let Some(longest) = holes.max_by_key(|span| span.ns).filter(|span| span.ns >= HOLE) else {
        return clear(observed);
    };
    let after = longest.thread.as_deref().unwrap_or("what it waited for");
    let hole = logs::seconds(longest.ns);
    let title = format!(
        "{} began {hole} after {after} was reached, and nothing tells why",
        longest.name
    );
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
            "its own start took {}: the hole is not in it",
            logs::seconds(own.ns)
        );
        finding = finding.and(evidence(observed, own, text));
    }
    if let Some((seconds, whose)) = time_out(longest.ns) {
        let text = format!("{hole} is as long as a time-out of {seconds} s: {whose}");
        finding = finding.and(evidence(observed, longest, text));
    }
    let unit = crate::rules::say::quoted(&longest.name);
    fires(
        finding
            .remedy(
                Remedy::safe("read what the unit said before: an earlier try does not show in the chain")
                    .with_command(format!(
                        "journalctl -b -u {unit}; journalctl -b -k | grep -E 'random|I/O error|timeout'"
                    )),
            )
            .remedy(
                Remedy::safe("then let holdup watch the command that it starts with")
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
                "the longest hole between {units} units of the chain is {longest}"
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
