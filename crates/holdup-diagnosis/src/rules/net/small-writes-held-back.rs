//! Small writes that wait for the acknowledgement of the one before (Nagle's algorithm and delayed acknowledgements).

use crate::rules::{Extend, MATTERS, Rule, RuleId, Run, Waits, duration, say};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::AttributedWait;
use holdup_model::finding::{Evidence, Finding, Remedy, Severity, Verdict};

/// Waits from which it is how the program works rather than a coincidence.
const MIN_WAITS: u64 = 5;

/// Median length of such waits, nanoseconds: an acknowledgement is delayed for 40 ms at least on Linux and for 200 ms
/// at most on most systems. What is shorter does no harm, what is longer is mostly the peer's own time.
const DELAYED: std::ops::RangeInclusive<Ns> = 30_000_000..=250_000_000;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::SmallWritesHeldBack, check)
    .about("small pieces of a request are delayed until the first is acknowledged")
    .causes(&[Cause::NetReceive]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let held = waits
        .mostly(|tcp| tcp.held_back_ns)
        .filter(|held| DELAYED.contains(&held.median()));
    let Some(held) =
        held.filter(|held| held.tcp().held_back >= MIN_WAITS && run.matters(held.cost(), MATTERS))
    else {
        let (all, held) = (waits.tcp().seen, waits.tcp().held_back);
        let clear = || {
            Verdict::Clear(format!(
                "of {} for an answer over TCP, {held} began with a delayed part of the request",
                say::several(all, "wait")
            ))
        };
        return waits.without_tcp().unwrap_or_else(clear);
    };
    let peer = |wait: &AttributedWait| wait.resource.name.clone();
    let groups = run.worth(&held, held.split(peer), MATTERS);
    Verdict::Fires(groups.iter().map(finding).collect())
}

fn finding(group: &Waits<'_>) -> Finding {
    let main = group.main();
    let who = say::who(&main.asker.name);
    let peer = &say::peer(&main.resource);
    let title = format!(
        "{who} sends requests to {} in small pieces, and the kernel delays each second one",
        say::name_or(peer, "its peer")
    );
    let tcp = group.tcp();
    let text = format!(
        "{} of {} for the answer began with less than a segment delayed, because an earlier piece was not \
         acknowledged and TCP_NODELAY is off",
        tcp.held_back,
        say::several(tcp.seen, "wait")
    );
    let text_too = format!(
        "the peer delays its acknowledgement by 40 ms or more, to send it with an answer: median {}",
        duration(group.median())
    );
    RULE.finding(Severity::Warning, title, group)
        .and(Evidence::new(text, "the state of the socket when the wait began"))
        .and(Evidence::new(text_too, say::SCHEDULER))
        .proved_if(true)
        .remedy(Remedy::safe(
            "write a request in one piece: gather it in a buffer first, or use writev or sendmsg",
        ))
        .remedy(Remedy::changing(
            "or set TCP_NODELAY on this socket, which disables the delay",
            "a program that writes byte by byte then sends as many packets",
        ))
        .remedy(Remedy::pointless(
            "a faster server or network: both ends are idle and wait for each other",
        ))
}
