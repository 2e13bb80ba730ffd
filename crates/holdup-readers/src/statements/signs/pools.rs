//! A pool of which nothing is free while somebody waits, by the figures of one line: `total=10, active=10, idle=0, waiting=25`.
//!
//! In: lines in which something idle or free is nought, or as much is in use as there may be: `active=50 max=50 waiting=37`, `8/8 busy, 121 queued`,
//! `20 of 20 connections in use, 3 waiting`. Out: for each shape of line one fact: how many are in use, and how many wait. A pool that
//! nobody waits for, or that has one free, says nothing.

use super::Told;
use crate::statements::shape;
use crate::statements::tables::Fact;
use holdup_evidence::observed::StatementKind;

/// Pools that are kept, and lines of each that are kept as told.
const MAX_POOLS: usize = 32;
const MAX_LINES: usize = 100;

/// Last words of names of what is free, of who waits, of what is in use, and of all.
const FREE: [&str; 5] = ["idle", "free", "available", "idlecount", "spare"];
const WAITING: [&str; 8] = [
    "waiting",
    "waiters",
    "pending",
    "queued",
    "awaiting",
    "waitingcount",
    "threadsawaitingconnection",
    "waitqueue",
];
const USED: [&str; 6] = ["active", "busy", "used", "inuse", "borrowed", "acquired"];
const ALL: [&str; 5] = ["total", "size", "max", "totalcount", "capacity"];
/// Names of how many there may be, where a line does not say how many are free.
const LIMITS: [&str; 11] = [
    "max",
    "limit",
    "capacity",
    "maxactive",
    "maxsize",
    "maxpoolsize",
    "poolsize",
    "maximumpoolsize",
    "maxconnections",
    "maxtotal",
    "maxthreads",
];
/// Words that name what is taken where a line has `8/8` or `8 of 8`.
const TAKEN: [&str; 16] = [
    "busy",
    "in use",
    "in-use",
    "used",
    "active",
    "taken",
    "occupied",
    "running",
    "checked out",
    "borrowed",
    "connections",
    "workers",
    "threads",
    "slots",
    "permits",
    "executors",
];
/// Words that name those who wait, behind their number.
const BEHIND_NUMBER: [&str; 7] = [
    "waiting",
    "queued",
    "pending",
    "waiters",
    "in queue",
    "wait",
    "in the queue",
];

#[derive(Debug)]
struct Pool {
    key: u64,
    times: u64,
    waiting: u64,
    line: u64,
    lines: Vec<u64>,
    text: String,
}

/// The pools of one artefact.
#[derive(Debug, Default)]
pub(super) struct Pools {
    all: Vec<Pool>,
}

/// What HikariCP prints while it makes connections: the waiter gets the one that was just made.
const GROWS: &str = "After adding stats";

/// A name in small letters without signs: `in_use`, `idleCount`.
fn bare(name: &str) -> String {
    let mut bare: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    bare.make_ascii_lowercase();
    bare
}

/// Words behind `8/8` among which it is said what those are.
const WORDS_BEHIND: usize = 4;

/// Pairs of one line.
const MAX_PAIRS: usize = 40;

/// Names with whole numbers: `idle=0`, `idle: 0`, `"idle":0`. A name may stand behind another one that heads them: `pool state: idle: 0`.
fn figures(text: &str) -> Vec<(String, u64)> {
    let between =
        |char: char| char.is_whitespace() || matches!(char, ',' | ';' | '(' | ')' | '{' | '}' | '"' | '\'');
    let mut found = Vec::new();
    let mut name = "";
    for word in text
        .split(between)
        .filter(|word| !word.is_empty())
        .take(4 * MAX_PAIRS)
    {
        let (before, value) = match word.split_once(['=', ':']) {
            Some(("", value)) => (name, value),
            Some((before, value)) => (before, value),
            None => (name, word),
        };
        name = before;
        if let Ok(value) = value.parse()
            && !before.is_empty()
            && found.len() < MAX_PAIRS
        {
            found.push((bare(before), value));
            name = "";
        } else if !value.is_empty() && !word.contains(['=', ':']) {
            name = word;
        }
    }
    found
}

/// How many of a pool are in use, where none is free, and how many wait. A line that names neither a pool nor what is in use is one of something
/// else: free memory, replicas that are available.
fn used_up(text: &str) -> Option<(u64, u64)> {
    let pairs = figures(text);
    let of = |names: &[&str]| {
        let found = pairs.iter().find(|(name, _)| names.contains(&name.as_str()));
        found.map(|(_, value)| *value)
    };
    let waiting = of(&WAITING).filter(|waiting| *waiting > 0)?;
    let pool = text.to_ascii_lowercase().contains("pool");
    let used = of(&USED).or_else(|| of(&ALL).filter(|_| pool))?;
    // A pool that has made nothing yet has nothing in use either, and one that is below its size makes another.
    let grows = |used: u64| {
        let mut sizes = pairs.iter().filter(|(name, _)| ALL.contains(&name.as_str()));
        sizes.any(|(_, size)| *size > used)
    };
    let free = of(&FREE);
    // `active=12 max=12 limit=64`: the most that were in use, and not as many as may be.
    let at_limit = || {
        let limits = pairs.iter().filter(|(name, _)| LIMITS.contains(&name.as_str()));
        free.is_none() && limits.map(|(_, limit)| *limit).max() == Some(used)
    };
    let spent = (free == Some(0) || at_limit()) && used > 0 && !grows(used) && !text.contains(GROWS);
    spent.then_some((used, waiting))
}

/// The same of a line in words: `8/8 busy, 121 queued`, `20 of 20 connections in use, 3 waiting`.
fn used_up_in_words(text: &str) -> Option<(u64, u64)> {
    let words: Vec<&str> = text.split_whitespace().take(4 * MAX_PAIRS).collect();
    let whole = |word: &str| {
        word.trim_matches(['(', ')', ',', ';', '[', ']', ':'])
            .parse::<u64>()
            .ok()
    };
    let mut ratios = words.iter().enumerate().filter_map(|(at, word)| {
        let pair = word.trim_matches(['(', ')', ',', ';', '[', ']']).split_once('/');
        let of = words.get(at + 1) == Some(&"of");
        let (some, all, end) = match (pair, of) {
            (Some((some, all)), _) => (some.parse().ok()?, all.parse().ok()?, at + 1),
            (None, true) => (whole(word)?, whole(words.get(at + 2)?)?, at + 3),
            _ => return None,
        };
        Some((some, all, end))
    });
    let (used, _, end): (u64, u64, usize) = ratios.find(|(some, all, _)| some == all && *all > 0)?;
    let rest: Vec<String> = words
        .get(end..)?
        .iter()
        .map(|word| word.to_ascii_lowercase())
        .collect();
    let near = rest
        .iter()
        .take(WORDS_BEHIND)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(" ");
    if !TAKEN.iter().any(|taken| near.contains(taken)) {
        return None;
    }
    let waiting = rest.iter().enumerate().find_map(|(at, word)| {
        let count = whole(word).filter(|count| *count > 0)?;
        let behind = rest
            .get(at + 1..)?
            .iter()
            .take(3)
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(" ");
        // `3 clients waiting`; `waiting: 3`.
        let before = at
            .checked_sub(1)
            .and_then(|at| rest.get(at))
            .map_or("", String::as_str);
        let named = BEHIND_NUMBER.iter().any(|known| {
            behind.starts_with(known) || before.strip_suffix(':').is_some_and(|before| before == *known)
        });
        let after_noun = behind
            .split_once(' ')
            .is_some_and(|(_, rest)| BEHIND_NUMBER.iter().any(|known| rest.starts_with(known)));
        (named || after_noun).then_some(count)
    })?;
    Some((used, waiting))
}

impl Pools {
    pub(super) fn line(&mut self, text: &str, number: u64) {
        let Some((used, waiting)) = used_up(text).or_else(|| used_up_in_words(text)) else {
            return;
        };
        let key = shape::shape(text.as_bytes(), 0);
        let used = match used {
            1 => "its only one is in use".to_owned(),
            used => format!("all {used} are in use"),
        };
        let wait = if waiting == 1 { "waits" } else { "wait" };
        let told = format!(
            "a pool is used up: {used}, none is free, and {waiting} {wait} for one: {}",
            shape::sentence(text.as_bytes(), 0)
        );
        let room = self.all.len() < MAX_POOLS;
        match self.all.iter_mut().find(|pool| pool.key == key) {
            Some(pool) => {
                pool.times += 1;
                if pool.lines.len() < MAX_LINES {
                    pool.lines.push(number);
                }
                if waiting > pool.waiting {
                    (pool.waiting, pool.line, pool.text) = (waiting, number, told);
                }
            }
            None if room => self.all.push(Pool {
                key,
                times: 1,
                waiting,
                line: number,
                lines: vec![number],
                text: told,
            }),
            None => {}
        }
    }

    pub(super) fn end(&mut self, told: &mut Told) -> Vec<Fact> {
        let pools = std::mem::take(&mut self.all).into_iter();
        pools
            .map(|pool| {
                pool.lines.iter().for_each(|line| told.add(*line));
                let often = match pool.times {
                    1 => String::new(),
                    times => format!(" ({times} times; here most wait)"),
                };
                Fact {
                    kind: StatementKind::Exhausted,
                    share: None,
                    ns: None,
                    line: pool.line,
                    text: format!("{}{often}", pool.text),
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::used_up;
    use crate::read_text;

    #[test]
    fn a_pool_without_a_free_one_and_with_somebody_who_waits() {
        for (text, found) in [
            (
                "store-pool - after cleanup stats (total=10, active=10, idle=0, waiting=25)",
                (10, 25),
            ),
            (
                "pool state: idleCount: 0, totalCount: 20, waitingCount: 3",
                (20, 3),
            ),
            ("{\"in_use\": 5, \"idle\": 0, \"queued\": 41}", (5, 41)),
            ("workers: busy=8 free=0 pending=7", (8, 7)),
        ] {
            assert_eq!(used_up(text), Some(found), "{text}");
        }
    }

    #[test]
    fn one_at_its_limit_by_figures_or_in_words() {
        for (text, found) in [
            ("datasource=a active=50 max=50 pending=37", (50, 37)),
            ("pool b: inUse: 12, maxPoolSize: 12, waiting: 4", (12, 4)),
            ("workers: reports 8/8 busy, 121 queued", (8, 121)),
            ("20 of 20 connections in use, 3 clients waiting", (20, 3)),
            ("db: (16/16) slots taken, waiting: 9", (16, 9)),
        ] {
            let all = used_up(text).or_else(|| super::used_up_in_words(text));
            assert_eq!(all, Some(found), "{text}");
        }
        for text in [
            "workers: default 3/16 busy, 4 queued",
            "workers: default 8/8 busy, 0 queued",
            "page 3/3, 12 waiting",
            "tests 8/8 passed, 3 pending",
            "container 1/1 running, waiting for 3 probes",
            "active=3 max=50 pending=2",
            "stats pool=main active=12 max=12 waiting=1 limit=64",
            "20 of 20 files copied, 3 pending",
        ] {
            let all = used_up(text).or_else(|| super::used_up_in_words(text));
            assert_eq!(all, None, "{text}");
        }
    }

    #[test]
    fn one_with_room_or_without_waiters_is_well() {
        for text in [
            "stats (total=10, active=9, idle=1, waiting=0)",
            "stats (total=10, active=10, idle=0, waiting=0)",
            "stats (total=0, active=0, idle=0, waiting=3)",
            "stats (max=10, active=2, idle=0, pending=1)",
            "{\"total\": 4, \"max\": 20, \"in_use\": 4, \"idle\": 0, \"queued\": 2}",
            "idle=0, waiting=x",
            "free=0 pending=7",
            "Deployment status web: desired=3 available=0 pending=3",
            "Deployment web: total=3 available=0 pending=3",
            "load: memory free=0 swap free=120 requests pending=4",
            "HikariPool-1 - After adding stats (total=3, active=3, idle=0, waiting=1)",
            "cpu idle=0 user=99",
        ] {
            assert_eq!(used_up(text), None, "{text}");
        }
    }

    #[test]
    fn the_line_with_most_waiters_is_told() {
        let text = "2026-03-03 10:00:00 pool-a stats (total=10, active=10, idle=0, waiting=2)\n\
            2026-03-03 10:00:30 pool-a stats (total=10, active=10, idle=0, waiting=25)\n";
        let said = read_text("p", text.as_bytes()).texts().join("\n");
        assert!(
            said.contains("a pool is used up: all 10 are in use, none is free, and 25 wait for one: ")
                && said.contains("(2 times; here most wait)"),
            "{said}"
        );
    }
}
