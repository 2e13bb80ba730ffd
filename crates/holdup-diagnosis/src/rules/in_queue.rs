//! A client whose connection nobody has accepted: the kernel completed it, so that the client waits for an answer.
//!
//! In: a wait for a server. Out: the listener in whose queue its connection stood, in words.

use super::{Run, connected, limit_settings, say};
use holdup_evidence::facts::{Listener, Taken};
use holdup_model::attributed::{AttributedWait, Peer};
use holdup_model::finding::{Evidence, Finding, Remedy};
use std::net::SocketAddr;

pub(super) fn address(wait: &AttributedWait) -> Option<SocketAddr> {
    match &wait.resource.detail.peer {
        Some(Peer::Address(address)) => Some(*address),
        Some(Peer::Name(_)) => None,
        None => wait.resource.name.parse().ok(),
    }
}

/// The listener that a wait was for, with clients that it has not accepted.
pub(super) fn listener<'a>(run: &Run<'a>, wait: &AttributedWait) -> Option<&'a Listener> {
    let peer = address(wait)?;
    let serves = |own: SocketAddr| own == peer || (own.port() == peer.port() && own.ip().is_unspecified());
    // A listener on all addresses is here; whether the peer's address is, too, only a loopback address tells by itself.
    let here = |own: SocketAddr| own.ip() == peer.ip() || peer.ip().is_loopback();
    let all = run.facts.listeners.iter();
    all.filter(|listener| serves(listener.address) && here(listener.address))
        .max_by_key(|listener| listener.waiting)
        .filter(|listener| listener.waiting > 0)
}

/// The listener.
#[derive(Debug)]
pub(super) struct InQueue<'a>(&'a Listener);

/// Where the connection of this wait stood, when that was looked at last; `address`: of the server.
pub(super) fn of<'a>(run: &Run<'a>, wait: &AttributedWait, address: &str) -> Option<InQueue<'a>> {
    let mut all = run.facts.owed_answers.iter().flatten();
    let pid = wait.asker.name.pid;
    all.find(|one| one.pid == pid && one.server == address && one.taken == Taken::NotAccepted)?;
    listener(run, wait).map(InQueue)
}

impl InQueue<'_> {
    /// For the end of a title.
    pub(super) fn clause(&self, run: &Run<'_>) -> String {
        let whose = connected::most(run, &self.0.clients);
        let whose = whose.map_or_else(String::new, |whose| format!(", and {whose}"));
        let stands = match self.0.waiting {
            1 => "it stands alone in its queue".to_owned(),
            many => format!("it stands in a queue of {many}"),
        };
        format!(": {stands}{whose}")
    }

    /// The same after what keeps the one that is to accept it.
    pub(super) fn beside(&self) -> String {
        match self.0.waiting {
            1 => String::new(),
            many => format!("; it stands in a queue of {many}"),
        }
    }

    /// What was read.
    pub(super) fn evidence(&self) -> Evidence {
        Evidence::new(
            format!(
                "{} in the queue of {}, among them that of this wait",
                say::several(self.0.waiting.into(), "connection"),
                self.0.address
            ),
            "/proc/net/tcp",
        )
    }

    /// Who has the connections that were accepted.
    pub(super) fn clients(&self, run: &Run<'_>) -> Option<Evidence> {
        connected::evidence(run, &self.0.clients)
    }

    /// What to do.
    pub(super) fn with_remedies(&self, finding: Finding) -> Finding {
        let process = self.0.processes.first().map_or("", |one| one.process.as_str());
        let setting = limit_settings::workers(process);
        let setting = setting.map_or_else(String::new, |setting| format!(" ({setting} of {process})"));
        finding
            .remedy(
                Remedy::safe("see what its workers do, and which clients they serve: none of them is free")
                    .with_command(format!(
                        "ss -tnpo state established sport = :{}",
                        self.0.address.port()
                    )),
            )
            .remedy(Remedy::changing(
                format!("give the server more workers{setting}"),
                "each of them takes memory, and asks those behind it",
            ))
            .remedy(Remedy::pointless(
                "a longer queue: clients then wait in it for just as long",
            ))
    }
}
