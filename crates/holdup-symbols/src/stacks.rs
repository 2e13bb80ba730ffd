//! User stacks: unwound as they come, named at the end.
//!
//! In come mappings and raw stacks, out come numbers, and at the end the frames of each number. Equal stacks
//! have one number. What is kept of a stack is one (module, address) pair a frame, so that stacks of
//! processes that have the same library at different addresses are equal too.

use crate::bounds::Bounds;
use crate::budget::Asker;
use crate::futures::Types;
use crate::interpreted::{Interpreted, join};
use crate::maps::{Mapping, Region, Space, Spaces};
use crate::modules::{ModuleId, Modules};
use crate::runtime::{Runtime, RuntimeFrames};
use crate::symbolise::{self, Named, name_bytes};
use crate::unread::Unread;
use crate::unwind::Registers;
use holdup_evidence::arch::SavedRegisters;
use holdup_evidence::{Frame, Language, Ns, UserStackId};
use holdup_knowledge::signal_handlers::HANDLER_CALLED;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use walk::unwind;

/// Most frames of one stack. Deeper ones are recursion, and keep their innermost frames.
/// Those of Java servers are some 150 deep.
const FRAMES_MAX: usize = 256;

/// Most frames of all distinct stacks together, so that those of a program that never has the same stack
/// twice stay below some 100 MB once they have names.
const FRAMES_TOTAL_MAX: usize = 500_000;

/// Most frames of one stack with inlined functions.
const NAMED_FRAMES_MAX: usize = 2048;

/// Most bytes of the names of all stacks together: many stacks share a name, and each has a copy. Stacks beyond that are empty.
const NAMES_BYTES_MAX: usize = 1 << 30;

/// The library that holds a Java virtual machine.
const JVM: &str = "libjvm.so";

/// The collector's number for one process image lineage; never used again for another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessKey(pub u32);

/// A thread's user registers and the memory of its stack at one instant.
#[derive(Debug, Clone, Copy)]
pub struct RawStack<'a> {
    /// Whose.
    pub process: ProcessKey,
    /// Process id in holdup's pid namespace.
    pub pid: u32,
    /// When it was taken.
    pub at: Ns,
    /// Instruction pointer.
    pub ip: u64,
    /// Stack pointer.
    pub sp: u64,
    /// What functions keep for their callers, in the order of [`holdup_evidence::arch`]; zeros where they are not known.
    pub saved: SavedRegisters,
    /// Whether these are not known at all: a frame whose caller is found by one of them is then the last.
    pub partial: bool,
    /// Memory from `sp` upward, as much as was copied.
    pub bytes: &'a [u8],
}

impl RawStack<'_> {
    fn asker(&self) -> Asker {
        Asker {
            process: self.process,
            pid: self.pid,
            at: self.at,
        }
    }

    fn registers(&self) -> Registers {
        Registers {
            ip: self.ip,
            sp: self.sp,
            sp_known: true,
            saved: self.saved.map(|value| (!self.partial).then_some(value)),
        }
    }
}

/// What is known of a stack beside the thread's registers and memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Beside<'a> {
    /// What a runtime has said of its own frames that the thread was in: they stand in the place of code without a file, and of all that
    /// is outside of it, unless its structures tell them themselves.
    pub said: &'a [Arc<Frame>],
    /// The frames of an interpreter, innermost first.
    pub interpreted: &'a [Interpreted],
    /// The addresses of tasks for which the thread waits, innermost first: the first is an instruction, the others are return addresses.
    /// They stand behind the thread's own.
    pub tasks: &'a [Vec<u64>],
}

/// What was left out because there was too much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Refused {
    /// Mappings of files beyond the number that is kept; stacks through them have no names there.
    pub modules: u64,
    /// Mappings beyond the number that is kept of one process; stacks end there.
    pub mappings: u64,
    /// Stacks beyond what is kept in all; they are empty.
    pub stacks: u64,
    /// Files whose tables of callers are larger than may be kept; stacks through them may end there.
    pub tables: u64,
}

/// A place in a module's code that a stack went through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Address {
    pub(crate) module: ModuleId,
    /// Whether the frame had called the one before it.
    caller: bool,
    /// The address within the module that belongs to the frame: for a caller the last byte of the call,
    /// because the return address behind it may already be another line or function.
    pub(crate) looked_up: u64,
}

impl Address {
    /// A frame that a runtime reported, by its number.
    pub(crate) fn by_runtime(number: u64) -> Address {
        Address {
            module: ModuleId::BY_RUNTIME,
            caller: false,
            looked_up: number,
        }
    }

    /// The frame through which a handler of a signal goes back.
    pub(crate) const HANDLER_CALLED: Address = Address {
        module: ModuleId::HANDLER_CALLED,
        caller: false,
        looked_up: 0,
    };

    #[cfg(test)]
    pub(crate) fn new(module: ModuleId, looked_up: u64) -> Self {
        Self {
            module,
            caller: false,
            looked_up,
        }
    }

    /// The address that people expect to see: for a caller, its return address.
    pub(crate) fn shown(&self) -> u64 {
        self.looked_up.wrapping_add(u64::from(self.caller))
    }
}

/// All user stacks of a run.
#[derive(Debug)]
pub struct UserStacks {
    spaces: Spaces,
    pub(crate) modules: Modules,
    pub(crate) types: Types,
    ids: HashMap<Arc<[Address]>, UserStackId>,
    stacks: Vec<Arc<[Address]>>,
    frames_total: usize,
    refused: Refused,
    written: HashMap<ProcessKey, Written>,
    pub(crate) runtime_frames: RuntimeFrames,
    /// Which functions evaluate interpreted code.
    evaluates: fn(&str) -> bool,
    /// Addresses within the functions that do so in some processes, whatever their names.
    pub(crate) executors: HashMap<ProcessKey, u64>,
}

/// What is known of the code that a process writes at run time.
#[derive(Debug, Clone, Copy, Default)]
struct Written {
    /// Stacks that went through such code.
    stacks: u32,
    /// The module that stands for it, where the process lists it.
    module: Option<ModuleId>,
}

impl Default for UserStacks {
    fn default() -> Self {
        Self::new()
    }
}

impl UserStacks {
    /// No stacks, no processes.
    #[must_use]
    pub fn new() -> Self {
        Self::with_proc(PathBuf::from("/proc"))
    }

    /// The same with another place for the proc file system.
    fn with_proc(proc: PathBuf) -> Self {
        Self {
            spaces: Spaces::default(),
            modules: Modules::new(proc),
            types: Types::default(),
            ids: HashMap::new(),
            stacks: Vec::new(),
            frames_total: 0,
            refused: Refused::default(),
            written: HashMap::new(),
            runtime_frames: RuntimeFrames::default(),
            evaluates: |_| false,
            executors: HashMap::new(),
        }
    }

    /// The same, keeping no more in memory than these bounds say.
    #[must_use]
    pub fn within(mut self, bounds: Bounds) -> Self {
        self.modules.bounds = bounds;
        self
    }

    /// The same, with the process started that reads files. Without this the first file starts it; sooner is better, because
    /// it begins as a copy of this process.
    #[must_use]
    pub fn ready(mut self) -> Self {
        self.modules.reader.begin();
        self
    }

    /// The same, reading files in this process: for who has given up everything already, and wants to see what reading does.
    #[must_use]
    pub fn reading_here(mut self) -> Self {
        self.modules.reader.read_here();
        self
    }

    /// The same, with a runtime more that tells the frames of code that it has written.
    #[must_use]
    pub fn told_by(mut self, runtime: Box<dyn Runtime>) -> Self {
        self.runtime_frames.add(runtime);
        self
    }

    /// The same, with interpreters whose frames take the place of these functions.
    #[must_use]
    pub fn interpreted_by(self, evaluates: fn(&str) -> bool) -> Self {
        Self { evaluates, ..self }
    }

    /// The process runs another program now; its mappings follow.
    pub fn exec(&mut self, process: ProcessKey) {
        self.spaces.exec(process);
        self.written.remove(&process);
        self.executors.remove(&process);
        self.runtime_frames.exit(process);
    }

    /// `child` begins with the mappings of `parent`.
    pub fn fork(&mut self, parent: ProcessKey, child: ProcessKey) {
        self.spaces.fork(parent, child);
    }

    /// No more stacks of this process will come; its mappings are forgotten.
    pub fn exit(&mut self, process: ProcessKey) {
        self.spaces.exit(process);
        self.written.remove(&process);
        self.executors.remove(&process);
        self.runtime_frames.exit(process);
        self.modules.budget.exit(process);
    }

    /// The process has mapped code. Opens the file if it is new, through `/proc/PID`, so the sooner this is
    /// called the better; the newest mapping wins where they overlap.
    pub fn map(&mut self, process: ProcessKey, pid: u32, mapping: Mapping) {
        let asker = Asker { process, pid, at: 0 };
        let module = self.modules.of_mapping(&asker, &mapping);
        let Mapping {
            start, end, offset, ..
        } = mapping;
        if module != ModuleId::ANONYMOUS {
            self.runtime_frames
                .mapped(&asker, &mut self.modules, module, start, offset);
        }
        if !self.spaces.map(
            process,
            Region {
                start,
                end,
                offset,
                module,
            },
        ) {
            self.refused.mappings += 1;
        }
    }

    /// The mappings of a process, and the modules of all.
    pub(crate) fn parts(&mut self, process: ProcessKey) -> (Arc<Space>, &mut Modules) {
        (self.spaces.of(process), &mut self.modules)
    }

    /// What a runtime calls the thread whose stack was unwound last, if it says so.
    pub fn take_thread_name(&mut self) -> Option<(u32, Arc<str>)> {
        self.runtime_frames.name.take()
    }

    /// Unwinds a stack and gives it a number, that of an equal one if there is one.
    pub fn intern(&mut self, raw: &RawStack<'_>) -> UserStackId {
        self.intern_said(raw, Beside::default())
    }

    /// The same with what is known beside the thread's registers and memory.
    pub fn intern_said(&mut self, raw: &RawStack<'_>, beside: Beside<'_>) -> UserStackId {
        let Beside {
            said,
            interpreted,
            tasks,
        } = beside;
        self.runtime_frames.name = None;
        let space = self.spaces.of(raw.process);
        let mut frames = unwind(&space, &mut self.modules, &mut self.runtime_frames, raw);
        if !said.is_empty() && frames.iter().all(|frame| frame.module != ModuleId::BY_RUNTIME) {
            let inner = frames
                .iter()
                .position(|frame| frame.module == ModuleId::ANONYMOUS);
            frames.truncate(inner.unwrap_or(frames.len()));
            frames.extend(said.iter().filter_map(|frame| self.runtime_frames.address(frame)));
            frames.truncate(FRAMES_MAX);
        }
        if frames.iter().any(|frame| frame.module == ModuleId::ANONYMOUS) {
            self.written(&space, raw, &mut frames);
        }
        for frame in frames
            .iter_mut()
            .filter(|frame| frame.module == ModuleId::ANONYMOUS)
        {
            // Such code has no addresses to show, so neither they nor what called make stacks differ.
            (frame.caller, frame.looked_up) = (false, 0);
        }
        for frame in frames.iter().filter(|frame| frame.module.is_listed()) {
            self.modules.used_by(frame.module, raw.process);
        }
        for task in tasks {
            frames.extend(self.known(raw.process, task));
        }
        frames.truncate(FRAMES_MAX);
        self.put_interpreted(raw.process, &mut frames, interpreted);
        self.number(frames)
    }

    /// Gives a number to frames of an interpreter of which no native stack is known, innermost first.
    pub fn intern_interpreted(&mut self, interpreted: &[Interpreted]) -> UserStackId {
        let frames = interpreted.iter().take(FRAMES_MAX);
        let frames: Vec<Address> = frames
            .filter_map(|one| self.runtime_frames.interpreted(one))
            .collect();
        self.number(frames)
    }

    /// The number of a stack: that of an equal one if there is one.
    fn number(&mut self, mut frames: Vec<Address>) -> UserStackId {
        if let Some(&id) = self.ids.get(frames.as_slice()) {
            return id;
        }
        if self.frames_total + frames.len() > FRAMES_TOTAL_MAX {
            self.refused.stacks += 1;
            frames.clear();
            if let Some(&id) = self.ids.get(frames.as_slice()) {
                return id;
            }
        }
        self.frames_total += frames.len();
        let stack: Arc<[Address]> = frames.into();
        let id = UserStackId(u32::try_from(self.stacks.len()).expect("FRAMES_TOTAL_MAX fits 32 bits"));
        self.stacks.push(Arc::clone(&stack));
        self.ids.insert(stack, id);
        id
    }

    /// Gives a number to a stack whose addresses are known: the first is an instruction, the others are return addresses.
    pub fn intern_known(&mut self, process: ProcessKey, addresses: &[u64]) -> UserStackId {
        let frames = self.known(process, addresses);
        self.number(frames)
    }

    fn known(&mut self, process: ProcessKey, addresses: &[u64]) -> Vec<Address> {
        let space = self.spaces.of(process);
        let mut frames = Vec::new();
        for (at, address) in addresses.iter().enumerate().take(FRAMES_MAX) {
            let caller = at > 0;
            let pc = address.wrapping_sub(u64::from(caller));
            // What is no code of a file was no return address.
            let Some(region) = space
                .find(pc)
                .filter(|region| region.module != ModuleId::ANONYMOUS)
            else {
                break;
            };
            let offset = region.offset.wrapping_add(pc - region.start);
            self.modules.used_by(region.module, process);
            frames.push(Address {
                module: region.module,
                caller,
                looked_up: self.modules.address_of(region.module, offset),
            });
        }
        frames
    }

    /// Gives code without a file to the process's list of it, where there is one.
    fn written(&mut self, space: &Space, raw: &RawStack<'_>, frames: &mut [Address]) {
        let written = self.written.entry(raw.process).or_default();
        written.stacks = written.stacks.saturating_add(1);
        // The list may begin any time; looking for it gets rarer, some thirty times at most.
        if written.module.is_none() && written.stacks.is_power_of_two() {
            let java = space
                .modules()
                .any(|module| self.modules.get(module).name.as_deref() == Some(JVM));
            let language = if java { Language::Java } else { Language::Native };
            written.module = self.modules.written(&raw.asker(), language);
        }
        if let Some(module) = written.module {
            for frame in frames
                .iter_mut()
                .filter(|frame| frame.module == ModuleId::ANONYMOUS)
            {
                frame.module = module;
            }
        }
    }

    /// What was left out so far.
    #[must_use]
    pub fn refused(&self) -> Refused {
        Refused {
            modules: self.modules.refused,
            tables: self.modules.without_frames,
            ..self.refused
        }
    }

    /// Build ids of the files that were mapped, by base name; of a name that several files have, none.
    #[must_use]
    pub fn build_ids(&self) -> BTreeMap<String, String> {
        let mut ids: BTreeMap<String, Option<String>> = BTreeMap::new();
        for (name, id) in self.modules.build_ids() {
            ids.entry(name.to_owned())
                .and_modify(|known| *known = known.take().filter(|known| *known == id))
                .or_insert(Some(id.clone()));
        }
        ids.into_iter()
            .filter_map(|(name, id)| Some((name, id?)))
            .collect()
    }

    /// The frames of each [`UserStackId`], innermost first, in the order of the numbers.
    #[must_use]
    pub fn finish(self) -> Vec<Vec<Frame>> {
        self.finish_unless(&mut || false).stacks
    }

    /// The same; `stop` is asked now and then whether nobody wants names any more: what has none then stays without.
    #[must_use]
    pub fn finish_unless(mut self, stop: &mut dyn FnMut() -> bool) -> Named {
        let mut unread: BTreeSet<Unread> = self.modules.unread().collect();
        self.modules.no_more_stacks();
        let addresses: BTreeSet<Address> = self
            .stacks
            .iter()
            .flat_map(|stack| stack.iter().copied())
            .filter(|address| address.module.is_listed())
            .collect();
        let (frames, unnamed) = symbolise::frames(&self.modules, addresses, stop);
        unread.extend(unnamed);
        let mut bytes = 0_usize;
        let mut of_stack = |stack: &Arc<[Address]>| -> Vec<Frame> {
            let interpreted = stack.iter().filter_map(Address::as_interpreted);
            let interpreted = interpreted.map(|(number, entry)| (self.runtime_frames.frame(number), entry));
            let frames = stack.iter().flat_map(|address| match address.module {
                ModuleId::BY_RUNTIME => vec![self.runtime_frames.frame(address.looked_up)],
                ModuleId::INTERPRETED => Vec::new(),
                ModuleId::HANDLER_CALLED => vec![Frame {
                    symbol: Some(HANDLER_CALLED.to_owned()),
                    ..Frame::default()
                }],
                _ => frames.get(address).cloned().unwrap_or_default(),
            });
            let frames = frames.take(NAMED_FRAMES_MAX).collect();
            let mut frames = join(frames, interpreted.collect(), self.evaluates);
            frames.truncate(NAMED_FRAMES_MAX);
            bytes = bytes.saturating_add(name_bytes(&frames));
            match bytes > NAMES_BYTES_MAX {
                true => Vec::new(),
                false => frames,
            }
        };
        let stacks = self.stacks.iter().map(&mut of_stack).collect();
        Named {
            stacks,
            unread: unread.into_iter().collect(),
        }
    }
}

mod walk;

#[cfg(test)]
mod tests;
