//! Which functions of a Node.js program wait, where a thread sleeps without JavaScript on its stack.
//!
//! In: a thread of such a process. Out: the function that waits for what a thread of libuv's pool does; of a thread that runs an event loop
//! the function that waits for each of its descriptors, by inode.

use super::looks::Seen;
use crate::goroutines::inode;
use holdup_evidence::{Call, Ns};
use holdup_jvm::Running;
use holdup_knowledge::javascript;
use holdup_knowledge::system_calls::{self, Kind};
use holdup_proc::{Root, clocks, tasks};
use holdup_runtimes::interpreted::Interpreted;
use holdup_runtimes::node::{Asleep, Engine};

/// Who waits.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    /// Of whatever it sleeps for; of several descriptors, if one function waits for all of them.
    pub(super) frames: Vec<Interpreted>,
    /// By inode of a descriptor.
    pub(super) by: Vec<(u64, Vec<Interpreted>)>,
}

impl Seen {
    /// How many frames it has.
    pub(super) fn count(&self) -> usize {
        self.frames.len() + self.by.iter().map(|(_, frames)| frames.len()).sum::<usize>()
    }
}

/// What a look at a thread came to, which was found asleep after an instant.
pub(super) fn seen(root: &Root, engine: &mut Engine<Running>, pid: u32, (tid, asleep): (u32, Ns)) -> Seen {
    let from = clocks::monotonic();
    let Waiters { frames, by } = waiters(root, engine, pid, tid);
    Seen {
        tid,
        asleep,
        from,
        to: clocks::monotonic(),
        frames,
        by,
        ..Seen::default()
    }
}

/// Of a thread that sleeps; nothing where it runs, or does nothing for the program.
pub(super) fn waiters(root: &Root, engine: &mut Engine<Running>, pid: u32, tid: u32) -> Waiters {
    let Some(sleeping) = tasks::sleeping(root, tid) else {
        return Waiters::default();
    };
    let call = Call {
        number: sleeping.call.number,
        args: [0; 4],
    };
    let polls = system_calls::is(&call, Kind::WaitsForEpoll);
    let epoll = u32::try_from(sleeping.call.args[0]).ok().filter(|_| polls);
    let asleep = Asleep {
        sp: sleeping.sp,
        epoll,
        own: |file| !javascript::of_library(file),
    };
    if epoll.is_none() {
        let frames = engine.begun(&asleep).unwrap_or_default();
        return Waiters {
            frames,
            by: Vec::new(),
        };
    }
    let awaited = engine.awaited(&asleep).unwrap_or_default().into_iter();
    let by: Vec<_> = awaited
        .filter_map(|(descriptor, frames)| Some((inode(pid, descriptor)?, frames)))
        .collect();
    Waiters {
        frames: only(&by),
        by,
    }
}

/// The frames that all have.
fn only(by: &[(u64, Vec<Interpreted>)]) -> Vec<Interpreted> {
    let place = |frames: &[Interpreted]| frames.first().map(|first| first.frame.clone());
    match by {
        [(_, first), rest @ ..] if rest.iter().all(|(_, other)| place(other) == place(first)) => {
            first.clone()
        }
        _ => Vec::new(),
    }
}
