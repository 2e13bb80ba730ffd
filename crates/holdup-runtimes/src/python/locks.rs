//! Locks of `threading` and `queue`: which one a thread waits for, and who has it.
//!
//! The problem: a `Lock` does not note its owner. The choice: inside `with lock:` the frame of whoever has it keeps the bound `__exit__`
//! of the lock below its block, for as long as it is in there. An `RLock` notes its owner. In: a thread that waits for a word of memory,
//! and all threads. Out: the lock that this word belongs to, and its owner; nobody where it was not taken by `with`, or where two
//! threads seem to have it.

use super::{Interpreter, PythonFrame, Thread, Unread};
use crate::interpreted::{AwaitedLock, LockKind};
use crate::memory::Source;

/// Innermost frames of a waiter in which the lock is looked for: the library's own are among them.
const WAITER_FRAMES_MAX: usize = 6;

/// Frames of a thread in which a lock is looked for that it may have, and threads that are looked at.
const HOLDER_FRAMES_MAX: usize = 64;
const THREADS_MAX: usize = 512;

/// Of a lock: the word that its waiters wait for. Of an `RLock` also the thread that has it, and how often it took it.
const WORD: u64 = 16;
const OWNER: u64 = 24;
const TAKEN: u64 = 32;

/// Types of locks, as the interpreter names them.
const LOCK: &str = "_thread.lock";
const RECURSIVE_LOCK: &str = "_thread.RLock";

/// Methods that a block of `with` calls at its end.
const LEAVES: &str = "__exit__";

/// Where a condition keeps its lock.
const OF_CONDITION: &str = "_lock";

/// The frame of `Semaphore.acquire` below `Condition.wait`.
const OF_SEMAPHORE: usize = 1;

/// Files of the library whose functions make threads wait.
const FILES: [&str; 2] = ["threading.py", "queue.py"];

impl<S: Source> Interpreter<S> {
    /// The lock that a thread waits for, which sleeps on this word with these frames. `all`: the threads that there are.
    ///
    /// # Errors
    /// When the thread has ended since, or what was read does not hold together.
    pub fn awaited_lock(
        &mut self,
        thread: Thread,
        word: u64,
        frames: &[PythonFrame],
        all: &[Thread],
    ) -> Result<Option<AwaitedLock>, Unread> {
        self.memory.forget();
        if self.layout.objects.is_none() {
            return Ok(None);
        }
        let waiter = self
            .frame_addresses(thread.state, WAITER_FRAMES_MAX)
            .ok_or(Unread::Torn)?;
        let Some((address, recursive)) = self.lock_of(&waiter, word) else {
            return Ok(None);
        };
        let Some(kind) = purpose(frames, recursive) else {
            return Ok(None);
        };
        let (address, owner) = if kind == LockKind::RLock {
            (address, self.noted_owner(address, all))
        } else if kind == LockKind::Semaphore {
            // Whoever entered the semaphore has one of its places.
            let frame = waiter.get(OF_SEMAPHORE);
            let semaphore = frame.and_then(|frame| self.first_variable(*frame));
            let semaphore = semaphore.ok_or(Unread::Torn)?;
            (semaphore, self.owner(all, semaphore))
        } else {
            (address, self.owner(all, address))
        };
        Ok(Some(AwaitedLock { kind, address, owner }))
    }

    /// The lock whose word this is, among those that these frames refer to; and whether it is recursive.
    fn lock_of(&mut self, frames: &[u64], word: u64) -> Option<(u64, bool)> {
        for frame in frames {
            for value in self.references(*frame).unwrap_or_default() {
                let Some(kind) = self.type_name(value) else {
                    continue;
                };
                let lock = match kind.as_str() {
                    LOCK | RECURSIVE_LOCK => Some(value),
                    "builtin_function_or_method" => self.at(value, super::objects::BOUND_TO),
                    _ => None,
                };
                let Some(lock) = lock.filter(|lock| *lock != 0) else {
                    continue;
                };
                let kind = self.type_name(lock);
                let recursive = match kind.as_deref() {
                    Some(LOCK) => false,
                    Some(RECURSIVE_LOCK) => true,
                    _ => continue,
                };
                if self.at(lock, WORD) == Some(word) {
                    return Some((lock, recursive));
                }
            }
        }
        None
    }

    /// The owner that a recursive lock notes: what the C library calls the thread.
    fn noted_owner(&mut self, lock: u64, all: &[Thread]) -> Option<u32> {
        let (owner, taken) = (self.at(lock, OWNER)?, self.at(lock, TAKEN)?);
        if owner == 0 || taken == 0 {
            return None;
        }
        let pthread = self.layout.pthread;
        let found = |thread: &&Thread| self.at(thread.state, pthread) == Some(owner);
        all.iter().find(found).map(|thread| thread.tid)
    }

    /// The one thread that is in a block of `with` for this. Who waits is not yet in the block that it waits to enter.
    fn owner(&mut self, all: &[Thread], wanted: u64) -> Option<u32> {
        let mut owner = None;
        for thread in all.iter().take(THREADS_MAX) {
            if !self.is_within(*thread, wanted) {
                continue;
            }
            if owner.is_some() {
                return None;
            }
            owner = Some(thread.tid);
        }
        owner
    }

    /// Whether a thread is in a block of `with` for this, or for a condition of which it is the lock.
    fn is_within(&mut self, thread: Thread, wanted: u64) -> bool {
        let frames = self
            .frame_addresses(thread.state, HOLDER_FRAMES_MAX)
            .unwrap_or_default();
        // Whoever waits in a condition has let go of its lock for so long, although it stands in the block.
        let innermost = frames.first().and_then(|frame| self.first_variable(*frame));
        if innermost.is_some_and(|object| self.attribute(object, OF_CONDITION) == Some(wanted)) {
            return false;
        }
        for frame in frames {
            for value in self.below_blocks(frame).unwrap_or_default() {
                let Some(bound) = self.bound(value, LEAVES) else {
                    continue;
                };
                if bound == wanted || self.attribute(bound, OF_CONDITION) == Some(wanted) {
                    return true;
                }
            }
        }
        false
    }
}

/// Which lock a thread waits for that sleeps on one in these frames, innermost first. Conditions, events, queues and the ends of threads are
/// waited for with a lock of each waiter's own, which nobody has.
fn purpose(frames: &[PythonFrame], recursive: bool) -> Option<LockKind> {
    let mut of_library = frames.iter().map_while(|one| {
        let file = one.frame.file.as_deref()?.rsplit('/').next()?;
        let symbol = one.frame.symbol.as_deref()?;
        FILES.contains(&file).then(|| symbol.rsplit('.').next())?
    });
    match (of_library.next(), of_library.next()) {
        (Some("wait"), Some("acquire")) => Some(LockKind::Semaphore),
        (Some("wait" | "_wait_for_tstate_lock" | "join"), _) => None,
        _ if recursive => Some(LockKind::RLock),
        _ => Some(LockKind::Lock),
    }
}
