//! A look at what runs already, before it is watched: which code is where, and what sleeping threads' memory says of the
//! calls that they are in.
//!
//! What is read here can block for as long as the process that is looked at is stuck (its address space is locked, it is in
//! the middle of an exec). So threads do it that may be left behind: what has not come in time is not known, is said to
//! be, and holds up nothing.

use holdup_bpf::{LOOKED_WORDS, Looked, POLLED_LOOKED};
use holdup_evidence::FUTEX_AT;
use holdup_proc::maps::{self, Mapping};
use holdup_proc::{Root, memory, tasks};
use std::collections::VecDeque;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Threads that look, side by side: one that is stuck does not keep the others from what is left.
const EYES: usize = 4;

/// Threads of one process whose memory is looked at. Each takes some 20 µs; of a server with ten thousand parked workers
/// the first thousands say what the rest do.
const MOST_THREADS: usize = 4096;

/// Threads of which is told at a time, so that what was seen when the time is over is not lost.
const AT_A_TIME: usize = 64;

/// `select` and `poll` of the kernel's numbers for x86_64.
const POLL: i32 = 7;
const SELECT: i32 = 23;
const FUTEX: i32 = 202;
const PSELECT6: i32 = 270;
const PPOLL: i32 = 271;

/// What was seen of a process.
#[derive(Debug)]
pub(super) struct Seen {
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
    pub(super) seen: Vec<Seen>,
    /// Those of which not even the mappings were: their address space is locked, or there were too many.
    pub(super) late: Vec<u32>,
}

/// What one look came to. The mappings of a process come first and alone: they take a moment, its threads' memory longer.
#[derive(Debug)]
enum Piece {
    Mapped(u32, Vec<Mapping>),
    Looked(u32, Vec<Looked>),
}

impl Sight {
    fn add(&mut self, piece: Piece) {
        match piece {
            Piece::Mapped(pid, mappings) => self.seen.push(Seen {
                pid,
                mappings,
                looked: Vec::new(),
            }),
            Piece::Looked(pid, looked) => {
                if let Some(seen) = self.seen.iter_mut().find(|seen| seen.pid == pid) {
                    seen.looked.extend(looked);
                }
            }
        }
    }
}

/// Looks at these processes for at most so long.
pub(super) fn look(pids: &[u32], limit: Duration) -> Sight {
    let left: Arc<Mutex<VecDeque<u32>>> = Arc::new(Mutex::new(pids.iter().copied().collect()));
    let (sender, receiver) = mpsc::channel();
    for _ in 0..EYES.min(pids.len()) {
        let (left, sender) = (Arc::clone(&left), sender.clone());
        // Without a thread more, fewer look.
        std::thread::Builder::new()
            .name("look".to_owned())
            .spawn(move || look_at_all(&left, &sender))
            .ok();
    }
    drop(sender);
    let until = Instant::now() + limit;
    let mut sight = Sight::default();
    // Until all have looked at everything, or the time is over.
    while let Ok(piece) = receiver.recv_timeout(until.saturating_duration_since(Instant::now())) {
        sight.add(piece);
    }
    // What nobody has begun with is not begun any more.
    if let Ok(mut left) = left.lock() {
        left.clear();
    }
    sight.late = pids
        .iter()
        .copied()
        .filter(|pid| !sight.seen.iter().any(|seen| seen.pid == *pid))
        .collect();
    sight
}

fn look_at_all(left: &Mutex<VecDeque<u32>>, sender: &Sender<Piece>) {
    let root = Root::system();
    while let Some(pid) = left.lock().ok().and_then(|mut left| left.pop_front()) {
        let mappings = maps::executable(&root, pid).unwrap_or_default();
        if sender.send(Piece::Mapped(pid, mappings)).is_err() {
            return;
        }
        let mut threads = tasks::threads(&root, pid);
        threads.truncate(MOST_THREADS);
        for some in threads.chunks(AT_A_TIME) {
            let looked = some.iter().filter_map(|tid| look_at(&root, *tid)).collect();
            if sender.send(Piece::Looked(pid, looked)).is_err() {
                return;
            }
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
