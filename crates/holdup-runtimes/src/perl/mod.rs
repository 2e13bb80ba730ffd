//! Perl, from outside.
//!
//! In: memory, and where Perl's symbols are. Out: the frames of the process's first thread, innermost first, with function, file and
//! line. Perl 5.32 to 5.40 is read where it was built with threads, as distributions build it; others are refused with a reason
//! ([`Refused`]).

mod frames;
mod names;
mod versions;

#[cfg(test)]
mod tests;

pub use versions::{Refused, SYMBOLS, Version};

use crate::interpreted::{Interpreted, Unread};
use crate::memory::{Memory, Source};
use serde::{Deserialize, Serialize};
use versions::Layout;

/// The function that runs Perl code. A frame of it stands for frames of Perl.
const EVALUATES: &str = "Perl_runops_standard";

/// Where Perl is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The address of `PL_version`.
    pub version: u64,
    /// The address of `PL_curinterp`.
    pub interpreter: u64,
    /// Whether it was built with threads.
    pub threads: bool,
}

impl Place {
    /// By the addresses of [`SYMBOLS`], in their order.
    #[must_use]
    pub fn of(addresses: &[Option<u64>]) -> Option<Place> {
        let at = |number: usize| addresses.get(number).copied().flatten();
        Some(Place {
            version: at(0)?,
            interpreter: at(1)?,
            threads: at(2).is_some(),
        })
    }
}

/// A Perl whose structures are known.
#[derive(Debug)]
pub struct Interpreter<S> {
    memory: Memory<S>,
    interpreter: u64,
    layout: Layout,
    /// The thread to which the interpreter belongs.
    main: u32,
}

impl<S: Source> Interpreter<S> {
    /// Finds out how Perl's structures are laid out. `main`: the process's first thread, by its id in its own pid namespace.
    ///
    /// # Errors
    /// When it is of a version or build that is not read, or has not started.
    pub fn find(source: S, place: Place, main: u32) -> Result<Interpreter<S>, Refused> {
        let mut memory = Memory::new(source);
        let layout = Layout::find(&mut memory, place)?;
        let interpreter = memory.word(place.interpreter).ok_or(Refused::Memory)?;
        if interpreter == 0 {
            return Err(Refused::NoInterpreter);
        }
        Ok(Interpreter {
            memory,
            interpreter,
            layout,
            main,
        })
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.layout.version
    }

    /// The thread that has this interpreter. Each other thread of Perl has one of its own, which is not read.
    #[must_use]
    pub fn main(&self) -> u32 {
        self.main
    }

    /// The frames of a thread, innermost first.
    ///
    /// # Errors
    /// When it is not the first thread, or what was read does not hold together.
    pub fn frames(&mut self, tid: u32) -> Result<Vec<Interpreted>, Unread> {
        if tid != self.main {
            return Err(Unread::NoThread);
        }
        self.memory.forget();
        self.walk().ok_or(Unread::Torn)
    }
}

/// Whether a file may hold Perl: `perl`, `perl5.36.0`, `libperl.so.5.36`.
#[must_use]
pub fn may_be_in(file: &str) -> bool {
    file.strip_prefix("lib").unwrap_or(file).starts_with("perl")
}

/// Whether a function runs Perl code.
#[must_use]
pub fn evaluates(symbol: &str) -> bool {
    // A part that the compiler moved elsewhere is called `….cold`.
    symbol.split(['@', '.']).next() == Some(EVALUATES)
}
