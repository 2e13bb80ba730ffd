//! Blocks of names with values, one block for each thing, under its name: `Brick web-3:/data`, `Status: Transport endpoint is not connected`.
//!
//! In: lines of a text that no reader knows. Out: of several blocks with the same names, which is in a bad state. A single block is no list, and its
//! lines state what they do by themselves.

use super::states::bad;
use super::{CELL, COLUMNS, Column, Fact};
use crate::gather::text_of;
use crate::statements::{kinds, shape};
use holdup_evidence::observed::StatementKind;

/// Kinds of blocks in one artefact.
const MAX_KINDS: usize = 16;

/// Bytes of a line that are looked at, and of a name.
const LINE: usize = 300;
const NAME: usize = 40;

/// Bytes of a heading; a longer line is a message.
const HEADING: usize = 120;

/// Words from which a state is a sentence, whose words tell what it is.
const SENTENCE: usize = 3;

/// Blocks that make a list.
const MIN_BLOCKS: u64 = 2;

/// Follows the blocks of one artefact.
#[derive(Debug, Default)]
pub(in crate::statements) struct Blocks {
    /// The last line that is no pair.
    heading: Vec<u8>,
    names: Vec<String>,
    /// The first pair of a block without a heading names it.
    first: String,
    /// What is bad of this block, and where.
    wrong: Option<(StatementKind, u64, String)>,
    kinds: Vec<Blocked>,
}

/// Blocks with the same names.
#[derive(Debug)]
struct Blocked {
    names: Vec<String>,
    count: u64,
    bad: u64,
    first: Option<Fact>,
}

impl Blocks {
    /// Takes a line.
    pub(in crate::statements) fn line(&mut self, line: &[u8], number: u64) {
        let line = line.get(..LINE).unwrap_or(line).trim_ascii();
        let Some((name, value)) = pair(line) else {
            if !self.names.is_empty() {
                self.close();
            }
            self.heading.clear();
            if line.len() <= HEADING && line.first().is_some_and(u8::is_ascii_alphabetic) {
                self.heading.extend_from_slice(line);
            }
            return;
        };
        // The same name once more: the next block begins without an empty line.
        if self.names.first().is_some_and(|first| *first == name) {
            self.close();
        }
        if self.names.len() >= COLUMNS {
            return;
        }
        if self.names.is_empty() {
            self.first = value.clone();
        }
        if self.wrong.is_none()
            && let Some(kind) = wrong(&name, &value)
        {
            self.wrong = Some((kind, number, format!("{name}: {value}")));
        }
        self.names.push(name);
    }

    fn close(&mut self) {
        let names = std::mem::take(&mut self.names);
        let wrong = std::mem::take(&mut self.wrong);
        if names.len() < 2 {
            return;
        }
        let name = match self.heading.as_slice() {
            [] => std::mem::take(&mut self.first),
            heading => shape::sentence(heading, 0),
        };
        self.heading.clear();
        let fact = wrong.map(|(kind, line, said)| Fact {
            kind,
            share: None,
            ns: None,
            line,
            text: format!("{name}: {said}"),
        });
        let known = self.kinds.iter().position(|kind| kind.names == names);
        let at = match known {
            Some(at) => at,
            None if self.kinds.len() < MAX_KINDS => {
                self.kinds.push(Blocked {
                    names,
                    count: 0,
                    bad: 0,
                    first: None,
                });
                self.kinds.len() - 1
            }
            None => return,
        };
        if let Some(kind) = self.kinds.get_mut(at) {
            kind.count += 1;
            kind.bad += u64::from(fact.is_some());
            kind.first = kind.first.take().or(fact);
        }
    }

    /// Everything that was said.
    pub(in crate::statements) fn end(&mut self) -> Vec<Fact> {
        self.close();
        let lists = self.kinds.drain(..).filter(|kind| kind.count >= MIN_BLOCKS);
        let facts = lists.filter_map(|kind| {
            let mut fact = kind.first?;
            fact.text
                .push_str(&format!("; {} of {} are in a bad state", kind.bad, kind.count));
            Some(fact)
        });
        facts.collect()
    }
}

/// What a value says that is bad, if its name is one of a state.
fn wrong(name: &str, value: &str) -> Option<StatementKind> {
    let column = Column {
        name: name.to_owned(),
        ..Column::nameless(0, 0)
    };
    if !column.is_state() {
        return None;
    }
    let sentence = || {
        let words = value.split_whitespace().count() >= SENTENCE;
        let found = words.then(|| kinds::of(value.as_bytes())).flatten()?;
        (found.kind < StatementKind::Warned).then_some(found.kind)
    };
    bad(value).or_else(sentence)
}

/// A name with its value.
fn pair(line: &[u8]) -> Option<(String, String)> {
    let at = line.iter().take(NAME + 1).position(|byte| *byte == b':')?;
    let (name, value) = line.split_at_checked(at)?;
    let (name, value) = (name.trim_ascii(), value.get(1..)?);
    let named = name.first().is_some_and(u8::is_ascii_alphabetic)
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b" _-/()".contains(byte));
    // `host:/path` and `12:30` are no pairs.
    let apart = value.is_empty() || value.first().is_some_and(u8::is_ascii_whitespace);
    let value: String = text_of(value.trim_ascii()).chars().take(2 * CELL).collect();
    (named && apart).then(|| (text_of(name), value))
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    fn said(text: &str) -> Vec<String> {
        let all = read_text("t", text.as_bytes()).observed.statements;
        all.into_iter().map(|one| one.text).collect()
    }

    #[test]
    fn the_block_in_a_bad_state_by_its_heading() {
        let text = "Brick web-1.shop:/data\nStatus: Connected\nEntries: 0\n\nBrick web-3.shop:/data\nStatus: Transport endpoint is not connected\nEntries: -\n\n";
        assert_eq!(
            said(text)[0],
            "Brick web-3.shop:/data: Status: Transport endpoint is not connected; 1 of 2 are in a bad state"
        );
    }

    #[test]
    fn the_block_in_a_bad_state_by_its_first_pair() {
        let text = "Slave Interface: eth0\nMII Status: up\nSpeed: 1000 Mbps\n\nSlave Interface: eth1\nMII Status: down\nSpeed: Unknown\n";
        assert_eq!(said(text)[0], "eth1: MII Status: down; 1 of 2 are in a bad state");
    }

    #[test]
    fn healthy_blocks_and_a_single_one_say_nothing() {
        for text in [
            "Brick a:/d\nStatus: Connected\nEntries: 0\n\nBrick b:/d\nStatus: Connected\nEntries: 0\n",
            "Node: a\nState: ready\nRole: voter\nNode: b\nState: ready\nRole: voter\n",
            "Usage: tool\nNote: see below\n",
        ] {
            let all = said(text);
            assert!(!all.iter().any(|one| one.contains("bad state")), "{all:?}");
        }
    }
}
