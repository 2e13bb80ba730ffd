//! Objects of Python: their types, attributes, dictionaries and sets.
//!
//! In: addresses of objects. Out: what they hold, in bounds. An attribute is found in the dictionary of its object, or in the array of
//! values that stands for one (3.11 and later).

use super::objects_layout::{Attributes, Dictionaries, Objects};
use super::{Interpreter, code};
use crate::memory::Source;

/// Entries of a dictionary or set that are read.
const ENTRIES_MAX: u64 = 65_536;

/// Longest name of a type that is told apart from others, bytes.
const TYPE_NAME_MAX: usize = 64;

/// Types whose names are kept before all are forgotten.
pub(super) const TYPES_MAX: usize = 4096;

/// Of an object its type; of a type its name, its size, its flags, where its objects have their dictionary, and its base.
const TYPE: u64 = 8;
const TYPE_NAME: u64 = 24;
const BASIC_SIZE: u64 = 32;
const FLAGS: u64 = 168;
const BASE: u64 = 256;
const DICT_OFFSET: u64 = 288;

/// Words of an object that are looked at for what it refers to.
const SLOTS_MAX: u64 = 64;

/// Flags of types: made while the program runs; their objects have values within, or a dictionary before them.
const HEAP_TYPE: u64 = 1 << 9;
const INLINE_VALUES: u64 = 1 << 2;
const MANAGED_DICT: u64 = 1 << 4;

/// Before an object: its dictionary, and in 3.11 its values.
const DICT_BEFORE: u64 = 24;
const VALUES_BEFORE: u64 = 32;

/// What bound methods are bound to, whether they are C's or Python's; of a method of C what describes it, of which the first word is
/// its name.
pub(super) const BOUND_TO: u64 = 24;
const DESCRIBED_BY: u64 = 16;

/// Bases of a type that are looked through.
const BASES_MAX: usize = 16;

impl<S: Source> Interpreter<S> {
    /// A word of a structure.
    pub(super) fn at(&mut self, address: u64, offset: u64) -> Option<u64> {
        self.memory.word(address.checked_add(offset)?)
    }

    /// The name of an object's type, as the interpreter has it: `_asyncio.Task`, or without a module.
    pub(super) fn type_name(&mut self, object: u64) -> Option<String> {
        let kind = self.at(object, TYPE)?;
        self.name_of_type(kind)
    }

    fn name_of_type(&mut self, kind: u64) -> Option<String> {
        if let Some(known) = self.types.get(&kind) {
            return Some(known.clone());
        }
        let name = self.at(kind, TYPE_NAME)?;
        let name = self.memory.c_text(name, TYPE_NAME_MAX)?;
        if self.types.len() >= TYPES_MAX {
            self.types.clear();
        }
        self.types.insert(kind, name.clone());
        Some(name)
    }

    /// Whether an object is of this type, or of one that is derived from it.
    pub(super) fn is_a(&mut self, object: u64, name: &str) -> bool {
        let mut kind = self.at(object, TYPE);
        for _ in 0..BASES_MAX {
            let Some(now) = kind.filter(|kind| *kind != 0) else {
                return false;
            };
            if self.name_of_type(now).as_deref() == Some(name) {
                return true;
            }
            kind = self.at(now, BASE);
        }
        false
    }

    /// A text.
    pub(super) fn str_at(&mut self, object: u64) -> Option<String> {
        let text = self.layout.text;
        code::text(&mut self.memory, &text, object)
    }

    /// An attribute of an object.
    pub(super) fn attribute(&mut self, object: u64, name: &str) -> Option<u64> {
        let (keys, values, header) = match self.store(object)? {
            Store::Dict(dict) => return self.item(dict, name),
            Store::Values(keys, values, header) => (keys, values, header),
        };
        let entries = self.entries(keys, Some((values, header)))?;
        self.named(entries, name)
    }

    /// The values of all attributes, with their names.
    pub(super) fn attributes(&mut self, object: u64) -> Option<Vec<(u64, u64)>> {
        match self.store(object)? {
            Store::Dict(dict) => self.items(dict),
            Store::Values(keys, values, header) => self.entries(keys, Some((values, header))),
        }
    }

    /// What an object of a class in Python refers to that has slots instead of attributes.
    pub(super) fn slots(&mut self, object: u64) -> Option<Vec<u64>> {
        let kind = self.at(object, TYPE)?;
        if self.at(kind, FLAGS)? & HEAP_TYPE == 0 {
            return None;
        }
        let words = (self.at(kind, BASIC_SIZE)? / 8).min(SLOTS_MAX);
        let mut found = Vec::new();
        for word in 2..words {
            let value = self.at(object, word * 8)?;
            let kind = self.at(value, TYPE).filter(|_| value != 0);
            if kind.is_some_and(|kind| self.is_a(kind, "type")) {
                found.push(value);
            }
        }
        Some(found)
    }

    /// Where an object keeps its attributes.
    fn store(&mut self, object: u64) -> Option<Store> {
        let objects = self.layout.objects?;
        let kind = self.at(object, TYPE)?;
        let dict = |dict: u64| (dict != 0).then_some(Store::Dict(dict));
        if objects.attributes == Attributes::Offset {
            let offset = self.at(kind, DICT_OFFSET)?.cast_signed();
            let offset = u64::try_from(offset).ok().filter(|offset| *offset > 0)?;
            return dict(self.at(object, offset)?);
        }
        let flags = self.at(kind, FLAGS)?;
        if flags & MANAGED_DICT == 0 {
            let offset = self.at(kind, DICT_OFFSET)?.cast_signed();
            let offset = u64::try_from(offset).ok().filter(|offset| *offset > 0)?;
            return dict(self.at(object, offset)?);
        }
        let before = self.memory.word(object.checked_sub(DICT_BEFORE)?)?;
        let keys = |reader: &mut Self| reader.at(kind, objects.cached_keys).filter(|keys| *keys != 0);
        match objects.attributes {
            Attributes::Offset => None,
            Attributes::TwoBefore => match self.memory.word(object.checked_sub(VALUES_BEFORE)?)? {
                0 => dict(before),
                values => Some(Store::Values(keys(self)?, values, 0)),
            },
            // A lowest bit that is set tells values from a dictionary.
            Attributes::TaggedBefore if before & 1 == 1 => {
                Some(Store::Values(keys(self)?, before.checked_add(1)?, 0))
            }
            Attributes::TaggedBefore => dict(before),
            Attributes::Inline if before != 0 || flags & INLINE_VALUES == 0 => dict(before),
            Attributes::Inline => {
                let size = self.at(kind, BASIC_SIZE)?;
                Some(Store::Values(keys(self)?, object.checked_add(size)?, 8))
            }
        }
    }

    /// The value of a dictionary under a name.
    pub(super) fn item(&mut self, dict: u64, name: &str) -> Option<u64> {
        let entries = self.items(dict)?;
        self.named(entries, name)
    }

    fn named(&mut self, entries: Vec<(u64, u64)>, name: &str) -> Option<u64> {
        let found = |(key, value)| (self.str_at(key).as_deref() == Some(name)).then_some(value);
        entries.into_iter().find_map(found)
    }

    /// Keys and values of a dictionary.
    pub(super) fn items(&mut self, dict: u64) -> Option<Vec<(u64, u64)>> {
        let objects = self.layout.objects?;
        let (keys, values) = (self.at(dict, 32)?, self.at(dict, 40)?);
        let header = match objects.attributes {
            Attributes::Inline => 8,
            Attributes::Offset | Attributes::TwoBefore | Attributes::TaggedBefore => 0,
        };
        self.entries(keys, (values != 0).then_some((values, header)))
    }

    /// Entries of a table of keys, with values of their own or in an array behind a header.
    fn entries(&mut self, keys: u64, values: Option<(u64, u64)>) -> Option<Vec<(u64, u64)>> {
        let Objects { dictionaries, .. } = self.layout.objects?;
        let (count, begin, step, key_at) = match dictionaries {
            Dictionaries::Old => {
                let size = self.at(keys, 8)?;
                let index = match size {
                    0..=0xff => 1,
                    0x100..=0xffff => 2,
                    0x1_0000..=0xffff_ffff => 4,
                    _ => 8,
                };
                let begin = keys.checked_add(40)?.checked_add(size.checked_mul(index)?)?;
                (self.at(keys, 32)?, begin, 24, 8)
            }
            Dictionaries::New => {
                let index = self.memory.byte(keys.checked_add(9)?)?;
                let kind = self.memory.byte(keys.checked_add(10)?)?;
                let begin = keys
                    .checked_add(32)?
                    .checked_add(1_u64.checked_shl(index.into())?)?;
                let (step, key_at) = if kind == 0 { (24, 8) } else { (16, 0) };
                (self.at(keys, 24)?, begin, step, key_at)
            }
        };
        let mut entries = Vec::new();
        for number in 0..count.min(ENTRIES_MAX) {
            let entry = begin.checked_add(number * step)?;
            let key = self.at(entry, key_at)?;
            let value = match values {
                Some((values, header)) => self.at(values, header + number * 8)?,
                None => self.at(entry, key_at + 8)?,
            };
            if key != 0 && value != 0 {
                entries.push((key, value));
            }
        }
        Some(entries)
    }

    /// The members of a set, with those that were taken out.
    pub(super) fn members(&mut self, set: u64) -> Option<Vec<u64>> {
        let (mask, table) = (self.at(set, 32)?, self.at(set, 40)?);
        let mut members = Vec::new();
        for number in 0..=mask.min(ENTRIES_MAX) {
            let member = self.at(table, number * 16)?;
            if member != 0 {
                members.push(member);
            }
        }
        Some(members)
    }

    /// What a bound method of this name is bound to.
    pub(super) fn bound(&mut self, method: u64, name: &str) -> Option<u64> {
        let to = self.at(method, BOUND_TO);
        match self.type_name(method)?.as_str() {
            "builtin_function_or_method" => {
                let described = self.at(method, DESCRIBED_BY)?;
                let text = self.at(described, 0)?;
                let own = self.memory.c_text(text, TYPE_NAME_MAX)?;
                to.filter(|_| own == name)
            }
            "method" => {
                let function = self.at(method, DESCRIBED_BY)?;
                let objects = self.layout.objects?;
                let own = self.at(function, objects.function_name)?;
                let own = self.str_at(own)?;
                to.filter(|_| own == name)
            }
            _ => None,
        }
    }
}

/// Where attributes are.
enum Store {
    /// In a dictionary.
    Dict(u64),
    /// Keys, values, and how long the header of the values is.
    Values(u64, u64, u64),
}
