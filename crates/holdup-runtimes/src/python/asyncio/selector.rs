//! Which task awaits which descriptor.
//!
//! A loop's selector has, for each descriptor, the callbacks for reading and writing. What such a callback is bound to leads to the future
//! that it will set, and a task awaits that. In: tasks with the futures that they await. Out: their descriptors.

use super::super::Interpreter;
use super::super::objects::BOUND_TO;
use super::{DIGITS, FUTURE, Found, REFERS_TO, TASK};
use crate::memory::Source;
use std::collections::{HashMap, HashSet, VecDeque};

/// Loops and descriptors of each that are looked at.
const LOOPS_MAX: usize = 16;
const DESCRIPTORS_MAX: usize = 4096;

/// Objects that are looked at from one callback, how far they are from it, and objects of all.
const OBJECTS_MAX: usize = 256;
const STEPS_MAX: u32 = 8;
const OBJECTS_OF_ALL_MAX: usize = 100_000;

/// Of a tuple: how many, and the first.
const COUNT: u64 = 16;
const FIRST: u64 = 24;

/// Of a deque: its first block, and the place of the first member there; members of a block, before which is a pointer to another one.
const DEQUE_BLOCK: u64 = 24;
const DEQUE_INDEX: u64 = 40;
const DEQUE_MEMBERS: u64 = 64;

/// Members of a tuple, and words of a callback's handle, that are followed.
const MEMBERS_MAX: u64 = 8;

/// What a selector has of a descriptor: its number and the callbacks, by their places.
const NUMBER: u64 = 1;
const CALLBACKS: u64 = 3;

impl<S: Source> Interpreter<S> {
    /// Finds the descriptors that tasks await.
    pub(super) fn find_descriptors(&mut self, found: &mut [Found]) {
        let mut awaited: HashMap<u64, usize> = HashMap::new();
        let mut loops = HashSet::new();
        for (at, one) in found.iter().enumerate() {
            if one.future != 0 && one.task.awaits.is_none() && one.chain.lock.is_none() {
                awaited.insert(one.future, at);
                loops.insert(one.of_loop);
            }
        }
        let mut left = OBJECTS_OF_ALL_MAX;
        for of_loop in loops.into_iter().take(LOOPS_MAX) {
            for (descriptor, callbacks) in self.selected(of_loop).unwrap_or_default() {
                let future = self.leads_to(callbacks, of_loop, &awaited, &mut left);
                if let Some(one) = future.and_then(|at| found.get_mut(at)) {
                    one.task.descriptor = Some(descriptor);
                }
            }
        }
    }

    /// The descriptors of a loop's selector, and the tuples of their callbacks.
    fn selected(&mut self, of_loop: u64) -> Option<Vec<(u32, u64)>> {
        let selector = self.attribute(of_loop, "_selector")?;
        let keys = self.attribute(selector, "_fd_to_key")?;
        let mut selected = Vec::new();
        for (_, key) in self.items(keys)?.into_iter().take(DESCRIPTORS_MAX) {
            let number = self.at(key, FIRST + NUMBER * 8)?;
            let number = self.memory.int(number.checked_add(DIGITS)?)?;
            selected.push((number, self.at(key, FIRST + CALLBACKS * 8)?));
        }
        Some(selected)
    }

    /// The place of the first awaited future that callbacks lead to.
    fn leads_to(
        &mut self,
        callbacks: u64,
        of_loop: u64,
        awaited: &HashMap<u64, usize>,
        left: &mut usize,
    ) -> Option<usize> {
        let mut met = HashSet::from([of_loop]);
        let mut queue = VecDeque::from([(callbacks, 0)]);
        while let Some((object, steps)) = queue.pop_front() {
            if object == 0 || !met.insert(object) {
                continue;
            }
            if met.len() > OBJECTS_MAX || *left == 0 {
                return None;
            }
            *left -= 1;
            if let Some(at) = awaited.get(&object) {
                return Some(*at);
            }
            if steps < STEPS_MAX {
                let next = self.next_to(object).unwrap_or_default();
                queue.extend(next.into_iter().map(|object| (object, steps + 1)));
            }
        }
        None
    }

    /// The first members of a deque, those of its first block: a transport has there who waits for room.
    fn queued(&mut self, deque: u64) -> Option<Vec<u64>> {
        let (count, block) = (self.at(deque, COUNT)?, self.at(deque, DEQUE_BLOCK)?);
        let first = self.at(deque, DEQUE_INDEX)?;
        let last = first.checked_add(count.min(MEMBERS_MAX))?.min(DEQUE_MEMBERS);
        (first..last)
            .map(|number| self.at(block, (number + 1) * 8))
            .collect()
    }

    /// Objects to which one refers, as far as callbacks lead through them.
    fn next_to(&mut self, object: u64) -> Option<Vec<u64>> {
        let kind = self.type_name(object)?;
        match kind.as_str() {
            "tuple" => {
                let count = self.at(object, COUNT)?.min(MEMBERS_MAX);
                (0..count)
                    .map(|number| self.at(object, FIRST + number * 8))
                    .collect()
            }
            // Its variables are no attributes, but words.
            "Handle" | "TimerHandle" => (2..2 + MEMBERS_MAX)
                .map(|word| self.at(object, word * 8))
                .collect(),
            "method" | "builtin_function_or_method" => Some(vec![self.at(object, BOUND_TO)?]),
            "collections.deque" => self.queued(object),
            _ if kind.starts_with("weakref") => Some(vec![self.at(object, REFERS_TO)?]),
            // Who waits for something else; and what is everybody's.
            TASK | FUTURE | "module" | "type" | "function" | "coroutine" | "str" | "bytes" | "int"
            | "dict" | "NoneType" => None,
            _ => {
                let attributes = self.attributes(object)?;
                Some(attributes.into_iter().map(|(_, value)| value).collect())
            }
        }
    }
}
