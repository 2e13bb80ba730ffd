//! The tiling of the time from the run's start to a thread's now, as walking backwards from there gives it.
//!
//! A path changes hands at every waking and every birth, so taking a copy must cost nothing: it is a tree of
//! shared nodes, of which a change copies just the few between its root and one leaf, and only if someone
//! else still holds them. In: what is added under a key. Out: what each key has at the end, and what it had at the
//! borders of windows, for which the tree of then is kept: it shares all but what has changed since.

use super::lock_queues::{LockKey, QueuesOnPath};
use holdup_evidence::Ns;
use holdup_model::timeline::{MAX_WINDOWS, MIN_WINDOW_NS};
use std::sync::Arc;

/// Index of an entry: see [`super::keys`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key(pub(super) u32);

/// What a path holds under one key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Share {
    /// Elapsed time that was spent here.
    pub(super) ns: Ns,
    /// In how many pieces; for a class of CPU time the number of samples.
    pub(super) count: u64,
    /// Elapsed time that was spent elsewhere while a thread on the path waited here.
    pub(super) handed_on: Ns,
}

impl Share {
    /// Adds another share.
    pub(super) fn add(&mut self, other: Share) {
        self.ns = self.ns.saturating_add(other.ns);
        self.count = self.count.saturating_add(other.count);
        self.handed_on = self.handed_on.saturating_add(other.handed_on);
    }
}

/// Entries in a leaf, and children of a branch: small, because a waking copies one of each.
const LEAF_BITS: u32 = 3;
const BRANCH_BITS: u32 = 4;
const LEAF: usize = 1 << LEAF_BITS;
const BRANCH: usize = 1 << BRANCH_BITS;

#[derive(Debug, Clone)]
enum Node {
    Leaf([Share; LEAF]),
    Branch([Option<Arc<Node>>; BRANCH]),
}

impl Node {
    fn empty(height: u32) -> Node {
        if height == 0 {
            Node::Leaf([Share::default(); LEAF])
        } else {
            Node::Branch(std::array::from_fn(|_| None))
        }
    }

    fn add(&mut self, height: u32, key: u32, share: Share) {
        match self {
            Node::Leaf(entries) => entries[key as usize % LEAF].add(share),
            Node::Branch(children) => {
                let shift = LEAF_BITS + (height - 1) * BRANCH_BITS;
                let child = children[(key >> shift) as usize % BRANCH]
                    .get_or_insert_with(|| Arc::new(Node::empty(height - 1)));
                Arc::make_mut(child).add(height - 1, key, share);
            }
        }
    }

    fn each(&self, height: u32, base: u32, visit: &mut dyn FnMut(Key, Share)) {
        match self {
            Node::Leaf(entries) => {
                // The entries lead: a range that goes on after the largest key would overflow.
                for (share, key) in entries.iter().zip(base..=u32::MAX) {
                    if *share != Share::default() {
                        visit(Key(key), *share);
                    }
                }
            }
            Node::Branch(children) => {
                let shift = LEAF_BITS + (height - 1) * BRANCH_BITS;
                for (child, index) in children.iter().zip(0u32..) {
                    if let Some(child) = child {
                        child.each(height - 1, base | (index << shift), visit);
                    }
                }
            }
        }
    }
}

/// A path. Cloning it is one reference count.
#[derive(Debug, Clone)]
pub(super) struct Path {
    /// `None`: nobody will ask for it, and nothing is kept.
    root: Option<Arc<Node>>,
    height: u32,
    total: Ns,
    /// How long windows are, as the shortest doubled so often.
    shift: u8,
    /// How it was at the last border of windows, and those before.
    last: Option<Arc<Mark>>,
    /// Locks that somebody stood in the queue for while it went on.
    queues: Option<Arc<QueuesOnPath>>,
}

/// A path as it was at a border.
#[derive(Debug)]
struct Mark {
    at: Ns,
    root: Arc<Node>,
    height: u32,
    before: Option<Arc<Mark>>,
}

/// What a path had under each key at a border, and where that is.
pub(super) type AtBorder = (Ns, Vec<(Key, Share)>);

impl Path {
    /// The path of the instant at which the run starts.
    pub(super) fn new() -> Path {
        Path {
            root: Some(Arc::new(Node::empty(0))),
            height: 0,
            total: 0,
            shift: 0,
            last: None,
            queues: None,
        }
    }

    /// One that stays empty: where the whole is the threads' time, there is no path.
    pub(super) fn none() -> Path {
        Path {
            root: None,
            height: 0,
            total: 0,
            shift: 0,
            last: None,
            queues: None,
        }
    }

    /// Adds a share under a key.
    pub(super) fn add(&mut self, key: Key, mut share: Share) {
        while self.root.is_some()
            && let Some(border) = self.border().filter(|border| share.ns >= border - self.total)
        {
            let ns = border - self.total;
            share.ns -= ns;
            self.put(
                key,
                Share {
                    ns,
                    ..Share::default()
                },
            );
            self.mark();
        }
        if share != Share::default() {
            self.put(key, share);
        }
    }

    /// Where the next border is; there is none beyond what a number holds.
    fn border(&self) -> Option<Ns> {
        let width = MIN_WINDOW_NS << self.shift;
        (self.total / width + 1).checked_mul(width)
    }

    /// Keeps it as it is at this border. Where there are too many windows then, each two become one.
    fn mark(&mut self) {
        let Some(root) = &self.root else {
            return;
        };
        self.last = Some(Arc::new(Mark {
            at: self.total,
            root: Arc::clone(root),
            height: self.height,
            before: self.last.take(),
        }));
        if self.total / (MIN_WINDOW_NS << self.shift) < MAX_WINDOWS as u64 {
            return;
        }
        self.shift += 1;
        let marks: Vec<Arc<Mark>> = self.marks().cloned().collect();
        self.last = None;
        for mark in marks.iter().rev() {
            if mark.at.is_multiple_of(MIN_WINDOW_NS << self.shift) {
                self.last = Some(Arc::new(Mark {
                    at: mark.at,
                    root: Arc::clone(&mark.root),
                    height: mark.height,
                    before: self.last.take(),
                }));
            }
        }
    }

    /// Marks, the last first.
    fn marks(&self) -> impl Iterator<Item = &Arc<Mark>> {
        std::iter::successors(self.last.as_ref(), |mark| mark.before.as_ref())
    }

    /// What it had under each key at each border of windows of this length, which is one that it has had or a later one, and at its end.
    pub(super) fn at_borders(&self, width: Ns) -> Vec<AtBorder> {
        let marks = self.marks().filter(|mark| mark.at.is_multiple_of(width));
        let mut all: Vec<AtBorder> = marks
            .map(|mark| (mark.at, entries(&mark.root, mark.height)))
            .collect();
        all.reverse();
        all.push((self.total, self.entries()));
        all
    }

    fn put(&mut self, key: Key, share: Share) {
        let Some(root) = &mut self.root else {
            return;
        };
        while self.height < MAX_HEIGHT && key.0 >> (LEAF_BITS + self.height * BRANCH_BITS) != 0 {
            let mut children = std::array::from_fn(|_| None);
            children[0] = Some(Arc::clone(root));
            *root = Arc::new(Node::Branch(children));
            self.height += 1;
        }
        self.total = self.total.saturating_add(share.ns);
        Arc::make_mut(root).add(self.height, key.0, share);
    }

    /// Adds a piece of elapsed time.
    pub(super) fn spend(&mut self, key: Key, ns: Ns, count: u64) {
        if ns > 0 || count > 0 {
            self.add(
                key,
                Share {
                    ns,
                    count,
                    handed_on: 0,
                },
            );
        }
    }

    /// Somebody stood in the queue for a lock from one instant to another, at which a thread on this path let it go.
    pub(super) fn queued(&mut self, lock: LockKey, from: Ns, to: Ns) {
        if self.root.is_some() {
            Arc::make_mut(self.queues.get_or_insert_default()).add(lock, from, to);
        }
    }

    /// For how long somebody stood in the queue for each lock while it went on.
    pub(super) fn queues(&self) -> impl Iterator<Item = (LockKey, Ns)> + '_ {
        self.queues.iter().flat_map(|queues| queues.each())
    }

    /// The elapsed time it tiles.
    pub(super) fn total(&self) -> Ns {
        self.total
    }

    /// Every entry that is not empty, by key.
    pub(super) fn entries(&self) -> Vec<(Key, Share)> {
        let entries = |root| entries(root, self.height);
        self.root.as_deref().map(entries).unwrap_or_default()
    }
}

fn entries(root: &Node, height: u32) -> Vec<(Key, Share)> {
    let mut all = Vec::new();
    root.each(height, 0, &mut |key, share| all.push((key, share)));
    all
}

/// Height at which a tree holds every `u32`: leaf bits and eight branches' bits are more than 32.
const MAX_HEIGHT: u32 = 8;

#[cfg(test)]
mod tests {
    use super::{Key, Path};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Copies go their own ways: each holds what was added to it and to what it was copied from.
        #[test]
        fn a_copy_keeps_what_it_had(steps in proptest::collection::vec((0usize..4, 0usize..4, 0u32..5000, 1u64..1000), 1..200)) {
            let mut paths = vec![Path::new(); 4];
            let mut truth = vec![BTreeMap::<u32, u64>::new(); 4];
            for (from, to, key, ns) in steps {
                paths[to] = paths[from].clone();
                truth[to] = truth[from].clone();
                paths[to].spend(Key(key), ns, 1);
                *truth[to].entry(key).or_default() += ns;
            }
            for (path, truth) in paths.iter().zip(&truth) {
                let entries: BTreeMap<u32, u64> = path.entries().into_iter().map(|(key, share)| (key.0, share.ns)).collect();
                prop_assert_eq!(&entries, truth);
                prop_assert_eq!(path.total(), truth.values().sum::<u64>());
            }
        }
    }

    #[test]
    fn the_largest_key_has_a_place() {
        let mut path = Path::new();
        path.spend(Key(u32::MAX), 5, 1);
        path.spend(Key(0), 7, 1);
        let keys: Vec<_> = path
            .entries()
            .into_iter()
            .map(|(key, share)| (key.0, share.ns))
            .collect();
        assert_eq!(keys, [(0, 7), (u32::MAX, 5)]);
    }
}
