//! Where a task stands: the asynchronous functions of which each awaits the next, and what the innermost awaits.
//!
//! In: a future in memory. Out: frames, what is awaited, and what the variables have that are saved meanwhile.

use super::kinds::{self, Kind, Side};
use super::{Program, Task, Value};
use crate::memory::Source;
use holdup_evidence::{Frame, TypeLayout, Variant};
use std::collections::HashSet;
use std::sync::Arc;

/// Functions and futures in one chain.
const CHAIN_MAX: usize = 64;

/// Parts of a value that are looked at in one search, how deep they may be in each other, and pointers one after the other.
const PARTS_MAX: usize = 4_000;
const DEEP_MAX: usize = 40;
const POINTERS_MAX: usize = 4;

/// Futures that one may consist of and that are told apart.
const FUTURES_MAX: usize = 8;

/// Locks and channels of one task.
const OBJECTS_MAX: usize = 32;

/// What a coroutine's variant has for what it awaits, and those of its variants that stand at no `await`.
const AWAITED: &str = "__awaitee";
const BEGINS: u64 = 0;
const ENDED: std::ops::RangeInclusive<u64> = 1..=2;

/// A reference to a trait object: what it points to, and the table of its functions.
const OBJECT: &str = "pointer";
const TABLE: &str = "vtable";

/// Links of lists in which those who wait are, and a set of tasks: what they lead to is another's.
const LISTS: [&str; 3] = [
    "tokio::util::linked_list::",
    "tokio::loom::std::mutex::",
    "tokio::task::local::LocalSet",
];

/// What a search does at a value.
enum Step {
    /// Looks into it.
    Into,
    /// Looks at what comes next.
    Past,
    /// Ends.
    Stop,
}

impl<S: Source> Program<S> {
    fn layout(&self, of: u32) -> Option<&TypeLayout> {
        self.place.layouts.types.get(of as usize)
    }

    /// The number of a value's variant.
    fn which(&mut self, value: Value) -> Option<&Variant> {
        let layouts = Arc::clone(&self.place.layouts);
        let variants = layouts.types.get(value.of as usize)?.variants.as_ref()?;
        let at = match variants.number {
            None => variants
                .all
                .iter()
                .position(|one| one.value.is_none() || variants.all.len() == 1),
            Some((offset, bytes)) => {
                let mut word = [0; 8];
                let part = word.get_mut(..usize::from(bytes))?;
                self.memory.read(value.at.checked_add(offset)?, part)?;
                let number = u64::from_le_bytes(word);
                let mask = u64::MAX >> (64 - 8 * u32::from(bytes.clamp(1, 8)));
                let is = |one: &Variant| one.value.is_some_and(|value| value & mask == number);
                let other = || variants.all.iter().position(|one| one.value.is_none());
                variants.all.iter().position(is).or_else(other)
            }
        }?;
        let variants = self.layout(value.of)?.variants.as_ref()?;
        variants.all.get(at)
    }

    /// What a value consists of as the variant that it is.
    pub(super) fn variant(&mut self, value: Value) -> Option<Value> {
        let of = self.which(value)?.of;
        Some(Value { at: value.at, of })
    }

    /// Fills in where a task stands; returns the head of the task that it awaits.
    pub(super) fn stand(&mut self, future: Value, task: &mut Task) -> Option<u64> {
        let mut next = Some(future);
        // Outermost first.
        let mut frames: Vec<(String, Arc<Frame>)> = Vec::new();
        let mut last = future;
        // What the functions of tokio begin with that are behind all others.
        let mut of_tokio: Option<Value> = None;
        while let Some(value) = next
            && frames.len() < CHAIN_MAX
        {
            last = value;
            let Some(layout) = self.layout(value.of) else {
                break;
            };
            let path = layout.path.clone();
            match () {
                () if kinds::of_tokio(&path) => of_tokio = of_tokio.or(next),
                () if kinds::of_language(&path) => {}
                () => of_tokio = None,
            }
            if kinds::is_coroutine(&path) {
                let Some((frame, state)) = self.coroutine(value) else {
                    break;
                };
                frames.push((path, Arc::new(frame)));
                let awaited = self.member(state, &[AWAITED]);
                self.variables(state, task);
                next = awaited;
                continue;
            }
            if !kinds::of_language(&path) {
                let frame = Frame {
                    symbol: Some(kinds::plain(&path)),
                    ..Frame::default()
                };
                frames.push((path.clone(), Arc::new(frame)));
            }
            if kinds::is_future(&path) {
                break;
            }
            (next, task.several) = self.within(value);
            if kinds::transfers(&path) && next.is_some_and(|one| self.is_timer(one)) {
                next = None;
            }
        }
        let awaits_nothing = frames.last().is_some_and(|(path, _)| kinds::is_coroutine(path))
            && self
                .layout(last.of)
                .is_some_and(|layout| kinds::is_coroutine(&layout.path));
        task.reason = match awaits_nothing {
            true => None,
            false => reason(&frames),
        };
        task.frames = frames.iter().rev().map(|(_, frame)| Arc::clone(frame)).collect();
        if task.several || awaits_nothing {
            return None;
        }
        let reason = task.reason.as_deref().unwrap_or_default();
        let (synchronises, joins) = (kinds::synchronises(reason), kinds::joins(reason));
        // Of a future that says nothing, a descriptor within it may be anybody's.
        if !reason.is_empty() && !kinds::is_within(reason) {
            task.descriptor = self.descriptor(of_tokio.unwrap_or(last));
        }
        if !synchronises && !joins {
            return None;
        }
        let mut objects = self.shared(last);
        if joins {
            let head = objects.iter().find(|(kind, _)| *kind == Kind::Task);
            return head.map(|(_, at)| *at);
        }
        // Who receives waits for the channel, and has that side of it; a lock that one has and wants again is another matter.
        if objects.iter().any(|(kind, _)| *kind == Kind::Channel) {
            task.has.retain(|has| !objects.iter().any(|(_, at)| at == has));
            objects.retain(|(kind, _)| *kind == Kind::Channel);
        }
        objects.retain(|(kind, _)| *kind != Kind::Task);
        task.objects = objects.into_iter().map(|(_, at)| at).collect();
        None
    }

    /// What a coroutine consists of that stands at an `await`; `None` of another value.
    pub(super) fn suspended(&mut self, value: Value) -> Option<Value> {
        let stands = |variant: &Variant| variant.value.is_some_and(|number| number > *ENDED.end());
        let of = self.which(value).filter(|variant| stands(variant))?.of;
        Some(Value { at: value.at, of })
    }

    /// What a coroutine awaits that stands at an `await`.
    pub(super) fn awaited(&self, state: Value) -> Option<Value> {
        self.member(state, &[AWAITED])
    }

    /// Whether a coroutine has not begun.
    pub(super) fn has_not_begun(&mut self, value: Value) -> bool {
        self.which(value)
            .is_some_and(|variant| variant.value == Some(BEGINS))
    }

    pub(super) fn is_coroutine(&self, value: Value) -> bool {
        self.layout(value.of)
            .is_some_and(|layout| kinds::is_coroutine(&layout.path))
    }

    /// Whether a type is a reference to a trait object.
    pub(super) fn is_object(&self, layout: &TypeLayout) -> bool {
        layout.members.iter().any(|part| part.name == TABLE)
    }

    fn is_timer(&self, value: Value) -> bool {
        self.layout(value.of)
            .is_some_and(|layout| kinds::is_timer(&layout.path))
    }

    /// The frame of a coroutine, and its saved variables.
    fn coroutine(&mut self, value: Value) -> Option<(Frame, Value)> {
        let variant = self.which(value)?.clone();
        // It has ended: this future is not there any more.
        if variant.value.is_some_and(|number| ENDED.contains(&number)) {
            return None;
        }
        let layout = self.layout(value.of)?;
        let function = layout.function.clone();
        let symbol = function.unwrap_or_else(|| kinds::plain(&layout.path));
        // Within a macro the `await` has the macro's place: the function is where it begins.
        let begins = layout.variants.as_ref().and_then(|variants| {
            let first = variants.all.iter().find(|one| one.value == Some(BEGINS));
            first?.at
        });
        let (file, line) = match (variant.at, begins) {
            (Some((file, _)), Some((own, _))) if file != own => (Some(own), None),
            (at, _) => at.unzip(),
        };
        let file = file.and_then(|file| self.place.layouts.files.get(file as usize));
        let frame = Frame {
            symbol: Some(symbol),
            file: file.cloned(),
            // Where it begins is not where it stands.
            line: line.filter(|_| file.is_some() && variant.value != Some(BEGINS)),
            ..Frame::default()
        };
        Some((
            frame,
            Value {
                at: value.at,
                of: variant.of,
            },
        ))
    }

    /// The future that a future made by hand awaits: the only one that it has, timers aside; and whether there are several.
    pub(super) fn within(&mut self, value: Value) -> (Option<Value>, bool) {
        let mut found: Vec<Value> = Vec::new();
        self.search(value, true, &mut |one, layout| {
            if one == value {
                return Step::Into;
            }
            if kinds::is_coroutine(&layout.path) || kinds::is_future(&layout.path) {
                if !found.contains(&one) {
                    found.push(one);
                }
                return match found.len() < FUTURES_MAX {
                    true => Step::Past,
                    false => Step::Stop,
                };
            }
            Step::Into
        });
        // One that has ended is awaited no more.
        found.retain(|one| {
            let coroutine = self
                .layout(one.of)
                .is_some_and(|layout| kinds::is_coroutine(&layout.path));
            let ended = |program: &mut Self| {
                let variant = program.which(*one);
                variant.is_none_or(|variant| variant.value.is_some_and(|number| ENDED.contains(&number)))
            };
            !coroutine || !ended(self)
        });
        let timers = found.iter().filter(|one| self.is_timer(**one)).count();
        if timers < found.len() {
            found.retain(|one| !self.is_timer(*one));
        }
        match found.as_slice() {
            [] => (None, false),
            [one] => (Some(*one), false),
            _ => (None, true),
        }
    }

    /// What the variables of a coroutine have.
    fn variables(&mut self, state: Value, task: &mut Task) {
        let mut sides: Vec<(Side, Value)> = Vec::new();
        self.search(state, false, &mut |one, layout| {
            match kinds::side(&layout.path) {
                Some(side) => {
                    sides.push((side, one));
                    Step::Past
                }
                // What is awaited has been looked at, or will be.
                None if kinds::is_coroutine(&layout.path) => Step::Past,
                None => Step::Into,
            }
        });
        for (side, value) in sides.into_iter().take(OBJECTS_MAX) {
            let shared = self.shared(value);
            let of = match side {
                Side::Taken => Kind::Semaphore,
                Side::Receives | Side::Sends => Kind::Channel,
            };
            let own = shared.iter().filter(|(kind, _)| *kind == of).map(|(_, at)| *at);
            match side {
                Side::Taken => add(&mut task.has, own),
                Side::Sends => add(&mut task.sends_to, own),
                // Who sends to a channel that is full waits for its semaphore.
                Side::Receives => add(&mut task.has, shared.iter().map(|(_, at)| *at)),
            }
        }
    }

    /// Things that tasks share to which a value points.
    fn shared(&mut self, value: Value) -> Vec<(Kind, u64)> {
        let mut found: Vec<(Kind, u64)> = Vec::new();
        let mut pointers: Vec<(u64, u32)> = Vec::new();
        self.search(value, true, &mut |one, layout| {
            if let Some(to) = layout.points_to {
                pointers.push((one.at, to));
            }
            match pointers.len() < OBJECTS_MAX && kinds::shared(&layout.path).is_none() {
                true => Step::Into,
                false => Step::Past,
            }
        });
        for (at, to) in pointers {
            let Some(target) = self.memory.pointer(at) else {
                continue;
            };
            for (kind, offset) in self.parts_of(to).iter() {
                let Some(there) = target.checked_add(*offset) else {
                    continue;
                };
                if found.len() < OBJECTS_MAX && !found.contains(&(*kind, there)) {
                    found.push((*kind, there));
                }
            }
            // The nearest is the one: what it refers to itself is for others.
            if !found.is_empty() {
                break;
            }
        }
        found
    }

    /// Which of the things that tasks share are parts of a type, and where.
    fn parts_of(&mut self, of: u32) -> Arc<[(Kind, u64)]> {
        if let Some(known) = self.parts.get(&of) {
            return Arc::clone(known);
        }
        let mut found = Vec::new();
        let mut left = vec![(of, 0_u64, 0)];
        let mut count = 0;
        while let Some((of, offset, deep)) = left.pop() {
            count += 1;
            let Some(layout) = self.layout(of).filter(|_| count < PARTS_MAX) else {
                continue;
            };
            let kind = kinds::shared(&layout.path);
            if let Some(kind) = kind {
                found.push((kind, offset));
            }
            // A channel has a semaphore.
            if kind.is_none_or(|kind| kind == Kind::Channel) && deep < DEEP_MAX {
                let parts = layout.members.iter().rev();
                left.extend(
                    parts
                        .filter_map(|member| Some((member.of, offset.checked_add(member.offset)?, deep + 1))),
                );
            }
        }
        let found: Arc<[(Kind, u64)]> = found.into();
        self.parts.insert(of, Arc::clone(&found));
        found
    }

    /// The descriptor that a value has, or refers to.
    fn descriptor(&mut self, value: Value) -> Option<u32> {
        let mut owners = Vec::new();
        self.search(
            value,
            true,
            &mut |one, layout| match kinds::owns_descriptor(&layout.path) {
                true => {
                    owners.push(one.at);
                    Step::Stop
                }
                false => Step::Into,
            },
        );
        let number = self.memory.int(*owners.first()?)?;
        (number <= i32::MAX.cast_unsigned()).then_some(number)
    }

    /// Goes through the parts of a value: of an enumeration those of the variant that it is, and with `far` what pointers lead to, the nearest
    /// first.
    fn search(&mut self, value: Value, far: bool, each: &mut dyn FnMut(Value, &TypeLayout) -> Step) {
        let layouts = Arc::clone(&self.place.layouts);
        let mut met: HashSet<(u64, u32)> = HashSet::new();
        let mut level = vec![(value, 0)];
        let mut count = 0;
        for _ in 0..=POINTERS_MAX {
            let mut behind: Vec<(Value, usize)> = Vec::new();
            let mut left: Vec<(Value, usize)> = std::mem::take(&mut level);
            left.reverse();
            while let Some((one, deep)) = left.pop() {
                count += 1;
                if count > PARTS_MAX || deep > DEEP_MAX || !met.insert((one.at, one.of)) {
                    continue;
                }
                let Some(layout) = layouts.types.get(one.of as usize) else {
                    continue;
                };
                if LISTS.iter().any(|list| layout.path.starts_with(list)) {
                    continue;
                }
                match each(one, layout) {
                    Step::Into => {}
                    Step::Past => continue,
                    Step::Stop => return,
                }
                if layout.points_to.is_some() || self.is_object(layout) {
                    if far {
                        behind.extend(self.target(one, layout).map(|to| (to, deep + 1)));
                    }
                    continue;
                }
                let mut parts = Vec::new();
                if layout.variants.is_some() {
                    parts.extend(self.variant(one));
                }
                for member in &layout.members {
                    parts.extend(
                        one.at
                            .checked_add(member.offset)
                            .map(|at| Value { at, of: member.of }),
                    );
                }
                left.extend(parts.into_iter().rev().map(|part| (part, deep + 1)));
            }
            if behind.is_empty() {
                return;
            }
            level = behind;
        }
    }

    /// What a pointer points to, also where only its table of functions says what that is.
    pub(super) fn target(&mut self, value: Value, layout: &TypeLayout) -> Option<Value> {
        if let Some(of) = layout.points_to {
            let at = self.memory.pointer(value.at)?;
            return Some(Value { at, of });
        }
        let data = self.member(value, &[OBJECT])?;
        let table = self.member(value, &[TABLE])?;
        let (at, table) = (self.memory.pointer(data.at)?, self.memory.pointer(table.at)?);
        let of = *self.objects.get(&table)?;
        Some(Value { at, of })
    }
}

fn add(to: &mut Vec<u64>, all: impl Iterator<Item = u64>) {
    for one in all {
        if to.len() < OBJECTS_MAX && !to.contains(&one) {
            to.push(one);
        }
    }
}

/// The path of what is awaited, by a chain from the outermost to the innermost: the outermost of those functions and futures of tokio that are behind all
/// others.
fn reason(frames: &[(String, Arc<Frame>)]) -> Option<String> {
    let of_tokio = |(path, _): &&(String, Arc<Frame>)| kinds::of_tokio(path);
    let own = frames.iter().rev().take_while(of_tokio).last();
    // A function whose awaited future says nothing is not what it awaits itself.
    let other = || frames.last().filter(|(path, _)| !kinds::is_coroutine(path));
    own.or_else(other).map(|(path, _)| kinds::plain(path))
}
