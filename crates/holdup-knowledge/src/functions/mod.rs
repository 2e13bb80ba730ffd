//! What kernel functions mean for a thread that sleeps in them. Data, so that a newcomer adds a line.
//!
//! In: a function's name as in a kernel stack. Out: its [`Meaning`], if it has one. One file per area; every
//! name that a kernel from 5.10 to 6.18 uses for the same wait stands beside the others. A name that ends in
//! `*` stands for all that begin so, one that starts with `*` for all that end so; an exact name beats both
//! and a longer pattern beats a shorter one. Suffixes the compiler adds (`.isra.0`) are cut off before.

mod disk;
pub mod families;
mod ipc;
mod kernel;
pub mod locks;
mod memory;
mod network;
mod process;
mod remote;

use holdup_evidence::Cause;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::LazyLock;

/// How strong a function's word is. The smallest rank in a stack decides; among equals the innermost frame.
/// This order is that of "Which one, when several fit" in the list of causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Stopped or frozen, whatever it did before.
    Scheduler,
    /// A cgroup's memory.high: the reclaim below it is its doing.
    Limit,
    /// Reclaim, swap, address space lock, dirty throttling: beat the call in which they happen.
    Memory,
    /// Another process or machine decides: FUSE, network file systems, permissions, a frozen file system;
    /// and the seeding of the random generator.
    Remote,
    /// An fsync-like call: beats the journal and page waits under it.
    Sync,
    /// Inside execve, or ending: beats the disk waits under it.
    Edge,
    /// Waiting for a transaction to start; a discard.
    Journal,
    /// A journal commit, when nobody said what for.
    Commit,
    /// A kernel lock.
    KernelLock,
    /// Inside a FUSE or network file system, wherever exactly.
    RemoteFamily,
    /// A block device, direction known by the callers.
    Disk,
    /// One kind of object: pipe, socket, queue, user lock.
    Object,
    /// The kernel's own work, a driver: only when nothing else is there.
    Generic,
}

/// Which way data went in a wait for a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Toward memory, for a read or for metadata.
    Read,
    /// Toward the device.
    Write,
    /// Toward memory, for a mapped page.
    Fault,
}

/// What a function in a stack says of the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// The wait is for this.
    Is(Rank, Cause),
    /// The same, but only where this function itself sleeps; as a caller it says nothing.
    Innermost(Rank, Cause),
    /// The wait is for a block device; a caller says which way.
    Block,
    /// A wait for a block device below this goes this way.
    Toward(Direction),
    /// Takes a kernel lock; its caller says which.
    Lock,
    /// Part of going to sleep: says nothing, and the frame above it counts as innermost.
    Sleep,
    /// Says nothing, though a pattern would.
    Nothing,
}

/// One line of a table.
type Line = (&'static str, Meaning);

const TABLES: &[&[Line]] = &[
    process::TABLE,
    memory::TABLE,
    remote::TABLE,
    disk::TABLE,
    locks::TABLE,
    ipc::TABLE,
    network::TABLE,
    kernel::TABLE,
];

struct Index {
    exact: HashMap<&'static str, Meaning>,
    /// Longest first.
    beginnings: Vec<Line>,
    /// Longest first.
    endings: Vec<Line>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut index = Index {
        exact: HashMap::new(),
        beginnings: Vec::new(),
        endings: Vec::new(),
    };
    for (pattern, meaning) in TABLES.iter().copied().flatten() {
        if let Some(start) = pattern.strip_suffix('*') {
            index.beginnings.push((start, *meaning));
        } else if let Some(end) = pattern.strip_prefix('*') {
            index.endings.push((end, *meaning));
        } else {
            index.exact.insert(pattern, *meaning);
        }
    }
    index
        .beginnings
        .sort_by_key(|(start, _)| std::cmp::Reverse(start.len()));
    index.endings.sort_by_key(|(end, _)| std::cmp::Reverse(end.len()));
    index
});

/// A function's name without what the compiler added to it.
pub fn plain(name: &str) -> &str {
    name.split_once('.').map_or(name, |(plain, _)| plain)
}

/// Names that are remembered: a kernel has some 100,000 functions, a run sleeps in a few hundred.
const MOST_REMEMBERED: usize = 4096;

thread_local! {
    /// What was looked up before: nearly every name matches no exact line, and patterns are compared one by one.
    static REMEMBERED: RefCell<HashMap<String, Option<Meaning>>> = RefCell::new(HashMap::new());
}

/// What a function means; `name` as [`plain`] returns it.
pub fn meaning(name: &str) -> Option<Meaning> {
    REMEMBERED.with_borrow_mut(|remembered| {
        if let Some(known) = remembered.get(name) {
            return *known;
        }
        if remembered.len() >= MOST_REMEMBERED {
            remembered.clear();
        }
        let found = look_up(name);
        remembered.insert(name.to_owned(), found);
        found
    })
}

fn look_up(name: &str) -> Option<Meaning> {
    let index = &*INDEX;
    index.exact.get(name).copied().or_else(|| {
        let begins = index.beginnings.iter().find(|(start, _)| name.starts_with(start));
        let ends = index.endings.iter().find(|(end, _)| name.ends_with(end));
        begins.or(ends).map(|(_, meaning)| *meaning)
    })
}

#[cfg(test)]
mod tests {
    use super::{Meaning, TABLES, meaning};
    use holdup_evidence::Cause;
    use std::collections::BTreeSet;

    #[test]
    fn no_name_stands_in_the_tables_twice() {
        let mut seen = BTreeSet::new();
        for (pattern, _) in TABLES.iter().copied().flatten() {
            assert!(seen.insert(pattern), "{pattern} twice");
        }
    }

    #[test]
    fn exact_names_beat_patterns_and_longer_patterns_shorter_ones() {
        assert_eq!(meaning("shrink_dcache_parent"), Some(Meaning::Nothing));
        assert!(matches!(
            meaning("shrink_lruvec"),
            Some(Meaning::Is(_, Cause::MemReclaim))
        ));
        assert!(matches!(
            meaning("fuse_dev_do_read"),
            Some(Meaning::Is(_, Cause::DeviceWait))
        ));
        assert!(matches!(
            meaning("fuse_flush"),
            Some(Meaning::Is(_, Cause::FsFuse))
        ));
        assert_eq!(meaning("holdup_has_never_heard_of_this"), None);
    }
}
