//! Ranks of a distributed training that waited in vain for each other: which of them are in another step, and which did not come at all.
//!
//! In: `[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=81221, OpType=ALLREDUCE, …)`. Out: the rank that is in another
//! collective than most, or the one that is missing among those that waited.

use super::{Line, behind, leading_number};
use crate::statements::tables::Fact;
use holdup_evidence::observed::StatementKind;
use std::collections::BTreeMap;

/// Ranks that are kept, and that are named.
const MAX_RANKS: usize = 10_000;
const MAX_NAMED: usize = 6;

/// Ranks from which most of them say something of the others.
const MIN_RANKS: usize = 3;

/// Bytes of the name of a collective.
const MAX_CHARS: usize = 40;

#[derive(Debug, Default)]
pub(super) struct Ranks {
    /// Of each rank the collective in which it waited first, and its line.
    all: BTreeMap<u32, (u64, String, u64)>,
}

impl Ranks {
    pub(super) fn line(&mut self, line: Line<'_>) {
        if !line.text.contains("collective operation timeout") {
            return;
        }
        let number = |words: &str| {
            behind(line.text, words)
                .and_then(leading_number)
                .map(|(number, _)| number)
        };
        let (Some(rank), Some(step)) = (number("[Rank "), number("SeqNum=")) else {
            return;
        };
        let kind = behind(line.text, "OpType=").and_then(|rest| rest.split([',', ')']).next());
        let kind: String = kind.unwrap_or_default().chars().take(MAX_CHARS).collect();
        if self.all.len() < MAX_RANKS {
            self.all
                .entry(rank as u32)
                .or_insert((step as u64, kind, line.number));
        }
    }

    pub(super) fn end(self) -> Option<Fact> {
        let mut steps: BTreeMap<(u64, &str), usize> = BTreeMap::new();
        for (step, kind, _) in self.all.values() {
            *steps.entry((*step, kind.as_str())).or_default() += 1;
        }
        let ((step, kind), most) = steps.iter().max_by_key(|(_, count)| **count)?;
        let (step, kind, most) = (*step, *kind, *most);
        if self.all.len() < MIN_RANKS || most * 2 <= self.all.len() {
            return None;
        }
        let others: Vec<String> = self
            .all
            .iter()
            .filter(|(_, (own, of, _))| (*own, of.as_str()) != (step, kind))
            .take(MAX_NAMED)
            .map(|(rank, (own, of, _))| format!("rank {rank} in {of} (SeqNum {own})"))
            .collect();
        let last = *self.all.keys().next_back()?;
        let missing: Vec<String> = (0..last)
            .filter(|rank| !self.all.contains_key(rank))
            .take(MAX_NAMED)
            .map(|rank| rank.to_string())
            .collect();
        let few = missing.len() * 2 < self.all.len();
        let text = match (others.is_empty(), missing.is_empty()) {
            (false, _) => format!(
                "{most} ranks waited for the others in {kind} (SeqNum {step}), while {} waited in another step: they went different ways, and wait for \
                 each other until the timeout",
                others.join(", ")
            ),
            (true, false) if few => format!(
                "{most} ranks waited in {kind} (SeqNum {step}), and of rank {} nothing is told: they waited for it, and its own log says why it did not come",
                missing.join(", ")
            ),
            _ => return None,
        };
        Some(Fact {
            kind: StatementKind::TimedOut,
            share: None,
            ns: None,
            line: self.all.values().next().map_or(0, |(_, _, number)| *number),
            text,
        })
    }
}
