//! What the sessions of a database wait for that serve a client which waits for an answer.
//!
//! In: waits of clients, and what was read of their servers' tables of locks. Out: the same as of the server's own waits, in words.

use super::lock_sessions::{self, Ends};
use super::{Run, Waits, live_sessions, root, say};
use holdup_evidence::facts::LockSession;
use holdup_knowledge::user_code::mysql;
use holdup_model::attributed::{AttributedWait, DatabaseServer, Holder, HowKnown};
use std::net::SocketAddr;

/// Sessions that serve these waits of clients, where they wait for locks themselves.
#[derive(Debug)]
pub(super) struct Served<'a> {
    sessions: Vec<&'a LockSession>,
    /// The table that all their statements name.
    table: Option<&'a str>,
    ends: Ends<'a>,
    /// Whether others stand between the client and them.
    behind: bool,
}

/// The same of waits of clients: what the sessions that serve them wait for. `None` where no session of theirs is known to wait.
pub(super) fn of<'a>(run: &Run<'a>, waits: &Waits<'a>) -> Option<Served<'a>> {
    let lasting: Vec<&AttributedWait> = waits.iter().filter(|wait| lock_sessions::lasts(wait)).collect();
    let waiting = run.facts.lock_sessions.iter().filter(|one| one.waits.is_some());
    let of = |serves: fn(&AttributedWait, &LockSession) -> bool| -> Vec<&LockSession> {
        let serves = |session: &&LockSession| lasting.iter().any(|wait| serves(wait, session));
        waiting.clone().filter(serves).collect()
    };
    let mut sessions = of(is_served_by);
    let behind = sessions.is_empty();
    if behind {
        sessions = of(is_behind);
    }
    let server = match sessions.first()?.process.as_str() {
        name if mysql::is_server(name) => DatabaseServer::Mysql,
        _ => DatabaseServer::Postgresql,
    };
    let ends = lock_sessions::behind(run, server, &sessions, |first| does_meanwhile(waits, first))?;
    let pids: Vec<u32> = sessions.iter().map(|one| one.pid).collect();
    let table = live_sessions::table(run, &pids);
    Some(Served {
        sessions,
        table,
        ends,
        behind,
    })
}

/// Whether a session serves the connection on which somebody waits: its client has it, or the process at its other end is the session.
fn is_served_by(wait: &AttributedWait, session: &LockSession) -> bool {
    let is_process = session.tid == session.pid && session.pid != session.server;
    let named = |holder: &Holder| holder.how_known == HowKnown::SocketPeer && holder.name.pid == session.pid;
    is_of_client(session, wait.asker.name.pid, wait.resource.detail.local)
        || is_process && wait.holders.iter().any(named)
}

/// Whether the chain of a wait comes to a session, of a server that has a process for each.
fn is_behind(wait: &AttributedWait, session: &LockSession) -> bool {
    let is_process = session.tid == session.pid && session.pid != session.server;
    is_process && wait.chain.iter().skip(1).any(|link| link.name.pid == session.pid)
}

/// Whether a session is of this process, and of the connection that has this address there, where that is known.
fn is_of_client(session: &LockSession, pid: u32, own: Option<SocketAddr>) -> bool {
    let client = session.client.as_ref();
    client.is_some_and(|client| client.pid == Some(pid) && (client.address == own || own.is_none()))
}

/// What the client of the one that has the lock did meanwhile, or that one itself, as the chain behind a client's wait tells it.
fn does_meanwhile(waits: &Waits<'_>, session: &LockSession) -> String {
    let client = session.client.as_ref();
    if client.is_some_and(|client| client.stopped) {
        return ": that client is stopped".to_owned();
    }
    let Some(end) = root::of(waits) else {
        return String::new();
    };
    let is_client = client.is_some_and(|client| client.pid == Some(end.pid()));
    let is_server = end.pid() == session.pid || end.pid() == session.server;
    // A server's process sleeps in the same way for whatever it waits for.
    match is_server && !(end.works() && end.pid() != session.server) {
        true => String::new(),
        false if is_client => end.stands(),
        false => end.stands().replacen(": ", "; ", 1),
    }
}

impl<'a> Served<'a> {
    /// What is known of the lock.
    pub(super) fn ends(&self) -> &Ends<'a> {
        &self.ends
    }

    /// What they wait for, and who has it: for the end of a title.
    pub(super) fn clause(&self) -> String {
        let who = match self.sessions.as_slice() {
            [one, ..] if self.behind => format!(
                "at the end of the way {} {} of {} waits",
                self.ends.word(),
                one.id,
                say::name_or(&one.process, "the server")
            ),
            [one] => format!("{} {} waits", self.ends.word(), one.id),
            many => format!("{} there wait", say::several(many.len() as u64, self.ends.word())),
        };
        format!(
            ": {who} for {}{}",
            self.ends.thing_or_kind(self.table),
            self.ends.clause()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::is_of_client;
    use holdup_evidence::facts::{LockSession, SessionClient};
    use std::net::SocketAddr;

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    fn session(pid: u32, at: Option<&str>) -> LockSession {
        LockSession {
            client: Some(SessionClient {
                pid: Some(pid),
                address: at.map(address),
                ..SessionClient::default()
            }),
            ..LockSession::default()
        }
    }

    #[test]
    fn a_session_is_of_the_connection_of_its_client_and_of_no_other() {
        let own = session(7, Some("127.0.0.1:4000"));
        assert!(is_of_client(&own, 7, Some(address("127.0.0.1:4000"))));
        assert!(
            !is_of_client(&own, 7, Some(address("127.0.0.1:4001"))),
            "another connection of it"
        );
        assert!(
            !is_of_client(&own, 8, Some(address("127.0.0.1:4000"))),
            "another process"
        );
        assert!(is_of_client(&own, 7, None), "which connection is not known");
        assert!(is_of_client(&session(7, None), 7, None), "a Unix socket");
        assert!(
            !is_of_client(&LockSession::default(), 7, None),
            "a session of nobody"
        );
    }
}
