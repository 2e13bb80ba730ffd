//! Ruby, from outside.
//!
//! In: memory, where some of Ruby's symbols are ([`SYMBOLS`]), and a thread id. Out: the frames of that thread, innermost first, with
//! function, file and line. Ruby 2.7, 3.1, 3.3 and 3.4 are read; other versions are refused with a reason ([`Refused`]).

mod code;
mod frames;
mod global_lock;
mod locks;
mod objects;
mod state;
mod threads;
mod versions;

#[cfg(test)]
mod tests;

pub use crate::interpreted::{Interpreted as RubyFrame, Unread};
pub use versions::{Refused, Version};

use crate::memory::{Memory, Source};
use code::Code;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use versions::Layout;

/// The exported symbols that are wanted: the version as text, a pointer to the interpreter (not in all builds), a function that reads
/// it, and a function that reads the table of names.
pub const SYMBOLS: [&str; 4] = [
    "ruby_version",
    "ruby_current_vm_ptr",
    "ruby_vm_at_exit",
    "rb_id2str",
];

/// The function that calls the one that executes, where it has a name.
const EXECUTES: [&str; 2] = ["rb_vm_exec", "vm_exec"];

/// A thread of Ruby, as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    /// Its id in its own pid namespace.
    pub tid: u32,
    /// Its address.
    state: u64,
}

/// Where an interpreter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The address of `ruby_version`.
    pub version: u64,
    /// The address of `ruby_current_vm_ptr`, if it is exported.
    pub interpreter: Option<u64>,
    /// The address of a function that reads it.
    pub reads_interpreter: Option<u64>,
    /// The address of a function that reads the table of names.
    pub reads_names: Option<u64>,
}

impl Place {
    /// By the addresses of [`SYMBOLS`], in their order; `None` without the first.
    #[must_use]
    pub fn of(addresses: &[Option<u64>]) -> Option<Place> {
        let at = |number| addresses.get(number).copied().flatten();
        Some(Place {
            version: at(0)?,
            interpreter: at(1),
            reads_interpreter: at(2),
            reads_names: at(3),
        })
    }
}

/// An interpreter whose structures are known.
#[derive(Debug)]
pub struct Interpreter<S> {
    memory: Memory<S>,
    layout: Layout,
    /// Where it is.
    interpreter: u64,
    /// Where the table of names has its parts.
    parts: Option<u64>,
    codes: HashMap<u64, Arc<Code>>,
    names: HashMap<u64, Arc<str>>,
    executor: Option<u64>,
}

impl<S: Source> Interpreter<S> {
    /// Finds out how an interpreter's structures are laid out.
    ///
    /// # Errors
    /// When it is of a version that is not read, or its structures are not where that version has them.
    pub fn find(source: S, place: Place) -> Result<Interpreter<S>, Refused> {
        let mut memory = Memory::new(source);
        let version = versions::read_version(&mut memory, place.version)?;
        let layout = Layout::of(version)?;
        let found = state::interpreter(&mut memory, &layout, &place);
        let interpreter = found.ok_or(Refused::NoState(version))?;
        let interpreter = interpreter.ok_or(Refused::NoThreads(version))?;
        threads::check(&mut memory, &layout, interpreter)?;
        let parts = state::names(&mut memory, &layout, &place);
        Ok(Interpreter {
            memory,
            layout,
            interpreter,
            parts,
            codes: HashMap::new(),
            names: HashMap::new(),
            executor: None,
        })
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.layout.version
    }

    /// An address within the function that executes Ruby code, once frames were read.
    #[must_use]
    pub fn executor(&self) -> Option<u64> {
        self.executor
    }

    /// The frames of a thread, innermost first. `tid`: its id in its own pid namespace.
    ///
    /// # Errors
    /// When it is no thread of Ruby, or what was read does not hold together.
    pub fn frames(&mut self, tid: u32) -> Result<Vec<RubyFrame>, Unread> {
        self.memory.forget();
        let threads = threads::all(&mut self.memory, &self.layout, self.interpreter);
        for thread in threads.ok_or(Unread::Torn)? {
            if threads::tid(&mut self.memory, &self.layout, thread) == Some(tid) {
                return self.walk(thread);
            }
        }
        Err(Unread::NoThread)
    }

    /// All threads of Ruby, for [`Interpreter::frames_of`]: it finds a thread faster than [`Interpreter::frames`] does.
    ///
    /// # Errors
    /// When what was read does not hold together.
    pub fn threads(&mut self) -> Result<Vec<Thread>, Unread> {
        self.memory.forget();
        let states = threads::all(&mut self.memory, &self.layout, self.interpreter);
        let mut threads = Vec::new();
        for state in states.ok_or(Unread::Torn)? {
            let tid = threads::tid(&mut self.memory, &self.layout, state);
            threads.extend(tid.map(|tid| Thread { tid, state }));
        }
        Ok(threads)
    }

    /// The frames of a thread that was found before, innermost first.
    ///
    /// # Errors
    /// When the thread has ended since, or what was read does not hold together.
    pub fn frames_of(&mut self, thread: Thread) -> Result<Vec<RubyFrame>, Unread> {
        self.memory.forget();
        let tid = threads::tid(&mut self.memory, &self.layout, thread.state);
        let of = thread.state.checked_add(self.layout.thread_interpreter);
        let of = of.and_then(|at| self.memory.word(at));
        if tid != Some(thread.tid) || of != Some(self.interpreter) {
            return Err(Unread::NoThread);
        }
        self.walk(thread.state)
    }
}

/// Whether a file may hold Ruby: the library, or a program that has it linked in.
#[must_use]
pub fn may_be_in(file: &str) -> bool {
    file.strip_prefix("lib").unwrap_or(file).starts_with("ruby")
}

/// Whether a function of the interpreter executes Ruby code.
#[must_use]
pub fn evaluates(symbol: &str) -> bool {
    symbol
        .split(['@', '.'])
        .next()
        .is_some_and(|bare| EXECUTES.contains(&bare))
}
