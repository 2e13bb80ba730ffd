//! Clients wait for a server's answer, and from outside nobody can tell why it does not come.

use crate::machine::seen::{self, Unanswered};
use crate::rules::awaited_said::{awaited, sentence, who, without_descriptors};
use crate::rules::{Rule, RuleId, Run, awaited_withheld, duration, say};
use holdup_evidence::observed::{Owed, Short};
use holdup_evidence::{Cause, Ns, Observed};
use holdup_model::attributed::{Asker, Resource, ResourceKind, ThreadName};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// The shortest wait that is reported: what is shorter may be work.
const MIN_NS: Ns = 1_500_000_000;

/// What a server may use of one CPU, percent, if it does not work on what it was asked.
const MAX_CPU_PERCENT: u32 = 20;

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
    let told = |one: &&Unanswered<'_>| withheld.iter().any(|known| known.server == one.server.pid);
    let found: Vec<Finding> = seen::unanswered(waits)
        .iter()
        .filter(|one| !told(one))
        .filter_map(finding)
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

fn owed<'a>(one: &Unanswered<'a>) -> Option<&'a Owed> {
    match &one.wait.short {
        Short::Answer(owed) => Some(owed),
        Short::Nothing | Short::Cpu(_) | Short::Memory(_) | Short::Device(_) | Short::Pool(_) => None,
    }
}

fn finding(one: &Unanswered<'_>) -> Option<Finding> {
    let owed = owed(one)?;
    let longest = one.behind.iter().map(|one| one.ns).max()?;
    // What runs, or is blocked on a disk, is another rule's.
    let works = owed.blocked || owed.cpu_percent.is_none_or(|percent| percent >= MAX_CPU_PERCENT);
    if works || longest < MIN_NS {
        return None;
    }
    let server = who(one.server);
    let long = duration(longest);
    let behind = sentence(&one.behind);
    let (severity, title) = match owed.unread {
        true => (
            Severity::Warning,
            format!(
                "{server}{} does not read its requests: {behind} for an answer, up to {long}",
                without_descriptors(one.server)
            ),
        ),
        false => (
            Severity::Note,
            match one.elsewhere {
                Some(wait) => format!(
                    "{server} has not answered, and {} waits for {}: {behind} for it, up to {long}",
                    match wait.waiter.pid == one.server.pid {
                        true => "itself".to_owned(),
                        false => who(&wait.waiter),
                    },
                    awaited(wait)
                ),
                None => format!(
                    "{server} has not answered: {behind} for it, up to {long}; why is not visible from outside"
                ),
            },
        ),
    };
    let sleeps: Vec<String> = (owed.sleeps.iter())
        .map(|(function, count)| format!("{} in {function}", say::several(u64::from(*count), "thread")))
        .collect();
    let sleeps = match sleeps.as_slice() {
        [] => String::new(),
        all => format!("; it sleeps: {}", all.join(", ")),
    };
    let used = owed.cpu_percent.map_or_else(String::new, |percent| {
        format!(", and used {percent} % of one CPU")
    });
    let at = match one.wait.name.as_str() {
        "" => String::new(),
        name => format!(" at {name}"),
    };
    let first = Evidence::new(
        format!(
            "{server} owes an answer{at} for {}{used}{sleeps}",
            duration(one.wait.ns)
        ),
        "TCP sockets (sock_diag), /proc/PID/task/TID/wchan",
    );
    let asker = Asker {
        name: ThreadName {
            pid: one.server.pid,
            tid: one.server.pid,
            process: one.server.name.clone(),
            ..ThreadName::default()
        },
        ..Asker::default()
    };
    let finding = Finding::without_duration(RULE.id.id(), severity, title, Cause::NetReceive, first);
    let finding = match owed.unread {
        true => finding.and(Evidence::new(
            "the request stands in its socket, or in the queue of its listener",
            "TCP sockets (sock_diag)",
        )),
        false => finding.and(Evidence::new(
            "not measured: what it waits for itself; it may hold the answer back on purpose, as a long poll does",
            "a look from outside",
        )),
    };
    let finding = match one.server.descriptors {
        Some(_) => finding.remedy(Remedy::changing(
            format!("raise the limit of {server} (LimitNOFILE= of its unit, ulimit -n), or close what it does not need"),
            "what is never closed uses up any limit",
        )),
        None => finding,
    };
    Some(
        finding
            .about(Resource::named(ResourceKind::Process, &one.server.name), asker)
            .confidence(match owed.unread {
                true => Confidence::Strong,
                false => Confidence::Suspect,
            })
            .remedy(
                Remedy::safe(format!("find out what {server} waits for"))
                    .with_command(format!("holdup attach -p {}", one.server.pid)),
            ),
    )
}
