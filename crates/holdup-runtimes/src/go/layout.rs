//! Where a goroutine's structure has what.
//!
//! It begins the same in all versions: the stack's bounds, four pointers of checks and panics, the thread, and the saved registers
//! (stack pointer, instruction, the goroutine itself). Behind them two things were added or taken away: Go 1.23 saves a frame
//! pointer for system calls, Go 1.25 keeps no result among the registers. That makes three layouts. Each is held against the
//! goroutines that there are; one is taken only if all of those that are looked at fit it.

use crate::memory::{Memory, Source};
use std::collections::HashSet;

/// Where the saved stack pointer and the saved instruction are.
pub(super) const SP: u64 = 56;
pub(super) const PC: u64 = 64;

/// Where a goroutine's saved registers have the goroutine itself.
const ITSELF: u64 = 72;

/// What `runtime2.go` calls the states.
pub(super) const IDLE: u32 = 0;
pub(super) const RUNNABLE: u32 = 1;
pub(super) const RUNNING: u32 = 2;
pub(super) const IN_SYSTEM_CALL: u32 = 3;
pub(super) const WAITING: u32 = 4;
pub(super) const DEAD: u32 = 6;
pub(super) const COPIES_STACK: u32 = 8;
pub(super) const PREEMPTED: u32 = 9;
pub(super) const LEAKED: u32 = 10;
pub(super) const DEAD_EXTRA: u32 = 11;

/// The bit that says that the collector looks at it.
const SCANNED: u32 = 0x1000;

/// Goroutines that a layout is held against.
const TRIED: u64 = 256;

/// Largest number that a goroutine is believed to have: a million a second for a year.
const ID_MAX: u64 = 1 << 45;

/// Offsets in a goroutine's structure, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    /// The saved frame pointer.
    pub(super) frame: u64,
    /// The state, four bytes.
    pub(super) status: u64,
    /// Its number.
    pub(super) id: u64,
    /// About since when it waits.
    pub(super) since: u64,
    /// What it waits for, a byte.
    pub(super) reason: u64,
}

/// Go 1.25 and 1.26; 1.23 and 1.24; 1.17 to 1.22.
pub(super) const LAYOUTS: [Layout; 3] = [Layout::at(96, 144), Layout::at(104, 152), Layout::at(104, 144)];

impl Layout {
    const fn at(frame: u64, status: u64) -> Layout {
        Layout {
            frame,
            status,
            id: status + 8,
            since: status + 24,
            reason: status + 32,
        }
    }

    /// Whether a channel has the timer that sends to it: from Go 1.23 on.
    pub(super) fn channels_note_timers(&self) -> bool {
        *self != LAYOUTS[2]
    }

    /// The layout that fits all goroutines at the beginning of a list.
    pub(super) fn of<S: Source>(memory: &mut Memory<S>, list: u64, count: u64) -> Option<Layout> {
        let mut some = Vec::new();
        for at in 0..count.min(TRIED) {
            some.push(memory.pointer(list.checked_add(at * 8)?)?);
        }
        LAYOUTS
            .into_iter()
            .find(|layout| layout.fits(memory, &some) == Some(true))
    }

    fn fits<S: Source>(&self, memory: &mut Memory<S>, some: &[u64]) -> Option<bool> {
        let mut ids = HashSet::new();
        let mut parked = 0;
        for goroutine in some {
            let status = self.status(memory, *goroutine)?;
            match status {
                IDLE | DEAD | DEAD_EXTRA => continue,
                RUNNABLE | RUNNING | IN_SYSTEM_CALL | WAITING | COPIES_STACK | PREEMPTED | LEAKED => {}
                _ => return Some(false),
            }
            let id = memory.word(goroutine.checked_add(self.id)?)?;
            if id == 0 || id > ID_MAX || !ids.insert(id) {
                return Some(false);
            }
            // Parked: the registers are its own, and the frame pointer is within its stack.
            if matches!(status, WAITING | LEAKED) {
                let itself = memory.word(goroutine.checked_add(ITSELF)?)?;
                let (low, high) = (memory.word(*goroutine)?, memory.word(goroutine.checked_add(8)?)?);
                let frame = self.frame_pointer(memory, *goroutine)?;
                if itself != *goroutine || !(low..high).contains(&frame) {
                    return Some(false);
                }
                parked += 1;
            }
        }
        // The runtime's own goroutines always wait for something.
        Some(parked > 0)
    }

    /// The state.
    pub(super) fn status<S: Source>(&self, memory: &mut Memory<S>, goroutine: u64) -> Option<u32> {
        Some(memory.int(goroutine.checked_add(self.status)?)? & !SCANNED)
    }

    /// The saved frame pointer.
    pub(super) fn frame_pointer<S: Source>(&self, memory: &mut Memory<S>, goroutine: u64) -> Option<u64> {
        memory.word(goroutine.checked_add(self.frame)?)
    }
}
