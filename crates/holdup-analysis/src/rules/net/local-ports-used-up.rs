//! No ports are left for connections to one peer.

use crate::finding::{Confidence, Finding, Remedy, Severity, Verdict};
use crate::rules::sockets;
use crate::rules::{Check, Extend, MATTERS, Need, Place, Rule, RuleId, Run, fires, say};
use holdup_evidence::observed::{Quote, SocketKey, SocketTable, TcpState};
use holdup_evidence::{Cause, Observed};
use std::collections::BTreeMap;

/// Share of the ports from which finding a free one takes long and often fails.
const FULL: f64 = 0.90;

/// Ports that Linux has for this unless told otherwise: 32768 to 60999.
const USUAL: u64 = 28_232;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::LocalPortsUsedUp,
    about: "no ports are left for connections to one peer",
    needs: &[Need::Artefacts],
    causes: &[Cause::NetConnect],
    from: MATTERS,
    gives_way_to: &[],
    place: Place::End,
    check: Check::Artefacts(check),
};

/// How many ports there are for connections.
fn ports(run: &Run<'_>) -> Option<u64> {
    let range = run.facts.sysctl.get("net/ipv4/ip_local_port_range")?;
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

fn check(run: &Run<'_>, observed: &Observed) -> Verdict {
    let all = observed.sockets.iter().filter(|table| table.total > 0);
    let Some(table) = all.max_by_key(|table| most(table).map_or(0, |(_, count, _)| count)) else {
        return Verdict::CannotTell("how many connections there are to which peer: `ss -tan`".to_owned());
    };
    let told = ports(run);
    let ports = told.unwrap_or(USUAL);
    let (peer, count, quote) = match most(table) {
        Some(most) if most.1 as f64 >= FULL * ports as f64 => most,
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
    let text = match told {
        Some(ports) => format!("{count} connections to {peer}; ip_local_port_range has {ports} ports"),
        None => {
            format!("{count} connections to {peer}; Linux has {USUAL} ports for them unless told otherwise")
        }
    };
    fires(
        Finding::without_duration(
            RULE.id.id(),
            Severity::Warning,
            format!(
                "Hardly a port is left for connections to {peer}: {count} of {} are in use",
                say::several(ports, "port")
            ),
            Cause::NetConnect,
            sockets::evidence(observed, text, quote),
        )
        .about(sockets::socket(peer), sockets::asker(None))
        .and_if(waiting)
        .confidence(if told.is_some() {
            Confidence::Strong
        } else {
            Confidence::Suspect
        })
        .remedy(Remedy::safe(
            "keep connections instead of making new ones: a pool, keep-alive",
        ))
        .remedy(Remedy::changing(
            "widen net.ipv4.ip_local_port_range, or give the peer or this machine more addresses",
            "ports of the range that a service listens on must be reserved (ip_local_reserved_ports)",
        ))
        .remedy(Remedy::pointless(
            "more descriptors or more memory: neither is what is used up",
        )),
    )
}
