//! What a child reads of a database server's memory.
//!
//! In: a question, with addresses of symbols. Out: who waits for whom.

use crate::database_memory;
use holdup_jvm::{Memory, Running};
use holdup_proc::{Root, maps};
use holdup_runtimes::databases::mariadb::{self, Symbols};
use holdup_runtimes::databases::pgbouncer;
use holdup_runtimes::databases::postgres::{self, Process};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// The longest name that a client gave itself, bytes: the server cuts it to 63.
const APPLICATION_BYTES: usize = 64;

/// What is asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Question {
    Postgres(OfPostgres),
    Mariadb(OfMariadb),
    Pooler(OfPooler),
    /// What a thread of a process sleeps in.
    Thread(u32, u32),
}

/// Of a server of PostgreSQL.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct OfPostgres {
    /// Its processes, and what they call themselves.
    pub(super) pids: Vec<(u32, u32)>,
    /// Whether these are all.
    pub(super) all: bool,
    /// Where each has the address of its entry.
    pub(super) entry: u64,
    /// The table of kinds of locks.
    pub(super) kinds: u64,
    /// Where each has the address of its status.
    pub(super) status: Option<u64>,
    /// Where each has the name that its client gave itself.
    pub(super) application: Option<u64>,
    /// Microseconds since 1970.
    pub(super) now: u64,
}

/// Of a server of MariaDB.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct OfMariadb {
    pub(super) pid: u32,
    pub(super) symbols: Symbols,
    /// Its threads, as it numbers them itself.
    pub(super) tids: Vec<u32>,
    /// Microseconds since 1970.
    pub(super) now: u64,
}

/// Of PgBouncer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct OfPooler {
    pub(super) pid: u32,
    /// Descriptors of connections that it accepted, and of others.
    pub(super) clients: Vec<u32>,
    /// See there.
    pub(super) servers: Vec<u32>,
}

/// What was read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Read {
    Postgres(Postgres),
    Mariadb(Vec<mariadb::Session>),
    /// Descriptors of servers, with those of the clients that have them.
    Pooler(Vec<(u32, u32)>),
    /// A call on the socket with this inode.
    Sleeps(u64),
}

/// Who waits, and who they are.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Postgres {
    pub(super) waiters: Vec<PostgresWaiter>,
    pub(super) sessions: Vec<PostgresSession>,
}

/// One that waits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PostgresWaiter {
    pub(super) pid: u32,
    pub(super) kind: String,
    pub(super) fields: [u32; 3],
    pub(super) last: u16,
    pub(super) behind: Vec<Option<u32>>,
}

/// One that waits or is waited for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PostgresSession {
    pub(super) pid: u32,
    pub(super) application: String,
    /// For how long its transaction has been open, microseconds.
    pub(super) open_us: Option<u64>,
}

/// What a child does with a question; `None` where nobody waits.
pub(super) fn answer(question: &Question) -> Option<Read> {
    match question {
        Question::Postgres(of) => of_postgres(of).map(Read::Postgres),
        Question::Mariadb(of) => {
            let tids: HashSet<u32> = of.tids.iter().copied().collect();
            let mut memory = Memory::new(Running(of.pid));
            let found = mariadb::sessions(&mut memory, &of.symbols, &tids, of.now);
            (!found.is_empty()).then_some(Read::Mariadb(found))
        }
        Question::Thread(pid, tid) => {
            let question = database_memory::Question::Thread {
                pid: *pid,
                tid: *tid,
                stages: None,
            };
            match database_memory::answer(question)? {
                database_memory::Answer::Socket(inode) => Some(Read::Sleeps(inode)),
                database_memory::Answer::Text(_) | database_memory::Answer::Stage(_) => None,
            }
        }
        Question::Pooler(of) => of_pooler(of).map(Read::Pooler),
    }
}

fn of_pooler(of: &OfPooler) -> Option<Vec<(u32, u32)>> {
    let heap = maps::heap(&Root::system(), of.pid)?;
    let (clients, servers) = (
        of.clients.iter().copied().collect(),
        of.servers.iter().copied().collect(),
    );
    let links = pgbouncer::links(&mut Memory::new(Running(of.pid)), heap, &clients, &servers);
    Some(links.into_iter().collect())
}

fn of_postgres(of: &OfPostgres) -> Option<Postgres> {
    let entry = |pid: u32| Memory::new(Running(pid)).pointer(of.entry);
    let processes: Vec<Process> = of
        .pids
        .iter()
        .filter_map(|(pid, _)| {
            let entry = entry(*pid)?;
            Some(Process { pid: *pid, entry })
        })
        .collect();
    let first = processes.first()?;
    let mut memory = Memory::new(Running(first.pid));
    let waiters = postgres::waiters(&mut memory, &processes, of.kinds, of.all);
    if waiters.is_empty() {
        return None;
    }
    let mut known: HashSet<u32> = HashSet::new();
    for waiter in &waiters {
        known.insert(waiter.pid);
        known.extend(waiter.behind.iter().flatten());
    }
    let named = of.pids.iter().filter(|(pid, _)| known.contains(pid));
    let sessions = named.map(|(pid, inside)| session(of, *pid, *inside)).collect();
    let waiters = waiters.into_iter().map(|one| PostgresWaiter {
        pid: one.pid,
        kind: one.lock.kind,
        fields: one.lock.fields,
        last: one.lock.last,
        behind: one.behind,
    });
    Some(Postgres {
        waiters: waiters.collect(),
        sessions,
    })
}

fn session(of: &OfPostgres, pid: u32, inside: u32) -> PostgresSession {
    let mut memory = Memory::new(Running(pid));
    let application = of.application.and_then(|at| {
        let text = memory.pointer(at)?;
        memory.c_text(text, APPLICATION_BYTES)
    });
    let open_us = of.status.and_then(|at| {
        let status = memory.pointer(at)?;
        postgres::transaction(&mut memory, status, inside, of.now)
    });
    PostgresSession {
        pid,
        application: application.unwrap_or_default(),
        open_us,
    }
}
