//! One thing a thread spends time on, with all that is kept of it.
//!
//! In: the single pieces, one by one, and the stacks seen. What is kept is bounded, so that a site costs the
//! same after a hundred million pieces as after a thousand.

use super::chain::Link;
use super::crowd::Onward;
use super::estimates::Doubt;
use super::histogram::Histogram;
use super::holders::TopHolders;
use super::orphans::Orphan;
use super::pace::Rhythm;
use super::path::{Key, Share};
use super::what::WhatId;
use super::windows::{Axis, Sums};
use holdup_evidence::{Cause, KernelStackId, Ns, UserStackId};
use holdup_model::attributed::JudgedBy;
use holdup_model::attributed::Tally;
use holdup_model::connections::TcpSeen;

/// Different user stacks kept for a site; later ones than these count as not seen.
const MAX_STACKS: usize = 64;

/// Kernel stacks kept for a site: the one seen most is shown, and comes early.
const MAX_KERNEL_STACKS: usize = 4;

/// A user stack and what it stands for.
#[derive(Debug, Clone, Copy)]
pub(super) struct StackTally {
    /// Which.
    pub(super) stack: UserStackId,
    /// Time it stands for.
    pub(super) weight: Ns,
    /// In how many samples.
    pub(super) samples: u64,
    /// Longest wait it was seen in, and when that began and ended.
    pub(super) longest: (Ns, Ns, Ns),
}

/// A site.
#[derive(Debug, Clone)]
pub(super) struct Site {
    /// What it is.
    pub(super) what: WhatId,
    /// Where a path keeps it.
    pub(super) key: Key,
    /// Keys of the sites that it took over.
    pub(super) more_keys: Vec<Key>,
    /// Time, pieces, longest.
    pub(super) tally: Tally,
    /// When the time passed; of a class of CPU time its samples.
    pub(super) windows: Sums,
    /// When the longest began and ended.
    pub(super) longest: (Ns, Ns),
    /// Pieces by length.
    pub(super) lengths: Histogram,
    /// Pieces that ended because their time ran out.
    pub(super) timed_out: u64,
    /// Of a pipe that was read: how long a process left behind kept it open and wrote nothing.
    pub(super) held_open: Ns,
    /// Of sleeps: how they follow each other.
    pub(super) rhythm: Option<Box<Rhythm>>,
    /// Bytes asked for in the longest.
    pub(super) bytes: Option<u64>,
    /// Who judged the longest.
    pub(super) judged_by: Option<JudgedBy>,
    /// Of event loops: the longest that an answer was outstanding.
    pub(super) outstanding: Ns,
    /// The signal that began the longest, where a signal stopped the thread.
    pub(super) signal: Option<i32>,
    /// For a class of CPU time: samples.
    pub(super) samples: u64,
    /// Of the time: known by the kernel stack of a longer wait in the same call.
    pub(super) borrowed: Ns,
    /// Of that: in a call whose longer waits were not all the same.
    pub(super) doubtful: Ns,
    /// Of the time: known from samples.
    pub(super) doubt: Doubt,
    /// Who asked.
    pub(super) stacks: Vec<StackTally>,
    /// Kernel stacks and the time they were seen in.
    pub(super) kernel_stacks: Vec<(KernelStackId, Ns)>,
    /// Who was in the way.
    pub(super) holders: TopHolders,
    /// From the waiter to where the time went, for the longest.
    pub(super) chain: Vec<Link>,
    /// Where that chain goes on from the waiter, and what the waiter's wait was for.
    pub(super) onward: Option<Onward>,
    pub(super) cause: Option<Cause>,
    /// Whether the thread waited here in a circle of threads that wait for each other; then that is its chain.
    pub(super) deadlock: bool,
    /// Why nobody could have ended the longest of those that nobody could have ended.
    pub(super) orphan: Option<Orphan>,
    /// Since when it waits here, where it does so as observation ends, for nothing but another thread of its process, and
    /// without a time limit.
    pub(super) endless: Option<Ns>,
    /// What the state of its TCP connections said.
    pub(super) tcp: Option<Box<TcpSeen>>,
    /// Its part of the run's path: known at the end.
    pub(super) on_path: Share,
}

impl Site {
    /// One without a piece.
    pub(super) fn new(what: WhatId, key: Key) -> Site {
        Site {
            what,
            key,
            more_keys: Vec::new(),
            tally: Tally::default(),
            windows: Sums::default(),
            longest: (0, 0),
            lengths: Histogram::default(),
            timed_out: 0,
            held_open: 0,
            rhythm: None,
            bytes: None,
            judged_by: None,
            outstanding: 0,
            signal: None,
            samples: 0,
            borrowed: 0,
            doubtful: 0,
            doubt: Doubt::default(),
            stacks: Vec::new(),
            kernel_stacks: Vec::new(),
            holders: TopHolders::default(),
            chain: Vec::new(),
            onward: None,
            cause: None,
            deadlock: false,
            orphan: None,
            endless: None,
            tcp: None,
            on_path: Share::default(),
        }
    }

    /// Adds time that belongs to a piece which is counted when it is over.
    pub(super) fn spend(&mut self, axis: &mut Axis, from: Ns, until: Ns) {
        self.tally.ns = self.tally.ns.saturating_add(until.saturating_sub(from));
        self.windows.spend(axis, from, until);
    }

    /// Counts a piece that is over; says whether it is the longest so far.
    pub(super) fn piece(&mut self, start: Ns, end: Ns) -> bool {
        self.pieces(start, end, 1)
    }

    /// The same of so many pieces of equal length, one after the other.
    pub(super) fn pieces(&mut self, start: Ns, end: Ns, count: u64) -> bool {
        let length = end.saturating_sub(start) / count.max(1);
        let end = start.saturating_add(length);
        let first = self.tally.count == 0;
        self.tally.count = self.tally.count.saturating_add(count);
        self.lengths.record_many(length, count);
        let longest = first || length > self.tally.max;
        if longest {
            self.tally.max = length;
            self.longest = (start, end);
        }
        longest
    }

    /// Counts pieces that were like the last one and no longer than the longest: they are known by their number and time alone.
    pub(super) fn repeat(&mut self, repeats: u64, ns: Ns, timed_out: bool) {
        self.tally.count = self.tally.count.saturating_add(repeats);
        self.lengths.record_many(ns / repeats.max(1), repeats);
        if timed_out {
            self.timed_out = self.timed_out.saturating_add(repeats);
        }
        if let Some(rhythm) = &mut self.rhythm {
            rhythm.untold();
        }
    }

    /// Adds a user stack, seen in a wait from `start` to `end`.
    pub(super) fn asked_by(&mut self, stack: UserStackId, weight: Ns, start: Ns, end: Ns) {
        let seen = StackTally {
            stack,
            weight,
            samples: 1,
            longest: (end.saturating_sub(start), start, end),
        };
        self.add_stack(seen);
    }

    fn add_stack(&mut self, seen: StackTally) {
        if let Some(known) = self.stacks.iter_mut().find(|known| known.stack == seen.stack) {
            known.weight = known.weight.saturating_add(seen.weight);
            known.samples += seen.samples;
            known.longest = known.longest.max(seen.longest);
        } else if self.stacks.len() < MAX_STACKS {
            self.stacks.push(seen);
        }
    }

    /// Adds a kernel stack that was seen for some of the time.
    pub(super) fn seen_in(&mut self, stack: KernelStackId, ns: Ns) {
        if let Some(known) = self.kernel_stacks.iter_mut().find(|known| known.0 == stack) {
            known.1 = known.1.saturating_add(ns);
        } else if self.kernel_stacks.len() < MAX_KERNEL_STACKS {
            self.kernel_stacks.push((stack, ns));
        } else if let Some(least) = self.kernel_stacks.iter_mut().min_by_key(|known| known.1)
            && least.1 < ns
        {
            *least = (stack, ns);
        }
    }

    /// The kernel stack seen for the most time.
    pub(super) fn kernel_stack(&self) -> Option<KernelStackId> {
        self.kernel_stacks
            .iter()
            .max_by_key(|known| known.1)
            .map(|known| known.0)
    }

    /// Takes over another site's time and keys.
    pub(super) fn absorb(&mut self, other: Site) {
        if self.tally.count == 0 || other.tally.max > self.tally.max {
            self.tally.max = other.tally.max;
            self.longest = other.longest;
            self.bytes = other.bytes;
            self.judged_by = other.judged_by;
            if !self.deadlock || other.deadlock {
                self.chain = other.chain;
                (self.onward, self.cause) = (other.onward, other.cause);
            }
            self.signal = other.signal;
        }
        self.tally.ns = self.tally.ns.saturating_add(other.tally.ns);
        self.windows.absorb(other.windows);
        self.tally.count += other.tally.count;
        self.tally.open |= other.tally.open;
        self.deadlock |= other.deadlock;
        self.orphan = self.orphan.or(other.orphan);
        self.endless = self.endless.max(other.endless);
        self.lengths.absorb(&other.lengths);
        self.timed_out += other.timed_out;
        self.outstanding = self.outstanding.max(other.outstanding);
        self.held_open = self.held_open.saturating_add(other.held_open);
        if let Some(rhythm) = other.rhythm {
            self.rhythm.get_or_insert_default().absorb(*rhythm);
        }
        self.samples += other.samples;
        self.borrowed = self.borrowed.saturating_add(other.borrowed);
        self.doubtful = self.doubtful.saturating_add(other.doubtful);
        self.doubt.absorb(other.doubt);
        self.on_path.add(other.on_path);
        for stack in other.stacks {
            self.add_stack(stack);
        }
        for (stack, ns) in other.kernel_stacks {
            self.seen_in(stack, ns);
        }
        self.holders.absorb(other.holders);
        if let Some(tcp) = other.tcp {
            self.tcp.get_or_insert_default().absorb(&tcp);
        }
        for key in other.more_keys.into_iter().chain([other.key]) {
            if key != self.key && !self.more_keys.contains(&key) {
                self.more_keys.push(key);
            }
        }
    }
}
