//! Stacks with weights, added up by function: its own weight, and that of all that it called.
//!
//! In: collapsed stacks, one after another, as many as there are. Out: for each function two sums. No stack is kept, so
//! memory goes with the number of functions and not with the length of a profile. A function that calls itself counts once
//! in a stack. Most stacks of a file begin as the one before them: what they share is not looked up again.

use super::names::normal;
use super::stacks::Stacks;
use foldhash::fast::RandomState;
use holdup_model::report::TreeFrameKind;
use std::collections::HashMap;
use twox_hash::XxHash3_128;

/// Bytes of names that are kept of a profile: the largest have some hundred thousand functions. Frames that come after
/// are added up under one name.
const NAMES: usize = 64 << 20;

/// Functions that are kept.
const FUNCTIONS: usize = 1 << 20;

/// Frames of a stack that are looked at, from its root: more is a recursion without end, or made to do harm.
const DEPTH: usize = 4_096;

/// Under which name frames are added up that are too many.
const LEFT_OUT: &str = "(left out)";

/// Marks between user and kernel frames, which are no functions.
const SEPARATORS: [&[u8]; 3] = [b"", b"-", b"--"];

/// A profile by function.
#[derive(Debug, Default)]
pub struct Frames {
    /// By the XXH3 hash of its bytes as they are, by which alone it is known again: which function it is without what is of one run.
    /// The hash is no secret; who makes two names that have the same finds them added up in his own answer.
    raw: HashMap<u128, u32, RandomState>,
    /// By its name.
    ids: HashMap<String, u32>,
    names: Vec<String>,
    bytes: usize,
    sums: Vec<Sums>,
    /// All weights.
    total: u64,
    /// Stacks.
    stacks: u64,
    /// The stack before, and where each of its frames ends and which it is.
    last: Vec<u8>,
    ends: Vec<(usize, u32)>,
    under: Option<Vec<u8>>,
    /// Frames that are under [`LEFT_OUT`].
    left_out: u64,
    /// Where a picture is asked for: the stacks themselves, and the node of each frame of the stack before.
    tree: Option<Stacks>,
    places: Vec<u32>,
}

/// Weights of one function.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    own: u64,
    with: u64,
    /// The last stack it was counted in.
    seen: u64,
}

/// One function of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function<'a> {
    /// Its name.
    pub name: &'a str,
    /// Weight of stacks in which it is innermost.
    pub own: u64,
    /// Weight of all stacks that it is in.
    pub with: u64,
}

impl Frames {
    /// Only stacks count that go through a function with this in its name, and from there on.
    #[must_use]
    pub fn under(name: Option<&str>) -> Frames {
        Frames {
            under: name.map(|name| name.as_bytes().to_vec()),
            ..Frames::default()
        }
    }

    /// Keeps stacks for a picture, too.
    #[must_use]
    pub fn with_stacks(mut self) -> Frames {
        self.tree = Some(Stacks::default());
        self
    }

    /// The stacks, where they were kept.
    pub(super) fn stacks(&self, scale: f64) -> Stacks {
        let mut stacks = self.tree.clone().unwrap_or_default();
        stacks.scale(scale);
        stacks
    }

    /// Adds a stack, root first, `;` between its frames.
    pub fn add(&mut self, stack: &[u8], weight: u64) {
        let stack = match &self.under {
            None => stack,
            Some(name) => match from(stack, name) {
                Some(stack) => stack,
                None => return,
            },
        };
        self.total = self.total.saturating_add(weight);
        self.stacks += 1;
        // Frames that end before the first byte that is not the same, or there.
        let same = shared(stack, &self.last);
        let kept = self
            .ends
            .partition_point(|(end, _)| *end < same || *end == same && ended(stack, same));
        self.ends.truncate(kept);
        let mut at = self.ends.last().map_or(0, |(end, _)| end + 1);
        while at <= stack.len() && self.ends.len() < DEPTH {
            let rest = &stack[at..];
            let end = at + rest.iter().position(|byte| *byte == b';').unwrap_or(rest.len());
            let id = self.intern(&stack[at..end]);
            self.ends.push((end, id));
            at = end + 1;
        }
        self.last.clear();
        self.last.extend_from_slice(stack);
        self.plant(kept, weight);
        let mut innermost = None;
        for (_, id) in &self.ends {
            let Some(sums) = self.sums.get_mut(*id as usize) else {
                continue;
            };
            innermost = Some(*id);
            if sums.seen != self.stacks {
                sums.seen = self.stacks;
                sums.with = sums.with.saturating_add(weight);
            }
        }
        if let Some(sums) = innermost.and_then(|id| self.sums.get_mut(id as usize)) {
            sums.own = sums.own.saturating_add(weight);
        }
    }

    /// Puts the stack into the picture; of it `kept` frames are those of the one before.
    fn plant(&mut self, kept: usize, weight: u64) {
        let Some(tree) = &mut self.tree else {
            return;
        };
        self.places.truncate(kept);
        for (_, id) in &self.ends[kept..] {
            let parent = self.places.last().copied().unwrap_or_else(|| tree.root());
            let place = match self.names.get(*id as usize) {
                Some(name) => {
                    let (name, kind) = written(name);
                    tree.below(parent, name, kind)
                }
                None => parent,
            };
            self.places.push(place);
        }
        let place = self.places.last().copied().unwrap_or_else(|| tree.root());
        tree.add(place, weight as f64);
    }

    /// Every function, in no order.
    pub fn functions(&self) -> impl Iterator<Item = Function<'_>> {
        self.names.iter().zip(&self.sums).map(|(name, sums)| Function {
            name,
            own: sums.own,
            with: sums.with,
        })
    }

    /// All weights together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How many frames were added up under one name, because there were too many functions.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Which function it is; [`NONE`] of what is none.
    fn intern(&mut self, frame: &[u8]) -> u32 {
        if SEPARATORS.contains(&frame) {
            return NONE;
        }
        let mark = XxHash3_128::oneshot(frame);
        if let Some(id) = self.raw.get(&mark) {
            return *id;
        }
        let room = self.names.len() < FUNCTIONS && self.raw.len() < 4 * FUNCTIONS && self.bytes < NAMES;
        let text = String::from_utf8_lossy(frame);
        let name = if room { normal(&text) } else { LEFT_OUT.into() };
        self.left_out += u64::from(!room);
        let id = match self.ids.get(name.as_ref()) {
            Some(id) => *id,
            None => {
                let id = u32::try_from(self.names.len()).expect("functions are bounded");
                self.bytes += 2 * name.len();
                self.names.push(name.clone().into_owned());
                self.ids.insert(name.into_owned(), id);
                self.sums.push(Sums::default());
                id
            }
        };
        if room {
            self.raw.insert(mark, id);
        }
        id
    }
}

/// A function's name and kind, as profilers mark it behind the name.
fn written(name: &str) -> (&str, TreeFrameKind) {
    const MARKS: [(&str, TreeFrameKind); 5] = [
        ("_[k]", TreeFrameKind::Kernel),
        ("_[j]", TreeFrameKind::Java),
        ("_[i]", TreeFrameKind::Java),
        ("_[0]", TreeFrameKind::Java),
        ("_[1]", TreeFrameKind::Java),
    ];
    let marked = MARKS
        .iter()
        .find_map(|(mark, kind)| Some((name.strip_suffix(mark)?, *kind)));
    marked.unwrap_or((name, TreeFrameKind::Native))
}

/// Stands for what is no function.
const NONE: u32 = u32::MAX;

/// Whether a frame ends here.
fn ended(stack: &[u8], at: usize) -> bool {
    stack.get(at).is_none_or(|byte| *byte == b';')
}

/// How many bytes two stacks begin with that are the same.
fn shared(one: &[u8], other: &[u8]) -> usize {
    const WORD: usize = 8;
    let words = one.chunks_exact(WORD).zip(other.chunks_exact(WORD));
    let whole = words.take_while(|(a, b)| a == b).count() * WORD;
    let rest = one[whole..].iter().zip(&other[whole..]);
    whole + rest.take_while(|(a, b)| a == b).count()
}

/// The stack from the first frame on that has this in its name.
fn from<'a>(stack: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut at = 0;
    for frame in stack.split(|byte| *byte == b';') {
        if frame.windows(name.len().max(1)).any(|part| part == name) {
            return stack.get(at..);
        }
        at += frame.len() + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::Frames;
    use proptest::prelude::{prop_assert_eq, proptest};
    use std::collections::{BTreeMap, BTreeSet};

    fn of(frames: &Frames) -> BTreeMap<&str, (u64, u64)> {
        frames
            .functions()
            .map(|one| (one.name, (one.own, one.with)))
            .collect()
    }

    #[test]
    fn own_and_with_what_it_called() {
        let mut frames = Frames::default();
        frames.add(b"main;read;wait", 3);
        frames.add(b"main;read", 2);
        frames.add(b"main;readable;wait", 5);
        frames.add(b"main;main;--;wait", 1);
        assert_eq!(
            of(&frames),
            BTreeMap::from([
                ("main", (0, 11)),
                ("read", (2, 5)),
                ("readable", (0, 5)),
                ("wait", (9, 9))
            ])
        );
        assert_eq!(frames.total(), 11);
    }

    #[test]
    fn under_a_function_only_what_it_called_counts() {
        let mut frames = Frames::under(Some("Controller.get"));
        frames.add(b"run;shop/Controller.get;read", 9);
        frames.add(b"run;idle", 90);
        assert_eq!(
            of(&frames),
            BTreeMap::from([("read", (9, 9)), ("shop/Controller.get", (0, 9))])
        );
        assert_eq!(frames.total(), 9);
    }

    #[test]
    fn deep_and_strange_stacks_are_borne() {
        let mut frames = Frames::default();
        frames.add(&b"f;".repeat(100_000), u64::MAX);
        frames.add(b"\xff\xfe;;;", 7);
        frames.add(b"", 1);
        assert_eq!(frames.total(), u64::MAX);
        assert_eq!(of(&frames)["f"].1, u64::MAX);
    }

    proptest! {
        #[test]
        fn it_is_what_plain_sums_are(stacks in proptest::collection::vec(("[ab](;[abc]{1,3}){0,5}", 1_u64..9), 0..30)) {
            let mut frames = Frames::default();
            let mut own: BTreeMap<String, (u64, u64)> = BTreeMap::new();
            for (stack, weight) in &stacks {
                frames.add(stack.as_bytes(), *weight);
                let all: Vec<&str> = stack.split(';').collect();
                own.entry(all[all.len() - 1].to_owned()).or_default().0 += weight;
                for one in all.into_iter().collect::<BTreeSet<&str>>() {
                    own.entry(one.to_owned()).or_default().1 += weight;
                }
            }
            let by_key: BTreeMap<String, (u64, u64)> =
                of(&frames).into_iter().map(|(name, sums)| (name.to_owned(), sums)).collect();
            prop_assert_eq!(by_key, own);
        }
    }
}
