//! V8 in Node.js, from outside.
//!
//! In: memory, where V8's constants for debuggers are ([`SYMBOLS`]), and the bytes of a stack that were copied. Out: the frames of
//! JavaScript between the native ones, innermost first, with function, file and line. V8 10.2 to 13.6 is read (Node 18 to 24); other
//! versions are refused with a reason ([`Refused`]).
//!
//! All code that V8 makes keeps a frame pointer. A frame of JavaScript has its function beside it; that leads to the function's name
//! and its script. The stack's words are those of the wait. What they lead to is read later, and each object is checked for its type.

mod constants;
mod listened;
mod objects;
mod positions;
mod reached;
mod requests;
mod suspended;

#[cfg(test)]
mod tests;

pub use constants::{Addresses, Refused, SYMBOLS, Version};
pub use requests::{Asleep, Place};
pub use suspended::{AllSuspended, Awaited, Suspended};

use crate::memory::{Memory, Source};
use constants::Constants;
use holdup_evidence::{Frame, Language};
use objects::{Function, Lines, Object, Objects};
use std::collections::HashMap;
use std::sync::Arc;

/// Frames that are walked through, those of stubs too. What is copied of a stack has room for fewer.
const STEPS_MAX: usize = 1024;

/// Types of frames that are believed: V8 has some thirty.
const TYPES_MAX: u64 = 64;

/// A copy of a stack's memory from an address upward.
#[derive(Debug, Clone, Copy)]
pub struct Stack<'a> {
    /// Address of the first byte.
    pub start: u64,
    /// What was copied.
    pub bytes: &'a [u8],
}

impl Stack<'_> {
    fn word(&self, address: u64) -> Option<u64> {
        let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let word = self.bytes.get(offset..offset.checked_add(8)?)?;
        Some(u64::from_le_bytes(word.try_into().ok()?))
    }
}

/// Where what called JavaScript goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// Its instruction.
    pub ip: u64,
    /// Its stack pointer.
    pub sp: u64,
    /// Its frame pointer.
    pub frame: u64,
}

/// What a walk came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// Frames of JavaScript, innermost first.
    pub frames: Vec<Arc<Frame>>,
    /// Who called the outermost, where the copy of the stack reaches that far.
    pub caller: Option<Caller>,
}

/// Whether a file may hold V8: the program, or the library of which it consists.
#[must_use]
pub fn may_be_in(file: &str) -> bool {
    matches!(file, "node" | "nodejs") || file.starts_with("libnode.so")
}

/// An engine whose structures are known.
#[derive(Debug)]
pub struct Engine<S> {
    memory: Memory<S>,
    constants: Constants,
    lines: Lines,
    /// Event loops, by the descriptor of their epoll.
    loops: HashMap<u32, u64>,
}

/// What stands beside a frame pointer.
enum Kind {
    /// A frame of V8's own, of this type.
    Stub(u64),
    /// A frame of JavaScript; what all closures of its function share.
    JavaScript(Object),
}

impl<S: Source> Engine<S> {
    /// Finds out how an engine's structures are laid out.
    ///
    /// # Errors
    /// When it is of a version that is not read, or lacks constants.
    pub fn find(source: S, addresses: &[u64]) -> Result<Engine<S>, Refused> {
        let mut memory = Memory::new(source);
        let constants = Constants::read(&mut memory, addresses)?;
        Ok(Engine {
            memory,
            constants,
            lines: Lines::default(),
            loops: HashMap::new(),
        })
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.constants.version
    }

    /// The frames from a frame pointer outwards, for as long as they are V8's; `None` where not even the first one is.
    pub fn walk(&mut self, frame: u64, stack: Stack<'_>) -> Option<Walk> {
        self.memory.forget();
        let mut walk = Walk::default();
        let mut frame = frame;
        for step in 0..STEPS_MAX {
            let ip = frame.checked_add(8).and_then(|at| stack.word(at));
            let (Some(above), Some(ip), Some(kind)) = (stack.word(frame), ip, self.kind(frame, stack)) else {
                return (step > 0).then_some(walk);
            };
            let entered = match kind {
                Kind::Stub(kind) => self.constants.entries.contains(&kind),
                Kind::JavaScript(shared) => {
                    walk.frames.extend(self.frame(frame, shared, stack));
                    false
                }
            };
            // Stacks grow down: a caller below is none.
            if above <= frame {
                return Some(walk);
            }
            if entered {
                walk.caller = frame.checked_add(16).map(|sp| Caller { ip, sp, frame: above });
                return Some(walk);
            }
            frame = above;
        }
        Some(walk)
    }

    fn objects(&mut self) -> Objects<'_, S> {
        Objects {
            memory: &mut self.memory,
            constants: &self.constants,
            lines: &mut self.lines,
        }
    }

    fn kind(&mut self, frame: u64, stack: Stack<'_>) -> Option<Kind> {
        let marker = stack.word(frame.checked_sub(self.constants.context)?)?;
        // A type is kept as twice its number, a context as a reference.
        if marker & 1 == 0 {
            return (1..TYPES_MAX)
                .contains(&(marker >> 1))
                .then_some(Kind::Stub(marker >> 1));
        }
        Object::of(marker)?;
        let closure = Object::of(stack.word(frame.checked_sub(self.constants.function)?)?)?;
        self.objects().shared(closure).map(Kind::JavaScript)
    }

    fn frame(&mut self, frame: u64, shared: Object, stack: Stack<'_>) -> Option<Arc<Frame>> {
        let function = self.objects().function(shared)?;
        let file = function.script.and_then(|script| self.objects().file(script));
        let script = function.script.filter(|_| file.is_some());
        let line = script.and_then(|script| match self.position(frame, stack) {
            Some(position) => self.objects().line(script, position),
            None => self.only_line(script, &function),
        });
        Some(Arc::new(Frame {
            symbol: Some(function.name),
            file,
            line,
            language: Language::JavaScript,
            ..Frame::default()
        }))
    }

    /// The line of a function that has but one. Compiled code has no place in the bytecode: in a longer one it may be anywhere.
    fn only_line(&mut self, script: Object, function: &Function) -> Option<u32> {
        let first = self.objects().line(script, function.begins?)?;
        let last = function.ends?.checked_sub(1)?;
        self.objects().line(script, last).filter(|last| *last == first)
    }

    /// Where an interpreted frame is, in characters from the beginning of its script.
    fn position(&mut self, frame: u64, stack: Stack<'_>) -> Option<u64> {
        let constants = self.constants;
        let bytecode = Object::of(stack.word(frame.checked_sub(constants.bytecode_array)?)?)?;
        let place = stack.word(frame.checked_sub(constants.bytecode_offset)?)?;
        let place = u64::try_from(self.objects().small(place)?).ok()?;
        // It is counted from the array's reference, which is one byte behind its address.
        let offset = place.checked_sub(constants.bytecode_data.checked_sub(1)?)?;
        let table = self.objects().table(bytecode)?;
        positions::position(&table, offset)
    }
}
