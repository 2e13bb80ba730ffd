//! Tasks of tokio, from outside.
//!
//! A task is a piece of memory: a head with a state and a table of functions, and the future that it runs. Nothing lists all tasks in a way that stays
//! the same from version to version; but each table has the function that runs the task, and the program's debug information says which future that
//! runs. So a sweep of what the process has allocated looks for heads, and the future's layout says where each task stands. In: memory, where to
//! sweep, and layouts of types. Out: each task that has not ended, with where it stands, what it awaits, and which locks its saved variables have.
//!
//! What a task is in while a thread runs it changes under the eyes of who reads it, and is not read.

mod blocked;
mod kinds;
mod stands;

#[cfg(test)]
mod tests;

use crate::memory::{Memory, PAGE, Source};
use holdup_evidence::{Frame, TaskHead, TypeLayouts};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

pub use blocked::{SLEEPERS_MAX, Sleeper};
pub(crate) use kinds::Kind;

/// Memory that is swept, bytes: half a second's work. Of a process with more nothing is said.
const SWEPT_MAX: u64 = 1 << 30;

/// Places that may be heads and are looked at, and tasks.
const CANDIDATES_MAX: usize = 400_000;
const TASKS_MAX: usize = 20_000;

/// Tasks that are listed.
const LISTED_MAX: usize = 1_000;

/// Bits of a task's state: a thread runs it, it has ended, it is in a queue to be run. The others from this one on count references.
const RUNNING: u64 = 1;
const COMPLETE: u64 = 1 << 1;
const NOTIFIED: u64 = 1 << 2;
const REFERENCES: u32 = 6;

/// References that a task may have: more is no count.
const REFERENCES_MAX: u64 = 1 << 32;

/// Parts of a task: what runs it, its number, and its future.
const CORE: &str = "core";
const NUMBER: [&str; 2] = ["task_id", "id"];
const STAGE: &str = "stage";

/// The variant of a stage that has a future.
const HAS_FUTURE: &str = "::Running";

/// Where a program's types are laid out, and where in the process that file is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The layouts.
    pub layouts: Arc<TypeLayouts>,
    /// What is added to an address that the file states.
    pub moved: u64,
    /// Where the file is mapped.
    pub mapped: Range<u64>,
}

/// What a task does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Does {
    /// A thread runs it.
    Runs,
    /// It is in a queue to be run.
    Ready,
    /// It waits to be woken.
    Waits,
}

/// A task that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its number in the program; its address where it has none.
    pub id: u64,
    /// What it does.
    pub does: Does,
    /// Where it stands, innermost first; empty of one that runs.
    pub frames: Vec<Arc<Frame>>,
    /// The function or future of tokio that it awaits: `tokio::sync::mutex::lock`. Of another library's future, that.
    pub reason: Option<String>,
    /// Whether it awaits the first of several futures.
    pub several: bool,
    /// The number of the task that it awaits.
    pub awaits: Option<u64>,
    /// The descriptor that it awaits.
    pub descriptor: Option<u32>,
    /// Locks and channels that it awaits, by address.
    pub objects: Vec<u64>,
    /// Those that its variables have: locks that it took, and channels that it receives from.
    pub has: Vec<u64>,
    /// Channels that its variables send to.
    pub sends_to: Vec<u64>,
    /// The thread that blocks on it and runs it; `None` of one that a scheduler has.
    pub thread: Option<u32>,
    /// How often that thread had blocked when this was read, where whoever reads counts it.
    pub turns: Option<u64>,
}

impl Task {
    /// One of which no more is known.
    fn new(id: u64, does: Does) -> Task {
        Task {
            id,
            does,
            frames: Vec::new(),
            reason: None,
            several: false,
            awaits: None,
            descriptor: None,
            objects: Vec::new(),
            has: Vec::new(),
            sends_to: Vec::new(),
            thread: None,
            turns: None,
        }
    }
}

/// All tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tasks {
    /// Those that were read.
    pub all: Vec<Task>,
    /// Those beyond the limit.
    pub left_out: u64,
}

/// A program that runs tasks.
#[derive(Debug)]
pub struct Program<S> {
    memory: Memory<S>,
    place: Place,
    /// `None` where nothing of it runs tasks: its threads may block on futures all the same.
    head: Option<TaskHead>,
    /// Types of whole tasks, by the address of what runs them.
    polls: HashMap<u64, u32>,
    /// Types of futures that are trait objects, by the address of their table.
    objects: HashMap<u64, u32>,
    /// Of types: which things that tasks wait for are parts of them, and where.
    parts: HashMap<u32, Arc<[(Kind, u64)]>>,
}

/// A value in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Value {
    at: u64,
    /// Its type: an index.
    of: u32,
}

/// A task as it was found.
#[derive(Debug, Clone, Copy)]
struct Found {
    at: u64,
    of: u32,
    state: u64,
}

impl<S: Source> Program<S> {
    /// A program; `None` where its debug information does not say what a task looks like.
    pub fn find(source: S, place: Place) -> Option<Program<S>> {
        let head = place.layouts.head;
        let moved = place.moved;
        let there = |stated: u64| stated.wrapping_add(moved);
        let polls = place
            .layouts
            .tasks
            .iter()
            .map(|kind| (there(kind.poll), kind.of))
            .collect();
        let objects = place
            .layouts
            .objects
            .iter()
            .map(|(at, of)| (there(*at), *of))
            .collect();
        let fits =
            |head: TaskHead| head.align >= 8 && head.align.is_power_of_two() && head.align <= PAGE as u64;
        let sound = head.map_or(!place.layouts.blocking.is_empty(), fits);
        sound.then(|| Program {
            memory: Memory::new(source),
            polls,
            objects,
            parts: HashMap::new(),
            head,
            place,
        })
    }

    /// Its tasks, by where it has allocated memory, and the futures on which threads that sleep block; `None` where there is too much memory to
    /// be swept.
    pub fn tasks(&mut self, allocated: &[Range<u64>], sleepers: &[Sleeper]) -> Option<Tasks> {
        self.memory.forget();
        let size = allocated
            .iter()
            .map(|range| range.end.saturating_sub(range.start));
        if size.fold(0, u64::saturating_add) > SWEPT_MAX {
            return None;
        }
        let found = self.heads(allocated);
        let mut left_out = u64::try_from(found.len().saturating_sub(TASKS_MAX)).unwrap_or(u64::MAX);
        let mut all = Vec::new();
        let mut numbers: BTreeMap<u64, u64> = BTreeMap::new();
        let mut awaited: Vec<Option<u64>> = Vec::new();
        for one in found.into_iter().take(TASKS_MAX) {
            let Some((task, head)) = self.task(one) else {
                continue;
            };
            numbers.insert(one.at, task.id);
            awaited.push(head);
            all.push(task);
        }
        let number = |head: Option<u64>| head.and_then(|head| numbers.get(&head).copied());
        for (task, head) in all.iter_mut().zip(awaited) {
            task.awaits = number(head);
        }
        // Those that have what others wait for are listed before those that do not.
        if all.len() > LISTED_MAX {
            all.sort_by_key(|task| (task.has.is_empty(), task.id));
            left_out = left_out.saturating_add((all.len() - LISTED_MAX) as u64);
            all.truncate(LISTED_MAX);
        }
        for (task, head) in self.blocked(sleepers) {
            let awaits = number(head);
            all.push(Task { awaits, ..task });
        }
        all.sort_by_key(|task| task.id);
        Some(Tasks { all, left_out })
    }

    /// Heads of tasks that have not ended.
    fn heads(&mut self, allocated: &[Range<u64>]) -> Vec<Found> {
        let Some(head) = self.head else {
            return Vec::new();
        };
        let step = usize::try_from(head.align).unwrap_or(PAGE);
        let within = usize::try_from(head.table).unwrap_or(PAGE);
        let mapped = self.place.mapped.clone();
        let mut candidates: Vec<(u64, u64)> = Vec::new();
        for range in allocated {
            self.memory.sweep(range.clone(), &mut |start, page: &[u8; PAGE]| {
                for at in (0..PAGE).step_by(step) {
                    let Some(bytes) = page.get(at + within..at + within + 8) else {
                        continue;
                    };
                    let table = bytes.try_into().map_or(0, u64::from_le_bytes);
                    if table % 8 == 0 && mapped.contains(&table) && candidates.len() < CANDIDATES_MAX {
                        candidates.push((start + at as u64, table));
                    }
                }
            });
        }
        let mut kinds: HashMap<u64, Option<u32>> = HashMap::new();
        let mut found = Vec::new();
        for (at, table) in candidates {
            let of = *kinds.entry(table).or_insert_with(|| {
                let poll = self.memory.pointer(table.checked_add(head.poll)?)?;
                self.polls.get(&poll).copied()
            });
            let Some(of) = of else { continue };
            let state = at.checked_add(head.state).and_then(|at| self.memory.word(at));
            let lives = |state: &u64| {
                let references = state >> REFERENCES;
                state & COMPLETE == 0 && (1..REFERENCES_MAX).contains(&references)
            };
            if !self.is_owned(&head, at) {
                continue;
            }
            found.extend(state.filter(lives).map(|state| Found { at, of, state }));
        }
        found
    }

    /// Whether a scheduler has the task. A task is made on a stack and then moved, so stacks have copies that nobody runs; and what may block is run by a
    /// thread of its own, of which the thread is said.
    fn is_owned(&mut self, head: &TaskHead, at: u64) -> bool {
        let owner = head.owner.map(|owner| at.checked_add(owner));
        owner.is_none_or(|owner| owner.and_then(|owner| self.memory.pointer(owner)).is_some())
    }

    /// One task, and the head of the one that it awaits; `None` where its future is gone.
    fn task(&mut self, found: Found) -> Option<(Task, Option<u64>)> {
        let core = self.member(
            Value {
                at: found.at,
                of: found.of,
            },
            &[CORE],
        )?;
        let number = self
            .member(core, &NUMBER)
            .and_then(|number| self.memory.pointer(number.at));
        let stage = self.member(core, &[STAGE])?;
        let future = self.future_of(stage)?;
        let does = match found.state {
            state if state & RUNNING != 0 => Does::Runs,
            state if state & NOTIFIED != 0 => Does::Ready,
            _ => Does::Waits,
        };
        let mut task = Task::new(number.unwrap_or(found.at), does);
        let awaited = match does {
            Does::Runs => None,
            Does::Ready | Does::Waits => self.stand(future, &mut task),
        };
        Some((task, awaited))
    }

    /// A part of a value, by one of these names.
    fn member(&self, value: Value, names: &[&str]) -> Option<Value> {
        let layout = self.place.layouts.types.get(value.of as usize)?;
        let member = layout
            .members
            .iter()
            .find(|one| names.contains(&one.name.as_str()))?;
        Some(Value {
            at: value.at.checked_add(member.offset)?,
            of: member.of,
        })
    }

    /// The future within a stage, if it has one: its variants are some structures further in.
    fn future_of(&mut self, stage: Value) -> Option<Value> {
        const WITHIN_MAX: usize = 8;
        let mut at = stage;
        for _ in 0..WITHIN_MAX {
            if let Some(variant) = self.variant(at) {
                let layout = self.place.layouts.types.get(variant.of as usize)?;
                let first = layout
                    .members
                    .first()
                    .filter(|_| layout.path.ends_with(HAS_FUTURE))?;
                return Some(Value {
                    at: variant.at.checked_add(first.offset)?,
                    of: first.of,
                });
            }
            let layout = self.place.layouts.types.get(at.of as usize)?;
            let only = layout.members.iter().find(|member| self.size(member.of) > 0)?;
            at = Value {
                at: at.at.checked_add(only.offset)?,
                of: only.of,
            };
        }
        None
    }

    fn size(&self, of: u32) -> u64 {
        self.place
            .layouts
            .types
            .get(of as usize)
            .map_or(0, |layout| layout.size)
    }
}
