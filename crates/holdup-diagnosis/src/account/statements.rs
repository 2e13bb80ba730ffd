//! What lines of text state, gravest and longest first.

use super::first::Firsts;
use super::known::{Signs, with_meaning};
use super::lead;
use super::near::{is_vague, length_near, things};
use super::{Rank, Ranked};
use crate::rules::logs::clock_face;
use holdup_evidence::observed::{Blame, How, Snapshot, SnapshotKind, Statement, StatementKind, When};
use holdup_evidence::units::duration;
use holdup_evidence::{Ns, Observed};
use holdup_model::title::Title;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Statements that become lines.
const MAX_STATEMENTS: usize = 6;

/// Adds the gravest.
pub(super) fn add(observed: &Observed, all: &mut Vec<Ranked>) {
    let mut statements: Vec<&Statement> = observed.statements.iter().collect();
    let signs = Signs::of(&statements, rank);
    let firsts = Firsts::of(&statements, rank);
    let graver = |one: &Statement, rank: Rank| firsts.rank(one, signs.rank(one, rank));
    // Shares in thousandths, to be put in order with the rest.
    let share = |one: &Statement| one.share.map(|share| (share.clamp(0.0, 1e6) * 1e3) as u64);
    let order = |one: &Statement| {
        let named = things(&one.text);
        // Of what gave up and what failed the line explains that names whom it blames; of lengths a sum says the least.
        let explains = explains(one);
        let follows = is_consequence(one) || is_end_of(one, &observed.statements);
        let vague = is_vague(one);
        (
            (graver(one, rank(one.kind)), signs.follows(one), follows),
            (explains, vague, one.kind),
            is_sum(one),
            Reverse((share(one), one.ns, one.times, named)),
        )
    };
    statements.sort_by_cached_key(|one| order(one));
    // Ranks in which a line names whom it blames.
    let blamers: Vec<Rank> = statements
        .iter()
        .filter(|one| !one.blames.is_empty())
        .map(|one| rank_beside(observed, one))
        .collect();
    all.extend(told(&statements).into_iter().take(MAX_STATEMENTS).map(|told| {
        let one = told.one;
        let mut said = with_meaning(
            lead::before(sentence(&told), one, told.times),
            one,
            told.times > 1,
        );
        if let Some(first) = firsts.at(one) {
            said.push(first.since_then());
        }
        let beside = beside(&told, &statements);
        if let Some(other) = beside {
            said.push(format!(" | {}", other.text));
        }
        let mut ranked = Ranked::new(
            graver(one, rank_beside(observed, one)),
            told.blamed
                .map_or(one.text.as_str(), |(blame, _)| blame.of.as_str()),
            said,
            (observed, &one.quote),
        );
        ranked.line.ns = told.ns.or_else(|| beside?.ns);
        let failed = matches!(ranked.rank, Rank::Stops | Rank::Waits | Rank::Failed);
        ranked.leads = signs.leads(one) || firsts.at(one).is_some();
        ranked.behind = is_sum(one)
            || is_consequence(one)
            || failed && told.blamed.is_none() && blamers.contains(&ranked.rank);
        if let Some(share) = one.share {
            ranked = ranked.share(share);
        }
        ranked
    }));
}

/// How much a line explains by whom it blames, most first: of a lock that somebody has, who that is says more than that it is taken.
fn explains(one: &Statement) -> u8 {
    match one.blames.as_slice() {
        [] => 2,
        blames if blames.iter().all(|blame| blame.how == How::Locked) => 1,
        _ => 0,
    }
}

/// Words with which a line sums up: what took so long stands in other lines.
const SUMS: [&str; 12] = [
    // Of BuildKit: `[+] Building 306.1s (10/10) FINISHED`.
    "[+] building",
    // Of Python's profiler: `184 function calls in 12.7 seconds`.
    " function calls ",
    " passed",
    // Gradle, lerna.
    " successful in ",
    " packages in ",
    "overall",
    "general output",
    "in total",
    "total:",
    "total time:",
    "total duration",
    "grand total",
];

/// Words with which a line says that it failed because something else did.
const CONSEQUENCES: [&str; 5] = [
    // systemd.
    "result 'dependency'",
    "dependency failed for",
    "due to previous error",
    "because of previous error",
    "due to an earlier error",
];

/// Whether a line tells what followed from the failure of something else.
fn is_consequence(one: &Statement) -> bool {
    let text = one.text.to_ascii_lowercase();
    CONSEQUENCES.iter().any(|words| text.contains(words))
}

/// Lines before the end of a program in which it may say what it had run out of.
const BEFORE_END: u64 = 10;

/// Whether a program ended right after it had run out of something: then that is why, and its end the consequence. Who was killed did
/// not end by itself.
fn is_end_of(one: &Statement, statements: &[Statement]) -> bool {
    let why = |other: &Statement| {
        let lines = one.quote.line.checked_sub(other.quote.line);
        other.kind == StatementKind::Exhausted
            && other.quote.source == one.quote.source
            && lines.is_some_and(|lines| (1..=BEFORE_END).contains(&lines))
    };
    one.kind == StatementKind::Ended && one.blames.is_empty() && statements.iter().any(why)
}

/// Whether a length is that of everything.
pub(super) fn is_sum(one: &Statement) -> bool {
    let text = one.text.to_ascii_lowercase();
    one.kind == StatementKind::Took && SUMS.iter().any(|words| text.contains(words))
}

/// What becomes one line: a statement, with all others that blame the same thing for the same.
struct Told<'a> {
    /// The gravest, whose words are told.
    one: &'a Statement,
    /// What is blamed most often, and how many others for the same.
    blamed: Option<(&'a Blame, usize)>,
    times: u64,
    ns: Option<Ns>,
    first: Option<When>,
    last: Option<When>,
}

/// Puts statements together that blame the same, in the order of the gravest of each.
fn told<'a>(statements: &[&'a Statement]) -> Vec<Told<'a>> {
    let mut all: Vec<Told<'a>> = Vec::new();
    let mut places: HashMap<(&str, How), usize> = HashMap::new();
    for one in statements {
        let blamed = blamed_most(one);
        let key = blamed.map(|(blame, _)| (blame.of.as_str(), blame.how));
        let known = key.and_then(|key| places.get(&key)).copied();
        match known.and_then(|place| all.get_mut(place)) {
            Some(told) => {
                told.times += one.times;
                told.ns = told.ns.max(one.ns);
                told.first = earlier(told.first, one.first);
                told.last = later(told.last, one.last);
                if let (Some((_, others)), Some((_, more))) = (told.blamed.as_mut(), blamed) {
                    *others = more.max(*others);
                }
            }
            None => {
                if let Some(key) = key {
                    places.insert(key, all.len());
                }
                all.push(Told {
                    one,
                    blamed,
                    times: one.times,
                    ns: one.ns,
                    first: one.first,
                    last: one.last,
                });
            }
        }
    }
    all
}

/// Lines before one that says that a process was killed, in which may stand for what.
const BEFORE_KILL: u64 = 4;

/// Another statement that says what this one leaves open: how long, of the same thing that is blamed; the limit for which it was killed.
fn beside<'a>(told: &Told<'_>, statements: &[&'a Statement]) -> Option<&'a Statement> {
    let one = told.one;
    if is_vague(one) {
        return length_near(one, statements);
    }
    let (blame, _) = told.blamed?;
    let others = statements
        .iter()
        .copied()
        .filter(|other| other.quote.source == one.quote.source && other.quote.line != one.quote.line);
    if blame.how == How::Killed {
        let before = |other: &&Statement| {
            let lines = one.quote.line.checked_sub(other.quote.line);
            let limit = matches!(other.kind, StatementKind::TimedOut | StatementKind::Exhausted);
            limit && lines.is_some_and(|lines| lines <= BEFORE_KILL)
        };
        return others
            .filter(before)
            .max_by_key(|other| (other.ns, other.quote.line));
    }
    if told.ns.is_some() {
        return None;
    }
    let same = |other: &&Statement| {
        other.ns.is_some()
            && one
                .blames
                .iter()
                .any(|blame| other.text.contains(blame.of.as_str()))
    };
    others.filter(same).max_by_key(|other| other.ns)
}

/// What a statement's lines blame most often, of those as often the first; and how many others for the same.
fn blamed_most(one: &Statement) -> Option<(&Blame, usize)> {
    let most = one.blames.iter().rev().max_by_key(|blame| blame.times)?;
    let alike = one.blames.iter().filter(|blame| blame.how == most.how);
    Some((most, alike.count() - 1))
}

fn earlier(one: Option<When>, other: Option<When>) -> Option<When> {
    match (one, other) {
        (Some(one), Some(other)) if other.since(one).is_some_and(|ns| ns < 0) => Some(other),
        (one, other) => one.or(other),
    }
}

fn later(one: Option<When>, other: Option<When>) -> Option<When> {
    match (one, other) {
        (Some(one), Some(other)) if other.since(one).is_some_and(|ns| ns > 0) => Some(other),
        (one, other) => one.or(other),
    }
}

/// Bytes of the line's own words that are read at one look: how often stands behind them, and before longer ones.
const MAX_WORDS_BYTES: usize = 80;

/// The line's own words, how often, in which time, and how long at most; before them who is blamed, for what.
fn sentence(told: &Told<'_>) -> Title {
    let text = &told.one.text;
    let within = told
        .last
        .zip(told.first)
        .and_then(|(last, first)| last.since(first))
        .and_then(|ns| Ns::try_from(ns).ok())
        .filter(|ns| *ns > 0);
    let mut often = format!("{} times", told.times);
    if let Some(within) = within {
        often.push_str(&format!(" in {}", duration(within)));
    }
    if let Some((blame, others)) = told.blamed {
        let mut said = blamed(blame, others);
        match (told.ns, told.times) {
            (Some(ns), 0..2) => said.push_str(&format!(" ({})", duration(ns))),
            (Some(ns), _) => said.push_str(&format!(", {often}, longest {}", duration(ns))),
            (None, 0..2) => {}
            (None, _) => said.push_str(&format!(", {often}")),
        }
        match told.first.map(clock_face) {
            Some(at) if told.times > 1 => said.push_str(&format!(", first at {at}")),
            Some(at) => said.push_str(&format!(" at {at}")),
            None => {}
        }
        return Title::from(said).with(format!(": {text}"));
    }
    if told.times < 2 {
        return text.as_str().into();
    }
    if let Some(ns) = told.ns {
        often.push_str(&format!(", longest {}", duration(ns)));
    }
    match text.len() <= MAX_WORDS_BYTES {
        true => format!("{text} ({often})").into(),
        false => format!("{often}: {text}").into(),
    }
}

/// Who is blamed, for what.
fn blamed(blame: &Blame, others: usize) -> String {
    let who = match others {
        0 => blame.of.clone(),
        1 => format!("{} and 1 other", blame.of),
        others => format!("{} and {others} others", blame.of),
    };
    let (is, does, was, has) = match others {
        0 => ("is", "does", "was", "has"),
        _ => ("are", "do", "were", "have"),
    };
    match blame.how {
        How::Unresolved => format!("the name {who} {does} not resolve"),
        How::HasLock => format!("{who} {has} the lock"),
        How::Locked => format!("{who} {is} locked by somebody else"),
        How::Refused => format!("{who} refused the connection"),
        How::NoSpace => format!("no space was left for {who}"),
        How::NoFreeConnection => format!("{who} had no free connection"),
        How::TooMany => format!("{who} {is} at a limit"),
        How::Denied => format!("access to {who} was denied"),
        How::ReadOnly => format!("{who} {is} read-only"),
        How::Killed => format!("{who} {was} killed"),
        How::Broken => format!("the connection to {who} broke"),
        How::NoConnection => format!("no connection to {who} could be made"),
        How::NoAnswer => format!("{who} did not answer in time"),
        How::TimedOut => format!("{who} timed out"),
        How::Unavailable => format!("{who} {was} not available"),
        How::NotFound => format!("{who} {was} not found"),
    }
}

/// How a statement ranks. Words around a dump of stacks are of whoever copied it: the dump itself says more.
fn rank_beside(observed: &Observed, one: &Statement) -> Rank {
    // Of the kernel's stacks only what has no time is of somebody else: logs have such stacks among their lines.
    let dump = |snapshot: &Snapshot| {
        let kernel = snapshot.kind == SnapshotKind::Kernel;
        snapshot.quote.source == one.quote.source && !kernel
            || kernel && one.first.is_none() && same_file(observed, snapshot.quote.source, one.quote.source)
    };
    match rank(one.kind) {
        // A warning that says how long is as much as a line without one that does.
        Rank::Warned if one.ns.is_some() && !is_prose(observed, one) => Rank::Largest,
        rank if rank < Rank::Warned && is_prose(observed, one) => Rank::Warned,
        // What their reader says of a lock and its holder is of the dump.
        Rank::Waits | Rank::Failed if !one.of_reader && observed.snapshots.iter().any(dump) => Rank::Warned,
        rank => rank,
    }
}

/// Whether two parts are of one file.
fn same_file(observed: &Observed, one: u32, other: u32) -> bool {
    let name = |source: u32| {
        observed
            .sources
            .get(source as usize)
            .map(|source| source.name.as_str())
    };
    one == other || name(one) == name(other)
}

/// Whether a line without a time stands in another part of a file in which something happened by a log's own words: then it is what
/// somebody wrote about that.
fn is_prose(observed: &Observed, one: &Statement) -> bool {
    let of_file = |source: u32| source != one.quote.source && same_file(observed, source, one.quote.source);
    one.first.is_none()
        && observed
            .happenings
            .iter()
            .any(|happening| of_file(happening.quote.source))
}

fn rank(kind: StatementKind) -> Rank {
    match kind {
        StatementKind::Deadlock | StatementKind::Ended | StatementKind::Exhausted => Rank::Stops,
        StatementKind::TimedOut | StatementKind::Unreachable | StatementKind::Stalled => Rank::Waits,
        StatementKind::Failed => Rank::Failed,
        StatementKind::Took => Rank::Largest,
        StatementKind::Warned => Rank::Warned,
        StatementKind::WithinNorm => Rank::Ordinary,
    }
}

#[cfg(test)]
mod tests {
    use crate::account::account;
    use holdup_evidence::Observed;
    use holdup_evidence::observed::{
        Blame, Happening, How, KernelEvent, Quote, Source, Statement, StatementKind, What, When,
    };

    fn statement(kind: StatementKind, ns: Option<u64>, times: u64, text: &str) -> Statement {
        Statement {
            blames: Vec::new(),
            kind,
            ns,
            share: None,
            times,
            first: None,
            last: None,
            of_reader: false,
            known: None,
            quote: Quote { source: 0, line: 7 },
            text: text.to_owned(),
        }
    }

    #[test]
    fn the_gravest_is_first_and_the_longest_of_its_kind() {
        let observed = Observed {
            sources: vec![Source {
                name: "app.log".to_owned(),
                ..Source::default()
            }],
            statements: vec![
                statement(StatementKind::Warned, None, 400, "cache is cold"),
                statement(
                    StatementKind::Took,
                    Some(4_647_000_000),
                    1,
                    "resolving db took 4.647 s",
                ),
                statement(StatementKind::Took, Some(9_000_000), 80, "request took 9 ms"),
                statement(
                    StatementKind::TimedOut,
                    None,
                    3,
                    "connection to 10.0.0.1:6385 timed out",
                ),
            ],
            ..Observed::default()
        };
        let lines = account(&observed);
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "connection to 10.0.0.1:6385 timed out (3 times)",
                "resolving db took 4.647 s",
                "request took 9 ms (80 times, longest 9.0 ms)",
                "cache is cold (400 times)",
            ]
        );
        assert_eq!(lines[0].source, "app.log:7");
        assert_eq!(lines[1].ns, Some(4_647_000_000));
    }

    #[test]
    fn what_somebody_wrote_about_a_log_comes_behind_it() {
        let source = Source {
            name: "mail.txt".to_owned(),
            ..Source::default()
        };
        let happening = Happening {
            what: What::Kernel(KernelEvent::RcuStall),
            at: None,
            since_boot: None,
            quote: Quote { source: 1, line: 9 },
            text: "rcu stall".to_owned(),
        };
        let written = statement(StatementKind::Stalled, None, 1, "we found a hung task bug");
        let logged = Statement {
            quote: Quote { source: 1, line: 10 },
            ..statement(
                StatementKind::Failed,
                None,
                1,
                "nvme0: removing after probe failure",
            )
        };
        let observed = Observed {
            sources: vec![source.clone(), source],
            statements: vec![written, logged],
            happenings: vec![happening],
            ..Observed::default()
        };
        assert_eq!(account(&observed)[0].text, "nvme0: removing after probe failure");
    }

    #[test]
    fn it_is_said_how_often_in_which_time_and_of_two_the_one_that_names_a_thing_is_first() {
        let mut repeated = statement(StatementKind::TimedOut, None, 1, "context deadline exceeded");
        let mut named = statement(
            StatementKind::TimedOut,
            None,
            1,
            "10.1.1.7:2379 deadline exceeded",
        );
        let observed = |statements| Observed {
            sources: vec![Source::default()],
            statements,
            ..Observed::default()
        };
        let lines = account(&observed(vec![repeated.clone(), named.clone()]));
        assert_eq!(lines[0].text, "10.1.1.7:2379 deadline exceeded");
        let long =
            "the queue of orders at the shop in the town was not emptied in time by any of its workers";
        let of_long = statement(StatementKind::TimedOut, Some(2_000_000_000), 3, long);
        assert_eq!(
            account(&observed(vec![of_long]))[0].text,
            format!("3 times, longest 2.00 s: {long}")
        );
        repeated.times = 40;
        repeated.first = Some(When::Unix(0));
        repeated.last = Some(When::Unix(90_000_000_000));
        repeated.ns = Some(2_000_000_000);
        named.ns = Some(1_000_000_000);
        let lines = account(&observed(vec![named, repeated]));
        assert_eq!(
            lines[0].text,
            "context deadline exceeded (40 times in 1 min 30 s, longest 2.00 s)"
        );
    }

    #[test]
    fn lines_that_blame_the_same_thing_are_one_with_all_times() {
        let blame = |of: &str, how, times| Blame {
            of: of.to_owned(),
            how,
            times,
        };
        let second = |at: i64| Some(When::Unix((43_391 + at) * 1_000_000_000));
        let mut read = statement(StatementKind::Unreachable, None, 200, "read: refused");
        read.blames = vec![blame("10.0.0.5:6379", How::Refused, 200)];
        (read.first, read.last) = (second(20), second(180));
        let mut write = statement(StatementKind::Unreachable, None, 14, "write: refused");
        write.blames = vec![blame("10.0.0.5:6379", How::Refused, 14)];
        (write.first, write.last) = (second(0), second(170));
        let mut pool = statement(
            StatementKind::Exhausted,
            Some(30_010_000_000),
            1,
            "request timed out",
        );
        pool.blames = vec![blame("the connection pool shop-1", How::NoFreeConnection, 1)];
        let mut workers = statement(StatementKind::TimedOut, None, 4, "WORKER TIMEOUT");
        workers.blames = [7214, 7284, 7289, 7296]
            .map(|pid| blame(&format!("process {pid}"), How::TimedOut, 1))
            .to_vec();
        let observed = Observed {
            sources: vec![Source::default()],
            statements: vec![write, workers, read, pool],
            ..Observed::default()
        };
        let lines = account(&observed);
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "the connection pool shop-1 had no free connection (30.01 s): request timed out",
                "process 7214 and 3 others timed out, 4 times: WORKER TIMEOUT",
                "10.0.0.5:6379 refused the connection, 214 times in 3 min 0 s, first at 12:03:11 UTC: read: refused",
            ]
        );
    }

    #[test]
    fn another_line_about_the_same_thing_says_how_long_and_the_limit_says_why_it_was_killed() {
        let blame = |of: &str, how| Blame {
            of: of.to_owned(),
            how,
            times: 1,
        };
        let at = |line, one: Statement| Statement {
            quote: Quote { source: 0, line },
            ..one
        };
        let mut peer = at(
            3,
            statement(StatementKind::TimedOut, None, 1, "vote: i/o timeout"),
        );
        peer.blames = vec![blame("10.0.0.9:8300", How::NoAnswer)];
        let contact = "no contact with 10.0.0.9:8300 in 7.4s";
        let contact = at(
            5,
            statement(StatementKind::Failed, Some(7_400_000_000), 1, contact),
        );
        let limit = "Hard time limit (60s) exceeded for mail";
        let limit = at(
            8,
            statement(StatementKind::TimedOut, Some(60_000_000_000), 1, limit),
        );
        let mut killed = at(
            9,
            statement(StatementKind::Ended, None, 1, "exited with signal 9"),
        );
        killed.blames = vec![blame("process 51", How::Killed)];
        let observed = Observed {
            sources: vec![Source::default()],
            statements: vec![peer, contact, limit, killed],
            ..Observed::default()
        };
        let lines = account(&observed);
        assert_eq!(
            lines[0].text,
            "process 51 was killed: exited with signal 9 | Hard time limit (60s) exceeded for mail"
        );
        let of_peer = lines
            .iter()
            .find(|line| line.text.starts_with("10.0.0.9:8300"))
            .unwrap();
        assert!(of_peer.text.ends_with("| no contact with 10.0.0.9:8300 in 7.4s"));
        assert_eq!(of_peer.ns, Some(7_400_000_000));
    }
}
