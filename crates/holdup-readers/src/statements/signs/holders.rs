//! Who has what others wait for, where each says so in a line of its own: `T3 holds db, waits for log`, `worker-1 waiting for lock x held by worker-3`.
//!
//! In: lines in which somebody waits for something, has something, or is named as who has it. Out: a circle of those who wait for each other; else
//! who has what most wait for, how many those are, and what the text says that this one does meanwhile. A line that names nobody says nothing here.

use super::{Told, length_ns};
use crate::statements::shape;
use crate::statements::tables::Fact;
use holdup_evidence::Ns;
use holdup_evidence::observed::StatementKind;
use holdup_evidence::units::duration;
use std::collections::{HashMap, HashSet};

/// Lines that are kept.
const MAX_LINES: usize = 400;

/// Lines in which it is looked for what somebody does who has something, and lines with one of the words that are taken apart.
const MAX_LOOKS: u32 = 10_000;
const MAX_PARSED: u32 = 5_000;

/// Bytes of a name, and of a line that is told.
const MAX_NAME_BYTES: usize = 60;
const MAX_TOLD_BYTES: usize = 160;

/// Those who wait that are named.
const MAX_NAMED: usize = 4;

/// What stands before the name of what somebody waits for, of what he has, and of who has it. Small letters.
const WAITS: [&str; 8] = [
    " waiting for ",
    " waits for ",
    " waiting on ",
    " waits on ",
    " waiting to lock ",
    " blocked on ",
    " wants ",
    " waiting to acquire ",
];
const HAS: [&str; 4] = [" holds ", " holding ", " owns ", " has locked "];
const HAD_BY: [&str; 6] = [
    " held by ",
    " owned by ",
    " locked by ",
    " blocked by ",
    ", holder ",
    " holder=",
];

/// What ends a wait, and what ends that somebody has something. Small letters.
const ENDS: [&str; 3] = [" acquired ", " obtained ", " released "];

/// Words that may stand between those and a name.
const KINDS: [&str; 18] = [
    "the",
    "a",
    "lock",
    "mutex",
    "rwlock",
    "latch",
    "monitor",
    "semaphore",
    "row",
    "table",
    "thread",
    "process",
    "pid",
    "session",
    "transaction",
    "worker",
    "task",
    "on",
];

/// What is no name.
const NOBODY: [&str; 12] = [
    "nothing", "none", "nobody", "null", "no", "it", "this", "another", "other", "others", "an", "any",
];

/// What one line says.
#[derive(Debug, Clone, PartialEq)]
struct Said {
    who: String,
    wants: Option<String>,
    had_by: Option<String>,
    has: Option<String>,
    ns: Option<f64>,
    line: u64,
    text: String,
}

/// What the lines of one artefact say.
#[derive(Debug, Default)]
pub(super) struct Holders {
    said: Vec<Said>,
    /// Those who are named as who has something.
    named: HashSet<String, foldhash::fast::FixedState>,
    looks: u32,
    parsed: u32,
    /// Whether the text tells ends of waits at all: then a wait whose end was not looked for may be over.
    tells_ends: bool,
    /// Other lines that begin with a name, by that name: what those do who only have something.
    others: HashMap<String, (u64, String), foldhash::fast::FixedState>,
}

/// A word without the signs around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|char: char| !char.is_alphanumeric() && !matches!(char, '_' | '/' | '.'))
        .trim_end_matches('.')
}

/// The name that stands at the beginning of a text, behind words of kind.
fn name(text: &str) -> Option<String> {
    let mut words = text.split_whitespace().take(4);
    let found = words.find(|word| {
        let small = bare(word).to_ascii_lowercase();
        !KINDS.contains(&small.as_str())
    })?;
    let found = bare(found);
    let is_name = !found.is_empty()
        && found.len() <= MAX_NAME_BYTES
        && !NOBODY.contains(&found.to_ascii_lowercase().as_str());
    // A word of small letters alone is a word of the sentence: `waiting for connections`.
    let marked = found.contains(|char: char| char.is_ascii_digit() || char.is_ascii_uppercase())
        || found.contains(['_', '/', '.', '-', ':']);
    (is_name && marked).then(|| found.to_owned())
}

/// What somebody waits for or has: a name with a mark of its own, and no count, no length of time and no name of a program:
/// `waiting for 5 seconds`, `waiting for Kafka`.
fn thing(text: &str) -> Option<String> {
    let has_mark = |found: &String| {
        let marked = found.contains(|char: char| char.is_ascii_digit() || "_/.-:".contains(char));
        marked && found.contains(char::is_alphabetic) && length_ns(found).is_none()
    };
    name(text).filter(has_mark)
}

/// Where one of these words stands, and where they end.
fn at(small: &str, known: &[&str]) -> Option<(usize, usize)> {
    let each = known
        .iter()
        .filter_map(|words| small.find(words).map(|at| (at, at + words.len())));
    each.min()
}

/// Who says it: a name within quotation marks at the beginning of the line, else the last name before the verb.
fn subject(before: &str) -> Option<String> {
    let quoted = before.trim_start().strip_prefix('"');
    let quoted = quoted.and_then(|rest| rest.split_once('"'));
    if let Some((quoted, _)) =
        quoted.filter(|(quoted, _)| !quoted.is_empty() && quoted.len() <= MAX_NAME_BYTES)
    {
        return Some(quoted.to_owned());
    }
    let auxiliary = [
        "is",
        "was",
        "are",
        "has",
        "been",
        "still",
        "now",
        "and",
        "which",
        "currently",
    ];
    let mut words = before.split_whitespace().rev();
    let last = words.find(|word| !auxiliary.contains(&bare(word)))?;
    // `msg="worker-1 waits for …`.
    name(bare(last).rsplit('"').next()?)
}

/// Whose wait or whose hold a line ends, and whether it is a hold.
fn ended(text: &str) -> Option<(String, bool)> {
    let small = text.to_ascii_lowercase();
    let (from, behind) = at(&small, &ENDS).filter(|_| small.len() == text.len())?;
    // `acquired it after waiting for 5 ms`, but not `has acquired a, waits for b`.
    let waits = at(&small, &WAITS).map(|(at, _)| at);
    let waits_still = waits.is_some_and(|waits| {
        let between = small.get(from..waits);
        between.is_none_or(|between| !between.ends_with(" after"))
    });
    // `lock a-1 was released by w-2`.
    let who = match text.get(behind..)?.strip_prefix("by ") {
        Some(who) => name(who)?,
        None => subject(text.get(..from)?)?,
    };
    (!waits_still).then(|| (who, small.contains(" released ")))
}

/// The length that a line has behind `for` or `since`.
fn length(text: &str) -> Option<f64> {
    let (_, behind) = text.rsplit_once(" for ").or_else(|| text.rsplit_once("since "))?;
    let end = behind.find([')', ',', ';']).unwrap_or(behind.len());
    length_ns(behind.get(..end)?.trim_end_matches('.'))
}

impl Said {
    fn of(text: &str, line: u64) -> Option<Said> {
        let small = text.to_ascii_lowercase();
        // Letters of other alphabets may change their length: then places do not fit.
        if small.len() != text.len() {
            return None;
        }
        let behind = |place: Option<(usize, usize)>| place.and_then(|(_, end)| text.get(end..));
        let (waits, has, had_by) = (at(&small, &WAITS), at(&small, &HAS), at(&small, &HAD_BY));
        let verb = [waits, has].into_iter().flatten().min()?;
        let who = subject(text.get(..verb.0)?)?;
        let said = Said {
            wants: behind(waits).and_then(thing),
            had_by: waits.and(behind(had_by)).and_then(name),
            has: behind(has).and_then(thing),
            ns: length(text),
            line,
            text: shape::sentence(text.as_bytes(), 0)
                .chars()
                .take(MAX_TOLD_BYTES)
                .collect(),
            who,
        };
        let tells = said.wants.is_some() || said.had_by.is_some() || said.has.is_some();
        // Who has it himself does not wait for himself.
        let himself = said.had_by.as_deref() == Some(said.who.as_str());
        (tells && !himself).then_some(said)
    }

    fn waits(&self) -> bool {
        self.wants.is_some() || self.had_by.is_some()
    }
}

impl Holders {
    /// Whether no more lines are taken apart.
    pub(super) fn is_spent(&self) -> bool {
        self.parsed >= MAX_PARSED
    }

    /// Takes a line with one of the words.
    pub(super) fn line(&mut self, text: &str, number: u64) {
        self.parsed = self.parsed.saturating_add(1);
        if let Some((who, released)) = ended(text) {
            self.tells_ends = true;
            let by_him = |one: &Said| released && one.had_by.as_deref() == Some(who.as_str());
            self.said.retain(|one| one.who != who && !by_him(one));
            return;
        }
        if self.said.len() < MAX_LINES
            && let Some(said) = Said::of(text, number)
        {
            self.named.extend(said.had_by.clone());
            self.said.push(said);
        }
    }

    /// Whether somebody is named as who has something, so that other lines may say what he does.
    pub(super) fn wants_others(&self) -> bool {
        !self.named.is_empty() && self.looks < MAX_LOOKS
    }

    /// Takes any other line, which may say what somebody does who has something.
    pub(super) fn other(&mut self, text: &str, number: u64) {
        if !self.wants_others() {
            return;
        }
        self.looks += 1;
        let first = match text.strip_prefix('"') {
            Some(rest) => rest.split('"').next().unwrap_or_default(),
            None => text.split([' ', ':']).next().unwrap_or_default(),
        };
        if self.named.contains(first) {
            let told = || {
                shape::sentence(text.as_bytes(), 0)
                    .chars()
                    .take(MAX_TOLD_BYTES)
                    .collect()
            };
            self.others
                .entry(first.to_owned())
                .or_insert_with(|| (number, told()));
        }
    }

    /// Whom each one waits for.
    fn edges(&self) -> Vec<(&Said, &str)> {
        let has = |what: &str| {
            // Who said so last has it now.
            let mut all = self.said.iter().rev();
            all.find(|said| said.has.as_deref() == Some(what))
                .map(|said| said.who.as_str())
        };
        let waiting = self.said.iter().filter(|said| said.waits());
        let edge = |said: &'_ Said| {
            let by_name = said.had_by.as_deref();
            by_name
                .or_else(|| said.wants.as_deref().and_then(has))
                .map(str::to_owned)
        };
        let edges = waiting.filter_map(|said| Some((said, edge(said)?)));
        let edges: Vec<(&Said, String)> = edges.filter(|(said, holder)| said.who != *holder).collect();
        // The names live in what was said.
        let place = |holder: &str| {
            let mut all = self
                .said
                .iter()
                .flat_map(|said| [Some(&said.who), said.had_by.as_ref()])
                .flatten();
            all.find(|name| name.as_str() == holder).map(String::as_str)
        };
        edges
            .iter()
            .filter_map(|(said, holder)| Some((*said, place(holder)?)))
            .collect()
    }

    /// What they say together.
    pub(super) fn end(&mut self, told: &mut Told) -> Vec<Fact> {
        let all = std::mem::take(self);
        if all.tells_ends && all.is_spent() {
            return Vec::new();
        }
        let edges = all.edges();
        let fact = match circle(&edges) {
            Some(circle) => Some(all.deadlock(&circle, told)),
            None => all.root(&edges, told),
        };
        fact.into_iter().collect()
    }

    fn deadlock(&self, circle: &[&Said], told: &mut Told) -> Fact {
        circle.iter().for_each(|said| told.add(said.line));
        let names: Vec<&str> = circle.iter().map(|said| said.who.as_str()).collect();
        let lines: Vec<&str> = circle.iter().map(|said| said.text.as_str()).collect();
        Fact {
            kind: StatementKind::Deadlock,
            share: None,
            ns: longest(circle),
            line: circle.first().map_or(0, |said| said.line),
            text: format!(
                "deadlock: {} wait for each other: {}",
                names.join(" and "),
                lines.join(" | ")
            ),
        }
    }

    /// Who does not wait and has what most wait for.
    fn root(&self, edges: &[(&Said, &str)], told: &mut Told) -> Option<Fact> {
        let mut behind: HashMap<&str, Vec<&Said>, foldhash::fast::FixedState> = HashMap::default();
        for (said, holder) in edges {
            behind.entry(last_of(edges, holder)).or_default().push(said);
        }
        let (root, waiting) = behind
            .into_iter()
            .max_by_key(|(root, waiting)| (waiting.len(), std::cmp::Reverse(root.to_owned())))?;
        let mut names: Vec<&str> = waiting.iter().map(|said| said.who.as_str()).collect();
        // Who polls says so again and again.
        let mut seen = HashSet::new();
        names.retain(|name| seen.insert(*name));
        let own = |said: &&Said| said.who == root;
        let does = self.said.iter().find(own).map(|said| said.text.as_str());
        let does = does.or_else(|| self.others.get(root).map(|(_, text)| text.as_str()));
        // One line alone says it as well in its own words.
        if does.is_none() && names.len() < 2 {
            return None;
        }
        waiting.iter().for_each(|said| told.add(said.line));
        let count = names.len();
        let more = count.saturating_sub(MAX_NAMED);
        names.truncate(MAX_NAMED);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let ns = longest(&waiting);
        let long = ns.map_or_else(String::new, |ns| format!(", the longest for {}", duration(ns)));
        let what = waiting
            .iter()
            .find_map(|said| said.wants.as_deref())
            .unwrap_or("it");
        let wait = if count == 1 { "waits" } else { "wait" };
        let does = does.map_or_else(String::new, |does| format!("; of {root} the text says: {does}"));
        Some(Fact {
            kind: StatementKind::Stalled,
            share: None,
            ns,
            line: waiting.first()?.line,
            text: format!(
                "{root} has {what}, for which {count} {wait} ({}{more}){long}{does}",
                names.join(", ")
            ),
        })
    }
}

/// The longest of their waits.
fn longest(all: &[&Said]) -> Option<Ns> {
    let lengths = all.iter().filter_map(|said| said.ns);
    lengths.max_by(f64::total_cmp).map(|ns| ns as Ns)
}

/// Whom somebody waits for in the end.
fn last_of<'a>(edges: &[(&Said, &'a str)], from: &'a str) -> &'a str {
    let mut now = from;
    for _ in 0..edges.len() {
        match edges.iter().find(|(said, _)| said.who == now) {
            Some((_, next)) => now = next,
            None => break,
        }
    }
    now
}

/// Those who wait for each other in a circle, from the first line on.
fn circle<'a>(edges: &[(&'a Said, &str)]) -> Option<Vec<&'a Said>> {
    edges.iter().find_map(|(first, _)| {
        let mut path: Vec<&Said> = vec![first];
        let mut now: &str = first.who.as_str();
        for _ in 0..edges.len() {
            let (_, next) = edges.iter().find(|(said, _)| said.who == now)?;
            if *next == first.who {
                return Some(path);
            }
            let (said, _) = edges.iter().find(|(said, _)| said.who == *next)?;
            if path.iter().any(|known| known.who == said.who) {
                return None;
            }
            path.push(said);
            now = said.who.as_str();
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> Vec<(StatementKind, String)> {
        let all = read_text("t", text.as_bytes()).observed.statements.into_iter();
        all.map(|one| (one.kind, one.text)).collect()
    }

    #[test]
    fn who_waits_for_each_other_is_a_circle() {
        for (text, words) in [
            (
                "thread T3 holds mutex db_lock, waits for mutex log_lock (since 91 s)\nthread T7 holds mutex log_lock, waits for mutex db_lock (since 90 s)\n",
                "deadlock: T3 and T7 wait for each other",
            ),
            (
                "pid 11 waiting for lock A1 held by pid 12\npid 12 waiting for lock B1 held by pid 13\npid 13 waiting for lock C1 held by pid 11\n",
                "deadlock: 11 and 12 and 13 wait for each other",
            ),
        ] {
            let all = said(text);
            assert!(
                all.iter()
                    .any(|(kind, text)| *kind == StatementKind::Deadlock && text.starts_with(words)),
                "{all:?}"
            );
        }
    }

    #[test]
    fn the_last_of_a_chain_is_told_with_what_it_does() {
        let text = "\"w-1\" #21 waiting for lock cache.index held by w-3 for 41 s\n\"w-2\" #22 waiting for lock cache.index held by w-1 for 12 s\n\
            \"w-3\" #23 in socketRead0 (10.0.0.9:5432) since 42 s\n";
        let all = said(text);
        let words = "w-3 has cache.index, for which 2 wait (w-1, w-2), the longest for 41.00 s; of w-3 the text says: \"w-3\" #23 in socketRead0";
        assert!(all.iter().any(|(_, text)| text.starts_with(words)), "{all:?}");
    }

    #[test]
    fn who_has_it_now_and_waiters_that_say_so_twice() {
        let text = "worker-1 holds lease-7\nworker-1 released lease-7\nworker-2 holds lease-7\nworker-3 waits for lease-7\n\
            worker-4 waits for lease-7\nworker-3 waits for lease-7\n";
        let all = said(text);
        let words = "worker-2 has lease-7, for which 2 wait (worker-3, worker-4)";
        assert!(all.iter().any(|(_, text)| text.starts_with(words)), "{all:?}");
    }

    #[test]
    fn sentences_and_who_waits_for_nobody_say_nothing() {
        for text in [
            "server is waiting for connections\nworker-1 holds nothing\n",
            "job-1 acquired lock L1\njob-1 released lock L1\njob-2 acquired lock L1\n",
            "T1 waiting for lock L1 held by T1\n",
            "worker-1 waiting for lock cache-a held by worker-2\nworker-1 acquired lock cache-a\nworker-2 waiting for lock cache-b held by worker-1\n\
                worker-2 acquired lock cache-b after waiting for 5 ms\n",
            "w-1 waiting for lock a-1 held by w-2\nlock a-1 was acquired by w-1\nw-2 waiting for lock b-1 held by w-1\nlock b-1 acquired by w-2\n",
            "worker-1 holds lease-7\nworker-1 released lease-7\nworker-3 waits for lease-7\nworker-4 waits for lease-7\n",
            "Worker-1 waiting for 5 seconds\nWorker-2 waiting for 5s\nnode-1 holds 5 shards\nnode-1 holds 5s\n",
            "consumer-1 is waiting for Kafka\nconsumer-2 is waiting for Kafka\nbroker-1 owns Kafka topic orders\n",
            "ts=\"10:00\" msg=\"w-1 waiting for lock cache-a held by w-3\"\nts=\"10:01\" msg=\"w-1 waiting for lock cache-a held by w-3\"\n",
            "thread T3 waiting for work on queue Q1\nthread T4 waiting for work on queue Q1\n",
        ] {
            let all = said(text);
            let ours = |text: &String| text.contains("for which") || text.contains("wait for each other");
            assert!(!all.iter().any(|(_, text)| ours(text)), "{text}: {all:?}");
        }
    }
}
