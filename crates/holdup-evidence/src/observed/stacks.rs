//! Stacks, each once: dumps and profiles repeat the same few ten thousand times.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// A stack of [`Stacks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StackId(pub u32);

/// Stacks of named frames, innermost first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<Vec<String>>", into = "Vec<Vec<String>>")]
pub struct Stacks {
    names: Vec<Box<str>>,
    stacks: Vec<Box<[u32]>>,
    by_name: HashMap<Box<str>, u32>,
    by_stack: HashMap<Box<[u32]>, u32>,
    bytes: usize,
}

impl Stacks {
    /// The id of a stack.
    pub fn intern<'a>(&mut self, frames: impl IntoIterator<Item = &'a str>) -> StackId {
        let frames: Vec<u32> = frames.into_iter().map(|name| self.name(name)).collect();
        if let Some(id) = self.by_stack.get(frames.as_slice()) {
            return StackId(*id);
        }
        let id =
            u32::try_from(self.stacks.len()).expect("stacks are far fewer than 2^32: memory ends before");
        let frames: Box<[u32]> = frames.into();
        self.bytes += 2 * (size_of_val(&*frames) + size_of::<Box<[u32]>>());
        self.stacks.push(frames.clone());
        self.by_stack.insert(frames, id);
        StackId(id)
    }

    /// The frames of a stack, innermost first; none where there is no such stack.
    pub fn frames(&self, id: StackId) -> impl DoubleEndedIterator<Item = &str> {
        let stack = self.stacks.get(id.0 as usize).map_or(&[][..], |stack| stack);
        stack.iter().map(|name| &*self.names[*name as usize])
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    /// About how many bytes of memory they take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    fn name(&mut self, name: &str) -> u32 {
        if let Some(id) = self.by_name.get(name) {
            return *id;
        }
        let id = u32::try_from(self.names.len()).expect("names are far fewer than 2^32: memory ends before");
        self.bytes += 2 * (name.len() + size_of::<Box<str>>());
        self.names.push(name.into());
        self.by_name.insert(name.into(), id);
        id
    }
}

impl From<Vec<Vec<String>>> for Stacks {
    fn from(all: Vec<Vec<String>>) -> Stacks {
        let mut stacks = Stacks::default();
        for one in &all {
            stacks.intern(one.iter().map(String::as_str));
        }
        stacks
    }
}

impl From<Stacks> for Vec<Vec<String>> {
    fn from(stacks: Stacks) -> Vec<Vec<String>> {
        let of = |id| stacks.frames(StackId(id)).map(str::to_owned).collect();
        (0..stacks.stacks.len()).map(|id| of(id as u32)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Stacks;

    #[test]
    fn the_same_stack_is_kept_once() {
        let mut stacks = Stacks::default();
        let first = stacks.intern(["read", "main"]);
        let other = stacks.intern(["main"]);
        assert_eq!(stacks.intern(["read", "main"]), first);
        assert_ne!(first, other);
        assert_eq!(stacks.frames(first).collect::<Vec<_>>(), ["read", "main"]);
        let written: Vec<Vec<String>> = stacks.clone().into();
        assert_eq!(Stacks::from(written), stacks);
    }
}
