//! A `Mutex` for which a thread of Ruby waits, and who has it.
//!
//! A thread notes the `Mutex` that it waits for, and a list of those that it has. A `Monitor` locks a `Mutex` of its own. In: a thread, and all
//! threads. Out: the lock, and the thread in whose list it is. Whoever waits for a `ConditionVariable` or a `Queue` waits for no lock.

use super::objects::{self, Kind};
use super::{Interpreter, Thread, Unread, threads};
use crate::interpreted::{AwaitedLock, LockKind};
use crate::memory::Source;

/// Locks that a thread may have, and threads whose locks are looked through.
const KEPT_MAX: usize = 256;
const THREADS_MAX: usize = 512;

/// Offsets in an object of a C structure: the description of its type, whether it has one, and the structure.
const TYPE: u64 = 16;
const TYPED: u64 = 24;
const DATA: u64 = 32;

/// What is there where an object has a type, and its structure is outside of it.
const IS_TYPED: u64 = 1;

/// What the type of a `Mutex` is called.
const MUTEX: &str = "mutex";

/// Offsets in a `Mutex`: the fiber (of Ruby 2.7 the thread) that has it, and the next one that its thread has.
const OWNER: u64 = 0;
const NEXT: u64 = 8;

/// From what a thread waits for to the first that it has.
const KEEPING: u64 = 8;

impl<S: Source> Interpreter<S> {
    /// The `Mutex` that a thread waits for. `all`: the threads that there are.
    ///
    /// # Errors
    /// When what was read does not hold together.
    pub fn awaited_lock(&mut self, thread: Thread, all: &[Thread]) -> Result<Option<AwaitedLock>, Unread> {
        self.memory.forget();
        if threads::tid(&mut self.memory, &self.layout, thread.state) != Some(thread.tid) {
            return Err(Unread::NoThread);
        }
        // Who is woken for a `Mutex` needs the global lock first.
        if let Some(lock) = self.awaited_global_lock(thread, all) {
            return Ok(Some(lock));
        }
        let at = thread.state.checked_add(self.layout.locking);
        let object = at.and_then(|at| self.memory.word(at)).ok_or(Unread::Torn)?;
        if object == 0 {
            return Ok(None);
        }
        let address = self.mutex(object).ok_or(Unread::Torn)?;
        let owner = match self.memory.word(address + OWNER).ok_or(Unread::Torn)? {
            // It was let go, and nobody has taken it yet.
            0 => None,
            _ => self.keeper(address, all),
        };
        let kind = LockKind::RubyMutex;
        Ok(Some(AwaitedLock { kind, address, owner }))
    }

    /// The structure of a `Mutex`; `None` where the object is none.
    fn mutex(&mut self, object: u64) -> Option<u64> {
        if !objects::is(&mut self.memory, object, Kind::Data)? {
            return None;
        }
        if self.memory.word(object.checked_add(TYPED)?)? != IS_TYPED {
            return None;
        }
        let described = self.memory.pointer(object.checked_add(TYPE)?)?;
        let name = self.memory.pointer(described)?;
        let name = self.memory.c_text(name, MUTEX.len() + 1)?;
        let address = self.memory.pointer(object.checked_add(DATA)?)?;
        (name == MUTEX && address.is_multiple_of(8)).then_some(address)
    }

    /// The one thread that has this lock in its list.
    fn keeper(&mut self, lock: u64, all: &[Thread]) -> Option<u32> {
        let mut owner = None;
        for thread in all.iter().take(THREADS_MAX) {
            if !self.keeps(*thread, lock).unwrap_or(false) {
                continue;
            }
            if owner.is_some() {
                return None;
            }
            owner = Some(thread.tid);
        }
        owner
    }

    /// Whether a lock is in the list of a thread.
    fn keeps(&mut self, thread: Thread, lock: u64) -> Option<bool> {
        if threads::tid(&mut self.memory, &self.layout, thread.state)? != thread.tid {
            return None;
        }
        let first = thread.state.checked_add(self.layout.locking + KEEPING)?;
        let mut at = self.memory.word(first)?;
        for _ in 0..KEPT_MAX {
            if at == 0 || at == lock {
                break;
            }
            at = self.memory.word(at.checked_add(NEXT)?)?;
        }
        Some(at == lock)
    }
}
