//! A server without a client.

use crate::rules::{Rule, RuleId, Run, Waits, fires, say};
use holdup_evidence::Cause;
use holdup_model::finding::{Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::WaitsForClient, check)
    .about("a server waits for a client to connect")
    .causes(&[Cause::NetAccept]);

fn check(_run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let main = waits.main();
    // The socket's name says that it listens, and where.
    let socket = say::name_or(&main.resource.name, "at its socket");
    let title = format!("{} waits for a client, {socket}", say::who(&main.asker.name));
    let finding = RULE.finding(Severity::Note, title, waits);
    fires(finding.remedy(Remedy::safe(
        "measure it under load: a server without clients is not a problem",
    )))
}
