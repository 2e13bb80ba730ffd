//! The calls that PHP is in.
//!
//! In: what runs. Out: its frames, innermost first. A call names its function and the instruction that it is at; the function names
//! its class and its file, the instruction its line. Functions written in C have neither file nor line.

use super::Interpreter;
use super::versions::Layout;
use crate::interpreted::Interpreted;
use crate::memory::{Memory, Source};
use holdup_evidence::{Frame, Language};
use std::collections::HashSet;
use std::sync::Arc;

/// Frames that are read. Deeper ones are recursion, and keep their innermost frames.
const FRAMES_MAX: usize = 512;

/// Generators that one stand-in stands for.
const DELEGATING_MAX: usize = 64;

/// Bytes of a name or path that are kept; more is cut off.
const TEXT_MAX: u64 = 1024;

/// Instructions of a function, at most. Generated tables have some hundred thousand.
const INSTRUCTIONS_MAX: u64 = 1 << 24;

/// What a script is called that was not included by another.
const MAIN: &str = "{main}";

/// What begins the name of a function without one. From 8.4 on it names the class itself.
const CLOSURE: &str = "{closure";

/// In a call: the instruction that it is at, its function, its object, flags, and its caller.
const INSTRUCTION: usize = 0;
const FUNCTION: usize = 24;
const OBJECT: usize = 32;
const FLAGS: usize = 40;
const CALLER: usize = 48;
const CALL_BYTES: usize = 56;

/// The flag of a call for which C code has called the function that runs scripts.
const FROM_C: u32 = 1 << 17;

/// In a function: its kind, its name and its class.
const FUNCTION_NAME: u64 = 8;
const FUNCTION_CLASS: u64 = 16;

/// In a class: its name. In an object: its class.
const CLASS_NAME: u64 = 8;
const OBJECT_CLASS: u64 = 16;

/// The class of generators.
const GENERATOR: &str = "Generator";

/// In an instruction: what it is about, its line, its kind; its size.
const ABOUT: u64 = 20;
const LINE: u64 = 24;
const KIND: u64 = 28;
const INSTRUCTION_BYTES: u64 = 32;

/// The kind of instruction that runs another file or a text, and what it may be about.
const INCLUDES: u8 = 73;
const WAYS: [(u32, &str); 5] = [
    (1, "eval"),
    (2, "include"),
    (4, "include_once"),
    (8, "require"),
    (16, "require_once"),
];

/// In a text: its type, its length, its bytes. What all texts have as their type.
const TEXT_TYPE: u64 = 4;
const TEXT_LENGTH: u64 = 16;
const TEXT_BYTES: u64 = 24;
const TEXT: u32 = 6;
const TYPE_MASK: u32 = 15;

/// What a function's code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Code {
    /// C.
    Own,
    /// A script, or a text that was run.
    Script,
}

/// A call.
#[derive(Debug, Clone, Copy)]
struct Call {
    instruction: u64,
    function: u64,
    object: u64,
    flags: u32,
    caller: u64,
}

impl<S: Source> Interpreter<S> {
    /// The frames of what runs; `None` where it does not hold together.
    pub(super) fn walk(&mut self) -> Option<Vec<Interpreted>> {
        let mut frames = Vec::new();
        let mut met = HashSet::new();
        let mut at = self.memory.word(self.running.checked_add(self.layout.current)?)?;
        while at != 0 && frames.len() < FRAMES_MAX && met.len() < FRAMES_MAX * 2 {
            if !met.insert(at) {
                return None;
            }
            let call = self.call(at)?;
            if call.function == 0 {
                for generator in self.delegating(at, call)? {
                    let call = self.call(generator)?;
                    frames.extend(self.frame(call, false)?);
                }
            } else {
                frames.extend(self.frame(call, call.flags & FROM_C != 0)?);
            }
            at = call.caller;
        }
        frames.truncate(FRAMES_MAX);
        Some(frames)
    }

    fn call(&mut self, at: u64) -> Option<Call> {
        let mut bytes = [0; CALL_BYTES];
        self.memory.read(at, &mut bytes)?;
        let word = |offset: usize| {
            let word = bytes.get(offset..offset + 8)?;
            Some(u64::from_le_bytes(word.try_into().ok()?))
        };
        Some(Call {
            instruction: word(INSTRUCTION)?,
            function: word(FUNCTION)?,
            object: word(OBJECT)?,
            flags: u32::try_from(word(FLAGS)? & u64::from(u32::MAX)).ok()?,
            caller: word(CALLER)?,
        })
    }

    /// The calls of the generators that a stand-in stands for, innermost first: each delegates to the one before it, and the first to
    /// the one that runs. Another call without a function stands for none.
    fn delegating(&mut self, at: u64, call: Call) -> Option<Vec<u64>> {
        let Layout {
            own_call,
            parent,
            stand_in,
            ..
        } = self.layout;
        if call.object == 0 || call.object.checked_add(stand_in) != Some(at) {
            return Some(Vec::new());
        }
        let class = self.memory.word(call.object.checked_add(OBJECT_CLASS)?)?;
        if self.class_name(class)? != GENERATOR {
            return Some(Vec::new());
        }
        let mut calls = Vec::new();
        let mut generator = call.object;
        while calls.len() < DELEGATING_MAX {
            let inner = self.memory.word(generator.checked_add(parent)?)?;
            if inner == 0 {
                calls.reverse();
                return Some(calls);
            }
            calls.push(self.memory.pointer(generator.checked_add(own_call)?)?);
            generator = inner;
        }
        None
    }

    /// A call as a frame; `Some(None)` for a function of PHP's own that has no name. `entry`: whether C code has called it.
    fn frame(&mut self, call: Call, entry: bool) -> Option<Option<Interpreted>> {
        let code = match self.memory.byte(call.function)? {
            1 => Code::Own,
            2 | 4 => Code::Script,
            _ => return None,
        };
        let name = self.memory.word(call.function.checked_add(FUNCTION_NAME)?)?;
        let name = match (name, code) {
            (0, Code::Own) => return Some(None),
            (0, Code::Script) => self.script(call, entry)?,
            (name, _) => self.function(call.function, name)?,
        };
        let (mut file, mut line) = (None, None);
        if code == Code::Script {
            let at = call.function.checked_add(self.layout.file)?;
            let at = self.memory.pointer(at)?;
            file = Some(text(&mut self.memory, at)?);
            line = self.line(call)?;
        }
        let frame = Frame {
            symbol: Some(name),
            file,
            line,
            language: Language::Php,
            ..Frame::default()
        };
        Some(Some(Interpreted {
            frame: Arc::new(frame),
            // C code calls functions of C without the function that runs scripts.
            entry: entry && code == Code::Script,
        }))
    }

    /// A function's name with its class.
    fn function(&mut self, function: u64, name: u64) -> Option<String> {
        let name = text(&mut self.memory, name)?;
        let class = self.memory.word(function.checked_add(FUNCTION_CLASS)?)?;
        if class == 0 {
            return Some(name);
        }
        let bare = name.rsplit('\\').next().unwrap_or(&name);
        if name.starts_with(CLOSURE) && name != format!("{CLOSURE}}}") {
            return Some(name);
        }
        let bare = if bare.starts_with(CLOSURE) { bare } else { &name };
        Some(format!("{}::{bare}", self.class_name(class)?))
    }

    /// What a script without a function is called: how it was included.
    fn script(&mut self, call: Call, entry: bool) -> Option<String> {
        if entry || call.caller == 0 {
            return Some(MAIN.to_owned());
        }
        let includes = self.call(call.caller)?.instruction;
        let way = match includes {
            0 => None,
            at if self.memory.byte(at.checked_add(KIND)?)? == INCLUDES => {
                Some(self.memory.int(at.checked_add(ABOUT)?)?)
            }
            _ => None,
        };
        let named = WAYS.iter().find(|(number, _)| Some(*number) == way);
        Some(named.map_or(MAIN, |(_, name)| name).to_owned())
    }

    fn class_name(&mut self, class: u64) -> Option<String> {
        let name = self.memory.pointer(class.checked_add(CLASS_NAME)?)?;
        text(&mut self.memory, name)
    }

    /// The line that a call is at; `Some(None)` where its instruction is none of the function's: it handles an exception.
    fn line(&mut self, call: Call) -> Option<Option<u32>> {
        let first = call.function.checked_add(self.layout.instructions)?;
        let first = self.memory.pointer(first)?;
        let behind = call.instruction.checked_sub(first);
        let within = |behind: &u64| {
            behind.is_multiple_of(INSTRUCTION_BYTES) && behind / INSTRUCTION_BYTES < INSTRUCTIONS_MAX
        };
        if behind.filter(within).is_none() {
            return Some(None);
        }
        let line = self.memory.int(call.instruction.checked_add(LINE)?)?;
        Some((line > 0).then_some(line))
    }
}

/// A text of PHP, up to a byte of zero: what follows one in the name of a class without one is of no use.
fn text<S: Source>(memory: &mut Memory<S>, at: u64) -> Option<String> {
    if memory.int(at.checked_add(TEXT_TYPE)?)? & TYPE_MASK != TEXT {
        return None;
    }
    let length = memory.word(at.checked_add(TEXT_LENGTH)?)?.min(TEXT_MAX);
    let text = memory.text(at.checked_add(TEXT_BYTES)?, usize::try_from(length).ok()?)?;
    let text = text.split('\0').next().unwrap_or_default();
    (!text.is_empty()).then(|| text.to_owned())
}
