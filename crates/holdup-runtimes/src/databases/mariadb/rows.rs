//! Locks of rows of MariaDB's own storage engine (InnoDB).
//!
//! A session's transaction leads back to the session. One that waits has the lock that it waits for, which begins with the transaction
//! itself, and behind that the transaction that has it. Nothing else of a transaction looks like that pair.

use super::Lock;
use super::accessors::Slots;
use crate::memory::{Memory, Source};
use std::collections::{HashMap, HashSet};

/// Storage engines.
const MAX_ENGINES: u64 = 48;

/// How much of a transaction is looked through, bytes: version 10.11 has its session at 2,256.
const TRANSACTION_BYTES: u64 = 4096;

/// The pair is looked for in so much of it, bytes: version 10.11 has it at 128.
const PAIR_BYTES: u64 = 1024;

/// Before the session, so far back at most, is when it began, bytes.
const BEGAN_BYTES: u64 = 64;

/// A transaction that began longer ago is none, microseconds: ten years.
const OLDEST: u64 = 10 * 365 * 86_400 * 1_000_000;

/// How much of a lock, of an index and of a table is looked through for the name of the table, words.
const LOCK_WORDS: u64 = 12;
const TABLE_WORDS: u64 = 40;

/// The longest name, bytes.
const NAME_BYTES: usize = 200;

/// A transaction of a session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transaction {
    at: u64,
    pub(super) session: u64,
    /// Where it leads back.
    back: u64,
}

impl Transaction {
    /// When it began, microseconds since 1970.
    pub(super) fn began<S: Source>(&self, memory: &mut Memory<S>, now: u64) -> Option<u64> {
        let plausible = now.saturating_sub(OLDEST)..=now;
        let before = (1..=BEGAN_BYTES / 8).filter_map(|words| self.back.checked_sub(8 * words));
        before
            .filter_map(|at| memory.word(at))
            .find(|time| plausible.contains(time))
    }
}

/// The transactions of sessions.
pub(super) fn transactions<S: Source>(
    memory: &mut Memory<S>,
    slots: Slots,
    sessions: &[u64],
) -> Vec<Transaction> {
    let mut found = Vec::new();
    // The engine is the same for all.
    let mut place: Option<(u64, u64)> = None;
    for session in sessions {
        let engines = 0..MAX_ENGINES;
        let one = engines
            .filter(|engine| place.is_none_or(|(known, _)| known == *engine))
            .find_map(|engine| {
                let slot = session
                    .checked_add(slots.first)?
                    .checked_add(slots.step * engine)?;
                let at = memory.pointer(slot)?;
                let back = match place {
                    Some((_, back)) => back,
                    None => (0..TRANSACTION_BYTES)
                        .step_by(8)
                        .find(|back| memory.word(at.saturating_add(*back)) == Some(*session))?,
                };
                let back_at = at.checked_add(back)?;
                (memory.word(back_at)? == *session).then_some((engine, back, at))
            });
        if let Some((engine, back, at)) = one {
            place = Some((engine, back));
            found.push(Transaction {
                at,
                session: *session,
                back: at + back,
            });
        }
    }
    found
}

/// Which sessions wait for a row, behind which session.
pub(super) fn waits<S: Source>(
    memory: &mut Memory<S>,
    transactions: &[Transaction],
) -> Vec<(u64, Lock, Vec<u64>)> {
    let by_place: HashMap<u64, u64> = transactions.iter().map(|one| (one.at, one.session)).collect();
    let mut found = Vec::new();
    for one in transactions {
        let pair = (0..PAIR_BYTES).step_by(8).find_map(|place| {
            let lock = memory.pointer(one.at.checked_add(place)?)?;
            let holder = memory.word(one.at.checked_add(place + 8)?)?;
            let session = by_place.get(&holder).filter(|_| holder != one.at)?;
            (!by_place.contains_key(&lock) && memory.word(lock)? == one.at).then_some((lock, *session))
        });
        if let Some((lock, session)) = pair {
            let table = table(memory, lock, one.at, &by_place);
            found.push((one.session, Lock::Row(table), vec![session]));
        }
    }
    found
}

/// The table of a lock: of a row, its index has it; of a table, the lock itself.
fn table<S: Source>(
    memory: &mut Memory<S>,
    lock: u64,
    own: u64,
    transactions: &HashMap<u64, u64>,
) -> Option<String> {
    let mut seen: HashSet<u64> = HashSet::from([0, own, lock]);
    for number in 1..LOCK_WORDS {
        let Some(of_lock) = memory.word(lock.checked_add(8 * number)?) else {
            break;
        };
        // Other locks, of its own or of its list, begin with their transaction, and are of other tables.
        let is_lock = memory
            .word(of_lock)
            .is_none_or(|first| transactions.contains_key(&first));
        if is_lock || transactions.contains_key(&of_lock) || !seen.insert(of_lock) {
            continue;
        }
        if let Some(name) = named(memory, of_lock) {
            return Some(name);
        }
        for number in 0..TABLE_WORDS {
            let within = memory.word(of_lock.checked_add(8 * number)?);
            if let Some(within) = within.filter(|within| seen.insert(*within))
                && let Some(name) = named(memory, within)
            {
                return Some(name);
            }
        }
    }
    None
}

/// The name of a table among the texts that an object leads to.
fn named<S: Source>(memory: &mut Memory<S>, object: u64) -> Option<String> {
    (0..TABLE_WORDS / 2).find_map(|number| {
        let text = memory
            .word(object.checked_add(8 * number)?)
            .filter(|text| *text != 0)?;
        // Most words lead nowhere, and of the others most lead to no text.
        memory.byte(text).filter(u8::is_ascii_graphic)?;
        memory.c_text(text, NAME_BYTES).filter(|text| is_table(text))
    })
}

/// `shop/account`: two names of files.
fn is_table(text: &str) -> bool {
    let part = |part: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_$@#-".contains(&byte);
        !part.is_empty() && part.bytes().all(fits)
    };
    text.split_once('/')
        .is_some_and(|(database, table)| part(database) && part(table))
}
