//! How much of an artefact was understood: the honesty line of a report.

use serde::{Deserialize, Serialize};

/// Lines that were not understood and are shown; more are counted.
const SHOWN: usize = 5;

/// Bytes of such a line that are shown.
const SHOWN_BYTES: usize = 160;

/// Problems that are kept for one artefact; a hopeless one has the same thousands of times.
const PROBLEMS: usize = 20;

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
            let text = &text[..text.len().min(SHOWN_BYTES)];
            let text = String::from_utf8_lossy(text).into_owned();
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
