//! Which function of the program waits for what a thread of Node.js waits for, where no JavaScript is on its stack.
//!
//! Threads of libuv's pool make calls for files and names, and the thread of an event loop waits for all descriptors at once. Node.js keeps
//! an object of JavaScript for each request and each open handle, and libuv refers to it. In: where such a thread's stack is, and the
//! descriptor of its epoll. Out: who waits for the request of a thread of the pool, and for each descriptor of a loop. A structure of
//! libuv is believed only if it and its loop refer to each other. Their layouts are those of libuv 1.x on 64 bits.

use super::constants::SYMBOLS;
use super::objects::Object;
use super::{Engine, reached};
use crate::interpreted::{Interpreted, Unread};
use crate::memory::{Memory, Source};
use holdup_evidence::Frame;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Words of a stack that are looked at: a look-up of a name takes some kilobytes.
const STACK_WORDS: u64 = 8192;

/// Descriptors of a loop that are looked at, and those of them whose functions are looked for.
const DESCRIPTORS_MAX: u64 = 4096;
const HANDLES_MAX: usize = 32;

/// Loops of a process that are kept: each of its workers has one.
const LOOPS_MAX: usize = 64;

/// Largest number of a descriptor that is believed, and of a loop's list of them.
const DESCRIPTOR_MAX: u32 = 1 << 20;

/// Offsets in a piece of work for the pool: its loop, and the link by which it was queued.
const WORK_LOOP: u64 = 16;
const WORK_LINK: u64 = 24;

/// Offsets in all requests: what Node.js has of it, and the kind.
const DATA: u64 = 0;
const KIND: u64 = 8;

/// Requests that the pool works on: how far their work is behind the beginning, their kind, and where they have their loop.
const REQUESTS: [(u64, u32, u64); 2] = [
    // For a file.
    (336, 6, 72),
    // For the addresses of a name.
    (72, 8, 64),
];

/// The same for work that Node.js gives to the pool: cryptography, compression. The object is some way before.
const OWN_WORK: (u64, u32, u64) = (88, 7, 64);
const OWN_WORK_BEHIND: std::ops::Range<u64> = 16..256;

/// Offsets in a loop: a list of its handles, its epoll, and its watchers with their number.
const LOOP_HANDLES: u64 = 16;
const LOOP_EPOLL: u64 = 64;
const LOOP_WATCHERS: u64 = 104;
const LOOP_WATCHERS_COUNT: u64 = 112;

/// Offsets in a watcher: for which events, and its descriptor.
const WATCHER_EVENTS: u64 = 40;
const WATCHER_DESCRIPTOR: u64 = 48;

/// Offsets in a handle: its loop and its kind. Kinds with a watcher: pipes, TCP, terminals, UDP; and how far that is behind the beginning.
const HANDLE_LOOP: u64 = 8;
const HANDLE_KIND: u64 = 16;
const HANDLES: [(u32, u64); 4] = [(7, 136), (12, 136), (14, 136), (15, 128)];

/// In what Node.js has of a request or a handle: a place that refers to the object of JavaScript.
const OBJECT: u64 = 8;

/// Numbers of symbols that are kept: one array has no more than that many.
const HALF: usize = 32;

/// Where an engine is: the address of its first symbol, and how far from it the others are; 0 for those that its file has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The address of the first symbol.
    pub first: u64,
    symbols: [[i32; HALF]; 2],
}

impl Place {
    /// By the addresses of [`SYMBOLS`], in their order.
    #[must_use]
    pub fn of(addresses: &[Option<u64>]) -> Option<Place> {
        let first = addresses.first().copied().flatten()?;
        let mut symbols = [[0; HALF]; 2];
        for (at, address) in addresses.iter().enumerate().take(SYMBOLS.len()) {
            let Some(address) = *address else { continue };
            symbols[at / HALF][at % HALF] = i32::try_from(address.wrapping_sub(first).cast_signed()).ok()?;
        }
        Some(Place { first, symbols })
    }

    /// The addresses.
    #[must_use]
    pub fn addresses(&self) -> Vec<u64> {
        let offsets = self.symbols.iter().flatten().take(SYMBOLS.len()).enumerate();
        let there = |(at, offset): (usize, &i32)| match (at, *offset) {
            (0, _) => self.first,
            (_, 0) => 0,
            (_, offset) => self.first.wrapping_add_signed(offset.into()),
        };
        offsets.map(there).collect()
    }
}

/// A thread that sleeps.
#[derive(Debug, Clone, Copy)]
pub struct Asleep {
    /// Its stack pointer.
    pub sp: u64,
    /// The descriptor of the epoll that it waits in, if it does.
    pub epoll: Option<u32>,
    /// Whether a file is the program's own.
    pub own: fn(&str) -> bool,
}

impl<S: Source> Engine<S> {
    /// Who waits for the request that a thread of the pool works on, innermost first.
    ///
    /// # Errors
    /// When it works on none.
    pub fn begun(&mut self, asleep: &Asleep) -> Result<Vec<Interpreted>, Unread> {
        self.memory.forget();
        let object = request(&mut self.memory, asleep.sp).and_then(|data| self.object(data));
        let object = object.ok_or(Unread::NoThread)?;
        let frames = reached::begun(&mut self.objects(), object, asleep.own);
        Ok(as_interpreted(frames))
    }

    /// Who waits for the descriptors of the loop that a thread runs, by descriptor.
    ///
    /// # Errors
    /// When it runs none.
    pub fn awaited(&mut self, asleep: &Asleep) -> Result<Vec<(u32, Vec<Interpreted>)>, Unread> {
        self.memory.forget();
        let epoll = asleep.epoll.ok_or(Unread::NoThread)?;
        let at = self.loop_of(asleep.sp, epoll).ok_or(Unread::NoThread)?;
        let mut awaited = Vec::new();
        for (descriptor, data) in handles(&mut self.memory, at).ok_or(Unread::Torn)? {
            let Some(object) = self.object(data) else { continue };
            let frames = reached::who(&mut self.objects(), object, asleep.own);
            if !frames.is_empty() {
                awaited.push((descriptor, as_interpreted(frames)));
            }
        }
        Ok(awaited)
    }

    /// The loop that waits with an epoll: the one that was found before, while it does.
    fn loop_of(&mut self, sp: u64, epoll: u32) -> Option<u64> {
        let known = self.loops.get(&epoll).copied();
        if let Some(at) = known.filter(|at| waits_with(&mut self.memory, *at, epoll)) {
            return Some(at);
        }
        let found = a_loop(&mut self.memory, sp, epoll)?;
        if self.loops.len() >= LOOPS_MAX {
            self.loops.clear();
        }
        self.loops.insert(epoll, found);
        Some(found)
    }

    /// The object of JavaScript of what Node.js has of a request.
    fn object(&mut self, data: u64) -> Option<Object> {
        let place = self.memory.pointer(data.checked_add(OBJECT)?)?;
        let object = Object::of(self.memory.word(place)?)?;
        let least = self.constants.links?.object;
        let kind = self.objects().kind(object)?;
        (kind >= least).then_some(object)
    }
}

fn as_interpreted(frames: Vec<Arc<Frame>>) -> Vec<Interpreted> {
    let frames = frames.into_iter();
    frames.map(|frame| Interpreted { frame, entry: false }).collect()
}

/// What Node.js has of the request on which a thread of the pool works: the outermost on its stack, as the pool's own function has it.
fn request<S: Source>(memory: &mut Memory<S>, sp: u64) -> Option<u64> {
    let words = stack(memory, sp);
    // What a loop's own thread has given to the pool may be left on its stack.
    if words.iter().any(|word| is_loop(memory, *word) == Some(true)) {
        return None;
    }
    let mut found = None;
    for word in words {
        for work in [Some(word), word.checked_sub(WORK_LINK)].into_iter().flatten() {
            if let Some(data) = request_of(memory, work) {
                found = Some(data);
            }
        }
    }
    found
}

/// What Node.js has of the request that this work is for.
fn request_of<S: Source>(memory: &mut Memory<S>, work: u64) -> Option<u64> {
    let of = memory.pointer(work.checked_add(WORK_LOOP)?)?;
    if of % 8 != 0 {
        return None;
    }
    let mut is = |(before, kind, own_loop): (u64, u32, u64)| {
        let request = work.checked_sub(before)?;
        let same = memory.int(request.checked_add(KIND)?)? == kind
            && memory.word(request.checked_add(own_loop)?)? == of
            && is_loop(memory, of)?;
        same.then_some(request)
    };
    if let Some(request) = REQUESTS.into_iter().find_map(&mut is) {
        return memory.pointer(request.checked_add(DATA)?);
    }
    let request = is(OWN_WORK)?;
    let places = OWN_WORK_BEHIND.step_by(8);
    places
        .filter_map(|before| request.checked_sub(before))
        .find(|data| {
            let place = memory.word(data.saturating_add(OBJECT)).unwrap_or_default();
            place != 0
                && place.is_multiple_of(8)
                && memory.word(place).is_some_and(|word| Object::of(word).is_some())
        })
}

/// The loop that a thread runs: the outermost on its stack that waits with this epoll.
fn a_loop<S: Source>(memory: &mut Memory<S>, sp: u64, epoll: u32) -> Option<u64> {
    let mut found = None;
    for word in stack(memory, sp) {
        if waits_with(memory, word, epoll) {
            found = Some(word);
        }
    }
    found
}

/// Whether a loop is there that waits with this epoll.
fn waits_with<S: Source>(memory: &mut Memory<S>, at: u64, epoll: u32) -> bool {
    let its = at.checked_add(LOOP_EPOLL).and_then(|at| memory.int(at));
    its == Some(epoll) && is_loop(memory, at) == Some(true)
}

/// Whether a loop is there: the first of its handles refers back to it.
fn is_loop<S: Source>(memory: &mut Memory<S>, at: u64) -> Option<bool> {
    let list = at.checked_add(LOOP_HANDLES)?;
    let first = memory.pointer(list)?;
    let back = memory.word(first.checked_add(8)?)?;
    let count = memory.int(at.checked_add(LOOP_WATCHERS_COUNT)?)?;
    Some(back == list && count <= DESCRIPTOR_MAX)
}

/// Descriptors of a loop, and what Node.js has of their handles.
fn handles<S: Source>(memory: &mut Memory<S>, at: u64) -> Option<Vec<(u32, u64)>> {
    let watchers = memory.pointer(at.checked_add(LOOP_WATCHERS)?)?;
    let count = u64::from(memory.int(at.checked_add(LOOP_WATCHERS_COUNT)?)?);
    let mut found = Vec::new();
    for number in 0..count.min(DESCRIPTORS_MAX) {
        if found.len() >= HANDLES_MAX {
            break;
        }
        let watcher = memory.word(watchers.checked_add(number * 8)?)?;
        if watcher != 0
            && let Some(data) = handle(memory, at, watcher, number)
        {
            found.push((u32::try_from(number).ok()?, data));
        }
    }
    Some(found)
}

/// What Node.js has of the handle with this watcher.
fn handle<S: Source>(memory: &mut Memory<S>, of: u64, watcher: u64, number: u64) -> Option<u64> {
    let descriptor = memory.int(watcher.checked_add(WATCHER_DESCRIPTOR)?)?;
    let watched = memory.int(watcher.checked_add(WATCHER_EVENTS)?)? != 0;
    if u64::from(descriptor) != number || !watched {
        return None;
    }
    let mut kinds = HANDLES.into_iter();
    let handle = kinds.find_map(|(kind, behind)| {
        let handle = watcher.checked_sub(behind)?;
        let is = memory.word(handle.checked_add(HANDLE_LOOP)?)? == of
            && memory.int(handle.checked_add(HANDLE_KIND)?)? == kind;
        is.then_some(handle)
    })?;
    memory.pointer(handle.checked_add(DATA)?)
}

/// The words of a stack that may be addresses of structures.
fn stack<S: Source>(memory: &mut Memory<S>, sp: u64) -> Vec<u64> {
    let words = (0..STACK_WORDS).map_while(|at| memory.word(sp.checked_add(at * 8)?));
    words.filter(|word| word % 8 == 0 && *word >= 1 << 16).collect()
}
