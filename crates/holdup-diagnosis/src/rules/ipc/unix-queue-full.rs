//! A Unix socket's listener whose queue of clients is full.

use crate::rules::{Extend, MATTERS, Rule, RuleId, Run, Waits, duration, listeners, say};
use holdup_evidence::Cause;
use holdup_model::attributed::AttributedWait;
use holdup_model::finding::{Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_either(RuleId::UnixQueueFull, check, listeners::seen_unix)
    .about("the listener of a Unix socket does not accept its queued clients")
    .causes(&[Cause::IpcUnix])
    .intermediate();

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    // A connect to a Unix socket is done at once unless the listener's queue has no room for it.
    let queued = waits.only(|wait| wait.call.as_deref() == Some("connect"));
    let cost = queued.as_ref().map_or(0, Waits::cost);
    let Some(queued) = queued.filter(|queued| run.matters(queued.cost(), MATTERS)) else {
        let cost = duration(cost);
        return Verdict::Clear(format!("connecting took {cost} of the time on Unix sockets"));
    };
    let socket = |wait: &AttributedWait| wait.resource.name.clone();
    let groups = run.worth(&queued, queued.split(socket), MATTERS);
    Verdict::Fires(groups.iter().map(finding).collect())
}

fn finding(group: &Waits<'_>) -> Finding {
    let socket = &group.main().resource.name;
    let holders = group.holders();
    let listener = match holders.first() {
        Some(holder) => format!("{}, which listens at {socket},", say::who(&holder.name)),
        None => format!("The listener at {socket}"),
    };
    let title = format!("{listener} accepts no clients, and its queue is full");
    let severity = match group.handed_on() {
        true => Severity::Note,
        false => Severity::Warning,
    };
    let text = "connect on a Unix socket blocks only if the queue of the listener is full";
    RULE.finding(severity, title, group)
        .and(Evidence::new(text, "the system call"))
        .and_if(say::kernel_top(group))
        .and_if(holders.first().map(say::meanwhile))
        .and_if(say::way(group))
        .proved_if(true)
        .remedy(
            Remedy::safe("compare the clients in the queue (Recv-Q) with its limit (Send-Q)")
                .with_command("ss -xlp"),
        )
        .remedy(Remedy::safe(
            "make the listener accept faster: more workers (php-fpm: pm.max_children), or find out what they \
             wait for",
        ))
        .remedy(Remedy::changing(
            "use a longer backlog if clients only come in bursts (php-fpm: listen.backlog)",
            "if the listener is too slow on average, clients only wait longer in the queue",
        ))
}
