//! Objects of the Java heap: their class, their fields by name, and strings.
//!
//! In: addresses of objects, and where references to them are. Out: what is asked of them. Collectors move objects while we
//! look: an object counts only if its class is one, and what is reported of it is said to have been seen, not to be.
//!
//! A reference takes four bytes where the machine was told to compress them (from a base, shifted), eight elsewhere. The Z
//! collector keeps bits of its own in references; those of JDK 17 can be followed as they are, later ones are shifted.

use crate::compressed::Numbers;
use crate::flags::Flags;
use crate::layout::Layout;
use crate::memory::{Memory, Source};
use crate::methods::{class_name, constant_text};
use crate::structures::Structures;

/// Fields of one class that are looked through; generated classes have some thousand.
const FIELDS_MAX: u32 = 65_536;

/// Classes above a class. Programs have some ten.
const SUPERS_MAX: usize = 64;

/// Longest string that is read, characters.
const STRING_MAX: u32 = 256;

/// How objects are laid out, and where their classes say what they hold.
#[derive(Debug, Clone)]
pub(crate) struct Oops {
    /// References in objects have four bytes: base and shift.
    narrow: Option<(u64, u32)>,
    class: Class,
    /// A reference of eight bytes is shifted by so much.
    shift: u32,
    /// Where an array has its length, bytes into it.
    array_length: u64,
    array_aligned: bool,
    super_class: u64,
    class_constants: u64,
    fields: Fields,
    /// The classes of threads and strings.
    pub(crate) thread: u64,
    string: u64,
    version: u32,
}

/// Where an object has its class.
#[derive(Debug, Clone, Copy)]
enum Class {
    Pointer(u64),
    Narrow {
        at: u64,
        base: u64,
        shift: u32,
    },
    /// In the upper bits of its first word.
    InMark {
        bits: u32,
        base: u64,
        shift: u32,
    },
}

/// An array of references.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Array {
    first: u64,
    pub(crate) length: u64,
    each: u64,
}

impl Array {
    /// Where a reference is.
    pub(crate) fn place(&self, index: u64) -> Option<u64> {
        self.first.checked_add(index.checked_mul(self.each)?)
    }
}

/// How a class lists its fields.
#[derive(Debug, Clone, Copy)]
enum Fields {
    /// Six numbers of two bytes each: up to JDK 20.
    Array {
        list: u64,
        count: u64,
        length: u64,
        data: u64,
    },
    /// Packed numbers.
    Packed { list: u64, data: u64 },
}

/// Numbers of a field in the former.
const ARRAY_SLOTS: u64 = 6;

/// The offset's two lowest bits say what kind it is.
const ARRAY_TAG_BITS: u32 = 2;

/// In packed fields, flags that each say that one more number follows: initialised, generic, contended.
const MORE: [u32; 3] = [1 << 0, 1 << 2, 1 << 4];

/// Of a packed field that is the machine's own: its name is no constant's.
const INJECTED: u32 = 1 << 1;

impl Oops {
    pub(crate) fn read<S: Source>(
        memory: &mut Memory<S>,
        tables: &Structures,
        flags: &Flags,
        layout: &Layout,
    ) -> Option<Oops> {
        let address = |memory: &mut Memory<S>, class: &str, fields: [&str; 2]| {
            let at = fields
                .into_iter()
                .find_map(|field| tables.address(class, field))?;
            memory.word(at)
        };
        let shift = |memory: &mut Memory<S>, class: &str, fields: [&str; 2]| {
            let at = fields
                .into_iter()
                .find_map(|field| tables.address(class, field))?;
            memory.int(at).filter(|shift| *shift < 64)
        };
        let known = |memory: &mut Memory<S>, name: &str| {
            let name = format!("_klasses[static_cast<int>(vmClassID::{name}_klass_knum)]");
            memory.pointer(tables.address("vmClasses", &name)?)
        };
        let narrow = if flags.is_set("UseCompressedOops") {
            let base = address(memory, "CompressedOops", ["_base", "_narrow_oop._base"])?;
            Some((
                base,
                shift(memory, "CompressedOops", ["_shift", "_narrow_oop._shift"])?,
            ))
        } else {
            None
        };
        let at = tables.offset("oopDesc", "_metadata._klass")?;
        let compact = flags.is_set("UseCompactObjectHeaders");
        let class = if compact || flags.is_set("UseCompressedClassPointers") {
            let name = "CompressedKlassPointers";
            let base = address(memory, name, ["_base", "_narrow_klass._base"])?;
            let shift = shift(memory, name, ["_shift", "_narrow_klass._shift"])?;
            if compact {
                let bits = tables.constant("markWord::klass_shift")?;
                let bits = u32::try_from(bits).ok().filter(|bits| *bits < 64)?;
                Class::InMark { bits, base, shift }
            } else {
                Class::Narrow { at, base, shift }
            }
        } else {
            Class::Pointer(at)
        };
        let fields = match tables.offset("InstanceKlass", "_fieldinfo_stream") {
            Some(list) => Fields::Packed {
                list,
                data: tables.offset("Array<u1>", "_data")?,
            },
            None => Fields::Array {
                list: tables.offset("InstanceKlass", "_fields")?,
                count: tables.offset("InstanceKlass", "_java_fields_count")?,
                length: tables.offset("Array<int>", "_length")?,
                data: tables.offset("Array<u2>", "_data")?,
            },
        };
        Some(Oops {
            narrow,
            class,
            shift: coloured(memory, tables, flags).unwrap_or(0),
            array_length: match class {
                Class::Pointer(at) => at + 8,
                Class::Narrow { at, .. } => at + 4,
                Class::InMark { .. } => 8,
            },
            array_aligned: layout.version < 23,
            super_class: tables.offset("Klass", "_super")?,
            class_constants: tables.offset("InstanceKlass", "_constants")?,
            fields,
            thread: known(memory, "Thread")?,
            string: known(memory, "String")?,
            version: layout.version,
        })
    }

    /// The object that a reference outside the heap is to: those of handles have eight bytes.
    pub(crate) fn of_handle<S: Source>(&self, memory: &mut Memory<S>, slot: u64) -> Option<u64> {
        memory.pointer(slot).map(|reference| reference >> self.shift)
    }

    /// The object that a reference in an object is to.
    pub(crate) fn reference<S: Source>(&self, memory: &mut Memory<S>, field: u64) -> Option<u64> {
        match self.narrow {
            None => self.of_handle(memory, field),
            Some((base, shift)) => {
                let narrow = u64::from(memory.int(field)?);
                (narrow != 0).then(|| base.wrapping_add(narrow << shift))
            }
        }
    }

    /// An object's class.
    pub(crate) fn class<S: Source>(&self, memory: &mut Memory<S>, object: u64) -> Option<u64> {
        let wide =
            |narrow: u64, base: u64, shift: u32| (narrow != 0).then(|| base.wrapping_add(narrow << shift));
        match self.class {
            Class::Pointer(at) => memory.pointer(object.checked_add(at)?),
            Class::Narrow { at, base, shift } => {
                wide(u64::from(memory.int(object.checked_add(at)?)?), base, shift)
            }
            Class::InMark { bits, base, shift } => wide(memory.word(object)? >> bits, base, shift),
        }
    }

    /// How far into its objects a class, or one above it, has a field.
    pub(crate) fn field<S: Source>(
        &self,
        memory: &mut Memory<S>,
        layout: &Layout,
        mut class: u64,
        name: &str,
    ) -> Option<u64> {
        for _ in 0..SUPERS_MAX {
            if let Some(offset) = self.own_field(memory, layout, class, name) {
                return Some(offset);
            }
            class = memory.pointer(class.checked_add(self.super_class)?)?;
        }
        None
    }

    fn own_field<S: Source>(
        &self,
        memory: &mut Memory<S>,
        layout: &Layout,
        class: u64,
        name: &str,
    ) -> Option<u64> {
        let pool = memory.pointer(class.checked_add(self.class_constants)?)?;
        let is = |memory: &mut Memory<S>, index: u16| {
            constant_text(memory, layout, pool, index).as_deref() == Some(name)
        };
        match self.fields {
            Fields::Array {
                list,
                count,
                length,
                data,
            } => {
                let list = memory.pointer(class.checked_add(list)?)?;
                let slots = u64::from(memory.int(list.checked_add(length)?)?);
                let count = u64::from(memory.short(class.checked_add(count)?)?).min(slots / ARRAY_SLOTS);
                for index in 0..count {
                    let at = list.checked_add(data + index * ARRAY_SLOTS * 2)?;
                    let text = memory.short(at.checked_add(2)?)?;
                    if is(memory, text) {
                        let low = u32::from(memory.short(at.checked_add(8)?)?);
                        let high = u32::from(memory.short(at.checked_add(10)?)?);
                        return Some(u64::from((high << 16 | low) >> ARRAY_TAG_BITS));
                    }
                }
                None
            }
            Fields::Packed { list, data } => {
                let list = memory.pointer(class.checked_add(list)?)?;
                let mut numbers = Numbers::at(list.checked_add(data)?, self.version);
                let count = numbers.next(memory)?.min(FIELDS_MAX);
                numbers.next(memory)?;
                for _ in 0..count {
                    let text = numbers.next(memory)?;
                    let _signature = numbers.next(memory)?;
                    let offset = numbers.next(memory)?;
                    let _access = numbers.next(memory)?;
                    let flags = numbers.next(memory)?;
                    for _ in MORE.iter().filter(|more| flags & **more != 0) {
                        numbers.next(memory)?;
                    }
                    let text = u16::try_from(text).ok()?;
                    if flags & INJECTED == 0 && is(memory, text) {
                        return Some(u64::from(offset));
                    }
                }
                None
            }
        }
    }

    /// What a string says.
    pub(crate) fn string<S: Source>(
        &self,
        memory: &mut Memory<S>,
        layout: &Layout,
        string: u64,
    ) -> Option<String> {
        if self.class(memory, string)? != self.string {
            return None;
        }
        let value = self.field(memory, layout, self.string, "value")?;
        let coder = self.field(memory, layout, self.string, "coder")?;
        let array = self.reference(memory, string.checked_add(value)?)?;
        let wide = memory.byte(string.checked_add(coder)?)? != 0;
        let bytes = memory.int(array.checked_add(self.array_length)?)?;
        let mut data = array.checked_add(self.array_length)?.checked_add(4)?;
        if self.array_aligned {
            data = data.checked_next_multiple_of(8)?;
        }
        let width = if wide { 2 } else { 1 };
        let mut text = vec![0; bytes.min(STRING_MAX * width) as usize];
        memory.read(data, &mut text)?;
        Some(if wide {
            let units: Vec<u16> = text
                .as_chunks::<2>()
                .0
                .iter()
                .map(|unit| u16::from_le_bytes(*unit))
                .collect();
            String::from_utf16_lossy(&units)
        } else {
            text.into_iter().map(char::from).collect()
        })
    }

    /// The places of an array of references.
    pub(crate) fn references<S: Source>(&self, memory: &mut Memory<S>, array: u64) -> Option<Array> {
        let length = memory.int(array.checked_add(self.array_length)?)?;
        let first = array.checked_add(self.array_length)?.checked_add(4)?;
        let each = if self.narrow.is_some() { 4 } else { 8 };
        let aligned = self.array_aligned || each == 8;
        Some(Array {
            first: if aligned {
                first.checked_next_multiple_of(8)?
            } else {
                first
            },
            length: u64::from(length),
            each,
        })
    }

    /// The name of an object's class.
    pub(crate) fn class_name<S: Source>(
        &self,
        memory: &mut Memory<S>,
        layout: &Layout,
        object: u64,
    ) -> Option<String> {
        let class = self.class(memory, object)?;
        class_name(memory, layout, class)
    }
}

/// How far references are shifted to make room for a collector's own bits.
fn coloured<S: Source>(memory: &mut Memory<S>, tables: &Structures, flags: &Flags) -> Option<u32> {
    if !flags.is_set("UseZGC") {
        return None;
    }
    let all = memory.pointer(tables.address("ZGlobalsForVMStructs", "_instance_p")?)?;
    let shift = tables.offset("ZGlobalsForVMStructs", "_ZPointerLoadShift")?;
    let shift = memory.pointer(all.checked_add(shift)?)?;
    memory.int(shift).filter(|shift| *shift < 64)
}
