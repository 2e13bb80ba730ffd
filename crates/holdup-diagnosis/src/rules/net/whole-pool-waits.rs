//! All workers of a server wait, so that nobody is left for another client.

use super::peer_slow::{self, Subject};
use crate::rules::own_listener::Own;
use crate::rules::pools::{self, Queued, Taken};
use crate::rules::{Extend, Generality, Rule, RuleId, Run, root, say};
use holdup_evidence::Cause;
use holdup_evidence::facts::LedBack;
use holdup_model::attributed::{Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use holdup_model::title::Title;
use std::collections::BTreeSet;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::WholePoolWaits, check)
    .about("all workers of a server wait, and none is left for another client")
    .causes(Cause::ALL)
    .from(0.0)
    .generality(Generality::Consequence);

/// Rules that say the same of one worker, or that only describe: of the same waits they have nothing to add.
const SAYS_MORE_THAN: &[RuleId] = &[
    RuleId::PeerSlow,
    RuleId::SleepsOnPurpose,
    RuleId::WaitUncategorised,
    RuleId::WaitUnexplained,
    RuleId::ManyWaitInOnePlace,
    RuleId::ThreadStandsStill,
];

/// Rules about what is short in a pool of threads or connections: of the same waits they know more.
const KNOWS_MORE: &[RuleId] = &[RuleId::WorkerPoolExhausted, RuleId::NoWorkerLeft];

fn check(run: &Run<'_>) -> Verdict {
    let taken = pools::taken(run);
    let findings: Vec<Finding> = taken
        .iter()
        .filter(|one| one.is_trouble())
        .map(|one| finding(run, one))
        .collect();
    if findings.is_empty() {
        return Verdict::Clear(format!(
            "of {}, 0 have all their workers in a wait that is trouble",
            say::several(run.facts.workers.len() as u64, "server")
        ));
    }
    Verdict::Fires(findings)
}

fn finding(run: &Run<'_>, taken: &Taken<'_>) -> Finding {
    if let Some(own) = &taken.own {
        return for_itself(taken, own);
    }
    let mut finding = match peer_slow::RULE.causes.contains(&taken.waits.cause()) {
        true => {
            let subject = Subject {
                who: taken.subject(),
                plural: taken.is_plural(),
                so: taken.so(),
            };
            peer_slow::about(run, &taken.waits, &subject)
        }
        false => otherwise(taken),
    };
    RULE.id.id().clone_into(&mut finding.rule);
    told_with(finding, taken).remedy(more_workers(taken))
}

/// More workers help only for as long as fewer of them wait.
fn more_workers(taken: &Taken<'_>) -> Remedy {
    Remedy::changing(
        format!(
            "set a timeout for this wait, or use more workers than {}, if what they wait for can serve more at a time",
            taken.count
        ),
        "what is slow gets more load",
    )
}

/// A finding about these waits with what follows for others.
fn told_with(mut finding: Finding, taken: &Taken<'_>) -> Finding {
    if taken.queued.is_some() {
        finding.severity = finding.severity.max(Severity::Warning);
    }
    taken.evidence().into_iter().fold(finding, Finding::and)
}

/// All of them wait for something that is no peer.
fn otherwise(taken: &Taken<'_>) -> Finding {
    let main = taken.waits.main();
    let is = match taken.is_plural() {
        true => "are",
        false => "is",
    };
    let on = match main.resource.name.as_str() {
        "" => String::new(),
        name => format!(": {name}"),
    };
    let root = root::of(&taken.waits);
    let title = Title::from(format!("{} {is} {}{on}", taken.subject(), main.cause.phrase()))
        .with(taken.so())
        .with(root.map_or_else(String::new, |root| root.stands()));
    let finding = RULE.finding(Severity::Note, title, &taken.waits);
    let finding = finding.and_if(say::way(&taken.waits));
    match root {
        Some(root) => finding.remedy(root.remedy()),
        None => finding.remedy(
            Remedy::safe("read the page of this kind of wait")
                .with_command(format!("holdup explain {}", main.cause)),
        ),
    }
}

/// All of them wait for an answer from the place where only they answer.
fn for_itself(taken: &Taken<'_>, own: &Own<'_>) -> Finding {
    let main = taken.waits.main();
    let address = &own.listener.address;
    let (title, known, confidence) = match own.through.as_slice() {
        [] => (
            at_own_port(taken),
            format!("the other end of their connections is the listener {address}, which is theirs"),
            Confidence::Proved,
        ),
        through => (
            behind_others(taken, address, through),
            format!(
                "whatever {} and whoever stands before it have asked, and got no answer to, is in the queue of {address} or with these workers",
                who_between(through)
            ),
            Confidence::Strong,
        ),
    };
    let finding = RULE
        .finding(Severity::Critical, title, &taken.waits)
        .about(Resource::named(ResourceKind::Socket, address), main.asker.clone())
        .and(Evidence::new(known, "/proc/net/tcp, sock_diag and /proc/PID/fd"))
        .confidence(confidence);
    told_with(finding, taken)
        .remedy(Remedy::safe(
            "call the function itself instead of asking the own service, or have other processes answer such requests",
        ))
        .remedy(Remedy::changing(
            "restart it to end the deadlock, and set a timeout for such requests",
            "the requests that wait are lost",
        ))
        .remedy(Remedy::pointless(
            "waiting: the answer would have to come from one of those that wait",
        ))
}

/// They ask at their own listener.
fn at_own_port(taken: &Taken<'_>) -> Title {
    let main = taken.waits.main();
    let (wait, accept) = match taken.is_plural() {
        true => ("wait", "only they accept clients"),
        false => ("waits", "nobody else accepts clients"),
    };
    let queue = match &taken.queued {
        Some(Queued::At(at)) => format!(
            ", and {} in its queue",
            match at.after {
                1 => "1 client waits".to_owned(),
                count => format!("{count} clients wait"),
            }
        ),
        _ => String::new(),
    };
    Title::from(format!(
        "{} waits for its own port: {} {wait} for {} to answer",
        say::name_or(&main.asker.name.process, "a server"),
        taken.all(),
        peer_slow::peer(main),
    ))
    .with(format!(", where {accept}"))
    .with(queue)
}

/// They ask somebody who asks them in turn.
fn behind_others(taken: &Taken<'_>, address: &str, through: &[&LedBack]) -> Title {
    let main = taken.waits.main();
    let (wait, same) = match taken.is_plural() {
        true => ("wait", "these same workers"),
        false => ("waits", "this same worker"),
    };
    let queued: u32 = through.iter().map(|one| one.queued).fold(0, u32::saturating_add);
    let queue = match queued {
        0 => String::new(),
        1 => format!(" with 1 request in the queue of {address}"),
        count => format!(" with {count} requests in the queue of {address}"),
    };
    let at = match peer_slow::peer(main) {
        place if place.is_empty() => String::new(),
        place => format!(" at {place}"),
    };
    Title::from(format!(
        "{} waits for itself: {} {wait} for {}{at} to answer",
        say::name_or(&main.asker.name.process, "a server"),
        taken.all(),
        who_between(through),
    ))
    .with(format!(", which waits for {same}{queue}"))
}

/// Those between, by name.
fn who_between(through: &[&LedBack]) -> String {
    let names: BTreeSet<&str> = through.iter().map(|one| one.process.as_str()).collect();
    let names: Vec<&str> = names
        .into_iter()
        .map(|name| say::name_or(name, "a proxy"))
        .collect();
    names.join(" and ")
}

/// Joins what is said of these workers' waits: a rule that knows more of them tells what follows for the clients, and one that knows less is
/// left out. Out: the rules that were left out, and by which.
pub(in crate::rules) fn join(run: &Run<'_>, found: &mut Vec<(&Rule, Finding)>) -> Vec<(RuleId, RuleId)> {
    let mut left_out = Vec::new();
    for taken in pools::taken(run) {
        let about = |(_, finding): &(&Rule, Finding)| taken.is_about(finding.cause, finding.asker.name.pid);
        let knows_more = |one: &&mut (&Rule, Finding)| {
            let rule = one.0;
            let more = rule.generality <= Generality::Specific || KNOWS_MORE.contains(&rule.id);
            about(one) && more && !SAYS_MORE_THAN.contains(&rule.id)
        };
        let best = match &taken.own {
            Some(_) => None,
            None => found
                .iter_mut()
                .filter(knows_more)
                .max_by_key(|(_, finding)| (finding.severity, finding.ns)),
        };
        let by = match best {
            // Of the pool's own structures it is known how many workers there are.
            Some((rule, _)) if rule.id == RuleId::NoWorkerLeft => rule.id,
            Some((rule, finding)) => {
                finding.title.push(taken.clause());
                *finding = told_with(finding.clone(), &taken);
                rule.id
            }
            None => RULE.id,
        };
        if by == RULE.id && !taken.is_trouble() {
            continue;
        }
        found.retain(|one| {
            let (rule, finding) = one;
            let less = SAYS_MORE_THAN.contains(&rule.id) || rule.id == RULE.id && by != RULE.id;
            let queue = rule.id == RuleId::ClientsNotAccepted
                && taken.queue() == Some(finding.resource.name.as_str());
            let out = less && about(one) || queue;
            if out && !left_out.contains(&(rule.id, by)) {
                left_out.push((rule.id, by));
            }
            !out
        });
    }
    left_out
}
