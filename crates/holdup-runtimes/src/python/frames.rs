//! The frames of a thread.
//!
//! In: a thread's state. Out: its frames, innermost first, each with its code and its line. From 3.11 on, several frames
//! share one call of the evaluation function; the outermost of them is marked.

use super::code::Code;
use super::versions::{Entry, Layout, Place};
use super::{Interpreter, PythonFrame, Unread};
use crate::memory::{Memory, Source};
use holdup_evidence::{Frame, Language};
use std::collections::HashSet;
use std::sync::Arc;

/// Frames of a thread that are read. Deeper ones are recursion, and keep their innermost frames.
const FRAMES_MAX: usize = 512;

/// Code objects that are kept before all are forgotten.
const CODES_MAX: usize = 16_384;

impl<S: Source> Interpreter<S> {
    /// The frames of a thread's state, innermost first.
    pub(super) fn walk(&mut self, thread: u64) -> Result<Vec<PythonFrame>, Unread> {
        let layout = self.layout;
        let mut frames: Vec<PythonFrame> = Vec::new();
        let mut met = HashSet::new();
        let mut frame = innermost(&mut self.memory, &layout, thread).ok_or(Unread::Torn)?;
        while frame != 0 && frames.len() < FRAMES_MAX {
            if !met.insert(frame) {
                return Err(Unread::Torn);
            }
            match self.boundary(frame).ok_or(Unread::Torn)? {
                true => {
                    if let Some(last) = frames.last_mut() {
                        last.entry = true;
                    }
                }
                false => frames.push(self.frame(frame)?),
            }
            // Frames without code count, too: a chain of nothing else has an end as well.
            if met.len() >= FRAMES_MAX * 2 {
                break;
            }
            frame = at(&mut self.memory, frame, layout.previous).ok_or(Unread::Torn)?;
        }
        Ok(frames)
    }

    /// Whether a frame is none of Python's, but stands for a call of the evaluation function.
    fn boundary(&mut self, frame: u64) -> Option<bool> {
        let Entry::Before(owner, least) = self.layout.entry else {
            return Some(false);
        };
        Some(self.memory.byte(frame.checked_add(owner)?)? >= least)
    }

    pub(super) fn frame(&mut self, frame: u64) -> Result<PythonFrame, Unread> {
        let layout = self.layout;
        let entry = match layout.entry {
            Entry::Each => true,
            Entry::Flag(flag) => {
                let flag = frame.checked_add(flag).and_then(|at| self.memory.byte(at));
                flag.ok_or(Unread::Torn)? != 0
            }
            Entry::Before(..) => false,
        };
        let code = at(&mut self.memory, frame, layout.executable).ok_or(Unread::Torn)? & !layout.tag;
        let offset = self.offset(frame, code).ok_or(Unread::Torn)?;
        let code = self.code(code).ok_or(Unread::Torn)?;
        let frame = Frame {
            symbol: Some(code.name.to_string()),
            package: code.package.as_deref().map(str::to_owned),
            file: Some(code.file.to_string()),
            line: code.line(offset),
            language: Language::Python,
            ..Frame::default()
        };
        Ok(PythonFrame {
            frame: Arc::new(frame),
            entry,
        })
    }

    /// How far a frame is in its bytecode, bytes; `Some(None)` before the first instruction.
    fn offset(&mut self, frame: u64, code: u64) -> Option<Option<u64>> {
        match self.layout.place {
            Place::Index(offset, unit) => {
                let index = self.memory.int(frame.checked_add(offset)?)?.cast_signed();
                Some(u64::try_from(index).ok().map(|index| index * unit))
            }
            Place::Pointer(offset, bytecode) => {
                let pointer = at(&mut self.memory, frame, offset)?;
                Some(pointer.checked_sub(code.checked_add(bytecode)?))
            }
        }
    }

    /// A code object; kept, because stacks share them.
    fn code(&mut self, at: u64) -> Option<Arc<Code>> {
        let words = Code::words(&mut self.memory, &self.layout, at)?;
        if let Some(known) = self.codes.get(&at).filter(|known| known.words == words) {
            return Some(Arc::clone(known));
        }
        if !self.is_code(at)? {
            return None;
        }
        let mut code = Code::read(&mut self.memory, &self.layout, words)?;
        code.package = self.packages.of(&mut self.memory, &code.file);
        let code = Arc::new(code);
        if self.codes.len() >= CODES_MAX {
            self.codes.clear();
        }
        self.codes.insert(at, Arc::clone(&code));
        Some(code)
    }

    /// Whether an object is a code object, by the name of its type.
    fn is_code(&mut self, object: u64) -> Option<bool> {
        let kind = at(&mut self.memory, object, self.layout.kind)?;
        let name = at(&mut self.memory, kind, self.layout.kind_name)?;
        let mut bytes = [0; 5];
        self.memory.read(name, &mut bytes)?;
        Some(&bytes == b"code\0")
    }
}

/// A word of a structure.
fn at<S: Source>(memory: &mut Memory<S>, address: u64, offset: u64) -> Option<u64> {
    memory.word(address.checked_add(offset)?)
}

pub(super) fn innermost<S: Source>(memory: &mut Memory<S>, layout: &Layout, thread: u64) -> Option<u64> {
    let frame = at(memory, thread, layout.frame)?;
    match layout.frame_within {
        Some(within) => at(memory, frame, within),
        None => Some(frame),
    }
}
