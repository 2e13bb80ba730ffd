//! Who waits for whose lock: to the one at the root, and round in circles.

use super::{Dump, DumpThread};
use holdup_evidence::observed::LockWait;
use std::collections::{BTreeMap, HashMap, HashSet};

/// For each thread of a dump that waits for a lock, the thread that has it; both by place.
#[derive(Debug, Default)]
pub struct Graph {
    holder: BTreeMap<usize, usize>,
    /// The end of each waiter's chain of holders; `None` where that is a circle.
    root: HashMap<usize, Option<usize>>,
}

impl Graph {
    /// The graph of a dump.
    pub fn of(dump: &Dump<'_>) -> Graph {
        let mut held: HashMap<&str, usize> = HashMap::new();
        let mut named: HashMap<&str, usize> = HashMap::new();
        for (place, seen) in dump.threads.iter().enumerate() {
            named.entry(&seen.thread.name).or_insert(place);
            for lock in &seen.thread.holds {
                held.insert(&lock.id, place);
            }
        }
        let mut holder = BTreeMap::new();
        let mut initialising = None;
        for (place, seen) in dump.threads.iter().enumerate() {
            let Some(lock) = &seen.thread.waits_for else {
                continue;
            };
            let by = match lock.wait {
                // A monitor that is waited on is free.
                None | Some(LockWait::Wait) => None,
                Some(LockWait::ClassInit) if lock.class.is_empty() => initialising
                    .get_or_insert_with(|| Initialising::of(dump))
                    .awaited_by(place),
                Some(LockWait::ClassInit) => initialises(dump, &lock.class),
                Some(LockWait::Enter | LockWait::Park) => {
                    let owner = lock.owner.as_deref().and_then(|owner| named.get(owner));
                    held.get(lock.id.as_str()).or(owner).copied()
                }
            };
            if let Some(by) = by {
                holder.insert(place, by);
            }
        }
        Graph {
            root: roots(&holder),
            holder,
        }
    }

    /// The thread in whose hands the waiter's lock is.
    pub fn holder(&self, waiter: usize) -> Option<usize> {
        self.holder.get(&waiter).copied()
    }

    /// The last of those who wait for each other, which waits for none; `None` where nobody holds it, or in a circle.
    pub fn root(&self, waiter: usize) -> Option<usize> {
        self.root.get(&waiter).copied().flatten()
    }

    /// Threads that wait for each other in a circle.
    pub fn circles(&self) -> Vec<Vec<usize>> {
        let mut done = HashSet::new();
        let mut circles = Vec::new();
        for start in self.holder.keys() {
            let mut way = Vec::new();
            let mut at = *start;
            while done.insert(at) {
                way.push(at);
                match self.holder(at) {
                    Some(next) => at = next,
                    None => break,
                }
            }
            if self.holder.contains_key(&at)
                && let Some(from) = way.iter().position(|place| *place == at)
            {
                circles.push(way.split_off(from));
            }
        }
        circles
    }
}

/// The end of each chain. Each thread is passed once: a dump can have a chain of all its threads.
fn roots(holder: &BTreeMap<usize, usize>) -> HashMap<usize, Option<usize>> {
    let mut roots = HashMap::new();
    for start in holder.keys() {
        let (mut chain, mut passed) = (Vec::new(), HashSet::new());
        let mut at = *start;
        let root = loop {
            if let Some(known) = roots.get(&at) {
                break *known;
            }
            let Some(next) = holder.get(&at) else {
                break Some(at);
            };
            if !passed.insert(at) {
                break None;
            }
            chain.push(at);
            at = *next;
        };
        roots.extend(chain.into_iter().map(|waiter| (waiter, root)));
    }
    roots
}

/// The thread that runs a class's initialiser.
fn initialises(dump: &Dump<'_>, class: &str) -> Option<usize> {
    let initialiser = format!("{class}.<clinit>(");
    dump.threads
        .iter()
        .position(|seen| seen.frames.iter().any(|frame| frame.starts_with(&initialiser)))
}

/// Threads of a dump that have to do with classes' initialisers; more than [`MAX_APART`] of a kind are not kept.
struct Initialising {
    /// That run one.
    run: Vec<usize>,
    /// That wait until another thread has run one.
    wait: Vec<usize>,
}

/// With so many of a kind it cannot be determined any more which of them a thread waits for: itself, and two others.
const MAX_APART: usize = 3;

impl Initialising {
    fn of(dump: &Dump<'_>) -> Initialising {
        let places = |is: fn(&DumpThread<'_>) -> bool| {
            let found = dump.threads.iter().enumerate().filter(|(_, seen)| is(seen));
            found.map(|(place, _)| place).take(MAX_APART).collect()
        };
        Initialising {
            run: places(|seen| seen.frames.iter().any(|frame| frame.contains(".<clinit>("))),
            wait: places(|seen| {
                let lock = seen.thread.waits_for.as_ref();
                lock.is_some_and(|lock| lock.wait == Some(LockWait::ClassInit))
            }),
        }
    }

    /// For whom a thread waits whose class the dump does not name: the one other that runs an initialiser. Where there is
    /// none, the one other that waits so, too: before its class it initialises the class's parent. `None` where there
    /// are several.
    fn awaited_by(&self, waiter: usize) -> Option<usize> {
        let others = |of: &[usize]| {
            of.iter()
                .copied()
                .filter(|place| *place != waiter)
                .collect::<Vec<_>>()
        };
        let mut others_of = others(&self.run);
        if others_of.is_empty() {
            others_of = others(&self.wait);
        }
        match others_of[..] {
            [one] => Some(one),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::roots;

    #[test]
    fn the_root_of_a_chain_is_its_end_and_a_circle_has_none() {
        // 0 → 1 → 2; 5 → 4 → 3 → 4, a circle with a tail; 6 → 6.
        let holder = [(0, 1), (1, 2), (3, 4), (4, 3), (5, 4), (6, 6)].into();
        let roots = roots(&holder);
        let root = |waiter: usize| roots.get(&waiter).copied();
        assert_eq!([0, 1].map(root), [Some(Some(2)); 2]);
        assert_eq!([3, 4, 5, 6].map(root), [Some(None); 4]);
        assert_eq!(root(2), None);
    }
}
