//! A call over D-Bus that nobody answers.

use crate::rules::{Extend, MATTERS, Need, Rule, RuleId, Run, Waits, duration, say};
use holdup_evidence::{Cause, Ns};
use holdup_knowledge::user_code;
use holdup_model::attributed::AttributedWait;
use holdup_model::finding::{Finding, Remedy, Severity, Verdict};

/// Wait from which a call counts as given up even where it was not seen how the wait ended, nanoseconds: just under
/// the 25 s that every D-Bus library waits unless it is told otherwise.
const MIN_GIVEN_UP_NS: Ns = 24_500_000_000;

/// Wait for an answer from which somebody who looks at a running process means this one, nanoseconds: services on the bus
/// answer within milliseconds.
const MIN_STUCK_NS: Ns = 1_000_000_000;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::BusCallUnanswered, check)
    .about("a call over D-Bus gets no answer")
    .needs(&[Need::SchedulerEvents, Need::WaitMemory])
    .causes(&[Cause::IpcUnix]);

/// Whether a Unix socket's path is that of a message bus: the system's, or a session's.
fn is_bus(path: &str) -> bool {
    let session = path
        .strip_prefix("/run/user/")
        .and_then(|rest| rest.split_once('/'));
    path.ends_with("/dbus/system_bus_socket") || session.is_some_and(|(_, name)| name == "bus")
}

/// Whether a process that ran already waits on a message bus for what others tell there, and has called nobody: its stack says so.
pub(super) fn listens(run: &Run<'_>, wait: &AttributedWait) -> bool {
    let stack = &wait.asker.stack;
    let called = stack.is_empty() || user_code::awaits_bus_answer(stack);
    run.attributed.of_threads && is_bus(&wait.resource.name) && !called
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let Some(bus) = waits.only(|wait| is_bus(&wait.resource.name)) else {
        return Verdict::Clear("none of these sockets is a message bus".to_owned());
    };
    // Who listens for what others tell on the bus waits there for ever, and called nobody.
    let stuck = |wait: &AttributedWait| {
        let goes_on = run.attributed.of_threads && wait.open && wait.max >= MIN_STUCK_NS;
        goes_on && user_code::awaits_bus_answer(&wait.asker.stack)
    };
    let given_up = |wait: &AttributedWait| !run.attributed.of_threads && wait.max >= MIN_GIVEN_UP_NS;
    let unanswered = bus.only(|wait| wait.timed_out > 0 || given_up(wait) || stuck(wait));
    let Some(unanswered) = unanswered.filter(|waits| run.matters(waits.cost(), MATTERS)) else {
        let (count, longest) = (say::several(bus.count(), "wait"), duration(bus.longest().max));
        return Verdict::Clear(format!(
            "{count} on a message bus, all answered, after at most {longest}"
        ));
    };
    let key = |wait: &AttributedWait| wait.resource.name.clone();
    let groups = run.worth(&unanswered, unanswered.split(key), MATTERS);
    Verdict::Fires(groups.iter().map(|group| finding(run, group)).collect())
}

fn finding(run: &Run<'_>, group: &Waits<'_>) -> Finding {
    let main = group.main();
    let socket = &main.resource.name;
    let system = !socket.starts_with("/run/user/");
    let bus = if system { "system" } else { "session" };
    let (who, longest) = (say::who(&main.asker.name), group.longest());
    let (verb, within) = match longest.open && run.attributed.of_threads {
        true => ("has had", "for at least"),
        false => ("got", "within"),
    };
    let title = format!(
        "{who} {verb} no answer over the {bus} bus ({socket}) {within} {}",
        duration(longest.max)
    );
    let finding = RULE.finding(Severity::Warning, title, group);
    let timed_out = group.timed_out();
    let finding = finding.and_if((timed_out > 0).then(|| {
        holdup_model::finding::Evidence::new(say::ran_out(timed_out, group.count()), "what poll returned")
    }));
    let monitor = if system {
        "busctl monitor --system"
    } else {
        "busctl monitor --user"
    };
    finding
        .and_if(say::clock(run, group))
        .proved_if(timed_out > 0)
        .remedy(
            Remedy::safe(
                "find the service that is called and does not answer; the bus only forwards messages",
            )
            .with_command(monitor),
        )
        .remedy(Remedy::changing(
            "restart that service; at a login that takes 25 s it is mostly systemd-logind",
            "the in-memory state of the service is lost",
        ))
        .remedy(Remedy::pointless(
            "restarting the bus itself: its services do not return, and more timeouts like this one follow",
        ))
}
