//! Java threads: who they are to the kernel, and what Java calls them.
//!
//! In: the address of a thread's structure, as Java code has it in a register, or all of them from the machine's list.
//! Out: its id in its own pid namespace, and its name. A name is read when a stack of the thread first needs it, and again
//! when it is a while old, for programs rename their threads; never of all threads.

use crate::layout::Layout;
use crate::memory::{Memory, Source};
use crate::oops::Oops;
use crate::structures::Structures;
use holdup_evidence::Ns;
use std::collections::HashMap;
use std::sync::Arc;

/// Threads that are looked at; more than that are not looked for.
const THREADS_MAX: u64 = 16_384;

/// Names that are kept before all are forgotten.
const NAMES_MAX: usize = 16_384;

/// For so long a name is taken to be what it was, nanoseconds.
const FRESH: Ns = 5_000_000_000;

/// Where a thread has what is asked of it.
#[derive(Debug, Clone)]
pub(crate) struct Fields {
    /// A static: the list of all, and where that has length and elements.
    list: u64,
    length: u64,
    elements: u64,
    object: u64,
    system: u64,
    system_id: u64,
    /// In `java.lang.Thread`: its name; found when the classes are there.
    name: u64,
}

/// A thread's name, and whose it was.
#[derive(Debug)]
struct Named {
    /// The kernel's id of the thread that had this structure then.
    tid: u32,
    seen: Ns,
    name: Option<Arc<str>>,
}

/// Names that were read.
#[derive(Debug, Default)]
pub(crate) struct Names(HashMap<u64, Named>);

impl Fields {
    pub(crate) fn read<S: Source>(
        memory: &mut Memory<S>,
        tables: &Structures,
        layout: &Layout,
        oops: &Oops,
    ) -> Option<Fields> {
        let of = |field| tables.of_thread(field);
        Some(Fields {
            list: tables.address("ThreadsSMRSupport", "_java_thread_list")?,
            length: tables.offset("ThreadsList", "_length")?,
            elements: tables.offset("ThreadsList", "_threads")?,
            object: of("_threadObj")?,
            system: of("_osthread")?,
            system_id: tables.offset("OSThread", "_thread_id")?,
            name: oops.field(memory, layout, oops.thread, "name")?,
        })
    }

    /// All threads' structures.
    pub(crate) fn all<S: Source>(&self, memory: &mut Memory<S>) -> Option<Vec<u64>> {
        let list = memory.pointer(self.list)?;
        let count = u64::from(memory.int(list.checked_add(self.length)?)?).min(THREADS_MAX);
        let elements = memory.pointer(list.checked_add(self.elements)?)?;
        Some(
            (0..count)
                .filter_map(|index| memory.pointer(elements.checked_add(index * 8)?))
                .collect(),
        )
    }

    /// The kernel's id of a thread, in its own pid namespace.
    pub(crate) fn tid<S: Source>(&self, memory: &mut Memory<S>, thread: u64) -> Option<u32> {
        let system = memory.pointer(thread.checked_add(self.system)?)?;
        memory
            .int(system.checked_add(self.system_id)?)
            .filter(|tid| *tid != 0)
    }

    /// The same of another thread; `None` where there is none, or it is this one.
    pub(crate) fn tid_of_other<S: Source>(
        &self,
        memory: &mut Memory<S>,
        other: Option<u64>,
        this: u64,
    ) -> Option<u32> {
        self.tid(memory, other.filter(|other| *other != this)?)
    }

    /// Where a thread's structure has the handle of its object.
    pub(crate) fn handle(&self, thread: u64) -> Option<u64> {
        thread.checked_add(self.object)
    }

    /// A thread's object.
    pub(crate) fn object<S: Source>(&self, memory: &mut Memory<S>, oops: &Oops, thread: u64) -> Option<u64> {
        let slot = memory.pointer(thread.checked_add(self.object)?)?;
        oops.of_handle(memory, slot)
    }

    /// What Java calls a thread.
    pub(crate) fn name<S: Source>(
        &self,
        memory: &mut Memory<S>,
        layout: &Layout,
        oops: &Oops,
        thread: u64,
    ) -> Option<String> {
        let object = self.object(memory, oops, thread)?;
        let string = oops.reference(memory, object.checked_add(self.name)?)?;
        oops.string(memory, layout, string)
    }
}

impl Names {
    /// The id and the name of the thread with this structure.
    pub(crate) fn of<S: Source>(
        &mut self,
        memory: &mut Memory<S>,
        layout: &Layout,
        oops: &Oops,
        fields: &Fields,
        thread: u64,
        at: Ns,
    ) -> Option<(u32, Arc<str>)> {
        // The structure of one that ended is soon another's.
        let tid = fields.tid(memory, thread)?;
        let known = self.0.get(&thread);
        let fresh = |known: &&Named| known.tid == tid && at.saturating_sub(known.seen) < FRESH;
        if let Some(known) = known.filter(fresh) {
            return known.name.clone().map(|name| (tid, name));
        }
        let name = fields
            .name(memory, layout, oops, thread)
            .filter(|name| !name.is_empty())
            .map(Arc::from);
        if self.0.len() >= NAMES_MAX {
            self.0.clear();
        }
        self.0.insert(
            thread,
            Named {
                tid,
                seen: at,
                name: Option::clone(&name),
            },
        );
        name.map(|name| (tid, name))
    }
}
