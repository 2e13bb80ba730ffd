//! The future that a thread blocks on.
//!
//! The problem: the main future of a program is no task. It lies on the stack of the thread that runs it (`block_on`), and optimised programs do not say
//! where there. What they say is which code runs a future of which type. So return addresses into such code name the type, and a value of this
//! type is looked for in these frames: it counts if it stands at an `await`, with all that it awaits, and is the only one. Copies from before
//! the future was run have not begun, and a future that is over says so; neither is mistaken for it.
//!
//! In: memory, layouts, and stacks of threads that sleep. Out: a task for each thread whose future was found. That the thread sleeps because
//! that future is not ready, and not within it, its native stack must say.

use super::{Does, Program, Task, Value};
use crate::memory::{PAGE, Source};
use holdup_evidence::{BlockingCode, Member};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;

/// Threads whose stacks are gone through.
pub const SLEEPERS_MAX: usize = 256;

/// Memory of one stack that is gone through, bytes.
const STACK_BYTES_MAX: u64 = 512 << 10;

/// How far beyond the outermost return address the future may begin, bytes: tokio puts futures of more than 16 KiB elsewhere.
const BEYOND_BYTES_MAX: u64 = 64 << 10;

/// Types that are looked for on one stack, and pointers that are followed from there.
const TYPES_MAX: usize = 16;
const POINTERS_MAX: u32 = 4_096;

/// Places that are looked at of one stack, and of all: each takes some 200 ns.
const PLACES_MAX: u32 = 200_000;
const PLACES_TOTAL_MAX: u32 = 2_000_000;

/// Values that are kept until it is known whether they are one.
const HITS_MAX: usize = 16;

/// Stretches of code that may be within each other.
const NESTED_MAX: usize = 256;

/// Values begin at multiples of this, bytes.
const STEP_BYTES: u64 = 8;

/// Structures and pointers around a future, as `Pin<Box<…>>`, and functions that await each other.
const AROUND_MAX: usize = 12;
const CHAIN_MAX: usize = 64;

/// A thread that sleeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sleeper {
    /// Its id.
    pub tid: u32,
    /// From its stack pointer to where its stack begins.
    pub stack: Range<u64>,
}

impl<S: Source> Program<S> {
    /// The futures on which these threads block, each with the head of the task that it awaits.
    pub(super) fn blocked(&mut self, sleepers: &[Sleeper]) -> Vec<(Task, Option<u64>)> {
        if self.place.layouts.blocking.is_empty() {
            return Vec::new();
        }
        let mut found = Vec::new();
        let mut left = PLACES_TOTAL_MAX;
        for sleeper in sleepers.iter().take(SLEEPERS_MAX) {
            self.memory.forget();
            let Some(future) = self.blocked_on(&sleeper.stack, &mut left) else {
                continue;
            };
            let mut task = Task {
                thread: Some(sleeper.tid),
                ..Task::new(future.at, Does::Waits)
            };
            let awaited = self.stand(future, &mut task);
            // Of a function that awaits no other one the state alone is a byte, and many bytes of a stack have such a value: what it awaits must be
            // something known.
            let is_known = task.frames.len() > 1 || task.reason.is_some() || awaited.is_some();
            if is_known && !task.frames.is_empty() {
                found.push((task, awaited));
            }
        }
        found
    }

    /// The only future on a stack that its thread runs. `left`: how many places may be looked at still.
    fn blocked_on(&mut self, stack: &Range<u64>, left: &mut u32) -> Option<Value> {
        let (types, within) = self.runs(stack)?;
        let types = self.futures(&types);
        let (mut places, mut pointers) = (PLACES_MAX, POINTERS_MAX);
        let mut hits: Vec<Value> = Vec::new();
        let first = within.start.next_multiple_of(STEP_BYTES);
        for of in types {
            let mut at = first;
            while at < within.end {
                places = places.checked_sub(1)?;
                *left = left.checked_sub(1)?;
                let hit = self.coroutine_at(Value { at, of }, &mut pointers);
                at = at.checked_add(STEP_BYTES)?;
                let Some(hit) = hit.filter(|hit| self.is_suspended(*hit, 0)) else {
                    continue;
                };
                if !hits.contains(&hit) {
                    hits.push(hit);
                }
                if hits.len() > HITS_MAX {
                    return None;
                }
            }
        }
        // The outermost first: the others may be parts of it. None has a part of its own type.
        hits.sort_by_key(|hit| (hit.at, std::cmp::Reverse(self.size(hit.of))));
        let whole = *hits.first()?;
        let end = whole.at.checked_add(self.size(whole.of).max(1))?;
        let is_part = |hit: &Value| hit.of != whole.of && hit.at < end;
        hits.iter().skip(1).all(is_part).then_some(whole)
    }

    /// What types the futures have that a stack's functions run, and where in the stack these may be.
    fn runs(&mut self, stack: &Range<u64>) -> Option<(BTreeSet<u32>, Range<u64>)> {
        let layouts = std::sync::Arc::clone(&self.place.layouts);
        let (code, moved) = (&layouts.blocking, self.place.moved);
        let least = code.first()?.begin;
        let end = stack.end.min(stack.start.checked_add(STACK_BYTES_MAX)?);
        let mut types = BTreeSet::new();
        let mut returns: Option<Range<u64>> = None;
        let swept = stack.start..end;
        self.memory.sweep(swept.clone(), &mut |start, page: &[u8; PAGE]| {
            for (word, at) in page.as_chunks::<8>().0.iter().zip((start..).step_by(8)) {
                // A return address is behind its call.
                let stated = u64::from_le_bytes(*word).wrapping_sub(moved).wrapping_sub(1);
                if !swept.contains(&at) || stated < least {
                    continue;
                }
                for of in running(code, stated) {
                    if types.len() < TYPES_MAX {
                        types.insert(of);
                    }
                    let range = returns.get_or_insert(at..at);
                    range.end = at;
                }
            }
        });
        let returns = returns?;
        let beyond = returns.end.checked_add(BEYOND_BYTES_MAX)?;
        Some((types, returns.start..beyond.min(end)))
    }

    /// Those of these types that are futures: a function that blocks is generic over closures and results, too, and each unit of the compiler
    /// describes its own.
    fn futures(&self, types: &BTreeSet<u32>) -> Vec<u32> {
        let layouts = &self.place.layouts.types;
        let mut known: Vec<(&str, u64, Option<&str>)> = Vec::new();
        let mut found = Vec::new();
        for of in types {
            let Some(end) = self.coroutine_of(*of) else {
                continue;
            };
            let Some(layout) = layouts.get(*of as usize) else {
                continue;
            };
            let same = (layout.path.as_str(), layout.size, layout.function.as_deref());
            // A pointer to one is another type for each that it points to.
            let is_one = end == *of;
            if !(is_one && known.contains(&same)) {
                known.push(same);
                found.push(*of);
            }
        }
        found
    }

    /// The asynchronous function or block that values of a type are, or all that there is in them; or the trait object of which only a value says
    /// which that is.
    fn coroutine_of(&self, of: u32) -> Option<u32> {
        let mut of = of;
        for _ in 0..AROUND_MAX {
            let layout = self.place.layouts.types.get(of as usize)?;
            if super::kinds::is_coroutine(&layout.path) || self.is_object(layout) {
                return Some(of);
            }
            of = match layout.points_to {
                Some(to) => to,
                None => self.only_part(of)?.of,
            };
        }
        None
    }

    /// The only part of a structure that is not empty.
    fn only_part(&self, of: u32) -> Option<&Member> {
        let layout = self.place.layouts.types.get(of as usize)?;
        let mut parts = layout.members.iter().filter(|part| self.size(part.of) > 0);
        let only = parts.next().filter(|_| layout.variants.is_none())?;
        parts.next().is_none().then_some(only)
    }

    /// The asynchronous function or block that a value is, or that is all there is in it.
    fn coroutine_at(&mut self, value: Value, pointers: &mut u32) -> Option<Value> {
        let mut value = value;
        for _ in 0..AROUND_MAX {
            let layouts = std::sync::Arc::clone(&self.place.layouts);
            let layout = layouts.types.get(value.of as usize)?;
            if super::kinds::is_coroutine(&layout.path) {
                return Some(value);
            }
            if layout.points_to.is_some() || self.is_object(layout) {
                *pointers = pointers.checked_sub(1)?;
                value = self.target(value, layout)?;
                continue;
            }
            let only = self.only_part(value.of)?;
            value = Value {
                at: value.at.checked_add(only.offset)?,
                of: only.of,
            };
        }
        None
    }

    /// Whether an asynchronous function stands at an `await`, and what it awaits does so too.
    fn is_suspended(&mut self, value: Value, deep: usize) -> bool {
        let Some(state) = self.suspended(value) else {
            return false;
        };
        let Some(awaited) = self.awaited(state) else {
            return false;
        };
        let is_coroutine = self.is_coroutine(awaited);
        let next = match is_coroutine {
            true => Some(awaited),
            false => self.within(awaited).0.filter(|one| self.is_coroutine(*one)),
        };
        // A future made by hand may not have begun what it has.
        let begins = |program: &mut Self, next| !is_coroutine && program.has_not_begun(next);
        next.is_none_or(|next| deep < CHAIN_MAX && (begins(self, next) || self.is_suspended(next, deep + 1)))
    }
}

/// The types of futures that the code at an address runs.
fn running(code: &[BlockingCode], address: u64) -> impl Iterator<Item = u32> {
    let behind = code.partition_point(|one| one.begin <= address);
    let before = code[..behind].iter().rev().take(NESTED_MAX);
    before.filter(move |one| address < one.end).map(|one| one.of)
}
