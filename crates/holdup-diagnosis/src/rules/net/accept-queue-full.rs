//! A listener of this machine whose queue of clients is full.

use super::connection_unanswered::came_to_nothing;
use crate::rules::in_queue::{address, listener};
use crate::rules::{Extend, MATTERS, Rule, RuleId, Run, Waits, connected, listeners, live_sessions, say};
use holdup_evidence::facts::Listener;
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::AttributedWait;
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// Wait from which a request was repeated at least once, nanoseconds: the kernel's first repetition comes after 1 s.
/// On one machine nothing else drops the first one.
const MIN_REPEATED_NS: Ns = 1_000_000_000;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_either(RuleId::AcceptQueueFull, check, listeners::seen)
    .about("a listener on this machine does not accept its queued clients")
    .causes(&[Cause::NetConnect]);

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

/// Whether all processes that have the listener poll sets, and it is in none of them: a server at its limit of clients does that.
fn is_set_aside(listener: &Listener) -> bool {
    !listener.processes.is_empty() && listener.processes.iter().all(|one| one.polled == Some(false))
}

fn title(run: &Run<'_>, listener: Option<&Listener>, address: &str) -> String {
    let known = listener.and_then(|one| Some((one, connected::acceptors(&one.processes)?)));
    let Some((listener, who)) = known else {
        return format!(
            "The listener at {address} on this machine accepts no clients, and its queue is full"
        );
    };
    let most = connected::most(run, &listener.clients);
    let most = most.map_or_else(String::new, |most| format!(": {most}"));
    match listener.processes.iter().find(|one| one.stopped) {
        Some(stopped) => format!(
            "{} is stopped, and accepts no clients at {address}, whose queue is full",
            live_sessions::process(&stopped.process, stopped.pid)
        ),
        None if is_set_aside(listener) => {
            format!("{who} has stopped accepting clients at {address}, and its queue is full{most}")
        }
        None => format!("{who} accepts no clients at {address}, and its queue is full{most}"),
    }
}

/// What to do at the process that is in the way.
fn remedy(run: &Run<'_>, listener: &Listener) -> Option<Remedy> {
    if let Some(stopped) = listener.processes.iter().find(|one| one.stopped) {
        return Some(live_sessions::go_on(
            &live_sessions::process(&stopped.process, stopped.pid),
            stopped.pid,
        ));
    }
    connected::most(run, &listener.clients)?;
    let first = listener.clients.first()?;
    is_set_aside(listener).then(|| {
        Remedy::safe(format!(
            "close connections in {} that it does not need, or raise the server's limit of connections",
            connected::who(run, first)
        ))
    })
}

fn finding(run: &Run<'_>, group: &Waits<'_>) -> Finding {
    let main = group.main();
    let address = address(main).map_or_else(String::new, |address| address.to_string());
    let listener = listener(run, main);
    let waiting = listener.map_or(0, |listener| listener.waiting);
    let title = title(run, listener, &address);
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
    let finding = RULE
        .finding(Severity::Warning, title, group)
        .and(Evidence::new(text, "/proc/net/tcp"))
        .and_if(listener.filter(|one| is_set_aside(one)).map(|_| {
            let text =
                "none of its processes has the listener in a set that it polls: it has stopped accepting";
            Evidence::new(text, "/proc/PID/fdinfo")
        }))
        .and_if(listener.and_then(|one| connected::evidence(run, &one.clients)))
        .and_if(say::clock(run, group))
        .and_if(limit)
        .confidence(Confidence::Strong);
    let finding = listener
        .and_then(|one| remedy(run, one))
        .into_iter()
        .fold(finding, Finding::remedy);
    finding
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
