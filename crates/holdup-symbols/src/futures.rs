//! Layouts of the futures that a Rust program runs as tasks.
//!
//! The problem: where a task of tokio stands is in a value that only debug information describes, and a service has tens of megabytes of
//! it. In: the files that a process has mapped. Out: the types of its tasks, once they are read. A process apart reads them, which can be left behind, and
//! nobody waits for it but at the end: a question that is not answered yet is asked again later.

mod blocking;
mod graph;
mod scan;
#[cfg(test)]
mod tests;

use crate::debug_copy::{debug_bytes, section_bytes};
use crate::elf::Elf;
use crate::files::elf;
use crate::modules::ModuleId;
use crate::stacks::{ProcessKey, UserStacks};
use gimli::{Dwarf, DwarfSections, EndianSlice, LittleEndian, SectionId};
use holdup_detached::{Answer as Sent, Capabilities, Confinement, Detached, Failed, WaitBudget};
use holdup_evidence::TypeLayouts;
use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Files whose types are read in one observation.
const FILES_MAX: usize = 32;

/// How long a question may take to be sent. A new child takes it at once.
const SENDING: Duration = Duration::from_millis(200);

/// CPU time of all files together: a service with 100 MB of debug information takes a second or two.
const CPU_TIME: Duration = Duration::from_secs(20);

/// Address space beyond what this process has, bytes: debug information, and what is made of it.
const MEMORY_BYTES_MAX: u64 = 2 << 30;

/// Reading files by descriptors that were opened before.
const CONFINEMENT: Confinement = Confinement {
    name: c"holdup-types",
    capabilities: Capabilities::DAC_READ_SEARCH,
    cpu_time: Some(CPU_TIME),
    memory_bytes: MEMORY_BYTES_MAX,
    files: 64,
};

/// What all programs of the toolchain say of who made them, and what a program with tasks of tokio has among its names.
const RUSTC: &[u8] = b"rustc version";
/// Or among those of functions that run a future in the thread that calls them.
const TASKS: &[u8] = b"tokio::runtime::task::";
const BLOCKS_ON: &[u8] = b"block_on<";

pub(crate) type Reading<'a> = EndianSlice<'a, LittleEndian>;

/// The types of a process's tasks.
#[derive(Debug, Clone)]
pub struct FoundFutures {
    /// Base name of the file.
    pub file: String,
    /// The types.
    pub layouts: Arc<TypeLayouts>,
    /// What is added to an address that the file states to have that of the process.
    pub moved: u64,
    /// Where in the process the file is.
    pub mapped: Range<u64>,
}

/// What is known of a process's futures.
#[derive(Debug, Clone)]
pub enum Futures {
    /// They are being read.
    Pending,
    /// It runs no tasks, or its debug information does not describe them.
    Nothing,
    /// Their types.
    Found(FoundFutures),
}

/// Types of files, as far as they are read.
#[derive(Debug, Default)]
pub(crate) struct Types {
    child: Option<Detached<(), Option<TypeLayouts>>>,
    /// The file that the child reads.
    reads: Option<ModuleId>,
    known: BTreeMap<ModuleId, Option<Arc<TypeLayouts>>>,
    /// How long may be waited.
    waits: Option<WaitBudget>,
}

impl UserStacks {
    /// The types of the tasks that a process may run. `patience`: how long an answer is waited for that is not there yet.
    pub fn futures(&mut self, process: ProcessKey, patience: Duration) -> Futures {
        let until = Instant::now() + patience;
        let (space, modules) = self.parts(process);
        let most = modules.bounds.debug;
        let mut asked: Vec<(ModuleId, String, u64, Range<u64>)> = Vec::new();
        for region in space.regions() {
            let module = modules.get(region.module);
            let Some((head, name)) = module.head.as_ref().zip(module.name.as_ref()) else {
                continue;
            };
            let described = head.section(".debug_info").is_some() && (1..=most).contains(&debug_bytes(head));
            if described
                && !asked.iter().any(|one| one.0 == region.module)
                && let Some(stated) = head.address_of(region.offset)
                && let Some((low, high)) = head.extent()
            {
                let moved = region.start.wrapping_sub(stated);
                let mapped = low.wrapping_add(moved)..high.wrapping_add(moved);
                asked.push((region.module, name.clone(), moved, mapped));
            }
        }
        let mut pending = false;
        for (module, file, moved, mapped) in asked {
            match self.types_of(module, until) {
                None => pending = true,
                Some(None) => {}
                Some(Some(layouts)) => {
                    return Futures::Found(FoundFutures {
                        file,
                        layouts,
                        moved,
                        mapped,
                    });
                }
            }
        }
        match pending {
            true => Futures::Pending,
            false => Futures::Nothing,
        }
    }

    /// The types of one file; `None` while they are not read yet.
    fn types_of(&mut self, module: ModuleId, until: Instant) -> Option<Option<Arc<TypeLayouts>>> {
        loop {
            if let Some(known) = self.types.known.get(&module) {
                return Some(known.clone());
            }
            if self.types.reads.is_none() {
                self.begin_reading(module);
            }
            self.types.take_answer(until);
            if self.types.reads.is_some() || Instant::now() >= until {
                return self.types.known.get(&module).cloned();
            }
        }
    }

    fn begin_reading(&mut self, module: ModuleId) {
        let types = &mut self.types;
        let budget = types.waits.get_or_insert_with(WaitBudget::new);
        let mut ask = || {
            if types.known.len() >= FILES_MAX || !budget.may_start() {
                return None;
            }
            let place = self.modules.get(module).place.as_ref()?;
            if types.child.is_none() {
                types.child = Detached::start(&CONFINEMENT, || |(), descriptors| answer(descriptors)).ok();
            }
            let child = types.child.as_mut()?;
            child.ask(&(), &[place.as_fd()], Instant::now() + SENDING).ok()
        };
        match ask() {
            Some(()) => types.reads = Some(module),
            None => {
                types.known.insert(module, None);
            }
        }
    }
}

impl Types {
    /// Takes the answer that is owed, if it comes.
    fn take_answer(&mut self, until: Instant) {
        let (Some(module), Some(child)) = (self.reads, self.child.as_mut()) else {
            return;
        };
        let layouts = match child.answer(until) {
            Ok(answer) => answer.value,
            Err(Failed::Late) => return,
            // It used up its time, or its memory.
            Err(Failed::Gone) => {
                self.child = None;
                None
            }
        };
        self.reads = None;
        self.known.insert(module, layouts.map(Arc::new));
    }
}

/// What the child does.
fn answer(descriptors: Vec<std::os::fd::OwnedFd>) -> Sent<Option<TypeLayouts>> {
    let elf = elf(descriptors.into_iter().next());
    elf.and_then(|elf| of_file(&elf)).into()
}

/// The types of the tasks that a file describes.
fn of_file(elf: &Elf) -> Option<TypeLayouts> {
    let load = |id: SectionId| -> Result<Vec<u8>, ()> {
        let section = elf.section(id.name());
        let bytes = section.and_then(|section| section_bytes(elf, section));
        Ok(bytes.unwrap_or_default())
    };
    let names = load(SectionId::DebugStr).ok()?;
    if !has(&names, RUSTC) || !(has(&names, TASKS) || has(&names, BLOCKS_ON)) {
        return None;
    }
    let sections = DwarfSections::load(load).ok()?;
    let dwarf = sections.borrow(|section| EndianSlice::new(section, LittleEndian));
    layouts(&dwarf)
}

/// Whether a text occurs.
fn has(bytes: &[u8], text: &[u8]) -> bool {
    // The first byte is looked for as fast as memory is read.
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == text[0]) {
        if rest[at..].starts_with(text) {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}

/// The types of a program's tasks and of the futures that its threads block on; `None` where it has none, or does not describe them.
fn layouts(dwarf: &Dwarf<Reading<'_>>) -> Option<TypeLayouts> {
    let mut scan = scan::Scan::of(dwarf)?;
    let blocking = scan.blocking.code(dwarf, &scan.units, &scan.starts);
    let layouts = graph::Graph::build(dwarf, &scan, &blocking);
    let describes_tasks = layouts.head.is_some() && !layouts.tasks.is_empty();
    (describes_tasks || !layouts.blocking.is_empty()).then_some(layouts)
}
