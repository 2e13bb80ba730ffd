//! Where V8 keeps what is read, by its own word.
//!
//! V8 exports constants for debuggers (`v8dbg_…`): offsets of fields, numbers of types, tags. In: the addresses of these symbols.
//! Out: the constants that are read here. What has no constant is a table by version, and stands beside them:
//! the fields before the data of a bytecode array, what a function's scope has behind its first variables, and the line at which a
//! script begins.

use crate::memory::{Memory, Source};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A version of V8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version {
    /// 10 to 13.
    pub major: u32,
    /// The second number.
    pub minor: u32,
}

/// V8 of Node 18, and of Node 24.
const FIRST: Version = Version { major: 10, minor: 2 };
const LAST: Version = Version { major: 13, minor: 6 };

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Why frames of an engine are not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Refused {
    /// Its file exports no version.
    #[error("the version of V8 is not known")]
    NoVersion,
    /// holdup has no table for it.
    #[error("V8 {0} is not supported")]
    Unsupported(Version),
    /// Its file lacks constants, or they make no sense.
    #[error("V8 {0} does not export where its structures are")]
    NoConstants(Version),
    /// Its memory cannot be read.
    #[error("its memory cannot be read")]
    Memory,
}

/// The exported symbols that are wanted. Where names differ by version, all are listed.
pub const SYMBOLS: [&str; 60] = [
    "_ZN2v88internal7Version6major_E",
    "_ZN2v88internal7Version6minor_E",
    "v8dbg_HeapObjectTag",
    "v8dbg_TaggedSize",
    "v8dbg_SmiShiftSize",
    "v8dbg_SmiValueShift",
    "v8dbg_off_fp_function",
    "v8dbg_off_fp_context_or_frame_type",
    "v8dbg_off_fp_bytecode_array",
    "v8dbg_off_fp_bytecode_offset",
    "v8dbg_frametype_EntryFrame",
    "v8dbg_frametype_ConstructEntryFrame",
    "v8dbg_class_Map__instance_type__uint16_t",
    "v8dbg_class_JSFunction__shared__SharedFunctionInfo",
    "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Object",
    "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
    "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_",
    "v8dbg_class_SharedFunctionInfo__script_or_debug_info__HeapObject",
    "v8dbg_class_SharedFunctionInfo__script__Tagged_HeapObject_",
    "v8dbg_class_SharedFunctionInfo__raw_function_token_offset__int16_t",
    "v8dbg_class_Script__source__Object",
    "v8dbg_class_Script__name__Object",
    "v8dbg_class_Script__line_ends__Object",
    "v8dbg_class_String__length__int32_t",
    "v8dbg_class_SeqOneByteString__chars__char",
    "v8dbg_class_SeqTwoByteString__chars__char",
    "v8dbg_class_ConsString__first__String",
    "v8dbg_class_ConsString__second__String",
    "v8dbg_class_SlicedString__parent__String",
    "v8dbg_class_SlicedString__offset__SMI",
    "v8dbg_class_ThinString__actual__String",
    "v8dbg_class_FixedArrayBase__length__SMI",
    "v8dbg_class_FixedArray__data__uintptr_t",
    "v8dbg_class_BytecodeArray__data__uintptr_t",
    "v8dbg_class_BytecodeArray__wrapper__Tagged_BytecodeWrapper_",
    "v8dbg_scopeinfo_idx_ncontextlocals",
    "v8dbg_scopeinfo_idx_first_vars",
    "v8dbg_FirstNonstringType",
    "v8dbg_StringRepresentationMask",
    "v8dbg_StringEncodingMask",
    "v8dbg_OneByteStringTag",
    "v8dbg_SeqStringTag",
    "v8dbg_ConsStringTag",
    "v8dbg_SlicedStringTag",
    "v8dbg_ThinStringTag",
    "v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE",
    "v8dbg_type_Script__SCRIPT_TYPE",
    "v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE",
    "v8dbg_type_BytecodeArray__BYTECODE_ARRAY_TYPE",
    "v8dbg_type_FixedArray__FIXED_ARRAY_TYPE",
    "v8dbg_class_Map__instance_size_in_words__char",
    "v8dbg_class_JSFunction__context__Context",
    "v8dbg_FirstContextType",
    "v8dbg_LastContextType",
    "v8dbg_type_JSFunction__JS_FUNCTION_TYPE",
    "v8dbg_type_JSObject__JS_OBJECT_TYPE",
    "v8dbg_type_JSAsyncFunctionObject__JS_ASYNC_FUNCTION_OBJECT_TYPE",
    "v8dbg_type_PromiseReaction__PROMISE_REACTION_TYPE",
    "v8dbg_type_PropertyArray__PROPERTY_ARRAY_TYPE",
    "v8dbg_type_ByteArray__BYTE_ARRAY_TYPE",
];

/// Addresses of [`SYMBOLS`], in their order; 0 for those that the file has not.
pub type Addresses = Vec<u64>;

/// Kinds of strings, as the lowest bits of their type say them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strings {
    pub(super) first_other_type: u16,
    pub(super) representation: u16,
    pub(super) encoding: u16,
    pub(super) one_byte: u16,
    pub(super) sequential: u16,
    pub(super) cons: u16,
    pub(super) sliced: u16,
    pub(super) thin: u16,
    pub(super) length: u64,
    pub(super) one_byte_chars: u64,
    pub(super) two_byte_chars: u64,
    pub(super) first: u64,
    pub(super) second: u64,
    pub(super) parent: u64,
    pub(super) offset: u64,
    pub(super) actual: u64,
}

/// Types of objects.
#[derive(Debug, Clone, Copy)]
pub(super) struct Types {
    pub(super) shared: u16,
    pub(super) script: u16,
    pub(super) scope: u16,
    pub(super) bytecode: u16,
    pub(super) array: u16,
}

/// What is read of objects that lead from a request of libuv to the function that made it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Links {
    /// In a map: how large its objects are, words.
    pub(super) size: u64,
    /// In a closure: its scope.
    pub(super) context: u64,
    pub(super) contexts: (u16, u16),
    pub(super) closure: u16,
    /// The first kind of object that a program can make; all beyond are objects of JavaScript.
    pub(super) object: u16,
    pub(super) async_function: u16,
    pub(super) reaction: u16,
    pub(super) properties: u16,
    /// The kind behind all kinds of arrays of references.
    pub(super) bytes: u16,
}

/// What is read of a frame, an object, a function and a script.
#[derive(Debug, Clone, Copy)]
pub(super) struct Constants {
    pub(super) version: Version,
    pub(super) smi_shift: u32,
    /// Below the frame pointer, bytes.
    pub(super) function: u64,
    pub(super) context: u64,
    pub(super) bytecode_array: u64,
    pub(super) bytecode_offset: u64,
    /// Types of frames in which native code calls JavaScript.
    pub(super) entries: [u64; 2],
    pub(super) instance_type: u64,
    pub(super) shared: u64,
    pub(super) name: u64,
    pub(super) script: u64,
    pub(super) token_offset: u64,
    pub(super) script_source: u64,
    pub(super) script_name: u64,
    /// By a table: it follows the name in all versions.
    pub(super) script_first_line: u64,
    pub(super) line_ends: u64,
    pub(super) array_length: u64,
    pub(super) array_data: u64,
    pub(super) bytecode_data: u64,
    /// By a table: the third field behind the length, from 12.4 on the second.
    pub(super) positions: u64,
    pub(super) scope_locals: u64,
    pub(super) scope_first: u64,
    /// By a table: from 13 on the positions of a function stand before its variables.
    pub(super) scope_begins_with_positions: bool,
    pub(super) types: Types,
    pub(super) strings: Strings,
    /// `None` where the file lacks them.
    pub(super) links: Option<Links>,
}

/// Largest offset in an object or below a frame pointer that is believed, bytes.
const OFFSET_MAX: i32 = 4096;

/// A word.
const WORD: u64 = 8;

struct Read<'a, S> {
    memory: &'a mut Memory<S>,
    addresses: &'a [u64],
}

impl<S: Source> Read<'_, S> {
    fn number(&mut self, name: &str) -> Option<i32> {
        let at = SYMBOLS.iter().position(|symbol| *symbol == name)?;
        let address = *self.addresses.get(at).filter(|address| **address != 0)?;
        Some(self.memory.int(address)?.cast_signed())
    }

    fn constant(&mut self, name: &str) -> Option<u64> {
        let number = self.number(&format!("v8dbg_{name}"))?;
        u64::try_from(number).ok().filter(|_| number <= OFFSET_MAX)
    }

    fn field(&mut self, names: &[&str]) -> Option<u64> {
        names
            .iter()
            .find_map(|name| self.constant(&format!("class_{name}")))
    }

    /// How far below the frame pointer.
    fn below(&mut self, name: &str) -> Option<u64> {
        let number = self.number(&format!("v8dbg_off_fp_{name}"))?;
        let below = u64::try_from(number.checked_neg()?).ok()?;
        (below % WORD == 0 && (-OFFSET_MAX..0).contains(&number)).then_some(below)
    }

    fn kind(&mut self, name: &str) -> Option<u16> {
        u16::try_from(self.constant(name)?).ok()
    }

    fn strings(&mut self) -> Option<Strings> {
        Some(Strings {
            first_other_type: self.kind("FirstNonstringType")?,
            representation: self.kind("StringRepresentationMask")?,
            encoding: self.kind("StringEncodingMask")?,
            one_byte: self.kind("OneByteStringTag")?,
            sequential: self.kind("SeqStringTag")?,
            cons: self.kind("ConsStringTag")?,
            sliced: self.kind("SlicedStringTag")?,
            thin: self.kind("ThinStringTag")?,
            length: self.field(&["String__length__int32_t"])?,
            one_byte_chars: self.field(&["SeqOneByteString__chars__char"])?,
            two_byte_chars: self.field(&["SeqTwoByteString__chars__char"])?,
            first: self.field(&["ConsString__first__String"])?,
            second: self.field(&["ConsString__second__String"])?,
            parent: self.field(&["SlicedString__parent__String"])?,
            offset: self.field(&["SlicedString__offset__SMI"])?,
            actual: self.field(&["ThinString__actual__String"])?,
        })
    }

    fn types(&mut self) -> Option<Types> {
        Some(Types {
            shared: self.kind("type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE")?,
            script: self.kind("type_Script__SCRIPT_TYPE")?,
            scope: self.kind("type_ScopeInfo__SCOPE_INFO_TYPE")?,
            bytecode: self.kind("type_BytecodeArray__BYTECODE_ARRAY_TYPE")?,
            array: self.kind("type_FixedArray__FIXED_ARRAY_TYPE")?,
        })
    }

    fn links(&mut self) -> Option<Links> {
        Some(Links {
            size: self.field(&["Map__instance_size_in_words__char"])?,
            context: self.field(&["JSFunction__context__Context"])?,
            contexts: (self.kind("FirstContextType")?, self.kind("LastContextType")?),
            closure: self.kind("type_JSFunction__JS_FUNCTION_TYPE")?,
            object: self.kind("type_JSObject__JS_OBJECT_TYPE")?,
            async_function: self.kind("type_JSAsyncFunctionObject__JS_ASYNC_FUNCTION_OBJECT_TYPE")?,
            reaction: self.kind("type_PromiseReaction__PROMISE_REACTION_TYPE")?,
            properties: self.kind("type_PropertyArray__PROPERTY_ARRAY_TYPE")?,
            bytes: self.kind("type_ByteArray__BYTE_ARRAY_TYPE")?,
        })
    }

    fn all(&mut self, version: Version) -> Option<Constants> {
        // Pointers that are compressed or tagged otherwise are not understood.
        let tagged = self.constant("HeapObjectTag")? == 1 && self.constant("TaggedSize")? == WORD;
        let smi_shift = self.constant("SmiShiftSize")? + self.constant("SmiValueShift")?;
        if !tagged || smi_shift != 32 {
            return None;
        }
        let name = "SharedFunctionInfo__name_or_scope_info__";
        let name =
            ["Object", "Tagged_Object_", "Tagged_NameOrScopeInfoT_"].map(|kind| format!("{name}{kind}"));
        let script_name = self.field(&["Script__name__Object"])?;
        let array_length = self.field(&["FixedArrayBase__length__SMI"])?;
        let wrapped = self.field(&["BytecodeArray__wrapper__Tagged_BytecodeWrapper_"]);
        let scope_first = self.constant("scopeinfo_idx_first_vars")?;
        Some(Constants {
            version,
            smi_shift: u32::try_from(smi_shift).ok()?,
            function: self.below("function")?,
            context: self.below("context_or_frame_type")?,
            bytecode_array: self.below("bytecode_array")?,
            bytecode_offset: self.below("bytecode_offset")?,
            entries: [
                self.constant("frametype_EntryFrame")?,
                self.constant("frametype_ConstructEntryFrame")?,
            ],
            instance_type: self.field(&["Map__instance_type__uint16_t"])?,
            shared: self.field(&["JSFunction__shared__SharedFunctionInfo"])?,
            name: self.field(&name.each_ref().map(String::as_str))?,
            script: self.field(&[
                "SharedFunctionInfo__script_or_debug_info__HeapObject",
                "SharedFunctionInfo__script__Tagged_HeapObject_",
            ])?,
            token_offset: self.field(&["SharedFunctionInfo__raw_function_token_offset__int16_t"])?,
            script_source: self.field(&["Script__source__Object"])?,
            script_name,
            script_first_line: script_name + WORD,
            line_ends: self.field(&["Script__line_ends__Object"])?,
            array_length,
            array_data: self.field(&["FixedArray__data__uintptr_t"])?,
            bytecode_data: self.field(&["BytecodeArray__data__uintptr_t"])?,
            positions: match wrapped {
                Some(wrapper) => wrapper + WORD,
                None => array_length + 3 * WORD,
            },
            scope_locals: self.constant("scopeinfo_idx_ncontextlocals")?,
            scope_first,
            scope_begins_with_positions: version.major >= 13,
            types: self.types()?,
            strings: self.strings()?,
            links: self.links(),
        })
    }
}

impl Constants {
    /// Those of the engine whose symbols are at these addresses.
    pub(super) fn read<S: Source>(memory: &mut Memory<S>, addresses: &[u64]) -> Result<Constants, Refused> {
        let mut read = Read { memory, addresses };
        let there = |at: usize| addresses.get(at).is_some_and(|address| *address != 0);
        if !there(0) || !there(1) {
            return Err(Refused::NoVersion);
        }
        let mut number = |at: usize| {
            let number = read.number(SYMBOLS[at]).ok_or(Refused::Memory)?;
            u32::try_from(number).map_err(|_| Refused::NoVersion)
        };
        let version = Version {
            major: number(0)?,
            minor: number(1)?,
        };
        if !(FIRST..=LAST).contains(&version) {
            return Err(Refused::Unsupported(version));
        }
        read.all(version).ok_or(Refused::NoConstants(version))
    }
}
