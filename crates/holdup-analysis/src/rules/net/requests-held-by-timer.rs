//! A server lets requests wait until a timer of its own has run out.

use crate::attributed::{AttributedWait, Requests};
use crate::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use crate::rules::{Check, HARM_FLOOR, Need, Place, Rule, RuleId, Run, duration, fires, percent, say};
use holdup_evidence::Cause;

/// Part of the requests from which it is spoken of: a time limit ends a request now and then.
const PART: f64 = 0.1;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::RequestsHeldByTimer,
    about: "a server delays requests with a timer",
    needs: &[Need::SchedulerEvents],
    causes: &[Cause::TimerSleep, Cause::PollWait, Cause::Idle],
    from: 0.0,
    gives_way_to: &[],
    place: Place::End,
    check: Check::Requests(check),
};

fn check(run: &Run<'_>, requests: &Requests) -> Verdict {
    let held = &requests.held;
    let mean = held.ns / held.count.max(1);
    let part = held.count as f64 / requests.count.max(1) as f64;
    if part < PART || mean < HARM_FLOOR {
        return Verdict::Clear(format!(
            "{} of {} were answered when a timer expired, {} after they arrived on average",
            held.count,
            say::several(requests.count, "request"),
            duration(mean)
        ));
    }
    // The poll whose time ran out, of the thread that stood longest in one.
    let polled = |wait: &&AttributedWait| {
        wait.timed_out > 0 && RULE.causes.contains(&wait.cause) && wait.call.is_some()
    };
    let waits = run.attributed.waits.iter().filter(polled);
    let longest = waits.max_by_key(|wait| wait.ns);
    let who = longest.map_or_else(|| "The server".to_owned(), |wait| say::who(&wait.asker.name));
    let title = format!(
        "{who} delays {} of its requests until its own timer expires, {} on average",
        percent(part.min(1.0)),
        duration(mean)
    );
    let seen = Evidence::new(
        format!(
            "{} of {} requests were open until a poll timed out with nothing ready, and were answered then; \
             the longest took {}",
            held.count,
            requests.count,
            duration(held.longest)
        ),
        "sock_recv_length, sock_send_length and what each poll returned",
    );
    let is_nginx = longest.is_some_and(|wait| wait.asker.name.process == "nginx");
    let finding = Finding::new(
        RULE.id.id(),
        Severity::Warning,
        title,
        Cause::TimerSleep,
        held.ns,
        seen,
    )
    .confidence(Confidence::Strong);
    let finding = match is_nginx {
        true => finding.remedy(
            Remedy::changing(
                "add nodelay to limit_req, or raise the rate: limit_req with a burst and without nodelay \
                 delays requests like this",
                "the backend gets requests in bursts",
            )
            .with_command("nginx -T | grep -n -E 'limit_req|auth_delay|delay='"),
        ),
        false => finding.remedy(Remedy::safe(
            "find the timer: a rate limit that delays, a pause before a retry, a handler that sleeps",
        )),
    };
    let finding = finding.remedy(Remedy::pointless(
        "more workers or a faster machine: requests wait for the timer",
    ));
    fires(match longest {
        Some(wait) => finding.about(wait.resource.clone(), wait.asker.clone()),
        None => finding,
    })
}
