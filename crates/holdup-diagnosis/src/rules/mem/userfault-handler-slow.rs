//! Plain memory that another process fills on demand.

use crate::rules::{Extend, Need, Rule, RuleId, Run, Waits, fires, root, say};
use holdup_evidence::Cause;
use holdup_model::finding::{Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::UserfaultHandlerSlow, check)
    .about("the handler that fills its memory on demand is slow")
    .needs(&[Need::SchedulerEvents, Need::KernelStacks])
    .causes(&[Cause::MemUserfault]);

fn check(_run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let who = say::who(&waits.main().asker.name);
    let holders = waits.holders();
    let handler = holders.first();
    let by = handler.map_or_else(
        || "a userfaultfd handler, which has not answered".to_owned(),
        |holder| say::who_with_pid(&holder.name),
    );
    let severity = if waits.open() && handler.is_none() {
        Severity::Critical
    } else {
        Severity::Warning
    };
    let title = format!("{who} waits for memory that is filled by {by}");
    let mut finding = RULE
        .finding(severity, title, waits)
        .and_if(handler.map(say::meanwhile))
        .and_if(say::kernel_top(waits))
        .proved_if(handler.is_some());
    if let Some(handler) = handler {
        finding.resource = say::in_the_way(handler);
    }
    fires(
        finding
            .remedy(root::of(waits).map_or_else(
                || Remedy::safe("find out what the handler waits for"),
                |root| root.remedy(),
            ))
            .remedy(Remedy::safe(
                "fill more pages at a time, or in advance (for a restored or migrated machine: pre-copy)",
            ))
            .remedy(Remedy::pointless(
                "more memory or CPU: the program only reads its own memory, and no call is in progress",
            )),
    )
}
