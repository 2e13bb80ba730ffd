//! Calls added up: one entry for each thread, call and object, however long the log is.
//!
//! In: single calls. Out: [`CallTime`]s. Bounded: past a number of entries, further threads of one program share theirs,
//! and past a number of objects further ones are not distinguished.

use holdup_evidence::Ns;
use holdup_evidence::observed::{CallTime, Quote, StackId, When};
use std::collections::HashMap;

/// Entries; one is about 300 bytes, and every rule looks at each.
const ENTRIES: usize = 10_000;
/// Names of calls, objects and programs.
const NAMES: usize = 60_000;
/// Bytes of a name that are kept.
const NAME_BYTES: usize = 200;
/// Single lengths of an entry that its median is told from.
const LENGTHS: usize = 64;
/// Children of an entry that are named.
const CHILDREN: usize = 8;
/// The thread of entries that several share.
const SHARED: u32 = u32::MAX;

/// A name that was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Name(u32);

/// No name, or one too many.
pub(super) const NO_NAME: Name = Name(0);

/// An entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Entry(u32);

/// What calls are distinguished by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// Place of the thread.
    pub(super) thread: u32,
    /// Name of the program it ran then.
    pub(super) program: Name,
    pub(super) call: Name,
    pub(super) object: Name,
    pub(super) way: Way,
}

/// Calls of one name that wait for different things.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Way {
    /// Its time ran out.
    pub(super) timed_out: bool,
    /// Of a poll: the object became ready.
    pub(super) ready: bool,
    /// Of a poll: room to write is awaited.
    pub(super) writing: bool,
    /// Operation of fcntl or futex, number of descriptors of a poll, up to 255.
    pub(super) operation: u8,
    pub(super) durable: bool,
    pub(super) direct: bool,
}

/// One call.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Single {
    pub(super) args: Option<[u64; 4]>,
    pub(super) returned: Option<i64>,
    pub(super) bytes: Option<u64>,
}

/// All calls of a log.
#[derive(Debug)]
pub(super) struct Tally {
    names: Vec<Box<str>>,
    by_name: HashMap<Box<str>, u32>,
    by_key: HashMap<Key, u32>,
    entries: Vec<(Key, CallTime, Lengths)>,
}

/// Every so manieth length of an entry.
#[derive(Debug, Default)]
struct Lengths {
    kept: Vec<Ns>,
    doubled: u32,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally {
            names: vec![Box::default()],
            by_name: HashMap::from([(Box::default(), 0)]),
            by_key: HashMap::new(),
            entries: Vec::new(),
        }
    }
}

impl Tally {
    /// A name's number.
    pub(super) fn name(&mut self, name: &str) -> Name {
        let mut end = name.len().min(NAME_BYTES);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let name = name.get(..end).unwrap_or_default();
        if let Some(number) = self.by_name.get(name) {
            return Name(*number);
        }
        if self.names.len() >= NAMES {
            return NO_NAME;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(0);
        self.names.push(name.into());
        self.by_name.insert(name.into(), number);
        Name(number)
    }

    /// The name of a number.
    pub(super) fn text(&self, name: Name) -> &str {
        self.names.get(name.0 as usize).map_or("", |name| name)
    }

    /// The entry of a key.
    pub(super) fn entry(&mut self, mut key: Key) -> Entry {
        if let Some(at) = self.by_key.get(&key) {
            return Entry(*at);
        }
        if self.entries.len() >= ENTRIES {
            key.thread = SHARED;
            key.object = NO_NAME;
            if let Some(at) = self.by_key.get(&key) {
                return Entry(*at);
            }
            // Even these end: 1,000 calls of 1,000 programs.
            if self.entries.len() >= 2 * ENTRIES {
                return Entry(u32::MAX);
            }
        }
        let at = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.by_key.insert(key, at);
        self.entries.push((key, CallTime::default(), Lengths::default()));
        Entry(at)
    }

    /// Adds a call to its entry; whether it is the longest there.
    pub(super) fn add(
        &mut self,
        entry: Entry,
        single: &Single,
        ns: Ns,
        began: Option<When>,
        quote: &Quote,
    ) -> bool {
        let Some((key, total, lengths)) = self.entries.get_mut(entry.0 as usize) else {
            return false;
        };
        total.count += 1;
        total.ns = total.ns.saturating_add(ns);
        total.errors += u64::from(single.returned.is_some_and(|value| value < 0));
        total.timed_out += u64::from(key.way.timed_out);
        lengths.add(total.count, ns);
        let longest = ns > total.max || total.count == 1;
        if longest {
            total.max = ns;
            total.max_began = began;
            total.args = single.args;
            total.returned = single.returned;
            total.bytes = single.bytes;
            total.quote = quote.clone();
        }
        longest
    }

    /// Marks that one had not come back.
    pub(super) fn open(&mut self, entry: Entry) {
        if let Some((_, total, _)) = self.entries.get_mut(entry.0 as usize) {
            total.open = true;
        }
    }

    /// Who asked for the longest.
    pub(super) fn stack(&mut self, entry: Entry, stack: StackId) {
        if let Some((_, total, _)) = self.entries.get_mut(entry.0 as usize) {
            total.stack = Some(stack);
        }
    }

    /// Adds time on the first thread's way: of the entry itself, and handed on by it.
    pub(super) fn on_the_way(&mut self, entry: Entry, own: Ns, handed_on: Ns) {
        if let Some((_, total, _)) = self.entries.get_mut(entry.0 as usize) {
            total.main = total.main.saturating_add(own);
            total.handed_on = total.handed_on.saturating_add(handed_on);
        }
    }

    /// Which child a wait was for.
    pub(super) fn child(&mut self, entry: Entry, tid: u32, ns: Ns) {
        let Some((_, total, _)) = self.entries.get_mut(entry.0 as usize) else {
            return;
        };
        match total.children.iter_mut().find(|(known, _)| *known == tid) {
            Some((_, known)) => *known = known.saturating_add(ns),
            None => total.children.push((tid, ns)),
        }
        total.children.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        total.children.truncate(CHILDREN);
    }

    /// All entries, longest first. `who` gives a thread's and its process's id.
    pub(super) fn finish(self, who: impl Fn(u32) -> (u32, u32)) -> Vec<CallTime> {
        let names = self.names;
        let text = |name: Name| names.get(name.0 as usize).map_or("", |name| name).to_owned();
        let mut all: Vec<CallTime> = self
            .entries
            .into_iter()
            .map(|(key, total, lengths)| {
                let (tid, pid) = if key.thread == SHARED {
                    (0, 0)
                } else {
                    who(key.thread)
                };
                CallTime {
                    tid,
                    pid,
                    thread: text(key.program),
                    call: text(key.call),
                    object: Some(text(key.object)).filter(|object| !object.is_empty()),
                    median: lengths.median(),
                    writing: key.way.writing,
                    ready: key.way.ready,
                    durable: key.way.durable,
                    direct: key.way.direct,
                    ..total
                }
            })
            .filter(|total| total.count > 0)
            .collect();
        all.sort_by_key(|call| std::cmp::Reverse(call.ns));
        all
    }
}

impl Lengths {
    fn add(&mut self, count: u64, ns: Ns) {
        if count.trailing_zeros() < self.doubled {
            return;
        }
        if self.kept.len() >= LENGTHS {
            let mut at = 0usize;
            // Counts began at 1: what stays are those of even place.
            self.kept.retain(|_| {
                at += 1;
                at.is_multiple_of(2)
            });
            self.doubled += 1;
            if count.trailing_zeros() < self.doubled {
                return;
            }
        }
        self.kept.push(ns);
    }

    fn median(mut self) -> Option<Ns> {
        self.kept.sort_unstable();
        self.kept.get(self.kept.len() / 2).copied()
    }
}
