//! IPv6 addresses that are tried first, where only IPv4 works.

use super::connection_unanswered::came_to_nothing;
use super::metadata_service_unanswered::address;
use crate::rules::{Extend, MATTERS, Rule, RuleId, Run, Waits, say};
use holdup_evidence::Cause;
use holdup_model::attributed::AttributedWait;
use holdup_model::connections::Connections;
use holdup_model::finding::{Evidence, Finding, Remedy, Severity, Verdict};
use std::net::SocketAddr;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::Ipv6FailsFirst, check)
    .about("IPv6 is tried first and fails, IPv4 works")
    .causes(&[Cause::NetConnect]);

fn socket(peer: &Connections) -> Option<SocketAddr> {
    peer.peer.parse().ok()
}

/// What became of the requests to an IPv6 address at which none succeeded, and of those to an IPv4 address with the
/// same port, one at least of which did.
fn pair<'a>(run: &Run<'a>, wait: &AttributedWait) -> Option<(&'a Connections, &'a Connections)> {
    let ip = address(wait).filter(|ip| ip.is_ipv6())?;
    let peers = &run.attributed.connections;
    let vain = |peer: &&Connections| peer.made == 0 && peer.given_up + peer.failed > 0;
    let six = peers
        .iter()
        .filter(vain)
        .find(|peer| socket(peer).is_some_and(|socket| socket.ip() == ip))?;
    let port = socket(six)?.port();
    let works = |peer: &&Connections| {
        let address = socket(peer);
        peer.made > 0 && address.is_some_and(|address| address.is_ipv4() && address.port() == port)
    };
    // Programs try the addresses of one name in turn; another program's connections say nothing of it.
    let mut fours = peers
        .iter()
        .filter(works)
        .filter(|four| four.by.process == six.by.process);
    Some((six, fours.next()?))
}

/// Whether a wait was for an IPv6 address in vain.
pub(super) fn in_vain(run: &Run<'_>, wait: &AttributedWait) -> bool {
    pair(run, wait).is_some()
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let vain = waits.only(|wait| in_vain(run, wait));
    let Some(vain) = vain.filter(|vain| run.matters(vain.cost(), MATTERS)) else {
        let six = |wait: &AttributedWait| address(wait).is_some_and(|ip| ip.is_ipv6());
        if waits
            .only(|wait| six(wait) && came_to_nothing(run, wait))
            .is_some()
        {
            return Verdict::CannotTell(
                "whether the same port answers by IPv4: connections that ended between two samples are not \
                 observed"
                    .to_owned(),
            );
        }
        return Verdict::Clear("no IPv6 address failed whose port answered by IPv4".to_owned());
    };
    let groups = run.worth(&vain, vain.split(address), MATTERS);
    Verdict::Fires(groups.iter().map(|group| finding(run, group)).collect())
}

fn finding(run: &Run<'_>, group: &Waits<'_>) -> Finding {
    let main = group.main();
    let who = say::who(&main.asker.name);
    let (six, four) = match pair(run, main) {
        Some((six, four)) => (six.clone(), four.clone()),
        None => Default::default(),
    };
    let title = format!(
        "{who} tries {} by IPv6 first, which gets no answer; IPv4 works",
        six.peer
    );
    let vain = six.given_up + six.failed;
    let text = format!(
        "{} to {} failed; {} to {} succeeded",
        say::several(vain, "request"),
        six.peer,
        say::several(four.made, "connection"),
        four.peer
    );
    let ip = address(main).map_or_else(String::new, |ip| ip.to_string());
    RULE.finding(Severity::Warning, title, group)
        .and(Evidence::new(text, "the result of each connection request"))
        .and_if(say::clock(run, group))
        .proved_if(true)
        .remedy(
            Remedy::safe("check the IPv6 route, and repair it").with_command(format!("ip -6 route get {ip}")),
        )
        .remedy(Remedy::changing(
            "or remove the IPv6 address from this machine: programs then use IPv4 at once",
            "hosts that have only IPv6 are then unreachable",
        ))
        .remedy(Remedy::changing(
            "or put IPv4 first for all programs: precedence ::ffff:0:0/96 100 in /etc/gai.conf",
            "programs with their own address order ignore it",
        ))
}
