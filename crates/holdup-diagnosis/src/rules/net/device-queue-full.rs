//! Sending that waits for this machine's own device, mostly because it is shaped.

use crate::rules::{Extend, MATTERS, Rule, RuleId, Run, Waits, say};
use holdup_evidence::Cause;
use holdup_model::attributed::{AttributedWait, Resource, ResourceKind};
use holdup_model::finding::{Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::DeviceQueueFull, check)
    .about("data waits in the queue of a network device of this machine")
    .causes(&[Cause::NetSend]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let queued = waits.mostly(|tcp| tcp.throttled_ns);
    let Some(queued) = queued.filter(|queued| run.matters(queued.cost(), MATTERS)) else {
        let tcp = waits.tcp();
        let clear = || {
            Verdict::Clear(format!(
                "of {} to send, {} began with the device's queue full",
                say::several(tcp.seen, "wait"),
                tcp.throttled
            ))
        };
        return waits.without_tcp().unwrap_or_else(clear);
    };
    let device = |wait: &AttributedWait| wait.tcp.as_ref().and_then(|tcp| tcp.device.clone());
    let groups = run.worth(&queued, queued.split(device), MATTERS);
    Verdict::Fires(groups.iter().map(finding).collect())
}

fn finding(group: &Waits<'_>) -> Finding {
    let main = group.main();
    let who = say::who(&main.asker.name);
    let tcp = group.tcp();
    let device = tcp.device.as_deref().unwrap_or_default();
    let name = match device {
        "" => "The network device".to_owned(),
        device => format!("The network device {device}"),
    };
    let title = format!("{name} of this machine is slow to send the data of {who}");
    let text = format!(
        "{} of {} began with the limit of one connection in the device queue, and room at the receiver",
        tcp.throttled,
        say::several(tcp.seen, "wait")
    );
    let mut finding = RULE
        .finding(Severity::Warning, title, group)
        .and(Evidence::new(text, "the state of the socket when the wait began"))
        .proved_if(true);
    if !device.is_empty() {
        let peer = main.resource.name.as_str();
        finding.resource =
            Resource::named(ResourceKind::Device, device).with(|facts| facts.peer = Some(peer.into()));
    }
    let look = Remedy::safe(
        "check whether a rate limit is set on it (tbf, htb, cake), and whether its overlimits grow",
    );
    let look = match device {
        "" => look.with_command("tc -s qdisc show"),
        device => look.with_command(format!("tc -s qdisc show dev {}", say::quoted(device))),
    };
    finding
        .remedy(look)
        .remedy(Remedy::changing(
            "raise or remove the limit; without one, send less",
            "the limit may protect something behind it",
        ))
        .remedy(Remedy::pointless(
            "a larger send buffer: more data would wait in the same queue",
        ))
}
