//! A peer that does not take what it is sent.

use crate::rules::{Extend, MATTERS, Rule, RuleId, Run, Waits, connections, root, say};
use holdup_evidence::Cause;
use holdup_model::attributed::AttributedWait;
use holdup_model::finding::{Evidence, Finding, Remedy, Severity, Verdict};
use holdup_model::title::Title;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_either(RuleId::PeerDoesNotRead, check, connections::unread)
    .about("the peer of a connection does not read")
    .causes(&[Cause::NetSend])
    .intermediate();

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let full = waits.mostly(|tcp| tcp.no_room_ns);
    let Some(full) = full.filter(|full| run.matters(full.cost(), MATTERS)) else {
        let tcp = waits.tcp();
        let clear = || {
            Verdict::Clear(format!(
                "of {} to send, {} were spent with no room at the peer",
                say::several(tcp.seen, "wait"),
                tcp.no_room
            ))
        };
        return waits.without_tcp().unwrap_or_else(clear);
    };
    let peer = |wait: &AttributedWait| wait.resource.name.clone();
    let groups = run.worth(&full, full.split(peer), MATTERS);
    Verdict::Fires(groups.iter().map(|group| finding(run, group)).collect())
}

fn finding(run: &Run<'_>, group: &Waits<'_>) -> Finding {
    let main = group.main();
    let who = say::who(&main.asker.name);
    let holders = group.holders();
    let address = &say::peer(&main.resource);
    let address = say::name_or(address, "the other end");
    let peer = match holders.first() {
        Some(holder) => format!("{} at {address}", say::program(run, &holder.name)),
        None => address.to_owned(),
    };
    let root = root::of(group);
    let stands = root.map_or_else(String::new, |root| root.stands());
    let title = Title::from(format!("{peer} does not read the data from {who}")).with(stands);
    let severity = match group.handed_on() {
        true => Severity::Note,
        false => Severity::Warning,
    };
    let tcp = group.tcp();
    let text = format!(
        "{} of {} were spent with no room at the receiver, although the network allowed more",
        tcp.no_room,
        say::several(tcp.seen, "wait")
    );
    let finding = RULE
        .finding(severity, title, group)
        .and(Evidence::new(
            text,
            "the kernel counters of what limits the connection",
        ))
        .and_if(holders.first().map(say::meanwhile))
        .and_if(say::way(group))
        .proved_if(true);
    finding
        .remedy(root.map_or_else(
            || Remedy::safe(format!("find out what {peer} does instead of reading")).with_command("ss -tnpi"),
            |root| root.remedy(),
        ))
        .remedy(Remedy::pointless(
            "a larger send buffer or a faster network: neither is full",
        ))
}
