//! Frames of JavaScript in Node.js, between the native ones of a stack.
//!
//! In: a frame pointer in code of V8, from the walker of stacks, and the bytes of the stack that were copied. Out: the frames of
//! JavaScript, and from where the walker goes on. Their names are read from the process's memory. That can block, so a child does it
//! that can be left behind ([`super::behind`]). It keeps what it learnt of each engine.

use super::behind::{Answerer, Readers};
use holdup_detached::Bytes;
use holdup_evidence::arch::{FRAME_POINTER, SAVED};
use holdup_evidence::{Frame, NotMeasured};
use holdup_jvm::Running;
use holdup_proc::memory;
use holdup_runtimes::node::{Caller, Engine, Refused, SYMBOLS, Stack, may_be_in};
use holdup_symbols::{Asked, Mapped, ProcessKey, Registers, Runtime, Walked};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Engines that are known at a time, and that a child keeps; then all of the child's are forgotten.
const ENGINES_MAX: usize = 256;
const KEPT: usize = 16;

/// Frames that are kept to be shared by the stacks that have them; then they are gathered anew.
const FRAMES_MAX: usize = 65_536;

/// Of the stack, so much below the frame pointer is sent, bytes.
const BELOW: u64 = 256;

/// So many processes are named in a sentence.
const NAMED_MAX: usize = 6;

/// All of them. Clones are of the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Engines(Arc<Mutex<Known>>);

#[derive(Debug)]
struct Known {
    readers: Readers<Question, Answer>,
    of: HashMap<ProcessKey, Which>,
    /// How many were found.
    found: u32,
    /// Those that came so far: most stacks have the same.
    frames: HashSet<Arc<Frame>>,
    refused: BTreeMap<String, BTreeSet<u32>>,
}

/// An engine.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Which {
    pid: u32,
    /// No other has it.
    number: u32,
    addresses: Vec<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Question {
    which: Which,
    frame: u64,
    start: u64,
    bytes: Bytes,
}

#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    /// Frames, and what called the outermost: instruction, stack pointer, frame pointer.
    Walk(Vec<Arc<Frame>>, Option<(u64, u64, u64)>),
    /// It is no frame of V8.
    Nothing,
    Refused(Refused),
}

impl Default for Known {
    fn default() -> Known {
        Known {
            readers: Readers::new(answerer),
            of: HashMap::new(),
            found: 0,
            frames: HashSet::new(),
            refused: BTreeMap::new(),
        }
    }
}

impl Engines {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Processes whose memory could not be read in time.
    pub(super) fn stuck(&self) -> Vec<u32> {
        self.known().readers.stuck().collect()
    }

    /// Whose frames were refused, and why.
    pub(super) fn not_measured(&self) -> Vec<NotMeasured> {
        let known = self.known();
        let each = known.refused.iter().map(|(why, pids)| {
            let named: Vec<String> = pids.iter().take(NAMED_MAX).map(u32::to_string).collect();
            let more = match pids.len().saturating_sub(NAMED_MAX) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            NotMeasured {
                what: format!(
                    "JavaScript functions in stacks of process {}{more}",
                    named.join(", ")
                ),
                why: why.clone(),
                fix: "Node.js 18 to 24 is read; causes and times are complete".to_owned(),
            }
        });
        each.collect()
    }
}

impl Runtime for Engines {
    fn is_library(&self, name: &str) -> bool {
        may_be_in(name)
    }

    fn has_code_in_files(&self) -> bool {
        true
    }

    fn symbols(&self) -> &'static [&'static str] {
        &SYMBOLS
    }

    fn begin(&mut self, mapped: Mapped<'_>) {
        let mut known = self.known();
        // A program that only calls the library has no engine of its own.
        if known.of.len() < ENGINES_MAX && mapped.symbols.iter().any(|address| *address != 0) {
            let which = Which {
                pid: mapped.pid,
                number: known.found,
                addresses: mapped.symbols.to_vec(),
            };
            known.found = known.found.wrapping_add(1);
            known.of.insert(mapped.process, which);
        }
    }

    fn walk(&mut self, asked: &Asked<'_>) -> Option<Walked> {
        let mut known = self.known();
        let which = known.of.get(&asked.process)?.clone();
        let frame = asked.registers.saved[FRAME_POINTER]?;
        let start = asked.stack.start.max(frame.saturating_sub(BELOW));
        let skipped = usize::try_from(start - asked.stack.start).ok()?;
        let bytes = Bytes(asked.stack.bytes.get(skipped..)?.to_vec());
        let pid = which.pid;
        let question = Question {
            which,
            frame,
            start,
            bytes,
        };
        match known.readers.ask(pid, question)? {
            Answer::Walk(frames, caller) => Some(Walked {
                frames: frames.into_iter().map(|frame| known.shared(frame)).collect(),
                caller: caller.map(|(ip, sp, frame)| {
                    let mut saved = [None; SAVED];
                    saved[FRAME_POINTER] = Some(frame);
                    Registers {
                        ip,
                        sp,
                        sp_known: true,
                        saved,
                    }
                }),
                thread: None,
            }),
            Answer::Nothing => None,
            Answer::Refused(refused) => {
                known.of.remove(&asked.process);
                known.refused.entry(refused.to_string()).or_default().insert(pid);
                None
            }
        }
    }

    fn exit(&mut self, process: ProcessKey) {
        self.known().of.remove(&process);
    }
}

impl Known {
    /// The frame that equal ones share.
    fn shared(&mut self, frame: Arc<Frame>) -> Arc<Frame> {
        if let Some(known) = self.frames.get(&frame) {
            return Arc::clone(known);
        }
        if self.frames.len() >= FRAMES_MAX {
            self.frames.clear();
        }
        self.frames.insert(Arc::clone(&frame));
        frame
    }
}

/// Engines that a child has found out about, by number.
type Kept = HashMap<u32, Engine<Running>>;

/// What a child does.
fn answerer() -> Answerer<Question, Answer> {
    let mut kept = Kept::new();
    Box::new(move |question| match answer(&mut kept, &question) {
        Ok(answer) => answer,
        Err(refused) => Answer::Refused(refused),
    })
}

fn answer(kept: &mut Kept, question: &Question) -> Result<Answer, Refused> {
    let Which {
        pid,
        number,
        addresses,
    } = &question.which;
    let first = addresses.iter().find(|address| **address != 0);
    // Where reading memory would end this process, it is not tried.
    if first.is_none_or(|first| memory::is_refused(*pid, *first)) {
        return Err(Refused::Memory);
    }
    if !kept.contains_key(number) {
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(*number, Engine::find(Running(*pid), addresses)?);
    }
    let engine = kept.get_mut(number).ok_or(Refused::Memory)?;
    let stack = Stack {
        start: question.start,
        bytes: &question.bytes,
    };
    Ok(match engine.walk(question.frame, stack) {
        Some(walk) => {
            let caller = walk.caller.map(|Caller { ip, sp, frame }| (ip, sp, frame));
            Answer::Walk(walk.frames, caller)
        }
        None => Answer::Nothing,
    })
}
