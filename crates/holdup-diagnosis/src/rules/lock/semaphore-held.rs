//! Waiting for a System V semaphore.

use crate::rules::{Extend, MATTERS, Rule, RuleId, Run, Waits, duration, say};
use holdup_evidence::Cause;
use holdup_model::finding::{Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::SemaphoreHeld, check)
    .about("a System V semaphore is not released")
    .causes(&[Cause::LockSysv]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let sets = run.worth(waits, waits.split(|wait| wait.resource.name.clone()), MATTERS);
    Verdict::Fires(sets.iter().map(finding).collect())
}

fn finding(waits: &Waits<'_>) -> Finding {
    let main = waits.main();
    let who = say::who(&main.asker.name);
    let set = say::name_or(&main.resource.name, "a System V semaphore");
    let holders = waits.holders();
    let title = match holders.first() {
        Some(holder) => format!(
            "{who} waits for {} to release {set}",
            say::who_with_pid(&holder.name)
        ),
        // A wait that ended was ended by somebody, whom nobody saw.
        None if !main.open && main.count > 0 => {
            format!(
                "{who} waited {} for {set}, whose holder was not observed",
                duration(waits.cost())
            )
        }
        None => format!("{who} waits for {set}, which no process releases"),
    };
    // A thread of the run has its own time judged by other rules; anyone else is where the search must go on.
    let severity = if waits.handed_on() {
        Severity::Note
    } else {
        Severity::Warning
    };
    let see = match main.resource.detail.semaphore_set {
        Some(id) => format!("ipcs -s -i {id}"),
        None => "ipcs -s".to_owned(),
    };
    let finding = RULE
        .finding(severity, title, waits)
        .and_if(holders.first().map(say::meanwhile))
        .and_if(say::way(waits))
        .proved_if(!holders.is_empty())
        .remedy(
            Remedy::safe("list the values, the last user of each, and the number of waiters")
                .with_command(see),
        );
    match holders.first() {
        Some(holder) => finding.remedy(Remedy::safe(format!(
            "make {} release it sooner: this wait is its running time",
            say::who(&holder.name)
        ))),
        None => finding.remedy(Remedy::changing(
            "restart its users with a new set if the process that took it has died (ipcrm -s), and use \
             SEM_UNDO",
            "processes that still use the set fail",
        )),
    }
}
