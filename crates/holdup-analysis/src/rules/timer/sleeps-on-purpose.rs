//! Sleeping because the program was told to.

use crate::attributed::{AttributedWait, SLEEPS};
use crate::finding::{Evidence, Finding, Remedy, Severity, Verdict};
use crate::rules::{Check, MATTERS, Need, Place, Rule, RuleId, Run, Waits, say};
use holdup_evidence::Cause;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::SleepsOnPurpose,
    about: "it sleeps because it was told to",
    needs: &[Need::SchedulerEvents],
    causes: &[Cause::TimerSleep],
    from: MATTERS,
    gives_way_to: &[
        RuleId::ClientsNotAccepted,
        RuleId::ConnectionRefusedRetried,
        RuleId::DnsServerSilent,
        RuleId::LocalPortsUsedUp,
        RuleId::SleepPolling,
        RuleId::PackageManagerLocked,
        RuleId::SqliteBusy,
    ],
    place: Place::End,
    check: Check::Waits(check),
};

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    // Of the one there may be much and of the other nothing that anybody waited for.
    let (limits, sleeps): (Vec<_>, Vec<_>) = run
        .worth(waits, waits.split(is_limit), MATTERS)
        .into_iter()
        .partition(|group| is_limit(group.main()));
    let limits = limits.iter().map(ran_out);
    Verdict::Fires(limits.chain(sleeps.iter().map(slept)).collect())
}

/// Whether it was a wait for another thread that its time limit ended.
fn is_limit(wait: &AttributedWait) -> bool {
    let futex = matches!(wait.call.as_deref(), Some("futex" | "futex_wait" | "futex_waitv"));
    futex && !wait.resource.detail.contains_key(SLEEPS)
}

fn slept(waits: &Waits<'_>) -> Finding {
    let who = say::who(&waits.main().asker.name);
    let title = format!("{} of sleep that {who} asked for", say::cost(waits));
    RULE.finding(Severity::Note, title, waits).remedy(Remedy::safe(
        "sleep less, or wait for the event that the sleep stands for",
    ))
}

/// A thread may sleep so, to be woken early when the program ends; or nobody does what it hopes for.
fn ran_out(waits: &Waits<'_>) -> Finding {
    let who = say::who(&waits.main().asker.name);
    let title = format!(
        "{who} waits for another thread until its time runs out: {}",
        say::cost(waits)
    );
    let count = waits.count().max(1);
    let nobody = format!(
        "{}: no other thread released or signalled it meanwhile",
        say::ran_out(count, count)
    );
    RULE.finding(Severity::Note, title, waits)
        .and(Evidence::new(nobody, say::SCHEDULER))
        .remedy(Remedy::safe(
            "find who should have released or signalled it, and what that one does: it may wait in the same queue, or have signalled \
             before the wait began, which is lost unless the waiter looks first",
        ))
        .remedy(Remedy::safe("if it is a sleep that may be cut short: sleep less"))
        .remedy(Remedy::pointless(
            "a shorter limit by itself: what was waited for has then not happened either",
        ))
}
