//! Who had the global locks of interpreters, look by look.
//!
//! In: what each look found. Out: of each process, how often each thread had its lock, and where in its code it stood then.

use super::interpreted;
use holdup_evidence::{InterpreterLock, InterpreterLockHolder, UserStackId};
use holdup_runtimes::interpreted::Held;
use holdup_symbols::{Interpreted, UserStacks};
use std::collections::BTreeMap;

/// Processes, and places of each, that are kept.
const PROCESSES_MAX: usize = 64;
const PLACES_MAX: usize = 256;

/// What looks came to, by process id.
#[derive(Debug, Default)]
pub(super) struct GlobalLocks(BTreeMap<u32, Found>);

/// What was found of one process.
#[derive(Debug, Default)]
struct Found {
    looks: u64,
    /// By thread and stack.
    held: BTreeMap<(u32, UserStackId), u64>,
}

impl GlobalLocks {
    /// One look at a process. `tid_of`: what the kernel calls a thread, by its id in its own pid namespace.
    pub(super) fn looked(
        &mut self,
        stacks: &mut UserStacks,
        pid: u32,
        held: Option<Held>,
        tid_of: impl Fn(u32) -> Option<u32>,
    ) {
        if self.0.len() >= PROCESSES_MAX && !self.0.contains_key(&pid) {
            return;
        }
        let found = self.0.entry(pid).or_default();
        found.looks += 1;
        let Some(held) = held else { return };
        let Some(tid) = tid_of(held.tid) else { return };
        let frames: Vec<Interpreted> = interpreted(held.frames).collect();
        let place = (tid, stacks.intern_interpreted(&frames));
        if found.held.len() < PLACES_MAX || found.held.contains_key(&place) {
            *found.held.entry(place).or_default() += 1;
        }
    }

    /// Of each process.
    pub(super) fn locks(&self) -> Vec<InterpreterLock> {
        let of_process = |(pid, found): (&u32, &Found)| InterpreterLock {
            pid: *pid,
            looks: found.looks,
            holders: (found.held.iter())
                .map(|(&(tid, stack), &looks)| InterpreterLockHolder { tid, looks, stack })
                .collect(),
        };
        self.0.iter().map(of_process).collect()
    }
}
