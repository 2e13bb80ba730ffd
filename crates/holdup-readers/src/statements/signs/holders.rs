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

/// Where one of these words stands, and where they end.
fn at(small: &str, known: &[&str]) -> Option<(usize, usize)> {
    let each = known
        .iter()
        .filter_map(|words| small.find(words).map(|at| (at, at + words.len())));
    each.min()
}

/// Who says it: a name within quotation marks, else the last name before the verb.
fn subject(before: &str) -> Option<String> {
    let quoted = before.split_once('"').and_then(|(_, rest)| rest.split_once('"'));
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
    name(last)
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
        let behind =
            |place: Option<(usize, usize)>| place.and_then(|(_, end)| text.get(end..)).and_then(name);
        let (waits, has, had_by) = (at(&small, &WAITS), at(&small, &HAS), at(&small, &HAD_BY));
        let verb = [waits, has].into_iter().flatten().min()?;
        let who = subject(text.get(..verb.0)?)?;
        let said = Said {
            wants: behind(waits),
            had_by: waits.and(behind(had_by)),
            has: behind(has),
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
        self.parsed >= MAX_PARSED || self.said.len() >= MAX_LINES
    }

    /// Takes a line with one of the words.
    pub(super) fn line(&mut self, text: &str, number: u64) {
        self.parsed = self.parsed.saturating_add(1);
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
            let mut all = self.said.iter();
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
        names.dedup();
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
    fn sentences_and_who_waits_for_nobody_say_nothing() {
        for text in [
            "server is waiting for connections\nworker-1 holds nothing\n",
            "job-1 acquired lock L1\njob-1 released lock L1\njob-2 acquired lock L1\n",
            "T1 waiting for lock L1 held by T1\n",
            "thread T3 waiting for work on queue Q1\nthread T4 waiting for work on queue Q1\n",
        ] {
            let all = said(text);
            let ours = |text: &String| text.contains("for which") || text.contains("wait for each other");
            assert!(!all.iter().any(|(_, text)| ours(text)), "{text}: {all:?}");
        }
    }
}
