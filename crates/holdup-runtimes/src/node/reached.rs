//! Which function of the program waits for something that libuv does.
//!
//! In: the object that JavaScript has of a request or a handle, and which files are the program's. Out: frames: the function of the program that
//! is called or goes on when it is done, and those that await it, each with file and line. Objects refer to what is called: a callback, or a
//! promise whose reactions lead to the asynchronous function that awaits it, as V8's own stacks of asynchronous functions have it. The
//! nearest one counts. Scopes of whole modules are not followed, for everything refers to them.

use super::constants::Links;
use super::listened;
use super::objects::{Object, Objects};
use super::positions;
use crate::memory::Source;
use holdup_evidence::{Frame, Language};
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// Objects that are looked at for one request.
const OBJECTS_MAX: usize = 4096;

/// Words of an object or an array that are looked at.
const WORDS_MAX: u64 = 512;

/// Functions of the program in one chain.
const CHAIN_MAX: usize = 16;

/// Functions that an unnamed one may stand in, one in another.
const NESTED_MAX: usize = 8;

/// Characters from the begin of a function to a listener in it that are looked through.
const AROUND_MAX: u64 = 65_536;

/// Variables of a scope that is followed.
const VARIABLES_MAX: u64 = 64;

const WORD: u64 = 8;

/// Offsets in the object of an asynchronous function that waits: the function, where in its bytecode it stands, and the promise of its result.
const FUNCTION: u64 = 24;
const PLACE: u64 = 48;
const PROMISE: u64 = 80;

/// Where arrays and scopes have their length, and their first word; and what a scope has there before its variables: a description,
/// and the scope around it.
const LENGTH: u64 = 8;
const FIRST: u64 = 16;
const SCOPE: u64 = 16;
const AROUND: u64 = 24;
const BEFORE_VARIABLES: u64 = 2;

/// An array of properties keeps its length in the lowest bits.
const PROPERTIES: u64 = 0x3ff;

/// Kinds of scopes are numbered in the order of their names: those of the engine itself and of scripts are the last but one and two.
const KINDS_OF_SCOPES: u16 = 10;
const ENGINE: u16 = 7;
const SCRIPT: u16 = 8;

/// Words at the beginning of what closures share, behind the map, among which the code is, and those among which a function around is.
const CODE_WORDS: u64 = 3;
const SHARED_WORDS: u64 = 7;

/// Words of code that is compiled, among which its bytecode is.
const COMPILED_WORDS: u64 = 12;

/// In what is kept of code that was never run: a name, where it begins and where it ends.
const UNRUN_NAME: u64 = 8;
const UNRUN_BEGINS: u64 = 16;
const UNRUN_ENDS: u64 = 20;

/// Words of the description of a scope in which that of the scope around it is looked for.
const DESCRIBED_WORDS: u64 = 96;

/// Code of WebAssembly, whose scripts have such names.
const WEB_ASSEMBLY: &str = "wasm:";

/// A function that was reached.
struct Reached {
    frame: Frame,
    /// What it was reached by.
    object: Object,
    /// Whether it waits itself, and is not only called.
    awaits: bool,
}

/// Who waits for an object, innermost first. `own`: whether a file is the program's.
pub(super) fn who<S: Source>(
    objects: &mut Objects<'_, S>,
    object: Object,
    own: fn(&str) -> bool,
) -> Vec<Arc<Frame>> {
    let chain = chain(objects, object, own).into_iter();
    chain.map(|(frame, _)| frame).collect()
}

/// Who waits for a request, innermost first: where the nearest is a listener of what was opened, with the line at which that is done.
pub(super) fn begun<S: Source>(
    objects: &mut Objects<'_, S>,
    object: Object,
    own: fn(&str) -> bool,
) -> Vec<Arc<Frame>> {
    let mut chain = chain(objects, object, own);
    if let Some((frame, listener)) = chain.first_mut()
        && let Some(line) = made_at(objects, *listener, own)
    {
        *frame = Arc::new(Frame {
            line: Some(line),
            ..Frame::clone(frame)
        });
    }
    chain.into_iter().map(|(frame, _)| frame).collect()
}

/// The line where the object is made that an unnamed function listens to, in the function around it.
fn made_at<S: Source>(objects: &mut Objects<'_, S>, listener: Object, own: fn(&str) -> bool) -> Option<u32> {
    let links = objects.constants.links?;
    let shared = objects
        .shared(listener)
        .filter(|_| objects.is(listener, links.closure))?;
    let function = objects.function(shared).filter(|one| one.name == UNNAMED)?;
    let script = function.script?;
    let mut search = Search {
        objects,
        links,
        own,
        met: HashSet::new(),
    };
    let begins = match function.begins.filter(|begins| *begins > 0) {
        Some(begins) => begins,
        None => search.unrun(shared)?,
    };
    let around = search.around_of_function(shared)?;
    let from = search.objects.scope(around)?.begins;
    // The outermost is a whole module.
    let from = from.filter(|from| (1..begins).contains(from) && begins - from <= AROUND_MAX)?;
    let before = search.objects.source(script, from, begins - from)?;
    let at = listened::made(&before)?;
    let at = u64::try_from(before[..at].encode_utf16().count()).ok()?;
    search.objects.line(script, from + at)
}

/// The same, each with the function or its state that it was reached by.
pub(super) fn chain<S: Source>(
    objects: &mut Objects<'_, S>,
    object: Object,
    own: fn(&str) -> bool,
) -> Vec<(Arc<Frame>, Object)> {
    let Some(links) = objects.constants.links else {
        return Vec::new();
    };
    let mut search = Search {
        objects,
        links,
        own,
        met: HashSet::new(),
    };
    let mut frames = Vec::new();
    let mut begin = vec![object];
    while frames.len() < CHAIN_MAX {
        let Some(reached) = search.nearest(&begin) else {
            break;
        };
        begin = search.behind(&reached);
        frames.push((Arc::new(reached.frame), reached.object));
    }
    frames
}

/// The function of an asynchronous function that waits, as all closures of it share it, and where in its script it stands, characters.
pub(super) fn awaits_at<S: Source>(objects: &mut Objects<'_, S>, object: Object) -> Option<(Object, u64)> {
    let links = objects.constants.links?;
    let closure = objects.reference(object, FUNCTION)?;
    let shared = objects.shared(closure)?;
    let mut search = Search {
        objects,
        links,
        own: |_| true,
        met: HashSet::new(),
    };
    Some((shared, search.place(object, shared)?))
}

/// A search from object to object, the nearest first.
struct Search<'a, 'b, S> {
    objects: &'a mut Objects<'b, S>,
    links: Links,
    own: fn(&str) -> bool,
    met: HashSet<Object>,
}

impl<S: Source> Search<'_, '_, S> {
    /// The nearest function of the program.
    fn nearest(&mut self, begin: &[Object]) -> Option<Reached> {
        let mut next: VecDeque<Object> = begin
            .iter()
            .copied()
            .filter(|one| self.met.insert(*one))
            .collect();
        while let Some(object) = next.pop_front() {
            if self.met.len() >= OBJECTS_MAX {
                return None;
            }
            let Some(kind) = self.objects.kind(object) else {
                continue;
            };
            if let Some(reached) = self.function(object, kind) {
                return Some(reached);
            }
            for word in self.words(object, kind) {
                if let Some(found) = Object::of(word)
                    && self.met.insert(found)
                {
                    next.push_back(found);
                }
            }
        }
        None
    }

    /// What leads from a function to who awaits it.
    fn behind(&mut self, reached: &Reached) -> Vec<Object> {
        if reached.awaits {
            return self
                .objects
                .reference(reached.object, PROMISE)
                .into_iter()
                .collect();
        }
        self.variables(reached.object, true)
            .into_iter()
            .filter_map(Object::of)
            .collect()
    }

    /// The function of the program that an object is, or that goes on with it.
    fn function(&mut self, object: Object, kind: u16) -> Option<Reached> {
        let awaits = kind == self.links.async_function;
        if !awaits && kind != self.links.closure {
            return None;
        }
        let closure = match awaits {
            true => self.objects.reference(object, FUNCTION)?,
            false => object,
        };
        let shared = self.objects.shared(closure)?;
        let file = self.file(shared)?;
        if !(self.own)(&file) || file.starts_with(WEB_ASSEMBLY) {
            return None;
        }
        let function = self.objects.function(shared)?;
        let place = awaits.then(|| self.place(object, shared)).flatten();
        let begins = function
            .begins
            .filter(|begins| *begins > 0)
            .or_else(|| self.unrun(shared));
        let line = place
            .or(begins)
            .and_then(|at| self.objects.line(function.script?, at));
        let frame = Frame {
            symbol: Some(self.name(shared, function.name)),
            file: Some(file),
            line,
            language: Language::JavaScript,
            ..Frame::default()
        };
        Some(Reached {
            frame,
            object,
            awaits,
        })
    }

    fn file(&mut self, shared: Object) -> Option<String> {
        let script = self.objects.function(shared)?.script?;
        self.objects.file(script)
    }

    /// Where an asynchronous function stands, characters from the beginning of its script.
    fn place(&mut self, object: Object, shared: Object) -> Option<u64> {
        let word = self.objects.field(object, PLACE)?;
        let place = u64::try_from(self.objects.small(word)?).ok()?;
        let offset = place.checked_sub(self.objects.constants.bytecode_data.checked_sub(1)?)?;
        let table = self.bytecode(shared)?;
        positions::position(&table, offset)
    }

    /// The table of positions of a function.
    fn bytecode(&mut self, shared: Object) -> Option<Vec<u8>> {
        for word in 1..=CODE_WORDS {
            let Some(code) = self.objects.reference(shared, word * WORD) else {
                continue;
            };
            if let Some(table) = self.objects.table(code) {
                return Some(table);
            }
            // Compiled code keeps its bytecode.
            for inner in 1..=COMPILED_WORDS {
                let found = self.objects.reference(code, inner * WORD);
                if let Some(table) = found.and_then(|found| self.objects.table(found)) {
                    return Some(table);
                }
            }
        }
        None
    }

    /// Where a function begins that was never run.
    fn unrun(&mut self, shared: Object) -> Option<u64> {
        for word in 1..=CODE_WORDS {
            let Some(data) = self.objects.reference(shared, word * WORD) else {
                continue;
            };
            let name = self.objects.reference(data, UNRUN_NAME);
            if name.and_then(|name| self.objects.text(name)).is_none() {
                continue;
            }
            let begins = self.objects.memory.int(data.at(UNRUN_BEGINS)?)?;
            let ends = self.objects.memory.int(data.at(UNRUN_ENDS)?)?;
            if begins < ends {
                return Some(u64::from(begins));
            }
        }
        None
    }

    /// The name of a function; of one without a name, that of the function in which it is written, where V8 keeps its scope: it
    /// leaves out those of which no variable is used further in.
    fn name(&mut self, shared: Object, own: String) -> String {
        if own != UNNAMED {
            return own;
        }
        let mut around = self.around_of_function(shared);
        // Whatever is written around something begins before it: a word of a neighbour in memory is no scope around this one.
        let mut inside = u64::MAX;
        for _ in 0..NESTED_MAX {
            let Some(scope) = around else { break };
            let Some((name, begins)) = self
                .objects
                .scope(scope)
                .and_then(|one| Some((one.name, one.begins?)))
            else {
                break;
            };
            around = self.around(scope, DESCRIBED_WORDS);
            // The outermost is a whole module, and begins where its file does.
            if begins >= inside || begins == 0 {
                break;
            }
            if !name.is_empty() {
                return name;
            }
            inside = begins;
        }
        own
    }

    /// The description of the scope in which a function is written.
    fn around_of_function(&mut self, shared: Object) -> Option<Object> {
        let constants = self.objects.constants;
        let own = self.objects.reference(shared, constants.name);
        if let Some(own) = own
            && self.objects.is(own, constants.types.scope)
        {
            return self.around(own, DESCRIBED_WORDS);
        }
        self.around(shared, SHARED_WORDS)
    }

    /// Of a description the one that it refers to.
    fn around(&mut self, scope: Object, words: u64) -> Option<Object> {
        let kind = self.objects.constants.types.scope;
        (1..=words).find_map(|word| {
            let found = self
                .objects
                .reference(scope, word * WORD)
                .filter(|found| *found != scope)?;
            self.objects.is(found, kind).then_some(found)
        })
    }

    /// What an object refers to, and may be called when it is done.
    fn words(&mut self, object: Object, kind: u16) -> Vec<u64> {
        let links = self.links;
        let arrays = self.objects.constants.types.array..links.bytes;
        if kind == links.closure {
            return self.variables(object, false);
        }
        if kind == links.async_function {
            return self.objects.field(object, PROMISE).into_iter().collect();
        }
        let (first, words) = if kind == links.properties || arrays.contains(&kind) {
            let length =
                self.objects.field(object, LENGTH).unwrap_or_default() >> self.objects.constants.smi_shift;
            let length = if kind == links.properties {
                length & PROPERTIES
            } else {
                length
            };
            (FIRST, length)
        } else if kind == links.reaction || kind >= links.object {
            let map = self
                .objects
                .reference(object, 0)
                .and_then(|map| map.at(links.size));
            let size = map
                .and_then(|at| self.objects.memory.byte(at))
                .unwrap_or_default();
            (WORD, u64::from(size).saturating_sub(1))
        } else {
            return Vec::new();
        };
        (0..words.min(WORDS_MAX))
            .map_while(|word| self.objects.field(object, first + word * WORD))
            .collect()
    }

    /// The variables of a closure's scope; none of a whole module's, unless it is the engine's own closure. `own`: of the program, whose
    /// scopes are followed up to its module's.
    fn variables(&mut self, closure: Object, own: bool) -> Vec<u64> {
        let read = |search: &mut Self| {
            let (first, last) = search.links.contexts;
            let context = search.objects.reference(closure, search.links.context)?;
            let kind = search.objects.kind(context)?;
            if !(first..=last).contains(&kind) || last.checked_sub(first) != Some(KINDS_OF_SCOPES - 1) {
                return None;
            }
            search.objects.reference(context, SCOPE)?;
            let around = search.objects.reference(context, AROUND);
            let around = around.and_then(|around| search.objects.kind(around));
            let outermost = around.is_none_or(|kind| kind == first + ENGINE || kind == first + SCRIPT);
            let shared = search.objects.shared(closure)?;
            let of_engine = search.file(shared).is_none();
            if outermost && (own || !of_engine) {
                return None;
            }
            let length = search.objects.field(context, LENGTH)? >> search.objects.constants.smi_shift;
            (length <= VARIABLES_MAX).then_some((context, length))
        };
        let Some((context, length)) = read(self) else {
            return Vec::new();
        };
        (BEFORE_VARIABLES..length)
            .map_while(|word| self.objects.field(context, FIRST + word * WORD))
            .collect()
    }
}

/// What a function without a name is called.
pub(super) const UNNAMED: &str = "(anonymous)";
