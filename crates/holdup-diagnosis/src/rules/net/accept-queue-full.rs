//! A listener of this machine whose queue of clients is full.

use super::connection_unanswered::came_to_nothing;
use crate::rules::{
    Check, Extend, Generality, MATTERS, Need, Place, Rule, RuleId, Run, Waits, listeners, say,
};
use holdup_evidence::facts::Listener;
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::AttributedWait;
use holdup_model::attributed::Peer;
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::net::SocketAddr;

/// Wait from which a request was repeated at least once, nanoseconds: the kernel's first repetition comes after 1 s.
/// On one machine nothing else drops the first one.
const MIN_REPEATED_NS: Ns = 1_000_000_000;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::AcceptQueueFull,
    about: "a listener on this machine does not accept its queued clients",
    needs: &[Need::SchedulerEvents],
    causes: &[Cause::NetConnect],
    from: MATTERS,
    generality: Generality::Specific,
    explains: &[],
    place: Place::End,
    check: Check::Both(check, listeners::seen),
};

fn address(wait: &AttributedWait) -> Option<SocketAddr> {
    match &wait.resource.detail.peer {
        Some(Peer::Address(address)) => Some(*address),
        Some(Peer::Name(_)) => None,
        None => wait.resource.name.parse().ok(),
    }
}

/// The listener that a wait was for, with clients that it has not accepted.
fn listener<'a>(run: &Run<'a>, wait: &AttributedWait) -> Option<&'a Listener> {
    let peer = address(wait)?;
    let serves = |own: SocketAddr| own == peer || (own.port() == peer.port() && own.ip().is_unspecified());
    // A listener on all addresses is here; whether the peer's address is, too, only a loopback address tells by itself.
    let here = |own: SocketAddr| own.ip() == peer.ip() || peer.ip().is_loopback();
    let all = run.facts.listeners.iter();
    all.filter(|listener| serves(listener.address) && here(listener.address))
        .max_by_key(|listener| listener.waiting)
        .filter(|listener| listener.waiting > 0)
}

/// Whether a wait is one for a listener of this machine with a queue.
pub(super) fn is_queue(run: &Run<'_>, wait: &AttributedWait) -> bool {
    let unanswered = wait.max >= MIN_REPEATED_NS || wait.timed_out > 0 || came_to_nothing(run, wait);
    unanswered && listener(run, wait).is_some()
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let queued = waits.only(|wait| is_queue(run, wait));
    let Some(queued) = queued.filter(|queued| run.matters(queued.cost(), MATTERS)) else {
        return Verdict::Clear(format!(
            "no connection that took long is to one of the {} here with clients that wait to be accepted",
            say::several(run.facts.listeners.len() as u64, "listener")
        ));
    };
    let groups = run.worth(&queued, queued.split(address), MATTERS);
    Verdict::Fires(groups.iter().map(|group| finding(run, group)).collect())
}

fn finding(run: &Run<'_>, group: &Waits<'_>) -> Finding {
    let main = group.main();
    let address = address(main).map_or_else(String::new, |address| address.to_string());
    let waiting = listener(run, main).map_or(0, |listener| listener.waiting);
    let title =
        format!("The listener at {address} on this machine accepts no clients, and its queue is full");
    let text = format!(
        "{} waited there to be accepted at the end of the run",
        say::several(waiting.into(), "client")
    );
    let port = address.rsplit(':').next().unwrap_or_default();
    let limit = run.facts.sysctl.get("net/core/somaxconn").map(|most| {
        Evidence::new(
            format!("no queue on this machine may be longer than {most}"),
            "/proc/sys/net/core/somaxconn",
        )
    });
    RULE.finding(Severity::Warning, title, group)
        .and(Evidence::new(text, "/proc/net/tcp"))
        .and_if(say::clock(run, group))
        .and_if(limit)
        .confidence(Confidence::Strong)
        .remedy(
            Remedy::safe(
                "find out why the listener does not accept: it is stopped, it waits, or all its \
             workers are busy",
            )
            .with_command(format!("ss -ltnp sport = :{}", say::quoted(port))),
        )
        .remedy(Remedy::safe(
            "configure a longer backlog if it is fast enough on average and clients come in bursts",
        ))
        .remedy(Remedy::pointless(
            "looking for lost packets: the request did not leave this machine",
        ))
}
