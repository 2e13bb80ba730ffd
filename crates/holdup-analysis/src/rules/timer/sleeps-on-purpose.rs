//! Sleeping because the program was told to.

use crate::finding::{Remedy, Severity, Verdict};
use crate::rules::{Check, MATTERS, Need, Place, Rule, RuleId, Run, Waits, duration, fires, say};
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
        RuleId::SleepPolling,
        RuleId::PackageManagerLocked,
        RuleId::SqliteBusy,
    ],
    place: Place::End,
    check: Check::Waits(check),
};

fn check(_run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let main = waits.main();
    let who = say::who(&main.asker.name);
    let title = format!("{} of sleep that {who} asked for", duration(waits.cost()));
    let finding = RULE.finding(Severity::Note, title, waits);
    fires(finding.remedy(Remedy::safe(
        "sleep less, or wait for the event that the sleep stands for",
    )))
}
