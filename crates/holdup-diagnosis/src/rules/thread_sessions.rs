//! Sessions of a database server that has a thread for each, as its memory and its sockets tell of them.
//!
//! In: a server whose sessions wait for a lock. Out: the kind of lock by the server's own words, and the sessions that wait for their clients:
//! one of them may have the lock. Which one does is in the server's memory in a way that each version has its own.

use super::live_sessions::{client, go_on, process};
use super::{Run, say};
use holdup_evidence::facts::SessionClient;
use holdup_knowledge::user_code::mysql;
use holdup_model::finding::{Evidence, Remedy};
use std::collections::BTreeMap;

/// Clients that are named.
const MAX_TOLD: usize = 3;

/// The kind of lock that most waiting threads of a server wait for, in words.
pub(super) fn kind(run: &Run<'_>, pid: u32) -> Option<&'static str> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let of_server = run.facts.thread_sessions.iter().filter(|one| one.pid == pid);
    for stage in of_server.filter_map(|one| one.stage.as_deref()) {
        *counts.entry(stage).or_default() += 1;
    }
    let (stage, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    mysql::by_stage(stage)
}

/// Sessions that wait for their clients.
#[derive(Debug)]
pub(super) struct Waiting<'a>(Vec<&'a SessionClient>);

/// Those of a server; `None` where there are none.
pub(super) fn of<'a>(run: &Run<'a>, pid: u32) -> Option<Waiting<'a>> {
    let of_server = run.facts.thread_sessions.iter().filter(|one| one.pid == pid);
    let mut all: Vec<&SessionClient> = of_server.filter_map(|one| one.client.as_ref()).collect();
    // Who can do nothing about it comes first.
    all.sort_by_key(|one| !one.stopped);
    (!all.is_empty()).then_some(Waiting(all))
}

impl Waiting<'_> {
    fn named(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for name in self.0.iter().filter_map(|one| client(one)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// For the end of a title.
    pub(super) fn clause(&self) -> String {
        let names = self.named();
        let stopped = self.0.first().is_some_and(|one| one.stopped);
        let stopped = if stopped { ", which is stopped" } else { "" };
        match (self.0.len(), names.as_slice()) {
            (1, [one]) => format!(": the only session that waits for its client is that of {one}{stopped}"),
            (many, [one]) => {
                format!(": the {many} sessions that wait for their clients are of {one}{stopped}")
            }
            _ => String::new(),
        }
    }

    /// What was read.
    pub(super) fn evidence(&self) -> Evidence {
        let names = self.named();
        let more = match names.len().saturating_sub(MAX_TOLD) {
            0 => String::new(),
            more => format!(" and {more} more clients"),
        };
        let parts: Vec<String> = names.into_iter().take(MAX_TOLD).collect();
        let text = match parts.is_empty() {
            true => "clients that are no process seen here".to_owned(),
            false => parts.join(", "),
        };
        Evidence::new(
            format!(
                "{} for the next statement of a client, and may have the lock of an open transaction: {text}{more}",
                match self.0.len() {
                    1 => "1 session waits".to_owned(),
                    many => format!("{} wait", say::several(many as u64, "session")),
                }
            ),
            "/proc/PID/task/TID/syscall, /proc/net and /proc/PID/fd",
        )
    }

    /// What to do where one is the only candidate.
    pub(super) fn remedy(&self) -> Option<Remedy> {
        let names = self.named();
        let [_] = names.as_slice() else { return None };
        let first = self.0.first()?;
        let (pid, who) = (first.pid?, process(&first.process, first.pid?));
        Some(match first.stopped {
            true => go_on(&who, pid),
            false => Remedy::safe(format!(
                "look at what {who} does instead of going on with its transaction"
            ))
            .with_command(format!("holdup attach -p {pid}")),
        })
    }
}
