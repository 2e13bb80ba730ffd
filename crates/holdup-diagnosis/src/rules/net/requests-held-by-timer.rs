//! A server lets requests wait until a timer of its own has run out.

use crate::rules::{HARM_FLOOR, Rule, RuleId, Run, duration, fires, limit_settings, say};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{AttributedWait, Requests};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// Part of the requests from which it is spoken of: a time limit ends a request now and then.
const MIN_SHARE: f64 = 0.1;

/// From so much on, on average, nobody knows whether it is a long poll that has come to its limit: those are of ten seconds to some minutes.
const LONG_POLL: Ns = 5_000_000_000;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_requests(RuleId::RequestsHeldByTimer, check)
    .about("a server delays requests with a timer")
    .causes(&[Cause::TimerSleep, Cause::PollWait, Cause::Idle])
    .from(0.0);

fn check(run: &Run<'_>, requests: &Requests) -> Verdict {
    let held = &requests.held;
    let mean = held.ns / held.count.max(1);
    // Of those that were read before anybody looked only the ones that are held are known.
    let answered = requests.count.max(held.count);
    let part = held.count as f64 / answered.max(1) as f64;
    if part < MIN_SHARE || mean < HARM_FLOOR {
        return Verdict::Clear(format!(
            "{} of {} were answered when a timer expired, {} after they arrived on average",
            held.count,
            say::several(answered, "request"),
            duration(mean)
        ));
    }
    // The poll whose time ran out, of the thread that answered; other threads have timers, too.
    let polled = |wait: &&AttributedWait| {
        let own = held.by.is_none_or(|tid| wait.asker.name.tid == tid);
        own && wait.timed_out > 0 && RULE.causes.contains(&wait.cause) && wait.call.is_some()
    };
    let waits = run.attributed.waits.iter().filter(polled);
    let longest = waits.max_by_key(|wait| wait.ns);
    let who = longest.map_or_else(|| "The server".to_owned(), |wait| say::who(&wait.asker.name));
    let setting = longest.and_then(|wait| limit_settings::delays(&wait.asker.name.process));
    // What clients ask to wait for, or to wait at most, is longer than what a program puts off.
    let keeps = longest.is_some_and(|wait| limit_settings::held_back(&wait.asker.name.process).is_some());
    let may_be_meant = setting.is_none() && (mean >= LONG_POLL || keeps);
    let setting = setting.map_or_else(String::new, |setting| format!(", as {setting} does"));
    let title = format!(
        "{who} delays {} of {} by a timer of its own{setting}, {} each on average{}{}",
        held.count,
        say::several(answered, "request"),
        duration(mean),
        if may_be_meant {
            ", which may be what their clients asked for (a long poll, a pop with a time limit)"
        } else {
            ""
        },
        match requests.open {
            0 => String::new(),
            open => format!(
                "; {open} more wait, the oldest for {}",
                duration(requests.oldest_open)
            ),
        }
    );
    let seen = Evidence::new(
        format!(
            "{} of {} requests were open until a poll timed out with nothing ready, and were answered or passed on \
             only then; the longest took {}",
            held.count,
            answered,
            duration(held.longest)
        ),
        "sock_recv_length, sock_send_length and what each poll returned",
    );
    let finding = Finding::new(
        RULE.id.id(),
        match may_be_meant {
            true => Severity::Note,
            false => Severity::Warning,
        },
        title,
        Cause::TimerSleep,
        held.ns,
        seen,
    )
    .confidence(match may_be_meant {
        true => Confidence::Suspect,
        false => Confidence::Strong,
    });
    let finding = finding.remedy(Remedy::safe(match longest.and_then(|wait| wait.asker.frame.as_deref()) {
        Some(frame) => format!(
            "find the timer that is set before {frame} waits: a rate limit that delays (nginx: limit_req without nodelay), a pause before \
             a retry, a handler that sleeps"
        ),
        None => "find the timer: a rate limit that delays (nginx: limit_req without nodelay), a pause before a retry, a handler that \
                 sleeps"
            .to_owned(),
    }));
    let finding = finding.remedy(Remedy::pointless(
        "more workers or a faster machine: requests wait for the timer",
    ));
    fires(match longest {
        Some(wait) => finding.about(wait.resource.clone(), wait.asker.clone()),
        None => finding,
    })
}
