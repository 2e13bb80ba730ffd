//! Names of functions, by the table that the linker puts into every Go program, stripped or not (`.gopclntab`).
//!
//! In: where the table is in a program's memory, and the description of the module, where the file says where that is. Out: of an
//! address, its function and source file; of a name, its function's address. Go 1.18 and later.

use crate::memory::{Memory, Source};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// What the table begins with from Go 1.18, and from Go 1.20 on.
const MAGICS: [u32; 2] = [0xffff_fff0, 0xffff_fff1];

/// Offsets in its head, bytes.
const FUNCTIONS: u64 = 8;
const TEXT: u64 = 24;
const NAMES: u64 = 32;
const UNITS: u64 = 40;
const FILES: u64 = 48;
const STEPS: u64 = 56;
const DESCRIPTIONS: u64 = 64;

/// Offsets in the description of a function, bytes: its name, its table of files, and its unit.
const NAME: u64 = 4;
const FILE_STEPS: u64 = 20;
const UNIT: u64 = 32;

/// Where the description of the module has the start of the code: behind a pointer, six slices, and three pointers. From Go 1.26 on the
/// table does not say it.
const MODULE_TEXT: u64 = 8 + 6 * 24 + 3 * 8;

/// Functions of a program, at most; Kubernetes has 200,000.
const FUNCTIONS_MAX: u64 = 1 << 21;

/// Longest name, bytes.
const NAME_BYTES_MAX: usize = 1024;

/// Steps of one function that are gone through.
const STEPS_MAX: usize = 4_096;

/// Functions that are remembered, then all are forgotten.
const KNOWN_MAX: usize = 65_536;

/// Where a program has its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TablePlace {
    /// The address of the table.
    pub table: u64,
    /// The address of the description of the module, where the file says it.
    pub module: Option<u64>,
}

/// A function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name: `main.fetchPrices`.
    pub name: String,
    /// Its source file.
    pub file: Option<String>,
}

/// The table of a program.
#[derive(Debug)]
pub(super) struct Table {
    at: u64,
    text: u64,
    functions: u64,
    names: u64,
    units: u64,
    files: u64,
    steps: u64,
    descriptions: u64,
    known: HashMap<u64, Option<Function>>,
}

impl Table {
    /// Reads its head.
    pub(super) fn find<S: Source>(memory: &mut Memory<S>, place: TablePlace) -> Option<Table> {
        let at = place.table;
        if !MAGICS.contains(&memory.int(at)?) || memory.byte(at.checked_add(7)?)? != 8 {
            return None;
        }
        let mut part = |offset: u64| at.checked_add(memory.word(at.checked_add(offset)?)?);
        let (names, units, files) = (part(NAMES)?, part(UNITS)?, part(FILES)?);
        let (steps, descriptions) = (part(STEPS)?, part(DESCRIPTIONS)?);
        let stated = memory.pointer(at.checked_add(TEXT)?);
        let of_module = || memory.pointer(place.module?.checked_add(MODULE_TEXT)?);
        let text = stated.or_else(of_module)?;
        let functions = memory.word(at.checked_add(FUNCTIONS)?)?;
        (functions > 0 && functions <= FUNCTIONS_MAX).then(|| Table {
            at,
            text,
            functions,
            names,
            units,
            files,
            steps,
            descriptions,
            known: HashMap::new(),
        })
    }

    /// The function of an address in its code.
    pub(super) fn function<S: Source>(&mut self, memory: &mut Memory<S>, address: u64) -> Option<&Function> {
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        if !self.known.contains_key(&address) {
            let function = self.described(memory, address);
            self.known.insert(address, function);
        }
        self.known.get(&address)?.as_ref()
    }

    /// Where the function of an address begins and ends.
    pub(super) fn bounds<S: Source>(&self, memory: &mut Memory<S>, address: u64) -> Option<(u64, u64)> {
        let into = u32::try_from(address.checked_sub(self.text)?).ok()?;
        let index = self.index(memory, into)?;
        let start = self.entry(memory, index)?;
        let end = self.entry(memory, index + 1)?;
        let at = |into: u32| self.text.checked_add(into.into());
        Some((at(start)?, at(end)?))
    }

    /// The function of the instruction so many bytes from the start of the code.
    fn index<S: Source>(&self, memory: &mut Memory<S>, into: u32) -> Option<u64> {
        let (mut first, mut behind) = (0, self.functions);
        while first < behind {
            let middle = first.midpoint(behind);
            if self.entry(memory, middle)? <= into {
                first = middle + 1;
            } else {
                behind = middle;
            }
        }
        first.checked_sub(1)
    }

    fn described<S: Source>(&self, memory: &mut Memory<S>, address: u64) -> Option<Function> {
        let into = u32::try_from(address.checked_sub(self.text)?).ok()?;
        let index = self.index(memory, into)?;
        let into = into - self.entry(memory, index)?;
        let description = self.description(memory, index)?;
        let name = self.name(memory, description)?;
        Some(Function {
            name,
            file: self.file(memory, description, into),
        })
    }

    /// Where functions of these names begin and end, in the order of the table.
    pub(super) fn named<S: Source>(
        &self,
        memory: &mut Memory<S>,
        wanted: &[&'static str],
    ) -> Vec<(&'static str, (u64, u64))> {
        let mut found = Vec::new();
        for index in 0..self.functions {
            if found.len() == wanted.len() {
                break;
            }
            found.extend(self.is_named(memory, index, wanted));
        }
        found
    }

    fn is_named<S: Source>(
        &self,
        memory: &mut Memory<S>,
        index: u64,
        wanted: &[&'static str],
    ) -> Option<(&'static str, (u64, u64))> {
        let description = self.description(memory, index)?;
        let at = u64::from(memory.int(description.checked_add(NAME)?)?);
        let at = self.names.checked_add(at)?;
        // Most functions are of other packages, which their first bytes show.
        let mut begins = [0; 8];
        memory.read(at, &mut begins)?;
        let mut wanted = wanted.iter().filter(|name| name.as_bytes().starts_with(&begins));
        let name = wanted.find(|name| memory.c_text(at, NAME_BYTES_MAX).as_deref() == Some(**name))?;
        let (start, end) = (self.entry(memory, index)?, self.entry(memory, index + 1)?);
        let address = |into: u32| self.text.checked_add(into.into());
        Some((*name, (address(start)?, address(end)?)))
    }

    /// Where a function begins, from the start of the code; behind the last one, where that ends.
    fn entry<S: Source>(&self, memory: &mut Memory<S>, index: u64) -> Option<u32> {
        memory.int(self.descriptions.checked_add(index * 8)?)
    }

    fn description<S: Source>(&self, memory: &mut Memory<S>, index: u64) -> Option<u64> {
        let offset = memory.int(self.descriptions.checked_add(index * 8 + 4)?)?;
        self.descriptions.checked_add(offset.into())
    }

    fn name<S: Source>(&self, memory: &mut Memory<S>, description: u64) -> Option<String> {
        let at = memory.int(description.checked_add(NAME)?)?;
        memory.c_text(self.names.checked_add(at.into())?, NAME_BYTES_MAX)
    }

    /// The source file of the instruction so many bytes from a function's start.
    fn file<S: Source>(&self, memory: &mut Memory<S>, description: u64, into: u32) -> Option<String> {
        let steps = memory.int(description.checked_add(FILE_STEPS)?)?;
        let number = self.value(memory, self.steps.checked_add(steps.into())?, into)?;
        let unit = memory.int(description.checked_add(UNIT)?)?;
        let index = u64::from(unit).checked_add(number.try_into().ok()?)?;
        let at = memory.int(self.units.checked_add(index.checked_mul(4)?)?)?;
        memory.c_text(self.files.checked_add(at.into())?, NAME_BYTES_MAX)
    }

    /// The value that holds for an instruction, of a table of steps: differences of values and of instructions, alternately.
    fn value<S: Source>(&self, memory: &mut Memory<S>, mut at: u64, into: u32) -> Option<i32> {
        let quantum = u32::from(memory.byte(self.at.checked_add(6)?)?);
        let (mut value, mut behind) = (-1_i32, 0_u32);
        for _ in 0..STEPS_MAX {
            let difference = number(memory, &mut at)?;
            if difference == 0 && behind != 0 {
                return None;
            }
            // The sign is in the lowest bit.
            value = value.checked_add(((difference >> 1) as i32) ^ -((difference & 1) as i32))?;
            let step = number(memory, &mut at)?.checked_mul(quantum)?;
            behind = behind.checked_add(step)?;
            if into < behind {
                return Some(value);
            }
        }
        None
    }
}

/// A number of seven bits a byte, lowest first, at most five bytes.
fn number<S: Source>(memory: &mut Memory<S>, at: &mut u64) -> Option<u32> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let byte = memory.byte(*at)?;
        *at = at.checked_add(1)?;
        value |= u32::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
