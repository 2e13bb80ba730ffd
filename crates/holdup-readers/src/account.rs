//! How much of an artefact was understood: the honesty line of a report.

use crate::gather::text_of;
use serde::{Deserialize, Serialize};

/// Lines that were not understood and are shown; more are counted.
const SHOWN: usize = 5;

/// Bytes of such a line that are shown.
const SHOWN_BYTES: usize = 160;

/// Problems that are kept for one artefact; a hopeless one has the same thousands of times.
pub(crate) const PROBLEMS: usize = 20;

/// Names of files of no known format that are kept; a report of a support archive has thousands.
const NAMES: usize = 500;

/// What became of an artefact's lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Bytes that were read, uncompressed.
    pub bytes: u64,
    /// Lines that were read; for a format without lines, its records.
    pub lines: u64,
    /// Of those: lines that gave evidence.
    pub evidence: u64,
    /// Of those: lines that are on the format's list of lines that say nothing to us.
    pub ignorable: u64,
    /// Of those: lines that were not understood, and the first of them.
    pub not_understood: u64,
    /// The first few lines that were not understood.
    pub misunderstood: Vec<Misunderstood>,
    /// Things that were understood and left out because there were too many.
    pub left_out: u64,
    /// What went wrong with the artefact as a whole: cut off, damaged, too long.
    pub problems: Vec<String>,
    /// Of a folder or an archive: what became of the files in it.
    pub files: Option<Files>,
}

/// What became of the files of a folder or an archive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// Files whose format was recognised.
    pub read: u64,
    /// Files of no format that is known.
    pub not_recognised: u64,
    /// The names of the first of those.
    pub names: Vec<String>,
    /// Symbolic links: never followed.
    pub links: u64,
}

impl Files {
    /// Counts a file of no known format.
    pub(crate) fn not_recognised(&mut self, name: &str) {
        self.not_recognised += 1;
        if self.names.len() < NAMES {
            self.names.push(name.to_owned());
        }
    }
}

/// A line that was not understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misunderstood {
    /// Its number, from 1.
    pub line: u64,
    /// Its beginning; hostile until a view has made it printable.
    pub text: String,
}

impl Account {
    /// Counts a line that was not understood.
    pub(crate) fn misunderstand(&mut self, line: u64, text: &[u8]) {
        self.not_understood += 1;
        if self.misunderstood.len() < SHOWN {
            let text = text_of(&text[..text.len().min(SHOWN_BYTES)]);
            self.misunderstood.push(Misunderstood { line, text });
        }
    }

    /// Keeps a sentence about what is wrong with the artefact.
    pub(crate) fn problem(&mut self, sentence: String) {
        if self.problems.len() < PROBLEMS && !self.problems.contains(&sentence) {
            self.problems.push(sentence);
        }
    }
}
