//! What lines of text state, gravest and longest first.

use super::{Rank, Ranked};
use holdup_evidence::observed::{Snapshot, SnapshotKind, Statement, StatementKind};
use holdup_evidence::units::duration;
use holdup_evidence::{Ns, Observed};
use std::cmp::Reverse;

/// Things that a line names; with more it is data.
const MAX_THINGS: usize = 2;

/// Statements that become lines.
const MAX_STATEMENTS: usize = 6;

/// Adds the gravest.
pub(super) fn add(observed: &Observed, all: &mut Vec<Ranked>) {
    let mut statements: Vec<&Statement> = observed.statements.iter().collect();
    // Shares in thousandths, to be put in order with the rest.
    let share = |one: &Statement| one.share.map(|share| (share.clamp(0.0, 1e6) * 1e3) as u64);
    let order = |one: &Statement| {
        (
            one.kind,
            Reverse((share(one), one.ns, one.times, things(&one.text))),
        )
    };
    statements.sort_by_cached_key(|one| order(one));
    all.extend(statements.into_iter().take(MAX_STATEMENTS).map(|one| {
        let mut ranked = Ranked::new(
            rank_beside(observed, one),
            &one.text,
            sentence(one),
            (observed, &one.quote),
        );
        ranked.line.ns = one.ns;
        if let Some(share) = one.share {
            ranked = ranked.share(share);
        }
        ranked
    }));
}

/// Bytes of the line's own words that are read at one look: how often stands behind them, and before longer ones.
const MAX_WORDS_BYTES: usize = 80;

/// The line's own words, how often, in which time, and how long at most.
fn sentence(one: &Statement) -> String {
    if one.times < 2 {
        return one.text.clone();
    }
    let mut often = format!("{} times", one.times);
    let within = one
        .last
        .zip(one.first)
        .and_then(|(last, first)| last.since(first));
    if let Some(within) = within.and_then(|ns| Ns::try_from(ns).ok()).filter(|ns| *ns > 0) {
        often.push_str(&format!(" in {}", duration(within)));
    }
    if let Some(ns) = one.ns {
        often.push_str(&format!(", longest {}", duration(ns)));
    }
    match one.text.len() <= MAX_WORDS_BYTES {
        true => format!("{} ({often})", one.text),
        false => format!("{often}: {}", one.text),
    }
}

/// How many things a line names: addresses, paths, names with a sign or a number in them. Of two lines that are as grave, the
/// one that says of what is better.
fn things(text: &str) -> usize {
    let named = |word: &&str| {
        let sign = word.contains(['/', '.', ':', '-', '_', '@'])
            || word.contains(|char: char| char.is_ascii_digit());
        sign && word.chars().filter(char::is_ascii_alphanumeric).count() > 2
    };
    text.split_whitespace().filter(named).take(MAX_THINGS).count()
}

/// How a statement ranks. Words around a dump of stacks are of whoever copied it: the dump itself says more.
fn rank_beside(observed: &Observed, one: &Statement) -> Rank {
    let dump = |snapshot: &Snapshot| {
        snapshot.kind != SnapshotKind::Kernel && snapshot.quote.source == one.quote.source
    };
    match rank(one.kind) {
        // A warning that says how long is as much as a line without one that does.
        Rank::Warned if one.ns.is_some() && !is_prose(observed, one) => Rank::Largest,
        rank if rank < Rank::Warned && is_prose(observed, one) => Rank::Warned,
        Rank::Waits | Rank::Failed if observed.snapshots.iter().any(dump) => Rank::Warned,
        rank => rank,
    }
}

/// Whether a line without a time stands in another part of a file in which something happened by a log's own words: then it is what
/// somebody wrote about that.
fn is_prose(observed: &Observed, one: &Statement) -> bool {
    let name = |source: u32| {
        observed
            .sources
            .get(source as usize)
            .map(|source| source.name.as_str())
    };
    let of_file = |source: u32| source != one.quote.source && name(source) == name(one.quote.source);
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
        Happening, KernelEvent, Quote, Source, Statement, StatementKind, What, When,
    };

    fn statement(kind: StatementKind, ns: Option<u64>, times: u64, text: &str) -> Statement {
        Statement {
            kind,
            ns,
            share: None,
            times,
            first: None,
            last: None,
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
}
