//! On which line the command stands that a script runs.
//!
//! Bash's own count of lines is that of the command around it by the time it waits for the program that it started. What it keeps is the
//! command's text, as `jobs` shows it. In: an interpreter. Out: the line of the one command with that text among those that its stack
//! refers to; nothing where several lines have it. The stack ends below the environment; where it begins is not known, so what an
//! earlier call left there is looked at too. A command's text is compared, so that nothing else is taken for one.

use super::Interpreter;
use crate::memory::{PAGE, Source};
use std::collections::{BTreeSet, HashSet};

/// How far below the environment is looked, bytes: a function takes Bash some 1,500.
const STACK_MAX: u64 = 1 << 16;

/// Bytes around Bash's variables within which its commands lie: both are in its heap.
const HEAP_MAX: u64 = 1 << 28;

/// Commands that are looked at, how deep within each other, and words of one.
const COMMANDS_MAX: usize = 4096;
const DEPTH_MAX: u32 = 64;
const WORDS_MAX: usize = 256;

/// Bytes of a command's text. A longer one has no line.
const TEXT_MAX: usize = 1 << 13;

/// In a command: its kind, and the part that is of its kind.
const COMMAND_KIND: u64 = 0;
const COMMAND_PART: u64 = 24;
const COMMAND_ALIGNED: u64 = 8;

/// Kinds of commands, as Bash numbers them, and where each has those within it.
const FOR: u32 = 0;
const CASE: u32 = 1;
const WHILE: u32 = 2;
const IF: u32 = 3;
const SIMPLE: u32 = 4;
const SELECT: u32 = 5;
const CONNECTION: u32 = 6;
const UNTIL: u32 = 8;
const GROUP: u32 = 9;
const ARITHMETIC_FOR: u32 = 12;
const SUBSHELL: u32 = 13;

/// In a simple command: its line and its words. In a list of words: the next, and the word, which begins with its text.
const SIMPLE_LINE: u64 = 4;
const SIMPLE_WORDS: u64 = 8;
const LIST_NEXT: u64 = 0;
const LIST_WORD: u64 = 8;

/// In `case`: its clauses; in a clause: the next, and its command.
const CASE_CLAUSES: u64 = 16;
const CLAUSE_NEXT: u64 = 0;
const CLAUSE_COMMAND: u64 = 16;

/// Lines of commands whose text is the longest that fits: those to which the stack refers itself, and those within others.
#[derive(Debug, Default)]
struct Lines {
    length: usize,
    direct: BTreeSet<u32>,
    within: BTreeSet<u32>,
}

impl Lines {
    fn add(&mut self, length: usize, line: u32, depth: u32) {
        if length < self.length {
            return;
        }
        if length > self.length {
            *self = Lines {
                length,
                ..Lines::default()
            };
        }
        let lines = if depth == 0 {
            &mut self.direct
        } else {
            &mut self.within
        };
        lines.insert(line);
    }

    /// The only one; of several those to which the stack refers itself are tried first.
    fn only(&self) -> Option<u32> {
        let lines = if self.direct.is_empty() {
            &self.within
        } else {
            &self.direct
        };
        lines.first().copied().filter(|_| lines.len() == 1)
    }
}

impl<S: Source> Interpreter<S> {
    /// The line of the command that runs.
    pub(super) fn line(&mut self) -> Option<u32> {
        let printed = self.memory.word(self.place.printed)?;
        let text = self.memory.c_text(printed, TEXT_MAX)?;
        if text.is_empty() {
            return None;
        }
        let heap = self.memory.word(self.place.variables)?;
        let top = self.memory.word(self.place.environment)?;
        let mut lines = Lines::default();
        let mut met = HashSet::new();
        let mut page = top - top % PAGE as u64;
        let lowest = page.saturating_sub(STACK_MAX);
        let mut bytes = [0; PAGE];
        while page > lowest && self.memory.read(page, &mut bytes).is_some() {
            for word in bytes.chunks_exact(8) {
                let word = u64::from_le_bytes(word.try_into().ok()?);
                if word % COMMAND_ALIGNED == 0 && word.abs_diff(heap) < HEAP_MAX {
                    self.look(word, &text, 0, &mut met, &mut lines);
                }
            }
            page = page.checked_sub(PAGE as u64)?;
        }
        lines.only()
    }

    /// Looks at what may be a command, and at those within it. What cannot be read is none.
    fn look(&mut self, command: u64, text: &str, depth: u32, met: &mut HashSet<u64>, lines: &mut Lines) {
        let direct = depth == 0;
        if command == 0 || depth > DEPTH_MAX || met.len() >= COMMANDS_MAX {
            return;
        }
        // One that was met within another may be referred to by the stack as well.
        if !met.insert(command) && !direct {
            return;
        }
        let _ = self.inside(command, text, depth, met, lines);
    }

    fn inside(
        &mut self,
        command: u64,
        text: &str,
        depth: u32,
        met: &mut HashSet<u64>,
        lines: &mut Lines,
    ) -> Option<()> {
        let kind = self.memory.int(command.checked_add(COMMAND_KIND)?)?;
        if kind > SUBSHELL {
            return None;
        }
        let part = self.field(command, COMMAND_PART)?;
        let within: &[u64] = match kind {
            SIMPLE => {
                let line = self.memory.int(part.checked_add(SIMPLE_LINE)?)?;
                if let Some(length) = self.fits(part, text) {
                    lines.add(length, line, depth);
                }
                return Some(());
            }
            CASE => return self.clauses(part, text, depth, met, lines),
            FOR | SELECT => &[24],
            WHILE | UNTIL | CONNECTION => &[8, 16],
            IF => &[8, 16, 24],
            GROUP | SUBSHELL => &[8],
            ARITHMETIC_FOR => &[32],
            _ => &[],
        };
        for offset in within {
            let next = self.field(part, *offset)?;
            self.look(next, text, depth + 1, met, lines);
        }
        Some(())
    }

    fn clauses(
        &mut self,
        part: u64,
        text: &str,
        depth: u32,
        met: &mut HashSet<u64>,
        lines: &mut Lines,
    ) -> Option<()> {
        let mut clause = self.field(part, CASE_CLAUSES)?;
        // Each clause counts as a command: a circle ends.
        while clause != 0 && met.len() < COMMANDS_MAX && met.insert(clause) {
            let command = self.field(clause, CLAUSE_COMMAND)?;
            self.look(command, text, depth + 1, met, lines);
            clause = self.field(clause, CLAUSE_NEXT)?;
        }
        Some(())
    }

    /// How many bytes of the text are the words of a simple command; behind them stand what it redirects.
    fn fits(&mut self, simple: u64, text: &str) -> Option<usize> {
        let mut list = self.field(simple, SIMPLE_WORDS)?;
        let (mut left, mut words) = (text, 0);
        while list != 0 {
            let word = self.field(list, LIST_WORD)?;
            let word = self.memory.word(word)?;
            let word = self.memory.c_text(word, TEXT_MAX)?;
            if words > 0 {
                left = left.strip_prefix(' ')?;
            }
            left = left.strip_prefix(word.as_str())?;
            words += 1;
            if words > WORDS_MAX {
                return None;
            }
            list = self.field(list, LIST_NEXT)?;
        }
        let whole = words > 0 && (left.is_empty() || left.starts_with(' '));
        whole.then(|| text.len() - left.len())
    }
}
