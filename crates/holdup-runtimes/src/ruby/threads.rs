//! An interpreter and its threads.
//!
//! In: where the interpreter is. Out: its threads, and which of them is a thread of the kernel.

use super::versions::{Identity, Layout, Refused, Threads};
use crate::memory::{Memory, Source};
use crate::pthread;

/// Ractors of a process that are looked at.
const RACTORS_MAX: usize = 1024;

/// Threads of a process that are looked at.
const THREADS_MAX: usize = 16_384;

/// Words of a stack: Ruby's own have some hundred thousand.
const STACK_WORDS_MAX: u64 = 1 << 27;

/// Offsets in an execution context, of all versions: the stack, its size in words, the innermost frame.
const STACK: u64 = 0;
const STACK_WORDS: u64 = 8;
const INNERMOST: u64 = 16;

/// The stack of what a thread executes: frames grow down in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stack {
    pub(super) innermost: u64,
    /// The address behind the outermost frame.
    pub(super) end: u64,
}

/// What a thread executes: its own code, or that of a fiber. It belongs to the thread, and the frames lie in its stack.
pub(super) fn stack<S: Source>(memory: &mut Memory<S>, layout: &Layout, thread: u64) -> Option<Stack> {
    let context = memory.pointer(thread.checked_add(layout.thread_context)?)?;
    if memory.word(context.checked_add(layout.context_thread)?)? != thread {
        return None;
    }
    let begin = memory.pointer(context.checked_add(STACK)?)?;
    let words = memory.word(context.checked_add(STACK_WORDS)?)?;
    let innermost = memory.pointer(context.checked_add(INNERMOST)?)?;
    if words > STACK_WORDS_MAX {
        return None;
    }
    let end = begin.checked_add(words * 8)?;
    let whole = (begin..=end).contains(&innermost) && (end - innermost).is_multiple_of(layout.frame);
    whole.then_some(Stack { innermost, end })
}

/// Whether an interpreter is there: its first thread belongs to it, and executes something.
pub(super) fn is_interpreter<S: Source>(memory: &mut Memory<S>, layout: &Layout, at: u64) -> bool {
    let mut holds = || {
        let first = memory.pointer(at.checked_add(layout.main_thread)?)?;
        let of = memory.word(first.checked_add(layout.thread_interpreter)?)?;
        (of == at).then(|| stack(memory, layout, first)).flatten()
    };
    at.is_multiple_of(8) && holds().is_some()
}

/// All threads; `None` where a list does not hold together.
pub(super) fn all<S: Source>(memory: &mut Memory<S>, layout: &Layout, interpreter: u64) -> Option<Vec<u64>> {
    let mut threads = Vec::new();
    match layout.threads {
        Threads::List(list) => {
            threads = linked(memory, interpreter.checked_add(list)?, THREADS_MAX)?;
        }
        Threads::Ractors(ractors, link, list) => {
            for at in linked(memory, interpreter.checked_add(ractors)?, RACTORS_MAX)? {
                let ractor = at.checked_sub(link)?;
                threads.extend(linked(
                    memory,
                    ractor.checked_add(list)?,
                    THREADS_MAX - threads.len(),
                )?);
            }
        }
    }
    for thread in &threads {
        // Each names its interpreter: what does not is no thread.
        if memory.word(thread.checked_add(layout.thread_interpreter)?)? != interpreter {
            return None;
        }
    }
    Some(threads)
}

/// What is linked in a circle behind its head; a thread begins with its link.
pub(super) fn linked<S: Source>(memory: &mut Memory<S>, head: u64, most: usize) -> Option<Vec<u64>> {
    let mut found = Vec::new();
    let mut at = memory.pointer(head)?;
    while at != head {
        if found.len() >= most {
            return None;
        }
        found.push(at);
        at = memory.pointer(at)?;
    }
    Some(found)
}

/// Whether the structures are where this layout has them.
pub(super) fn check<S: Source>(
    memory: &mut Memory<S>,
    layout: &Layout,
    interpreter: u64,
) -> Result<(), Refused> {
    let wrong = Refused::Implausible(layout.version);
    if !is_interpreter(memory, layout, interpreter) {
        return Err(wrong);
    }
    let threads = all(memory, layout, interpreter).ok_or(wrong)?;
    let first = threads.first().ok_or(Refused::NoThreads(layout.version))?;
    let known = tid(memory, layout, *first).is_some();
    known.then_some(()).ok_or(wrong)
}

/// The kernel's id of a thread, in its own pid namespace; `None` where it has none now.
pub(super) fn tid<S: Source>(memory: &mut Memory<S>, layout: &Layout, thread: u64) -> Option<u32> {
    let (handle, own) = match layout.identity {
        Identity::Pthread(handle) => (thread.checked_add(handle)?, None),
        Identity::Both(handle, own) => (thread.checked_add(handle)?, thread.checked_add(own)),
        Identity::Behind(native, handle, own) => {
            let native = memory.pointer(thread.checked_add(native)?)?;
            (native.checked_add(handle)?, native.checked_add(own))
        }
    };
    let handle = memory.word(handle)?;
    // The C library's number is right also after a fork.
    if let Some(tid) = pthread::tid(memory, handle) {
        return Some(tid);
    }
    let own = memory.int(own?)?;
    pthread::plausible(own)
}
