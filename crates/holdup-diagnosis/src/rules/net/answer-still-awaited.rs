//! Clients wait for a server's answer, and from outside nobody can tell why it does not come.

use crate::rules::{Rule, RuleId, Run, awaited_instead, awaited_withheld, duration};
use holdup_evidence::{Cause, Ns, Observed};
use holdup_model::finding::{Finding, Verdict};

/// The shortest wait that is reported: what is shorter may be work.
const MIN_NS: Ns = 1_500_000_000;

/// Servers that are reported.
const MAX_SERVERS: usize = 3;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::AnswerStillAwaited, check)
    .about("clients wait for a server's answer, and it does not work on it")
    .causes(&[Cause::NetReceive]);

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let Some(waits) = observed.waits.as_ref() else {
        return Verdict::CannotTell("which processes wait for which: `holdup host`".to_owned());
    };
    // Of those that withhold their service more is said.
    let withheld = awaited_withheld::servers(waits);
    let told = |servers: &[u32]| withheld.iter().any(|known| servers.contains(&known.server));
    let found: Vec<Finding> = awaited_instead::of(waits, RULE.id, MIN_NS)
        .into_iter()
        .filter(|one| !told(&one.servers))
        .map(|one| one.finding)
        .take(MAX_SERVERS)
        .collect();
    match found.is_empty() {
        false => Verdict::Fires(found),
        true => Verdict::Clear(format!(
            "no client that came for an answer has waited for {} for a server that does not work on it",
            duration(MIN_NS)
        )),
    }
}
