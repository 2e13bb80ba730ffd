//! Who has the lock that sessions of a database wait for, as the server's own memory tells it.
//!
//! In: waits of sessions, and what was read of their server. Out: the lock, the sessions at the ends of the chains, with their clients and what
//! those do, in words, and what to do about them. What was read is of one instant: it is reported of waits that lasted.

use super::live_sessions::{client, go_on};
use super::{Run, Waits, duration, root, say};
use holdup_attribution::attribution::chosen_frame;
use holdup_evidence::facts::{LockKind, LockSession, LockWait, SessionState};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{AttributedWait, DatabaseServer, Holder, HowKnown};
use holdup_model::finding::{Evidence, Remedy};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Waits from which the one in the way is reported, nanoseconds: at one look at many short ones anybody may be.
const LASTING_NS: Ns = 1_000_000_000;

/// Sessions that are reported one by one.
const MAX_NAMED: usize = 3;

/// What sets a lock free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Released {
    /// The end of a transaction.
    Transaction,
    /// The same, of a lock on a definition.
    Definition,
    /// Whoever ends a prepared transaction, which belongs to no session.
    Prepared,
    /// The program that took it by a name or number: no transaction ends it.
    Program,
}

/// What is known of the lock.
#[derive(Debug)]
pub(super) struct Ends<'a> {
    server: DatabaseServer,
    /// What most of them wait for.
    lock: &'a LockWait,
    /// Sessions that wait for none, with the number of those behind them, most first.
    ends: Vec<(&'a LockSession, usize)>,
    /// Sessions that wait, and that others wait for.
    between: Vec<&'a LockSession>,
    /// The client of the first of the ends, as a person calls it.
    client: Option<String>,
    /// What that one does, or the session itself.
    doing: String,
    /// Whether that client has sent its next statement, and waits for the answer, while its session has nothing to do: nobody reads it.
    unserved: bool,
}

/// What is known of these waits; `None` where the memory of their server did not tell it, or nobody waited for long.
pub(super) fn of<'a>(run: &Run<'a>, waits: &Waits<'a>) -> Option<Ends<'a>> {
    let server = waits.main().resource.detail.database_lock?;
    let lasting: BTreeSet<(u32, u32)> = waits
        .iter()
        .filter(|wait| lasts(wait))
        .map(|wait| (wait.asker.name.pid, wait.asker.name.tid))
        .collect();
    let waiting = run.facts.lock_sessions.iter();
    let waiting: Vec<&LockSession> = waiting
        .filter(|one| one.waits.is_some() && lasting.contains(&(one.pid, one.tid)))
        .collect();
    behind(run, server, &waiting, |first| doing(run, waits, first))
}

/// What these sessions wait for, and who has it; `doing`: what the one who has it does meanwhile.
pub(super) fn behind<'a>(
    run: &Run<'a>,
    server: DatabaseServer,
    waiting: &[&'a LockSession],
    doing: impl FnOnce(&LockSession) -> String,
) -> Option<Ends<'a>> {
    let (lock, found) = chains(run, waiting)?;
    let (first, _) = *found.ends.first()?;
    Some(Ends {
        server,
        lock,
        client: named_client(run, first),
        doing: doing(first),
        unserved: unserved(run, first),
        ends: found.ends,
        between: found.between,
    })
}

/// Where chains of sessions lead.
struct Chains<'a> {
    ends: Vec<(&'a LockSession, usize)>,
    between: Vec<&'a LockSession>,
}

/// What most of these sessions wait for, and who is at the ends of their chains. `None` where no end is known.
fn chains<'a>(run: &Run<'a>, waiting: &[&'a LockSession]) -> Option<(&'a LockWait, Chains<'a>)> {
    let all = &run.facts.lock_sessions;
    let by_id: HashMap<(u32, u64), &LockSession> =
        all.iter().map(|one| ((one.server, one.id), one)).collect();
    let mut behind: BTreeMap<(u32, u64), usize> = BTreeMap::new();
    let mut between: BTreeMap<u64, &LockSession> = BTreeMap::new();
    for waiter in waiting {
        let mut met: BTreeSet<u64> = BTreeSet::from([waiter.id]);
        let mut next: Vec<&LockSession> = vec![waiter];
        while let Some(one) = next.pop() {
            let Some(lock) = &one.waits else {
                *behind.entry((one.server, one.id)).or_default() += 1;
                continue;
            };
            if one.id != waiter.id {
                between.insert(one.id, one);
            }
            let others = lock.behind.iter().filter(|id| met.insert(**id));
            next.extend(others.filter_map(|id| by_id.get(&(one.server, *id)).copied()));
        }
    }
    let mut ends: Vec<(&LockSession, usize)> = behind
        .into_iter()
        .filter_map(|(id, count)| Some((*by_id.get(&id)?, count)))
        .collect();
    ends.sort_by_key(|(one, count)| std::cmp::Reverse((*count, one.open_ns)));
    ends.first()?;
    let between = between.into_values().collect();
    Some((most_wanted(waiting)?, Chains { ends, between }))
}

/// Whether threads waited so long for the same thing. MariaDB's look every second whether they were ended meanwhile.
pub(super) fn lasts(wait: &AttributedWait) -> bool {
    let looks = wait.timed_out > 0 && wait.timed_out.saturating_mul(2) >= wait.count;
    wait.max >= LASTING_NS || looks && wait.ns >= LASTING_NS
}

/// The session at the end of the chain that a wait begins, and the kind of lock: what is said once. `None` where that is not known.
pub(super) fn group(run: &Run<'_>, wait: &AttributedWait) -> Option<(u32, u64, LockKind)> {
    let all = &run.facts.lock_sessions;
    let (pid, tid) = (wait.asker.name.pid, wait.asker.name.tid);
    let waiter = all
        .iter()
        .find(|one| (one.pid, one.tid) == (pid, tid) && lasts(wait))?;
    let kind = waiter.waits.as_ref()?.kind;
    let mut at = waiter;
    for _ in 0..all.len() {
        let Some(lock) = &at.waits else {
            return Some((at.server, at.id, kind));
        };
        let first = *lock.behind.first()?;
        at = all
            .iter()
            .find(|one| one.server == at.server && one.id == first)?;
    }
    None
}

/// What most of these wait for.
fn most_wanted<'a>(waiting: &[&'a LockSession]) -> Option<&'a LockWait> {
    let mut counts: Vec<(&LockWait, usize)> = Vec::new();
    for lock in waiting.iter().filter_map(|one| one.waits.as_ref()) {
        let same = |(other, _): &&mut (&LockWait, usize)| other.kind == lock.kind && other.name == lock.name;
        match counts.iter_mut().find(same) {
            Some((_, count)) => *count += 1,
            None => counts.push((lock, 1)),
        }
    }
    let mut most: Option<(&LockWait, usize)> = None;
    for (lock, count) in counts {
        if most.is_none_or(|(_, other)| count > other) {
            most = Some((lock, count));
        }
    }
    most.map(|(lock, _)| lock)
}

/// Whether the client of an idle session waits for its server all the same: its statement lies there unread.
fn unserved(run: &Run<'_>, session: &LockSession) -> bool {
    let idle = matches!(
        session.state,
        Some(SessionState::Idle | SessionState::IdleInTransaction)
    );
    let Some(client) = session
        .client
        .as_ref()
        .filter(|client| idle && client.address.is_some())
    else {
        return false;
    };
    let asks = |wait: &AttributedWait| {
        // A client may have several connections, and wait on another one behind its own lock.
        let there = wait.resource.detail.local == client.address;
        let lasts = wait.open && wait.max.min(wait.ns) >= LASTING_NS;
        Some(wait.asker.name.pid) == client.pid && wait.cause == Cause::NetReceive && lasts && there
    };
    run.attributed.waits.iter().any(asks)
}

/// A client with the script that it interprets.
fn named_client(run: &Run<'_>, session: &LockSession) -> Option<String> {
    let found = session.client.as_ref()?;
    let program = run.facts.programs.iter().find(|one| Some(one.pid) == found.pid);
    match program.filter(|one| one.name.starts_with(found.process.as_str())) {
        Some(program) => Some(format!("{} (pid {})", program.name, program.pid)),
        None => client(found),
    }
}

/// Who was to act, by what attribution followed.
fn to_act<'a>(waits: &Waits<'a>, session: &LockSession) -> Option<&'a Holder> {
    let client = session.client.as_ref().and_then(|client| client.pid);
    let its = |holder: &&Holder| {
        holder.how_known == HowKnown::SessionLock
            && (Some(holder.name.pid) == client || holder.name.tid == session.tid)
    };
    let of = |wait: &'a AttributedWait| wait.holders.iter().filter(its);
    waits.iter().flat_map(of).max_by_key(|holder| holder.ns)
}

/// What the client of that session does, or the session itself; empty where that says nothing.
fn doing(run: &Run<'_>, waits: &Waits<'_>, session: &LockSession) -> String {
    if session.client.as_ref().is_some_and(|client| client.stopped) {
        return ": that client is stopped".to_owned();
    }
    let Some(holder) = to_act(waits, session) else {
        return String::new();
    };
    let place = holder.place.as_ref().or_else(|| chosen_frame(&holder.stack));
    let place = place
        .filter(|place| place.symbol.is_some() && place.line.is_some())
        .map_or_else(String::new, |place| format!(" in {}", say::place(place)));
    let peers = &run.facts.awaited_peers;
    let awaited = |pid: u32| peers.iter().find(|one| one.pid == pid);
    let who = if holder.name.tid == session.tid {
        "that session"
    } else {
        "that client"
    };
    let own = match holder.doing {
        // A server's process sleeps so for whatever it waits for.
        Some(Cause::IpcQueue) if holder.name.tid == session.tid => String::new(),
        None | Some(Cause::Idle | Cause::NetAccept | Cause::PollWait | Cause::Unknown) => String::new(),
        Some(Cause::NetReceive) if awaited(holder.name.pid).is_some() => {
            let peer = awaited(holder.name.pid).map_or("", |one| one.address.as_str());
            format!(": {who} waits for {peer} to answer{place}")
        }
        Some(cause) => format!(": {who} was {}{place}", cause.phrase()),
    };
    // Who stands behind that one in turn.
    let end = root::of(waits).filter(|end| end.pid() != holder.name.pid);
    let beyond = end.map_or_else(String::new, |end| {
        let peer = awaited(end.pid()).map_or_else(String::new, |one| format!(", for {}", one.address));
        match end.stands().strip_prefix(": ") {
            Some(stands) => format!("; {stands}{peer}"),
            None => String::new(),
        }
    });
    match own.is_empty() {
        true => beyond.replacen("; ", ": ", 1),
        false => own + &beyond,
    }
}

impl Ends<'_> {
    /// The lock, in words; `table`: the one table that all waiting statements name. `None` where the stack says as much.
    pub(super) fn thing(&self, table: Option<&str>) -> Option<String> {
        let name = self.lock.name.as_str();
        Some(match (self.lock.kind, name, table) {
            (LockKind::Row, "", Some(table)) => format!("a row of table {table}"),
            (LockKind::Row, "", None) => return None,
            (LockKind::Row, name, _) => format!("a row of table {name}"),
            (LockKind::Table, _, Some(table)) => format!("table {table}"),
            (LockKind::Table, "", None) => return None,
            (LockKind::Table, number, None) => format!("the table with the oid {number}"),
            (LockKind::Definition, name, _) if !name.is_empty() => {
                format!("the metadata lock of table {name}")
            }
            (LockKind::Schema, name, _) if !name.is_empty() => {
                format!("the metadata lock of database {name}")
            }
            (LockKind::Advisory, name, _) => format!("advisory lock {name}"),
            (LockKind::User, name, _) if !name.is_empty() => {
                format!("the user lock {} (GET_LOCK)", say::quoted(name))
            }
            _ => return None,
        })
    }

    /// The same, in general words where the name is not known.
    pub(super) fn thing_or_kind(&self, table: Option<&str>) -> String {
        let kind = match self.lock.kind {
            LockKind::Row => "a row",
            LockKind::Table => "a table",
            LockKind::Definition => "the metadata lock of a table",
            LockKind::Schema => "the metadata lock of a database",
            LockKind::Server => "the lock of the whole server (FLUSH TABLES WITH READ LOCK or BACKUP STAGE)",
            LockKind::Transaction => "the end of a transaction",
            LockKind::Advisory | LockKind::User | LockKind::Other => "a lock",
        };
        self.thing(table).unwrap_or_else(|| kind.to_owned())
    }

    /// Who must act before the lock is free.
    pub(super) fn released_by(&self) -> Released {
        match self.lock.kind {
            _ if self.first().pid == 0 => Released::Prepared,
            LockKind::User | LockKind::Advisory => Released::Program,
            LockKind::Definition => Released::Definition,
            _ => Released::Transaction,
        }
    }

    fn first(&self) -> &LockSession {
        self.ends[0].0
    }

    /// What the server calls a session.
    pub(super) fn word(&self) -> &'static str {
        match self.server {
            DatabaseServer::Mysql => "connection",
            DatabaseServer::Postgresql => "session",
        }
    }

    /// Who has it, and what that one does: for the end of a title.
    pub(super) fn clause(&self) -> String {
        let first = self.first();
        let others = match self.ends.len() - 1 {
            0 => String::new(),
            more => format!(
                " and {} of the server",
                say::several(more as u64, "other session")
            ),
        };
        let has = if self.ends.len() == 1 { "has" } else { "have" };
        if first.pid == 0 {
            return format!(", which a prepared transaction{others} {has} locked: it belongs to no session");
        }
        let of = self
            .client
            .as_ref()
            .map_or_else(String::new, |client| format!(" of {client}"));
        let through = first.pooler.as_ref().and_then(client);
        let of = of + &through.map_or_else(String::new, |pooler| format!(" through {pooler}"));
        let since = first.open_ns.map(duration);
        let server = say::name_or(&first.process, "the server");
        let state = match (first.state, since) {
            (_, since) if self.unserved => {
                let long = since.map_or_else(String::new, |since| format!(" of {since}"));
                format!(", in a transaction{long}: {server} has not read its next statement")
            }
            (Some(SessionState::Idle | SessionState::IdleInTransaction), Some(since)) => {
                format!(", idle in a transaction of {since}")
            }
            (Some(SessionState::Idle), None) => ", idle in no transaction".to_owned(),
            (Some(SessionState::IdleInTransaction), None) => ", idle in a transaction".to_owned(),
            (_, Some(since)) => format!(", in a transaction of {since}"),
            _ => String::new(),
        };
        // Its transaction is not known where only definitions are locked.
        let state = match self.server {
            DatabaseServer::Mysql if first.open_ns.is_none() => state.replace(" in no transaction", ""),
            _ => state,
        };
        format!(
            ", which {} {}{of}{others} {has} locked{state}{}",
            self.word(),
            first.id,
            self.doing
        )
    }

    /// What was read.
    pub(super) fn evidence(&self) -> Evidence {
        let parts: Vec<String> = self
            .ends
            .iter()
            .take(MAX_NAMED)
            .map(|(one, count)| match one.pid {
                0 => format!("a prepared transaction has locked what {count} wait for"),
                _ => format!("{} has locked what {count} wait for", self.session(one)),
            })
            .collect();
        let more = match self.ends.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let between = match self.between.as_slice() {
            [] => String::new(),
            [one] => format!("; {} waits itself, and others wait behind it", self.session(one)),
            many => format!(
                "; {} wait themselves, and others wait behind them",
                say::several(many.len() as u64, "session")
            ),
        };
        Evidence::new(
            format!("the server's table of locks: {}{more}{between}", parts.join("; ")),
            "the server's memory",
        )
    }

    /// `session 7 (worker)`.
    fn session(&self, session: &LockSession) -> String {
        let application = match session.application.as_str() {
            "" => String::new(),
            name => format!(" ({})", say::quoted(name)),
        };
        format!("{} {}{application}", self.word(), session.id)
    }

    /// What to do about the first of them.
    pub(super) fn remedies(&self) -> Vec<Remedy> {
        let first = self.first();
        let mut remedies = Vec::new();
        if first.pid == 0 {
            remedies.push(
                Remedy::safe("find the prepared transaction, and commit it or roll it back (rollback prepared 'GID')")
                    .with_command("psql -c \"select gid, prepared, owner, database from pg_prepared_xacts order by prepared\""),
            );
            return remedies;
        }
        if let Some(found) = &first.client
            && let (Some(pid), Some(who)) = (found.pid, &self.client)
        {
            remedies.push(match found.stopped {
                _ if self.unserved => Remedy::changing(
                    "give the server more threads than sessions that may wait for a lock (thread_pool_max_threads): none is left for the \
                     one that has the lock",
                    "each thread takes memory",
                ),
                true => go_on(who, pid),
                false => Remedy::safe(format!(
                    "find out what {who} does instead of ending its use of the lock"
                ))
                .with_command(format!("holdup attach -p {pid}")),
            });
        }
        if self.lock.kind == LockKind::Advisory && first.open_ns.is_none() {
            remedies.push(Remedy::changing(
                "take such locks for a transaction (pg_advisory_xact_lock), or connect past the pooler: a lock of a session \
                 outlives the client of a pooled connection",
                "the program must do its work within that transaction",
            ));
        }
        let end = format!("end {} {}", self.word(), first.id);
        let command = match self.server {
            DatabaseServer::Mysql => format!("mysql -e \"kill {}\"", first.id),
            DatabaseServer::Postgresql => format!("psql -c \"select pg_terminate_backend({})\"", first.id),
        };
        remedies.push(
            Remedy::changing(
                end,
                "what its transaction has changed is rolled back, and its client gets an error",
            )
            .with_command(command),
        );
        remedies
    }
}
