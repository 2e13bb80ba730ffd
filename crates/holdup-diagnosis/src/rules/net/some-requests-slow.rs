//! Most requests are answered quickly, and some take many times as long.

use crate::rules::{Extend, Generality, Rule, RuleId, Run, duration, fires};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{AttributedWait, Requests, SlowRequest};
use holdup_model::finding::{Evidence, Finding, Remedy, Severity, Verdict};

/// Requests below which the slowest hundredth is one, and one may be chance.
const MIN_REQUESTS: u64 = 100;

/// How many times as long as the others the slow ones take: less is within what load alone does to a queue.
const MIN_FACTOR: Ns = 3;

/// By how much longer they take at least, nanoseconds: people begin to notice a tenth of a second, and a page has more than
/// one request.
const MIN_EXCESS_NS: Ns = 30_000_000;

/// The part of the difference that one cause must explain.
const MIN_EXPLAINED_SHARE: f64 = 0.5;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_requests(RuleId::SomeRequestsSlow, check)
    .about("some requests take many times as long as the others")
    .causes(Cause::ALL)
    .from(0.0)
    .generality(Generality::Consequence)
    .intermediate();

/// Whether those who were waited for in waits of a cause mostly had no CPU: then that is what the time went into.
fn ends_in_queue(run: &Run<'_>, cause: Cause) -> bool {
    let rows = || run.attributed.waits.iter().filter(|wait| wait.cause == cause);
    let sum = |waits: &mut dyn Iterator<Item = &AttributedWait>| {
        waits.fold(0, |sum: Ns, wait| sum.saturating_add(wait.ns))
    };
    let queued = |wait: &&AttributedWait| {
        let last = wait.chain.get(1..).and_then(<[_]>::last);
        last.is_some_and(|link| link.cause == Cause::SchedRunqueue)
    };
    sum(&mut rows().filter(queued)) > sum(&mut rows()) / 2
}

/// Whether that is the time between two looks of an event loop that was idle: its time limits ran out, no answer went out as one did, and no
/// thread slept.
fn ticked(run: &Run<'_>, requests: &Requests, cause: Cause) -> bool {
    let slept = || run.attributed.waits.iter().any(|wait| wait.cause == cause);
    cause == Cause::TimerSleep && requests.held.count == 0 && !slept()
}

/// Whether the waits of a cause were mostly for other threads of the same process that waited for work themselves: nobody in the server had
/// anything to do for these requests, as where a client asks for the next job there is.
fn rested(run: &Run<'_>, cause: Cause) -> bool {
    let (mut all, mut for_idle): (Ns, Ns) = (0, 0);
    for wait in run.attributed.waits.iter().filter(|wait| wait.cause == cause) {
        let longest = wait.holders.iter().max_by_key(|holder| holder.ns);
        let idle = longest.is_some_and(|holder| {
            holder.name.pid == wait.asker.name.pid && holder.doing == Some(Cause::Idle)
        });
        all = all.saturating_add(wait.ns);
        for_idle = for_idle.saturating_add(if idle { wait.ns } else { 0 });
    }
    for_idle > all / 2
}

fn check(run: &Run<'_>, requests: &Requests) -> Verdict {
    if requests.count < MIN_REQUESTS {
        return Verdict::Clear(format!(
            "{} requests were answered: too few to call some of them slow, below {MIN_REQUESTS}",
            requests.count
        ));
    }
    let Some(slow) = &requests.slow else {
        return Verdict::CannotTell("how long single requests took".to_owned());
    };
    let longer = slow.ns.saturating_sub(slow.usual);
    if slow.ns < slow.usual.saturating_mul(MIN_FACTOR) || longer < MIN_EXCESS_NS {
        return Verdict::Clear(format!(
            "the slowest hundredth of {} requests took {} each, the middle half {}",
            requests.count,
            duration(slow.ns),
            duration(slow.usual)
        ));
    }
    let main = slow
        .more
        .first()
        .filter(|(_, ns)| *ns as f64 >= longer as f64 * MIN_EXPLAINED_SHARE);
    let Some((cause, more)) = main else {
        return Verdict::CannotTell(format!(
            "the cause of the slow ones, {} each: no cause explains half of it, perhaps because the thread \
             that answers is not the one that reads",
            duration(longer)
        ));
    };
    if *cause == Cause::Idle || ticked(run, requests, *cause) || rested(run, *cause) {
        return Verdict::CannotTell(format!(
            "the cause of the slow ones, {} each: the threads that answer were idle meanwhile, so it is outside of them, with the \
             clients or with whoever hands them work",
            duration(longer)
        ));
    }
    let end = match ends_in_queue(run, *cause) {
        true => Cause::SchedRunqueue,
        false => *cause,
    };
    let waits = run.attributed.waits.iter().filter(|wait| wait.cause == *cause);
    let finding = finding(requests, slow, (*cause, *more), end);
    // Of the waits of that cause it is the one that took most.
    fires(match waits.max_by_key(|wait| wait.ns) {
        Some(wait) => finding.about(wait.resource.clone(), wait.asker.clone()),
        None => finding,
    })
}

/// `end`: what the time of those waits really went into.
fn finding(requests: &Requests, slow: &SlowRequest, (cause, more): (Cause, Ns), end: Cause) -> Finding {
    let line = slow.line.as_deref().map(|line| format!(", such as {line}"));
    let meanwhile = match slow.nobody_else {
        true => ", and all other clients wait",
        false => "",
    };
    let title = format!(
        "1 request in a hundred takes {} instead of {}: {}{meanwhile}",
        duration(slow.ns),
        duration(slow.usual),
        end.phrase()
    );
    let one_thread = slow.nobody_else.then(|| {
        let text = "one thread answers all clients, and answered no other during these requests: the wait of \
         the others is not in their request time, which begins with the read";
        Evidence::new(text, SOURCE)
    });
    let end_of_it = (end != cause).then(|| {
        let text = format!("the blocker was mostly {}", end.phrase());
        Evidence::new(text, "who woke whom")
    });
    let first = Evidence::new(
        format!(
            "the slowest {} of {} requests{}: {} each, {} of that {} ({cause}) and not in the others",
            slow.number,
            requests.count,
            line.unwrap_or_default(),
            duration(slow.ns),
            duration(more),
            cause.phrase()
        ),
        SOURCE,
    );
    let cost = slow.ns.saturating_sub(slow.usual).saturating_mul(slow.number);
    let mend = match cause.on_cpu() {
        true => "make the computation of the slow requests cheaper: its CPU time by function is above",
        false => "remove the wait of the slow requests: it is above, with its asker and blocker",
    };
    let finding = Finding::new(RULE.id.id(), Severity::Warning, title, end, cost, first)
        .and_if(end_of_it)
        .and_if(one_thread)
        .and(Evidence::new(
            format!(
                "median {}, 99 % within {}, slowest {}",
                duration(requests.p50),
                duration(requests.p99),
                duration(requests.longest)
            ),
            SOURCE,
        ))
        .remedy(Remedy::safe(mend).with_command(format!("holdup explain {cause}")));
    if slow.nobody_else {
        return finding.remedy(Remedy::safe(
            "move slow work to another thread or process, so that the answering thread is not blocked",
        ));
    }
    finding.remedy(Remedy::pointless(
        "more workers or a faster CPU: most requests are answered quickly as it is",
    ))
}

/// Where requests are seen.
const SOURCE: &str = "sock_recv_length and sock_send_length";
