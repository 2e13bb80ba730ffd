//! A service asks closed ports for connections again and again, and no thread sleeps in between: a timer of an event loop or of a runtime
//! does.

use crate::rules::list::connection_refused_retried::refused as with_sleeps;
use crate::rules::{Extend, Generality, Rule, RuleId, Run, duration, say, tasks};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{Asker, AttributedWait, Resource, ResourceKind, ThreadName};
use holdup_model::connections::Connections;
use holdup_model::finding::{Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// Refusals by one peer from which it is asked again and again, and not once for each of its addresses.
const MIN_REFUSALS: u64 = 4;

/// Addresses that a title names.
const MAX_NAMED: usize = 3;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::DialledPortClosed, check)
    .about("a service asks closed ports for connections again and again")
    .causes(Cause::ALL)
    .from(0.0)
    .generality(Generality::Consequence);

fn check(run: &Run<'_>) -> Verdict {
    let again = |peer: &&Connections| peer.refused >= MIN_REFUSALS && peer.made == 0;
    let mut by_process: BTreeMap<u32, Vec<&Connections>> = BTreeMap::new();
    for peer in run.attributed.connections.iter().filter(again) {
        by_process.entry(peer.by.pid).or_default().push(peer);
    }
    // Where a thread sleeps in between, another rule says for how long.
    let slept = run
        .waits(|wait| wait.cause == Cause::TimerSleep)
        .and_then(|sleeps| with_sleeps(run, &sleeps));
    by_process.retain(|_, peers| !peers.iter().any(|peer| slept.is_some_and(|one| one == *peer)));
    let findings: Vec<Finding> = by_process.values().map(|peers| finding(run, peers)).collect();
    if findings.is_empty() {
        let refused = run.attributed.connections.iter().map(|peer| peer.refused).max();
        return Verdict::Clear(format!(
            "{} refused by one peer at most, or a thread slept between them",
            say::several(refused.unwrap_or(0), "connection")
        ));
    }
    Verdict::Fires(findings)
}

/// Clients of a machine's servers that wait, where nobody was answered.
fn waiting(run: &Run<'_>) -> u64 {
    let Some(requests) = run.attributed.requests.as_ref().filter(|_| !run.machine) else {
        return 0;
    };
    match requests.count {
        0 => requests
            .open
            .saturating_add(requests.resting)
            .max(run.attributed.unanswered.clients),
        _ => 0,
    }
}

/// Addresses that refuse from which a service lacks more than one that it may do without.
const MIN_MISSING: usize = 2;

/// Clients of this machine that are connected, where several others are missing and nobody was answered: what they have asked before anybody
/// looked is not known.
fn connected(run: &Run<'_>, peers: &[&Connections]) -> u64 {
    let requests = run.attributed.requests.as_ref().filter(|_| !run.machine);
    let nobody = requests.is_some_and(|requests| requests.count == 0);
    let clients: BTreeSet<u32> = run.facts.other_clients.iter().map(|one| one.pid).collect();
    match nobody && peers.len() >= MIN_MISSING {
        true => clients.len() as u64,
        false => 0,
    }
}

/// `127.0.0.1:22382, 127.0.0.1:22384 and 2 others`.
fn addresses(peers: &[&Connections]) -> String {
    let mut names: Vec<String> = peers
        .iter()
        .take(MAX_NAMED)
        .map(|peer| peer.peer.clone())
        .collect();
    match peers.len().saturating_sub(MAX_NAMED) {
        0 => {}
        1 => names.push("1 other address".to_owned()),
        more => names.push(format!("{more} other addresses")),
    }
    match names.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        names => names.concat(),
    }
}

/// The longest wait of the process, by which views find it.
fn longest<'a>(run: &Run<'a>, name: &ThreadName) -> Option<&'a AttributedWait> {
    let own = |wait: &&AttributedWait| wait.asker.name.pid == name.pid;
    run.attributed.waits.iter().filter(own).max_by_key(|wait| wait.ns)
}

fn finding(run: &Run<'_>, peers: &[&Connections]) -> Finding {
    let by = &peers[0].by;
    let who = match say::script(run, by.pid) {
        Some(script) => format!("{script} (pid {})", by.pid),
        None => say::who_with_pid(by),
    };
    let refused: u64 = peers.iter().map(|peer| peer.refused).fold(0, u64::saturating_add);
    let clients = waiting(run);
    let connected = match clients {
        0 => connected(run, peers),
        _ => 0,
    };
    let and = match (clients, connected) {
        (0, 0) => String::new(),
        (0, connected) => format!(
            "; {} connected, and none was answered meanwhile",
            match connected {
                1 => "1 client is".to_owned(),
                many => format!("{many} clients are"),
            }
        ),
        (1, _) => "; 1 client of it has had no answer meanwhile".to_owned(),
        (many, _) => format!("; {many} clients of it have had no answer meanwhile"),
    };
    // Whose requests those are is not noted; who stands meanwhile is what a person looks for.
    let stand = tasks::who_stand(run, by.pid).map_or_else(String::new, |text| format!("; {text}"));
    let watched: Ns = run.attributed.wall;
    let title = format!(
        "{who} asks {} for a connection again and again, and no process listens there: {} in {}{and}{stand}",
        addresses(peers),
        say::several(refused, "refusal"),
        duration(watched)
    );
    let each: Vec<String> = peers
        .iter()
        .map(|peer| format!("{} refused {}", peer.peer, say::several(peer.refused, "time")))
        .collect();
    let cause = longest(run, by).map_or(Cause::NetConnect, |wait| wait.cause);
    let evidence = Evidence::new(each.join(", "), "the result of each connection request");
    let rule = RULE.id.id();
    let finding = match clients + connected {
        0 => Finding::without_duration(rule, Severity::Note, title, cause, evidence),
        _ => {
            let ns = watched.min(run.attributed.elapsed);
            Finding::new(rule, Severity::Warning, title, cause, ns, evidence)
        }
    };
    let answered = run.attributed.requests.as_ref().filter(|_| !run.machine);
    let finding = finding.and_if(answered.map(|requests| {
        let text = format!(
            "meanwhile {} of clients were answered",
            say::several(requests.count, "request")
        );
        Evidence::new(text, "requests on accepted connections")
    }));
    let port = peers[0].peer.rsplit(':').next().unwrap_or_default().to_owned();
    let asker = longest(run, by).map_or_else(
        || Asker {
            name: by.clone(),
            ..Asker::default()
        },
        |wait| wait.asker.clone(),
    );
    finding
        .about(Resource::named(ResourceKind::Socket, &peers[0].peer), asker)
        .proved_if(true)
        .remedy(
            Remedy::safe("start what should listen there, or find out why it ended or listens at another address")
                .with_command(format!("ss -ltnp sport = :{port}")),
        )
        .remedy(Remedy::safe(
            "if several members of a cluster are missing, bring back one: the others need a majority to answer",
        ))
        .remedy(Remedy::pointless(
            "a longer time limit: the refusal comes at once",
        ))
}
