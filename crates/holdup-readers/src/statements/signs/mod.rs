//! Signs of trouble that stand in figures or in several lines, and in the words of no single one.
//!
//! In: lines of a text or a log. Out: facts, and the numbers of the lines that they tell, so that no statement says the same once more.
//! One pass over a line finds for which of the watchers below it is; nearly every line is for none.

mod boot_device;
mod coded;
#[cfg(test)]
mod harmless_tests;
mod hits;
mod holders;
mod joined;
mod open_files;
mod over;
mod parts;
mod pools;
mod speeds;
mod spread;
mod standstill;
mod stories;

use super::matcher::Matcher;
use super::tables::Fact;
use crate::gather::text_of;
use holdup_evidence::observed::{Statement, StatementKind};
use std::collections::HashSet;
use std::sync::LazyLock;

/// Bytes of a line that are looked at.
const LINE_BYTES: usize = 600;

/// Lines that are remembered as told.
const MAX_TOLD: usize = 2_000;

/// Whom a word in a line is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum For {
    Boot,
    Coded,
    Hits,
    Holders,
    OpenFiles,
    Over,
    Parts,
    Pools,
    Speeds,
    Spread,
    Standstill,
    Stories,
    Joined,
}

/// Words that a watcher wants to see the line of.
const WORDS: &[(For, &[&str])] = &[
    (
        For::Boot,
        &[
            "initqueue",
            "gave up waiting for",
            "waiting for root",
            "start job is running for",
            "dropping to a shell",
            "cannot open root device",
            "unable to find root device",
            "mounted root",
            "mounted /sysroot",
            "/sysroot.",
            "mounted filesystem",
            "switching root",
        ],
    ),
    (For::Coded, &["error ", "mem="]),
    (For::Hits, &["hit", "miss"]),
    (
        For::Holders,
        &[
            "waiting for ",
            "waits for ",
            "waiting on ",
            "waits on ",
            "waiting to ",
            "blocked on ",
            " wants ",
            " holds ",
            " holding ",
            " owns ",
            "has locked ",
            " acquired ",
            " obtained ",
            " released ",
        ],
    ),
    (
        For::OpenFiles,
        &["max open files", "ulimit -n", "wc -l", "/limits"],
    ),
    (For::Over, &["threshold", "limit"]),
    (For::Parts, &["data", "load", "input_time"]),
    (
        For::Pools,
        &[
            "idle=0",
            "idle: 0",
            "idle\":0",
            "idle\": 0",
            "idlecount: 0",
            "idlecount=0",
            "idlecount\":0",
            "free=0",
            "free: 0",
            "available=0",
            "available: 0",
            " busy",
            "in use",
            "inuse",
            "max=",
            "maxpoolsize",
            "checked out",
            "slots taken",
        ],
    ),
    (For::Speeds, &["/sec)", "b/s)"]),
    (For::Spread, &["mean", "avg", "average", "max"]),
    (
        For::Standstill,
        &[
            "transferred",
            "checks:",
            "copied",
            "copying",
            "received",
            "restored",
            "processed",
            "downloaded",
            "uploaded",
            "elapsed",
            "/s",
        ],
    ),
    (For::Stories, stories::WORDS),
    (For::Joined, joined::WORDS),
];

static MATCHER: LazyLock<Option<Matcher<For>>> = LazyLock::new(|| {
    let each = WORDS.iter();
    Matcher::new(each.flat_map(|(of, words)| words.iter().map(|word| (*word, *of))))
});

/// Lines that a watcher has told, by number; bounded.
#[derive(Debug, Default)]
struct Told {
    lines: HashSet<u64, foldhash::fast::FixedState>,
}

impl Told {
    fn add(&mut self, line: u64) {
        if self.lines.len() < MAX_TOLD {
            self.lines.insert(line);
        }
    }
}

/// All watchers of one artefact.
#[derive(Debug, Default)]
pub(super) struct Signs {
    boot: boot_device::Boot,
    coded: coded::Coded,
    hits: hits::Hits,
    holders: holders::Holders,
    open_files: open_files::OpenFiles,
    over: over::Over,
    parts: parts::Parts,
    pools: pools::Pools,
    speeds: speeds::Speeds,
    spread: spread::Spread,
    standstill: standstill::Standstill,
    stories: stories::Stories,
    joined: joined::Joined,
}

impl Signs {
    /// Takes a line.
    pub(super) fn line(&mut self, line: &[u8], number: u64) {
        let line = line.get(..LINE_BYTES).unwrap_or(line);
        self.evidence(line);
        let mut wanted = [false; For::Joined as usize + 1];
        if let Some(matcher) = MATCHER.as_ref() {
            for (_, of) in matcher.find(line) {
                if let Some(place) = wanted.get_mut(of as usize) {
                    *place = true;
                }
            }
        }
        // Of a log that says so again and again without a name nothing is to be learnt.
        if let Some(holders) = wanted.get_mut(For::Holders as usize) {
            *holders &= !self.holders.is_spent();
        }
        let for_hits = wanted.get(For::Hits as usize) == Some(&true);
        // Of a cache the lines around its hits belong to it.
        let follows = self.hits.is_within(number) || self.open_files.wants(number);
        if !follows && wanted.iter().all(|wanted| !wanted) {
            if self.holders.wants_others() {
                self.holders.other(text_of(line).trim(), number);
            }
            return;
        }
        let is = |of: For| wanted.get(of as usize) == Some(&true);
        let text = text_of(line);
        let text = text.trim();
        self.hits.line(text, number, for_hits);
        if is(For::Boot) {
            self.boot.line(text, number);
        }
        if is(For::Coded) {
            self.coded.line(text, number);
        }
        match is(For::Holders) {
            true => self.holders.line(text, number),
            false => self.holders.other(text, number),
        }
        if is(For::OpenFiles) || self.open_files.wants(number) {
            self.open_files.line(text, number);
        }
        if is(For::Over) {
            self.over.line(text, number);
        }
        if is(For::Parts) {
            self.parts.line(text, number);
        }
        if is(For::Pools) {
            self.pools.line(text, number);
        }
        if is(For::Speeds) {
            self.speeds.line(text, number);
        }
        if is(For::Spread) {
            self.spread.line(text, number);
        }
        if is(For::Standstill) {
            self.standstill.line(text, number);
        }
        if is(For::Stories) {
            self.stories.line(text, number);
        }
        if is(For::Joined) {
            self.joined.line(text, number);
        }
    }

    /// Takes a line that its reader keeps: a root file system that was mounted ends the wait for it.
    pub(super) fn evidence(&mut self, line: &[u8]) {
        if self.boot.waits() {
            let line = line.get(..LINE_BYTES).unwrap_or(line);
            self.boot.came(&text_of(line));
        }
    }

    /// Takes a line of a log that its reader keeps: it may belong to a story whose other lines say nothing to the reader.
    pub(super) fn kept(&mut self, line: &[u8], number: u64) {
        let line = line.get(..LINE_BYTES).unwrap_or(line);
        let hits = MATCHER
            .as_ref()
            .into_iter()
            .flat_map(|matcher| matcher.find(line));
        let (mut of_story, mut joined) = (false, false);
        for (_, of) in hits {
            of_story |= of == For::Stories;
            joined |= of == For::Joined;
        }
        if of_story {
            self.stories.line(text_of(line).trim(), number);
        }
        if joined {
            self.joined.line(text_of(line).trim(), number);
        }
    }

    /// What they found. Leaves out the statements of lines that are told by it.
    pub(super) fn end(&mut self, statements: &mut Vec<Statement>) -> Vec<Fact> {
        let mut told = Told::default();
        let mut facts = Vec::new();
        facts.extend(self.boot.end(&mut told));
        facts.extend(self.coded.end(&mut told));
        facts.extend(self.holders.end(&mut told));
        facts.extend(self.open_files.end(&mut told));
        facts.extend(self.over.end(&mut told));
        facts.extend(self.parts.end(&mut told));
        facts.extend(self.pools.end(&mut told));
        facts.extend(self.speeds.end(&mut told));
        facts.extend(self.hits.end(&mut told));
        facts.extend(self.spread.end(&mut told));
        facts.extend(self.standstill.end(&mut told));
        facts.extend(self.stories.end(&mut told));
        facts.extend(self.joined.end(&mut told));
        // A crash or a deadlock among them is told by its own words.
        let grave = |one: &Statement| one.kind < StatementKind::Exhausted;
        statements.retain(|one| grave(one) || !told.lines.contains(&one.quote.line));
        facts
    }
}

/// Units of lengths of time with their nanoseconds.
const UNITS: [(&str, f64); 14] = [
    ("ns", 1.0),
    ("nsec", 1.0),
    ("us", 1e3),
    ("usec", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("msec", 1e6),
    ("s", 1e9),
    ("sec", 1e9),
    ("secs", 1e9),
    ("m", 6e10),
    ("min", 6e10),
    ("h", 3.6e12),
    ("d", 8.64e13),
];

/// The longest that is a length of time and no mistake: a hundred years, nanoseconds.
const MAX_LENGTH_NS: f64 = 3.2e18;

/// Nanoseconds of a unit.
fn unit_ns(unit: &str) -> Option<f64> {
    UNITS.iter().find(|(name, _)| *name == unit).map(|(_, ns)| *ns)
}

/// Nanoseconds of a length that all of the text is: `6h32m22.5s`, `1200ms`.
fn length_ns(text: &str) -> Option<f64> {
    let mut sum = 0.0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|char: char| !char.is_ascii_digit() && char != '.')?;
        let (number, behind) = rest.split_at_checked(digits)?;
        let behind = behind.trim_start();
        let end = behind
            .find(|char: char| !char.is_alphabetic())
            .unwrap_or(behind.len());
        let (unit, more) = behind.split_at_checked(end)?;
        sum += number.parse::<f64>().ok()? * unit_ns(unit)?;
        rest = more.trim_start();
    }
    (0.0..MAX_LENGTH_NS).contains(&sum).then_some(sum)
}

/// Seconds since the boot at the beginning of a line of the kernel's: `[  192.336428]`.
fn seconds_since_boot(text: &str) -> Option<f64> {
    let (inside, _) = text.strip_prefix('[')?.split_once(']')?;
    let inside = inside.trim();
    (inside.contains('.') && inside.len() < 20).then(|| inside.parse().ok())?
}

#[cfg(test)]
mod tests;
