//! What a line that no table knows comes to, before its own words: who waits in vain, is blocked or is slow, and how long in our words.
//!
//! In: a statement with a length. Out: the same words behind a short clause of ours. A line without a length, or whose own words have it as we
//! would say it, is told as it is.

use holdup_evidence::observed::{Statement, StatementKind};
use holdup_evidence::units::duration;

/// Words with which a program says itself that a length is too long.
const SLOW: [&str; 6] = [
    "too long",
    "too slow",
    " slow ",
    "slow:",
    "longer than expected",
    "exceeded threshold",
];

/// The words of a statement that stands for itself, with what it comes to before them.
pub(super) fn before(said: String, one: &Statement, times: u64) -> String {
    if one.of_reader || one.known.is_some() || !one.blames.is_empty() || times > 1 {
        return said;
    }
    let Some(length) = one.ns.filter(|ns| *ns > 0).map(duration) else {
        return said;
    };
    let clause = match one.kind {
        StatementKind::TimedOut => "a wait was given up after",
        StatementKind::Stalled => "something was blocked or waited for",
        StatementKind::Took if is_slow(&one.text) => "it was slow and took",
        _ => return said,
    };
    match said.contains(&length) {
        true => said,
        false => format!("{clause} {length}: {said}"),
    }
}

fn is_slow(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    SLOW.iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::before;
    use holdup_evidence::observed::{Quote, Statement, StatementKind};

    fn told(kind: StatementKind, ns: Option<u64>, text: &str) -> String {
        let one = Statement {
            blames: Vec::new(),
            kind,
            ns,
            share: None,
            times: 1,
            first: None,
            last: None,
            of_reader: false,
            known: None,
            quote: Quote { source: 0, line: 1 },
            text: text.to_owned(),
        };
        before(text.to_owned(), &one, 1)
    }

    #[test]
    fn a_length_in_a_programs_own_digits_is_told_in_ours() {
        let text = "commit of batch 7 took too long (2.285637356s)";
        let said = told(StatementKind::Took, Some(2_285_637_356), text);
        assert_eq!(said, format!("it was slow and took 2.29 s: {text}"));
        let text = "lock of shelf 4 not granted after 30000 ms";
        let said = told(StatementKind::TimedOut, Some(30_000_000_000), text);
        assert_eq!(said, format!("a wait was given up after 30.00 s: {text}"));
        let text = "no progress since 125000ms";
        let said = told(StatementKind::Stalled, Some(125_000_000_000), text);
        assert_eq!(
            said,
            format!("something was blocked or waited for 2 min 5 s: {text}")
        );
    }

    #[test]
    fn what_states_no_trouble_or_has_our_words_is_told_as_it_is() {
        for (kind, ns, text) in [
            (StatementKind::Took, Some(9_000_000), "request took 9 ms"),
            (StatementKind::TimedOut, None, "call timed out"),
            (
                StatementKind::TimedOut,
                Some(2_000_000_000),
                "timed out after 2.00 s",
            ),
            (StatementKind::Failed, Some(2_000_000_000), "failed after 2000 ms"),
        ] {
            assert_eq!(told(kind, ns, text), text);
        }
    }
}
