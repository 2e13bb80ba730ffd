//! The lock that one thread of Ruby has while it runs, and who has it.
//!
//! Each ractor has such a lock. In: an interpreter with one ractor, as almost all have. Out: the thread that has its lock, and in which
//! methods it is. That thread mostly runs meanwhile, so its frames are read twice, and those count that were there both times.

use super::versions::Threads;
use super::{Interpreter, Thread, Unread, threads};
use crate::interpreted::{AwaitedLock, Held, LockKind, common};
use crate::memory::Source;

/// Attempts to read a thread that runs: each may find its innermost frame half made.
const TRIES: usize = 4;

/// Threads that wait for it and are looked through.
const WAITERS_MAX: usize = 512;

/// A thread is linked into the list of those that wait by a word of its own, which lies within so many bytes.
const THREAD_BYTES: u64 = 1024;

impl<S: Source> Interpreter<S> {
    /// The thread that has the lock; `None` where nobody has it.
    ///
    /// # Errors
    /// When there is only one thread, for which nobody waits, or several ractors; when the lock changed hands during each attempt, or
    /// what was read does not hold together.
    pub fn holder(&mut self) -> Result<Option<Held>, Unread> {
        self.memory.forget();
        let all = threads::all(&mut self.memory, &self.layout, self.interpreter).ok_or(Unread::Torn)?;
        if all.len() < 2 {
            return Err(Unread::NoThread);
        }
        for _ in 0..TRIES {
            self.memory.forget();
            let at = self.lock_word()?;
            let thread = match self.memory.word(at).ok_or(Unread::Torn)? {
                0 => return Ok(None),
                thread => thread,
            };
            // It may have begun since they were listed; then the next look finds it.
            if !all.contains(&thread) {
                return Err(Unread::Torn);
            }
            let tid = threads::tid(&mut self.memory, &self.layout, thread).ok_or(Unread::Torn)?;
            let Ok(first) = self.walk(thread) else { continue };
            self.memory.forget();
            let Ok(second) = self.walk(thread) else { continue };
            if self.memory.word(at) == Some(thread) {
                let frames = common(&first, second);
                return Ok(Some(Held { tid, frames }));
            }
        }
        Err(Unread::Torn)
    }

    /// The lock, if a thread waits for it. `all`: the threads that there are.
    pub(super) fn awaited_global_lock(&mut self, thread: Thread, all: &[Thread]) -> Option<AwaitedLock> {
        let ractor = self.ractor().ok()?;
        let list = ractor.checked_add(self.layout.queue)?;
        let waiting = threads::linked(&mut self.memory, list, WAITERS_MAX)?;
        let own = thread.state..thread.state.checked_add(THREAD_BYTES)?;
        if !waiting.iter().any(|link| own.contains(link)) {
            return None;
        }
        let address = ractor.checked_add(self.layout.running)?;
        let running = self.memory.word(address)?;
        let owner = all.iter().find(|one| one.state == running);
        let owner = owner.filter(|owner| owner.tid != thread.tid);
        Some(AwaitedLock {
            kind: LockKind::RubyGlobal,
            address,
            owner: owner.map(|owner| owner.tid),
        })
    }

    /// The address of the word that names who has the lock.
    fn lock_word(&mut self) -> Result<u64, Unread> {
        self.ractor()?
            .checked_add(self.layout.running)
            .ok_or(Unread::Torn)
    }

    /// The only ractor; without them the interpreter.
    fn ractor(&mut self) -> Result<u64, Unread> {
        let within = match self.layout.threads {
            Threads::List(_) => Some(self.interpreter),
            Threads::Ractors(ractors, link, _) => {
                let list = self.interpreter.checked_add(ractors).ok_or(Unread::Torn)?;
                let all = threads::linked(&mut self.memory, list, 2).ok_or(Unread::NoThread)?;
                match *all.as_slice() {
                    [only] => only.checked_sub(link),
                    _ => return Err(Unread::NoThread),
                }
            }
        };
        within.ok_or(Unread::Torn)
    }
}
