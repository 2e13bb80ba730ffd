//! Waiting for a terminal: someone has to type, or the output does not go out.

use crate::finding::{Remedy, Severity, Verdict};
use crate::rules::{Check, MATTERS, Need, Place, Rule, RuleId, Run, Waits, fires, say};
use holdup_evidence::Cause;
use holdup_knowledge::system_calls::{self, Kind};

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::WaitsForTerminal,
    about: "it waits for a terminal",
    needs: &[Need::SchedulerEvents, Need::KernelStacks],
    causes: &[Cause::IpcTty],
    from: MATTERS,
    gives_way_to: &[],
    place: Place::End,
    check: Check::Waits(check),
};

fn check(_run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let main = waits.main();
    let who = say::who(&main.asker.name);
    let terminal = say::name_or(&main.resource.name, "its terminal");
    let writes = system_calls::is_named(main.call.as_deref(), Kind::Writes);
    let finding = if writes {
        let title = format!("{terminal} takes no more output from {who}");
        RULE.finding(Severity::Warning, title, waits)
            .remedy(Remedy::safe(
                "the terminal may be held (Ctrl-S): Ctrl-Q lets it go on",
            ))
            .remedy(Remedy::safe("send the output to a file, or print less"))
    } else {
        let title = format!("{who} waits for someone to type at {terminal}");
        RULE.finding(Severity::Note, title, waits).remedy(Remedy::safe(
            "answer it; or give it its input from a file, or < /dev/null",
        ))
    };
    fires(finding)
}
