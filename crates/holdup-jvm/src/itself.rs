//! What a machine is, by its own structures: for one that shares no figures.
//!
//! In: the tables and flags. Out: version, collector and largest heap, each only where it is there and makes sense.

use crate::flags::Flags;
use crate::memory::{Memory, Source};
use crate::structures::Structures;
use holdup_evidence::Collector;

/// Longest version that is read, bytes (`17.0.15+6-Debian-1`).
const VERSION_MAX: usize = 128;

/// What it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Itself {
    /// Java's version (`17.0.15`).
    pub version: Option<String>,
    /// What collects its garbage.
    pub collector: Option<Collector>,
    /// How large its heap may become, bytes.
    pub max_heap: Option<u64>,
}

/// Flags of which a machine sets one.
const COLLECTORS: [(&str, Collector); 7] = [
    ("UseSerialGC", Collector::Serial),
    ("UseParallelGC", Collector::Parallel),
    ("UseG1GC", Collector::G1),
    ("UseZGC", Collector::Z),
    ("UseShenandoahGC", Collector::Shenandoah),
    ("UseEpsilonGC", Collector::Epsilon),
    ("UseConcMarkSweepGC", Collector::Cms),
];

impl Itself {
    pub(crate) fn read<S: Source>(memory: &mut Memory<S>, tables: &Structures, flags: &Flags) -> Itself {
        let mut set = COLLECTORS.iter().filter(|(flag, _)| flags.is_set(flag));
        let collector = match (set.next(), set.next()) {
            (Some((_, one)), None) => Some(*one),
            _ => None,
        };
        Itself {
            version: version(memory, tables),
            collector,
            max_heap: flags.max_heap(),
        }
    }
}

/// The release's text up to what its builder has added; JDK 8 has that of its HotSpot there, which is not known.
fn version<S: Source>(memory: &mut Memory<S>, tables: &Structures) -> Option<String> {
    let text = memory.pointer(tables.address("Abstract_VM_Version", "_s_vm_release")?)?;
    let text = memory.c_text(text, VERSION_MAX)?;
    let numbers = text.split(['+', '-']).next()?;
    let good = numbers.split('.').all(|part| part.parse::<u32>().is_ok());
    let major: u32 = numbers.split('.').next()?.parse().ok()?;
    let found = memory.int(tables.address("Abstract_VM_Version", "_vm_major_version")?)?;
    (good && major == found && tables.address("CodeCache", "_heap").is_none()).then(|| numbers.to_owned())
}
