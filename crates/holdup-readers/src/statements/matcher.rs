//! Many words at once, and what each of them says.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use std::ops::Range;

/// Words in any case, of those that begin at the same place the longest.
pub(crate) struct Matcher<T> {
    words: AhoCorasick,
    says: Vec<T>,
}

impl<T: Copy> Matcher<T> {
    /// Of words with what each says; `None` if the automaton cannot be made of them.
    pub(crate) fn new(each: impl Iterator<Item = (&'static str, T)>) -> Option<Matcher<T>> {
        let (words, says): (Vec<&str>, Vec<T>) = each.unzip();
        let words = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::LeftmostLongest)
            .kind(Some(AhoCorasickKind::DFA))
            .build(words)
            .ok()?;
        Some(Matcher { words, says })
    }

    /// Where words stand in a line, and what they say.
    pub(crate) fn find<'a>(&'a self, line: &'a [u8]) -> impl Iterator<Item = (Range<usize>, T)> + 'a {
        self.words.find_iter(line).filter_map(|found| {
            let says = self.says.get(found.pattern().as_usize())?;
            Some((found.range(), *says))
        })
    }
}
