//! Coroutines: where each stands, and which one it awaits.
//!
//! In: the outermost coroutine of a task. Out: the frames from the innermost outward, and the lock that the innermost waits for, if it is
//! `acquire` of one of the library's.

use super::super::objects_layout::{Awaited, Coroutines};
use super::super::{Interpreter, PythonFrame};
use crate::memory::Source;
use holdup_evidence::Frame;
use std::collections::HashSet;
use std::sync::Arc;

/// Coroutines of a task.
const CHAIN_MAX: usize = 64;

/// Types of what awaits with a frame of its own, and of what stands for something else, to which its first word points.
const WITH_FRAMES: [&str; 3] = ["coroutine", "generator", "async_generator"];
const STAND_FOR: [&str; 4] = [
    "coroutine_wrapper",
    "async_generator_asend",
    "async_generator_athrow",
    "anext_awaitable",
];
const STANDS_FOR: u64 = 16;

/// Methods of the library in which a task waits for a lock, their first variable: file, and name with class.
const LOCKS: (&str, [&str; 2]) = ("/asyncio/locks.py", ["Lock.acquire", "Semaphore.acquire"]);

/// Where a task stands.
#[derive(Debug, Clone, Default)]
pub(in crate::python) struct Chain {
    /// Innermost first.
    pub(in crate::python) shown: Vec<PythonFrame>,
    /// The addresses of those frames.
    pub(in crate::python) frames: Vec<u64>,
    /// The lock that the innermost waits for.
    pub(in crate::python) lock: Option<u64>,
}

impl<S: Source> Interpreter<S> {
    /// The chain that begins with a coroutine.
    pub(in crate::python) fn chain(&mut self, coroutine: u64) -> Option<Chain> {
        let mut chain = Chain::default();
        let mut met = HashSet::new();
        let mut now = coroutine;
        while chain.frames.len() < CHAIN_MAX && now != 0 && met.insert(now) {
            let kind = self.type_name(now)?;
            if STAND_FOR.contains(&kind.as_str()) {
                now = self.at(now, STANDS_FOR)?;
                continue;
            }
            if !WITH_FRAMES.contains(&kind.as_str()) {
                break;
            }
            let Some((frame, suspended)) = self.frame_of_coroutine(now)? else {
                break;
            };
            chain.shown.push(self.named_frame(now, frame)?);
            chain.frames.push(frame);
            if !suspended {
                break;
            }
            now = self.awaited(frame)?;
        }
        chain.shown.reverse();
        chain.frames.reverse();
        let waits_for_lock = chain.shown.first().is_some_and(|one| {
            let (file, symbol) = (one.frame.file.as_deref(), one.frame.symbol.as_deref());
            file.is_some_and(|file| file.ends_with(LOCKS.0))
                && symbol.is_some_and(|symbol| LOCKS.1.contains(&symbol))
        });
        if waits_for_lock {
            chain.lock = chain.frames.first().and_then(|frame| self.first_variable(*frame));
        }
        Some(chain)
    }

    /// The frame of a coroutine, and whether it is suspended; `Some(None)` if it has ended.
    fn frame_of_coroutine(&mut self, coroutine: u64) -> Option<Option<(u64, bool)>> {
        match self.layout.objects?.coroutines {
            Coroutines::Pointer { frame, running } => {
                let frame = self.at(coroutine, frame)?;
                let runs = match running {
                    Some(running) => self.memory.byte(coroutine.checked_add(running)?)? != 0,
                    None => false,
                };
                Some((frame != 0).then_some((frame, !runs)))
            }
            Coroutines::Within { frame, state } => {
                let state = self.memory.byte(coroutine.checked_add(state)?)?.cast_signed();
                // Below 0 are those that are suspended or have not begun, above those that have ended.
                Some((state <= 0).then_some((coroutine.checked_add(frame)?, state < 0)))
            }
        }
    }

    /// A frame with the name that its coroutine has: to 3.10 that of the code lacks the class.
    fn named_frame(&mut self, coroutine: u64, frame: u64) -> Option<PythonFrame> {
        let mut read = self.frame(frame).ok()?;
        let qualified = self.layout.objects?.coroutine_name;
        let name = self.at(coroutine, qualified)?;
        if let Some(name) = self.str_at(name) {
            read.frame = Arc::new(Frame {
                symbol: Some(name),
                ..Frame::clone(&read.frame)
            });
        }
        read.entry = true;
        Some(read)
    }

    /// What a suspended frame awaits: the last of the values that it works on; 0 if it has none, because it has not begun.
    fn awaited(&mut self, frame: u64) -> Option<u64> {
        let (begin, count) = self.variables(frame)?;
        let last = match self.layout.objects?.awaited {
            Awaited::Top(top) => self.at(frame, top)?.checked_sub(8)?,
            Awaited::Depth(depth) => {
                let depth = self.memory.int(frame.checked_add(depth)?)?;
                begin.checked_add((count + u64::from(depth)).checked_sub(1)? * 8)?
            }
            Awaited::All(all) => {
                let all = self.memory.int(frame.checked_add(all)?)?;
                begin.checked_add(u64::from(all).checked_sub(1)? * 8)?
            }
        };
        match last < begin.checked_add(count * 8)? {
            true => Some(0),
            false => self.memory.word(last),
        }
    }
}
