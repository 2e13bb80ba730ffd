//! Stacks of both sides as one tree, for a picture: callers above, callees below, BEFORE's amount and AFTER's at each.
//!
//! In: stacks with weights, as many as there are. Out: a [`StackTree`] of a few thousand nodes. Memory is bounded while they are
//! added up, and what is too small to be seen counts in its caller: every sum stays right.

use super::names::normal;
use super::source::Source;
use holdup_evidence::{Cause, Language};
use holdup_model::report::{Measure, StackTree, TreeFrame, TreeFrameKind, TreeNode, Wait};
use std::collections::HashMap;

/// Nodes that are kept of one source. Of stacks that come after, what is new counts in its caller.
const MAX_NODES: usize = 1 << 18;

/// Nodes that are shown: a screen is some thousand pixels wide, and a page is to be small enough to send.
const SHOWN: usize = 6_000;

/// Frames of a stack, from its innermost: more is a recursion without end, or made to do harm.
const DEPTH: usize = 300;

/// Characters of a name that are kept.
const NAME: usize = 400;

/// Nanoseconds are told to a tenth: more digits would be most of what a page has to hold.
const TENTHS: f64 = 10.0;

/// The tree's root.
const ROOT: u32 = 0;

/// Stacks of one source.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stacks {
    frames: Vec<TreeFrame>,
    numbers: HashMap<TreeFrame, u32>,
    nodes: Vec<Node>,
    children: HashMap<(u32, u32), u32>,
    /// Frames that found no room.
    cut: u64,
}

/// A frame under its caller.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Node {
    parent: u32,
    frame: u32,
    /// Its own amounts: BEFORE's and AFTER's once sides are put together, and the first of the two until then.
    own: [f64; 2],
}

impl Stacks {
    /// Those of a report: threads' waits without idleness, or of a run what is on its critical path. The cause is the last frame.
    #[must_use]
    pub fn of_waits(waits: &[Wait], of_threads: bool) -> Stacks {
        let mut stacks = Stacks::default();
        for wait in waits {
            let ns = match of_threads {
                true if wait.cause == Cause::Idle => 0,
                true => wait.ns,
                false => wait.path_ns,
            };
            if ns == 0 {
                continue;
            }
            let mut at = stacks.root();
            if wait.asker.stack.is_empty() {
                let words = format!("{}: no stack was taken", wait.asker.process);
                at = stacks.below(at, &words, TreeFrameKind::Other);
            }
            let inner = wait.asker.stack.len().min(DEPTH);
            for frame in wait.asker.stack[..inner].iter().rev() {
                let words = match (&frame.symbol, &frame.module) {
                    (Some(symbol), _) => symbol.clone(),
                    (None, Some(module)) => format!("{module}, no name"),
                    (None, None) => "[no name]".to_owned(),
                };
                at = stacks.below(at, &words, kind(frame.language));
            }
            let inner = wait.kernel_stack.len().min(DEPTH);
            for function in wait.kernel_stack[..inner].iter().rev() {
                at = stacks.below(at, function, TreeFrameKind::Kernel);
            }
            at = stacks.below(at, wait.cause.id(), TreeFrameKind::Cause);
            stacks.add(at, ns as f64);
        }
        stacks
    }

    /// The node from which all begin.
    pub fn root(&mut self) -> u32 {
        if self.nodes.is_empty() {
            let frame = self.frame("everything", TreeFrameKind::Other);
            let own = [0.0; 2];
            self.nodes.push(Node {
                parent: ROOT,
                frame: frame.unwrap_or_default(),
                own,
            });
        }
        ROOT
    }

    /// The node of a function that is called from another; that other where there is no more room.
    pub fn below(&mut self, parent: u32, name: &str, kind: TreeFrameKind) -> u32 {
        match self.frame(name, kind) {
            Some(frame) => self.child(parent, frame),
            None => parent,
        }
    }

    fn frame(&mut self, name: &str, kind: TreeFrameKind) -> Option<u32> {
        let mut name = match kind {
            TreeFrameKind::Cause => name.to_owned(),
            _ => normal(name).into_owned(),
        };
        if let Some((end, _)) = name.char_indices().nth(NAME) {
            name.truncate(end);
            name.push('…');
        }
        let frame = TreeFrame { name, kind };
        if let Some(number) = self.numbers.get(&frame) {
            return Some(*number);
        }
        if self.frames.len() >= MAX_NODES {
            self.cut += 1;
            return None;
        }
        let number = u32::try_from(self.frames.len()).expect("frames are bounded");
        self.frames.push(frame.clone());
        self.numbers.insert(frame, number);
        Some(number)
    }

    fn child(&mut self, parent: u32, frame: u32) -> u32 {
        if let Some(node) = self.children.get(&(parent, frame)) {
            return *node;
        }
        if self.nodes.len() >= MAX_NODES {
            self.cut += 1;
            return parent;
        }
        let node = u32::try_from(self.nodes.len()).expect("nodes are bounded");
        self.nodes.push(Node {
            parent,
            frame,
            own: [0.0; 2],
        });
        self.children.insert((parent, frame), node);
        node
    }

    /// Adds an amount of a node's own.
    pub fn add(&mut self, node: u32, amount: f64) {
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.own[0] += amount;
        }
    }

    /// Adds all of another, its amounts times `scale`, to a side: 0 is BEFORE, 1 AFTER.
    fn take(&mut self, other: &Stacks, scale: f64, side: usize) {
        if other.nodes.is_empty() {
            return;
        }
        self.cut += other.cut;
        let frames: Vec<Option<u32>> = other
            .frames
            .iter()
            .map(|frame| self.frame(&frame.name, frame.kind))
            .collect();
        let mut places = vec![self.root()];
        // A caller stands before what it calls.
        for node in &other.nodes[1..] {
            let parent = places[node.parent as usize];
            let frame = frames[node.frame as usize];
            places.push(frame.map_or(parent, |frame| self.child(parent, frame)));
        }
        for (node, place) in other.nodes.iter().zip(places) {
            self.nodes[place as usize].own[side] += node.own[0] * scale;
        }
    }

    /// Adds the next stretch of the same run.
    pub(super) fn append(&mut self, next: &Stacks) {
        self.take(next, 1.0, 0);
    }

    /// Every amount so many times.
    pub(super) fn scale(&mut self, scale: f64) {
        for node in &mut self.nodes {
            node.own[0] *= scale;
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.len() < 2
    }

    /// What is large enough to be shown.
    fn shown(&self, measure: Measure) -> StackTree {
        let mut sums: Vec<[f64; 2]> = self.nodes.iter().map(|node| node.own).collect();
        for at in (1..self.nodes.len()).rev() {
            let [before, after] = sums[at];
            let caller = &mut sums[self.nodes[at].parent as usize];
            caller[0] += before;
            caller[1] += after;
        }
        // A caller is never smaller than what it calls, and comes first where they are alike: who is kept has a kept caller.
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        let size = |at: usize| sums[at][0].max(sums[at][1]);
        order.sort_by(|a, b| size(*b).total_cmp(&size(*a)).then(a.cmp(b)));
        let left_out = order.len().saturating_sub(SHOWN) as u64;
        order.truncate(SHOWN);
        order.sort_unstable();
        let mut tree = StackTree {
            measure,
            frames: Vec::new(),
            nodes: Vec::new(),
            left_out,
            cut: self.cut,
        };
        // Where each node is in the picture; of one that is not, where its caller is.
        let mut places: Vec<u32> = Vec::with_capacity(self.nodes.len());
        let mut frames: HashMap<u32, u32> = HashMap::new();
        let mut kept = order.into_iter().peekable();
        let number = |count: usize| u32::try_from(count).expect("nodes are bounded");
        for (at, node) in self.nodes.iter().enumerate() {
            if kept.next_if_eq(&at).is_some() {
                let frame = *frames.entry(node.frame).or_insert_with(|| {
                    tree.frames.push(self.frames[node.frame as usize].clone());
                    number(tree.frames.len() - 1)
                });
                places.push(number(tree.nodes.len()));
                tree.nodes.push(TreeNode {
                    parent: (at > 0).then(|| places[node.parent as usize]),
                    frame,
                    before: 0.0,
                    after: 0.0,
                });
            } else {
                places.push(places[node.parent as usize]);
            }
            let shown = &mut tree.nodes[places[at] as usize];
            shown.before += node.own[0];
            shown.after += node.own[1];
        }
        if measure == Measure::Ns {
            for node in &mut tree.nodes {
                node.before = (node.before * TENTHS).round() / TENTHS;
                node.after = (node.after * TENTHS).round() / TENTHS;
            }
        }
        tree
    }
}

fn kind(language: Language) -> TreeFrameKind {
    match language {
        Language::Kernel => TreeFrameKind::Kernel,
        Language::Native | Language::Go => TreeFrameKind::Native,
        Language::Java => TreeFrameKind::Java,
        Language::Python => TreeFrameKind::Python,
        Language::JavaScript => TreeFrameKind::JavaScript,
        Language::Ruby => TreeFrameKind::Ruby,
        Language::Php => TreeFrameKind::Php,
        Language::Perl => TreeFrameKind::Perl,
        Language::Bash => TreeFrameKind::Bash,
    }
}

/// Both sides in one tree, their amounts divided by `units`: so much for each unit of work. `None` where one has no stacks.
pub(super) fn tree(sides: [&[Source]; 2], units: [f64; 2], measure: Measure) -> Option<StackTree> {
    let mut both = Stacks::default();
    for (side, sources) in sides.into_iter().enumerate() {
        if sources.iter().all(|source| source.stacks.is_empty()) || units[side] <= 0.0 {
            return None;
        }
        for source in sources {
            both.take(&source.stacks, 1.0 / units[side], side);
        }
    }
    Some(both.shown(measure))
}

#[cfg(test)]
mod tests;
