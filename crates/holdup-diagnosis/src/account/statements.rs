//! What lines of text state, gravest and longest first.

use super::{Rank, Ranked};
use holdup_model::report::AccountLine;
use holdup_evidence::Observed;
use holdup_evidence::observed::{Statement, StatementKind};

/// Statements that become lines.
const MAX_STATEMENTS: usize = 6;

/// Adds the gravest.
pub(super) fn add(observed: &Observed, all: &mut Vec<Ranked>) {
    let mut statements: Vec<&Statement> = observed.statements.iter().collect();
    statements.sort_by_key(|one| (one.kind, std::cmp::Reverse((one.ns, one.times))));
    all.extend(statements.into_iter().take(MAX_STATEMENTS).map(|one| Ranked {
        rank: rank(one.kind),
        line: AccountLine {
            what: one.text.clone(),
            ns: one.ns,
            share: None,
            text: match one.times {
                0 | 1 => one.text.clone(),
                times => format!("{times} times: {}", one.text),
            },
            source: observed.place(&one.quote),
        },
    }));
}

fn rank(kind: StatementKind) -> Rank {
    match kind {
        StatementKind::Deadlock | StatementKind::Ended | StatementKind::Exhausted => Rank::Stops,
        StatementKind::TimedOut | StatementKind::Unreachable | StatementKind::Stalled => Rank::Waits,
        StatementKind::Failed => Rank::Failed,
        StatementKind::Took => Rank::Largest,
        StatementKind::Warned => Rank::Ordinary,
    }
}

#[cfg(test)]
mod tests {
    use crate::account::account;
    use holdup_evidence::Observed;
    use holdup_evidence::observed::{Quote, Source, Statement, StatementKind};

    fn statement(kind: StatementKind, ns: Option<u64>, times: u64, text: &str) -> Statement {
        Statement {
            kind,
            ns,
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
                "3 times: connection to 10.0.0.1:6385 timed out",
                "resolving db took 4.647 s",
                "80 times: request took 9 ms",
                "400 times: cache is cold",
            ]
        );
        assert_eq!(lines[0].source, "app.log:7");
        assert_eq!(lines[1].ns, Some(4_647_000_000));
    }
}
