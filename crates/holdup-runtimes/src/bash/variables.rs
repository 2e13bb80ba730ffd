//! The calls that a script is in, as Bash keeps them for the script itself.
//!
//! In: an interpreter. Out: function, file and the line from which each was called, innermost first. They are in arrays, which are values of
//! variables, which are in a table of hashed names. That table is looked through whole: how names are hashed differs between versions.

use super::{Interpreter, NAME_MAX};
use crate::memory::Source;

/// Calls that are read. Deeper ones are recursion, and keep their innermost.
const CALLS_MAX: usize = 512;

/// Chains of names in a table, and names that are looked at: Bash begins with 1,024 chains, a script rarely has a thousand variables.
const CHAINS_MAX: u32 = 1 << 14;
const NAMES_MAX: u32 = 1 << 14;

/// Bytes of the longest name that is looked for, and one that shows that it goes on.
const LOOKED_FOR_MAX: usize = 16;

/// In a scope of variables: its table. In that: its chains, how many there are. In a name: the next in the chain, its text, what it names.
const SCOPE_TABLE: u64 = 32;
const TABLE_CHAINS: u64 = 0;
const TABLE_COUNT: u64 = 8;
const NAME_NEXT: u64 = 0;
const NAME_TEXT: u64 = 8;
const NAME_NAMES: u64 = 16;

/// In a variable: its value.
const VARIABLE_VALUE: u64 = 8;

/// In an element of an array: its number, its text, the next one. The element before the first has no number.
const ELEMENT_NUMBER: u64 = 0;
const ELEMENT_TEXT: u64 = 8;
const ELEMENT_NEXT: u64 = 16;
const NO_NUMBER: u64 = u64::MAX;

/// Where an array may have the element before its first, by version.
const ARRAY_HEADS: [u64; 4] = [16, 24, 32, 8];

/// A function that a script is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) function: String,
    pub(super) file: Option<String>,
    /// The line of the function around it.
    pub(super) called_from: Option<u32>,
}

/// The arrays, by their names.
const ARRAYS: [&str; 3] = ["FUNCNAME", "BASH_SOURCE", "BASH_LINENO"];

impl<S: Source> Interpreter<S> {
    /// The calls; `None` where they do not hold together.
    pub(super) fn calls(&mut self) -> Option<Vec<Call>> {
        let [functions, files, lines] = self.arrays()?;
        let functions = self.texts(functions)?;
        let files = self.texts(files)?;
        let lines = self.texts(lines)?;
        // They grow and shrink together, one after the other.
        if functions.len() != files.len() || functions.len() != lines.len() {
            return None;
        }
        let each = functions.into_iter().zip(files).zip(lines);
        let call = |((function, file), line): ((String, String), String)| Call {
            function,
            file: (!file.is_empty()).then_some(file),
            called_from: line.parse().ok(),
        };
        Some(each.map(call).collect())
    }

    /// The variables of these names.
    fn arrays(&mut self) -> Option<[u64; 3]> {
        let scope = self.memory.word(self.place.variables)?;
        let table = self.field(scope, SCOPE_TABLE)?;
        let chains = self.field(table, TABLE_CHAINS)?;
        let count = self.memory.int(table.checked_add(TABLE_COUNT)?)?;
        if count == 0 || count > CHAINS_MAX {
            return None;
        }
        let (mut found, mut looked_at) = ([None; 3], 0);
        for number in 0..u64::from(count) {
            let mut name = self.field(chains, number * 8)?;
            while name != 0 {
                looked_at += 1;
                if looked_at > NAMES_MAX {
                    return None;
                }
                let text = self.field(name, NAME_TEXT)?;
                // A longer one is none of them.
                let text = self.memory.c_text(text, LOOKED_FOR_MAX).unwrap_or_default();
                if let Some(place) = ARRAYS.iter().position(|array| *array == text) {
                    found[place] = Some(self.field(name, NAME_NAMES)?);
                }
                name = self.field(name, NAME_NEXT)?;
            }
            if let [Some(functions), Some(files), Some(lines)] = found {
                return Some([functions, files, lines]);
            }
        }
        None
    }

    /// The texts of a variable that is an array, its first ones first.
    fn texts(&mut self, variable: u64) -> Option<Vec<String>> {
        let array = self.field(variable, VARIABLE_VALUE)?;
        let head = self.head(array)?;
        let mut texts = Vec::new();
        let mut element = self.field(head, ELEMENT_NEXT)?;
        while element != head && texts.len() < CALLS_MAX {
            let text = self.field(element, ELEMENT_TEXT)?;
            texts.push(self.memory.c_text(text, NAME_MAX)?);
            element = self.field(element, ELEMENT_NEXT)?;
        }
        Some(texts)
    }

    /// The element before the first.
    fn head(&mut self, array: u64) -> Option<u64> {
        ARRAY_HEADS.iter().find_map(|offset| {
            let head = self.field(array, *offset).filter(|head| *head != 0)?;
            (self.field(head, ELEMENT_NUMBER)? == NO_NUMBER).then_some(head)
        })
    }
}
