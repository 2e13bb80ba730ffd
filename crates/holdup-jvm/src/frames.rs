//! Java's frames of a stack, between the native ones.
//!
//! In: the registers of a frame whose code is in no file, and the bytes of the stack that were copied. Out: the Java frames
//! from there on, innermost first, and the registers of what called the outermost of them.
//!
//! - An interpreted method's frame hangs on the frame pointer: the method and the place in its bytecodes are below it, the caller's stack
//!   pointer too.
//! - Compiled code has frames of a fixed size, with the caller's frame pointer and the return address at their end. So have stubs
//!   that call into the machine.
//! - Where native code calls Java there is a stub that keeps all registers which native code wants back.
//!
//! Only the stack's words are from the instant of the wait. Everything else (methods, debug information) does not move, and
//! is read when it is needed.

use crate::arch::{self, BYTECODE, FRAME_POINTER, KEPT, SAVED, THREAD};
use crate::code::{Code, Kind, place};
use crate::layout::Layout;
use crate::memory::{Memory, Source};
use crate::methods::Methods;
use crate::scopes;
use holdup_evidence::{Frame, Ns};
use holdup_symbols::{Registers, StackBytes};
use std::sync::Arc;

/// Frames that are walked through, those of stubs too. What is copied of a stack has room for fewer.
const STEPS_MAX: usize = 2048;

/// Frames of one stack that are reported: those put into others count, and in what a hostile program wrote each place has many.
const FRAMES_MAX: usize = 4096;

/// Below an interpreted frame's frame pointer: the caller's stack pointer, and the method; bytes.
const SENDER_SP: u64 = 8;
const METHOD: u64 = 24;

/// A part of a virtual thread's stack is in the heap, where it is not read.
const IN_HEAP: &str = "(frames of a virtual thread that are in the heap)";

/// A stack as it was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stack<'a> {
    pub(crate) bytes: StackBytes<'a>,
    /// When.
    pub(crate) at: Ns,
    /// It is a virtual thread's, in the heap: frame pointers of interpreted code count words from where they are kept.
    pub(crate) in_heap: bool,
}

/// What a walk came to.
#[derive(Debug, Default)]
pub struct Walk {
    /// Java's frames, innermost first.
    pub frames: Vec<Arc<Frame>>,
    /// Who called the outermost, where that is code of a file.
    pub caller: Option<Registers>,
    /// The thread, as Java code has it in a register.
    pub(crate) thread: Option<u64>,
    /// Its id in its own pid namespace, and what Java calls it.
    pub name: Option<(u32, Arc<str>)>,
}

/// What is asked, and what was learnt before.
pub(crate) struct Walker<'a, S> {
    pub(crate) memory: &'a mut Memory<S>,
    pub(crate) layout: &'a Layout,
    pub(crate) code: &'a mut Code,
    pub(crate) methods: &'a mut Methods,
}

impl<S: Source> Walker<'_, S> {
    /// Walks from a frame outwards, for as long as its code is the machine's own. `interrupted`: nothing was called from there.
    pub(crate) fn walk(&mut self, from: Registers, interrupted: bool, stack: &Stack<'_>) -> Walk {
        let mut walk = Walk {
            thread: from.saved[THREAD],
            ..Walk::default()
        };
        let mut now = from;
        let mut interrupted = interrupted;
        let call_return = self.memory.pointer(self.layout.interpreter.call_return);
        for _ in 0..STEPS_MAX {
            if walk.frames.len() >= FRAMES_MAX {
                return walk;
            }
            let next = if Some(now.ip) == call_return {
                entry(&now, &stack.bytes)
            } else if self
                .interpreter()
                .is_some_and(|(low, high)| (low..high).contains(&now.ip))
            {
                self.interpreted(&now, interrupted, stack, &mut walk.frames)
            } else {
                self.compiled(&now, interrupted, stack, &mut walk)
            };
            // Stacks grow down: what is below what it called is nonsense.
            let Some(next) = next.filter(|next| next.sp >= now.sp) else {
                return walk;
            };
            interrupted = false;
            now = next;
            if !self.code.holds(now.ip) {
                walk.caller = Some(now);
                return walk;
            }
        }
        walk
    }

    /// Where the interpreter's code is.
    fn interpreter(&mut self) -> Option<(u64, u64)> {
        let fields = &self.layout.interpreter;
        let queue = self.memory.pointer(fields.code)?;
        let begin = self.memory.pointer(queue.checked_add(fields.begin)?)?;
        let length = self.memory.int(queue.checked_add(fields.limit)?)?;
        Some((begin, begin.checked_add(u64::from(length))?))
    }

    fn interpreted(
        &mut self,
        now: &Registers,
        interrupted: bool,
        stack: &Stack<'_>,
        frames: &mut Vec<Arc<Frame>>,
    ) -> Option<Registers> {
        // The heaps are known from here on, so that it is known where Java ends.
        self.code.find(self.memory, self.layout, now.ip, stack.at);
        let fp = now.saved[FRAME_POINTER]?;
        let below = |bytes| stack.bytes.word(fp.checked_sub(bytes)?);
        let method = below(METHOD)?;
        // While it runs the pointer is in its register; as it calls it is put down.
        let pointer = [
            now.saved[BYTECODE].filter(|_| interrupted),
            below(self.layout.interpreter.bytecode),
        ];
        let bytecode = pointer
            .into_iter()
            .flatten()
            .find_map(|pointer| self.methods.bytecode(self.memory, self.layout, method, pointer));
        let frame = self
            .methods
            .frame(self.memory, self.layout, method, bytecode, stack.at)?;
        frames.push(frame);
        let ip = stack.bytes.word(fp.checked_add(8)?)?;
        // Interpreter and adapters move the caller's stack pointer; this is what it was.
        let sender = below(SENDER_SP)?;
        let sp = match stack.in_heap {
            true => from_words(fp, sender),
            false => sender,
        };
        Some(Registers {
            ip,
            sp,
            sp_known: true,
            saved: callers(self.link(stack, fp, ip), now),
        })
    }

    /// The frame pointer that is kept at an address for code that goes on at `ip`.
    pub(crate) fn link(&mut self, stack: &Stack<'_>, at: u64, ip: u64) -> Option<u64> {
        let kept = stack.bytes.word(at)?;
        let mut interpreted = || {
            self.interpreter()
                .is_some_and(|(low, high)| (low..high).contains(&ip))
        };
        Some(match stack.in_heap && interpreted() {
            true => from_words(at, kept),
            false => kept,
        })
    }

    fn compiled(
        &mut self,
        now: &Registers,
        interrupted: bool,
        stack: &Stack<'_>,
        walk: &mut Walk,
    ) -> Option<Registers> {
        let mut pc = now.ip;
        let blob = self.code.find(self.memory, self.layout, pc, stack.at)?;
        let distance = pc.checked_sub(blob.start)?;
        if let Kind::Compiled { .. } = blob.kind {
            let known = blob.frames.get(&distance).filter(|_| !interrupted).cloned();
            let frames = match known {
                Some(frames) => frames,
                None => {
                    let handler = self
                        .layout
                        .compiled
                        .deoptimise
                        .and_then(|start| place(self.memory, start, blob.start, blob.start));
                    let thrown_away = handler == Some(pc);
                    if thrown_away {
                        // The frame waits to be interpreted from where it was; that is kept in it.
                        let offset = blob.start.checked_add(self.layout.compiled.original_pc)?;
                        let offset = self.memory.int(offset)?;
                        pc = stack.bytes.word(now.sp.checked_add(u64::from(offset))?)?;
                    }
                    let frames: Arc<[Arc<Frame>]> = scopes::frames(
                        self.memory,
                        self.layout,
                        self.methods,
                        blob,
                        pc,
                        !interrupted,
                        stack.at,
                    )?
                    .into();
                    if !thrown_away && !interrupted {
                        let start = blob.start;
                        self.code.remember(start, distance, &frames);
                    }
                    frames
                }
            };
            walk.frames.extend(frames.iter().cloned());
        } else if let Some(continued) = self.continued(now, walk.thread) {
            walk.frames.push(Arc::new(Frame {
                symbol: Some(IN_HEAP.to_owned()),
                language: holdup_evidence::Language::Java,
                ..Frame::default()
            }));
            return Some(continued);
        }
        let blob = self.code.find(self.memory, self.layout, now.ip, stack.at)?;
        if interrupted && now.ip.checked_sub(blob.code)? < blob.complete {
            return caller_without_frame(now, &stack.bytes);
        }
        if blob.frame_bytes == 0 {
            return by_frame_pointer(now, &stack.bytes);
        }
        let sp = now.sp.checked_add(blob.frame_bytes)?;
        let ip = stack.bytes.word(sp.checked_sub(8)?)?;
        Some(Registers {
            ip,
            sp,
            sp_known: true,
            saved: callers(self.link(stack, sp.checked_sub(16)?, ip), now),
        })
    }

    /// Under the frames of a virtual thread that are on the stack, others are in the heap, and under those is the method
    /// that goes on with virtual threads: the thread tells where.
    fn continued(&mut self, now: &Registers, thread: Option<u64>) -> Option<Registers> {
        let entry = thread?.checked_add(self.layout.thread.continuation?)?;
        let entry = self.memory.pointer(entry)?;
        let ip = self
            .memory
            .pointer(self.layout.interpreter.continuation_return?)?;
        // What called is the entry itself, but for words of arguments.
        const BETWEEN: u64 = 16;
        let reached = now.sp <= entry && entry - now.sp <= BETWEEN;
        reached.then_some(Registers {
            ip,
            sp: entry,
            sp_known: true,
            saved: now.saved,
        })
    }
}

/// An address that is so many words, up or down, from another.
fn from_words(from: u64, words: u64) -> u64 {
    from.wrapping_add(words.wrapping_mul(8))
}

/// The registers of a caller of Java code: that keeps only the frame pointer for it, and has its thread in the same register.
fn callers(fp: Option<u64>, now: &Registers) -> [Option<u64>; SAVED] {
    let mut saved = [None; SAVED];
    saved[FRAME_POINTER] = fp;
    saved[THREAD] = now.saved[THREAD];
    saved
}

/// From the stub that calls Java to the native code that called it.
fn entry(now: &Registers, stack: &StackBytes<'_>) -> Option<Registers> {
    let fp = now.saved[FRAME_POINTER]?;
    let mut caller = by_frame_pointer(now, stack)?;
    for (bytes, register) in KEPT {
        caller.saved[register] = fp.checked_sub(bytes).and_then(|at| stack.word(at));
    }
    Some(caller)
}

fn by_frame_pointer(now: &Registers, stack: &StackBytes<'_>) -> Option<Registers> {
    let fp = now.saved[FRAME_POINTER].filter(|fp| *fp >= now.sp)?;
    Some(Registers {
        ip: stack.word(fp.checked_add(8)?)?,
        sp: fp.checked_add(16)?,
        sp_known: true,
        saved: callers(stack.word(fp), now),
    })
}

/// Interrupted as it began.
fn caller_without_frame(now: &Registers, stack: &StackBytes<'_>) -> Option<Registers> {
    let (ip, sp) = arch::return_address(now, stack)?;
    Some(Registers { ip, sp, ..*now })
}
