//! Starting programs takes the time.

use crate::rules::{Extend, Generality, Rule, RuleId, Run, WORTH_A_NOTE, Waits, fires, say};
use holdup_evidence::Cause;
use holdup_model::finding::{Evidence, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::ProgramLoadSlow, check)
    .about("the start of programs takes the time")
    .causes(&[Cause::ProcessExec])
    .from(WORTH_A_NOTE)
    .generality(Generality::Describes);

fn check(_run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let main = waits.main();
    let program = say::name_or(&main.resource.name, "a program");
    let title = format!("Loading {program} takes a large part of the time");
    let processes = waits.split(|wait| wait.asker.name.pid).len() as u64;
    let finding = RULE
        .finding(Severity::Note, title, waits)
        .and(Evidence::new(
            format!("in {}", say::several(processes, "start")),
            "sched_process_exec",
        ))
        .and_if(say::kernel_top(waits))
        .remedy(Remedy::safe(
            "run it again: for a second start the program is cached",
        ));
    fires(finding.remedy(Remedy::safe(
        "start fewer programs: do the work of many short ones in one",
    )))
}
