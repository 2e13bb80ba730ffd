//! Objects of classes of the runtime's own library: what their fields refer to, by name.
//!
//! In: addresses of objects, and names of fields. Out: what these hold, sets and queues walked in bounds. Nothing is stopped, so what is
//! walked may change meanwhile: a walk that meets no end is cut off, and what does not fit is left out.

use crate::layout::Layout;
use crate::memory::{Memory, Source};
use crate::oops::Oops;
use std::collections::HashMap;

/// Places of a hash table, and entries of one place.
const PLACES_MAX: u64 = 1 << 20;
const ENTRIES_MAX: usize = 1_024;

/// Fields in which a lock of `java.util.concurrent` notes who has it: whoever has it alone, and of those who read the one that began, for as
/// long as that one reads.
const OWNERS: [&str; 2] = ["exclusiveOwnerThread", "firstReader"];

/// What is known of classes that were met: offsets of fields by class and name.
#[derive(Debug, Default)]
pub(crate) struct Met(HashMap<(u64, &'static str), Option<u64>>);

/// What reading needs.
pub(crate) struct Reading<'a, S> {
    pub(crate) memory: &'a mut Memory<S>,
    pub(crate) layout: &'a Layout,
    pub(crate) oops: &'a Oops,
}

impl Met {
    /// How far into an object a field is.
    pub(crate) fn field<S: Source>(
        &mut self,
        read: &mut Reading<'_, S>,
        object: u64,
        name: &'static str,
    ) -> Option<u64> {
        let class = read.oops.class(read.memory, object)?;
        let known = self.0.entry((class, name));
        let (memory, layout, oops) = (&mut *read.memory, read.layout, read.oops);
        *known.or_insert_with(|| oops.field(memory, layout, class, name))
    }

    /// What an object's field refers to.
    pub(crate) fn follow<S: Source>(
        &mut self,
        read: &mut Reading<'_, S>,
        object: u64,
        name: &'static str,
    ) -> Option<u64> {
        let field = self.field(read, object, name)?;
        read.oops.reference(read.memory, object.checked_add(field)?)
    }

    /// The number in an object's field.
    pub(crate) fn number<S: Source>(
        &mut self,
        read: &mut Reading<'_, S>,
        object: u64,
        name: &'static str,
    ) -> Option<u32> {
        let field = self.field(read, object, name)?;
        read.memory.int(object.checked_add(field)?)
    }

    /// The thread that has a lock, if the lock notes that.
    pub(crate) fn owner<S: Source>(&mut self, read: &mut Reading<'_, S>, lock: u64) -> Option<u64> {
        OWNERS
            .into_iter()
            .find_map(|field| self.follow(read, lock, field))
    }

    /// What stands in a queue, so many at most.
    pub(crate) fn queue<S: Source>(
        &mut self,
        read: &mut Reading<'_, S>,
        queue: u64,
        most: usize,
    ) -> Vec<u64> {
        for begin in ["head", "first"] {
            let Some(mut node) = self.follow(read, queue, begin) else {
                continue;
            };
            let mut found = Vec::new();
            // The first node may have been taken out already, and the end of a list that is taken from refers to itself.
            for _ in 0..=most {
                found.extend(self.follow(read, node, "item"));
                match self.follow(read, node, "next") {
                    Some(next) if next != node => node = next,
                    _ => break,
                }
            }
            found.truncate(most);
            return found;
        }
        let array = ["items", "queue"]
            .into_iter()
            .find_map(|field| self.follow(read, queue, field));
        let Some(array) = array.and_then(|array| read.oops.references(read.memory, array)) else {
            return Vec::new();
        };
        (0..array.length.min(PLACES_MAX))
            .filter_map(|place| read.oops.reference(read.memory, array.place(place)?))
            .take(most)
            .collect()
    }

    /// Adds what a set has, whose entries are the keys of a concurrent hash table.
    pub(crate) fn set<S: Source>(
        &mut self,
        read: &mut Reading<'_, S>,
        set: u64,
        most: usize,
        into: &mut Vec<u64>,
    ) {
        let map = self.follow(read, set, "map").unwrap_or(set);
        let Some(table) = self.follow(read, map, "table") else {
            return;
        };
        let Some(array) = read.oops.references(read.memory, table) else {
            return;
        };
        for place in 0..array.length.min(PLACES_MAX) {
            let mut next = array
                .place(place)
                .and_then(|at| read.oops.reference(read.memory, at));
            for _ in 0..ENTRIES_MAX {
                let Some(node) = next else { break };
                if into.len() >= most {
                    return;
                }
                // A place with many entries has a tree, whose nodes are a list, too.
                if let Some(first) = self.follow(read, node, "first") {
                    next = Some(first);
                    continue;
                }
                into.extend(self.follow(read, node, "key"));
                next = self.follow(read, node, "next");
            }
        }
    }
}
