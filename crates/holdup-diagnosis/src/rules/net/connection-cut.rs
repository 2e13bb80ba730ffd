//! A connection through which nothing comes any more.

use crate::rules::{Extend, MATTERS, Rule, RuleId, Run, Waits, connections, say};
use holdup_evidence::Cause;
use holdup_model::attributed::AttributedWait;
use holdup_model::finding::{Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_either(RuleId::ConnectionCut, check, connections::cut)
    .about("data on a connection is no longer acknowledged")
    .causes(&[Cause::NetReceive, Cause::NetSend, Cause::NetTls]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let cut = waits.mostly(|tcp| tcp.unanswered_ns);
    let Some(cut) = cut.filter(|cut| run.matters(cut.cost(), MATTERS)) else {
        let tcp = waits.tcp();
        let clear = || {
            Verdict::Clear(format!(
                "of {} on TCP connections, {} ended with unacknowledged data",
                say::several(tcp.seen, "wait"),
                tcp.unanswered
            ))
        };
        return waits.without_tcp().unwrap_or_else(clear);
    };
    let peer = |wait: &AttributedWait| wait.resource.name.clone();
    let groups = run.worth(&cut, cut.split(peer), MATTERS);
    Verdict::Fires(groups.iter().map(|group| finding(run, group)).collect())
}

fn finding(run: &Run<'_>, group: &Waits<'_>) -> Finding {
    let main = group.main();
    let peer = &say::peer(&main.resource);
    let title = format!(
        "The connection to {} is cut: data from {} is no longer acknowledged",
        say::name_or(peer, "the peer"),
        say::who(&main.asker.name)
    );
    let tcp = group.tcp();
    let text = format!(
        "the kernel sent it {} times in a row without an answer, and the connection is still established",
        tcp.repeated
    );
    let retries = run.facts.sysctl.get("net/ipv4/tcp_retries2").map(|retries| {
        let text = format!("it gives up after {retries} repetitions; 15 of them take a quarter of an hour");
        Evidence::new(text, "/proc/sys/net/ipv4/tcp_retries2")
    });
    RULE.finding(Severity::Warning, title, group)
        .and(Evidence::new(text, "the state of the socket when the wait ended"))
        .and_if(retries)
        .proved_if(true)
        .remedy(Remedy::safe("check whether the peer is alive, and whether a firewall, a load balancer with an idle limit or a tunnel has dropped the connection").with_command("ss -tnoi state established"))
        .remedy(Remedy::safe("set an answer timeout in the program, and reconnect"))
        .remedy(Remedy::safe("detect it sooner: SO_KEEPALIVE for idle connections, TCP_USER_TIMEOUT for \
         connections that send"))
}
