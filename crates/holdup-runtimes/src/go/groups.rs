//! Which group (`sync.WaitGroup`) a goroutine waits for, and who refers to it.
//!
//! In: goroutines. Out: the groups that they wait for, among what they await, and for each other goroutine those to which it refers, among what
//! it refers to. One that is to say that it is done has the address of the group on its stack or in a closure, unless the group is a variable of
//! a package.

use super::handing::ASKED_MAX;
use super::{Goroutines, Program};
use crate::memory::Source;
use std::collections::BTreeSet;

/// The runtime's words for such a wait, from Go 1.25 on.
const WAITS: &str = "sync.WaitGroup.Wait";

/// Where a group has the semaphore.
const SEMAPHORE: u64 = 8;

/// Words of structures that a stack refers to: closures.
const CLOSURE_WORDS: [usize; 1] = [16];

impl<S: Source> Program<S> {
    /// Notes which groups goroutines wait for, and who refers to them.
    pub fn groups(&mut self, all: &mut Goroutines) {
        let mut groups: BTreeSet<u64> = BTreeSet::new();
        let waiting = all
            .all
            .iter_mut()
            .filter(|one| one.reason.as_deref() == Some(WAITS));
        for one in waiting.take(ASKED_MAX) {
            let semaphore = self.semaphore_of(one);
            if let Some(group) = semaphore.and_then(|at| at.checked_sub(SEMAPHORE)) {
                one.awaited.channels.push(group);
                groups.insert(group);
            }
        }
        if groups.is_empty() {
            return;
        }
        let parked = all.all.iter_mut().filter(|one| !one.addresses.is_empty());
        for one in parked.take(ASKED_MAX) {
            let mut referred = BTreeSet::new();
            self.references(one, &CLOSURE_WORDS, &mut |word| {
                let known = groups.contains(&word);
                if known {
                    referred.insert(word);
                }
                known
            });
            one.refers.extend(referred);
        }
    }
}
