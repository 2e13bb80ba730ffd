//! A look at what runs already, before it is watched: which code is where, and what sleeping threads' memory says of the
//! calls that they are in.
//!
//! What is read here can block for as long as the process that is looked at is stuck (its address space is locked, it is in
//! the middle of an exec). So child processes do it, which can be left behind: what has not come in time is not known, is said to
//! be, and holds up nothing.

use holdup_bpf::{LOOKED_WORDS, Looked, POLLED_LOOKED};
use holdup_detached::Crew;
use holdup_evidence::FUTEX_AT;
use holdup_proc::maps::{self, Mapping};
use holdup_proc::{Root, blocking, memory, tasks};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Readers that look: one is enough unless it is stuck, and each that is costs 50 ms of the time that there is.
const READERS_MAX: usize = 16;

/// Threads of one process whose memory is looked at. Each takes some 20 µs; of a server with ten thousand parked workers
/// the first thousands say what the rest do.
const MAX_THREADS: usize = 4096;

/// Threads of which is reported at a time, so that what was seen when the time is over is not lost.
const AT_A_TIME: usize = 64;

/// `select` and `poll` of the kernel's numbers for x86_64.
const POLL: i32 = 7;
const SELECT: i32 = 23;
const FUTEX: i32 = 202;
const PSELECT6: i32 = 270;
const PPOLL: i32 = 271;

/// What was seen of a process.
#[derive(Debug)]
pub(super) struct ObservedProcess {
    /// Which.
    pub(super) pid: u32,
    /// Its executable mappings; empty where they can't be read.
    pub(super) mappings: Vec<Mapping>,
    /// Of its sleeping threads.
    pub(super) looked: Vec<Looked>,
}

/// What was seen of several.
#[derive(Debug, Default)]
pub(super) struct Sight {
    /// Those that were seen in time.
    pub(super) seen: Vec<ObservedProcess>,
    /// Those of which not even the mappings were: their address space is locked, or there were too many.
    pub(super) late: Vec<u32>,
}

/// What is read at a time. The mappings of a process come first and alone: they take a moment, its threads' memory longer.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Question {
    /// The mappings of a process.
    Map(u32),
    /// Memory of so many threads of a process, from one on.
    Threads { pid: u32, from: usize },
}

#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Mapped(Vec<Mapping>),
    /// And whether there are more.
    Looked(Vec<Looked>, bool),
}

/// Looks at these processes for at most so long.
pub(super) fn look(pids: &[u32], limit: Duration) -> Sight {
    let about = |question: &Question| match question {
        Question::Map(pid) | Question::Threads { pid, .. } => blocking::process_named(*pid),
    };
    let mut crew = Crew::new(blocking::reader(c"holdup-look"), READERS_MAX, about, reader);
    for pid in pids {
        crew.ask(Question::Map(*pid));
    }
    let until = Instant::now() + limit;
    let mut sight = Sight::default();
    // Until all has been looked at, or the time is over.
    while let Some(answered) = crew.answer(until) {
        match answered {
            (Question::Map(pid), Answer::Mapped(mappings)) => {
                sight.seen.push(ObservedProcess {
                    pid,
                    mappings,
                    looked: Vec::new(),
                });
                crew.ask(Question::Threads { pid, from: 0 });
            }
            (Question::Threads { pid, from }, Answer::Looked(looked, more)) => {
                if let Some(seen) = sight.seen.iter_mut().find(|seen| seen.pid == pid) {
                    seen.looked.extend(looked);
                }
                if more {
                    let from = from + AT_A_TIME;
                    crew.ask(Question::Threads { pid, from });
                }
            }
            _ => {}
        }
    }
    sight.late = pids
        .iter()
        .copied()
        .filter(|pid| !sight.seen.iter().any(|seen| seen.pid == *pid))
        .collect();
    sight
}

/// What a reader does. It keeps the list of threads of the process that it is at.
fn reader() -> impl FnMut(Question) -> Answer {
    let root = Root::system();
    let mut threads: (u32, Vec<u32>) = (0, Vec::new());
    move |question| match question {
        Question::Map(pid) => Answer::Mapped(maps::executable(&root, pid).unwrap_or_default()),
        Question::Threads { pid, from } => {
            if threads.0 != pid || from == 0 {
                threads = (pid, tasks::threads(&root, pid));
                threads.1.truncate(MAX_THREADS);
            }
            let some = threads.1.iter().skip(from).take(AT_A_TIME);
            let looked = some.filter_map(|tid| look_at(&root, *tid)).collect();
            Answer::Looked(looked, threads.1.len() > from + AT_A_TIME)
        }
    }
}

/// What a sleeping thread's memory says of its call; `None` where that is no matter of memory.
fn look_at(root: &Root, tid: u32) -> Option<Looked> {
    let call = tasks::call(root, tid)?;
    let [first, second, third, ..] = call.args;
    let mut looked = Looked {
        tid,
        number: call.number,
        address: first,
        ..Looked::default()
    };
    match call.number {
        FUTEX => looked.words = around(tid, first)?,
        POLL | PPOLL => {
            let count = usize::try_from(second).ok()?.min(POLLED_LOOKED);
            let bytes = memory::read(tid, first, count * 8)?;
            let places = bytes.as_chunks::<8>().0.iter().zip(&mut looked.polled);
            for ([a, b, c, d, events @ ..], place) in places {
                let [low, high, ..] = *events;
                *place = Some((
                    i32::from_ne_bytes([*a, *b, *c, *d]),
                    u16::from_ne_bytes([low, high]),
                ));
            }
        }
        SELECT | PSELECT6 => {
            looked.reads = set(tid, first, second);
            looked.writes = set(tid, first, third);
        }
        _ => return None,
    }
    Some(looked)
}

/// The words around a futex; those before it may be in no mapping, and are 0 then.
fn around(tid: u32, futex: u64) -> Option<[u32; LOOKED_WORDS]> {
    let word = size_of::<u32>();
    let before = FUTEX_AT * word;
    let whole = futex
        .checked_sub(before as u64)
        .and_then(|at| memory::read(tid, at, LOOKED_WORDS * word))
        .filter(|bytes| bytes.len() > before);
    let bytes = match whole {
        Some(bytes) => bytes,
        None => {
            let mut bytes = vec![0; before];
            bytes.extend(memory::read(tid, futex, LOOKED_WORDS * word - before)?);
            bytes
        }
    };
    let mut words = [0; LOOKED_WORDS];
    for (place, bytes) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *place = u32::from_ne_bytes(*bytes);
    }
    Some(words)
}

/// The first 64 descriptors of a select's set.
fn set(tid: u32, count: u64, address: u64) -> u64 {
    if address == 0 {
        return 0;
    }
    let bytes = memory::read(tid, address, 8).unwrap_or_default();
    let bits = <[u8; 8]>::try_from(bytes).map_or(0, u64::from_ne_bytes);
    match count {
        0..64 => bits & ((1 << count) - 1),
        _ => bits,
    }
}

#[cfg(test)]
mod tests {
    use super::{around, look, set};
    use holdup_evidence::FUTEX_AT;
    use std::time::Duration;

    #[test]
    fn a_process_that_sleeps_is_seen_and_one_that_is_gone_is_seen_as_nothing() {
        let mut cat = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let gone = u32::MAX - 1;
        let sight = look(&[cat.id(), gone], Duration::from_secs(60));
        assert!(sight.late.is_empty(), "{sight:?}");
        let seen = |pid| sight.seen.iter().find(|seen| seen.pid == pid).unwrap();
        assert!(!seen(cat.id()).mappings.is_empty());
        assert!(seen(gone).mappings.is_empty() && seen(gone).looked.is_empty());
        drop(cat.stdin.take());
        cat.wait().unwrap();
    }

    #[test]
    fn memory_around_a_futex_and_of_a_set_is_this_programs() {
        let words: Vec<u32> = (1..=16).collect();
        let at = |index: usize| &raw const words[index] as u64;
        let own = std::process::id();
        let around = around(own, at(FUTEX_AT)).unwrap();
        assert_eq!(around[..], words[..around.len()]);
        assert_eq!(set(own, 64, at(0)), 2 << 32 | 1);
        assert_eq!(set(own, 32, at(0)), 1);
        assert_eq!(set(own, 64, 0), 0);
    }
}
