//! Waiting for the other end of a socket: TCP, UDP or Unix.

use crate::attributed::AttributedWait;
use crate::finding::{Finding, Remedy, Severity, Verdict};
use crate::rules::{Check, Extend, MATTERS, Need, Place, Rule, RuleId, Run, Waits, say};
use holdup_evidence::Cause;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::PeerSlow,
    about: "the other end of a socket is slow",
    needs: &[Need::SchedulerEvents],
    causes: &[
        Cause::NetReceive,
        Cause::NetSend,
        Cause::IpcUnix,
        Cause::NetTls,
        Cause::NetConnect,
        Cause::NetDns,
    ],
    from: MATTERS,
    gives_way_to: &[
        RuleId::AcceptQueueFull,
        RuleId::BusCallUnanswered,
        RuleId::ConnectionCut,
        RuleId::ConnectionUnanswered,
        RuleId::DeviceQueueFull,
        RuleId::DnsServerSilent,
        RuleId::Ipv6FailsFirst,
        RuleId::LogSocketFull,
        RuleId::MetadataServiceUnanswered,
        RuleId::NameSearchListMultiplies,
        RuleId::NameServiceSlow,
        RuleId::PeerDoesNotRead,
        RuleId::SmallWritesHeldBack,
        RuleId::UnixQueueFull,
    ],
    place: Place::Way,
    check: Check::Waits(check),
};

fn peer(wait: &AttributedWait) -> String {
    let detail = &wait.resource.detail;
    detail
        .get("peer")
        .or_else(|| detail.get("server"))
        .unwrap_or(&wait.resource.name)
        .clone()
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let groups = run.worth(waits, waits.split(peer), MATTERS);
    Verdict::Fires(groups.iter().map(|group| finding(run, group)).collect())
}

fn finding(run: &Run<'_>, group: &Waits<'_>) -> Finding {
    let main = group.main();
    let who = say::who(&main.asker.name);
    let holders = group.holders();
    let address = peer(main);
    let address = say::name_or(&address, "the other end");
    let peer = match holders.first() {
        Some(holder) => format!("{} at {address}", say::who(&holder.name)),
        None => address.to_owned(),
    };
    let title = match main.cause {
        Cause::NetSend => format!("{who} waits for {peer} to take what it sends"),
        Cause::NetConnect => format!("{who} waits for {peer} to accept its connections"),
        Cause::NetDns => format!("{who} waits for names from {peer}"),
        Cause::NetTls => format!("{who} waits for {peer} to finish TLS handshakes"),
        _ => format!("{who} waits for {peer} to answer"),
    };
    let severity = if group.handed_on() {
        Severity::Note
    } else {
        Severity::Warning
    };
    let finding = RULE
        .finding(severity, title, group)
        .and_if(holders.first().map(say::meanwhile))
        .and_if(say::way(group))
        .and_if(say::clock(run, group))
        .proved_if(!holders.is_empty());
    if group.handed_on() {
        return finding.remedy(Remedy::safe(format!(
            "make {peer} faster: its own time is what this wait is"
        )));
    }
    match main.cause {
        Cause::NetSend => finding
            .remedy(
                Remedy::safe("see whether the peer reads at all, and at what rate").with_command("ss -tnoi"),
            )
            .remedy(Remedy::pointless(
                "a larger send buffer: it only delays the wait while the peer is slower",
            )),
        Cause::NetConnect | Cause::NetTls => finding.remedy(Remedy::safe(
            "keep connections open and use them again (keep-alive, a pool)",
        )),
        Cause::NetDns => finding.remedy(Remedy::safe(
            "ask once and remember, or run a cache on this machine",
        )),
        _ => finding
            .remedy(Remedy::safe(format!(
                "look at {peer} while this runs: what does it wait for?"
            )))
            .remedy(Remedy::safe(
                "ask for less, ask for several things at once, or ask ahead of need",
            )),
    }
}
