//! Who owns a lock of the C library, known from the lock's own memory.
//!
//! The problem: a futex is any 32-bit word, and programs keep anything in and around it; only locks of glibc (and of
//! others that follow its layout) write down who owns them. The choice: an owner is believed only if everything fits:
//! the value that the thread waits for the word to lose, the word itself, the kind of lock, the count of its users,
//! and, judged by the caller, that the owner is a thread that could be it. Conditions, semaphores, barriers, and the
//! locks of Rust and Go keep no owner and do not pass.
//!
//! A runtime that keeps locks of its own says itself whose they are.
//!
//! In: the words around the futex and the call, or what a runtime said. Out: the owner's thread id in the waiter's own pid namespace.

use holdup_evidence::{Call, FUTEX_AT, FUTEX_WORDS, LockHolder, RuntimeLockKind, RuntimeLockSource, Wait};
use holdup_model::attributed::HowKnown;

/// `FUTEX_CMD_MASK`: the operation without its flags.
const FUTEX_OPERATION: u64 = 0x7f;
/// `FUTEX_PRIVATE_FLAG`: only threads of one process use it.
const FUTEX_PRIVATE: u64 = 0x80;
/// `FUTEX_WAIT`.
const FUTEX_WAIT: u64 = 0;
/// `FUTEX_WAIT_BITSET`, which the C library uses for mutexes with a time limit, and Rust for all.
const FUTEX_WAIT_BITSET: u64 = 9;
/// `FUTEX_LOCK_PI` and `FUTEX_LOCK_PI2`: the word is the owner's thread id, by the kernel's own rules.
const FUTEX_LOCKS_PI: [u64; 2] = [6, 13];
/// `FUTEX_WAITERS`: set in a robust lock's word by those who wait.
const FUTEX_WAITERS: u32 = 0x8000_0000;
/// `FUTEX_TID_MASK`: the bits of a robust lock's word that hold the owner's thread id.
const FUTEX_TID_MASK: u32 = 0x3fff_ffff;

/// A glibc mutex that is locked, without and with waiters.
const MUTEX_LOCKED: [u32; 2] = [1, 2];
/// The value that a thread waits for a glibc mutex to lose.
const MUTEX_AWAITED: u32 = 2;
/// The bits of `__kind` that glibc uses.
const KIND_MASK: u32 = 0x3ff;
/// `PTHREAD_MUTEX_RECURSIVE_NP`, of the two lowest bits.
const KIND_RECURSIVE: u32 = 1;
/// The bits of `__kind` for the type.
const KIND_TYPE: u32 = 3;
/// `PTHREAD_MUTEX_ROBUST_NORMAL_NP`.
const KIND_ROBUST: u32 = 16;
/// `PTHREAD_MUTEX_PRIO_INHERIT_NP` and `PTHREAD_MUTEX_PRIO_PROTECT_NP`, whose words are different.
const KIND_OTHER_PROTOCOL: u32 = 32 | 64;
/// More threads than a system can have: `PID_MAX_LIMIT`.
const USERS_MOST: u32 = 1 << 22;

/// The value that threads wait for either futex of a glibc reader-writer lock to lose.
const RWLOCK_AWAITED: u32 = 3;
/// `PTHREAD_RWLOCK_WRPHASE | PTHREAD_RWLOCK_WRLOCKED`: a writer has it.
const RWLOCK_WRITER: u32 = 3;

/// An owner that a lock's memory names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner {
    /// Thread id in the waiter's pid namespace.
    pub(super) tid: u32,
    /// How it is known.
    pub(super) how: HowKnown,
    /// Whether processes may share the lock.
    pub(super) shared: bool,
    /// Whether its owner may lock it again.
    pub(super) recursive: bool,
}

/// Memory around a futex; places count from the futex itself.
struct Memory<'a>(&'a [u32; FUTEX_WORDS]);

impl Memory<'_> {
    fn at(&self, place: isize) -> u32 {
        let index = FUTEX_AT.checked_add_signed(place);
        index.and_then(|index| self.0.get(index)).copied().unwrap_or(0)
    }
}

/// The owner of the lock that a wait is for.
pub(super) fn of(wait: &Wait) -> Option<Owner> {
    match wait.holder.as_ref()? {
        LockHolder::FutexWords(words) => {
            let memory = Memory(words);
            inherited(&memory, &wait.call)
                .or_else(|| mutex(&memory, &wait.call))
                .or_else(|| rwlock(&memory, &wait.call))
        }
        LockHolder::Runtime(lock) => Some(Owner {
            tid: lock.owner?,
            how: match (lock.source, lock.kind) {
                (RuntimeLockSource::Dump, _) => HowKnown::Dump,
                (RuntimeLockSource::Structures, RuntimeLockKind::Class) => HowKnown::Vmstructs,
                (
                    RuntimeLockSource::Structures,
                    RuntimeLockKind::Mutex
                    | RuntimeLockKind::Recursive
                    | RuntimeLockKind::Queued
                    | RuntimeLockKind::Global
                    | RuntimeLockKind::Semaphore,
                ) => HowKnown::Interpreter,
                (RuntimeLockSource::Structures, RuntimeLockKind::Monitor | RuntimeLockKind::Lock) => {
                    HowKnown::Monitor
                }
            },
            shared: false,
            recursive: !matches!(
                lock.kind,
                RuntimeLockKind::Mutex
                    | RuntimeLockKind::Queued
                    | RuntimeLockKind::Global
                    | RuntimeLockKind::Semaphore
            ),
        }),
        _ => None,
    }
}

/// What the thread waits for the word to lose.
fn awaited(call: &Call) -> u32 {
    // The call takes 32 bits; the register's upper half says nothing.
    #[expect(clippy::cast_possible_truncation, reason = "the call takes an int")]
    let value = call.args[2] as u32;
    value
}

/// Whether processes may share the futex.
pub(super) fn shared(call: &Call) -> bool {
    call.args[1] & FUTEX_PRIVATE == 0
}

/// A futex with priority inheritance that somebody waits for.
fn inherited(memory: &Memory, call: &Call) -> Option<Owner> {
    let word = memory.at(0);
    let locks = FUTEX_LOCKS_PI.contains(&(call.args[1] & FUTEX_OPERATION));
    let tid = word & FUTEX_TID_MASK;
    (locks && word & FUTEX_WAITERS != 0 && tid != 0).then(|| Owner {
        tid,
        how: HowKnown::PiFutex,
        shared: shared(call),
        recursive: false,
    })
}

/// `__lock`, `__count`, `__owner`, `__nusers`, `__kind`.
fn mutex(memory: &Memory, call: &Call) -> Option<Owner> {
    let (lock, owner, users, kind) = (memory.at(0), memory.at(2), memory.at(3), memory.at(4));
    let plain = match call.args[1] & FUTEX_OPERATION {
        FUTEX_WAIT => true,
        // The C library takes mutexes so only with a time limit.
        FUTEX_WAIT_BITSET => call.args[3] != 0,
        _ => false,
    };
    // The lock of a stream of the C library has a pointer there, whose lower half is no thread id.
    let plausible = plain
        && (1..USERS_MOST).contains(&owner)
        && (1..USERS_MOST).contains(&users)
        && kind & !KIND_MASK == 0
        && kind & KIND_OTHER_PROTOCOL == 0;
    if !plausible {
        return None;
    }
    let how = if kind & KIND_ROBUST != 0 {
        let held = lock & FUTEX_TID_MASK == owner && awaited(call) == owner | FUTEX_WAITERS;
        held.then_some(HowKnown::RobustList)
    } else {
        let held = MUTEX_LOCKED.contains(&lock) && awaited(call) == MUTEX_AWAITED;
        held.then_some(HowKnown::MutexOwner)
    };
    Some(Owner {
        tid: owner,
        how: how?,
        shared: shared(call),
        recursive: kind & KIND_TYPE == KIND_RECURSIVE,
    })
}

/// `__readers`, `__writers`, `__wrphase_futex`, `__writers_futex`, two words of padding, `__cur_writer`. Readers wait at
/// the third, other writers at the fourth. A lock that readers have names nobody.
fn rwlock(memory: &Memory, call: &Call) -> Option<Owner> {
    if awaited(call) != RWLOCK_AWAITED || memory.at(0) != RWLOCK_AWAITED {
        return None;
    }
    let by_writer = |readers: u32| readers & RWLOCK_WRITER == RWLOCK_WRITER;
    let as_reader = (by_writer(memory.at(-2)) && memory.at(-2) >> 3 > 0).then(|| memory.at(4));
    let as_writer = (by_writer(memory.at(-3)) && memory.at(-2) > 0).then(|| memory.at(3));
    let tid = match (as_reader, as_writer) {
        (Some(tid), None | Some(0)) | (None | Some(0), Some(tid)) => tid,
        _ => 0,
    };
    (tid != 0).then_some(Owner {
        tid,
        how: HowKnown::MutexOwner,
        shared: shared(call),
        recursive: false,
    })
}

/// The thread id that a lock which processes share names as its owner: perhaps a thread outside the run, of which the
/// source may find out more.
#[must_use]
pub fn shared_lock_owner(wait: &Wait) -> Option<u32> {
    of(wait).filter(|owner| owner.shared).map(|owner| owner.tid)
}
