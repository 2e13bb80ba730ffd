//! Sending to a message queue that is full.

use crate::rules::{Extend, MATTERS, Rule, RuleId, Run, Waits, percent, say};
use holdup_evidence::Cause;
use holdup_knowledge::system_calls;
use holdup_knowledge::system_calls::Kind;
use holdup_model::attributed::{AttributedWait, Holder, HowKnown};
use holdup_model::finding::{Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::MessageQueueFull, check)
    .about("a message queue is full")
    .causes(&[Cause::IpcQueue])
    .intermediate();

/// POSIX's and System V's calls that wait for room in a queue.
fn sends(wait: &AttributedWait) -> bool {
    system_calls::is_named(wait.call.as_deref(), Kind::SendsToQueue)
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let sending = waits.only(sends);
    let Some(sending) = sending.filter(|sending| run.matters(sending.cost(), MATTERS)) else {
        return Verdict::Clear(format!(
            "{} of the elapsed time in queues and events, and not for room in a message queue",
            percent(run.share(waits.cost()))
        ));
    };
    let key = |wait: &AttributedWait| (wait.asker.name.pid, wait.resource.name.clone());
    let groups = run.worth(&sending, sending.split(key), MATTERS);
    Verdict::Fires(groups.iter().map(finding).collect())
}

/// Whether a process ended the wait by receiving.
fn received(holder: &Holder) -> bool {
    holder.how_known != HowKnown::QueueReceiver
}

fn finding(group: &Waits<'_>) -> Finding {
    let main = group.main();
    let who = say::who(&main.asker.name);
    let queue = say::name_or(&main.resource.name, "a message queue");
    let holders = group.holders();
    let title = match holders.first() {
        // Who received last need not be the one that is to do so now.
        Some(holder) if holder.how_known == HowKnown::QueueReceiver => format!(
            "{queue} is full: {who} waits, and {}, which received from it last, receives nothing",
            say::who(&holder.name)
        ),
        Some(holder) => format!(
            "{queue} is full: {who} waits for {} to receive messages",
            say::who(&holder.name)
        ),
        None => format!("{queue} is full: {who} waits, and no process receives messages"),
    };
    let severity = if group.handed_on() {
        Severity::Note
    } else {
        Severity::Warning
    };
    let see = if system_calls::is_named(main.call.as_deref(), Kind::SystemV) {
        "ipcs -q"
    } else {
        "ls -l /dev/mqueue"
    };
    RULE.finding(severity, title, group)
        .and_if(holders.first().map(say::meanwhile))
        .and_if(say::way(group))
        .proved_if(holders.first().is_some_and(received))
        .remedy(
            Remedy::safe("make the receiver faster, or start more receivers: the sender waits for them")
                .with_command(see),
        )
        .remedy(Remedy::pointless(
            "a larger queue: it only delays the wait as long as the receiver is slower",
        ))
}
