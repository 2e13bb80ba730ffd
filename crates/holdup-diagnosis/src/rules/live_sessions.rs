//! Who may be in the way of a database's session, as the titles of the server's processes tell it.
//!
//! In: processes that wait for a lock of their server. Out: the sessions of the same server that are idle in a transaction, with their
//! clients. Which lock a session holds is in the server's memory: what is said is that it is idle in a transaction, and no more.

use super::{Run, say};
use holdup_evidence::facts::{DatabaseSession, SessionClient, SessionState};
use holdup_model::attributed::{AttributedWait, Common};
use holdup_model::finding::{Evidence, Remedy};

/// The table that the statements of all these sessions name, where it is one.
pub(super) fn table<'a>(run: &Run<'a>, pids: &[u32]) -> Option<&'a str> {
    let all = run.facts.database_sessions.iter();
    let mut known = all.filter(|one| pids.contains(&one.pid) && !one.tables.is_empty());
    let mut common: Vec<&str> = known.next()?.tables.iter().map(String::as_str).collect();
    for session in known {
        common.retain(|table| session.tables.iter().any(|other| other == table));
    }
    match common.as_slice() {
        [one] => Some(one),
        _ => None,
    }
}

/// Who is at the other side of a wait of a session: its client, or a standby server.
#[derive(Debug)]
pub(super) struct OtherSide {
    /// `psql (pid 7)`.
    who: String,
    pid: Option<u32>,
    stopped: bool,
}

/// Who that is, where the stack alone said what kind it is of, and the title's process has the connection.
pub(super) fn other_side(run: &Run<'_>, wait: &AttributedWait) -> Option<OtherSide> {
    let all = &run.facts.database_sessions;
    let own = all.iter().find(|session| session.pid == wait.asker.name.pid)?;
    let to = match wait.resource.common()? {
        Common::SessionsClient => own,
        Common::Standby => {
            let mut standbys = all
                .iter()
                .filter(|one| one.server == own.server && one.state == SessionState::SendsLog);
            // Of several the server alone knows which it waits for.
            let first = standbys.next()?;
            if standbys.next().is_some() {
                return None;
            }
            first
        }
        _ => return None,
    };
    let other = to.client.as_ref()?;
    Some(OtherSide {
        who: client(other)?,
        pid: other.pid,
        stopped: other.stopped,
    })
}

impl OtherSide {
    /// For the end of a title.
    pub(super) fn clause(&self) -> String {
        let stopped = if self.stopped { " is stopped" } else { "" };
        match stopped.is_empty() {
            true => format!(": it is {}", self.who),
            false => format!(": {}{stopped}", self.who),
        }
    }

    /// How that is known.
    pub(super) fn evidence(&self) -> Evidence {
        Evidence::new(
            format!("{} has the other end of that connection", self.who),
            "/proc/net/tcp, /proc/net/unix and /proc/PID/fd",
        )
    }

    /// What to do about it.
    pub(super) fn remedy(&self) -> Option<Remedy> {
        let pid = self.pid?;
        Some(match self.stopped {
            true => go_on(&self.who, pid),
            false => Remedy::safe(format!("find out what {} does instead of reading", self.who))
                .with_command(format!("holdup attach -p {pid}")),
        })
    }
}

/// Sessions that are reported one by one.
const MAX_NAMED: usize = 3;

/// Where titles are.
const TITLES: &str = "/proc/PID/cmdline";

/// Sessions that may be in the way.
#[derive(Debug)]
pub(super) struct InTheWay<'a> {
    /// Idle in a transaction; those first whose clients can do nothing about it.
    idle: Vec<&'a DatabaseSession>,
    /// Stopped themselves while they execute a statement.
    stopped: Vec<&'a DatabaseSession>,
    /// Other sessions of that server that execute statements, and those that wait as well.
    works: usize,
    waits: usize,
}

/// What is known of the server of these processes; `None` where no session of it may be in the way.
pub(super) fn in_the_way<'a>(run: &Run<'a>, waiting: &[u32]) -> Option<InTheWay<'a>> {
    let all = &run.facts.database_sessions;
    let own = all.iter().find(|session| waiting.contains(&session.pid))?;
    let others = || {
        all.iter()
            .filter(|session| session.server == own.server && !waiting.contains(&session.pid))
    };
    let of = |state| others().filter(move |session| session.state == state);
    let stopped: Vec<&DatabaseSession> = of(SessionState::Works)
        .filter(|session| session.stopped)
        .collect();
    let mut idle: Vec<&DatabaseSession> = of(SessionState::IdleInTransaction).collect();
    idle.sort_by_key(|session| !is_stopped(session));
    (!idle.is_empty() || !stopped.is_empty()).then(|| InTheWay {
        idle,
        works: of(SessionState::Works).count() - stopped.len(),
        stopped,
        waits: of(SessionState::Waiting).count(),
    })
}

/// The same of a session that is in the way itself, if its title says that it waits for a lock.
pub(super) fn behind<'a>(run: &Run<'a>, pid: u32) -> Option<InTheWay<'a>> {
    let all = &run.facts.database_sessions;
    let waits = |one: &&DatabaseSession| one.pid == pid && one.state == SessionState::Waiting;
    all.iter().find(waits)?;
    in_the_way(run, &[pid])
}

/// Whether nothing comes from its client, or to it.
fn is_stopped(session: &DatabaseSession) -> bool {
    session.stopped || session.client.as_ref().is_some_and(|client| client.stopped)
}

/// A process and its id.
pub(super) fn process(name: &str, pid: u32) -> String {
    format!("{} (pid {pid})", say::name_or(name, "a process"))
}

fn session(session: &DatabaseSession) -> String {
    process(&session.process, session.pid)
}

/// A client: `psql (pid 7)`, `a client at 10.0.0.9:4711`.
pub(super) fn client(client: &SessionClient) -> Option<String> {
    match (client.pid, client.address) {
        (Some(pid), _) => Some(process(&client.process, pid)),
        (None, Some(address)) => Some(format!("a client at {address}")),
        (None, None) => None,
    }
}

/// `psql (pid 7), which is stopped`, after a preposition; empty where nothing is known.
fn of_client(session: &DatabaseSession) -> String {
    let Some(who) = session.client.as_ref().and_then(client) else {
        return String::new();
    };
    let stopped = session.client.as_ref().is_some_and(|client| client.stopped);
    let stopped = if stopped { ", which is stopped" } else { "" };
    format!(" of {who}{stopped}")
}

impl InTheWay<'_> {
    /// For the end of a title.
    pub(super) fn clause(&self) -> String {
        match (self.idle.as_slice(), self.stopped.as_slice()) {
            ([], []) => String::new(),
            ([], [first, ..]) => format!(
                ", and {}, a session of the same server, is stopped",
                session(first)
            ),
            ([only], _) => {
                let stopped = if only.stopped { ", and is stopped" } else { "" };
                format!(
                    ", and {} is idle in a transaction{}{stopped}",
                    session(only),
                    of_client(only)
                )
            }
            ([first, ..], _) if is_stopped(first) => format!(
                ", and {} sessions are idle in transactions, among them {}{}",
                self.idle.len(),
                session(first),
                of_client(first)
            ),
            (many, _) => format!(
                ", and {} sessions of the same server are idle in transactions",
                many.len()
            ),
        }
    }

    /// What was read.
    pub(super) fn evidence(&self) -> Evidence {
        let parts: Vec<String> = self
            .idle
            .iter()
            .take(MAX_NAMED)
            .map(|one| format!("{}{}", session(one), of_client(one)))
            .collect();
        let more = match self.idle.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let idle = match parts.is_empty() {
            true => "no session of the same server is idle in a transaction".to_owned(),
            false => format!("idle in a transaction: {}{more}", parts.join(", ")),
        };
        let beside = format!(
            "; of the other sessions of that server {} execute statements, and {} wait for locks as well",
            self.works, self.waits
        );
        Evidence::new(
            format!("titles of the server's processes: {idle}{beside}"),
            TITLES,
        )
    }

    /// What to do about the one that is most likely in the way; the server says whether it is.
    pub(super) fn remedies(&self) -> Vec<Remedy> {
        let mut remedies = Vec::new();
        if let Some(first) = self.stopped.first().filter(|_| self.idle.is_empty()) {
            remedies.push(go_on(&session(first), first.pid));
            return remedies;
        }
        let Some(first) = self.idle.first() else {
            return remedies;
        };
        if first.stopped {
            remedies.push(go_on(&session(first), first.pid));
        }
        if let Some(found) = &first.client
            && let Some(pid) = found.pid
        {
            let who = process(&found.process, pid);
            remedies.push(match found.stopped {
                true => go_on(&who, pid),
                false => Remedy::safe(format!(
                    "make {who} commit or roll back: look at what it does instead"
                ))
                .with_command(format!("holdup attach -p {pid}")),
            });
        }
        if self.idle.len() == 1 {
            let pid = first.pid;
            remedies.push(
                Remedy::changing(
                    format!("end the session of {}", session(first)),
                    "what its transaction has changed is rolled back, and its client gets an error",
                )
                .with_command(format!("psql -c \"select pg_terminate_backend({pid})\"")),
            );
        }
        remedies
    }
}

/// What to do about a process that is stopped.
pub(super) fn go_on(who: &str, pid: u32) -> Remedy {
    Remedy::changing(
        format!("find out why {who} is stopped, and continue it"),
        "it may have been stopped for a reason",
    )
    .with_command(format!("kill -CONT {pid}"))
}
