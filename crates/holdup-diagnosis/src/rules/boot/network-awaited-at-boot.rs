//! The boot waited for the network to be online: a service did nothing but wait, and what needs the network waited for it.

use crate::boot;
use crate::boot::units::{Start, starts};
use crate::boot::waits::is_network;
use crate::rules::{Rule, RuleId, Run, logs, say};
use holdup_artefacts::clock::Clock;
use holdup_evidence::observed::{BootStep, KernelEvent, Span, SpanKind};
use holdup_evidence::{Cause, Ns, Observed};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

const SECOND: Ns = 1_000_000_000;

/// Nanoseconds from which it is trouble: a link takes about three seconds to come up, and an address by DHCP one or two more.
const MIN_WAIT_NS: Ns = 10 * SECOND;

/// The time-out of all of these services, nanoseconds: what waited so long waited in vain. One part in this many later.
const TIMEOUT_NS: Ns = 120 * SECOND;
const LATE: Ns = 50;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::NetworkAwaitedAtBoot, check)
    .about("the boot waited for the network to be online")
    .causes(&[Cause::NetConnect]);

/// One telling of it.
struct NetworkWait {
    unit: String,
    ns: Ns,
    in_vain: bool,
    evidence: Evidence,
}

fn check(run: &Run<'_>, observed: &Observed) -> Verdict {
    let clock = Clock::of(observed);
    let starts = starts(observed);
    let mut waits: Vec<NetworkWait> = starts
        .iter()
        .filter_map(|start| of_log(observed, &clock, start))
        .collect();
    let spans = observed
        .spans
        .iter()
        .filter(|span| span.kind == SpanKind::UnitStart && is_network(&span.name));
    waits.extend(spans.map(|span| of_span(observed, span)));
    let Some(longest) = waits.iter().max_by_key(|one| one.ns) else {
        return silent(observed);
    };
    if longest.ns < MIN_WAIT_NS {
        return Verdict::Clear(format!("{} took {}", longest.unit, logs::seconds(longest.ns)));
    }
    let mut finding = finding(run, observed, &waits, longest);
    for start in starts.iter().filter(|start| is_network(start.unit)) {
        finding = boot::chain::holes_of(observed, &clock, &starts, start)
            .into_iter()
            .fold(finding, Finding::and);
    }
    Verdict::Fires(vec![finding])
}

fn of_log(observed: &Observed, clock: &Clock<'_>, start: &Start<'_>) -> Option<NetworkWait> {
    let (ns, ended) = (
        is_network(start.unit).then(|| start.took(clock))??,
        start.ended()?,
    );
    let in_vain = start.up.is_none() && (start.timed_out.is_some() || start.failed.is_some());
    Some(NetworkWait {
        unit: start.unit.to_owned(),
        ns,
        in_vain,
        evidence: logs::quote(observed, ended),
    })
}

fn of_span(observed: &Observed, span: &Span) -> NetworkWait {
    NetworkWait {
        unit: span.name.clone(),
        ns: span.ns,
        in_vain: span.ns >= TIMEOUT_NS && span.ns <= TIMEOUT_NS + TIMEOUT_NS / LATE,
        evidence: Evidence::new(span.text.trim(), observed.place(&span.quote)),
    }
}

fn finding(run: &Run<'_>, observed: &Observed, waits: &[NetworkWait], longest: &NetworkWait) -> Finding {
    let in_vain = waits
        .iter()
        .any(|one| one.in_vain && one.ns.abs_diff(longest.ns) <= SECOND);
    let title = match in_vain {
        true => format!(
            "The boot waited {} for the network, and it did not come online ({})",
            logs::seconds(longest.ns),
            longest.unit
        ),
        false => format!(
            "The boot waited {} for the network to be online ({})",
            logs::seconds(longest.ns),
            longest.unit
        ),
    };
    let mut finding = Finding::without_duration(
        RULE.id.id(),
        Severity::Warning,
        title,
        Cause::NetConnect,
        longest.evidence.clone(),
    )
    .and(Evidence::new(
        format!(
            "{} only waits, and all units after network-online.target wait for it",
            longest.unit
        ),
        longest.evidence.source.clone(),
    ));
    finding.ns = run.boot.then_some(longest.ns);
    finding.asker.name.process = longest.unit.clone();
    for (one, interface) in logs::happenings(observed, |event| match event {
        KernelEvent::Step(BootStep::LinkUp { interface }) => Some(interface),
        _ => None,
    })
    .into_iter()
    .take(logs::QUOTED)
    {
        let at = one
            .since_boot
            .map(|ns| format!(" {} after boot", logs::seconds(ns)))
            .unwrap_or_default();
        finding = finding.and(logs::about(
            observed,
            one,
            format!("{interface} had its link{at}"),
        ));
    }
    let networkd = longest.unit.contains("networkd") || longest.unit.starts_with("Wait for Network");
    let finding = match networkd {
        true => finding.remedy(
            Remedy::safe(
                "find the interface that is not configured: each managed interface must be, by default",
            )
            .with_command("networkctl"),
        ),
        false => finding.remedy(
            Remedy::safe("find the connection that does not come up")
                .with_command("nmcli device; ip -br address"),
        ),
    };
    let finding = match networkd {
        true => finding.remedy(Remedy::changing(
            "set RequiredForOnline=no in the [Link] section of the .network file of an optional interface",
            "services that need the network may start before that interface has an address",
        )),
        false => finding,
    };
    finding
        .remedy(
            Remedy::safe(
                "find the units that need it: a service that listens on all addresses needs only \
             network.target",
            )
            .with_command(format!(
                "systemctl list-dependencies --reverse network-online.target; systemctl cat {}",
                say::quoted(&longest.unit)
            )),
        )
        .remedy(Remedy::pointless(
            "a longer timeout: it then waits longer for the same thing",
        ))
        .confidence(Confidence::Proved)
}

fn silent(observed: &Observed) -> Verdict {
    let of_units = observed
        .spans
        .iter()
        .filter(|span| span.kind == SpanKind::UnitStart)
        .count();
    match of_units {
        0 => logs::manager_silent(observed, "waiting for the network"),
        units => Verdict::Clear(format!(
            "0 of {units} units whose start is timed wait for the network"
        )),
    }
}
