//! Times in which nothing was logged, by anybody or by a thread that had begun something: the longest are kept.
//!
//! In: for each line its time, thread and kind. Out: the longest gaps, each with what is usual between two lines of these
//! kinds. A thread that rests between two requests is silent, too: of one thread only the gaps after a line that says
//! that something begins are of use. Memory is fixed: threads and kinds share slots, and the older one is forgotten.

use super::message;
use super::stamp::{Stamp, Zero};

/// Threads that are followed at once; two that share a slot lose each other's last line.
const THREADS: usize = 1024;

/// Pairs of kinds whose times are added up.
const PAIRS: usize = 4096;

/// Bytes of a line that are kept to be quoted.
const KEPT: usize = 200;

/// The longest gaps that are kept, of each sort.
const GAPS: usize = 24;

/// A thread that is silent for less, in nanoseconds, is not silent: a request of a person's takes longer.
const MIN_GAP_NS: i64 = 10_000_000;

/// Steps that are kept of one pair, and of all.
const STEPS_OF_PAIR: u64 = 3;
const STEPS: usize = 48;

/// Nanoseconds by which lines of several threads may be out of order: they are stamped before they are written.
const DISORDER: i64 = 2_000_000_000;

/// Nanoseconds of half a day: a time of day without a date that falls by more has passed midnight.
const HALF_DAY: i64 = 43_200_000_000_000;

/// The last line of a thread.
#[derive(Debug, Clone, Copy)]
struct Last {
    thread: u64,
    /// Which stretch of ordered time it belongs to; 0 for a slot that was never used.
    stretch: u32,
    template: u32,
    ns: i64,
    line: u64,
    message: u8,
    length: u8,
    stamp: Stamp,
    text: [u8; KEPT],
}

/// How long it took from lines of one kind to lines of another.
#[derive(Debug, Clone, Copy, Default)]
struct Pair {
    key: u64,
    count: u64,
    total: i64,
}

/// Nothing was logged from one line to another.
#[derive(Debug, Clone)]
pub(super) struct Gap {
    pub ns: i64,
    pub began: Stamp,
    pub from_line: u64,
    pub from: Vec<u8>,
    pub from_message: usize,
    pub to_line: u64,
    pub to: Vec<u8>,
    pub to_message: usize,
    /// Whether the lines are of one thread, which they name.
    pub of_thread: bool,
    /// Whether the lines name two different threads.
    pub of_others: bool,
    pair: u64,
}

/// One line, taken apart.
pub(super) struct Entry<'a> {
    pub line: &'a [u8],
    pub number: u64,
    pub stamp: Stamp,
    /// A hash of the thread's name; 0 where the line has none.
    pub thread: u64,
    pub message: usize,
}

/// What the time of a line says about the lines before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// It is later, or as good as.
    On,
    /// It is earlier by so much; whether the line is made differently from those before.
    Back(i64, bool),
    /// Nothing: it counts from something else.
    Other,
}

pub(super) struct Gaps {
    last: Vec<Last>,
    pairs: Vec<Pair>,
    /// Slot of the last line.
    latest: usize,
    /// The latest time.
    high: i64,
    zero: Zero,
    stretch: u32,
    /// Added to times of day for the midnights that went by.
    midnights: i64,
    pub(super) whole: Vec<Gap>,
    pub(super) of_threads: Vec<Gap>,
    pub(super) steps: Vec<Gap>,
    /// Lines that are earlier than one before them, by so little that it is the order of writing.
    pub(super) disordered: u64,
    pub(super) covered: i64,
}

impl Gaps {
    pub(super) fn new() -> Gaps {
        let stamp = Stamp {
            zero: Zero::Start,
            ns: 0,
            end: 0,
        };
        let never = Last {
            thread: 0,
            stretch: 0,
            template: 0,
            ns: 0,
            line: 0,
            message: 0,
            length: 0,
            stamp,
            text: [0; KEPT],
        };
        Gaps {
            last: vec![never; THREADS],
            pairs: vec![Pair::default(); PAIRS],
            latest: 0,
            high: 0,
            zero: Zero::Start,
            stretch: 0,
            midnights: 0,
            whole: Vec::new(),
            of_threads: Vec::new(),
            steps: Vec::new(),
            disordered: 0,
            covered: 0,
        }
    }

    /// Takes a line. The second is the first line of the step that it ends, if it ends one.
    #[inline]
    pub(super) fn take(&mut self, entry: &Entry<'_>) -> (Order, Option<Gap>) {
        let (order, ns) = self.order(entry);
        let slot = (entry.thread >> 1) as usize % THREADS;
        let template = message::template(entry.line, entry.message);
        let mut step = None;
        if order == Order::On {
            self.covered = self.covered.saturating_add(ns.saturating_sub(self.high).max(0));
            self.whole_gap(entry, ns, slot);
            step = self.own_gap(entry, ns, slot, template);
        }
        self.high = match order {
            Order::On => self.high.max(ns),
            _ => ns,
        };
        self.keep(entry, ns, slot, template);
        (order, step)
    }

    fn order(&mut self, entry: &Entry<'_>) -> (Order, i64) {
        let mut ns = entry.stamp.ns.saturating_add(self.midnights);
        if self.stretch == 0 || entry.stamp.zero != self.zero {
            self.zero = entry.stamp.zero;
            self.midnights = 0;
            self.stretch = self.stretch.saturating_add(1);
            return (Order::Other, entry.stamp.ns);
        }
        let mut later = ns.saturating_sub(self.high);
        if later < -HALF_DAY && self.zero == Zero::TimeOfDay {
            self.midnights = self.midnights.saturating_add(2 * HALF_DAY);
            ns = entry.stamp.ns.saturating_add(self.midnights);
            later = ns.saturating_sub(self.high);
        }
        if later >= 0 {
            return (Order::On, ns);
        }
        if later >= -DISORDER {
            self.disordered += 1;
            return (Order::On, ns);
        }
        self.stretch = self.stretch.saturating_add(1);
        let before = self.last.get(self.latest);
        let differs = before.is_some_and(|last| (last.thread == 0) != (entry.thread == 0));
        (Order::Back(later.saturating_neg(), differs), ns)
    }

    /// Nobody logged anything between the line before and this one.
    #[inline]
    fn whole_gap(&mut self, entry: &Entry<'_>, ns: i64, slot: usize) {
        let gap = ns.saturating_sub(self.high);
        let least = least(&self.whole);
        if gap <= least {
            return;
        }
        let latest = self.latest;
        if let Some(last) = self.last.get(latest).filter(|last| last.stretch == self.stretch) {
            let same = latest == slot && last.thread == entry.thread;
            // What is usual is known of one thread's lines, or of a log without threads.
            let pair = if same {
                pair_of(last.template, message::template(entry.line, entry.message))
            } else {
                0
            };
            let gap = made(last, entry, gap, pair, same && entry.thread != 0);
            insert(&mut self.whole, gap);
        }
    }

    /// The time since the same thread's last line.
    #[inline]
    fn own_gap(&mut self, entry: &Entry<'_>, ns: i64, slot: usize, template: u32) -> Option<Gap> {
        let last = self.last.get(slot)?;
        if last.stretch != self.stretch || last.thread != entry.thread {
            return None;
        }
        let gap = ns.saturating_sub(last.ns).max(0);
        let key = pair_of(last.template, template);
        let pair = self.pairs.get_mut(slot_of(key))?;
        if pair.key != key {
            *pair = Pair {
                key,
                ..Pair::default()
            };
        }
        pair.count += 1;
        pair.total = pair.total.saturating_add(gap);
        if entry.thread == 0 {
            return None;
        }
        let early = pair.count <= STEPS_OF_PAIR && self.steps.len() < STEPS;
        let long = gap >= MIN_GAP_NS && gap > least(&self.of_threads);
        if !(early || long) || !message::begins(last.kept(), usize::from(last.message)) {
            return None;
        }
        let made = made(last, entry, gap, key, true);
        // Where nobody else logged meanwhile it is among the gaps of all.
        let alone = slot == self.latest;
        if long && !alone {
            insert(&mut self.of_threads, made.clone());
        }
        if early {
            self.steps.push(made.clone());
        }
        Some(made)
    }

    #[inline]
    fn keep(&mut self, entry: &Entry<'_>, ns: i64, slot: usize, template: u32) {
        let stretch = self.stretch;
        if let Some(last) = self.last.get_mut(slot) {
            let length = entry.line.len().min(KEPT);
            if let (Some(to), Some(from)) = (last.text.get_mut(..length), entry.line.get(..length)) {
                to.copy_from_slice(from);
            }
            last.thread = entry.thread;
            last.stretch = stretch;
            last.template = template;
            last.ns = ns;
            last.line = entry.number;
            last.message = entry.message.min(length) as u8;
            last.length = length as u8;
            last.stamp = entry.stamp;
        }
        self.latest = slot;
    }

    /// What is usual for the pair of lines of a gap: the mean of the others, and how many.
    pub(super) fn usual(&self, gap: &Gap) -> Option<(u64, u64)> {
        let pair = self.pairs.get(slot_of(gap.pair))?;
        let others = pair
            .count
            .checked_sub(1)
            .filter(|others| *others > 0 && pair.key == gap.pair)?;
        let total = u64::try_from(pair.total.saturating_sub(gap.ns)).ok()?;
        Some((total / others, others))
    }
}

impl Last {
    fn kept(&self) -> &[u8] {
        self.text.get(..usize::from(self.length)).unwrap_or_default()
    }
}

fn pair_of(from: u32, to: u32) -> u64 {
    // Never 0, which stands for "no pair".
    (u64::from(from) << 32 | u64::from(to)).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
}

/// Where a pair is kept: the low bits of a product say little.
fn slot_of(key: u64) -> usize {
    (key >> 40) as usize % PAIRS
}

fn made(last: &Last, entry: &Entry<'_>, ns: i64, pair: u64, of_thread: bool) -> Gap {
    Gap {
        ns,
        began: last.stamp,
        from_line: last.line,
        from: last.kept().to_vec(),
        from_message: usize::from(last.message),
        to_line: entry.number,
        to: entry.line.get(..KEPT).unwrap_or(entry.line).to_vec(),
        to_message: entry.message,
        of_thread,
        of_others: last.thread != 0 && entry.thread != 0 && last.thread != entry.thread,
        pair,
    }
}

/// The length that a gap must have to be kept.
#[inline]
fn least(gaps: &[Gap]) -> i64 {
    match gaps.last() {
        Some(last) if gaps.len() >= GAPS => last.ns,
        _ => 0,
    }
}

/// Longest first, at most so many.
fn insert(gaps: &mut Vec<Gap>, gap: Gap) {
    let at = gaps.partition_point(|other| other.ns >= gap.ns);
    gaps.insert(at, gap);
    gaps.truncate(GAPS);
}
