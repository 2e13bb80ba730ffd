//! Claims on definitions: `MDL_ticket`.
//!
//! A session's part for such locks (`MDL_context`) has lists of its claims, and the one that it waits for. Each claim has, side by side, its
//! strength, its owner's part, and the lock. One that was given is linked into its owner's list: a word of it leads to a word that leads back.

use super::super::{MAX_MEMBERS, MAX_SESSIONS};
use super::{BEFORE_FUNCTIONS, Lock, Symbols};
use crate::memory::{Memory, Source};
use std::collections::{BTreeMap, HashMap, HashSet};

/// How much of a session's part for such locks is looked through, bytes: version 10.11 has some 300.
const CONTEXT_BYTES: u64 = 512;

/// How much of a claim is looked through for its owner, words.
const TICKET_WORDS: u64 = 16;

/// The key of a lock: two lengths, a number, then its text: one byte for the kind, the database, the name.
const KEY_TEXT: u64 = 8;
const KEY_MAX: u64 = 400;

/// The most kinds of locks.
const KINDS: u8 = 16;

/// An entry of the table of stages, and where its text is.
const STAGE_BYTES: u64 = 24;
const STAGE_TEXT: u64 = 8;
const TEXT_BYTES: usize = 64;

/// Kinds whose conflicts are known: locks of the whole server, those of definitions of tables.
const OF_SERVER: u8 = 0;
const OF_TABLES: u8 = 2;

/// Strengths of locks of the whole server below which a claim is of who keeps others from changing data.
const CHANGES_DATA: u32 = 7;

/// Which strengths of locks of definitions conflict, by bits of their numbers: of 10.4 and later, from 0 (intention) to 9 (exclusive).
const CONFLICTS: [u32; 10] = {
    const X: u32 = 1 << 9;
    const NO_READ_WRITE: u32 = 1 << 8;
    const NO_WRITE: u32 = 1 << 7;
    const READ_ONLY: u32 = 1 << 6;
    const UPGRADABLE: u32 = 1 << 5;
    const WRITE: u32 = 1 << 4;
    const READ: u32 = 1 << 3;
    const ALL: u32 = 0x3ff;
    [
        0,
        X,
        X,
        X | NO_READ_WRITE,
        X | NO_READ_WRITE | NO_WRITE | READ_ONLY,
        X | NO_READ_WRITE | NO_WRITE | UPGRADABLE,
        X | NO_READ_WRITE | WRITE,
        X | NO_READ_WRITE | NO_WRITE | UPGRADABLE | WRITE,
        X | NO_READ_WRITE | NO_WRITE | READ_ONLY | UPGRADABLE | WRITE | READ,
        ALL,
    ]
};

/// A claim.
#[derive(Debug, Clone, Copy)]
struct Ticket {
    session: u64,
    strength: u32,
    lock: u64,
    given: bool,
    /// The next one of its owner's list.
    next: u64,
}

/// Which sessions wait for which locks, behind which sessions.
pub(super) fn waits<S: Source>(
    memory: &mut Memory<S>,
    symbols: &Symbols,
    context: u64,
    sessions: &[u64],
) -> Vec<(u64, Lock, Vec<u64>)> {
    let functions = symbols.ticket.wrapping_add(BEFORE_FUNCTIONS);
    let mut by_lock: BTreeMap<u64, Vec<Ticket>> = BTreeMap::new();
    for session in sessions.iter().take(MAX_SESSIONS) {
        for ticket in of(memory, *session, context, functions) {
            by_lock.entry(ticket.lock).or_default().push(ticket);
        }
    }
    let mut keys: HashMap<u64, Option<(u8, Lock)>> = HashMap::new();
    let mut found = Vec::new();
    for (lock, tickets) in &by_lock {
        for waiter in tickets.iter().filter(|one| !one.given) {
            let known = keys
                .entry(*lock)
                .or_insert_with(|| key(memory, *lock, symbols.stages));
            let Some((kind, what)) = known else { continue };
            found.push((waiter.session, what.clone(), behind(*kind, waiter, tickets)));
        }
    }
    found
}

/// Sessions in the way of a claim: those whose claims were given, or where none of these is, those that wait in a strength that keeps
/// others waiting.
fn behind(kind: u8, waiter: &Ticket, tickets: &[Ticket]) -> Vec<u64> {
    let others = |given: bool| {
        let others = tickets.iter().filter(move |one| {
            one.session != waiter.session
                && one.given == given
                && conflicts(kind, waiter.strength, one.strength)
        });
        let sessions: HashSet<u64> = others.map(|one| one.session).collect();
        let mut sessions: Vec<u64> = sessions.into_iter().collect();
        sessions.sort_unstable();
        sessions
    };
    let given = others(true);
    match given.is_empty() {
        // One that waits for all others to go keeps later ones waiting.
        true if kind == OF_TABLES => others(false)
            .into_iter()
            .filter(|session| {
                let own = |one: &&Ticket| one.session == *session && !one.given;
                tickets
                    .iter()
                    .find(own)
                    .is_some_and(|one| one.strength > waiter.strength)
            })
            .collect(),
        _ => given,
    }
}

fn conflicts(kind: u8, one: u32, other: u32) -> bool {
    match kind {
        OF_TABLES => CONFLICTS
            .get(one as usize)
            .is_none_or(|conflicts| other < 32 && conflicts & (1 << other) != 0),
        // Of those who change data none is in the way of another.
        OF_SERVER => one < CHANGES_DATA || other < CHANGES_DATA,
        _ => true,
    }
}

/// The claims of a session.
fn of<S: Source>(memory: &mut Memory<S>, session: u64, context: u64, functions: u64) -> Vec<Ticket> {
    let Some(context) = session.checked_add(context) else {
        return Vec::new();
    };
    let mut met: HashSet<u64> = HashSet::new();
    let mut found = Vec::new();
    for place in (0..CONTEXT_BYTES).step_by(8) {
        let mut at = context
            .checked_add(place)
            .and_then(|place| memory.word(place))
            .unwrap_or(0);
        while at != 0 && found.len() < MAX_MEMBERS && met.insert(at) {
            if memory.word(at) != Some(functions) {
                break;
            }
            let Some(ticket) = ticket(memory, at, session, context) else {
                break;
            };
            found.push(ticket);
            at = if ticket.given { ticket.next } else { 0 };
        }
    }
    found
}

fn ticket<S: Source>(memory: &mut Memory<S>, at: u64, session: u64, context: u64) -> Option<Ticket> {
    let word = |memory: &mut Memory<S>, number: u64| memory.word(at.checked_add(8 * number)?);
    let owner = (3..TICKET_WORDS).find(|number| word(memory, *number) == Some(context))?;
    let linked = (1..owner).find(|number| {
        let back = word(memory, *number).filter(|back| *back != 0);
        back.is_some_and(|back| memory.word(back) == Some(at))
    });
    Some(Ticket {
        session,
        strength: memory.int(at.checked_add(8 * (owner - 1))?)?,
        lock: word(memory, owner + 1)?,
        given: linked.is_some(),
        next: match linked {
            Some(number) if number > 1 => word(memory, number - 1)?,
            _ => 0,
        },
    })
}

/// What a lock is of.
fn key<S: Source>(memory: &mut Memory<S>, lock: u64, stages: u64) -> Option<(u8, Lock)> {
    let length = u64::from(memory.short(lock)?);
    let of_database = u64::from(memory.short(lock.checked_add(2)?)?);
    if !(3..KEY_MAX).contains(&length) || of_database + 3 > length {
        return None;
    }
    let text = lock.checked_add(KEY_TEXT)?;
    let kind = memory.byte(text).filter(|kind| *kind < KINDS)?;
    let zeroes = [text + 1 + of_database, text + length - 1];
    if zeroes.iter().any(|at| memory.byte(*at) != Some(0)) {
        return None;
    }
    let database = memory.c_text(text + 1, KEY_MAX as usize)?;
    let name = memory.c_text(text + 2 + of_database, KEY_MAX as usize)?;
    let stage = memory.pointer(stages.checked_add(STAGE_BYTES * u64::from(kind) + STAGE_TEXT)?)?;
    let stage = memory.c_text(stage, TEXT_BYTES)?;
    Some((
        kind,
        Lock::Definition {
            stage,
            database,
            name,
        },
    ))
}
