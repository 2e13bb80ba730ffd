//! Names of functions: their package, and their name in it.
//!
//! In: a value that a context says is a function. Out: `Shop::checkout`; of the main package only the name.

use super::Interpreter;
use super::frames::field;
use super::versions::PackageName;
use crate::memory::Source;

/// Bytes of a name; a longer one is not believed.
const NAME_MAX: u32 = 1024;

/// The package of what is in none.
const MAIN: &str = "main";

/// What a function is called whose name is gone.
const NAMELESS: &str = "__ANON__";

/// In a value: its body, its kind with flags, and for a table its entries.
const BODY: u64 = 0;
const FLAGS: u64 = 12;
const ENTRIES: u64 = 16;

/// Kinds of values.
const KIND_MASK: u32 = 0xff;
const GLOB: u32 = 9;
const TABLE: u32 = 12;
const CODE: u32 = 13;

/// The flag of a table that has more than entries.
const HAS_MORE: u32 = 0x0200_0000;

/// In the body of a function: its package, its glob or its name, its flags; the flag that it has a name.
const CODE_PACKAGE: u64 = 32;
const CODE_NAME: u64 = 56;
const CODE_FLAGS: u64 = 92;
const CODE_NAMED: u32 = 0x8000;

/// In the body of a glob: its name, its package.
const GLOB_NAME: u64 = 32;
const GLOB_PACKAGE: u64 = 40;

/// In the body of a table: the number of its last entry. In what it has more: its name or names, and how many.
const TABLE_LAST: u64 = 24;
const MORE_NAME: u64 = 0;
const MORE_NAMES: u64 = 28;

/// In a name: its length, its bytes.
const NAME_LENGTH: u64 = 4;
const NAME_BYTES: u64 = 8;

impl<S: Source> Interpreter<S> {
    /// What a function is called.
    pub(super) fn function_name(&mut self, function: u64) -> Option<String> {
        let body = self.body(function, CODE)?;
        let flags = self.memory.int(body.checked_add(CODE_FLAGS)?)?;
        let named = field(&mut self.memory, body, CODE_NAME)?;
        if named == 0 {
            return Some(NAMELESS.to_owned());
        }
        let (name, package) = if flags & CODE_NAMED != 0 {
            (named, field(&mut self.memory, body, CODE_PACKAGE)?)
        } else {
            let glob = self.body(named, GLOB)?;
            let name = field(&mut self.memory, glob, GLOB_NAME)?;
            (name, field(&mut self.memory, glob, GLOB_PACKAGE)?)
        };
        let name = self.name(name)?;
        let package = match package {
            0 => None,
            package => self.package(package)?,
        };
        Some(match package.filter(|package| package != MAIN) {
            Some(package) => format!("{package}::{name}"),
            None => name,
        })
    }

    /// What a package is called; `Some(None)` for one whose name is gone.
    fn package(&mut self, package: u64) -> Option<Option<String>> {
        let body = self.body(package, TABLE)?;
        let flags = self.memory.int(package.checked_add(FLAGS)?)?;
        if flags & HAS_MORE == 0 {
            return Some(None);
        }
        let more = match self.layout.package_name {
            PackageName::InBody(offset) => body.checked_add(offset)?,
            PackageName::BehindTable => {
                let entries = field(&mut self.memory, package, ENTRIES)?;
                let last = field(&mut self.memory, body, TABLE_LAST)?;
                let bytes = last.checked_add(1)?.checked_mul(8)?;
                entries.checked_add(bytes)?
            }
        };
        let mut name = field(&mut self.memory, more, MORE_NAME)?;
        let several = self.memory.int(more.checked_add(MORE_NAMES)?)? != 0;
        if several && name != 0 {
            name = field(&mut self.memory, name, 0)?;
        }
        match name {
            0 => Some(None),
            name => Some(Some(self.name(name)?)),
        }
    }

    /// The body of a value of this kind.
    fn body(&mut self, value: u64, kind: u32) -> Option<u64> {
        let flags = self.memory.int(value.checked_add(FLAGS)?)?;
        if flags & KIND_MASK != kind {
            return None;
        }
        self.memory.pointer(value.checked_add(BODY)?)
    }

    fn name(&mut self, name: u64) -> Option<String> {
        let length = self.memory.int(name.checked_add(NAME_LENGTH)?)?;
        if !(1..=NAME_MAX).contains(&length) {
            return None;
        }
        let length = usize::try_from(length).ok()?;
        self.memory.text(name.checked_add(NAME_BYTES)?, length)
    }
}
