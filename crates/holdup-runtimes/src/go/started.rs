//! Who started a goroutine.
//!
//! The problem: where the structure has it depends on the version and on how the runtime was built. The choice: it stands before the address of the `go` statement, and two
//! words before the address of the goroutine's first function. The place at which this holds for all goroutines is the one. In: goroutines.
//! Out: for each the number of the one that started it. Before Go 1.21 nothing notes it.

use super::{Goroutine, Goroutines, Program};
use crate::memory::Source;
use std::collections::HashSet;

/// Where, from the state on, it may be.
const PLACES: std::ops::Range<u64> = 64..400;

/// How far behind it are the statement, and the first function.
const STATEMENT: u64 = 8;
const FUNCTION: u64 = 24;

/// How far beyond the highest number of those that live one that has ended is believed to be.
const SPREAD: u64 = 1 << 12;

/// Goroutines that a place is held against, and how many there must be at least: the runtime has five of its own.
const TRIED_MAX: usize = 32;
const TRIED_MIN: usize = 3;

impl<S: Source> Program<S> {
    /// Notes who started which.
    pub fn started(&mut self, all: &mut Goroutines) {
        let Some(place) = self.starters_place(&all.all) else {
            return;
        };
        for one in &mut all.all {
            let by = one.at.checked_add(place).and_then(|at| self.memory.word(at));
            one.started_by = by.filter(|by| *by > 0 && *by != one.id);
        }
    }

    fn starters_place(&mut self, all: &[Goroutine]) -> Option<u64> {
        let first = self.layout.status;
        if all.len() < TRIED_MIN {
            return None;
        }
        PLACES
            .map(|offset| first + offset)
            .filter(|place| place % 8 == 0)
            .find(|place| self.fits_all(&all[..all.len().min(TRIED_MAX)], *place) == Some(true))
    }

    /// Whether all goroutines have such words there, and not all of them the same one.
    fn fits_all(&mut self, all: &[Goroutine], place: u64) -> Option<bool> {
        let mut starters = HashSet::new();
        // Numbers are given out in batches, so one that was started may have the lower one; and who started it may have ended.
        let highest = all.iter().map(|one| one.id).max()?.saturating_add(SPREAD);
        for one in all {
            let at = one.at.checked_add(place)?;
            let by = self.memory.word(at)?;
            let statement = self.memory.word(at.checked_add(STATEMENT)?)?;
            let function = self.memory.word(at.checked_add(FUNCTION)?)?;
            let table = self.table.as_ref()?;
            let begins = table.bounds(&mut self.memory, function)?.0 == function;
            if by == one.id || by > highest || !begins || table.bounds(&mut self.memory, statement).is_none()
            {
                return Some(false);
            }
            starters.insert(by);
        }
        Some(starters.len() > 1)
    }
}
