//! The calls that Perl is in.
//!
//! In: an interpreter. Out: its frames, innermost first. Calls, evaluated texts and loops are contexts on a stack; a callback from C
//! code begins another stack, which names the one before it. Each context keeps the statement from which it was entered: it is where
//! the function around it stands.

use super::Interpreter;
use crate::interpreted::Interpreted;
use crate::memory::{Memory, Source};
use holdup_evidence::{Frame, Language};
use std::collections::HashSet;
use std::sync::Arc;

/// Frames that are read. Deeper ones are recursion, and keep their innermost frames.
const FRAMES_MAX: usize = 512;

/// Contexts that are looked at, those of loops and blocks too, and stacks of them.
const CONTEXTS_MAX: usize = 16_384;
const STACKS_MAX: usize = 256;

/// Bytes of a path; a longer one is not believed.
const PATH_MAX: usize = 4096;

/// What the program outside of all functions is called, a text that is evaluated, and a file that another one loads.
const MAIN: &str = "(main)";
const EVALUATED: &str = "(eval)";
const LOADED: &str = "require";

/// In a stack of contexts: where they are, the stack before it, and which context is the innermost.
const STACK_CONTEXTS: u64 = 8;
const STACK_BEFORE: u64 = 16;
const STACK_INNERMOST: u64 = 32;

/// In a context: its kind and flags, the statement before, where it returns to, its function, what it has loaded.
const CONTEXT_KIND: usize = 0;
const CONTEXT_STATEMENT: usize = 16;
const CONTEXT_RETURN: usize = 48;
const CONTEXT_LOADED: usize = 64;
const CONTEXT_FUNCTION: usize = 72;
const CONTEXT_BYTES: usize = 104;

/// Kinds of contexts: a function, a format, something evaluated; of that a block.
const KIND_MASK: u64 = 15;
const FUNCTION: u64 = 9;
const FORMAT: u64 = 10;
const EVAL: u64 = 11;
const BLOCK: u64 = 0x40;

/// In a statement: its line and its file.
const STATEMENT_LINE: u64 = 36;
const STATEMENT_FILE: u64 = 48;

impl<S: Source> Interpreter<S> {
    /// The frames of the interpreter; `None` where it does not hold together.
    pub(super) fn walk(&mut self) -> Option<Vec<Interpreted>> {
        let mut frames = Vec::new();
        let mut statement = self.field(self.interpreter, self.layout.statement)?;
        let mut stack = self.field(self.interpreter, self.layout.contexts)?;
        let mut looked_at = 0;
        let mut met = HashSet::new();
        while met.len() < STACKS_MAX && met.insert(stack) {
            let innermost = self.memory.int(stack.checked_add(STACK_INNERMOST)?)?;
            let contexts = self.field(stack, STACK_CONTEXTS)?;
            let count = u64::try_from(i64::from(innermost.cast_signed()) + 1).ok()?;
            for number in (0..count).rev() {
                looked_at += 1;
                if frames.len() >= FRAMES_MAX || looked_at >= CONTEXTS_MAX {
                    return Some(frames);
                }
                let at = number.checked_mul(CONTEXT_BYTES as u64)?;
                let mut context = [0; CONTEXT_BYTES];
                self.memory.read(contexts.checked_add(at)?, &mut context)?;
                if let Some(name) = self.named(&context)? {
                    let entry = word(&context, CONTEXT_RETURN)? == 0;
                    frames.push(self.frame(name, statement, entry)?);
                    statement = word(&context, CONTEXT_STATEMENT)?;
                }
            }
            stack = self.field(stack, STACK_BEFORE)?;
            if stack == 0 {
                frames.push(self.frame(MAIN.to_owned(), statement, true)?);
                return Some(frames);
            }
        }
        None
    }

    /// What a context is called; `Some(None)` for a part of the function around it.
    fn named(&mut self, context: &[u8; CONTEXT_BYTES]) -> Option<Option<String>> {
        let kind = word(context, CONTEXT_KIND)?;
        Some(match kind & KIND_MASK {
            FUNCTION | FORMAT => {
                let function = word(context, CONTEXT_FUNCTION)?;
                Some(self.function_name(function)?)
            }
            EVAL if kind & BLOCK == 0 => {
                let loaded = word(context, CONTEXT_LOADED)? != 0;
                let name = if loaded { LOADED } else { EVALUATED };
                Some(name.to_owned())
            }
            _ => None,
        })
    }

    fn frame(&mut self, name: String, statement: u64, entry: bool) -> Option<Interpreted> {
        let line = self.memory.int(statement.checked_add(STATEMENT_LINE)?)?;
        let file = self.field(statement, STATEMENT_FILE)?;
        let file = match file {
            0 => None,
            at => Some(self.memory.c_text(at, PATH_MAX)?),
        };
        let frame = Frame {
            symbol: Some(name),
            line: (line > 0 && file.is_some()).then_some(line),
            file,
            language: Language::Perl,
            ..Frame::default()
        };
        Some(Interpreted {
            frame: Arc::new(frame),
            entry,
        })
    }

    fn field(&mut self, structure: u64, offset: u64) -> Option<u64> {
        field(&mut self.memory, structure, offset)
    }
}

/// A word of a structure.
pub(super) fn field<S: Source>(memory: &mut Memory<S>, structure: u64, offset: u64) -> Option<u64> {
    memory.word(structure.checked_add(offset)?)
}

fn word(bytes: &[u8], offset: usize) -> Option<u64> {
    let word = bytes.get(offset..offset.checked_add(8)?)?;
    Some(u64::from_le_bytes(word.try_into().ok()?))
}
