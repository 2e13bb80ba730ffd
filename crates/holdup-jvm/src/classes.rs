//! Which threads wait until another has initialised a class.
//!
//! The problem: a class's lock for that has no owner that a waiter names, and neither the thread nor the lock leads to the class. What
//! does is the machine's own function that waits: it has the class in its frame. So of a thread that is blocked while Java
//! calls it runnable (which those are that the machine itself keeps) the words of its stack below its last Java frame are
//! looked through for a class that another thread initialises now, which the class names.
//!
//! In: a thread's structure. Out: the class, and who initialises it. Where two classes fit, nothing is reported.

use crate::layout::Layout;
use crate::memory::{Memory, Source};
use crate::methods::class_name;
use crate::oops::Oops;
use crate::structures::Structures;
use crate::threads::Fields as Threads;

/// So far below its last Java frame a thread is looked at, bytes: a call from the interpreter or by `Class.forName` uses some 2 KiB
/// there, one from compiled code some 9.
const BELOW: u64 = 16384;

/// A pointer of a process is below this, and above its first page.
const USER_END: u64 = 1 << 47;
const PAGE: u64 = 4096;

/// Where everything is.
#[derive(Debug, Clone)]
pub(crate) struct Fields {
    /// In a thread: what it is doing, and where its last Java frame ends.
    state: u64,
    last_java: u64,
    blocked: u32,
    /// In `java.lang.Thread`: what Java calls its state, or the object that has it (JDK 19 and later).
    status: Status,
    runnable: u32,
    /// In a class.
    progress: u64,
    initialiser: u64,
    begun: u8,
}

#[derive(Debug, Clone, Copy)]
enum Status {
    Own(u64),
    Held { holder: u64, status: u64 },
}

/// A class that a thread waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Awaited {
    /// Where the class is.
    pub(crate) class: u64,
    /// Its name.
    pub(crate) name: String,
    /// The structure of the thread that initialises it.
    pub(crate) by: u64,
}

impl Fields {
    pub(crate) fn read<S: Source>(
        memory: &mut Memory<S>,
        tables: &Structures,
        layout: &Layout,
        oops: &Oops,
        threads: &Threads,
    ) -> Option<Fields> {
        let number = |name| u32::try_from(tables.constant(name)?).ok();
        let anchor = tables.offset("JavaThread", "_anchor")?;
        let status = match oops.field(memory, layout, oops.thread, "threadStatus") {
            Some(status) => Status::Own(status),
            None => {
                let holder = oops.field(memory, layout, oops.thread, "holder")?;
                // Every thread has one of the same class.
                let all = threads.all(memory)?;
                let object = all
                    .into_iter()
                    .find_map(|thread| threads.object(memory, oops, thread))?;
                let object = oops.reference(memory, object.checked_add(holder)?)?;
                let class = oops.class(memory, object)?;
                let status = oops.field(memory, layout, class, "threadStatus")?;
                Status::Held { holder, status }
            }
        };
        Some(Fields {
            state: tables.offset("JavaThread", "_thread_state")?,
            last_java: anchor + tables.offset("JavaFrameAnchor", "_last_Java_sp")?,
            blocked: number("_thread_blocked")?,
            status,
            runnable: number("JavaThreadStatus::RUNNABLE")?,
            progress: tables.offset("InstanceKlass", "_init_state")?,
            initialiser: tables.offset("InstanceKlass", "_init_thread")?,
            begun: u8::try_from(tables.constant("InstanceKlass::being_initialized")?).ok()?,
        })
    }

    /// The class that a thread waits for, and which of `threads` initialises it.
    pub(crate) fn awaited<S: Source>(
        &self,
        memory: &mut Memory<S>,
        layout: &Layout,
        oops: &Oops,
        threads: &[u64],
        (thread, object): (u64, u64),
    ) -> Option<Awaited> {
        if memory.int(thread.checked_add(self.state)?)? != self.blocked {
            return None;
        }
        let status = match self.status {
            Status::Own(status) => object.checked_add(status)?,
            Status::Held { holder, status } => oops
                .reference(memory, object.checked_add(holder)?)?
                .checked_add(status)?,
        };
        if memory.int(status)? != self.runnable {
            return None;
        }
        let top = memory.pointer(thread.checked_add(self.last_java)?)?;
        let mut found: Option<Awaited> = None;
        for place in (top.checked_sub(BELOW)?..top).step_by(8) {
            // Of the pages below some may never have been used.
            let Some(word) = memory.word(place) else { continue };
            let known = found.as_ref().is_some_and(|found| found.class == word);
            if known || word % 8 != 0 || !(PAGE..USER_END).contains(&word) {
                continue;
            }
            let Some(by) = self.initialiser(memory, threads, word).filter(|by| *by != thread) else {
                continue;
            };
            let Some(name) = class_name(memory, layout, word) else {
                continue;
            };
            if found.is_some() {
                return None;
            }
            found = Some(Awaited {
                class: word,
                name,
                by,
            });
        }
        found
    }

    /// Who initialises what is at this address, if that is a class and somebody does.
    fn initialiser<S: Source>(&self, memory: &mut Memory<S>, threads: &[u64], class: u64) -> Option<u64> {
        let begun = memory.byte(class.checked_add(self.progress)?)? == self.begun;
        let by = begun.then(|| memory.pointer(class.checked_add(self.initialiser)?))??;
        threads.contains(&by).then_some(by)
    }
}
