//! PHP, from outside.
//!
//! In: memory, and where its modules and what runs are. Out: the frames of the thread that runs scripts, innermost first, with
//! function, file and line. PHP 7.4 and 8.1 to 8.5 without threads are read, by the command line, FPM or within a web server; others
//! are refused with a reason ([`Refused`]). With or without OPcache: what it keeps is memory of the process as well.

mod frames;
mod versions;

#[cfg(test)]
mod tests;

pub use versions::{Refused, SYMBOLS, Version};

use crate::interpreted::{Interpreted, Unread};
use crate::memory::{Memory, Source};
use serde::{Deserialize, Serialize};
use versions::Layout;

/// The function that runs scripts. A frame of it stands for frames of PHP.
const EVALUATES: &str = "execute_ex";

/// Where PHP is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The address of `module_registry`.
    pub modules: u64,
    /// The address of `executor_globals`, where there is one for all threads.
    pub running: Option<u64>,
}

/// A PHP whose structures are known.
#[derive(Debug)]
pub struct Interpreter<S> {
    memory: Memory<S>,
    /// The address of what runs.
    running: u64,
    layout: Layout,
    /// Without threads of its own, PHP runs in the thread with which the process began.
    main: u32,
}

impl<S: Source> Interpreter<S> {
    /// Finds out how PHP's structures are laid out. `main`: the process's first thread, by its id in its own pid namespace.
    ///
    /// # Errors
    /// When it is of a version or build that is not read.
    pub fn find(source: S, place: Place, main: u32) -> Result<Interpreter<S>, Refused> {
        let mut memory = Memory::new(source);
        let layout = Layout::find(&mut memory, place)?;
        let running = place.running.ok_or(Refused::Implausible(layout.version))?;
        Ok(Interpreter {
            memory,
            running,
            layout,
            main,
        })
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.layout.version
    }

    /// The thread that runs scripts.
    #[must_use]
    pub fn main(&self) -> u32 {
        self.main
    }

    /// The frames of a thread, innermost first: none where no script runs.
    ///
    /// # Errors
    /// When it is no thread that runs scripts, or what was read does not hold together.
    pub fn frames(&mut self, tid: u32) -> Result<Vec<Interpreted>, Unread> {
        if tid != self.main {
            return Err(Unread::NoThread);
        }
        self.memory.forget();
        self.walk().ok_or(Unread::Torn)
    }
}

/// Whether a file may hold PHP: `php8.2`, `php-fpm8.2`, `libphp8.2.so`.
#[must_use]
pub fn may_be_in(file: &str) -> bool {
    file.strip_prefix("lib").unwrap_or(file).starts_with("php")
}

/// Whether a function runs scripts.
#[must_use]
pub fn evaluates(symbol: &str) -> bool {
    // A part that the compiler moved elsewhere is called `….cold`.
    symbol.split(['@', '.']).next() == Some(EVALUATES)
}
