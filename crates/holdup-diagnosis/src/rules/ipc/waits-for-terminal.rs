//! Waiting for a terminal: someone has to type, or the output does not go out.

use crate::rules::{Need, Rule, RuleId, Run, Waits, fires, say};
use holdup_evidence::Cause;
use holdup_knowledge::system_calls;
use holdup_knowledge::system_calls::Kind;
use holdup_model::finding::{Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::WaitsForTerminal, check)
    .about("the program waits for a terminal")
    .needs(&[Need::SchedulerEvents, Need::KernelStacks])
    .causes(&[Cause::IpcTty]);

fn check(_run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let main = waits.main();
    let who = say::who(&main.asker.name);
    let terminal = say::name_or(&main.resource.name, "its terminal");
    let writes = system_calls::is_named(main.call.as_deref(), Kind::Writes);
    let finding = if writes {
        let title = format!("{terminal} accepts no more output from {who}");
        RULE.finding(Severity::Warning, title, waits)
            .remedy(Remedy::safe(
                "press Ctrl-Q if the output of the terminal is stopped (Ctrl-S)",
            ))
            .remedy(Remedy::safe("send the output to a file, or print less"))
    } else {
        let title = format!("{who} waits for input from {terminal}");
        RULE.finding(Severity::Note, title, waits).remedy(Remedy::safe(
            "type the answer, or redirect its input from a file or from /dev/null",
        ))
    };
    fires(finding)
}
