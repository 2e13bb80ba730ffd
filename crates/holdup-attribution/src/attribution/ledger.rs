//! One thread's time, or that of several folded together: its sites.

use super::keys::Keys;
use super::numbers::NumberMap;
use super::pieces::Pieces;
use super::queueing::Queueing;
use super::site::Site;
use super::task_table::{Identity, NameId};
use super::thread::Threads;
use super::what::{WhatId, Whats};
use super::windows::Axis;
use holdup_evidence::{AskerSample, INTERRUPTS, Ns, Role, Seq, ThreadId};
use holdup_model::attributed::Tally;
use std::collections::VecDeque;

/// Sites of one thread distinguished by name; a program that reads a hundred thousand files is one reader.
const MAX_SITES: usize = 256;

/// The same for an entry that stands for many threads.
const MAX_FOLDED_SITES: usize = 64;

/// Names kept of those who ran instead.
const MAX_RAN_INSTEAD: usize = 16;

/// Waits and samples remembered for late stacks, over all threads: 24 bytes each.
const REMEMBERED: usize = 131_072;

/// The same of one thread: at most, and even when there are very many.
const MAX_REMEMBERED: usize = 4096;
const MIN_REMEMBERED: usize = 32;

/// How many waits and samples of each thread to remember.
pub(super) fn remembered(threads: &Threads) -> usize {
    (REMEMBERED / threads.len().max(1)).clamp(MIN_REMEMBERED, MAX_REMEMBERED)
}

/// What all ledgers draw on.
#[derive(Debug, Clone)]
pub(super) struct Book {
    /// The dictionary.
    pub(super) whats: Whats,
    /// Path keys.
    pub(super) keys: Keys,
    /// Windows of the observed time.
    pub(super) axis: Axis,
    /// The longest single pieces.
    pub(super) pieces: Pieces,
}

/// Whose time it is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Owner {
    /// One thread.
    Thread(Identity),
    /// The smallest threads of all processes of this name; the process's id if it was a single one, else 0.
    Folded {
        /// The processes' name.
        process: NameId,
        /// Their id.
        pid: u32,
    },
}

/// Which wait or sample a site had lately, so that a stack that comes later finds its way.
#[derive(Debug, Clone, Copy)]
struct Recent {
    seq: Seq,
    site: u32,
    start: Ns,
    end: Ns,
}

impl Recent {
    fn new(seq: Seq, site: usize, start: Ns, end: Ns) -> Recent {
        Recent {
            seq,
            site: u32::try_from(site).expect("sites of a ledger are bounded"),
            start,
            end,
        }
    }
}

/// A ledger.
#[derive(Debug, Clone)]
pub(super) struct Ledger {
    /// Whose.
    pub(super) owner: Owner,
    /// The thread, if it is one's alone.
    pub(super) thread: Option<ThreadId>,
    /// Why it is watched.
    pub(super) role: Role,
    /// How many threads it stands for.
    pub(super) threads: u32,
    /// Lifetime.
    pub(super) wall: Ns,
    /// Whether one lives on.
    pub(super) open: bool,
    /// Sites; the first two are all CPU time and all queueing.
    pub(super) sites: Vec<Site>,
    /// Names of those who ran while it queued.
    pub(super) ran_instead: Vec<(NameId, Ns)>,
    /// How that came about.
    pub(super) queueing: Queueing,
    /// What interrupts took of its CPU time, by kind.
    pub(super) interrupts: [Ns; INTERRUPTS.len()],
    index: NumberMap<WhatId, usize>,
    own_keys: bool,
    waits: VecDeque<Recent>,
    samples: VecDeque<Recent>,
}

impl Ledger {
    /// Position of the site of all CPU time.
    pub(super) const CPU: usize = 0;
    /// Position of the site of all queueing.
    pub(super) const QUEUE: usize = 1;

    /// An empty ledger. `process` is the name under which keys are shared.
    pub(super) fn new(owner: Owner, own_keys: bool, process: NameId, book: &mut Book) -> Ledger {
        let mut ledger = Ledger {
            owner,
            thread: None,
            role: Role::Subject,
            threads: 1,
            wall: 0,
            open: false,
            sites: Vec::new(),
            ran_instead: Vec::new(),
            queueing: Queueing::default(),
            interrupts: [0; INTERRUPTS.len()],
            index: NumberMap::default(),
            own_keys,
            waits: VecDeque::new(),
            samples: VecDeque::new(),
        };
        ledger.site(WhatId::CPU, process, book);
        ledger.site(WhatId::QUEUE, process, book);
        ledger
    }

    /// Position of the site for this; one for many where there are too many.
    pub(super) fn site(&mut self, what: WhatId, process: NameId, book: &mut Book) -> usize {
        if let Some(site) = self.index.get(&what) {
            return *site;
        }
        let limit = match self.owner {
            Owner::Thread(_) => MAX_SITES,
            Owner::Folded { .. } => MAX_FOLDED_SITES,
        };
        let what = if self.sites.len() < limit {
            what
        } else {
            book.whats.coarse(what)
        };
        if let Some(site) = self.index.get(&what) {
            return *site;
        }
        let key = book
            .keys
            .give(self.own_keys, process, book.whats.get(what).class());
        self.sites.push(Site::new(what, key));
        self.index.insert(what, self.sites.len() - 1);
        self.sites.len() - 1
    }

    /// The process has another name now: what it shares keys under changes with it.
    pub(super) fn renamed(&mut self, process: NameId, book: &mut Book) {
        if self.own_keys {
            return;
        }
        for site in &mut self.sites {
            let key = book.keys.give(false, process, book.whats.get(site.what).class());
            if key != site.key {
                site.more_keys.push(site.key);
                site.more_keys.retain(|old| *old != key);
                site.key = key;
            }
        }
    }

    /// Takes over another ledger's time.
    pub(super) fn absorb(&mut self, other: Ledger, process: NameId, book: &mut Book) {
        self.threads += other.threads;
        self.wall = self.wall.saturating_add(other.wall);
        self.open |= other.open;
        for (name, ns) in other.ran_instead {
            self.ran_instead(name, ns);
        }
        self.queueing.absorb(&other.queueing);
        for (own, theirs) in self.interrupts.iter_mut().zip(other.interrupts) {
            *own = own.saturating_add(theirs);
        }
        for site in other.sites {
            let here = self.site(site.what, process, book);
            self.sites[here].absorb(site);
        }
    }

    /// Somebody else ran while this thread queued.
    pub(super) fn ran_instead(&mut self, name: NameId, ns: Ns) {
        if let Some(known) = self.ran_instead.iter_mut().find(|known| known.0 == name) {
            known.1 = known.1.saturating_add(ns);
        } else if self.ran_instead.len() < MAX_RAN_INSTEAD {
            self.ran_instead.push((name, ns));
        } else if let Some(least) = self.ran_instead.iter_mut().min_by_key(|known| known.1)
            && least.1 < ns
        {
            *least = (name, ns);
        }
    }

    /// Remembers which site a wait belonged to; `keep` at most.
    pub(super) fn remember_wait(&mut self, seq: Seq, site: usize, start: Ns, end: Ns, keep: usize) {
        remember(&mut self.waits, Recent::new(seq, site, start, end), keep);
    }

    /// The same for a CPU sample.
    pub(super) fn remember_sample(&mut self, seq: Seq, site: usize, at: Ns, keep: usize) {
        remember(&mut self.samples, Recent::new(seq, site, at, at), keep);
    }

    /// A stack of waits or of a sample that are remembered; when they began and ended, `None` when they no longer are. What it stands for is
    /// shared out by how long each of several waits was.
    pub(super) fn asked_by(&mut self, sample: &AskerSample) -> Option<(Ns, Ns)> {
        let recent = if sample.on_cpu { &self.samples } else { &self.waits };
        // Numbers grow, but a source with faults may repeat one: take the newest.
        let end = recent.partition_point(|recent| recent.seq <= sample.seq);
        let last = end.checked_sub(1).and_then(|at| recent.get(at))?;
        if last.seq != sample.seq {
            return None;
        }
        if sample.first >= sample.seq {
            self.sites[last.site as usize].asked_by(sample.stack, sample.weight, last.start, last.end);
            return Some((last.start, last.end));
        }
        let begin = recent.partition_point(|recent| recent.seq < sample.first);
        let length = |recent: &Recent| u128::from(recent.end.saturating_sub(recent.start));
        let all: u128 = recent.range(begin..end).map(length).sum();
        for one in recent.range(begin..end) {
            let share = u128::from(sample.weight) * length(one) / all.max(1);
            // A share of a 64-bit number is no larger than that.
            self.sites[one.site as usize].asked_by(sample.stack, share as Ns, one.start, one.end);
        }
        Some((recent.get(begin)?.start, recent.get(end - 1)?.end))
    }

    /// Forgets most of what was remembered: the thread has ended.
    pub(super) fn ended(&mut self, wall: Ns, keep: usize) {
        self.wall = wall;
        for recent in [&mut self.waits, &mut self.samples] {
            recent.drain(..recent.len().saturating_sub(keep));
            recent.shrink_to_fit();
        }
    }

    /// All time in it.
    pub(super) fn total(&self) -> Ns {
        self.sites
            .iter()
            .fold(0, |sum, site| sum.saturating_add(site.tally.ns))
    }

    /// Where a site is that may not be there.
    pub(super) fn index_of(&self, what: WhatId) -> Option<&usize> {
        self.index.get(&what)
    }

    /// The tally of a site that may not be there.
    pub(super) fn tally(&self, what: WhatId) -> Tally {
        self.index
            .get(&what)
            .map(|site| self.sites[*site].tally)
            .unwrap_or_default()
    }
}

fn remember(recent: &mut VecDeque<Recent>, new: Recent, keep: usize) {
    while recent.len() >= keep.max(1) {
        recent.pop_front();
    }
    recent.push_back(new);
}
