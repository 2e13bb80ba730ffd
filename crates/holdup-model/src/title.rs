//! The title of a finding: one main clause, which says who waits for what, and clauses that say why, where and who else.
//!
//! The problem: a sentence with all of that has forty words, and nobody on call reads to its end. Views that have room for several lines print the
//! main clause alone as the first one and each further clause on a line of its own; all others print the whole sentence.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Deref;

/// What a clause may begin with to stand behind another one in one sentence.
const LEADS: [char; 5] = [':', ';', ',', '|', ' '];

/// A sentence that knows where its clauses begin. As a `str` it is the whole sentence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Title {
    text: String,
    /// Bytes at which a clause begins, with what leads to it, in order.
    #[serde(skip)]
    cuts: Vec<usize>,
}

impl Title {
    /// The title with one more clause, which begins with what stands between the two: `; asked in main`, `: it is stopped`. An empty one changes nothing.
    #[must_use]
    pub fn with(mut self, clause: impl AsRef<str>) -> Title {
        self.push(clause);
        self
    }

    /// Adds a clause, as [`Title::with`] does.
    pub fn push(&mut self, clause: impl AsRef<str>) {
        let clause = clause.as_ref();
        if !clause.is_empty() {
            self.cuts.push(self.text.len());
            self.text.push_str(clause);
        }
    }

    /// The title with another one behind it, whose clauses stay apart, and what stands between the two.
    #[must_use]
    pub fn followed_by(mut self, between: &str, other: &Title) -> Title {
        let from = self.text.len();
        self.push(format!("{between}{}", other.text));
        let shift = from + between.len();
        self.cuts.extend(other.cuts.iter().map(|cut| cut + shift));
        self
    }

    /// The main clause.
    #[must_use]
    pub fn first(&self) -> &str {
        let end = self.cuts.first().copied().unwrap_or(self.text.len());
        self.text.get(..end).unwrap_or(&self.text)
    }

    /// The others, without what leads to them.
    pub fn clauses(&self) -> impl Iterator<Item = &str> {
        let ends = self.cuts.iter().copied().skip(1).chain([self.text.len()]);
        self.cuts
            .iter()
            .zip(ends)
            .filter_map(|(from, to)| self.text.get(*from..to))
            .map(|clause| clause.trim_start_matches(LEADS))
    }
}

impl From<String> for Title {
    fn from(text: String) -> Title {
        Title {
            text,
            cuts: Vec::new(),
        }
    }
}

impl From<&str> for Title {
    fn from(text: &str) -> Title {
        Title::from(text.to_owned())
    }
}

impl From<Title> for String {
    fn from(title: Title) -> String {
        title.text
    }
}

impl Deref for Title {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Title {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl PartialEq<str> for Title {
    fn eq(&self, other: &str) -> bool {
        self.text == other
    }
}

impl PartialEq<&str> for Title {
    fn eq(&self, other: &&str) -> bool {
        self.text == *other
    }
}

impl PartialEq<String> for Title {
    fn eq(&self, other: &String) -> bool {
        self.text == *other
    }
}

#[cfg(test)]
mod tests {
    use super::Title;

    #[test]
    fn it_is_one_sentence_and_knows_its_clauses() {
        let title = Title::from("make waits for cc")
            .with(": cc waits for a disk")
            .with("")
            .with("; asked in all");
        assert_eq!(title, "make waits for cc: cc waits for a disk; asked in all");
        assert_eq!(title.first(), "make waits for cc");
        let clauses: Vec<&str> = title.clauses().collect();
        assert_eq!(clauses, ["cc waits for a disk", "asked in all"]);
    }

    #[test]
    fn another_one_behind_it_keeps_its_clauses() {
        let other = Title::from("b").with(": c");
        let title = Title::from("a").followed_by(": ", &other);
        assert_eq!(title, "a: b: c");
        assert_eq!(title.first(), "a");
        assert_eq!(title.clauses().collect::<Vec<_>>(), ["b", "c"]);
    }

    #[test]
    fn without_clauses_it_is_its_main_clause() {
        let title = Title::from("sleep sleeps; on purpose: for 1 s");
        assert_eq!(title.first(), "sleep sleeps; on purpose: for 1 s");
        assert_eq!(title.clauses().count(), 0);
    }
}
