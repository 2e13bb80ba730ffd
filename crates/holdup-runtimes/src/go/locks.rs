//! Which lock a goroutine waits for, and who took it.
//!
//! The problem: `sync.Mutex` and `sync.RWMutex` note no owner. The choice: who waits for one has a record (`sudog`) on its stack, with the
//! address of the semaphore, which says what lock it is. Who has it stands in a function, or was called by one, whose code takes a lock
//! before the call in which it stands, does not give it back before that, and whose frame has the address of this very lock (or whose code has
//! it, of a lock that is a variable of a package). In: goroutines, and the words of the runtime for waits for locks. Out: the locks that they
//! wait for, among what they await, and those that they took, among what they refer to. The code of x86-64 is read.

use super::handing::{ASKED_MAX, STACK_WORDS};
use super::{Goroutine, Goroutines, Program};
use crate::arch::READS_CODE;
use crate::memory::Source;
use std::collections::{BTreeMap, BTreeSet};

/// Where a record of a wait has the address of the semaphore.
const SEMAPHORE: u64 = 24;

/// Where a lock has the semaphore for which waits with this reason are. A lock for readers and a writer begins with one of the other kind.
const SEMAPHORES: [(&str, u64); 3] = [
    ("sync.Mutex.Lock", 4),
    ("sync.RWMutex.Lock", 8),
    ("sync.RWMutex.RLock", 12),
];

/// Words of the innermost frames in which the record is.
const RECORD_WORDS: u64 = 96;

/// Functions that take a lock, or wait for it where the rest of them is part of the caller's code.
const TAKE: [&str; 9] = [
    "sync.(*Mutex).Lock",
    "sync.(*Mutex).lockSlow",
    "internal/sync.(*Mutex).Lock",
    "internal/sync.(*Mutex).lockSlow",
    "sync.(*RWMutex).Lock",
    "sync.(*RWMutex).RLock",
    "sync.runtime_SemacquireRWMutexR",
    "sync.runtime_SemacquireRWMutex",
    "sync.runtime_SemacquireMutex",
];

/// Functions that give one back.
const GIVE: [&str; 7] = [
    "sync.(*Mutex).Unlock",
    "sync.(*Mutex).unlockSlow",
    "internal/sync.(*Mutex).Unlock",
    "internal/sync.(*Mutex).unlockSlow",
    "sync.(*RWMutex).Unlock",
    "sync.(*RWMutex).RUnlock",
    "sync.(*RWMutex).rUnlockSlow",
];

/// Packages whose functions are within a lock.
const OF_LOCKS: [&str; 3] = ["sync.", "internal/sync.", "runtime."];

/// Longest function whose code is read, bytes.
const CODE_BYTES_MAX: u64 = 1 << 16;

/// Words above a frame in which its arguments may be kept.
const ARGUMENT_WORDS: u64 = 6;

/// How far before a lock the structure begins of which it is a part, at most, bytes.
const WITHIN_BYTES: u64 = 512;

/// A call, an addition that another CPU sees at once, and an exchange.
const CALL: u8 = 0xe8;
const ADDS: [u8; 3] = [0xf0, 0x0f, 0xc1];
const EXCHANGES: [u8; 3] = [0xf0, 0x0f, 0xb1];

/// Bytes before an addition within which its summand is loaded into a register.
const SUMMAND_BYTES: usize = 16;

/// A frame: the address in its function, and where it is in memory.
#[derive(Debug, Clone, Copy)]
struct Place {
    address: u64,
    from: u64,
    to: u64,
}

/// How near a frame is to a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Has {
    /// It has the lock's address.
    Lock,
    /// It has the address of something that begins a little before.
    Around,
}

impl<S: Source> Program<S> {
    /// Notes which locks goroutines wait for, and who took them.
    pub fn locks(&mut self, all: &mut Goroutines) {
        let mut wanted: BTreeSet<u64> = BTreeSet::new();
        let mut waits: BTreeMap<usize, u64> = BTreeMap::new();
        for (at, one) in all.all.iter_mut().enumerate() {
            if waits.len() == ASKED_MAX {
                break;
            }
            if let Some(lock) = self.lock_of(one) {
                one.awaited.channels.push(lock);
                wanted.insert(lock);
                waits.insert(at, lock);
            }
        }
        if wanted.is_empty() || self.table.is_none() {
            return;
        }
        let entries = self.entries();
        let mut found: Vec<(usize, u64, Has)> = Vec::new();
        let parked = (0..all.all.len()).filter(|at| !all.all[*at].addresses.is_empty());
        // Those that wait for a lock first: they are in the way of others most often, and they are few.
        let (first, rest): (Vec<usize>, Vec<usize>) = parked.partition(|at| waits.contains_key(at));
        for at in first.into_iter().chain(rest).take(ASKED_MAX) {
            let one = all.all[at].at;
            for (lock, has) in self.taken(one, &wanted, waits.contains_key(&at), &entries) {
                found.push((at, lock, has));
            }
        }
        for lock in wanted {
            let nearest = found.iter().filter(|one| one.1 == lock).map(|one| one.2).min();
            let who = found.iter().filter(|one| one.1 == lock && Some(one.2) == nearest);
            for (at, ..) in who {
                all.all[*at].refers.push(lock);
            }
        }
    }

    /// The lock that a goroutine waits for: its stack has its record, which points back to it.
    fn lock_of(&mut self, one: &Goroutine) -> Option<u64> {
        let reason = one.reason.as_deref()?;
        let (_, offset) = SEMAPHORES.iter().find(|(known, _)| *known == reason)?;
        self.semaphore_of(one)?.checked_sub(*offset)
    }

    /// The semaphore for which a goroutine waits.
    pub(super) fn semaphore_of(&mut self, one: &Goroutine) -> Option<u64> {
        let (sp, high) = self.stack_of(one.at)?;
        let end = high.min(sp.saturating_add(RECORD_WORDS * 8));
        for at in (sp..end).step_by(8) {
            let Some(record) = self.memory.word(at) else { break };
            let apart = record % 8 == 0 && record != one.at && !(sp..high).contains(&record);
            if apart && self.memory.word(record) == Some(one.at) {
                let semaphore = self.memory.word(record.checked_add(SEMAPHORE)?)?;
                if semaphore != 0 && semaphore % 4 == 0 {
                    return Some(semaphore);
                }
            }
        }
        None
    }

    /// Where the functions begin that take locks, and those that give them back.
    fn entries(&mut self) -> BTreeMap<u64, bool> {
        let Some(table) = &self.table else {
            return BTreeMap::new();
        };
        let memory = &mut self.memory;
        let names: Vec<&'static str> = TAKE.iter().chain(&GIVE).copied().collect();
        let found = table.named(memory, &names).into_iter();
        found
            .map(|(name, (start, _))| (start, TAKE.contains(&name)))
            .collect()
    }

    /// The locks that a goroutine has taken in one of its functions. `waits`: what it is in now is a lock itself, which it has not yet.
    fn taken(
        &mut self,
        goroutine: u64,
        wanted: &BTreeSet<u64>,
        waits: bool,
        entries: &BTreeMap<u64, bool>,
    ) -> Vec<(u64, Has)> {
        let mut found: BTreeMap<u64, Has> = BTreeMap::new();
        let mut within = waits;
        for place in self.places(goroutine) {
            let Some(table) = self.table.as_mut() else { break };
            let inside = place.address.saturating_sub(1);
            let name = table.function(&mut self.memory, inside).map(|one| &*one.name);
            if name.is_none_or(|name| OF_LOCKS.iter().any(|of| name.starts_with(of))) {
                continue;
            }
            // The function that waits for it; the part of it that does may be in its own code.
            if std::mem::take(&mut within) {
                continue;
            }
            let Some(code) = self.code(place.address) else {
                continue;
            };
            if !takes(&code, place.address, entries) {
                continue;
            }
            for (lock, has) in self.refers_to(&place, &code, wanted) {
                let known = found.entry(lock).or_insert(has);
                *known = has.min(*known);
            }
        }
        found.into_iter().collect()
    }

    /// The locks whose addresses a frame or its function's code has.
    fn refers_to(&mut self, place: &Place, code: &Code, wanted: &BTreeSet<u64>) -> Vec<(u64, Has)> {
        let to = place.to.saturating_add(ARGUMENT_WORDS * 8);
        let words: Vec<u64> = (place.from..to)
            .step_by(8)
            .map_while(|at| self.memory.word(at))
            .collect();
        let mut found: Vec<(u64, Has)> = wanted
            .iter()
            .filter(|lock| words.contains(lock) || code.names(**lock))
            .map(|lock| (*lock, Has::Lock))
            .collect();
        for lock in wanted {
            let around = |word: &u64| {
                (lock.saturating_sub(WITHIN_BYTES)..*lock).contains(word) && word.is_multiple_of(8)
            };
            if words.iter().any(around) {
                found.push((*lock, Has::Around));
            }
        }
        found
    }

    /// The frames of a goroutine, innermost first, without the one whose address is no return address.
    fn places(&mut self, goroutine: u64) -> Vec<Place> {
        let mut places = Vec::new();
        let Some((sp, high)) = self.stack_of(goroutine) else {
            return places;
        };
        let low = sp;
        let Some(mut frame) = self.layout.frame_pointer(&mut self.memory, goroutine) else {
            return places;
        };
        while places.len() < super::FRAMES_MAX && (low..high).contains(&frame) {
            let caller = frame.checked_add(8).and_then(|at| self.memory.pointer(at));
            let (Some(address), Some(above)) = (caller, self.memory.word(frame)) else {
                break;
            };
            // Of the outermost there is no end.
            let ends = (frame < above && above < high && (above - frame) / 8 <= STACK_WORDS).then_some(above);
            places.push(Place {
                address,
                from: frame + 16,
                to: ends.unwrap_or(frame + 16),
            });
            match ends {
                Some(above) => frame = above,
                None => break,
            }
        }
        places
    }

    /// The code of the function to which an address returns.
    fn code(&mut self, address: u64) -> Option<Code> {
        let table = self.table.as_ref().filter(|_| READS_CODE)?;
        let (start, end) = table.bounds(&mut self.memory, address.checked_sub(1)?)?;
        let length = end
            .checked_sub(start)
            .filter(|length| *length <= CODE_BYTES_MAX)?;
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        self.memory.read(start, &mut bytes)?;
        Some(Code { start, bytes })
    }
}

/// A function's code.
#[derive(Debug)]
struct Code {
    start: u64,
    bytes: Vec<u8>,
}

impl Code {
    /// What an operand of four bytes here refers to, relative to the next instruction.
    fn relative(&self, at: usize) -> Option<u64> {
        let bytes = self.bytes.get(at..at + 4)?;
        let by = i64::from(i32::from_le_bytes(bytes.try_into().ok()?));
        let next = self.start.checked_add(at as u64 + 4)?;
        next.checked_add_signed(by)
    }

    /// Whether an instruction refers to this address.
    fn names(&self, wanted: u64) -> bool {
        (0..self.bytes.len().saturating_sub(3)).any(|at| self.relative(at) == Some(wanted))
    }

    /// What is added by an addition: whether it is one, or one is taken away.
    fn summand(&self, at: usize) -> Option<bool> {
        let before = &self.bytes[at.saturating_sub(SUMMAND_BYTES)..at];
        let mut loads = before.windows(5).rev();
        loads.find_map(|load| match (load[0], &load[1..]) {
            (0xb8..=0xbf, [1, 0, 0, 0]) => Some(true),
            (0xb8..=0xbf, [0xff, 0xff, 0xff, 0xff]) => Some(false),
            _ => None,
        })
    }
}

/// Whether the code has taken a lock, and not given it back, where it stands; by the order of the instructions. `entries`: where functions
/// begin that take a lock, and those that do not take but give.
fn takes(code: &Code, address: u64, entries: &BTreeMap<u64, bool>) -> bool {
    let stands = usize::try_from(address.saturating_sub(code.start)).unwrap_or(usize::MAX);
    let mut locks = false;
    let mut has = false;
    for at in 0..code.bytes.len() {
        let rest = &code.bytes[at..];
        let takes = match rest {
            [CALL, ..] => code.relative(at + 1).and_then(|to| entries.get(&to)).copied(),
            _ if rest.starts_with(&ADDS) => code.summand(at),
            _ if rest.starts_with(&EXCHANGES) => Some(true),
            _ => None,
        };
        let Some(takes) = takes else { continue };
        locks |= takes && rest[0] == CALL;
        // The call in which it stands has not ended.
        if at + 5 < stands {
            has = takes;
        }
    }
    locks && has
}

#[cfg(test)]
mod tests {
    use super::super::layout::{LAYOUTS, PC, SP, WAITING};
    use super::super::{Place, Program};
    use super::{Code, takes};
    use crate::memory::Written;
    use std::collections::BTreeMap;

    const START: u64 = 0x40_0000;
    const SLOW: u64 = 0x40_9000;
    const UNLOCK: u64 = 0x40_a000;
    const ONE: [u8; 5] = [0xba, 1, 0, 0, 0];
    const LESS: [u8; 5] = [0xba, 0xff, 0xff, 0xff, 0xff];
    const ADD: [u8; 5] = [0xf0, 0x0f, 0xc1, 0x50, 0x10];
    const EXCHANGE: [u8; 5] = [0xf0, 0x0f, 0xb1, 0x0a, 0x90];
    const OTHER: u64 = 0x40_b000;

    /// Code of these pieces: bytes, or a call.
    fn code(pieces: &[Result<[u8; 5], u64>]) -> Code {
        let mut bytes = Vec::new();
        for piece in pieces {
            let next = START + bytes.len() as u64 + 5;
            match piece {
                Ok(own) => bytes.extend(own),
                Err(to) => {
                    bytes.push(super::CALL);
                    bytes.extend(i32::try_from(*to as i64 - next as i64).unwrap().to_le_bytes());
                }
            }
        }
        Code { start: START, bytes }
    }

    #[test]
    fn the_order_of_the_instructions_says_whether_a_lock_is_taken_where_it_stands() {
        let entries = BTreeMap::from([(SLOW, true), (UNLOCK, false)]);
        let stands =
            |pieces: &[Result<[u8; 5], u64>], at: u64| takes(&code(pieces), START + at * 5, &entries);
        // Lock, call, unlock: within the call it has it, and behind it not.
        let plain = [Ok(EXCHANGE), Err(SLOW), Err(OTHER), Err(UNLOCK), Err(OTHER)];
        assert!(stands(&plain, 3));
        assert!(!stands(&plain, 5));
        // In the call that takes it, it has none.
        assert!(!stands(&[Err(SLOW), Err(OTHER)], 1));
        assert!(stands(&[Err(SLOW), Err(OTHER)], 2));
        // To read, one is added, and taken away.
        let reads = [
            Ok(ONE),
            Ok(ADD),
            Err(SLOW),
            Err(OTHER),
            Ok(LESS),
            Ok(ADD),
            Err(OTHER),
        ];
        assert!(stands(&reads, 4));
        assert!(!stands(&reads, 7));
        // Counters of its own are no locks.
        assert!(!stands(&[Ok(ONE), Ok(ADD), Err(OTHER)], 3));
    }

    #[test]
    fn code_names_what_its_instructions_refer_to() {
        let code = code(&[Ok(EXCHANGE), Err(OTHER)]);
        assert!(code.names(OTHER) && !code.names(OTHER + 8));
    }

    #[test]
    fn a_lock_is_told_by_the_semaphore_of_who_waits_for_it() {
        const LIST: u64 = 0x50_0000;
        const GOROUTINE: u64 = 0xc0_0010_0000;
        const STACK: u64 = 0xc0_0020_0000;
        const RECORD: u64 = 0xc0_0030_0000;
        const LOCK: u64 = 0xc0_0040_0010;
        let layout = LAYOUTS[0];
        let mut memory = Written::default();
        for (at, word) in [(0x2000, LIST), (0x2008, 1), (0x2010, 1), (LIST, GOROUTINE)] {
            memory.word(at, word);
        }
        memory.word(0x3000 + 7 * 16, 0x4000);
        memory.word(0x3008 + 7 * 16, 18);
        memory.put(0x4000, b"sync.RWMutex.RLock");
        memory.word(GOROUTINE, STACK);
        memory.word(GOROUTINE + 8, STACK + 0x800);
        memory.word(GOROUTINE + SP, STACK + 0x600);
        memory.word(GOROUTINE + PC, START);
        memory.word(GOROUTINE + 72, GOROUTINE);
        memory.word(GOROUTINE + layout.frame, STACK + 0x700);
        memory.put(GOROUTINE + layout.status, &WAITING.to_le_bytes());
        memory.word(GOROUTINE + layout.id, 1);
        memory.put(GOROUTINE + layout.reason, &[7]);
        for at in (0x600..0x800).step_by(8) {
            memory.word(STACK + at, 0);
        }
        memory.word(STACK + 0x620, RECORD);
        memory.word(RECORD, GOROUTINE);
        memory.word(RECORD + super::SEMAPHORE, LOCK + 12);
        let place = Place {
            goroutines: Some(0x2000),
            reasons: Some(0x3000),
            table: None,
        };
        let awaits = |memory: &Written| {
            let mut program = Program::find(memory.clone(), place).unwrap();
            let mut all = program.goroutines().unwrap();
            program.locks(&mut all);
            all.all[0].awaited.channels.clone()
        };
        assert_eq!(awaits(&memory), [LOCK]);
        // A record of another goroutine is not believed.
        memory.word(RECORD, GOROUTINE + 8);
        assert_eq!(awaits(&memory), [0; 0]);
    }
}
