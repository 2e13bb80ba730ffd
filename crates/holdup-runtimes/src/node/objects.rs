//! Objects of V8's heap: strings, functions, scripts.
//!
//! In: references to objects, as frames have them. Out: names, files and lines. An object is what its type says: each is checked
//! before it is read, because what lay there may have been moved or given up since.

use super::constants::Constants;
use super::reached::UNNAMED;
use crate::memory::{Memory, Source};
use std::collections::HashMap;
use std::sync::Arc;

/// Characters of a name or path that are kept; more is cut off.
const TEXT_MAX: usize = 1024;

/// Parts of a string that are read: it may be a tree of others.
const PARTS_MAX: usize = 64;

/// Characters of a script that are read to count its lines.
const SCRIPT_MAX: usize = 8 << 20;

/// Lines of scripts that are kept in all; then all are forgotten.
const LINES_MAX: usize = 4 << 20;

/// Bytes of a source position table that are read.
const TABLE_MAX: usize = 256 << 10;

/// Variables of a function from which on their names are in a table of their own.
const INLINE_NAMES_MAX: u64 = 75;

/// Variables that are believed.
const VARIABLES_MAX: u64 = 16_384;

/// A function that stands at no place of its own in the source.
const NO_TOKEN: u64 = 0xffff;

/// What is behind the `//` of a file that was imported.
const FILE_URL: &str = "file://";

const WORD: u64 = 8;

/// A reference to an object: an address whose lowest bits say that it is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Object(u64);

impl Object {
    /// A word, if it is a reference that lasts while its object does.
    pub(super) fn of(word: u64) -> Option<Object> {
        (word & 3 == 1 && word > WORD).then(|| Object(word - 1))
    }

    pub(super) fn at(self, offset: u64) -> Option<u64> {
        self.0.checked_add(offset)
    }
}

/// A function, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) script: Option<Object>,
    /// Where it begins in the script, characters.
    pub(super) begins: Option<u64>,
    /// One past its last character there.
    pub(super) ends: Option<u64>,
}

/// What is read of a scope.
#[derive(Debug)]
pub(super) struct Scope {
    /// The function's own name, or else the one that it was assigned to.
    pub(super) name: String,
    /// Where it begins in the script, and one past its last character.
    pub(super) begins: Option<u64>,
    pub(super) ends: Option<u64>,
}

/// Ends of lines of scripts, by script and source.
#[derive(Debug, Default)]
pub(super) struct Lines {
    known: HashMap<(Object, Object), Arc<Vec<u32>>>,
    total: usize,
}

/// Reads objects.
#[derive(Debug)]
pub(super) struct Objects<'a, S> {
    pub(super) memory: &'a mut Memory<S>,
    pub(super) constants: &'a Constants,
    pub(super) lines: &'a mut Lines,
}

impl Object {
    /// Tells it from all others.
    pub(super) fn address(self) -> u64 {
        self.0
    }
}

impl<S: Source> Objects<'_, S> {
    pub(super) fn field(&mut self, object: Object, offset: u64) -> Option<u64> {
        self.memory.word(object.at(offset)?)
    }

    pub(super) fn reference(&mut self, object: Object, offset: u64) -> Option<Object> {
        Object::of(self.field(object, offset)?)
    }

    /// A small integer; it is in the upper half of a word.
    pub(super) fn small(&self, word: u64) -> Option<i64> {
        let shift = self.constants.smi_shift;
        let lower = word & ((1 << shift) - 1);
        (lower == 0).then(|| word.cast_signed() >> shift)
    }

    fn small_field(&mut self, object: Object, offset: u64) -> Option<u64> {
        let word = self.field(object, offset)?;
        u64::try_from(self.small(word)?).ok()
    }

    pub(super) fn kind(&mut self, object: Object) -> Option<u16> {
        let map = self.reference(object, 0)?;
        self.memory.short(map.at(self.constants.instance_type)?)
    }

    pub(super) fn is(&mut self, object: Object, kind: u16) -> bool {
        self.kind(object) == Some(kind)
    }

    /// What all closures of a function share, if this is a closure.
    pub(super) fn shared(&mut self, closure: Object) -> Option<Object> {
        let shared = self.reference(closure, self.constants.shared)?;
        self.is(shared, self.constants.types.shared).then_some(shared)
    }

    /// A function.
    pub(super) fn function(&mut self, shared: Object) -> Option<Function> {
        let constants = self.constants;
        let script = self.reference(shared, constants.script)?;
        let script = self.is(script, constants.types.script).then_some(script);
        let token = u64::from(self.memory.short(shared.at(constants.token_offset)?)?);
        let token = if token == NO_TOKEN { 0 } else { token };
        let named = self.field(shared, constants.name)?;
        let mut name = String::new();
        let (mut begins, mut ends) = (None, None);
        if let Some(named) = Object::of(named) {
            if self.is(named, constants.types.scope) {
                let scope = self.scope(named)?;
                name = scope.name;
                begins = scope.begins.map(|start| start.saturating_sub(token));
                ends = scope.ends;
            } else {
                name = self.text(named)?;
            }
        }
        if name.is_empty() {
            UNNAMED.clone_into(&mut name);
        }
        Some(Function {
            name,
            script,
            begins,
            ends,
        })
    }

    /// What a function's scope tells of it.
    pub(super) fn scope(&mut self, scope: Object) -> Option<Scope> {
        let constants = self.constants;
        // The fields are behind the map.
        let place = |index: u64| index.checked_add(1)?.checked_mul(WORD);
        let locals = self.small_field(scope, place(constants.scope_locals)?)?;
        if locals > VARIABLES_MAX {
            return None;
        }
        let names = if locals < INLINE_NAMES_MAX { locals } else { 1 };
        let mut at = constants.scope_first + names + locals;
        // Of a class there is one number more.
        let word = self.field(scope, place(at)?)?;
        if word != 0 && self.small(word).is_some() {
            at += 1;
        }
        // A name and where it is kept, another name, then the positions. Where the first two are missing, a position follows the name.
        let words = [
            self.field(scope, place(at)?)?,
            self.field(scope, place(at + 1)?)?,
            self.field(scope, place(at + 2)?)?,
        ];
        let own_name = self.small(words[1]).is_some() && Object::of(words[2]).is_some();
        let inferred = if own_name { words[2] } else { words[0] };
        let behind = if own_name { at + 3 } else { at + 1 };
        let mut name = String::new();
        if own_name && let Some(own) = Object::of(words[0]) {
            name = self.text(own)?;
        }
        if name.is_empty()
            && let Some(inferred) = Object::of(inferred)
        {
            // Without one it is no string.
            name = self.text(inferred).unwrap_or_default();
        }
        let begins = if constants.scope_begins_with_positions {
            constants.scope_locals + 1
        } else {
            behind
        };
        let ends = begins.checked_add(1)?;
        Some(Scope {
            name,
            begins: self.small_field(scope, place(begins)?),
            ends: self.small_field(scope, place(ends)?),
        })
    }

    /// The file of a script.
    pub(super) fn file(&mut self, script: Object) -> Option<String> {
        let name = self.reference(script, self.constants.script_name)?;
        let name = self.text(name).filter(|name| !name.is_empty())?;
        Some(match name.strip_prefix(FILE_URL) {
            Some(path) => path.to_owned(),
            None => name,
        })
    }

    /// The line of a position in a script; the first is 1.
    pub(super) fn line(&mut self, script: Object, position: u64) -> Option<u32> {
        let source = self.reference(script, self.constants.script_source)?;
        let known = self.lines.known.get(&(script, source)).map(Arc::clone);
        let ends = match known {
            Some(known) => known,
            None => {
                let ends = self.told_ends(script).or_else(|| self.counted_ends(source))?;
                let ends = Arc::new(ends);
                if self.lines.total + ends.len() > LINES_MAX {
                    *self.lines = Lines::default();
                }
                self.lines.total += ends.len();
                self.lines.known.insert((script, source), Arc::clone(&ends));
                ends
            }
        };
        let position = u32::try_from(position).ok()?;
        let before = ends.partition_point(|end| *end < position);
        let first = self.field(script, self.constants.script_first_line)?;
        let first = u32::try_from(self.small(first)?).ok()?;
        if before >= ends.len() {
            return None;
        }
        u32::try_from(before).ok()?.checked_add(first)?.checked_add(1)
    }

    /// The ends of lines that V8 has counted.
    fn told_ends(&mut self, script: Object) -> Option<Vec<u32>> {
        let constants = self.constants;
        let ends = self.reference(script, constants.line_ends)?;
        if !self.is(ends, constants.types.array) {
            return None;
        }
        let length = usize::try_from(self.small_field(ends, constants.array_length)?).ok()?;
        if length > LINES_MAX {
            return None;
        }
        let mut bytes = vec![0; length.checked_mul(8)?];
        self.memory.read(ends.at(constants.array_data)?, &mut bytes)?;
        let words = bytes.as_chunks::<8>().0.iter();
        words
            .map(|word| u32::try_from(self.small(u64::from_le_bytes(*word))?).ok())
            .collect()
    }

    /// The ends of lines that are in the source, the end of the source included.
    fn counted_ends(&mut self, source: Object) -> Option<Vec<u32>> {
        let (characters, _) = self.characters(source, SCRIPT_MAX)?;
        let mut ends = Vec::new();
        let mut characters = characters.iter().zip(0_u32..).peekable();
        let mut length = 0;
        while let Some((character, at)) = characters.next() {
            length = at + 1;
            let next = characters.peek().map(|(next, _)| **next);
            let ended = match char::from_u32(u32::from(*character)) {
                Some('\r') => next != Some(u16::from(b'\n')),
                Some('\n' | '\u{2028}' | '\u{2029}') => true,
                _ => false,
            };
            if ended {
                ends.push(at);
            }
        }
        ends.push(length);
        Some(ends)
    }

    /// So many characters of a script from a position on, or those that it has.
    pub(super) fn source(&mut self, script: Object, position: u64, most: u64) -> Option<String> {
        let source = self.reference(script, self.constants.script_source)?;
        let (characters, _) = self.part(source, position, most)?;
        Some(String::from_utf16_lossy(&characters))
    }

    /// A string.
    pub(super) fn text(&mut self, string: Object) -> Option<String> {
        let (characters, _) = self.characters(string, TEXT_MAX)?;
        Some(String::from_utf16_lossy(&characters))
    }

    /// The first characters of a string, and how many it has. Its parts are read from a list, so that a string of strings of strings
    /// takes no more than one that is long.
    fn characters(&mut self, string: Object, most: usize) -> Option<(Vec<u16>, u64)> {
        self.part(string, 0, most as u64)
    }

    /// The same behind so many that are left out.
    fn part(&mut self, string: Object, skip: u64, most: u64) -> Option<(Vec<u16>, u64)> {
        let strings = self.constants.strings;
        let whole = u64::from(self.memory.int(string.at(strings.length)?)?);
        let mut found: Vec<u16> = Vec::new();
        // What is still to be read, with the characters that are left out at its beginning, and those that are wanted.
        let mut parts = vec![(string, skip, whole.checked_sub(skip)?.min(most))];
        let mut read = 0;
        while let Some((part, skip, wanted)) = parts.pop() {
            read += 1;
            if read > PARTS_MAX {
                return None;
            }
            let kind = self.kind(part).filter(|kind| *kind < strings.first_other_type)?;
            let length = u64::from(self.memory.int(part.at(strings.length)?)?);
            if length < skip.checked_add(wanted)? {
                return None;
            }
            let representation = kind & strings.representation;
            if wanted == 0 {
                continue;
            } else if representation == strings.sequential {
                let one_byte = kind & strings.encoding == strings.one_byte;
                self.sequential(part, one_byte, skip, wanted, &mut found)?;
            } else if representation == strings.cons {
                let first = self.reference(part, strings.first)?;
                let second = self.reference(part, strings.second)?;
                let in_first = u64::from(self.memory.int(first.at(strings.length)?)?);
                let from_first = in_first.saturating_sub(skip).min(wanted);
                parts.push((second, skip.saturating_sub(in_first), wanted - from_first));
                parts.push((first, skip.min(in_first), from_first));
            } else if representation == strings.sliced {
                let parent = self.reference(part, strings.parent)?;
                let offset = self.small_field(part, strings.offset)?;
                parts.push((parent, skip.checked_add(offset)?, wanted));
            } else if representation == strings.thin {
                let actual = self.reference(part, strings.actual)?;
                parts.push((actual, skip, wanted));
            } else {
                // Outside of the heap.
                return None;
            }
        }
        Some((found, whole))
    }

    fn sequential(
        &mut self,
        string: Object,
        one_byte: bool,
        skip: u64,
        wanted: u64,
        found: &mut Vec<u16>,
    ) -> Option<()> {
        let strings = self.constants.strings;
        let (begins, each) = if one_byte {
            (strings.one_byte_chars, 1)
        } else {
            (strings.two_byte_chars, 2)
        };
        let at = string.at(begins)?.checked_add(skip.checked_mul(each)?)?;
        let mut bytes = vec![0; usize::try_from(wanted.checked_mul(each)?).ok()?];
        self.memory.read(at, &mut bytes)?;
        if one_byte {
            found.extend(bytes.into_iter().map(u16::from));
        } else {
            found.extend(
                bytes
                    .as_chunks::<2>()
                    .0
                    .iter()
                    .map(|unit| u16::from_le_bytes(*unit)),
            );
        }
        Some(())
    }

    /// The source position table of bytecode, if this is bytecode that has one.
    pub(super) fn table(&mut self, bytecode: Object) -> Option<Vec<u8>> {
        let constants = self.constants;
        if !self.is(bytecode, constants.types.bytecode) {
            return None;
        }
        let table = self.reference(bytecode, constants.positions)?;
        // While the table has not been made, something else stands there, which has no length.
        let length = self.small_field(table, constants.array_length)?;
        let length = usize::try_from(length)
            .ok()
            .filter(|length| *length <= TABLE_MAX)?;
        let mut bytes = vec![0; length];
        self.memory.read(table.at(constants.array_data)?, &mut bytes)?;
        Some(bytes)
    }
}
