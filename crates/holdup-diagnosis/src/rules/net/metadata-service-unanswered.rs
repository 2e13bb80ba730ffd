//! A program that looks for a cloud it is not in.

use crate::rules::{Extend, MATTERS, Rule, RuleId, Run, Waits, duration, say};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::AttributedWait;
use holdup_model::finding::{Evidence, Finding, Remedy, Severity, Verdict};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Wait from which a metadata service counts as absent even where it was not seen how the wait ended, nanoseconds: it
/// answers from the same host or rack, within milliseconds; a second is the kernel's first repetition.
const MIN_ABSENT_NS: Ns = 1_000_000_000;

/// Where clouds serve the metadata of a guest: nearly all of them, then Alibaba's, and Amazon's by IPv6.
const METADATA: [IpAddr; 3] = [
    IpAddr::V4(std::net::Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V4(std::net::Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::MetadataServiceUnanswered, check)
    .about("the program asks for a cloud metadata service that does not exist")
    .causes(&[Cause::NetConnect, Cause::NetReceive]);

/// The address of a wait's peer.
pub(super) fn address(wait: &AttributedWait) -> Option<IpAddr> {
    let text = say::peer(&wait.resource);
    let socket = text.parse::<SocketAddr>().map(|address| address.ip());
    socket.or_else(|_| text.parse()).ok().map(|ip| ip.to_canonical())
}

/// Whether the peer is a cloud's metadata service.
pub(super) fn is_metadata(wait: &AttributedWait) -> bool {
    address(wait).is_some_and(|ip| METADATA.contains(&ip))
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let Some(asked) = waits.only(is_metadata) else {
        return Verdict::Clear("no cloud's metadata service was asked".to_owned());
    };
    let absent = asked.only(|wait| wait.timed_out > 0 || wait.max >= MIN_ABSENT_NS);
    let Some(absent) = absent.filter(|waits| run.matters(waits.cost(), MATTERS)) else {
        let longest = duration(asked.longest().max);
        return Verdict::Clear(format!("the metadata service answered within {longest}"));
    };
    Verdict::Fires(vec![finding(run, &absent)])
}

fn finding(run: &Run<'_>, group: &Waits<'_>) -> Finding {
    let main = group.main();
    let who = say::who(&main.asker.name);
    let ip = address(main).map_or_else(String::new, |ip| ip.to_string());
    let answers = main.cause == Cause::NetReceive;
    let title = match answers {
        false => format!("{who} asks for a cloud metadata service at {ip}, and gets no answer"),
        true => format!(
            "{who} asks the cloud metadata service at {ip}, which accepts the request and does not answer"
        ),
    };
    let evidence = Evidence::new(
        format!("{ip} is the address of cloud metadata services, from which programs get their credentials"),
        "its address",
    );
    let timed_out = group.timed_out();
    let finding = RULE
        .finding(Severity::Warning, title, group)
        .and(evidence)
        .and_if(
            (timed_out > 0)
                .then(|| Evidence::new(say::ran_out(timed_out, group.count()), "what poll returned")),
        )
        .and_if(say::clock(run, group))
        .proved_if(timed_out > 0);
    let finding = match answers {
        false => finding,
        true => finding.remedy(Remedy::changing(
            "allow one more hop for containers on a cloud machine (HttpPutResponseHopLimit 2)",
            "every container on that machine can then read the credentials of the machine",
        )),
    };
    finding
        .remedy(Remedy::safe(
            "disable the metadata request outside of a cloud (AWS_EC2_METADATA_DISABLED=true, \
             GCE_METADATA_TIMEOUT, NO_GCE_CHECK=true)",
        ))
        .remedy(Remedy::safe(
            "or set credentials and region in its environment or configuration",
        ))
}
