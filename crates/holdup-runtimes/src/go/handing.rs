//! Who waits for what a goroutine waits for: a library's goroutine reads a connection, and hands the answer to the one that asked.
//!
//! In: all goroutines, and which code is the application's. Out: for each goroutine that waits for a descriptor, where it stands, and,
//! unless it stands in the application's code itself, the goroutine that does and waits for a channel which the first refers to, or
//! which another one refers to that waits for a channel of the first. A goroutine refers to what its stack, or a structure that its stack refers to, has
//! the address of. Where several goroutines of the application do so in different places, none is taken.

use super::{Function, Goroutine, Goroutines, Program};
use crate::memory::{PAGE, Source};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Goroutines between a descriptor and the application's, at most.
const HANDS_MAX: usize = 4;

/// Goroutines that wait for channels of one goroutine and are followed.
const FOLLOWED_MAX: usize = 8;

/// Goroutines of one look whose references are followed; each takes some 20 µs.
const SEARCHED_MAX: usize = 64;

/// The same where all goroutines are asked once whether they refer to a channel.
pub(super) const ASKED_MAX: usize = 128;

/// Words of a stack that are looked at, from the innermost, and of structures that it refers to, and of those that these refer to.
pub(super) const STACK_WORDS: u64 = 512;
const STRUCTURE_WORDS: [usize; 2] = [64, 16];

/// Structures that one goroutine refers to and that are looked at, directly and by others.
const STRUCTURES_MAX: usize = 256;

/// Below this address there is nothing that a pointer can refer to.
const LOWEST: u64 = 1 << 16;

/// The runtime's words for a sleep.
const SLEEPS: &str = "sleep";

/// Whose a function is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The application's.
    Application,
    /// A library's or the runtime's.
    Library,
    /// Of a library, and who waits in it has no work.
    WithoutWork,
}

/// What a goroutine waits for that no other goroutine gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaits {
    /// A descriptor.
    Descriptor(u32),
    /// A timer.
    Timer,
}

/// A goroutine that waits for a descriptor or a timer, and who waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What it waits for.
    pub awaits: Awaits,
    /// Where they stand, the one that waits for that first, each innermost first.
    pub stacks: Vec<Vec<u64>>,
    /// Whether one of them stands in the application's code, and the first has work.
    pub asks: bool,
}

impl<S: Source> Program<S> {
    /// For each goroutine that waits for a descriptor or a timer, who waits for it. `whose`: whose a function is.
    pub fn lines(&mut self, all: &Goroutines, whose: impl Fn(&Function) -> Whose) -> Vec<Line> {
        let mut waiters: HashMap<u64, Vec<usize>> = HashMap::new();
        for (at, one) in all.all.iter().enumerate() {
            for channel in &one.awaited.channels {
                waiters.entry(*channel).or_default().push(at);
            }
        }
        let mut left = SEARCHED_MAX;
        let mut lines = Vec::new();
        for (first, one) in all.all.iter().enumerate() {
            let awaits = match one.awaited.descriptor {
                Some(descriptor) => Awaits::Descriptor(descriptor),
                None if one.reason.as_deref() == Some(SLEEPS) => Awaits::Timer,
                None => continue,
            };
            let idle = self.stands_in(one, &whose, Whose::WithoutWork).is_some();
            let line = match idle {
                true => vec![first],
                false => self.line(&all.all, first, &waiters, &whose, &mut left),
            };
            let last = line.last().map(|at| &all.all[*at]);
            let asks = last.and_then(|last| self.stands_in(last, &whose, Whose::Application));
            lines.push(Line {
                awaits,
                asks: !idle && asks.is_some(),
                stacks: line.into_iter().map(|at| all.all[at].addresses.clone()).collect(),
            });
        }
        lines
    }

    /// Notes which channels, of those that goroutines with some reasons wait for, each other goroutine refers to. `waits`: whether a reason is
    /// one of those.
    pub fn refer(&mut self, all: &mut Goroutines, waits: impl Fn(&str) -> bool) {
        let waiting = all
            .all
            .iter()
            .filter(|one| one.reason.as_deref().is_some_and(&waits));
        let channels: BTreeSet<u64> = waiting
            .flat_map(|one| one.awaited.channels.iter().copied())
            .collect();
        if channels.is_empty() {
            return;
        }
        let parked = all.all.iter_mut().filter(|one| !one.addresses.is_empty());
        for one in parked.take(ASKED_MAX) {
            let mut referred = BTreeSet::new();
            self.references(one, &STRUCTURE_WORDS[..1], &mut |word| {
                let known = channels.contains(&word);
                if known {
                    referred.insert(word);
                }
                known
            });
            one.refers.extend(referred);
        }
    }

    /// From a goroutine to the first of the application's that waits for it; itself alone where there is none.
    fn line(
        &mut self,
        all: &[Goroutine],
        first: usize,
        waiters: &HashMap<u64, Vec<usize>>,
        whose: &impl Fn(&Function) -> Whose,
        left: &mut usize,
    ) -> Vec<usize> {
        if self.stands_in(&all[first], whose, Whose::Application).is_some() {
            return vec![first];
        }
        let mut lines = vec![vec![first]];
        let mut met: HashSet<usize> = HashSet::from([first]);
        for _ in 0..HANDS_MAX {
            let mut next: Vec<Vec<usize>> = Vec::new();
            for line in &lines {
                let Some(last) = line.last() else { continue };
                if *left == 0 {
                    return vec![first];
                }
                *left -= 1;
                let waiting = self.waiting_for(&all[*last], waiters);
                let mut new: Vec<usize> = waiting.into_iter().filter(|at| met.insert(*at)).collect();
                new.sort_unstable();
                next.extend(new.into_iter().take(FOLLOWED_MAX).map(|at| {
                    let mut longer = line.clone();
                    longer.push(at);
                    longer
                }));
            }
            let asking = next.iter().filter_map(|line| {
                let last = &all[*line.last()?];
                let place = self.stands_in(last, whose, Whose::Application)?;
                Some((place, line))
            });
            let mut asking: Vec<(u64, &Vec<usize>)> = asking.collect();
            asking.sort();
            asking.dedup_by_key(|(place, _)| *place);
            match asking.as_slice() {
                [] => lines = next,
                [(_, line)] => return (*line).clone(),
                _ => return vec![first],
            }
            lines.truncate(FOLLOWED_MAX);
        }
        vec![first]
    }

    /// The innermost address at which a goroutine stands in such a function.
    pub(super) fn stands_in(
        &mut self,
        one: &Goroutine,
        whose: &impl Fn(&Function) -> Whose,
        wanted: Whose,
    ) -> Option<u64> {
        let (table, memory) = (self.table.as_mut()?, &mut self.memory);
        let mut places = one.addresses.iter().enumerate();
        let place = places.find(|(at, address)| {
            // A return address may be behind the last byte of a call that is the function's end.
            let within = address.saturating_sub(u64::from(*at > 0));
            let function = table.function(memory, within);
            function.is_some_and(|function| whose(function) == wanted)
        });
        place.map(|(_, address)| *address)
    }

    /// The goroutines that wait for a channel which this one refers to.
    fn waiting_for(&mut self, one: &Goroutine, waiters: &HashMap<u64, Vec<usize>>) -> HashSet<usize> {
        let mut found = HashSet::new();
        self.references(one, &STRUCTURE_WORDS, &mut |word| match waiters.get(&word) {
            Some(waiting) => {
                found.extend(waiting.iter().copied());
                true
            }
            None => false,
        });
        found
    }

    /// Gives each word of a goroutine's stack, and of structures that it refers to; `is_known`: whether it is the address of a channel,
    /// and not of a structure to be looked at.
    pub(super) fn references(
        &mut self,
        one: &Goroutine,
        levels: &[usize],
        is_known: &mut impl FnMut(u64) -> bool,
    ) {
        let Some((sp, high)) = self.stack_of(one.at) else {
            return;
        };
        // What it waits for itself is on its stack as well, and handed to it by another.
        let awaits = |word: &u64| one.awaited.channels.contains(word);
        let in_stack = |word: u64| (sp..high).contains(&word) || word == one.at;
        let end = high.min(sp.saturating_add(STACK_WORDS * 8));
        let mut words: BTreeSet<u64> = (sp..end)
            .step_by(8)
            .map_while(|at| self.memory.word(at))
            .filter(|word| !awaits(word))
            .collect();
        let known = words.len();
        words.retain(|word| !is_known(*word));
        if words.len() < known {
            // What is nearer counts.
            return;
        }
        for (level, count) in levels.iter().enumerate() {
            let structures: Vec<u64> = words
                .iter()
                .copied()
                .filter(|word| *word >= LOWEST && word % 8 == 0 && !in_stack(*word))
                .take(STRUCTURES_MAX)
                .collect();
            self.memory.ahead(structures.iter().copied());
            words.clear();
            let (mut found, last) = (false, level + 1 == levels.len());
            for structure in structures {
                for word in self.words(structure, *count) {
                    if awaits(&word) {
                        continue;
                    }
                    if is_known(word) {
                        found = true;
                    } else if !last {
                        words.insert(word);
                    }
                }
            }
            if found {
                return;
            }
        }
    }

    /// So many words from an address on, or those up to the end of its page.
    fn words(&mut self, at: u64, count: usize) -> Vec<u64> {
        let left = PAGE - usize::try_from(at % PAGE as u64).unwrap_or(0);
        let mut bytes = vec![0; (count * 8).min(left)];
        let Some(()) = self.memory.read(at, &mut bytes) else {
            return Vec::new();
        };
        let words = bytes.chunks_exact(8);
        words
            .map(|word| u64::from_le_bytes(word.try_into().expect("the chunk has eight bytes")))
            .collect()
    }
}
