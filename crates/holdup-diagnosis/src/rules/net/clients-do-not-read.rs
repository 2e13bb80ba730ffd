//! Clients of a server read nothing of what it sends them: what is for them stands in its sockets.

use crate::rules::{Generality, Rule, RuleId, Run, say};
use holdup_evidence::facts::{SessionClient, UnreadAnswers};
use holdup_evidence::{Cause, units};
use holdup_model::attributed::{AttributedWait, AwaitedClients, Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeMap;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::ClientsDoNotRead, check)
    .about("clients do not read the answers of a server")
    .causes(Cause::ALL)
    .from(0.0)
    .generality(Generality::Consequence);

/// What stands on a connection from which its client is the one that does not keep up, bytes: less a client takes in that only has not come
/// to it yet.
const MIN_BYTES: u64 = 16_384;

/// Clients that are named.
const MAX_NAMED: usize = 4;

fn check(run: &Run<'_>) -> Verdict {
    let Some(all) = &run.facts.unread_answers else {
        return Verdict::CannotTell(
            "whether its clients read: what was unsent on their connections".to_owned(),
        );
    };
    let findings: Vec<Finding> = all
        .iter()
        .filter(|one| one.most >= MIN_BYTES)
        .filter_map(|one| finding(run, one))
        .collect();
    if findings.is_empty() {
        let most = all.iter().map(|one| one.most).max().unwrap_or(0);
        return Verdict::Clear(format!(
            "{} stood unread for a client from the start of the observation to its end, at most",
            units::bytes(most)
        ));
    }
    Verdict::Fires(findings)
}

fn finding(run: &Run<'_>, found: &UnreadAnswers) -> Option<Finding> {
    let theirs = run.attributed.waits.iter();
    let theirs = theirs.filter(|wait| wait.asker.name.pid == found.pid);
    // One that waits to send to them is known by itself.
    let sends = |wait: &AttributedWait| wait.cause == Cause::NetSend && wait.open;
    if theirs.clone().any(sends) {
        return None;
    }
    let main = theirs.max_by_key(|wait| wait.ns)?;
    let who = say::name_or(&found.process, "a server");
    let behind = waiting(run, found);
    let does = if found.clients == 1 { "does" } else { "do" };
    let title = format!(
        "{} of {who} {does} not read the server's answers, up to {} each{}{}",
        say::several(found.clients.into(), "client"),
        units::bytes(found.most),
        named(run, found),
        match behind {
            0 => String::new(),
            1 => "; 1 more request waits in the server".to_owned(),
            many => format!("; {many} more requests wait in the server"),
        }
    );
    let severity = match behind {
        0 => Severity::Note,
        _ => Severity::Warning,
    };
    let stood = Evidence::new(
        format!(
            "the same number of bytes was unacknowledged on {} at the start and end of the observation",
            say::several(found.clients.into(), "connection")
        ),
        "/proc/net/tcp",
    );
    let resource = Resource::named(ResourceKind::Socket, "connections of its clients");
    let stopped = found.readers.iter().find(|one| one.stopped);
    let finding = Finding::without_duration(RULE.id.id(), severity, title, Cause::NetSend, stood)
        .about(resource, main.asker.clone())
        .confidence(Confidence::Strong);
    let finding = match stopped.and_then(|one| one.pid) {
        Some(pid) => finding.remedy(
            Remedy::changing(
                "let the stopped client run on",
                "somebody may have stopped it on purpose",
            )
            .with_command(format!("kill -CONT {pid}")),
        ),
        None => match found.readers.iter().find_map(|one| one.pid) {
            Some(pid) => finding.remedy(
                Remedy::safe("find out what the client does instead of reading")
                    .with_command(format!("holdup attach -p {pid}")),
            ),
            None => finding.remedy(
                Remedy::safe("find out what the clients do instead of reading").with_command("ss -tnpi"),
            ),
        },
    };
    let finding = finding
        .remedy(Remedy::safe(
            "set a time limit for sending in the server, or put a proxy before it that takes whole answers (nginx: proxy_buffering)",
        ))
        .remedy(Remedy::pointless(
            "a faster disk, database or CPU: the server has the answers ready",
        ));
    Some(finding)
}

/// Requests that the server has read and that nobody works on.
fn waiting(run: &Run<'_>, found: &UnreadAnswers) -> u64 {
    // Requests are counted of all processes that were asked about: of several servers nobody knows whose they are.
    let another = |wait: &AttributedWait| {
        AwaitedClients::read(&wait.resource.name).is_some() && wait.asker.name.process != found.process
    };
    let only = !run.attributed.waits.iter().any(another);
    let requests = run.attributed.requests.as_ref().filter(|_| !run.machine && only);
    requests.map_or(0, |all| all.open.saturating_add(all.resting))
}

/// `: kiosk.py (pid 7) and 2 more`. Of several connections of one process it is named once.
fn named(run: &Run<'_>, found: &UnreadAnswers) -> String {
    let readers: BTreeMap<u32, &SessionClient> = found
        .readers
        .iter()
        .filter_map(|one| Some((one.pid?, one)))
        .collect();
    let name = |(pid, one): (&u32, &&SessionClient)| {
        let name = say::script(run, *pid).unwrap_or(&one.process);
        let stopped = if one.stopped { ", stopped" } else { "" };
        format!("{} (pid {pid}{stopped})", say::name_or(name, "a process"))
    };
    let all: Vec<String> = readers.iter().map(name).take(MAX_NAMED).collect();
    // How many more processes there are is not known where not all connections were looked up.
    let looked_up = u64::from(found.clients) == found.readers.len() as u64;
    match readers.len().saturating_sub(all.len()) {
        _ if all.is_empty() => String::new(),
        0 if looked_up => format!(": {}", all.join(", ")),
        more if looked_up => format!(": {} and {more} more", all.join(", ")),
        _ => format!(": {} and others", all.join(", ")),
    }
}
