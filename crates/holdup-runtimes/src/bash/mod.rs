//! Bash, from outside.
//!
//! In: memory, and where Bash's symbols are. Out: the functions that a script is in, innermost first, with file and line. Bash keeps them in
//! three arrays that scripts can read too, `FUNCNAME`, `BASH_SOURCE` and `BASH_LINENO` ([`variables`]). Which command of the innermost
//! one runs is nowhere as a number once a program was started for it; it is found by its text ([`commands`]).

mod commands;
mod variables;

#[cfg(test)]
mod tests;

use crate::interpreted::{Interpreted, Unread};
use crate::memory::{Memory, Source};
use holdup_evidence::{Frame, Language};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The variables of all functions, without which it is no Bash; the text of the last command; the environment, which lies above the stack.
pub const SYMBOLS: [&str; 3] = ["global_variables", "the_printed_command", "shell_environment"];

/// The function that executes a command of a script. A frame of it stands for frames of the script.
const EXECUTES: &str = "execute_command";

/// Bytes of the name of a function or a file; a longer one is not believed.
const NAME_MAX: usize = 4096;

/// Where Bash is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The address of `global_variables`.
    pub variables: u64,
    /// The address of `the_printed_command`.
    pub printed: u64,
    /// The address of `shell_environment`.
    pub environment: u64,
}

/// Why frames of Bash are not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Refused {
    /// It starts: there are no variables so far.
    #[error("Bash has no variables yet")]
    NoVariables,
    /// The arrays are not where they are in versions that are known.
    #[error("the structures of this Bash are not known")]
    Unsupported,
    /// Its memory cannot be read.
    #[error("its memory cannot be read")]
    Memory,
}

impl Place {
    /// By the addresses of [`SYMBOLS`], in their order.
    #[must_use]
    pub fn of(addresses: &[Option<u64>]) -> Option<Place> {
        let at = |number: usize| addresses.get(number).copied().flatten();
        Some(Place {
            variables: at(0)?,
            printed: at(1)?,
            environment: at(2)?,
        })
    }
}

/// A Bash whose structures are known.
#[derive(Debug)]
pub struct Interpreter<S> {
    memory: Memory<S>,
    place: Place,
    /// Its only thread.
    main: u32,
}

impl<S: Source> Interpreter<S> {
    /// Finds out whether its structures are as they are known. `main`: its only thread, by its id in its own pid namespace.
    ///
    /// # Errors
    /// When it has not started, or its arrays are not where they should be.
    pub fn find(source: S, place: Place, main: u32) -> Result<Interpreter<S>, Refused> {
        let mut memory = Memory::new(source);
        let variables = memory.word(place.variables).ok_or(Refused::Memory)?;
        if variables == 0 {
            return Err(Refused::NoVariables);
        }
        let mut interpreter = Interpreter { memory, place, main };
        let calls = interpreter.calls();
        calls.map(|_| interpreter).ok_or(Refused::Unsupported)
    }

    /// Its only thread.
    #[must_use]
    pub fn main(&self) -> u32 {
        self.main
    }

    /// The frames of a thread, innermost first; none of a shell at its prompt, or with `-c`, outside of functions.
    ///
    /// # Errors
    /// When it is another thread, or what was read does not hold together.
    pub fn frames(&mut self, tid: u32) -> Result<Vec<Interpreted>, Unread> {
        if tid != self.main {
            return Err(Unread::NoThread);
        }
        self.memory.forget();
        let calls = self.calls().ok_or(Unread::Torn)?;
        let mut line = self.line();
        let last = calls.len().saturating_sub(1);
        let frame = |(number, call): (usize, variables::Call)| {
            let of_call = std::mem::replace(&mut line, call.called_from);
            let frame = Frame {
                symbol: Some(call.function),
                line: of_call.filter(|line| *line > 0 && call.file.is_some()),
                file: call.file,
                language: Language::Bash,
                ..Frame::default()
            };
            Interpreted {
                frame: Arc::new(frame),
                entry: number == last,
            }
        };
        Ok(calls.into_iter().enumerate().map(frame).collect())
    }

    fn field(&mut self, structure: u64, offset: u64) -> Option<u64> {
        self.memory.word(structure.checked_add(offset)?)
    }
}

/// Whether a file may hold Bash: `bash`, `bash-static`, `bash5`.
#[must_use]
pub fn may_be_in(file: &str) -> bool {
    let rest = file.strip_prefix("bash");
    rest.is_some_and(|rest| {
        rest.is_empty() || rest == "-static" || rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    })
}

/// Whether a function executes commands of a script.
#[must_use]
pub fn evaluates(symbol: &str) -> bool {
    symbol == EXECUTES
}
