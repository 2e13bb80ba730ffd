//! What HotSpot says of its own structures.
//!
//! In: where libjvm's tables for debuggers are (`gHotSpotVMStructs` and its like, exported in every build), and the
//! process's memory. Out: offsets of fields, addresses of static ones, sizes of types, values of constants, by name.
//!
//! The entries' own layout is known by further variables, which libjvm's constructors fill in: as long as those are zero
//! the machine has not begun, and there is nothing to read yet. Every count, stride and name is checked: a process may
//! have written what it likes there.

use crate::memory::{Memory, Source};
use std::collections::HashMap;

/// The variables to be found among libjvm's symbols, in the order in which their addresses are handed over.
pub const SYMBOLS: [&str; 27] = [
    "gHotSpotVMStructs",
    "gHotSpotVMStructEntryTypeNameOffset",
    "gHotSpotVMStructEntryFieldNameOffset",
    "gHotSpotVMStructEntryIsStaticOffset",
    "gHotSpotVMStructEntryOffsetOffset",
    "gHotSpotVMStructEntryAddressOffset",
    "gHotSpotVMStructEntryArrayStride",
    "gHotSpotVMTypes",
    "gHotSpotVMTypeEntryTypeNameOffset",
    "gHotSpotVMTypeEntrySizeOffset",
    "gHotSpotVMTypeEntryArrayStride",
    "gHotSpotVMIntConstants",
    "gHotSpotVMIntConstantEntryNameOffset",
    "gHotSpotVMIntConstantEntryValueOffset",
    "gHotSpotVMIntConstantEntryArrayStride",
    "gHotSpotVMLongConstants",
    "gHotSpotVMLongConstantEntryNameOffset",
    "gHotSpotVMLongConstantEntryValueOffset",
    "gHotSpotVMLongConstantEntryArrayStride",
    // The account of safepoints, of which the tables know nothing: libjvm does not export it.
    "_ZN12VM_Operation6_namesE",
    "_ZN16SafepointTracing9_op_countE",
    "_ZN16SafepointTracing13_current_typeE",
    "_ZN16SafepointTracing29_last_safepoint_begin_time_nsE",
    "_ZN16SafepointTracing27_last_safepoint_end_time_nsE",
    "_ZN16SafepointTracing28_last_safepoint_sync_time_nsE",
    // What stopped threads wait on, and who asked the VM thread for an operation.
    "_ZN20SafepointSynchronize13_wait_barrierE",
    "VMOperation_lock",
];

/// Entries of one table that are read; JDK 17 has 700 fields and 800 types.
const ENTRIES_MAX: usize = 8192;

/// Longest name, bytes. The longest in use have about 80.
const NAME_MAX: usize = 256;

/// Largest entry, and largest offset within one, bytes; in use are 48.
const STRIDE_MAX: u64 = 256;

/// Largest structure, bytes, and so the largest offset of a field. `JavaThread` has about 2,000.
const SIZE_MAX: u64 = 1 << 20;

/// The tables, read once.
#[derive(Debug, Clone, Default)]
pub struct Structures {
    fields: HashMap<(String, String), Field>,
    sizes: HashMap<String, u64>,
    constants: HashMap<String, i64>,
}

/// Where a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    /// So many bytes into its structure.
    At(u64),
    /// There, once.
    Static(u64),
}

/// A table's address, and how far apart its entries are.
#[derive(Debug, Clone, Copy)]
struct Table {
    start: u64,
    stride: u64,
}

impl Structures {
    /// Reads the tables; `symbols` are the addresses of [`SYMBOLS`] in the process, 0 for those that libjvm has not.
    /// `None` while the machine has not begun, and where they make no sense.
    pub fn read<S: Source>(memory: &mut Memory<S>, symbols: &[u64]) -> Option<Structures> {
        let at = |name: &str| {
            let index = SYMBOLS.iter().position(|symbol| *symbol == name)?;
            symbols.get(index).copied().filter(|address| *address != 0)
        };
        let mut structures = Structures::default();
        structures.read_fields(memory, at)?;
        structures.read_types(memory, at)?;
        structures.read_constants(memory, at, "Int")?;
        structures.read_constants(memory, at, "Long")?;
        (!structures.fields.is_empty()).then_some(structures)
    }

    fn read_fields<S: Source>(
        &mut self,
        memory: &mut Memory<S>,
        at: impl Fn(&str) -> Option<u64>,
    ) -> Option<()> {
        let table = Table::read(memory, &at, "gHotSpotVMStructs", "gHotSpotVMStructEntry")?;
        let offset = |memory: &mut Memory<S>, name: &str| {
            within(memory, at(&format!("gHotSpotVMStructEntry{name}Offset"))?)
        };
        let class = offset(memory, "TypeName")?;
        let name = offset(memory, "FieldName")?;
        let is_static = offset(memory, "IsStatic")?;
        let offset_of = offset(memory, "Offset")?;
        let address = offset(memory, "Address")?;
        table.entries(memory, class, |memory, entry, class| {
            // Some entries of a table are of fields without a name.
            let Some(field) = memory.pointer(entry + name) else {
                return Some(());
            };
            let field = memory.c_text(field, NAME_MAX)?;
            let place = if memory.int(entry + is_static)? == 0 {
                Field::At(memory.word(entry + offset_of)?)
            } else {
                Field::Static(memory.word(entry + address)?)
            };
            self.fields.insert((class, field), place);
            Some(())
        })
    }

    fn read_types<S: Source>(
        &mut self,
        memory: &mut Memory<S>,
        at: impl Fn(&str) -> Option<u64>,
    ) -> Option<()> {
        let table = Table::read(memory, &at, "gHotSpotVMTypes", "gHotSpotVMTypeEntry")?;
        let name = within(memory, at("gHotSpotVMTypeEntryTypeNameOffset")?)?;
        let size = within(memory, at("gHotSpotVMTypeEntrySizeOffset")?)?;
        table.entries(memory, name, |memory, entry, name| {
            self.sizes.insert(name, memory.word(entry + size)?);
            Some(())
        })
    }

    fn read_constants<S: Source>(
        &mut self,
        memory: &mut Memory<S>,
        at: impl Fn(&str) -> Option<u64>,
        kind: &str,
    ) -> Option<()> {
        let entry = format!("gHotSpotVM{kind}ConstantEntry");
        let table = Table::read(memory, &at, &format!("gHotSpotVM{kind}Constants"), &entry)?;
        let name = within(memory, at(&format!("{entry}NameOffset"))?)?;
        let value = within(memory, at(&format!("{entry}ValueOffset"))?)?;
        table.entries(memory, name, |memory, entry, name| {
            let value = if kind == "Int" {
                i64::from(memory.int(entry + value)?.cast_signed())
            } else {
                memory.word(entry + value)?.cast_signed()
            };
            self.constants.insert(name, value);
            Some(())
        })
    }

    /// How many bytes into `class` a field is.
    #[must_use]
    pub fn offset(&self, class: &str, field: &str) -> Option<u64> {
        match self.field(class, field)? {
            Field::At(offset) => Some(offset).filter(|offset| *offset < SIZE_MAX),
            Field::Static(_) => None,
        }
    }

    /// How many bytes into a Java thread a field is: some versions have it in what every thread has.
    pub(crate) fn of_thread(&self, field: &str) -> Option<u64> {
        self.offset("JavaThread", field)
            .or_else(|| self.offset("Thread", field))
    }

    /// Where a static field is.
    #[must_use]
    pub fn address(&self, class: &str, field: &str) -> Option<u64> {
        match self.field(class, field)? {
            Field::Static(address) => Some(address).filter(|address| *address != 0),
            Field::At(_) => None,
        }
    }

    fn field(&self, class: &str, field: &str) -> Option<Field> {
        self.fields.get(&(class.to_owned(), field.to_owned())).copied()
    }

    /// The size of a type, bytes.
    #[must_use]
    pub fn size(&self, name: &str) -> Option<u64> {
        self.sizes
            .get(name)
            .copied()
            .filter(|size| (1..SIZE_MAX).contains(size))
    }

    /// The value of a constant.
    #[must_use]
    pub fn constant(&self, name: &str) -> Option<i64> {
        self.constants.get(name).copied()
    }

    /// How many fields, types and constants are known.
    #[must_use]
    pub fn known(&self) -> (usize, usize, usize) {
        (self.fields.len(), self.sizes.len(), self.constants.len())
    }
}

impl Table {
    /// `variable` holds the address of the first entry.
    fn read<S: Source>(
        memory: &mut Memory<S>,
        at: &impl Fn(&str) -> Option<u64>,
        variable: &str,
        entry: &str,
    ) -> Option<Table> {
        Some(Table {
            start: memory.pointer(at(variable)?)?,
            stride: memory
                .word(at(&format!("{entry}ArrayStride"))?)
                .filter(|stride| (8..=STRIDE_MAX).contains(stride) && stride % 8 == 0)?,
        })
    }

    /// Calls `each` with the address of every entry and the text that its pointer at `name` is to, up to the first entry
    /// that has none.
    fn entries<S: Source>(
        self,
        memory: &mut Memory<S>,
        name: u64,
        mut each: impl FnMut(&mut Memory<S>, u64, String) -> Option<()>,
    ) -> Option<()> {
        // Nobody maps anything at the address space's end: no sum with an offset runs over.
        let end = self.start.checked_add(ENTRIES_MAX as u64 * STRIDE_MAX)?;
        end.checked_add(STRIDE_MAX)?;
        let mut entry = self.start;
        for _ in 0..ENTRIES_MAX {
            let text = memory.word(entry + name)?;
            if text == 0 {
                return Some(());
            }
            let text = memory.c_text(text, NAME_MAX)?;
            each(memory, entry, text)?;
            entry += self.stride;
        }
        None
    }
}

/// An offset within an entry, from the variable that tells it.
fn within<S: Source>(memory: &mut Memory<S>, address: u64) -> Option<u64> {
    memory.word(address).filter(|offset| *offset < STRIDE_MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{SYMBOLS, Structures};
    use crate::memory::Memory;
    use holdup_runtimes::memory::Written;

    /// Where the variables, the texts and the tables of the made-up library are.
    const VARIABLES: u64 = 0x10_0000;
    const TEXTS: u64 = 0x20_0000;
    const TABLES: u64 = 0x30_0000;

    /// A library that describes what it is told to.
    #[derive(Debug, Default)]
    pub(crate) struct Library {
        pub(crate) memory: Written,
        texts: u64,
        tables: u64,
    }

    impl Library {
        fn text(&mut self, text: &str) -> u64 {
            let at = TEXTS + self.texts;
            self.memory.put(at, text.as_bytes());
            self.memory.put(at + text.len() as u64, &[0]);
            self.texts += text.len() as u64 + 1;
            at
        }

        pub(crate) fn symbols() -> Vec<u64> {
            (0..SYMBOLS.len() as u64).map(|n| VARIABLES + n * 8).collect()
        }

        fn set(&mut self, variable: &str, value: u64) {
            let index = SYMBOLS.iter().position(|symbol| *symbol == variable).unwrap();
            self.memory.word(Self::symbols()[index], value);
        }

        fn table(&mut self, variable: &str, stride: u64, rows: &[Vec<u64>]) {
            let start = TABLES + self.tables;
            for (number, row) in rows.iter().enumerate() {
                for (column, word) in row.iter().enumerate() {
                    self.memory
                        .word(start + number as u64 * stride + column as u64 * 8, *word);
                }
            }
            self.memory.word(start + rows.len() as u64 * stride, 0);
            self.tables += (rows.len() as u64 + 1) * stride;
            self.set(variable, start);
        }

        /// Fields as (class, field, static, offset or address); types with sizes; constants.
        pub(crate) fn describe(
            &mut self,
            fields: &[(&str, &str, bool, u64)],
            types: &[(&str, u64)],
            constants: &[(&str, i64)],
        ) {
            let rows: Vec<_> = fields
                .iter()
                .map(|(class, field, fixed, place)| {
                    let (offset, address) = if *fixed { (0, *place) } else { (*place, 0) };
                    vec![
                        self.text(class),
                        self.text(field),
                        u64::from(*fixed),
                        offset,
                        address,
                    ]
                })
                .collect();
            self.table("gHotSpotVMStructs", 40, &rows);
            for (variable, value) in [
                ("gHotSpotVMStructEntryTypeNameOffset", 0),
                ("gHotSpotVMStructEntryFieldNameOffset", 8),
                ("gHotSpotVMStructEntryIsStaticOffset", 16),
                ("gHotSpotVMStructEntryOffsetOffset", 24),
                ("gHotSpotVMStructEntryAddressOffset", 32),
                ("gHotSpotVMStructEntryArrayStride", 40),
                ("gHotSpotVMTypeEntryTypeNameOffset", 0),
                ("gHotSpotVMTypeEntrySizeOffset", 8),
                ("gHotSpotVMTypeEntryArrayStride", 16),
                ("gHotSpotVMIntConstantEntryNameOffset", 0),
                ("gHotSpotVMIntConstantEntryValueOffset", 8),
                ("gHotSpotVMIntConstantEntryArrayStride", 16),
                ("gHotSpotVMLongConstantEntryNameOffset", 0),
                ("gHotSpotVMLongConstantEntryValueOffset", 8),
                ("gHotSpotVMLongConstantEntryArrayStride", 16),
            ] {
                self.set(variable, value);
            }
            let rows: Vec<_> = types
                .iter()
                .map(|(name, size)| vec![self.text(name), *size])
                .collect();
            self.table("gHotSpotVMTypes", 16, &rows);
            let rows: Vec<_> = constants
                .iter()
                .map(|(name, value)| vec![self.text(name), value.cast_unsigned()])
                .collect();
            self.table("gHotSpotVMIntConstants", 16, &rows);
            self.table("gHotSpotVMLongConstants", 16, &[]);
        }
    }

    fn library() -> Library {
        let mut library = Library::default();
        library.describe(
            &[
                ("CodeBlob", "_size", false, 16),
                ("CodeCache", "_heaps", true, 0x5000),
                ("Odd", "_far", false, u64::MAX),
            ],
            &[("CodeBlob", 64), ("Huge", u64::MAX)],
            &[("InvocationEntryBci", -1)],
        );
        library
    }

    fn read(library: &Library, symbols: &[u64]) -> Option<Structures> {
        Structures::read(&mut Memory::new(library.memory.clone()), symbols)
    }

    #[test]
    fn fields_types_and_constants_are_found_by_name() {
        let found = read(&library(), &Library::symbols()).unwrap();
        assert_eq!(found.offset("CodeBlob", "_size"), Some(16));
        assert_eq!(found.address("CodeBlob", "_size"), None, "it is not static");
        assert_eq!(found.address("CodeCache", "_heaps"), Some(0x5000));
        assert_eq!(found.size("CodeBlob"), Some(64));
        assert_eq!(found.constant("InvocationEntryBci"), Some(-1));
        assert_eq!(found.offset("CodeBlob", "_none"), None);
        assert_eq!(found.known(), (3, 2, 1));
    }

    #[test]
    fn what_no_structure_has_is_not_believed() {
        let found = read(&library(), &Library::symbols()).unwrap();
        assert_eq!(found.offset("Odd", "_far"), None);
        assert_eq!(found.size("Huge"), None);
    }

    #[test]
    fn before_the_constructors_have_run_there_is_nothing() {
        let mut early = library();
        early.set("gHotSpotVMStructEntryArrayStride", 0);
        assert!(read(&early, &Library::symbols()).is_none());
        assert!(read(&library(), &[0; SYMBOLS.len()]).is_none());
        assert!(read(&library(), &[]).is_none());
    }

    #[test]
    fn a_table_without_an_end_and_one_at_the_end_of_memory_are_refused() {
        let mut endless = library();
        // Each entry is the one before it, for good: a stride that is no stride.
        endless.set("gHotSpotVMTypeEntryArrayStride", 4);
        assert!(read(&endless, &Library::symbols()).is_none());
        let mut far = library();
        far.set("gHotSpotVMTypes", u64::MAX - 64);
        assert!(read(&far, &Library::symbols()).is_none());
    }
}
