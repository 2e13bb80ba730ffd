//! Whom an event loop has asked while it keeps clients waiting, in words.
//!
//! In: a loop that sets clients aside, with its connections to servers. Out: the server that owes it answers, and whose requests were not sent.

use super::{Extend, RuleId, Run, Waits, connected, duration, live_sessions, say};
use holdup_evidence::facts::{AskedServer, ConnectedClients, SetAside};
use holdup_model::attributed::{Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity};
use std::collections::BTreeMap;

/// The kernel's notes.
const NOTES: &str = "tcp_info of its connections, when observation ended";

/// Connections to one server from which each of them has one request at a time: who sends several on one connection needs no second.
const MIN_SINGLE: u32 = 2;

/// Nanoseconds in a millisecond.
const NS_IN_MS: u64 = 1_000_000;

/// The server that owes most answers since before observation began.
pub(super) fn unanswered(one: &SetAside) -> Option<&AskedServer> {
    let first = one.servers.first().filter(|server| server.unanswered > 0)?;
    // Somebody without an answer is behind it.
    one.unanswered.is_some_and(|clients| clients > 0).then_some(first)
}

/// Clients without an answer of whom none of the questions on the way can be.
pub(super) fn unsent(one: &SetAside) -> u32 {
    let asking = one
        .servers
        .iter()
        .map(|server| server.asking)
        .fold(0, u32::saturating_add);
    one.unanswered.map_or(0, |clients| clients.saturating_sub(asking))
}

/// `all of its 2 connections to python3 (pid 7) at 127.0.0.1:80 serve curl (pids 8, 9)`; `None` where one of them may have several requests.
pub(super) fn taken(run: &Run<'_>, one: &SetAside) -> Option<String> {
    let server = one.servers.iter().max_by_key(|server| server.connections)?;
    // With one left, its limit of connections is not what keeps them.
    if server.free > 0 {
        return None;
    }
    let names = names(run, one);
    let whose = match one.answers.len() == server.connections as usize && !names.is_empty() {
        true => names.join(", "),
        false => "others".to_owned(),
    };
    (server.connections >= MIN_SINGLE).then(|| {
        format!(
            "all of its {} connections to {} serve {whose}",
            server.connections,
            at(server)
        )
    })
}

/// `python3 (pid 7) at 127.0.0.1:80`.
fn at(server: &AskedServer) -> String {
    match server.pid {
        Some(pid) => format!(
            "{} at {}",
            live_sessions::process(&server.process, pid),
            server.address
        ),
        None => server.address.to_string(),
    }
}

/// The server to which a connection is free while clients wait: no limit of connections keeps those.
pub(super) fn with_free(one: &SetAside) -> Option<&AskedServer> {
    let asked = one.servers.iter().filter(|server| server.asking > 0);
    asked
        .max_by_key(|server| server.free)
        .filter(|server| server.free > 0)
}

/// `1 of its 3 connections to python3 (pid 7) at 127.0.0.1:80 is free`.
pub(super) fn free_words(server: &AskedServer) -> String {
    format!(
        "{} of its {} to {} {} free",
        server.free,
        say::several(server.connections.into(), "connection"),
        at(server),
        if server.free == 1 { "is" } else { "are" }
    )
}

/// What is on the way.
pub(super) fn words(one: &SetAside) -> Option<Evidence> {
    let clients = one.unanswered?;
    let server = |server: &AskedServer| {
        let connections = say::several(server.connections.into(), "connection");
        let verb = if server.connections == 1 { "waits" } else { "wait" };
        format!(
            "{} of {connections} to {} {verb} for the first part of an answer",
            server.asking,
            at(server)
        )
    };
    let servers: Vec<String> = one.servers.iter().map(server).collect();
    (!servers.is_empty()).then(|| {
        let clients = match clients {
            1 => "1 of these clients has had no answer".to_owned(),
            many => format!("{many} of these clients have had no answer"),
        };
        Evidence::new(format!("{clients}; {}", servers.join("; ")), NOTES)
    })
}

/// Which clients it is answering.
pub(super) fn served(run: &Run<'_>, one: &SetAside) -> Option<Evidence> {
    let names = names(run, one);
    (!names.is_empty())
        .then(|| Evidence::new(format!("meanwhile it sent data to {}", names.join(", ")), NOTES))
}

/// The names of those, by process.
fn names(run: &Run<'_>, one: &SetAside) -> Vec<String> {
    let mut by_name: BTreeMap<&str, ConnectedClients> = BTreeMap::new();
    for client in &one.answers {
        let Some(pid) = client.pid else { continue };
        let found = by_name.entry(&client.process).or_default();
        found.process.clone_from(&client.process);
        found.connections += 1;
        if !found.pids.contains(&pid) {
            found.pids.push(pid);
            found.processes += 1;
        }
    }
    by_name
        .values()
        .map(|clients| connected::who(run, clients))
        .collect()
}

/// A loop that is idle and keeps clients waiting, while a server owes it answers since before observation began.
pub(super) fn finding(run: &Run<'_>, one: &SetAside, server: &AskedServer, idle: &Waits<'_>) -> Finding {
    let main = idle.main();
    let who = say::who_with_pid(&main.asker.name);
    let since = duration(server.longest_ms.saturating_mul(NS_IN_MS));
    let title = format!(
        "{} of {who} {} for {} to answer it: {} sent to it {} had no answer for up to {since}",
        say::several(one.clients.into(), "client"),
        if one.clients == 1 { "waits" } else { "wait" },
        at(server),
        say::several(server.unanswered.into(), "request"),
        if server.unanswered == 1 { "has" } else { "have" },
    );
    let aside = Evidence::new(
        format!(
            "{} had a connection that it did not listen to or read from, while it was idle",
            say::several(one.clients.into(), "client"),
        ),
        "/proc/PID/fdinfo and /proc/net/tcp, at the start and end of the observation",
    );
    // Where fewer questions are on the way than clients wait, something else may keep the others.
    let confidence = match server.unanswered >= one.clients {
        true => Confidence::Strong,
        false => Confidence::Suspect,
    };
    let about = Resource::named(ResourceKind::Socket, server.address.to_string());
    let about = about.with(|facts| facts.pid = server.pid);
    let ns = idle.own().min(run.attributed.elapsed);
    let finding = Finding::new(
        RuleId::ClientsSetAside.id(),
        Severity::Warning,
        title,
        main.cause,
        ns,
        aside,
    )
    .about(about, main.asker.clone())
    .and_if(words(one))
    .confidence(confidence);
    let finding = match server.pid {
        Some(pid) => finding.remedy(
            Remedy::safe(format!(
                "find out what {} does instead of answering",
                live_sessions::process(&server.process, pid)
            ))
            .with_command(format!("holdup attach -p {pid}")),
        ),
        None => finding.remedy(Remedy::safe(format!(
            "find out why {} does not answer",
            server.address
        ))),
    };
    finding
        .remedy(Remedy::changing(
            format!(
                "set a shorter time limit for {} in {}, or send it nothing that clients have to wait for",
                server.address,
                say::name_or(&main.asker.name.process, "the program")
            ),
            "requests that take longer fail",
        ))
        .remedy(Remedy::pointless(
            "more workers: each of them would wait for the same server",
        ))
}
