//! The global lock of an interpreter, and who has it.
//!
//! In: an interpreter. Out: the thread that has its lock, and in which functions it is. That thread mostly runs meanwhile, so its frames
//! are read twice, and those count that were there both times, from the outermost inward.

use super::{Interpreter, Unread, structures};
use crate::interpreted::{Held, common};
use crate::memory::Source;

/// Attempts to read a thread that runs: each may find its innermost frame half made.
const TRIES: usize = 4;

impl<S: Source> Interpreter<S> {
    /// The thread that has the global lock; `None` where nobody has it.
    ///
    /// # Errors
    /// When there is only one thread, for which nobody waits; when the lock changed hands during each attempt, or what was read does
    /// not hold together.
    pub fn holder(&mut self) -> Result<Option<Held>, Unread> {
        self.memory.forget();
        let (layout, runtime) = (self.layout, self.place.runtime);
        if !structures::has_several(&mut self.memory, &layout, runtime).ok_or(Unread::Torn)? {
            return Err(Unread::NoThread);
        }
        for _ in 0..TRIES {
            self.memory.forget();
            let Some(state) = self.holder_state().ok_or(Unread::Torn)? else {
                return Ok(None);
            };
            let tid = structures::tid(&mut self.memory, &self.layout, state).ok_or(Unread::Torn)?;
            let Ok(first) = self.walk(state) else { continue };
            self.memory.forget();
            let Ok(second) = self.walk(state) else { continue };
            if self.holder_state() == Some(Some(state)) {
                let frames = common(&first, second);
                return Ok(Some(Held { tid, frames }));
            }
        }
        Err(Unread::Torn)
    }

    /// The state of the thread that has the first interpreter's lock; `Some(None)` where it is free.
    fn holder_state(&mut self) -> Option<Option<u64>> {
        let (layout, runtime) = (self.layout, self.place.runtime);
        let place = layout.global_lock;
        let lock = if place.of_interpreter {
            let interpreter = self.memory.pointer(runtime.checked_add(layout.interpreters)?)?;
            self.memory.pointer(interpreter.checked_add(place.offset)?)?
        } else {
            runtime.checked_add(place.offset)?
        };
        match self.memory.int(lock.checked_add(place.locked)?)? {
            1 => self
                .memory
                .word(lock.checked_add(place.holder)?)
                .map(|state| (state != 0).then_some(state)),
            // It is not made yet, or not used: a build without it.
            _ => Some(None),
        }
    }
}
