//! Who began whom, and what passed while a parent waited.
//!
//! In: threads as a log shows them: their calls, clones, ends. Out: for each call, how much of it lies on the way of the
//! log's first thread. While a thread waits for its children, each of them remembers its own calls since the wait began;
//! the one that ends the wait has them counted, the others' are forgotten. So memory goes with the live processes and not
//! with the log.

use super::descriptors::Descriptors;
use super::tally::{Entry, NO_NAME, Name, Tally};
use holdup_evidence::Ns;
use std::collections::HashMap;

/// Threads that are remembered at a time. A machine runs at most some ten thousands.
const THREADS: usize = 50_000;
/// Threads up to which those that are under a waiting one are looked up.
const LOOKED_THROUGH: usize = 2_000;
/// How many threads are passed in such look-ups in all of a log: some tenths of a second. A log of a real program with a thousand
/// threads needs some millions; a hostile one could ask for the square of its lines.
const PASSED_MAX: usize = 100_000_000;
/// Generations of processes that are followed.
const GENERATIONS: usize = 64;

/// Where a thread stands in the list.
pub(super) type Place = u32;

/// A thread.
#[derive(Debug)]
pub(super) struct Thread {
    /// Its id; 0 where not known.
    pub(super) tid: u32,
    /// The place of its process's first thread; its own where it is that.
    pub(super) process: Place,
    pub(super) parent: Option<Place>,
    pub(super) program: Name,
    /// A call that has begun and not come back.
    pub(super) open: Option<Open>,
    /// A call whose length the next line tells.
    pub(super) deferred: Option<(Entry, super::tally::Single, i64, holdup_evidence::observed::Quote)>,
    /// Of the first thread of a process: its descriptors.
    pub(super) descriptors: Descriptors,
    /// Whether it is in a wait for its children.
    waits: bool,
    /// Since when its calls count for its parent's wait.
    floor: i64,
    /// Its calls since then: own and handed on.
    meanwhile: HashMap<Entry, (Ns, Ns)>,
    ended: bool,
}

/// A call that has begun.
#[derive(Debug, Clone)]
pub(super) struct Open {
    pub(super) name: Box<[u8]>,
    pub(super) args: Vec<u8>,
    pub(super) began: Option<i64>,
    pub(super) quote: holdup_evidence::observed::Quote,
}

/// All threads of a log.
#[derive(Debug, Default)]
pub(super) struct Threads {
    all: Vec<Thread>,
    by_tid: HashMap<u32, Place>,
    live: Vec<Place>,
    /// Told by strace itself before their parent's clone came back.
    announced: Vec<u32>,
    /// Who wrote into a pipe last, by its name.
    writers: HashMap<Name, u32>,
    /// Who ended last.
    last_ended: Option<u32>,
    /// Whether there were too many to remember, or to look through.
    too_many: bool,
    /// How many were passed in look-ups.
    passed: usize,
}

impl Threads {
    pub(super) fn get(&mut self, place: Place) -> Option<&mut Thread> {
        self.all.get_mut(place as usize)
    }

    /// Whether there is a thread of this id.
    pub(super) fn knows(&self, tid: u32) -> bool {
        self.by_tid.contains_key(&tid)
    }

    pub(super) fn at(&self, place: Place) -> Option<&Thread> {
        self.all.get(place as usize)
    }

    /// strace says that it follows a new one: it has a parent, which is in a call that makes one.
    pub(super) fn announce(&mut self, tid: u32) {
        if self.announced.len() < THREADS {
            self.announced.push(tid);
        }
    }

    /// The thread of a line. A line without an id is of the only one that lives.
    pub(super) fn of(&mut self, tid: Option<u32>) -> Option<Place> {
        let Some(tid) = tid else {
            return match (self.live.as_slice(), self.all.is_empty()) {
                ([.., only], _) if self.live.len() == 1 => Some(*only),
                ([], true) => self.begin(0, None, false),
                ([first, ..], _) => Some(*first),
                ([], false) => Some(0),
            };
        };
        if let Some(place) = self.by_tid.get(&tid) {
            return Some(*place);
        }
        let announced = self.announced.iter().position(|known| *known == tid);
        if let Some(at) = announced {
            self.announced.swap_remove(at);
        } else if let Some(first) = self.all.first_mut()
            && first.tid == 0
        {
            // The first lines had no id, as long as there was one thread.
            first.tid = tid;
            self.by_tid.insert(tid, 0);
            return Some(0);
        }
        let (parent, is_thread) = match self.making() {
            Some((parent, is_thread)) => (Some(parent), is_thread),
            None => (None, false),
        };
        self.begin(tid, parent, is_thread)
    }

    /// The only thread that is in a call that makes another.
    fn making(&mut self) -> Option<(Place, bool)> {
        if !self.may_pass(self.live.len()) {
            return None;
        }
        let mut makers = self.live.iter().filter_map(|place| {
            let open = self.all.get(*place as usize)?.open.as_ref()?;
            makes(&open.name).then(|| (*place, makes_thread(&open.args)))
        });
        let first = makers.next()?;
        makers.next().is_none().then_some(first)
    }

    /// Whether so many may be looked through once more; then they count as passed.
    fn may_pass(&mut self, threads: usize) -> bool {
        self.passed = self.passed.saturating_add(threads);
        let may = self.passed <= PASSED_MAX;
        self.too_many |= !may;
        may
    }

    /// A new thread.
    pub(super) fn begin(&mut self, tid: u32, parent: Option<Place>, is_thread: bool) -> Option<Place> {
        if self.all.len() >= THREADS {
            self.too_many = true;
            return None;
        }
        let place = Place::try_from(self.all.len()).ok()?;
        let of_parent = parent.and_then(|parent| self.at(parent));
        let program = of_parent.map_or(NO_NAME, |parent| parent.program);
        let process = match of_parent {
            Some(parent) if is_thread => parent.process,
            _ => place,
        };
        let descriptors = match of_parent.map(|parent| parent.process) {
            Some(from) if !is_thread => self.at(from).map(|from| from.descriptors.clone()),
            _ => None,
        };
        self.all.push(Thread {
            tid,
            process,
            parent,
            program,
            open: None,
            deferred: None,
            descriptors: descriptors.unwrap_or_default(),
            waits: false,
            floor: i64::MIN,
            meanwhile: HashMap::new(),
            ended: false,
        });
        self.by_tid.insert(tid, place);
        self.live.push(place);
        Some(place)
    }

    /// A clone has come back with a child's id.
    pub(super) fn cloned(&mut self, parent: Place, tid: u32, is_thread: bool) {
        let known = self.by_tid.get(&tid).copied();
        let known = known.filter(|place| self.at(*place).is_some_and(|thread| !thread.ended));
        match known {
            // It ran before its parent did; who its parent is was a guess.
            Some(place) if place != parent => {
                let of_parent = self.at(parent).map(|parent| (parent.program, parent.process));
                if let (Some(thread), Some((program, process))) = (self.get(place), of_parent) {
                    if thread.parent.is_none() && thread.program == NO_NAME {
                        thread.program = program;
                    }
                    thread.parent = Some(parent);
                    thread.process = if is_thread { process } else { place };
                }
            }
            Some(_) => {}
            None => {
                self.begin(tid, Some(parent), is_thread);
            }
        }
    }

    /// It is over. What it did is kept for its parent's wait.
    pub(super) fn ended(&mut self, place: Place) {
        self.live.retain(|live| *live != place);
        if let Some(thread) = self.get(place) {
            thread.ended = true;
            let tid = thread.tid;
            thread.descriptors = Descriptors::default();
            thread.meanwhile.shrink_to_fit();
            self.last_ended = Some(tid);
        }
    }

    /// A thread has begun to wait for its children: what they do from now on counts.
    pub(super) fn waits(&mut self, place: Place, now: Option<i64>) {
        if let Some(thread) = self.get(place) {
            thread.waits = true;
        }
        let Some(now) = now else { return };
        if self.live.len() > LOOKED_THROUGH || !self.may_pass(self.live.len() * GENERATIONS) {
            return;
        }
        let below: Vec<Place> = self
            .live
            .iter()
            .copied()
            .filter(|live| self.is_below(*live, place))
            .collect();
        for live in below {
            if let Some(thread) = self.get(live) {
                thread.meanwhile.clear();
                thread.floor = now;
            }
        }
    }

    /// Whether a thread descends from another.
    fn is_below(&self, place: Place, of: Place) -> bool {
        let mut above = self.at(place).and_then(|thread| thread.parent);
        for _ in 0..GENERATIONS {
            match above {
                Some(parent) if parent == of => return true,
                Some(parent) => above = self.at(parent).and_then(|thread| thread.parent),
                None => return false,
            }
        }
        false
    }

    /// A call is over that was the thread's own.
    pub(super) fn spent(
        &mut self,
        tally: &mut Tally,
        place: Place,
        entry: Entry,
        ns: Ns,
        ended: Option<i64>,
    ) {
        if place == 0 {
            tally.on_the_way(entry, ns, 0);
            return;
        }
        if let Some(thread) = self.get(place) {
            let counts = thread.counts(ns, ended);
            if counts > 0 {
                let sum = thread.meanwhile.entry(entry).or_default();
                sum.0 = sum.0.saturating_add(counts);
            }
        }
    }

    /// A wait for a child is over: the way went through that child.
    pub(super) fn waited(
        &mut self,
        tally: &mut Tally,
        place: Place,
        entry: Entry,
        ns: Ns,
        ended: Option<i64>,
        child: u32,
    ) {
        if let Some(thread) = self.get(place) {
            thread.waits = false;
        }
        tally.child(entry, child, ns);
        let known = self.by_tid.get(&child).copied();
        let meanwhile = known
            .filter(|child| *child != place)
            .and_then(|child| self.get(child))
            .map(|child| std::mem::take(&mut child.meanwhile));
        let Some(meanwhile) = meanwhile else {
            return self.spent(tally, place, entry, ns, ended);
        };
        // Without times, what the child did before the wait is in it too: no more than the wait is counted.
        let all: u128 = meanwhile.values().map(|(own, _)| u128::from(*own)).sum();
        let part = |of: Ns| match all > u128::from(ns) {
            true => Ns::try_from(u128::from(of) * u128::from(ns) / all.max(1)).unwrap_or(0),
            false => of,
        };
        if place == 0 {
            tally.on_the_way(entry, 0, ns);
            for (entry, (own, handed_on)) in meanwhile {
                tally.on_the_way(entry, part(own), part(handed_on));
            }
            return;
        }
        if let Some(thread) = self.get(place) {
            let counts = thread.counts(ns, ended);
            let sum = thread.meanwhile.entry(entry).or_default();
            sum.1 = sum.1.saturating_add(counts);
            for (entry, (own, handed_on)) in meanwhile {
                let sum = thread.meanwhile.entry(entry).or_default();
                sum.0 = sum.0.saturating_add(part(own));
                sum.1 = sum.1.saturating_add(part(handed_on));
            }
        }
    }

    /// A thread has written into a pipe.
    pub(super) fn wrote(&mut self, place: Place, pipe: Name) {
        if let Some(tid) = self.at(place).map(|thread| thread.tid)
            && (self.writers.len() < THREADS || self.writers.contains_key(&pipe))
        {
            self.writers.insert(pipe, tid);
        }
    }

    /// Who ended a thread's read from a pipe: the one that wrote into it last, or, at its end, the one that ended last; of
    /// those that it began itself.
    pub(super) fn wrote_for(&self, place: Place, pipe: Name, at_end: bool) -> Option<u32> {
        let tid = if at_end {
            self.last_ended?
        } else {
            *self.writers.get(&pipe)?
        };
        let writer = *self.by_tid.get(&tid)?;
        self.is_below(writer, place).then_some(tid)
    }

    /// Whether it is known of all but the first who began them.
    pub(super) fn followed(&self) -> bool {
        let mut others = self.all.iter().skip(1);
        !self.too_many && others.all(|thread| thread.parent.is_some())
    }

    /// Those that live.
    pub(super) fn live(&self) -> &[Place] {
        &self.live
    }
}

impl Thread {
    /// How much of a call lies in the time since the parent's wait began.
    fn counts(&self, ns: Ns, ended: Option<i64>) -> Ns {
        match ended {
            Some(ended) => ns.min(u64::try_from(ended.saturating_sub(self.floor)).unwrap_or(0)),
            None => ns,
        }
    }
}

/// Whether a call makes a process or thread.
pub(super) fn makes(call: &[u8]) -> bool {
    matches!(call, b"clone" | b"clone3" | b"fork" | b"vfork")
}

/// Whether it makes a thread of the same process.
pub(super) fn makes_thread(args: &[u8]) -> bool {
    memchr::memmem::find(args, b"CLONE_THREAD").is_some()
}

/// Whether a call waits for a child to end.
pub(super) fn waits_for_child(call: &[u8]) -> bool {
    matches!(call, b"wait4" | b"waitid" | b"waitpid")
}
