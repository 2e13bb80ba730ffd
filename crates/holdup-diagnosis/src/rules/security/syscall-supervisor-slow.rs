//! System calls that a supervisor decides about, outside the sandbox.

use crate::rules::{Extend, Need, Rule, RuleId, Run, Waits, decisions, duration, fires, root, say};
use holdup_evidence::Cause;
use holdup_knowledge::functions::families;
use holdup_model::finding::{Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::SyscallSupervisorSlow, check)
    .about("the supervisor of a sandbox is slow to allow a system call")
    .needs(&[Need::SchedulerEvents, Need::KernelStacks])
    .causes(&[Cause::SecurityDecision]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let waits = match decisions::asked(run, waits, "seccomp notifications", families::of_seccomp) {
        Ok(waits) => waits,
        Err(clear) => return clear,
    };
    let main = waits.main();
    let who = say::who(&main.asker.name);
    let holders = waits.holders();
    let supervisor = holders.first();
    let by = supervisor.map_or_else(
        || "a supervisor, which has not answered".to_owned(),
        |holder| say::who_with_pid(&holder.name),
    );
    let call = main.call.as_deref().unwrap_or("a system call");
    let each = duration(waits.own() / waits.count().max(1));
    let severity = if waits.open() && supervisor.is_none() {
        Severity::Critical
    } else {
        Severity::Warning
    };
    let title = format!("Each {call} of {who} is decided by {by}: {each} a time");
    let mut finding = RULE
        .finding(severity, title, &waits)
        .and_if(supervisor.map(say::meanwhile))
        .and_if(say::kernel_top(&waits))
        .proved_if(supervisor.is_some());
    if let Some(supervisor) = supervisor {
        finding.resource = say::in_the_way(supervisor);
    }
    fires(
        finding
            .remedy(root::of(&waits).map_or_else(
                || Remedy::safe("find out what the supervisor waits for"),
                |root| root.remedy(),
            ))
            .remedy(Remedy::changing(
                format!(
                    "allow {call} in the filter of the sandbox without the supervisor, or make the call \
                 less often"
                ),
                "the supervisor then no longer checks it",
            )),
    )
}
