//! The first failure of a log: where it names somebody, and all that fails later names nobody, the later ones may well have followed from it.
//!
//! In: the statements of an artefact with times. Out: the first failure and what came after it. `access to tls.pem was denied` at the start says more
//! than the checks that failed a hundred times since, and than the line that gave up in the end.

use super::Rank;
use holdup_evidence::observed::{Statement, StatementKind};
use std::collections::HashMap;

/// Nanoseconds within which something has to fail behind the first failure: what comes hours later follows from something else.
const SOON: i128 = 3_600_000_000_000;

/// The first failure of an artefact, with the gravest and most frequent of those after it.
#[derive(Debug)]
pub(super) struct First<'a> {
    pub(super) one: &'a Statement,
    rank: Rank,
    then: &'a Statement,
}

impl First<'_> {
    /// What failed after it, to be told behind it.
    pub(super) fn since_then(&self) -> String {
        let often = match self.then.times {
            1 => String::new(),
            times => format!(" {times} times"),
        };
        format!(" | since then{often}: {}", self.then.text)
    }
}

/// The first failures of all artefacts, by artefact.
#[derive(Debug, Default)]
pub(super) struct Firsts<'a> {
    all: HashMap<u32, First<'a>>,
}

/// Whether a statement tells a failure in a line's own words.
fn fails(one: &Statement) -> bool {
    one.kind <= StatementKind::Failed && !one.of_reader
}

/// Whether a failure names nobody and may have followed from any other.
fn may_follow(one: &Statement) -> bool {
    let kinds = [
        StatementKind::TimedOut,
        StatementKind::Unreachable,
        StatementKind::Stalled,
        StatementKind::Failed,
    ];
    one.blames.is_empty() && one.known.is_none() && kinds.contains(&one.kind)
}

impl<'a> Firsts<'a> {
    /// Those among statements; `rank` says how grave a kind is.
    pub(super) fn of(statements: &[&'a Statement], rank: impl Fn(StatementKind) -> Rank) -> Firsts<'a> {
        let mut of_source: HashMap<u32, Vec<&'a Statement>> = HashMap::new();
        for one in statements.iter().filter(|one| fails(one)) {
            of_source.entry(one.quote.source).or_default().push(one);
        }
        let all = of_source.into_iter().filter_map(|(source, all)| {
            let first = all.iter().copied().min_by_key(|one| one.quote.line)?;
            let mut others = all.iter().copied().filter(|one| !std::ptr::eq(*one, first));
            // Of a text without times it is not known what came first.
            let named = first.first.is_some() && !first.blames.is_empty();
            let soon = |one: &Statement| {
                let later = one
                    .first
                    .zip(first.first)
                    .and_then(|(one, first)| one.since(first));
                later.is_some_and(|later| (0..=SOON).contains(&later))
            };
            if !named || !others.clone().all(may_follow) || !others.clone().any(soon) {
                return None;
            }
            let gravest = others.clone().map(|one| rank(one.kind)).min()?;
            let then = others
                .clone()
                .max_by_key(|one| one.times)
                .or_else(|| others.next())?;
            let rank = rank(first.kind).min(gravest);
            Some((
                source,
                First {
                    one: first,
                    rank,
                    then,
                },
            ))
        });
        Firsts { all: all.collect() }
    }

    /// The first failure that a statement is.
    pub(super) fn at(&self, one: &Statement) -> Option<&First<'a>> {
        let first = self.all.get(&one.quote.source)?;
        std::ptr::eq(first.one, one).then_some(first)
    }

    /// How grave a statement is that ranks so by itself.
    pub(super) fn rank(&self, one: &Statement, rank: Rank) -> Rank {
        self.at(one).map_or(rank, |first| rank.min(first.rank))
    }
}

#[cfg(test)]
mod tests {
    use crate::account::account;
    use holdup_evidence::Observed;
    use holdup_evidence::observed::{Blame, How, Quote, Source, Statement, StatementKind, When};

    fn statement(kind: StatementKind, line: u64, times: u64, text: &str, blamed: Option<How>) -> Statement {
        let blame = |how| Blame {
            of: "/etc/app/tls.pem".to_owned(),
            how,
            times: 1,
        };
        Statement {
            kind,
            ns: None,
            share: None,
            times,
            first: Some(When::Unix(1_000_000_000 * i64::try_from(line).unwrap())),
            last: None,
            of_reader: false,
            known: None,
            quote: Quote { source: 0, line },
            text: text.to_owned(),
            blames: blamed.map(blame).into_iter().collect(),
        }
    }

    fn first_line(statements: Vec<Statement>) -> String {
        let observed = Observed {
            sources: vec![Source::default()],
            statements,
            ..Observed::default()
        };
        account(&observed)
            .first()
            .map(|line| line.text.to_string())
            .unwrap_or_default()
    }

    #[test]
    fn it_comes_before_what_failed_since_then() {
        let denied = statement(
            StatementKind::Failed,
            2,
            1,
            "could not read /etc/app/tls.pem: permission denied",
            Some(How::Denied),
        );
        let checks = statement(
            StatementKind::Failed,
            3,
            4,
            "health check failed: backend not ready",
            None,
        );
        let gave_up = statement(
            StatementKind::TimedOut,
            7,
            1,
            "giving up after 5 health checks, timeout",
            None,
        );
        let told = first_line(vec![denied, checks, gave_up]);
        assert!(
            told.starts_with("access to /etc/app/tls.pem was denied"),
            "{told}"
        );
        assert!(
            told.contains("since then 4 times: health check failed: backend not ready"),
            "{told}"
        );
    }

    #[test]
    fn it_does_not_where_others_name_somebody_or_came_before() {
        let denied = statement(
            StatementKind::Failed,
            2,
            1,
            "could not read /etc/app/tls.pem: permission denied",
            Some(How::Denied),
        );
        let gave_up = statement(
            StatementKind::TimedOut,
            1,
            1,
            "giving up after 5 checks, timeout",
            None,
        );
        assert!(!first_line(vec![denied.clone(), gave_up.clone()]).contains("since then"));
        let mut named = statement(
            StatementKind::TimedOut,
            7,
            1,
            "10.0.0.7 timed out",
            Some(How::NoAnswer),
        );
        named.blames[0].of = "10.0.0.7".to_owned();
        assert!(!first_line(vec![denied.clone(), named]).contains("since then"));
        let mut next_day = gave_up;
        next_day.quote.line = 7;
        next_day.first = Some(When::Unix(86_400_000_000_000));
        assert!(!first_line(vec![denied, next_day]).contains("since then"));
    }
}
