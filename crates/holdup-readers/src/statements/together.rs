//! What several lines say together and none of them alone.
//!
//! In: lines. Out: facts about lists, blocks, progress and packets. What a list tells, its lines do not tell once more.

use super::counted::Counted;
use super::examined::Examined;
use super::packets::Packets;
use super::progress::Progress;
use super::shared_list::SharedLists;
use super::signs::Signs;
use super::sorted_rows::SortedRows;
use super::tables::{Blocks, Fact};
use super::timed_list::TimedLists;
use crate::formats::Stamps;
use holdup_evidence::observed::{Statement, StatementKind};

/// Follows all that is told by several lines.
#[derive(Debug, Default)]
pub(super) struct Together {
    progress: Progress,
    packets: Packets,
    counted: Counted,
    timed_lists: TimedLists,
    sorted_rows: SortedRows,
    shared_lists: SharedLists,
    blocks: Blocks,
    signs: Signs,
    examined: Examined,
}

impl Together {
    /// Takes a line, as it is and without what is no text of it; whether progress or a packet is told by it.
    pub(super) fn line(
        &mut self,
        line: &[u8],
        text: &[u8],
        number: u64,
        of_table: bool,
        stamps: &mut Stamps,
    ) -> bool {
        let goes_on =
            !of_table && self.progress.line(text, number) || self.packets.line(text, number, stamps);
        self.sorted_rows.line(line, number);
        self.signs.line(text, number);
        self.examined.line(line, number);
        if !of_table {
            self.counted.line(text, number);
            self.timed_lists.line(line, number);
            self.shared_lists.line(text, number);
            self.blocks.line(line, number);
        }
        goes_on
    }

    /// Takes a line that its reader keeps.
    pub(super) fn evidence(&mut self, line: &[u8]) {
        self.signs.evidence(line);
    }

    /// Takes a line of a log that its reader keeps.
    pub(super) fn kept(&mut self, line: &[u8], number: u64) {
        self.signs.kept(line, number);
    }

    /// Passes over a line that states nothing.
    pub(super) fn pass(&mut self, line: &[u8], number: u64) {
        self.timed_lists.pass(line, number);
        self.sorted_rows.pass(line);
        self.shared_lists.line(line, number);
        self.signs.line(line, number);
        self.blocks.line(line, number);
    }

    /// Everything that was said. Leaves out of the facts of tables and of the statements what is told by it.
    pub(super) fn end(&mut self, facts: &mut Vec<Fact>, statements: &mut Vec<Statement>) -> Vec<Fact> {
        self.timed_lists.end();
        self.sorted_rows.end();
        let (lists, sorted) = (&self.timed_lists, &self.sorted_rows);
        facts.retain(|fact| fact.kind != StatementKind::Took || !sorted.has(fact.line));
        statements.retain(|one| {
            let of_row = one.kind == StatementKind::Took && sorted.has(one.quote.line);
            !lists.tells(one.quote.line, one.kind) && !of_row
        });
        facts.extend(self.blocks.end());
        facts.splice(0..0, self.sorted_rows.facts());
        let signs = self.signs.end(statements);
        let stuck = self.progress.end().into_iter().chain(self.packets.end());
        stuck
            .chain(self.counted.end())
            .chain(self.examined.end())
            .chain(self.timed_lists.fact())
            .chain(self.shared_lists.end())
            .chain(signs)
            .collect()
    }
}
