//! Connection requests that nobody answers.

use super::accept_queue_full::is_queue;
use super::ipv6_fails_first::in_vain;
use super::metadata_service_unanswered::is_metadata;
use crate::rules::{Extend, MATTERS, Rule, RuleId, Run, Waits, connections, duration, say};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{AttributedWait, Common};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::net::SocketAddr;

/// Wait from which a request was repeated at least once, nanoseconds: the kernel's first repetition comes after 1 s,
/// and no distance on Earth makes an answer take as long.
const MIN_REPEATED_NS: Ns = 1_000_000_000;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_either(RuleId::ConnectionUnanswered, check, connections::unanswered)
    .about("a connection request gets no answer")
    .causes(&[Cause::NetConnect]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let Some(unanswered) = waits
        .only(|wait| {
            let unseen = wait.resource.common() == Some(Common::UnseenSocket);
            !(unseen || is_metadata(wait) || is_queue(run, wait) || in_vain(run, wait))
                && (wait.max.max(wait.outstanding) >= MIN_REPEATED_NS
                    || wait.timed_out > 0
                    || came_to_nothing(run, wait))
        })
        .filter(|unanswered| run.matters(unanswered.cost(), MATTERS))
    else {
        let (count, longest) = (
            say::several(waits.count(), "connection"),
            duration(longest(waits)),
        );
        return Verdict::Clear(format!(
            "{count} took at most {longest}, less than the first repetition after 1 s"
        ));
    };
    let groups = run.worth(&unanswered, unanswered.split(peer), MATTERS);
    Verdict::Fires(groups.iter().map(|group| finding(run, group)).collect())
}

/// The longest that a connection was awaited, in one wait or in many.
fn longest(waits: &Waits<'_>) -> Ns {
    waits.longest().max.max(waits.outstanding())
}

/// Whether no request to its peer succeeded. This is for evidence without the lengths of single waits: it does have what became of requests.
pub(super) fn came_to_nothing(run: &Run<'_>, wait: &AttributedWait) -> bool {
    let peer = peer(wait);
    let mut requests = run.attributed.connections.iter().filter(|one| one.peer == peer);
    !run.attributed.source.records_each_wait()
        && requests.any(|one| one.made + one.refused == 0 && one.failed + one.given_up > 0)
}

fn peer(wait: &AttributedWait) -> String {
    say::peer(&wait.resource)
}

fn finding(run: &Run<'_>, group: &Waits<'_>) -> Finding {
    let peer = peer(group.main());
    let name = say::name_or(&peer, "the peer");
    let address = peer
        .parse::<SocketAddr>()
        .map(|address| address.ip())
        .or_else(|_| peer.parse())
        .ok();
    let title = format!("{name} does not answer connection requests");
    let mut finding = RULE
        .finding(Severity::Warning, title, group)
        .and_if(say::clock(run, group))
        .and_if(say::outstanding(group, "a connection"))
        .and_if(given_up(run))
        .and_if(came_to_nothing(run, group.main()).then(|| {
            let text = "no request to it was answered before its socket was closed";
            Evidence::new(text, "a sample of the state of the socket (sock_diag)")
        }))
        .confidence(Confidence::Strong);
    if group.timed_out() > 0 {
        let text = say::ran_out(group.timed_out(), group.count());
        finding = finding
            .and(Evidence::new(text, "what poll returned"))
            .confidence(Confidence::Proved);
    }
    match address {
        Some(ip) if ip.is_loopback() => finding
            .remedy(
                Remedy::safe(
                    "check whether the queue of the listener on this machine is full (Recv-Q above Send-Q)",
                )
                .with_command("ss -ltn"),
            )
            .remedy(Remedy::safe(
                "make it accept faster, or configure a longer backlog",
            )),
        ip => {
            let route = Remedy::safe("trace the route of the packets, and find where they are dropped");
            finding
                .remedy(match ip {
                    Some(ip) => route.with_command(format!("ip route get {ip}")),
                    None => route,
                })
                .remedy(Remedy::safe(
                    "configure the firewall to reject instead of drop: the program then fails at once",
                ))
                .remedy(Remedy::safe(
                    "set a connect timeout in the program, or remove the dead address from its list",
                ))
        }
    }
}

/// How often the kernel repeats the request here.
fn given_up(run: &Run<'_>) -> Option<Evidence> {
    let retries = run.facts.sysctl.get("net/ipv4/tcp_syn_retries")?;
    let text = format!("the kernel repeats the request {retries} times before it gives up");
    Some(Evidence::new(text, "/proc/sys/net/ipv4/tcp_syn_retries"))
}
