//! The frames of a thread.
//!
//! In: a thread. Out: its frames, innermost first: methods and blocks of Ruby with file and line, and methods that are written in C with
//! their name. Several frames share one call of the function that executes; the outermost of them is marked.

use super::code::{self, Code};
use super::objects::{self, Kind};
use super::state::{NAMES_IN_PART, WORDS_A_NAME};
use super::{Interpreter, RubyFrame, Unread, threads};
use crate::memory::Source;
use holdup_evidence::{Frame, Language};
use std::sync::Arc;

/// Frames of a thread that are read. Deeper ones are recursion, and keep their innermost frames.
const FRAMES_MAX: usize = 512;

/// Frames that are none of the program's are between them.
const STEPS_MAX: usize = FRAMES_MAX * 4;

/// Code that is kept before all is forgotten.
const CODES_MAX: usize = 16_384;

/// Names of methods written in C that are kept.
const NAMES_MAX: usize = 16_384;

/// Offsets in a control frame, of all versions.
const PC: u64 = 0;
const CODE: u64 = 16;
const ENVIRONMENT: u64 = 32;

/// In words before the environment: the method. The flags are where it points to.
const METHOD: u64 = 16;

/// What a frame's flags say: its kind, that it is written in C, and that the function that executes ends with it.
const KIND: u64 = 0x7fff_0001;
const METHOD_IN_C: u64 = 0x5555_0001;
const IN_C: u64 = 0x80;
const FINISH: u64 = 0x20;

/// Where the method is in an object with variables, its definition in a method, and its name in that.
const METHOD_OF_VARIABLES: u64 = 8;
const DEFINITION: u64 = 16;
const NAME: u64 = 32;

/// Where the kind of a name ends.
const NAME_SHIFT: u32 = 4;

impl<S: Source> Interpreter<S> {
    /// The frames of a thread, innermost first.
    pub(super) fn walk(&mut self, thread: u64) -> Result<Vec<RubyFrame>, Unread> {
        let layout = self.layout;
        let stack = threads::stack(&mut self.memory, &layout, thread).ok_or(Unread::Torn)?;
        let mut frames: Vec<RubyFrame> = Vec::new();
        let mut at = stack.innermost;
        let mut replaced = false;
        for _ in 0..STEPS_MAX {
            if at >= stack.end || frames.len() >= FRAMES_MAX {
                break;
            }
            if let Some((frame, in_place)) = self.frame(at).ok_or(Unread::Torn)? {
                match frames.last_mut() {
                    Some(last) if replaced => last.entry |= frame.entry,
                    _ => frames.push(frame),
                }
                replaced = in_place;
            }
            at = at.checked_add(layout.frame).ok_or(Unread::Torn)?;
        }
        Ok(frames)
    }

    /// A frame, and whether it stands for the next one, too; `Some(None)` where it is none of the program's.
    fn frame(&mut self, at: u64) -> Option<Option<(RubyFrame, bool)>> {
        let environment = self.memory.word(at.checked_add(ENVIRONMENT)?)?;
        let flags = self.memory.word(environment)?;
        if flags & IN_C != 0 {
            let named = flags & KIND == METHOD_IN_C;
            return Some(named.then(|| (self.in_c(environment), false)));
        }
        let pc = self.memory.word(at.checked_add(PC)?)?;
        let code = self.memory.word(at.checked_add(CODE)?)?;
        // The first frame of a thread has neither.
        if pc == 0 || code == 0 {
            return Some(None);
        }
        let code = self.code(code)?;
        // The frame of the program's outermost variables never begins.
        if pc == code.encoded() {
            return Some(None);
        }
        let frame = Frame {
            symbol: Some(code.name.to_string()),
            file: Some(code.file.to_string()),
            line: code::line(&mut self.memory, &self.layout, &code, pc),
            language: Language::Ruby,
            ..Frame::default()
        };
        let frame = RubyFrame {
            frame: Arc::new(frame),
            entry: flags & FINISH != 0,
        };
        Some(Some((frame, code.in_place)))
    }

    /// A method that is written in C. Its name may not be found, but that it is there is known.
    fn in_c(&mut self, environment: u64) -> RubyFrame {
        let frame = Frame {
            symbol: self.method(environment).map(|name| name.to_string()),
            language: Language::Ruby,
            ..Frame::default()
        };
        RubyFrame {
            frame: Arc::new(frame),
            entry: false,
        }
    }

    /// The name of the method of a frame.
    fn method(&mut self, environment: u64) -> Option<Arc<str>> {
        let mut method = self.memory.word(environment.checked_sub(METHOD)?)?;
        if objects::is(&mut self.memory, method, Kind::Variables)? {
            method = self.memory.word(method.checked_add(METHOD_OF_VARIABLES)?)?;
        }
        if !objects::is(&mut self.memory, method, Kind::Method)? {
            return None;
        }
        let definition = self.memory.pointer(method.checked_add(DEFINITION)?)?;
        let name = self.memory.word(definition.checked_add(NAME)?)?;
        if let Some(known) = self.names.get(&name) {
            return Some(Arc::clone(known));
        }
        let text: Arc<str> = self.name(name)?.into();
        if self.names.len() >= NAMES_MAX {
            self.names.clear();
        }
        self.names.insert(name, Arc::clone(&text));
        Some(text)
    }

    /// The text of a name, by the table of all names.
    fn name(&mut self, name: u64) -> Option<String> {
        let number = match name <= self.layout.last_operator {
            true => name,
            false => name >> NAME_SHIFT,
        };
        let parts = self.memory.word(self.parts?)?;
        let (begin, length) = objects::array(&mut self.memory, &self.layout, parts)?;
        let part = number / NAMES_IN_PART;
        if part >= length {
            return None;
        }
        let part = self.memory.word(begin.checked_add(part * 8)?)?;
        let (begin, length) = objects::array(&mut self.memory, &self.layout, part)?;
        let place = number % NAMES_IN_PART * WORDS_A_NAME;
        if place >= length {
            return None;
        }
        let text = self.memory.word(begin.checked_add(place * 8)?)?;
        objects::text(&mut self.memory, &self.layout, text).filter(|text| !text.is_empty())
    }

    /// The code of a frame; kept, because stacks share it.
    fn code(&mut self, at: u64) -> Option<Arc<Code>> {
        if !objects::is(&mut self.memory, at, Kind::Code)? {
            return None;
        }
        let words = Code::words(&mut self.memory, at)?;
        if let Some(known) = self.codes.get(&at).filter(|known| known.words == words) {
            return Some(Arc::clone(known));
        }
        let code = Arc::new(Code::read(&mut self.memory, &self.layout, words)?);
        // All code is executed by one function.
        self.executor = self.executor.or_else(|| code::executor(&mut self.memory, &code));
        if self.codes.len() >= CODES_MAX {
            self.codes.clear();
        }
        self.codes.insert(at, Arc::clone(&code));
        Some(code)
    }
}
