//! Goroutines, from outside.
//!
//! In: memory, and where `runtime.allgs` is. Out: each goroutine with its state, what it waits for by the runtime's own words, and
//! the return addresses of its stack, innermost first. Addresses are named by whoever has the program's file. Go 1.17 to 1.26 is
//! read; which of their three layouts it is shows by the structures themselves ([`Layout`]), because a stripped program
//! does not say its version.
//!
//! A goroutine that runs has no stack here: its registers are a thread's. A list that grows meanwhile gives those that were there
//! before.

mod awaited;
mod groups;
mod handing;
mod layout;
mod locks;
mod pooled;
mod started;
mod stripped;
mod table;

#[cfg(test)]
mod tests;

use crate::memory::{Memory, PAGE, Source};
use awaited::Sudogs;
pub use handing::{Awaits, Line, Whose};
use layout::Layout;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use table::Table;
pub use table::{Function, TablePlace};

/// Symbols that are needed or of use: the list of goroutines, and the texts of what they wait for.
pub const SYMBOLS: [&str; 2] = ["runtime.allgs", "runtime.waitReasonStrings"];

/// Goroutines that are looked at; a program that leaks them can have millions.
const GOROUTINES_MAX: u64 = 100_000;

/// Frames of a goroutine that are read.
const FRAMES_MAX: usize = 64;

/// Stacks whose pages are copied in one go.
const AHEAD: usize = 256;

/// Longest text of a reason, bytes. The longest of Go 1.26 has 40.
const REASON_BYTES_MAX: u64 = 64;

/// Reasons that there can be: it is a byte.
const REASON_BYTES: u64 = 16;

/// Where a program keeps what is read of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The address of `runtime.allgs`, a slice; `None` of a stripped program, in which it is found by the runtime's code.
    pub goroutines: Option<u64>,
    /// The address of `runtime.waitReasonStrings`, if it is known.
    pub reasons: Option<u64>,
    /// The linker's table of functions.
    pub table: Option<TablePlace>,
}

impl Place {
    /// An address in it.
    #[must_use]
    pub fn some_address(&self) -> Option<u64> {
        self.goroutines.or(self.table.map(|table| table.table))
    }
}

/// What a goroutine does, by its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// It could run, and no thread runs it.
    Runnable,
    /// A thread runs it.
    Running,
    /// A thread makes a system call for it.
    InSystemCall,
    /// It is parked.
    Waiting,
}

/// What a parked goroutine waits for, as its structures say.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Awaited {
    /// A descriptor: its number.
    pub descriptor: Option<u32>,
    /// Channels, by address: one, or those of a `select`. A lock that it waits for is noted among them by [`Program::locks`], a group by
    /// [`Program::groups`].
    pub channels: Vec<u64>,
    /// Whether a timer sends to one of them.
    pub timed: bool,
}

/// A goroutine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goroutine {
    /// Its number in the program, as its own dumps print it.
    pub id: u64,
    /// What it does.
    pub status: Status,
    /// What it waits for, in the runtime's words: `chan receive`, `sync.Mutex.Lock`, `IO wait`.
    pub reason: Option<String>,
    /// About since when it waits, nanoseconds of the runtime's clock; zero where that is not noted. A collection that finds it waiting
    /// notes the end of the collection before it.
    pub seen_waiting: u64,
    /// Where it stands, innermost first: the first is an instruction, the others are return addresses.
    pub addresses: Vec<u64>,
    /// What it waits for.
    pub awaited: Awaited,
    /// Channels that others wait for, and to which it refers; noted by [`Program::refer`]. Locks that it seems to have are noted among
    /// them by [`Program::locks`], and groups by [`Program::groups`].
    pub refers: Vec<u64>,
    /// Who started it; noted by [`Program::started`] from Go 1.21 on.
    pub started_by: Option<u64>,
    /// Where its structure is.
    pub at: u64,
}

/// Why goroutines are not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Refused {
    /// Nothing was there.
    #[error("its memory cannot be read")]
    Memory,
    /// The runtime has not begun.
    #[error("it has no goroutines yet")]
    NoGoroutines,
    /// It is stripped, and its code is not what is known.
    #[error("it is stripped, and its runtime's code is not that of Go 1.18 to 1.26")]
    NoList,
    /// None of the known layouts fits.
    #[error("its structures are not those of Go 1.17 to 1.26")]
    Unknown,
}

/// All of them, and how many more there were.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goroutines {
    /// Those that were read.
    pub all: Vec<Goroutine>,
    /// Those beyond the limit.
    pub left_out: u64,
    /// Those that changed during the read.
    pub torn: u64,
}

impl Goroutines {
    /// Whether one runs or could.
    #[must_use]
    pub fn any_runs(&self) -> bool {
        let mut all = self.all.iter();
        all.any(|one| matches!(one.status, Status::Running | Status::Runnable))
    }
}

/// Reads a program's goroutines.
#[derive(Debug)]
pub struct Program<S> {
    memory: Memory<S>,
    /// Where the list of goroutines is, and the texts of reasons.
    list: u64,
    texts: Option<u64>,
    table: Option<Table>,
    layout: Layout,
    reasons: HashMap<u8, Option<String>>,
    sudogs: Sudogs,
}

impl<S: Source> Program<S> {
    /// Finds out how its structures are laid out.
    ///
    /// # Errors
    /// When there are no goroutines, or none of the known layouts fits them.
    pub fn find(source: S, place: Place) -> Result<Program<S>, Refused> {
        let mut memory = Memory::new(source);
        let table = place.table.and_then(|place| Table::find(&mut memory, place));
        let (at, texts) = match place.goroutines {
            Some(at) => (at, place.reasons),
            None => {
                let found = table
                    .as_ref()
                    .and_then(|table| stripped::found(&mut memory, table));
                found.ok_or(Refused::NoList)?
            }
        };
        let (list, count) = list(&mut memory, at).ok_or(Refused::Memory)?;
        if count == 0 {
            return Err(Refused::NoGoroutines);
        }
        let layout = Layout::of(&mut memory, list, count).ok_or(Refused::Unknown)?;
        Ok(Program {
            memory,
            list: at,
            texts,
            table,
            layout,
            reasons: HashMap::new(),
            sudogs: Sudogs::default(),
        })
    }

    /// All goroutines that live.
    ///
    /// # Errors
    /// When the list cannot be read.
    pub fn goroutines(&mut self) -> Result<Goroutines, Refused> {
        self.memory.forget();
        let (list, count) = list(&mut self.memory, self.list).ok_or(Refused::Memory)?;
        let found = count.min(GOROUTINES_MAX);
        let mut read = Goroutines {
            all: Vec::new(),
            left_out: count - found,
            torn: 0,
        };
        let mut addresses = Vec::new();
        self.memory.ahead(
            (0..found * 8)
                .step_by(PAGE)
                .filter_map(|offset| list.checked_add(offset)),
        );
        for at in 0..found {
            let goroutine = list.checked_add(at * 8).and_then(|at| self.memory.pointer(at));
            match goroutine {
                Some(goroutine) => addresses.push(goroutine),
                None => read.torn += 1,
            }
        }
        for some in addresses.chunks(AHEAD) {
            self.memory.ahead(some.iter().copied());
            let tops: Vec<u64> = some
                .iter()
                .filter_map(|goroutine| self.layout.frame_pointer(&mut self.memory, *goroutine))
                .collect();
            self.memory.ahead(tops);
            for goroutine in some {
                match self.goroutine(*goroutine) {
                    Some(Some(goroutine)) => read.all.push(goroutine),
                    Some(None) => {}
                    None => read.torn += 1,
                }
            }
        }
        Ok(read)
    }

    /// One of them; `Some(None)` if it has ended.
    fn goroutine(&mut self, goroutine: u64) -> Option<Option<Goroutine>> {
        let layout = self.layout;
        let status = match layout.status(&mut self.memory, goroutine)? {
            layout::RUNNABLE | layout::PREEMPTED => Status::Runnable,
            layout::RUNNING | layout::COPIES_STACK => Status::Running,
            layout::IN_SYSTEM_CALL => Status::InSystemCall,
            layout::WAITING | layout::LEAKED => Status::Waiting,
            _ => return Some(None),
        };
        let reason = match status {
            Status::Waiting => {
                let number = self.memory.byte(goroutine.checked_add(layout.reason)?)?;
                self.reason(number)
            }
            _ => None,
        };
        let addresses = match status {
            Status::Running => Vec::new(),
            _ => self.stack(goroutine)?,
        };
        let awaited = match reason.as_deref() {
            Some(reason) => self.awaited(goroutine, reason),
            None => Awaited::default(),
        };
        Some(Some(Goroutine {
            id: self.memory.word(goroutine.checked_add(layout.id)?)?,
            status,
            reason,
            seen_waiting: self.memory.word(goroutine.checked_add(layout.since)?)?,
            addresses,
            awaited,
            refers: Vec::new(),
            started_by: None,
            at: goroutine,
        }))
    }

    /// Along the frame pointers, which go up and stay within the stack.
    fn stack(&mut self, goroutine: u64) -> Option<Vec<u64>> {
        let (low, high) = (
            self.memory.word(goroutine)?,
            self.memory.word(goroutine.checked_add(8)?)?,
        );
        let mut addresses = vec![self.memory.pointer(goroutine.checked_add(layout::PC)?)?];
        let mut frame = self.layout.frame_pointer(&mut self.memory, goroutine)?;
        while addresses.len() < FRAMES_MAX && (low..high).contains(&frame) {
            let Some(caller) = frame.checked_add(8).and_then(|at| self.memory.pointer(at)) else {
                break;
            };
            addresses.push(caller);
            let above = self.memory.word(frame)?;
            if above <= frame {
                break;
            }
            frame = above;
        }
        Some(addresses)
    }

    /// A reason's text; there is one for each number, and it does not change.
    fn reason(&mut self, number: u8) -> Option<String> {
        if let Some(known) = self.reasons.get(&number) {
            return known.clone();
        }
        let at = self.texts?;
        let mut read = || {
            let at = at.checked_add(u64::from(number) * REASON_BYTES)?;
            let text = self.memory.pointer(at)?;
            let bytes = self.memory.word(at.checked_add(8)?)?;
            let bytes = usize::try_from(bytes)
                .ok()
                .filter(|_| bytes <= REASON_BYTES_MAX)?;
            self.memory.text(text, bytes)
        };
        let text = read().filter(|text| !text.is_empty() && text.chars().all(|char| !char.is_control()));
        self.reasons.insert(number, text.clone());
        text
    }
}

/// Where the list is, and how many there are.
fn list<S: Source>(memory: &mut Memory<S>, at: u64) -> Option<(u64, u64)> {
    let list = memory.word(at)?;
    let count = memory.word(at.checked_add(8)?)?;
    let room = memory.word(at.checked_add(16)?)?;
    (count <= room).then_some((list, count))
}
