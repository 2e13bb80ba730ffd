//! One machine: what it says of itself, and what was learnt of it.

use crate::code::Code;
use crate::flags::Flags;
use crate::frames::{Stack, Walk, Walker};
use crate::itself::Itself;
use crate::layout::Layout;
use crate::memory::{Memory, Source};
use crate::methods::Methods;
use crate::monitors::{self, Found};
use crate::oops::Oops;
use crate::pools::{self, Pool};
use crate::safepoints::{Operations, Safepoints};
use crate::structures::Structures as Tables;
use crate::threads::{Fields, Names};
use crate::virtuals::{self, Virtuals};
use holdup_evidence::Ns;
use holdup_symbols::{Registers, StackBytes};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A process's machine.
#[derive(Debug)]
pub struct Machine<S> {
    memory: Memory<S>,
    /// Addresses of [`crate::structures::SYMBOLS`].
    symbols: Vec<u64>,
    known: Option<Known>,
    tries: Tries,
    code: Code,
    methods: Methods,
    names: Names,
    /// Where it counts its operations; `None` where that was not looked for, or its library does not tell.
    safepoints: Option<Safepoints>,
    /// Where its virtual threads are, once it has had any.
    virtuals: Option<virtuals::Fields>,
}

#[derive(Debug)]
struct Known {
    tables: Tables,
    layout: Layout,
    /// What is in the heap, once the machine has its first classes.
    heap: Option<Heap>,
    /// Questions that came before that.
    asked: u32,
}

/// Whether a machine's structures can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Structures {
    /// It has not been tried often enough to tell: a machine that starts has not all of them yet.
    Untold,
    /// They can.
    Read,
    /// They can't, and why.
    Unread(Unread),
}

/// Why a machine's structures can't be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
pub enum Unread {
    /// Its library could not be opened, or is none that holdup understands.
    #[error("its libjvm could not be opened")]
    NoLibrary,
    /// It describes none, as other makers' machines don't.
    #[error("its libjvm does not describe them")]
    NoTables,
    /// It describes others than are known.
    #[error("they are laid out in a way that is not known")]
    OtherLayout,
    /// Nobody lets us.
    #[error("its memory may not be read")]
    NoMemory,
    /// Nothing comes.
    #[error("reading its memory takes too long: its address space is locked, or a page of it does not come")]
    Late,
}

/// After how long structures that could not be read are tried again: a machine that starts has them within some 100 ms, and one that
/// has none after the last of these is said to have none. Then tries get rarer and rarer: each reads some megabyte.
const TRIES: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(20),
    Duration::from_millis(60),
    Duration::from_millis(200),
    Duration::from_secs(1),
];

/// How much longer it takes from one try to the next, beyond those.
const RARER: u32 = 4;

/// When structures are tried.
#[derive(Debug)]
struct Tries {
    since: Instant,
    made: u32,
    next: Duration,
}

impl Tries {
    /// Whether it is time to try; counts as a try if so.
    fn due(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.since);
        if passed < self.next {
            return false;
        }
        self.made = self.made.saturating_add(1);
        let planned = usize::try_from(self.made).ok().and_then(|made| TRIES.get(made));
        self.next = planned.copied().unwrap_or(passed.saturating_mul(RARER));
        true
    }

    /// Whether it was tried often enough.
    fn are_enough(&self) -> bool {
        usize::try_from(self.made).is_ok_and(|made| made >= TRIES.len())
    }
}

/// Where the heap's objects and the threads have what is asked of them.
#[derive(Debug)]
struct Heap {
    oops: Oops,
    threads: Fields,
    monitors: Option<monitors::Fields>,
}

impl<S: Source> Machine<S> {
    /// A machine whose library has these addresses.
    pub fn new(source: S, symbols: Vec<u64>) -> Machine<S> {
        Machine {
            memory: Memory::new(source),
            symbols,
            known: None,
            tries: Tries {
                since: Instant::now(),
                made: 0,
                next: Duration::ZERO,
            },
            code: Code::default(),
            methods: Methods::default(),
            names: Names::default(),
            safepoints: None,
            virtuals: None,
        }
    }

    /// The frames from these registers outwards.
    pub fn walk(
        &mut self,
        from: Registers,
        interrupted: bool,
        bytes: StackBytes<'_>,
        at: Ns,
    ) -> Option<Walk> {
        self.memory.forget();
        self.begin()?;
        let known = self.known.as_ref()?;
        let mut walker = Walker {
            memory: &mut self.memory,
            layout: &known.layout,
            code: &mut self.code,
            methods: &mut self.methods,
        };
        let mut walk = walker.walk(
            from,
            interrupted,
            &Stack {
                bytes,
                at,
                in_heap: false,
            },
        );
        walk.name = walk.thread.and_then(|thread| self.name(thread, at));
        // Another question may be long in coming.
        self.memory.forget();
        Some(walk)
    }

    /// The locks with an owner that threads wait for now, and the threads whose end they wait for.
    pub fn locks(&mut self) -> Found {
        self.memory.forget();
        if self.begin().is_none() {
            return Found::default();
        }
        let Some(known) = self.known.as_mut() else {
            return Found::default();
        };
        known.find_heap(&mut self.memory);
        let look = |heap: &Heap, memory: &mut Memory<S>| {
            let monitors = heap.monitors.as_ref()?;
            Some(monitors.look(memory, &known.layout, &heap.oops, &heap.threads))
        };
        if known.heap.as_ref().is_none_or(|heap| heap.monitors.is_none()) {
            self.tries.due(Instant::now());
        }
        let heap = known.heap.as_ref();
        let found = heap.and_then(|heap| look(heap, &mut self.memory));
        self.memory.forget();
        found.unwrap_or_default()
    }

    /// Its virtual threads; `None` where it has none, or they can't be read. `at`: now.
    pub fn virtuals(&mut self, at: Ns) -> Option<Virtuals> {
        self.memory.forget();
        self.begin()?;
        let known = self.known.as_mut()?;
        known.find_heap(&mut self.memory);
        let heap = known.heap.as_ref()?;
        if self.virtuals.is_none() {
            self.virtuals =
                virtuals::Fields::read(&mut self.memory, &known.tables, &known.layout, &heap.oops);
        }
        let fields = self.virtuals.as_ref()?;
        let mut walker = Walker {
            memory: &mut self.memory,
            layout: &known.layout,
            code: &mut self.code,
            methods: &mut self.methods,
        };
        let found = fields.all(&mut walker, &heap.oops, &heap.threads, at);
        self.memory.forget();
        Some(found)
    }

    /// Its pools of threads; `None` where they can't be read.
    pub fn pools(&mut self) -> Option<Vec<Pool>> {
        self.memory.forget();
        self.begin()?;
        let known = self.known.as_mut()?;
        known.find_heap(&mut self.memory);
        let heap = known.heap.as_ref()?;
        let found = pools::all(&mut self.memory, &known.layout, &heap.oops, &heap.threads);
        self.memory.forget();
        found
    }

    /// What it has stopped its threads for.
    pub fn operations(&mut self) -> Option<Operations> {
        self.memory.forget();
        self.begin()?;
        if self.safepoints.is_none() {
            self.safepoints = Safepoints::read(&mut self.memory, &self.symbols);
        }
        let found = self.safepoints.as_ref()?.operations(&mut self.memory);
        self.memory.forget();
        found
    }

    /// What it is; its flags are as it has set them once it has its first classes.
    pub fn itself(&mut self) -> Option<Itself> {
        self.memory.forget();
        self.begin()?;
        let known = self.known.as_ref()?;
        let flags = Flags::read(&mut self.memory, &known.tables)?;
        let found = Itself::read(&mut self.memory, &known.tables, &flags);
        self.memory.forget();
        Some(found)
    }

    /// Whether its structures can be read, after what was asked so far.
    pub fn structures(&mut self) -> Structures {
        let heap = self.known.as_ref().and_then(|known| known.heap.as_ref());
        if heap.is_some_and(|heap| heap.monitors.is_some()) {
            return Structures::Read;
        }
        if !self.tries.are_enough() {
            return Structures::Untold;
        }
        // The first is the table of fields, without which nothing is known.
        Structures::Unread(match self.symbols.first() {
            None | Some(0) => Unread::NoTables,
            Some(address) if self.memory.word(*address).is_none() => Unread::NoMemory,
            Some(_) => Unread::OtherLayout,
        })
    }

    fn name(&mut self, thread: u64, at: Ns) -> Option<(u32, Arc<str>)> {
        let known = self.known.as_mut()?;
        known.find_heap(&mut self.memory);
        let heap = known.heap.as_ref()?;
        self.names.of(
            &mut self.memory,
            &known.layout,
            &heap.oops,
            &heap.threads,
            thread,
            at,
        )
    }

    /// Reads what the machine says of itself, if that has not succeeded yet. It may not have begun.
    fn begin(&mut self) -> Option<()> {
        if self.known.is_none() {
            if !self.tries.due(Instant::now()) {
                return None;
            }
            let tables = Tables::read(&mut self.memory, &self.symbols)?;
            let layout = Layout::read(&mut self.memory, &tables)?;
            self.known = Some(Known {
                tables,
                layout,
                heap: None,
                asked: 0,
            });
        }
        Some(())
    }
}

impl Known {
    /// Looks for the heap's layout, if that has not been found yet. A machine may not have its classes yet, and old ones do not say
    /// where they are; each try takes a look at some thousand flags, so tries get rarer.
    fn find_heap<S: Source>(&mut self, memory: &mut Memory<S>) {
        if self.heap.is_none() {
            self.asked = self.asked.saturating_add(1);
            if self.asked.is_power_of_two() {
                self.heap = Heap::read(memory, &self.tables, &self.layout);
            }
        }
    }
}

impl Heap {
    fn read<S: Source>(memory: &mut Memory<S>, tables: &Tables, layout: &Layout) -> Option<Heap> {
        let flags = Flags::read(memory, tables)?;
        let oops = Oops::read(memory, tables, &flags, layout)?;
        let threads = Fields::read(memory, tables, layout, &oops)?;
        let monitors = monitors::Fields::read(memory, tables, layout, &oops, &threads);
        Some(Heap {
            oops,
            threads,
            monitors,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{TRIES, Tries};
    use std::time::{Duration, Instant};

    #[test]
    fn tries_get_rarer_and_the_last_of_the_first_tells() {
        let since = Instant::now();
        let mut tries = Tries {
            since,
            made: 0,
            next: Duration::ZERO,
        };
        for at in TRIES {
            assert!(!tries.are_enough());
            assert!(tries.due(since + at));
            assert!(!tries.due(since + at), "once");
        }
        assert!(tries.are_enough());
        assert!(!tries.due(since + Duration::from_secs(3)));
        assert!(tries.due(since + Duration::from_secs(4)));
        assert!(!tries.due(since + Duration::from_secs(15)));
    }
}
