//! What the machine was set to, and what it chose: its flags by name.

use crate::memory::{Memory, Source};
use crate::structures::Structures;
use std::collections::HashMap;

/// Flags that are looked through; JDK 17 has 1,400.
const FLAGS_MAX: u64 = 8192;

/// Longest name, bytes.
const NAME_MAX: usize = 128;

/// Where each flag's value is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flags {
    /// Those of yes and no, as they were when first read; none of them changes what objects look like later.
    set: HashMap<String, bool>,
    max_heap: Option<u64>,
}

/// A flag that is a number of bytes.
const MAX_HEAP: &str = "MaxHeapSize";

/// The flags that are asked for.
const WANTED: [&str; 10] = [
    "UseCompressedOops",
    "UseCompressedClassPointers",
    "UseCompactObjectHeaders",
    "UseZGC",
    "UseSerialGC",
    "UseParallelGC",
    "UseG1GC",
    "UseShenandoahGC",
    "UseEpsilonGC",
    "UseConcMarkSweepGC",
];

impl Flags {
    pub(crate) fn read<S: Source>(memory: &mut Memory<S>, tables: &Structures) -> Option<Flags> {
        let flag = |field| tables.offset("JVMFlag", field);
        let (name, value) = (flag("_name")?, flag("_addr")?);
        let size = tables.size("JVMFlag")?;
        let first = memory.pointer(tables.address("JVMFlag", "flags")?)?;
        let count = memory
            .word(tables.address("JVMFlag", "numFlags")?)?
            .min(FLAGS_MAX);
        let mut flags = Flags::default();
        for index in 0..count {
            let flag = first.checked_add(index * size)?;
            // The list ends with one that has no name.
            let Some(name) = memory.pointer(flag.checked_add(name)?) else {
                break;
            };
            let name = memory.c_text(name, NAME_MAX)?;
            if WANTED.contains(&name.as_str()) {
                let value = memory.pointer(flag.checked_add(value)?)?;
                flags.set.insert(name, memory.byte(value)? != 0);
            } else if name == MAX_HEAP {
                let value = memory.pointer(flag.checked_add(value)?)?;
                flags.max_heap = memory.word(value).filter(|bytes| *bytes > 0);
            }
        }
        Some(flags)
    }

    /// How large the heap may become, bytes.
    pub(crate) fn max_heap(&self) -> Option<u64> {
        self.max_heap
    }

    /// Whether a flag is there and set.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.set.get(name).copied().unwrap_or(false)
    }
}
