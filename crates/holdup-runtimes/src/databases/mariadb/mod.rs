//! Sessions of MariaDB and what they wait for: locks of definitions, and of rows in its own storage engine.
//!
//! The server exports the list of its sessions, and small functions that hand out a field of a session: where the field is stands in
//! their code ([`accessors`]). A session's claims on definitions ([`tickets`]) are objects with a table of functions, which is exported as
//! well. A session's transaction of the storage engine leads back to the session; one that waits has, side by side, the lock that it waits
//! for, which leads back to it, and the transaction that has it ([`rows`]).

mod accessors;
mod rows;
#[cfg(test)]
mod tests;
mod tickets;

use super::{MAX_SESSIONS, Walk};
use crate::memory::{Memory, Source};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// Where the server has what is read: addresses of its exported symbols.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Symbols {
    /// `server_threads`, the list of sessions.
    pub sessions: u64,
    /// The tables of functions of `THD` and `MDL_ticket`.
    pub session: u64,
    /// See there.
    pub ticket: u64,
    /// `thd_get_thread_id`.
    pub id: u64,
    /// `thd_mdl_context`.
    pub context: u64,
    /// `thd_get_ha_data`.
    pub engine: u64,
    /// `thd_current_command`.
    pub command: u64,
    /// `thd_is_connected`.
    pub connection: u64,
    /// `MDL_key::m_namespace_to_wait_state_name`.
    pub stages: u64,
}

/// What precedes the functions in such a table, bytes: what the class is.
const BEFORE_FUNCTIONS: u64 = 16;

/// A session: its table of functions, the one before, the one after.
const NEXT_SESSION: u64 = 16;

/// How much of a session is looked through for the number of its thread, bytes: version 10.11 has it within the first 16,500.
const SESSION_BYTES: u64 = 24 * 1024;

/// The command of a session that waits for its client (`COM_SLEEP`).
const NO_COMMAND: u32 = 0;

/// A session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The number that the server gave it.
    pub id: u64,
    /// The number of its thread, as the server sees it; `None` where it is not known.
    pub tid: Option<u32>,
    /// Whether it waits for a statement of its client.
    pub idle: bool,
    /// The descriptor of its connection.
    pub descriptor: Option<u32>,
    /// When its transaction of the storage engine began, microseconds since 1970.
    pub began: Option<u64>,
    /// What it waits for.
    pub waits: Option<Waits>,
}

/// What a session waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// What kind of lock that is.
    pub lock: Lock,
    /// The sessions behind which it stands, by their numbers.
    pub behind: Vec<u64>,
}

/// A lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lock {
    /// Of the storage engine: a row or a gap between rows of this table (`shop/account`), where that is known.
    Row(Option<String>),
    /// Of a definition, or of the server as a whole.
    Definition {
        /// The server's own words for waiting for it.
        stage: String,
        /// Of which database; empty where it is of none.
        database: String,
        /// Of what in it; empty where it is of all.
        name: String,
    },
}

/// The fields of a session that are known, by their places.
#[derive(Debug, Clone, Copy)]
struct Fields {
    id: u64,
    context: u64,
    command: u64,
    connection: Option<u64>,
    engine: Option<accessors::Slots>,
}

/// All sessions of the server of which one waits for a lock, and their threads among `tids`; empty where none does, or where the server is
/// not laid out as expected. `now`: microseconds since 1970.
pub fn sessions<S: Source>(
    memory: &mut Memory<S>,
    symbols: &Symbols,
    tids: &HashSet<u32>,
    now: u64,
) -> Vec<Session> {
    read(memory, symbols, tids, now).unwrap_or_default()
}

fn read<S: Source>(
    memory: &mut Memory<S>,
    symbols: &Symbols,
    tids: &HashSet<u32>,
    now: u64,
) -> Option<Vec<Session>> {
    let fields = Fields {
        id: accessors::loaded(memory, symbols.id)?,
        context: accessors::address_of(memory, symbols.context)?,
        command: accessors::loaded(memory, symbols.command)?,
        connection: accessors::pointer_within(memory, symbols.connection),
        engine: accessors::slots(memory, symbols.engine),
    };
    let all = list(memory, symbols)?;
    let mut waits: HashMap<u64, Waits> = HashMap::new();
    let ids: HashMap<u64, u64> = all
        .iter()
        .filter_map(|at| Some((*at, memory.word(at.checked_add(fields.id)?)?)))
        .collect();
    let definitions = tickets::waits(memory, symbols, fields.context, &all);
    let transactions = fields
        .engine
        .map(|slots| rows::transactions(memory, slots, &all))
        .unwrap_or_default();
    let rows = rows::waits(memory, &transactions);
    for (session, lock, behind) in definitions.into_iter().chain(rows) {
        let behind = behind.iter().filter_map(|one| ids.get(one).copied()).collect();
        waits.insert(session, Waits { lock, behind });
    }
    if waits.is_empty() {
        return None;
    }
    let thread = thread_place(memory, &all, tids);
    let mut found = Vec::new();
    for at in all {
        let Some(id) = ids.get(&at) else { continue };
        let descriptor = fields.connection.and_then(|place| {
            let connection = memory.pointer(at.checked_add(place)?)?;
            memory.int(connection)
        });
        found.push(Session {
            id: *id,
            tid: thread.and_then(|place| memory.int(at + place)),
            idle: memory.int(at.checked_add(fields.command)?)? == NO_COMMAND,
            descriptor,
            began: transactions
                .iter()
                .find(|one| one.session == at)
                .and_then(|one| one.began(memory, now)),
            waits: waits.remove(&at),
        });
    }
    Some(found)
}

/// The sessions of the list; `None` where it is none.
fn list<S: Source>(memory: &mut Memory<S>, symbols: &Symbols) -> Option<Vec<u64>> {
    let functions = symbols.session.checked_add(BEFORE_FUNCTIONS)?;
    let mut found = Vec::new();
    let mut walk = Walk::default();
    let mut at = memory.word(symbols.sessions)?;
    // The end of the list stands within its head.
    let head = symbols.sessions..symbols.sessions.checked_add(64)?;
    while !head.contains(&at) && walk.goes_on(at) && found.len() < MAX_SESSIONS {
        if memory.word(at)? != functions {
            return None;
        }
        found.push(at);
        at = memory.word(at.checked_add(NEXT_SESSION)?)?;
    }
    (!found.is_empty()).then_some(found)
}

/// Where in a session the number of its thread is: the place where each has another one of the server's threads.
fn thread_place<S: Source>(memory: &mut Memory<S>, all: &[u64], tids: &HashSet<u32>) -> Option<u64> {
    let [first, _, ..] = all else { return None };
    let numbers = start_of(memory, *first);
    let places = (0..).step_by(4).zip(numbers.chunks_exact(4));
    let candidates = places.filter_map(|(place, bytes)| {
        let tid = u32::from_le_bytes(bytes.try_into().ok()?);
        tids.contains(&tid).then_some((place, tid))
    });
    candidates
        .filter(|(place, one)| {
            let mut met: HashSet<u32> = HashSet::from([*one]);
            all[1..].iter().all(|at| {
                let tid = at.checked_add(*place).and_then(|at| memory.int(at));
                tid.is_some_and(|tid| tids.contains(&tid) && met.insert(tid))
            })
        })
        .map(|(place, _)| place)
        .next()
}

/// The bytes with which a session begins, as many as are there.
fn start_of<S: Source>(memory: &mut Memory<S>, at: u64) -> Vec<u8> {
    const PIECE: usize = 512;
    let mut found = Vec::new();
    let mut piece = [0; PIECE];
    while (found.len() as u64) < SESSION_BYTES
        && let Some(next) = at.checked_add(found.len() as u64)
        && memory.read(next, &mut piece).is_some()
    {
        found.extend_from_slice(&piece);
    }
    found
}
