//! Code that a runtime has written, and whose frames only the runtime's own structures tell.
//!
//! The walker of stacks knows files. Where it comes to code without one, in a process that has a runtime's library mapped,
//! it asks here: in go the frame's registers and the bytes of the stack, out come the runtime's frames and the registers of
//! the code of a file that called them, from where the walker goes on.

use crate::budget::Asker;
use crate::interpreted::Interpreted;
use crate::modules::{ModuleId, Modules};
use crate::stacks::{Address, ProcessKey, RawStack};
use crate::unwind::{Registers, StackBytes};
use holdup_evidence::{Frame, Ns};
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

/// Different frames of runtimes that are kept; a large server has some ten thousand on its stacks. Those beyond are without
/// names.
const MAX_RUNTIME_FRAMES: usize = 200_000;

/// A runtime whose frames can be distinguished from outside.
pub trait Runtime: Debug + Send {
    /// Whether a file of this base name is its library.
    fn is_library(&self, name: &str) -> bool;

    /// Whether some of its code is in its library, without a description of its frames.
    fn has_code_in_files(&self) -> bool {
        false
    }

    /// Symbols of the library whose addresses it wants.
    fn symbols(&self) -> &'static [&'static str];

    /// A process has mapped its library: it may be asked of it from now on.
    fn begin(&mut self, mapped: Mapped<'_>);

    /// The frames from these registers outwards, for as long as they are the runtime's; `None` where it knows nothing of
    /// them.
    fn walk(&mut self, asked: &Asked<'_>) -> Option<Walked>;

    /// The process runs another program now, or none.
    fn exit(&mut self, process: ProcessKey);
}

/// A process that has a runtime's library.
#[derive(Debug, Clone, Copy)]
pub struct Mapped<'a> {
    /// Which.
    pub process: ProcessKey,
    /// Process id in holdup's pid namespace.
    pub pid: u32,
    /// Where the runtime's symbols are in the process, in their order; 0 for those that the library has not.
    pub symbols: &'a [u64],
}

/// A frame whose code is in no file.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Whose.
    pub process: ProcessKey,
    /// When the stack was copied.
    pub at: Ns,
    /// The frame's registers.
    pub registers: Registers,
    /// The thread was interrupted there; else it had called from there.
    pub interrupted: bool,
    /// The stack's memory.
    pub stack: StackBytes<'a>,
}

/// What a runtime tells.
#[derive(Debug, Clone, Default)]
pub struct Walked {
    /// Its frames, innermost first.
    pub frames: Vec<Arc<Frame>>,
    /// The registers of what had called them, where that is code of a file and they are known.
    pub caller: Option<Registers>,
    /// Which thread the runtime takes it for, by the id in its own pid namespace, and what it calls that one. Hostile text.
    pub thread: Option<(u32, Arc<str>)>,
}

/// Runtimes, and what they reported in this run.
#[derive(Debug, Default)]
pub(crate) struct RuntimeFrames {
    runtimes: Vec<Box<dyn Runtime>>,
    /// Processes that have a runtime's library, and which that is.
    processes: HashMap<ProcessKey, usize>,
    numbers: HashMap<Arc<Frame>, u64>,
    frames: Vec<Arc<Frame>>,
    /// Which thread the last walk was taken to be of, and what that is called.
    pub(crate) name: Option<(u32, Arc<str>)>,
}

impl RuntimeFrames {
    /// One runtime more.
    pub(crate) fn add(&mut self, runtime: Box<dyn Runtime>) {
        self.runtimes.push(runtime);
    }

    /// The process runs another program now, or none.
    pub(crate) fn exit(&mut self, process: ProcessKey) {
        if let Some(runtime) = self.processes.remove(&process) {
            self.runtimes[runtime].exit(process);
        }
    }

    /// The process has mapped a module, so that its file's address `file` is at `at`.
    pub(crate) fn mapped(
        &mut self,
        asker: &Asker,
        modules: &mut Modules,
        id: ModuleId,
        at: u64,
        offset: u64,
    ) {
        let (process, module) = (asker.process, modules.get(id));
        let Some(name) = module.name.as_deref() else {
            return;
        };
        let mut runtimes = self.runtimes.iter_mut().enumerate();
        let Some((number, runtime)) = runtimes.find(|(_, runtime)| runtime.is_library(name)) else {
            return;
        };
        if self.processes.contains_key(&process) {
            return;
        }
        // How far the library was moved from the addresses that its file states.
        let stated = module.head.as_ref().and_then(|head| head.address_of(offset));
        let moved = stated.map(|stated| at.wrapping_sub(stated));
        let symbols = moved.and_then(|moved| {
            let found = modules.symbols(asker, id, runtime.symbols())?;
            let there = |address: Option<u64>| address.map_or(0, |address| address.wrapping_add(moved));
            Some(found.into_iter().map(there).collect::<Vec<u64>>())
        });
        if let Some(symbols) = symbols {
            self.processes.insert(process, number);
            runtime.begin(Mapped {
                process,
                pid: asker.pid,
                symbols: &symbols,
            });
        }
    }

    /// Whether a process has the runtime.
    pub(crate) fn knows(&self, process: ProcessKey) -> bool {
        self.processes.contains_key(&process)
    }

    /// Whether the process's runtime has code in files, without a description of its frames.
    pub(crate) fn has_code_in_files(&self, process: ProcessKey) -> bool {
        let number = self.processes.get(&process);
        number.is_some_and(|number| self.runtimes[*number].has_code_in_files())
    }

    /// What the process's runtime says of a frame.
    pub(crate) fn walk(
        &mut self,
        raw: &RawStack<'_>,
        registers: Registers,
        interrupted: bool,
    ) -> Option<Walked> {
        let number = *self.processes.get(&raw.process)?;
        let runtime = self.runtimes.get_mut(number)?;
        let walked = runtime.walk(&Asked {
            process: raw.process,
            at: raw.at,
            registers,
            interrupted,
            stack: StackBytes {
                start: raw.sp,
                bytes: raw.bytes,
            },
        });
        // It may have been somebody else's code after all.
        walked.filter(|walked| !walked.frames.is_empty() || walked.caller.is_some())
    }

    /// The place of a frame of interpreted code; `None` beyond what is kept.
    pub(crate) fn interpreted(&mut self, one: &Interpreted) -> Option<Address> {
        let number = self.address(&one.frame)?.looked_up;
        Some(Address::interpreted(number, one.entry))
    }

    /// A frame's place, that of an equal one if there is one; `None` beyond what is kept.
    pub(crate) fn address(&mut self, frame: &Arc<Frame>) -> Option<Address> {
        if let Some(number) = self.numbers.get(frame) {
            return Some(Address::by_runtime(*number));
        }
        if self.frames.len() >= MAX_RUNTIME_FRAMES {
            return None;
        }
        let number = self.frames.len() as u64;
        self.frames.push(Arc::clone(frame));
        self.numbers.insert(Arc::clone(frame), number);
        Some(Address::by_runtime(number))
    }

    /// The frame of a number.
    pub(crate) fn frame(&self, number: u64) -> Frame {
        let frame = usize::try_from(number)
            .ok()
            .and_then(|number| self.frames.get(number));
        frame.map(|frame| (**frame).clone()).unwrap_or_default()
    }
}
