//! Collections of the old generation that free nothing: the monitor of Elasticsearch and OpenSearch tells of each how long it took, of how long a
//! time, and what was in use before and after it.
//!
//! In: `[node] [gc][old][…] duration [6.4s], collections [1]/[7.7s], total […], memory [a]->[b]/[max], all_pools {[old] [a]->[b]/[max]}`. Out: of
//! each node how full its old generation stays, and which part of the time it collects.

use super::{Line, behind, size};
use crate::statements::signs::{Told, length_ns};
use crate::statements::tables::Fact;
use holdup_evidence::Ns;
use holdup_evidence::observed::StatementKind;
use holdup_evidence::units::duration;

/// Nodes that are followed, lines of each that are told, and bytes of a name.
const MAX_NODES: usize = 50;
const MAX_LINES: usize = 200;
const MAX_NAME_CHARS: usize = 80;

/// The part of the heap that is in use behind a collection from which it freed too little, and the part of the time in it.
const FULL: f64 = 0.85;
const MIN_TIME: f64 = 0.3;

#[derive(Debug, Default)]
struct Node {
    name: String,
    times: u64,
    took: f64,
    over: f64,
    longest: f64,
    /// What is in use behind the last one, and at most, as the line has it and in bytes.
    after: (String, f64),
    most: (String, f64),
    lines: Vec<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Collections {
    nodes: Vec<Node>,
}

/// What stands in the brackets behind some words: `duration [6.4s]`.
fn bracket<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let rest = behind(text, words)?.trim_start().strip_prefix('[')?;
    rest.split(']').next()
}

/// `[19.3gb]->[19.2gb]/[20gb]`: behind, and at most.
fn change(text: &str) -> Option<(&str, &str)> {
    let (_, rest) = text.split_once("->[")?;
    let (after, rest) = rest.split_once("]/[")?;
    Some((after, rest.split(']').next()?))
}

impl Collections {
    pub(super) fn line(&mut self, line: Line<'_>) {
        let Some((before, rest)) = line.text.split_once("[gc][old][") else {
            return;
        };
        let Some(read) = read(rest) else { return };
        let name = before.trim_end().trim_end_matches(']').rsplit('[').next();
        let name: String = name
            .unwrap_or_default()
            .trim()
            .chars()
            .take(MAX_NAME_CHARS)
            .collect();
        let place = match self.nodes.iter().position(|node| node.name == name) {
            Some(place) => place,
            None if self.nodes.len() < MAX_NODES => {
                self.nodes.push(Node {
                    name,
                    ..Node::default()
                });
                self.nodes.len() - 1
            }
            None => return,
        };
        let Some(node) = self.nodes.get_mut(place) else {
            return;
        };
        node.times += 1;
        node.took += read.took;
        node.over += read.over;
        node.longest = node.longest.max(read.took);
        (node.after, node.most) = (read.after, read.most);
        if node.lines.len() < MAX_LINES {
            node.lines.push(line.number);
        }
    }

    pub(super) fn end(self, told: &mut Told) -> Vec<Fact> {
        let full = |node: &&Node| {
            node.most.1 > 0.0
                && node.after.1 / node.most.1 >= FULL
                && node.over > 0.0
                && node.took / node.over >= MIN_TIME
        };
        let facts = self.nodes.iter().filter(full).map(|node| {
            for line in &node.lines {
                told.add(*line);
            }
            node.fact()
        });
        facts.collect()
    }
}

struct Read {
    took: f64,
    over: f64,
    after: (String, f64),
    most: (String, f64),
}

fn read(text: &str) -> Option<Read> {
    let took = length_ns(bracket(text, "duration ")?)?;
    let over = behind(text, "collections [")?.split_once("]/[")?.1;
    let over = length_ns(over.split(']').next()?)?;
    let whole = change(behind(text, "memory ")?)?;
    // Of a heap without fixed generations the old one's limit is the whole heap's.
    let of_old = behind(text, "{[old] ")
        .and_then(change)
        .filter(|(_, most)| size(most).is_some_and(|most| most > 0.0));
    let (after, most) = of_old.unwrap_or(whole);
    let kept = |text: &str| Some((text.to_owned(), size(text)?));
    Some(Read {
        took,
        over,
        after: kept(after)?,
        most: kept(most)?,
    })
}

impl Node {
    fn fact(&self) -> Fact {
        let share = (self.took / self.over).min(1.0);
        let part = (self.after.1 / self.most.1).min(1.0);
        let ns = |value: f64| value.clamp(0.0, 1e18) as Ns;
        let times = match self.times {
            1 => "a collection".to_owned(),
            times => format!("{times} collections"),
        };
        Fact {
            kind: StatementKind::Exhausted,
            share: Some(part),
            ns: Some(ns(self.longest)),
            line: self.lines.first().copied().unwrap_or(0),
            text: format!(
                "the heap of {} is full: after {times} of the old generation {} of {} ({:.0} %) are still in use, so that they free hardly \
                 anything; they took {} of {} ({:.0} %), the longest {}, in which the node does nothing else",
                match self.name.as_str() {
                    "" => "the node",
                    name => name,
                },
                self.after.0,
                self.most.0,
                part * 100.0,
                duration(ns(self.took)),
                duration(ns(self.over)),
                share * 100.0,
                duration(ns(self.longest)),
            ),
        }
    }
}
