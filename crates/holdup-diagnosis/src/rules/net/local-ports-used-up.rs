//! No ports are left for connections to one peer.

use crate::rules::sockets;
use crate::rules::{Extend, MATTERS, Rule, RuleId, Run, Waits, duration, fires, say};
use holdup_evidence::observed::{Quote, SocketKey, SocketTable, TcpState};
use holdup_evidence::{Cause, Observed};
use holdup_model::attributed::{Resource, ResourceKind};
use holdup_model::connections::Connections;
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeMap;

/// Share of the ports from which finding a free one takes long and often fails.
const MIN_USED_SHARE: f64 = 0.90;

/// The setting that says which ports there are.
const RANGE: &str = "net/ipv4/ip_local_port_range";

/// Ports that Linux has for this unless told otherwise: 32768 to 60999.
const USUAL: u64 = 28_232;

/// Failures from which it is a program that tries again.
const MIN_FAILURES: u64 = 3;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_either(RuleId::LocalPortsUsedUp, by_waits, by_artefacts)
    .about("no ports are left for connections to one peer")
    .causes(&[Cause::TimerSleep, Cause::NetConnect])
    .explains(&[
        RuleId::ConnectionsMadeAnew,
        RuleId::PeerSlow,
        RuleId::SleepsOnPurpose,
    ]);

/// The peer for want of a port to which the most sleep was, if that is worth a finding.
pub(in crate::rules) fn without_port<'a>(run: &Run<'a>, waits: &Waits<'_>) -> Option<&'a Connections> {
    let peers = run.attributed.connections.iter();
    let worst = peers
        .filter(|peer| peer.no_port >= MIN_FAILURES)
        .max_by_key(|peer| peer.slept_without_port_ns)?;
    let slept = worst.slept_without_port_ns;
    let most_of_it = slept.saturating_mul(2) > waits.own();
    (most_of_it && run.matters(slept.min(waits.cost()), MATTERS)).then_some(worst)
}

fn by_waits(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let slept = waits.only(|wait| wait.cause == Cause::TimerSleep);
    match slept.and_then(|slept| Some((without_port(run, &slept)?, slept))) {
        Some((peer, slept)) => fires(tries_again(run, &slept, peer)),
        None => {
            let failed = run.attributed.connections.iter().map(|peer| peer.no_port).sum();
            Verdict::Clear(format!(
                "{} failed because no local port was free, and the sleep between them is not most of the \
                 sleep",
                say::several(failed, "connection")
            ))
        }
    }
}

fn tries_again(run: &Run<'_>, waits: &Waits<'_>, peer: &Connections) -> Finding {
    let slept = peer.slept_without_port_ns;
    let title = format!(
        "{} has no free local port for connections to {} and retries: {} of sleep between attempts",
        say::who(&peer.by),
        peer.peer,
        duration(slept)
    );
    let failed = format!(
        "{} failed at once with EADDRNOTAVAIL, {} succeeded",
        say::several(peer.no_port, "request"),
        peer.made
    );
    let range = run.facts.sysctl.get(RANGE);
    let range = range.map(|range| {
        let ends: Vec<&str> = range.split_whitespace().collect();
        Evidence::new(
            format!("ip_local_port_range is {}", ends.join(" to ")),
            "/proc/sys",
        )
    });
    let mut finding = RULE
        .finding(Severity::Warning, title, waits)
        .and(Evidence::new(failed, "the result of each connection request"))
        .and_if(range)
        .proved_if(true);
    finding.ns = finding.ns.map(|ns| ns.min(slept));
    finding.resource = Resource::named(ResourceKind::Socket, &peer.peer)
        .with(|facts| facts.peer = Some(peer.peer.as_str().into()));
    let held = format!("ss -tan dst {}", say::quoted(&peer.peer));
    remedies(
        finding.remedy(
            Remedy::safe(
                "list the connections that use the ports: TIME-WAIT means that this machine closed \
             them first",
            )
            .with_command(held),
        ),
    )
}

fn remedies(finding: Finding) -> Finding {
    finding
        .remedy(Remedy::safe(
            "reuse connections instead of opening new ones: a connection pool, keep-alive",
        ))
        .remedy(Remedy::changing(
            "widen net.ipv4.ip_local_port_range, or use more addresses on the peer or this machine",
            "ports of the range that a service listens on must be reserved (ip_local_reserved_ports)",
        ))
        .remedy(Remedy::pointless(
            "more descriptors or more memory: neither is used up",
        ))
}

/// How many ports there are for connections.
fn ports(run: &Run<'_>) -> Option<u64> {
    let range = run.facts.sysctl.get(RANGE)?;
    let mut ends = range.split_whitespace().map(|end| end.parse::<u64>());
    let (first, last) = (ends.next()?.ok()?, ends.next()?.ok()?);
    last.checked_sub(first)?.checked_add(1)
}

/// The peer with most connections of any state, but of those that only listen.
fn most(table: &SocketTable) -> Option<(&str, u64, &Quote)> {
    let mut peers: BTreeMap<&str, (u64, &Quote)> = BTreeMap::new();
    let of_peers = table
        .counts
        .iter()
        .filter(|count| count.by == SocketKey::Peer && count.state != TcpState::Listen);
    for count in of_peers {
        peers.entry(&count.of).or_insert((0, &count.quote)).0 += count.count;
    }
    let most = peers.into_iter().max_by_key(|(_, (count, _))| *count);
    most.map(|(peer, (count, quote))| (peer, count, quote))
}

fn by_artefacts(run: &Run<'_>, observed: &Observed) -> Verdict {
    let all = observed.sockets.iter().filter(|table| table.total > 0);
    let Some(table) = all.max_by_key(|table| most(table).map_or(0, |(_, count, _)| count)) else {
        return Verdict::CannotTell("how many connections there are to which peer: `ss -tan`".to_owned());
    };
    let found = ports(run);
    let ports = found.unwrap_or(USUAL);
    let (peer, count, quote) = match most(table) {
        Some(most) if most.1 as f64 >= MIN_USED_SHARE * ports as f64 => most,
        most => {
            let (peer, count) = most.map_or(("one peer", 0), |(peer, count, _)| (peer, count));
            return Verdict::Clear(format!("{count} connections to {peer}, for {ports} ports"));
        }
    };
    let waiting: u64 = sockets::counts(table, TcpState::TimeWait, SocketKey::Peer)
        .filter(|other| other.of == peer)
        .map(|other| other.count)
        .sum();
    let waiting = (waiting > 0).then(|| {
        let text = format!("{waiting} of them are closed, and keep their port for a minute (TIME-WAIT)");
        sockets::evidence(observed, text, quote)
    });
    let text = match found {
        Some(ports) => format!("{count} connections to {peer}; ip_local_port_range has {ports} ports"),
        None => {
            format!("{count} connections to {peer}; Linux has {USUAL} ports for them by default")
        }
    };
    fires(remedies(
        Finding::without_duration(
            RULE.id.id(),
            Severity::Warning,
            format!(
                "Local ports for connections to {peer} are nearly used up: {count} of {} are in use",
                say::several(ports, "port")
            ),
            Cause::NetConnect,
            sockets::evidence(observed, text, quote),
        )
        .about(sockets::socket(peer), sockets::asker(None))
        .and_if(waiting)
        .confidence(if found.is_some() {
            Confidence::Strong
        } else {
            Confidence::Suspect
        }),
    ))
}
