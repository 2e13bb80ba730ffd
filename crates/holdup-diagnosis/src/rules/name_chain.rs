//! A name server of this machine that does not answer, and whom it asks in turn.
//!
//! In: where the answer was awaited, and the name servers that were looked up. Out: in words, who it is, and who is at the end.

use super::live_sessions;
use crate::machine::names::Names;
use holdup_evidence::SystemFacts;
use holdup_evidence::facts::NameServer;
use holdup_model::attributed::{Peer, Resource};
use holdup_model::finding::{Evidence, Remedy};

/// A name server of this machine, and those that it asks in turn.
pub(super) struct Chain<'a>(Vec<&'a NameServer>, Names<'a>);

impl<'a> Chain<'a> {
    /// That of the server which a wait was for; empty where it is not on this machine.
    pub(super) fn of(facts: &'a SystemFacts, resource: &Resource) -> Chain<'a> {
        let mut next = match &resource.detail.peer {
            Some(Peer::Address(address)) => Some(*address),
            _ => None,
        };
        let mut chain: Vec<&NameServer> = Vec::new();
        while let Some(at) = next {
            let known = facts.name_servers.iter().find(|one| one.address == at);
            // Two that ask each other are reported once.
            let Some(server) = known.filter(|one| chain.iter().all(|before| before.address != one.address))
            else {
                break;
            };
            next = server.asks;
            chain.push(server);
        }
        Chain(chain, Names::of(facts))
    }

    /// A server's process, as a person calls it.
    fn process(&self, server: &'a NameServer) -> Option<String> {
        let pid = server.pid?;
        Some(live_sessions::process(
            self.1.program_of(pid, &server.process),
            pid,
        ))
    }

    /// For the end of a title: who it is, and who does not answer it.
    pub(super) fn clause(&self) -> String {
        let Some((first, last)) = self.0.first().zip(self.0.last()) else {
            return String::new();
        };
        let Some(who) = self.process(first) else {
            return match first.unread {
                None => ": nobody listens there".to_owned(),
                Some(_) => String::new(),
            };
        };
        let stopped = |one: &NameServer| if one.stopped { ", which is stopped" } else { "" };
        let Some(asked) = last.asks.or_else(|| (self.0.len() > 1).then_some(last.address)) else {
            return format!(": it is {who}{}", stopped(first));
        };
        let at_end = self.0.iter().skip(1).find(|one| one.address == asked);
        let end = match at_end {
            None => asked.to_string(),
            Some(end) => match (self.process(end), end.unread) {
                (Some(who), _) => format!("{who} at {asked}{}", stopped(end)),
                (None, None) => format!("{asked}, where nobody listens"),
                (None, Some(_)) => asked.to_string(),
            },
        };
        format!(": it is {who}, which waits for an answer of {end}")
    }

    pub(super) fn evidence(&self) -> Option<Evidence> {
        let each = |one: &&NameServer| {
            let who = self
                .process(one)
                .unwrap_or_else(|| "nobody that is seen here".to_owned());
            let unread = match one.unread {
                Some(unread) if unread.0 > 0 => format!(", {} bytes of questions unread", unread.0),
                _ => String::new(),
            };
            format!("{}: {who}{unread}", one.address)
        };
        let all: Vec<String> = self.0.iter().map(each).collect();
        let asks = self.0.last().and_then(|last| last.asks);
        let asks = asks.map_or_else(String::new, |asks| format!(", which asks {asks}"));
        (!all.is_empty()).then(|| {
            Evidence::new(
                format!("{}{asks}", all.join("; ")),
                "/proc/net/udp and /proc/PID/fd",
            )
        })
    }

    /// What to do at its end.
    pub(super) fn remedy(&self) -> Option<Remedy> {
        let last = self.0.last()?;
        if let Some(pid) = last.pid.filter(|_| last.stopped) {
            return Some(live_sessions::go_on(&self.process(last)?, pid));
        }
        match (last.asks, last.pid) {
            (Some(asks), _) => Some(Remedy::safe(format!(
                "repair the server at {asks}, or have {} ask another one",
                self.process(last)?
            ))),
            (None, Some(pid)) => Some(
                Remedy::safe(format!(
                    "find out what {} does instead of answering",
                    self.process(last)?
                ))
                .with_command(format!("holdup attach -p {pid}")),
            ),
            (None, None) => None,
        }
    }
}
