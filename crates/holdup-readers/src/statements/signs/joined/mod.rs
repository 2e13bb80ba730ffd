//! What lines tell only together: a part of a whole, a figure that falls back, something that began and did not end, a name that comes again, a limit
//! in one line and who is at it in another.
//!
//! In: lines with one of the words below. Out: facts, and the numbers of the lines that they tell. Each watcher keeps a bounded number of things.

mod collections;
mod cron_trees;
mod daemons;
mod jobs;
mod ranks;
mod requests;
mod scans;
mod zones;

use super::Told;
use crate::stamp;
use crate::statements::tables::Fact;
use holdup_evidence::observed::When;

/// Words that a line has which a watcher wants to see.
pub(super) const WORDS: &[&str] = &[
    // Collections of garbage.
    "], collections [",
    // Daemons with slow requests.
    "slow ops",
    "slow requests",
    "implicated osds",
    // Jobs of queues.
    "received task",
    "revoked task",
    "] received",
    "] succeeded in",
    "] raised ",
    "] retry:",
    "] failed",
    " jid-",
    " jid=",
    ") running",
    ") completed after",
    ") failed",
    "restarting",
    "sigterm",
    "sigkill",
    "warm shutdown",
    "cold shutdown",
    "state changed from up",
    "missed heartbeat",
    // Ranks that wait for each other.
    "collective operation timeout",
    // Processes of cron in trees.
    "*[cron",
    "/cron",
    "/bin/sh -c ",
    "/bin/bash -c ",
    // Requests of web frameworks.
    "views: ",
    "activerecord: ",
    " view=",
    "rendered ",
    // Repairs of pools.
    " scanned out of ",
    " resilvered, ",
    "zpool status",
    "unrecovered read error",
    "medium error",
    "i/o error",
    "failed command",
    // Memory of zones.
    "kb min:",
    "page allocation failure",
    "free swap",
    "*4kb",
    "_4kb",
];

/// A line with one of the words.
#[derive(Debug, Clone, Copy)]
struct Line<'a> {
    text: &'a str,
    at: Option<When>,
    number: u64,
}

/// The watchers of one artefact.
#[derive(Debug, Default)]
pub(super) struct Joined {
    collections: collections::Collections,
    cron_trees: cron_trees::CronTrees,
    daemons: daemons::Daemons,
    jobs: jobs::Jobs,
    ranks: ranks::Ranks,
    requests: requests::Requests,
    scans: scans::Scans,
    zones: zones::Zones,
}

impl Joined {
    /// Takes a line with one of the words.
    pub(super) fn line(&mut self, text: &str, number: u64) {
        let at = stamp::leading(text.as_bytes()).and_then(|(stamp, _)| stamp.at);
        let line = Line { text, at, number };
        self.collections.line(line);
        self.daemons.line(line);
        self.cron_trees.line(line);
        self.ranks.line(line);
        self.jobs.line(line);
        self.requests.line(line);
        self.scans.line(line);
        self.zones.line(line);
    }

    /// What they tell.
    pub(super) fn end(&mut self, told: &mut Told) -> Vec<Fact> {
        let all = std::mem::take(self);
        let facts = all.collections.end(told).into_iter();
        facts
            .chain(all.daemons.end(told))
            .chain(all.jobs.end(told))
            .chain(all.requests.end(told))
            .chain(all.cron_trees.end())
            .chain(all.ranks.end())
            .chain(all.scans.end(told))
            .chain(all.zones.end(told))
            .collect()
    }
}

/// The number that a text begins with, and what stands behind it.
fn leading_number(text: &str) -> Option<(f64, &str)> {
    let end = text
        .find(|char: char| !char.is_ascii_digit() && char != '.')
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    let number: f64 = digits.trim_end_matches('.').parse().ok()?;
    (0.0..1e18).contains(&number).then_some((number, rest))
}

/// What stands in a text behind some words.
fn behind<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    text.split_once(words).map(|(_, rest)| rest)
}

/// Bytes of a size with the unit's first letter: `19.2gb`, `1.60T`, `53.7M`, `0b`.
fn size(text: &str) -> Option<f64> {
    let (number, unit) = leading_number(text.trim())?;
    let factor = match unit.trim().chars().next().map(|first| first.to_ascii_lowercase()) {
        None | Some('b') => 1.0,
        Some('k') => 1024.0,
        Some('m') => 1_048_576.0,
        Some('g') => 1_073_741_824.0,
        Some('t') => 1_099_511_627_776.0,
        Some('p') => 1_125_899_906_842_624.0,
        Some(_) => return None,
    };
    Some(number * factor)
}

#[cfg(test)]
mod tests;
