//! Where a program's code runs a future in the thread that calls it.
//!
//! The problem: the future that a thread blocks on is no task, and lies on that thread's stack. Which type it has, the function says that blocks: it is
//! generic over it. In an optimised program that function is a part of others. In: debug information, and which entries describe such functions.
//! Out: stretches of code, each with the entry that says what the function is generic over.

use super::Reading;
use gimli::constants as dw;
use gimli::{AttributeValue, DebuggingInformationEntry, Dwarf, Unit};
use std::collections::{BTreeSet, HashMap};

/// Functions and units that are kept: a program has one function for each future that it blocks on, some times over.
const FUNCTIONS_MAX: usize = 20_000;
const UNITS_MAX: usize = 10_000;

/// Stretches of code, and entries that are gone through for them.
const CODE_MAX: usize = 50_000;
const ENTRIES_MAX: u64 = 20_000_000;

/// Pieces of one function: an optimiser moves what is rarely run away from the rest.
const PIECES_MAX: usize = 64;

/// A stretch of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Code {
    /// Its first address, as the file states it.
    pub(super) begin: u64,
    /// The first address behind it.
    pub(super) end: u64,
    /// The entry of the function that says what it is generic over.
    pub(super) function: usize,
}

/// Functions that run a future in the thread that calls them.
#[derive(Debug, Default)]
pub(super) struct BlockingFunctions {
    /// By the entry: the one that says what the function is generic over, which may be the same.
    functions: HashMap<usize, usize>,
    /// Entries that say more of a function whose own entry comes later.
    said_of: Vec<(usize, usize)>,
    /// The unit whose entries these are.
    unit: usize,
    /// Where units begin that have such functions.
    units: BTreeSet<usize>,
}

impl BlockingFunctions {
    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// A function, in the unit that begins there.
    pub(super) fn add(&mut self, entry: usize, unit: usize) {
        if self.functions.len() < FUNCTIONS_MAX && self.units.len() < UNITS_MAX {
            self.functions.insert(entry, entry);
            self.units.insert(unit);
        }
    }

    /// An entry says more of the function that `of` describes.
    pub(super) fn is_said_of(&mut self, entry: usize, of: usize, unit: usize) {
        if self.unit != unit {
            self.settle();
            self.unit = unit;
        }
        match self.functions.get(&of).copied() {
            Some(function) if self.functions.len() < FUNCTIONS_MAX => {
                self.functions.insert(entry, function);
            }
            Some(_) => {}
            None if of > entry && self.said_of.len() < FUNCTIONS_MAX => self.said_of.push((entry, of)),
            None => {}
        }
    }

    /// The unit is over: what was said of functions that came later is known now.
    fn settle(&mut self) {
        for (entry, of) in std::mem::take(&mut self.said_of) {
            if let Some(function) = self.functions.get(&of).copied()
                && self.functions.len() < FUNCTIONS_MAX
            {
                self.functions.insert(entry, function);
            }
        }
    }

    /// Their code, also where it is a part of other functions.
    pub(super) fn code<'a>(
        &mut self,
        dwarf: &Dwarf<Reading<'a>>,
        units: &[Unit<Reading<'a>>],
        starts: &[usize],
    ) -> Vec<Code> {
        self.settle();
        let mut found = Vec::new();
        let mut count = 0;
        for (unit, start) in units.iter().zip(starts) {
            if self.units.contains(start)
                && self
                    .unit_code(dwarf, unit, *start, &mut count, &mut found)
                    .is_none()
            {
                break;
            }
        }
        found.sort_unstable_by_key(|code| (code.begin, code.end, code.function));
        found.dedup();
        found
    }

    fn unit_code<'a>(
        &self,
        dwarf: &Dwarf<Reading<'a>>,
        unit: &Unit<Reading<'a>>,
        start: usize,
        count: &mut u64,
        found: &mut Vec<Code>,
    ) -> Option<()> {
        let mut entries = unit.entries();
        while let Ok(Some(entry)) = entries.next_dfs() {
            *count += 1;
            if *count > ENTRIES_MAX || found.len() >= CODE_MAX {
                return None;
            }
            if !matches!(entry.tag(), dw::DW_TAG_subprogram | dw::DW_TAG_inlined_subroutine) {
                continue;
            }
            let at = start.checked_add(entry.offset().0)?;
            let of = refers(entry, start).unwrap_or(at);
            let function = self.functions.get(&at).or_else(|| self.functions.get(&of));
            let Some(function) = function.copied() else {
                continue;
            };
            let Ok(mut ranges) = dwarf.die_ranges(unit, entry) else {
                continue;
            };
            for _ in 0..PIECES_MAX {
                let Ok(Some(range)) = ranges.next() else { break };
                if range.begin != 0 && range.begin < range.end {
                    found.push(Code {
                        begin: range.begin,
                        end: range.end,
                        function,
                    });
                }
            }
        }
        Some(())
    }
}

/// The function of which an entry is a copy.
fn refers(entry: &DebuggingInformationEntry<Reading<'_>>, start: usize) -> Option<usize> {
    match entry.attr_value(dw::DW_AT_abstract_origin)? {
        AttributeValue::UnitRef(offset) => start.checked_add(offset.0),
        AttributeValue::DebugInfoRef(offset) => Some(offset.0),
        _ => None,
    }
}
