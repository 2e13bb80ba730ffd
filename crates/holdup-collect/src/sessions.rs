//! Sessions of the database servers of which a process is watched, and who their clients are.
//!
//! In: processes that are watched. Out: what the titles of their server's processes say, and who has the other ends of connections. What
//! a session has locked is in the server's own memory; that it is idle in a transaction, and whose, is all that can be known from outside.
//! Titles are read by a child that can be abandoned ([`super::behind`]).

use super::behind::Readers;
use super::moment::Moment;
use holdup_evidence::facts::{DatabaseSession, SessionClient, SessionState};
use holdup_knowledge::postgres_titles;
use holdup_knowledge::sql::Outline;
use holdup_proc::descriptors::Open;
use holdup_proc::sampling::sockets::unix_peers;
use holdup_proc::{Root, names, tasks, titles};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;

/// Processes among which servers are looked for.
const WATCHED_MAX: usize = 4096;

/// Servers, and sessions of each, whose titles are read.
const SERVERS_MAX: usize = 8;
const SESSIONS_MAX: usize = 512;

/// The letter of a stopped process's state.
pub(super) const STOPPED: char = 'T';

/// What is known so far.
#[derive(Debug)]
pub(super) struct Sessions {
    titles: Readers<u32, Option<String>>,
    known: Vec<DatabaseSession>,
}

impl Default for Sessions {
    fn default() -> Sessions {
        Sessions {
            titles: Readers::new(|| Box::new(|pid| titles::read(&Root::system(), pid))),
            known: Vec::new(),
        }
    }
}

impl Sessions {
    /// Looks at the servers of these processes. A look at which a session waited for another is kept until there is a later one.
    pub(super) fn look<'a>(&mut self, watched: impl Iterator<Item = &'a u32>) {
        let root = Root::system();
        let is_server =
            |pid: u32| names::comm(&root, pid).is_some_and(|name| postgres_titles::is_server(&name));
        let processes = watched.take(WATCHED_MAX).copied().filter(|pid| is_server(*pid));
        let servers: BTreeSet<u32> = processes
            .map(|pid| {
                names::parent(&root, pid)
                    .filter(|parent| is_server(*parent))
                    .unwrap_or(pid)
            })
            .collect();
        let mut found = Vec::new();
        for server in servers.into_iter().take(SERVERS_MAX) {
            let children = tasks::children(&root, server).into_iter().take(SESSIONS_MAX);
            found.extend(children.filter_map(|pid| self.session(&root, server, pid)));
        }
        if found.is_empty() {
            return;
        }
        find_clients(&mut found);
        let waits =
            |sessions: &[DatabaseSession]| sessions.iter().any(|one| one.state == SessionState::Waiting);
        if waits(&found) || !waits(&self.known) {
            self.known = found;
        }
    }

    /// Sessions that waited for a lock.
    pub(super) fn waiting(&self) -> Vec<u32> {
        let waits = self.known.iter().filter(|one| one.state == SessionState::Waiting);
        waits.map(|one| one.pid).collect()
    }

    /// Servers of which a session waited for a lock.
    pub(super) fn servers_with_waiting(&self) -> BTreeSet<u32> {
        let waits = self.known.iter().filter(|one| one.state == SessionState::Waiting);
        waits.map(|one| one.server).collect()
    }

    /// What the title of a session says that it does.
    pub(super) fn state(&self, pid: u32) -> Option<SessionState> {
        let session = self.known.iter().find(|one| one.pid == pid)?;
        Some(session.state)
    }

    /// What the statement of a session is about.
    pub(super) fn executes(&mut self, pid: u32, about: Outline) {
        if let Some(session) = self.known.iter_mut().find(|one| one.pid == pid) {
            (session.command, session.tables) = (about.command, about.tables);
        }
    }

    /// What was found out.
    pub(super) fn finish(self) -> Vec<DatabaseSession> {
        self.known
    }

    fn session(&mut self, root: &Root, server: u32, pid: u32) -> Option<DatabaseSession> {
        let process = names::comm(root, pid)?;
        let title = self.titles.ask(pid, pid).flatten()?;
        let state = postgres_titles::state(&title)?;
        (state != SessionState::Background).then(|| DatabaseSession {
            pid,
            process,
            server,
            state,
            stopped: is_stopped(root, pid),
            client: None,
            command: String::new(),
            tables: Vec::new(),
        })
    }
}

fn is_stopped(root: &Root, pid: u32) -> bool {
    names::state(root, pid) == Some(STOPPED)
}

/// Whether it matters who is at the other end of a session's connection: somebody may wait for that one.
fn is_awaited(session: &DatabaseSession) -> bool {
    !matches!(session.state, SessionState::Idle | SessionState::Background)
}

/// Finds who is at the other ends.
fn find_clients(sessions: &mut [DatabaseSession]) {
    let awaited: Vec<u32> = sessions
        .iter()
        .filter(|one| is_awaited(one))
        .map(|one| one.pid)
        .collect();
    let mut found = clients(&awaited);
    for session in sessions {
        session.client = found.remove(&session.pid);
    }
}

/// Who is at the other ends of the connections of these processes, each of which serves one session.
#[must_use]
pub fn clients(pids: &[u32]) -> HashMap<u32, SessionClient> {
    let mut moment = Moment::now();
    let own_namespace = moment.namespace(std::process::id());
    let mut wanted: Vec<(u32, Option<SocketAddr>, Option<u64>)> = Vec::new();
    for pid in pids.iter().copied() {
        let Some(ends) = moment.ends(pid) else {
            continue;
        };
        let sockets = moment.sockets(pid);
        let tcp = sockets
            .tcp
            .iter()
            .find(|one| !one.listens && one.peer.port() != 0 && ends.sockets.contains(&one.inode));
        if let Some(tcp) = tcp {
            wanted.push((pid, Some(tcp.peer), sockets.other_end(tcp.local, tcp.peer)));
            continue;
        }
        // The kernel lists the ends of Unix sockets for the namespace of whoever asks.
        if moment.namespace(pid) == own_namespace {
            let unix = sockets.unix.iter().filter(|(_, one)| !one.listens);
            let accepted = unix
                .map(|(inode, _)| *inode)
                .find(|inode| ends.sockets.contains(inode));
            if let Some(peer) = accepted.and_then(unix_peers::of) {
                wanted.push((pid, None, Some(peer)));
            }
        }
    }
    let opens: HashSet<Open> = wanted
        .iter()
        .filter_map(|(_, _, inode)| Some(Open::Socket((*inode)?)))
        .collect();
    let holders = match opens.is_empty() {
        true => HashMap::default(),
        false => moment.holders(&opens),
    };
    let client = |(session, address, inode): (u32, Option<SocketAddr>, Option<u64>)| {
        let holders = inode.and_then(|inode| holders.get(&Open::Socket(inode)));
        let pid = holders.and_then(|pids| pids.iter().copied().find(|pid| *pid != session));
        (session, client(&moment.root, address, pid))
    };
    wanted.into_iter().map(client).collect()
}

/// Who that is.
pub(super) fn client(root: &Root, address: Option<SocketAddr>, pid: Option<u32>) -> SessionClient {
    SessionClient {
        address,
        pid,
        process: pid.and_then(|pid| names::comm(root, pid)).unwrap_or_default(),
        stopped: pid.is_some_and(|pid| is_stopped(root, pid)),
    }
}
