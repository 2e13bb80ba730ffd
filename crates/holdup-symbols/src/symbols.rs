//! The symbol tables of an ELF file.
//!
//! In comes a file, out comes the function that covers an address: from `.symtab` where the file has it, and
//! from `.dynsym`, which is all that is left in a stripped library. A symbol counts only as far as its size
//! reaches: the exported functions of a stripped binary are sparse, and the one before an address is
//! usually not the one that holds it.

use crate::demangle::demangle;
use crate::elf::{Elf, Head, Section};
use object::LittleEndian;
use object::elf::{SHN_UNDEF, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, Sym64};
use object::pod::slice_from_bytes;

/// Largest symbol table, and largest table of its names, that are read, in bytes.
const TABLE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// How many symbols before an address are tried. Symbols nest a few deep (entry points within a function).
const NESTING_MAX: usize = 16;

/// Longest name that is kept, in bytes.
const NAME_BYTES_MAX: usize = 16 * 1024;

const ENDIAN: LittleEndian = LittleEndian;

/// The functions of one file.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    functions: Vec<Function>,
    /// The name tables of `.symtab` and `.dynsym`.
    names: [Vec<u8>; 2],
}

#[derive(Debug, Clone, Copy)]
struct Function {
    address: u64,
    size: u64,
    /// Index into [`Symbols::names`].
    table: u8,
    name: u32,
}

impl Symbols {
    /// Reads a file's symbol tables; what is missing or broken is left out.
    pub(crate) fn read(elf: &Elf) -> Self {
        let mut symbols = Self::default();
        for (table, name) in [".symtab", ".dynsym"].into_iter().enumerate() {
            if let Some(section) = elf.section(name) {
                symbols.add(elf, section, table);
            }
        }
        symbols.functions.sort_by_key(|function| function.address);
        symbols
    }

    /// How many bytes of the file [`Symbols::read`] looks at.
    pub(crate) fn bytes(head: &Head) -> u64 {
        let tables = [".symtab", ".dynsym"]
            .into_iter()
            .filter_map(|name| head.section(name));
        tables
            .flat_map(|table| [Some(table), head.sections.get(table.link as usize)])
            .flatten()
            .filter(|section| section.size <= TABLE_BYTES_MAX)
            .map(|section| section.size)
            .sum()
    }

    fn add(&mut self, elf: &Elf, section: &Section, table: usize) {
        let names = elf
            .sections
            .get(section.link as usize)
            .and_then(|names| elf.bytes(names, TABLE_BYTES_MAX));
        let Some((bytes, names)) = elf.bytes(section, TABLE_BYTES_MAX).zip(names) else {
            return;
        };
        let count = bytes.len() / size_of::<Sym64<LittleEndian>>();
        let Ok((entries, _)) = slice_from_bytes::<Sym64<LittleEndian>>(&bytes, count) else {
            return;
        };
        let functions = entries.iter().filter(|entry| {
            matches!(entry.st_type(), STT_FUNC | STT_GNU_IFUNC | STT_NOTYPE)
                && entry.st_shndx.get(ENDIAN) != SHN_UNDEF
                && entry.st_size.get(ENDIAN) != 0
        });
        self.functions.extend(functions.map(|entry| Function {
            address: entry.st_value.get(ENDIAN),
            size: entry.st_size.get(ENDIAN),
            table: table as u8,
            name: entry.st_name.get(ENDIAN),
        }));
        self.names[table] = names;
    }

    /// The function that covers `address`: its name in the source, and its own address.
    pub(crate) fn find(&self, address: u64) -> Option<(String, u64)> {
        let end = self
            .functions
            .partition_point(|function| function.address <= address);
        let before = self.functions[..end].iter().rev().take(NESTING_MAX);
        let covering = before.filter(|function| address - function.address < function.size);
        // The innermost start, and of several names for it the one that people use.
        let (start, name) = covering
            .filter_map(|function| Some((function.address, self.name(function)?)))
            .min_by_key(|&(start, name)| (u64::MAX - start, plainness(name), name))?;
        Some((demangle(name), start))
    }

    fn name(&self, function: &Function) -> Option<&str> {
        let rest = self.names[usize::from(function.table)].get(function.name as usize..)?;
        let rest = &rest[..rest.len().min(NAME_BYTES_MAX)];
        let name = std::str::from_utf8(rest.split(|&byte| byte == 0).next()?).ok()?;
        (!name.is_empty()).then_some(name)
    }
}

/// The addresses of symbols in the order of `wanted`: those that a file exports, and of the others those that its own table has.
pub(crate) fn addresses(elf: &Elf, wanted: &[&str]) -> Vec<Option<u64>> {
    let mut found = vec![None; wanted.len()];
    for table in [".dynsym", ".symtab"] {
        if found.contains(&None) {
            find_in(elf, table, wanted, &mut found);
        }
    }
    found
}

/// Those of one table that have not been found yet.
fn find_in(elf: &Elf, table: &str, wanted: &[&str], found: &mut [Option<u64>]) {
    let table = elf.section(table);
    let names = table.and_then(|table| elf.bytes(elf.sections.get(table.link as usize)?, TABLE_BYTES_MAX));
    let bytes = table.and_then(|table| elf.bytes(table, TABLE_BYTES_MAX));
    let Some((bytes, names)) = bytes.zip(names) else {
        return;
    };
    let count = bytes.len() / size_of::<Sym64<LittleEndian>>();
    let Ok((entries, _)) = slice_from_bytes::<Sym64<LittleEndian>>(&bytes, count) else {
        return;
    };
    let missing: Vec<usize> = (0..found.len()).filter(|index| found[*index].is_none()).collect();
    for entry in entries
        .iter()
        .filter(|entry| entry.st_shndx.get(ENDIAN) != SHN_UNDEF)
    {
        let rest = names
            .get(entry.st_name.get(ENDIAN) as usize..)
            .unwrap_or_default();
        let is = |index: &&usize| {
            rest.strip_prefix(wanted[**index].as_bytes())
                .is_some_and(|rest| rest.first() == Some(&0))
        };
        if let Some(index) = missing.iter().find(is) {
            found[*index] = Some(entry.st_value.get(ENDIAN));
        }
    }
}

/// Orders the names of one function: `read` before `__read` before `__libc_read`.
fn plainness(name: &str) -> (usize, usize) {
    let mangled = name.starts_with("_Z") || name.starts_with("_R");
    let underscores = name.len() - name.trim_start_matches('_').len();
    (if mangled { 0 } else { underscores }, name.len())
}
