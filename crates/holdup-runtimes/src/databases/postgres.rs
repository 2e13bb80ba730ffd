//! PostgreSQL's table of locks.
//!
//! Each process has a pointer to its own entry in the shared array of processes (`MyProc`). The entry of one that sleeps for a lock leads to
//! that lock and to its own claim on it, and the claim leads back to both: that is how the place of the pair in the entry is found, in any
//! version from 9.6 on. The lock has the list of claims, with what each has been given, and the queue of entries. A transaction holds a
//! lock on its own number, so whoever waits for its end waits for a claim as well.

use super::{MAX_SESSIONS, Walk};
use crate::memory::{Memory, Source};
use std::collections::HashMap;

/// How much of a process's entry is looked through for the pair, bytes: it is among the first 200.
const ENTRY_BYTES: u64 = 512;

/// `LOCK`: what it is on (16 bytes), two masks, the list of claims, the queue.
const LOCK_CLAIMS: u64 = 24;
const LOCK_QUEUE: u64 = 40;

/// `PROCLOCK`: its lock, its process, that one's group, what it was given, then its member of the lock's list.
const CLAIM_PROCESS: u64 = 8;
const CLAIM_GROUP: u64 = 16;
const CLAIM_GIVEN: u64 = 24;
const CLAIM_LINK: u64 = 32;

/// A member of a list: the one before, the one after.
const NEXT: u64 = 8;

/// Which strengths conflict with each other, by bits of their numbers; 0 is none.
const CONFLICTS: [u32; 9] = [
    0,
    1 << 8,
    1 << 7 | 1 << 8,
    1 << 5 | 1 << 6 | 1 << 7 | 1 << 8,
    1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8,
    1 << 3 | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 8,
    1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8,
    1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8,
    1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8,
];

/// The longest name of a kind of lock, bytes.
const KIND_BYTES: usize = 32;

/// `PgBackendStatus` since version 10: a count, the process, its kind, and four times (start, transaction, statement, state).
const STATUS_PROCESS: u64 = 4;
const STATUS_TIMES: u64 = 16;

/// Microseconds from 1970 to 2000, from where the server counts.
const SINCE_2000: u64 = 946_684_800_000_000;

/// A process of the server, and its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Where its entry is.
    pub entry: u64,
}

/// What a lock is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// The server's own word for the kind: `relation`, `transactionid`.
    pub kind: String,
    /// What follows the database's number: that of a table, of a transaction.
    pub fields: [u32; 3],
    /// A further one, which of an advisory lock says how its number was given.
    pub last: u16,
}

/// One that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiter {
    /// Its process.
    pub pid: u32,
    /// For what.
    pub lock: Lock,
    /// Processes that have the lock, then those that stand before it in the queue. `None` is a prepared transaction, which has no process.
    pub behind: Vec<Option<u32>>,
}

/// Who waits, by the memory of any of these processes. `kinds` is where the server has its table of kinds of locks. `all`: whether these are
/// all of its processes.
pub fn waiters<S: Source>(
    memory: &mut Memory<S>,
    processes: &[Process],
    kinds: u64,
    all: bool,
) -> Vec<Waiter> {
    let by_entry: HashMap<u64, u32> = processes.iter().map(|one| (one.entry, one.pid)).collect();
    let Some(place) = processes.iter().find_map(|one| place(memory, one.entry)) else {
        return Vec::new();
    };
    let known = Known { by_entry, place, all };
    processes
        .iter()
        .take(MAX_SESSIONS)
        .filter_map(|one| known.waiter(memory, *one, kinds))
        .collect()
}

/// For how long a process's transaction has been open, microseconds; `None` where none is. `now`: since 1970.
pub fn transaction<S: Source>(memory: &mut Memory<S>, status: u64, pid: u32, now: u64) -> Option<u64> {
    if memory.int(status.checked_add(STATUS_PROCESS)?)? != pid {
        return None;
    }
    let mut times = [0; 4];
    for (at, time) in (0..).zip(&mut times) {
        *time = memory.word(status.checked_add(STATUS_TIMES + 8 * at)?)?;
    }
    let now = now.checked_sub(SINCE_2000)?;
    let [started, transaction, ..] = times;
    let plausible = started > 0
        && times
            .iter()
            .all(|time| *time == 0 || (started..=now).contains(time));
    (plausible && transaction > 0).then(|| now - transaction)
}

/// Where in a process's entry the lock and the claim are; `None` of one that waits for no lock.
fn place<S: Source>(memory: &mut Memory<S>, entry: u64) -> Option<u64> {
    (0..ENTRY_BYTES)
        .step_by(8)
        .find(|place| pair(memory, entry, *place).is_some_and(|(lock, claim)| lock != claim))
}

/// The lock and the claim of an entry, if they are such.
fn pair<S: Source>(memory: &mut Memory<S>, entry: u64, place: u64) -> Option<(u64, u64)> {
    let lock = memory.pointer(entry.checked_add(place)?)?;
    let claim = memory.pointer(entry.checked_add(place + 8)?)?;
    let leads_back = memory.word(claim)? == lock && memory.word(claim.checked_add(CLAIM_PROCESS)?)? == entry;
    leads_back.then_some((lock, claim))
}

/// What is known of the server.
struct Known {
    by_entry: HashMap<u64, u32>,
    place: u64,
    all: bool,
}

impl Known {
    fn waiter<S: Source>(&self, memory: &mut Memory<S>, process: Process, kinds: u64) -> Option<Waiter> {
        let (at, claim) = pair(memory, process.entry, self.place)?;
        let wanted = self.strength(memory, process.entry)?;
        let group = memory.word(claim.checked_add(CLAIM_GROUP)?)?;
        let mut behind: Vec<Option<u32>> = Vec::new();
        let mut add = |one: Option<u32>| {
            if one != Some(process.pid) && !behind.contains(&one) {
                behind.push(one);
            }
        };
        self.holders(memory, at, wanted, group, &mut add)?;
        self.before(memory, at, process.entry, wanted, &mut add)?;
        Some(Waiter {
            pid: process.pid,
            lock: lock(memory, at, kinds)?,
            behind,
        })
    }

    /// How strong a lock an entry wants.
    fn strength<S: Source>(&self, memory: &mut Memory<S>, entry: u64) -> Option<u32> {
        let strength = memory.int(entry.checked_add(self.place + 16)?)?;
        (1..CONFLICTS.len() as u32)
            .contains(&strength)
            .then_some(strength)
    }

    /// Those whose claims were given a strength that conflicts.
    fn holders<S: Source>(
        &self,
        memory: &mut Memory<S>,
        lock: u64,
        wanted: u32,
        group: u64,
        add: &mut impl FnMut(Option<u32>),
    ) -> Option<()> {
        let head = lock.checked_add(LOCK_CLAIMS)?;
        let mut walk = Walk::default();
        let mut link = memory.word(head + NEXT)?;
        while link != head && walk.goes_on(link) {
            let claim = link.checked_sub(CLAIM_LINK)?;
            if memory.word(claim)? != lock {
                return None;
            }
            let given = memory.int(claim.checked_add(CLAIM_GIVEN)?)?;
            let conflicts = given & CONFLICTS[wanted as usize] != 0;
            if conflicts && memory.word(claim + CLAIM_GROUP)? != group {
                let entry = memory.word(claim + CLAIM_PROCESS)?;
                match self.by_entry.get(&entry) {
                    Some(pid) => add(Some(*pid)),
                    // An entry of no process is that of a prepared transaction, where all processes are known.
                    None if self.all => add(None),
                    None => {}
                }
            }
            link = memory.word(link.checked_add(NEXT)?)?;
        }
        Some(())
    }

    /// Those that stand before an entry in the queue of a lock, and want it in a conflicting strength.
    fn before<S: Source>(
        &self,
        memory: &mut Memory<S>,
        lock: u64,
        entry: u64,
        wanted: u32,
        add: &mut impl FnMut(Option<u32>),
    ) -> Option<()> {
        let head = lock.checked_add(LOCK_QUEUE)?;
        let mut walk = Walk::default();
        let mut other = memory.word(head + NEXT)?;
        // Entries begin with their members of such lists.
        while other != head && other != entry && walk.goes_on(other) {
            if let Some(pid) = self.by_entry.get(&other)
                && pair(memory, other, self.place).is_some_and(|(its, _)| its == lock)
                && let Some(strength) = self.strength(memory, other)
                && (1 << strength) & CONFLICTS[wanted as usize] != 0
            {
                add(Some(*pid));
            }
            other = memory.word(other.checked_add(NEXT)?)?;
        }
        Some(())
    }
}

/// What a lock is on: three numbers, a short one, the kind.
fn lock<S: Source>(memory: &mut Memory<S>, at: u64, kinds: u64) -> Option<Lock> {
    let mut fields = [0; 3];
    for (place, field) in (0..).zip(&mut fields) {
        *field = memory.int(at.checked_add(4 * place)?)?;
    }
    let last = memory.short(at + 12)?;
    let kind = memory.byte(at + 14)?;
    let name = memory.pointer(kinds.checked_add(8 * u64::from(kind))?)?;
    let kind = memory.c_text(name, KIND_BYTES)?;
    let of_words = !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_lowercase());
    of_words.then_some(Lock { kind, fields, last })
}

#[cfg(test)]
mod tests {
    use super::{Lock, Process, Waiter, transaction, waiters};
    use crate::damage;
    use crate::memory::{Memory, Written};

    const KINDS: u64 = 0x10_0000;
    const STATUS: u64 = 0x11_0000;

    /// Shared memory as the server lays it out; `place` is where an entry has its lock, which differs by version.
    struct Server {
        written: Written,
        place: u64,
        claims: u64,
    }

    impl Server {
        fn new(place: u64) -> Server {
            let mut written = Written::default();
            for (number, kind) in (0..).zip(["relation", "transactionid", "advisory"]) {
                let name = KINDS + 0x800 + 32 * number;
                written.put(name, kind.as_bytes());
                written.word(KINDS + 8 * number, name);
            }
            Server {
                written,
                place,
                claims: 0,
            }
        }

        fn entry(number: u64) -> u64 {
            0x20_0000 + 0x400 * number
        }

        fn process(number: u64) -> Process {
            Process {
                pid: 100 + number as u32,
                entry: Server::entry(number),
            }
        }

        /// A lock with claims (entry, what it was given) and a queue of (entry, the strength that it wants).
        fn lock(
            &mut self,
            number: u64,
            kind: u8,
            fields: [u32; 3],
            given: &[(u64, u32)],
            queue: &[(u64, u32)],
        ) {
            let at = 0x30_0000 + 0x400 * number;
            for (place, field) in (0..).zip(fields) {
                self.written.put(at + 4 * place, &field.to_le_bytes());
            }
            self.written.put(at + 14, &[kind]);
            let wanting = queue.iter().map(|(entry, _)| (*entry, 0_u32));
            let mut links = vec![at + 24];
            for (entry, given) in given.iter().copied().chain(wanting) {
                let claim = 0x40_0000 + 0x100 * self.claims;
                self.claims += 1;
                self.written.word(claim, at);
                self.written.word(claim + 8, Server::entry(entry));
                self.written.word(claim + 16, Server::entry(entry));
                self.written.put(claim + 24, &given.to_le_bytes());
                links.push(claim + 32);
                if let Some((_, strength)) = queue.iter().find(|(one, _)| *one == entry && given == 0) {
                    let own = Server::entry(entry) + self.place;
                    self.written.word(own, at);
                    self.written.word(own + 8, claim);
                    self.written.put(own + 16, &strength.to_le_bytes());
                }
            }
            self.ring(&links);
            let mut links = vec![at + 40];
            links.extend(queue.iter().map(|(entry, _)| Server::entry(*entry)));
            self.ring(&links);
        }

        fn ring(&mut self, links: &[u64]) {
            for (number, link) in links.iter().enumerate() {
                let next = links[(number + 1) % links.len()];
                self.written.word(link + 8, next);
                self.written.word(next, *link);
            }
        }

        fn waiters(&self, processes: u64, all: bool) -> Vec<Waiter> {
            let known: Vec<Process> = (1..=processes).map(Server::process).collect();
            waiters(&mut Memory::new(self.written.clone()), &known, KINDS, all)
        }
    }

    fn behind(found: &[Waiter], pid: u32) -> Vec<Option<u32>> {
        let waiter = found.iter().find(|one| one.pid == pid).unwrap();
        waiter.behind.clone()
    }

    /// Session 1 reads a table, 2 wants to change it, 3 and 4 want to read it, behind 2.
    fn table(place: u64) -> Server {
        let mut server = Server::new(place);
        server.lock(0, 0, [5, 16_384, 0], &[(1, 1 << 1)], &[(2, 8), (3, 1), (4, 1)]);
        server
    }

    #[test]
    fn whoever_waits_is_behind_holders_and_those_before_in_the_queue_in_any_version() {
        for place in [120, 136, 160, 200] {
            let found = table(place).waiters(5, true);
            assert_eq!(found.len(), 3, "place {place}");
            assert_eq!(behind(&found, 102), [Some(101)]);
            assert_eq!(
                behind(&found, 103),
                [Some(102)],
                "a reader does not wait for readers"
            );
            assert_eq!(behind(&found, 104), [Some(102)]);
            let lock = Lock {
                kind: "relation".into(),
                fields: [5, 16_384, 0],
                last: 0,
            };
            assert_eq!(found[0].lock, lock);
        }
    }

    #[test]
    fn a_holder_without_a_process_is_a_prepared_transaction_if_all_processes_are_known() {
        let mut server = Server::new(136);
        server.lock(0, 1, [700, 0, 0], &[(9, 1 << 7)], &[(2, 5)]);
        assert_eq!(behind(&server.waiters(4, true), 102), [None]);
        assert_eq!(behind(&server.waiters(4, false), 102), []);
    }

    #[test]
    fn nobody_waits_for_a_worker_of_the_same_statement() {
        let mut server = Server::new(136);
        server.lock(0, 0, [5, 7, 0], &[(1, 1 << 5)], &[(2, 3)]);
        // The claim of the worker, which was written first, is of the group that 2 leads.
        server.written.word(0x40_0000 + 16, Server::entry(2));
        assert_eq!(behind(&server.waiters(3, true), 102), []);
    }

    #[test]
    fn who_waits_for_no_lock_is_not_told() {
        let mut server = Server::new(136);
        server.lock(0, 2, [5, 0, 1000], &[(1, 1 << 7)], &[]);
        assert_eq!(server.waiters(3, true), []);
        assert_eq!(
            waiters(&mut Memory::new(Written::default()), &[], KINDS, true),
            []
        );
    }

    #[test]
    fn a_transaction_is_as_old_as_its_beginning_if_the_times_make_sense() {
        let since_2000 = |seconds: u64| seconds * 1_000_000;
        let now = super::SINCE_2000 + since_2000(1000);
        let read = |pid: u32, times: [u64; 4]| {
            let mut written = Written::default();
            written.put(STATUS + 4, &pid.to_le_bytes());
            for (at, time) in (0..).zip(times) {
                written.word(STATUS + 16 + 8 * at, since_2000(time));
            }
            transaction(&mut Memory::new(written), STATUS, 7, now)
        };
        assert_eq!(read(7, [100, 400, 500, 600]), Some(600_000_000));
        assert_eq!(read(7, [100, 0, 500, 600]), None, "none is open");
        assert_eq!(read(8, [100, 400, 500, 600]), None, "another process's");
        assert_eq!(read(7, [100, 400, 500, 2000]), None, "in the future");
        assert_eq!(read(7, [500, 400, 500, 600]), None, "before its process");
    }

    #[test]
    fn damaged_memory_is_read_to_an_end() {
        let images = [table(136).written, table(200).written];
        let known: Vec<Process> = (1..=4).map(Server::process).collect();
        damage::read_damaged(&images, 120, |written, _| {
            waiters(&mut Memory::new(written), &known, KINDS, true).len() == 3
        });
    }
}
