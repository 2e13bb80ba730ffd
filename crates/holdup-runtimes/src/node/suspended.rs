//! Asynchronous functions of a Node.js program that stand at an `await`.
//!
//! Such a function has no thread, and nothing of libuv need refer to it: a promise that nobody settles is a few objects on the heap. In: where
//! the process may have its heap. Out: each function that waits, with those that await it, and what it called. V8 has a reaction for each
//! promise that is awaited; it gets another map as soon as the promise is settled. So a sweep of the heap looks for reactions, and each leads
//! to the function that goes on with it.

use super::Engine;
use super::objects::Object;
use super::reached;
use crate::interpreted::Interpreted;
use crate::memory::{PAGE, Source};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

/// Memory that is swept, bytes; of a process with more nothing is said.
const SWEPT_MAX: u64 = 192 << 20;

/// Words that may be a map and are looked at, and reactions.
const MAPS_MAX: usize = 4096;
const REACTIONS_MAX: usize = 20_000;

/// Maps of reactions. V8 has one; each word of the heap is compared with all of them, and a hostile heap has as many as it likes.
const REACTION_MAPS_MAX: usize = 4;

/// Functions that wait and are listed.
const LISTED_MAX: usize = 1_000;

/// Where a reaction has what is called once the promise is settled.
const HANDLER: u64 = 24;

/// Words of the scope of V8's own handler, among which the function that goes on is.
const SCOPE_FIRST: u64 = 16;
const SCOPE_WORDS: u64 = 6;

/// Offsets in the state of an asynchronous function: where it goes on, and its registers.
const GOES_ON: u64 = 64;
const REGISTERS: u64 = 72;

/// Registers that are looked at.
const REGISTERS_MAX: u64 = 256;

/// Where an array has its length, and its first word.
const LENGTH: u64 = 8;
const FIRST: u64 = 16;

const WORD: u64 = 8;

/// Characters of the source that are read where a function waits.
const EXPRESSION_MAX: u64 = 160;

/// The keyword that such a place begins with.
const AWAIT: &str = "await";

/// What a function called, and awaits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Awaited {
    /// As its source has it: `pool.acquire`.
    pub expression: String,
    /// The file or module of Node.js in which that function is.
    pub file: Option<String>,
}

/// A function that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspended {
    /// Tells it and its wait from others.
    pub id: u64,
    /// Itself and those that await it, innermost first.
    pub frames: Vec<Interpreted>,
    /// What it called.
    pub awaited: Option<Awaited>,
}

/// All of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllSuspended {
    /// Those that were read. None of them awaits another one.
    pub all: Vec<Suspended>,
    /// Those beyond the limit.
    pub left_out: u64,
}

impl<S: Source> Engine<S> {
    /// Functions of the program that wait, by where the process may have its heap; `None` where that is too much to be read.
    pub fn suspended(&mut self, heap: &[Range<u64>], own: fn(&str) -> bool) -> Option<AllSuspended> {
        self.memory.forget();
        let size = heap.iter().map(|range| range.end.saturating_sub(range.start));
        if size.fold(0, u64::saturating_add) > SWEPT_MAX {
            return None;
        }
        let mut waiting: BTreeMap<u64, (Object, u64)> = BTreeMap::new();
        for reaction in self.reactions(heap)? {
            if let Some(function) = self.goes_on(reaction) {
                waiting.insert(function.address(), (function, reaction.address()));
            }
        }
        let mut found = Vec::new();
        let mut awaiting: HashSet<Object> = HashSet::new();
        let mut left_out = 0;
        for (function, reaction) in waiting.into_values() {
            if found.len() >= LISTED_MAX {
                left_out += 1;
                continue;
            }
            let chain = reached::chain(&mut self.objects(), function, own);
            // What is of a library counts with the function that awaits it.
            let Some(((_, first), rest)) = chain.split_first() else {
                continue;
            };
            if *first != function {
                continue;
            }
            awaiting.extend(rest.iter().map(|(_, object)| *object));
            found.push((function, reaction, chain));
        }
        let mut called: HashMap<(Object, u64), Option<Awaited>> = HashMap::new();
        let mut all = Vec::new();
        for (function, reaction, chain) in found {
            if awaiting.contains(&function) {
                continue;
            }
            let place = reached::awaits_at(&mut self.objects(), function);
            let awaited = place.and_then(|(shared, at)| {
                let known = called.get(&(shared, at)).cloned();
                known.unwrap_or_else(|| {
                    let awaited = self.awaited_at(function, shared, at);
                    called.insert((shared, at), awaited.clone());
                    awaited
                })
            });
            let frames = chain.into_iter();
            all.push(Suspended {
                id: function.address() ^ reaction.rotate_left(32),
                frames: frames
                    .map(|(frame, _)| Interpreted { frame, entry: false })
                    .collect(),
                awaited,
            });
        }
        Some(AllSuspended { all, left_out })
    }

    /// Reactions of promises that nobody has settled.
    fn reactions(&mut self, heap: &[Range<u64>]) -> Option<Vec<Object>> {
        let kind = self.constants.links?.reaction;
        let at = self.constants.instance_type;
        let mut candidates = Vec::new();
        // A map may begin on the page before.
        let within = usize::try_from(at % WORD).ok()?;
        for range in heap {
            self.memory.sweep(range.clone(), &mut |start, page: &[u8; PAGE]| {
                for (word, bytes) in page.as_chunks::<8>().0.iter().enumerate() {
                    let its = bytes
                        .get(within..within + 2)
                        .map(|two| u16::from_le_bytes([two[0], two[1]]));
                    if its == Some(kind) && candidates.len() < MAPS_MAX {
                        let address = start + word as u64 * WORD + within as u64;
                        candidates.extend(address.checked_sub(at));
                    }
                }
            });
        }
        let maps: Vec<u64> = candidates
            .into_iter()
            .filter_map(|address| Object::of(address | 1).filter(|map| self.is_map(*map)))
            .map(|map| map.address() | 1)
            .take(REACTION_MAPS_MAX)
            .collect();
        let mut found = Vec::new();
        for range in heap.iter().filter(|_| !maps.is_empty()) {
            self.memory.sweep(range.clone(), &mut |start, page: &[u8; PAGE]| {
                for (word, bytes) in page.as_chunks::<8>().0.iter().enumerate() {
                    if maps.contains(&u64::from_le_bytes(*bytes)) && found.len() < REACTIONS_MAX {
                        found.extend(Object::of((start + word as u64 * WORD) | 1));
                    }
                }
            });
        }
        Some(found)
    }

    /// Whether an object is a map: the map of all maps is its own.
    fn is_map(&mut self, object: Object) -> bool {
        let mut objects = self.objects();
        let Some(of) = objects.reference(object, 0) else {
            return false;
        };
        objects.reference(of, 0) == Some(of)
    }

    /// The asynchronous function that goes on with a reaction.
    fn goes_on(&mut self, reaction: Object) -> Option<Object> {
        let links = self.constants.links?;
        let mut objects = self.objects();
        let handler = objects.reference(reaction, HANDLER)?;
        if !objects.is(handler, links.closure) {
            return None;
        }
        let scope = objects.reference(handler, links.context)?;
        let function = (0..SCOPE_WORDS).find_map(|word| {
            let found = objects.reference(scope, SCOPE_FIRST + word * WORD)?;
            objects.is(found, links.async_function).then_some(found)
        })?;
        let at = objects.field(function, GOES_ON)?;
        // One that runs, or is over, has a number below.
        objects.small(at).filter(|at| *at >= 0).map(|_| function)
    }

    /// What a function called where it waits, at a position of its script.
    fn awaited_at(&mut self, function: Object, shared: Object, position: u64) -> Option<Awaited> {
        let closure_kind = self.constants.links?.closure;
        let shift = self.constants.smi_shift;
        let mut objects = self.objects();
        let script = objects.function(shared)?.script?;
        let begin = position.saturating_sub(EXPRESSION_MAX);
        let before = objects.source(script, begin, position - begin)?;
        let behind = objects.source(script, position, EXPRESSION_MAX)?;
        let expression = called_in(&before, &behind)?;
        let name = expression.rsplit('.').next().unwrap_or(&expression).to_owned();
        let mut file = None;
        if let Some(registers) = objects.reference(function, REGISTERS) {
            let length = objects.field(registers, LENGTH)? >> shift;
            for at in 0..length.min(REGISTERS_MAX) {
                let Some(closure) = objects.reference(registers, FIRST + at * WORD) else {
                    continue;
                };
                let shared = objects
                    .is(closure, closure_kind)
                    .then(|| objects.shared(closure))
                    .flatten();
                let called = shared.and_then(|shared| objects.function(shared));
                let Some(called) = called.filter(|called| called.name == name) else {
                    continue;
                };
                file = called.script.and_then(|script| objects.file(script));
                break;
            }
        }
        Some(Awaited { expression, file })
    }
}

/// The function whose result is awaited, as the source names it, by what is before a position and behind it: that is where the keyword is, or
/// what is called. `None` where nothing that has a name is called.
fn called_in(before: &str, behind: &str) -> Option<String> {
    let of_name = |one: char| one.is_alphanumeric() || matches!(one, '_' | '$' | '.' | '#' | '?');
    let text = match behind.strip_prefix(AWAIT) {
        Some(rest) => rest.strip_prefix(char::is_whitespace)?.trim_start().to_owned(),
        None => {
            let from = before.trim_end_matches(of_name);
            let keyword = from.trim_end();
            let outside = keyword.strip_suffix(AWAIT)?;
            if outside.ends_with(of_name) || keyword.len() == from.len() {
                return None;
            }
            format!("{}{behind}", &before[from.len()..])
        }
    };
    let end = text.find(|one: char| !of_name(one))?;
    let (name, rest) = text.split_at(end);
    (!name.is_empty() && rest.starts_with('(')).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::called_in;

    #[test]
    fn what_is_awaited_is_the_call_behind_the_keyword() {
        for (before, behind, called) in [
            ("", "await pool.acquire();\n", Some("pool.acquire")),
            (
                "x = ",
                "await this.#pool?.connect(x)",
                Some("this.#pool?.connect"),
            ),
            ("x = await ", "once(socket, 'drain')", Some("once")),
            ("x = await names.", "resolve4(host)", Some("names.resolve4")),
            ("", "await\n  fetch(url)", Some("fetch")),
            ("", "await promise;", None),
            ("", "await new Promise((done) => 1)", None),
            ("await ", "new Promise((done) => 1)", None),
            ("", "awaited(1)", None),
            ("xawait ", "f(1)", None),
            ("x = pool.", "acquire()", None),
            ("await f(", "g(1))", None),
            ("", "await (f())", None),
            ("", "await cut.off", None),
        ] {
            assert_eq!(called_in(before, behind).as_deref(), called, "{before}|{behind}");
        }
    }
}
