//! CPython, from outside.
//!
//! In: memory, where `_PyRuntime` is, and a thread id. Out: the frames of that thread, innermost first, with function, file
//! and line. CPython 3.8 to 3.14 is read; other versions are refused with a reason ([`Refused`]).

mod asyncio;
mod code;
mod frames;
mod global_lock;
mod locks;
mod objects;
mod objects_layout;
mod packages;
mod structures;
mod values;
mod versions;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;

pub use crate::interpreted::{Interpreted as PythonFrame, Unread};
pub use asyncio::{AsyncTask, AsyncTasks, FailedTask, TaskStatus};
pub use versions::{Refused, SYMBOLS, VERSION_MIN, Version, version_of_file};

use crate::memory::{Memory, Source};
use code::Code;
use packages::Packages;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use versions::Layout;

/// The function that evaluates Python code. A frame of it stands for frames of Python.
const EVALUATES: &str = "_PyEval_EvalFrameDefault";

/// A thread of Python, as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    /// Its id in its own pid namespace.
    pub tid: u32,
    /// The address of its state.
    state: u64,
}

/// Where an interpreter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The address of `_PyRuntime`.
    pub runtime: u64,
    /// The address of `Py_Version`, if it has one.
    pub number: Option<u64>,
    /// The version that its file's name says.
    pub named: Option<Version>,
}

/// An interpreter whose structures are known.
#[derive(Debug)]
pub struct Interpreter<S> {
    memory: Memory<S>,
    place: Place,
    layout: Layout,
    codes: HashMap<u64, Arc<Code>>,
    packages: Packages,
    /// Names of types.
    types: HashMap<u64, String>,
}

impl<S: Source> Interpreter<S> {
    /// Finds out how an interpreter's structures are laid out.
    ///
    /// # Errors
    /// When it is of a version that is not read, or its structures are not where that version has them.
    pub fn find(source: S, place: Place) -> Result<Interpreter<S>, Refused> {
        let mut memory = Memory::new(source);
        let layout = Layout::find(&mut memory, place.runtime, place.number, place.named)?;
        structures::check(&mut memory, &layout, place.runtime)?;
        Ok(Interpreter {
            memory,
            place,
            layout,
            codes: HashMap::new(),
            packages: Packages::default(),
            types: HashMap::new(),
        })
    }

    /// One whose structures are taken to be what they should be, whatever they are.
    #[cfg(test)]
    fn unchecked(source: S, place: Place) -> Result<Interpreter<S>, Refused> {
        let mut memory = Memory::new(source);
        let layout = Layout::find(&mut memory, place.runtime, place.number, place.named)?;
        Ok(Interpreter {
            memory,
            place,
            layout,
            codes: HashMap::new(),
            packages: Packages::default(),
            types: HashMap::new(),
        })
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.layout.version
    }

    /// The frames of a thread, innermost first. `tid`: its id in its own pid namespace.
    ///
    /// # Errors
    /// When it is no thread of Python, or what was read does not hold together.
    pub fn frames(&mut self, tid: u32) -> Result<Vec<PythonFrame>, Unread> {
        self.memory.forget();
        let threads = structures::threads(&mut self.memory, &self.layout, self.place.runtime);
        let threads = threads.ok_or(Unread::Torn)?;
        for thread in threads {
            if structures::tid(&mut self.memory, &self.layout, thread) == Some(tid) {
                return self.walk(thread);
            }
        }
        Err(Unread::NoThread)
    }

    /// All threads of Python, for [`Interpreter::frames_of`]: it finds a thread faster than [`Interpreter::frames`] does.
    ///
    /// # Errors
    /// When what was read does not hold together.
    pub fn threads(&mut self) -> Result<Vec<Thread>, Unread> {
        self.memory.forget();
        let states = structures::threads(&mut self.memory, &self.layout, self.place.runtime);
        let mut threads = Vec::new();
        for state in states.ok_or(Unread::Torn)? {
            let tid = structures::tid(&mut self.memory, &self.layout, state);
            threads.extend(tid.map(|tid| Thread { tid, state }));
        }
        Ok(threads)
    }

    /// The frames of a thread that was found before, innermost first.
    ///
    /// # Errors
    /// When the thread has ended since, or what was read does not hold together.
    pub fn frames_of(&mut self, thread: Thread) -> Result<Vec<PythonFrame>, Unread> {
        self.memory.forget();
        let tid = structures::tid(&mut self.memory, &self.layout, thread.state);
        if tid != Some(thread.tid) {
            return Err(Unread::NoThread);
        }
        self.walk(thread.state)
    }
}

/// Whether a file may hold CPython: the program, or the library where it is embedded.
#[must_use]
pub fn may_be_in(file: &str) -> bool {
    file.strip_prefix("lib").unwrap_or(file).starts_with("python3")
}

/// Whether a function of the interpreter evaluates Python code.
#[must_use]
pub fn evaluates(symbol: &str) -> bool {
    // A part that the compiler moved elsewhere is called `….cold`.
    symbol.split(['@', '.']).next() == Some(EVALUATES)
}
