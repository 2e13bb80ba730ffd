//! Interpreters and their threads.
//!
//! In: where the runtime's state is. Out: the states of its threads, and which of them is a thread of the kernel.

use super::versions::{Layout, Refused};
use crate::memory::{Memory, Source};
use crate::pthread;

/// Interpreters of a process that are looked at.
const INTERPRETERS_MAX: usize = 64;

/// Threads of a process that are looked at.
const THREADS_MAX: usize = 16_384;

/// The states of all threads; `None` where a list does not hold together.
pub(super) fn threads<S: Source>(memory: &mut Memory<S>, layout: &Layout, runtime: u64) -> Option<Vec<u64>> {
    let mut threads = Vec::new();
    let mut interpreter = memory.word(runtime.checked_add(layout.interpreters)?)?;
    for _ in 0..INTERPRETERS_MAX {
        if interpreter == 0 {
            return Some(threads);
        }
        let mut thread = memory.word(interpreter.checked_add(layout.threads)?)?;
        while thread != 0 {
            if threads.len() >= THREADS_MAX {
                return None;
            }
            // Each names its interpreter: what does not is no thread's state.
            if memory.word(thread.checked_add(layout.interpreter)?)? != interpreter {
                return None;
            }
            threads.push(thread);
            thread = memory.word(thread.checked_add(layout.next_thread)?)?;
        }
        interpreter = memory.word(interpreter.checked_add(layout.next_interpreter)?)?;
    }
    None
}

/// Whether the first interpreter has more than one thread.
pub(super) fn has_several<S: Source>(memory: &mut Memory<S>, layout: &Layout, runtime: u64) -> Option<bool> {
    let interpreter = memory.pointer(runtime.checked_add(layout.interpreters)?)?;
    let thread = memory.pointer(interpreter.checked_add(layout.threads)?)?;
    Some(memory.word(thread.checked_add(layout.next_thread)?)? != 0)
}

/// Whether the structures are where this layout has them.
pub(super) fn check<S: Source>(memory: &mut Memory<S>, layout: &Layout, runtime: u64) -> Result<(), Refused> {
    let wrong = Refused::Implausible(layout.version);
    let threads = threads(memory, layout, runtime).ok_or(wrong)?;
    let first = threads.first().ok_or(Refused::NoThreads(layout.version))?;
    let known = tid(memory, layout, *first).is_some();
    known.then_some(()).ok_or(wrong)
}

/// The kernel's id of a thread, in its own pid namespace.
pub(super) fn tid<S: Source>(memory: &mut Memory<S>, layout: &Layout, thread: u64) -> Option<u32> {
    let handle = memory.word(thread.checked_add(layout.pthread)?)?;
    // The C library's number is right also after a fork, where some versions leave theirs as it was.
    if let Some(tid) = pthread::tid(memory, handle) {
        return Some(tid);
    }
    let own = memory.word(thread.checked_add(layout.tid?)?)?;
    pthread::plausible(u32::try_from(own).ok()?)
}
