//! What a line that no table knows comes to, before its own words: who waits in vain, is blocked or is slow, and how long in our words.
//!
//! In: a statement with a length. Out: the same words behind a short clause of ours. A line without a length, whose own words have it as we
//! would say it, or do not tie it to the wait, is told as it is.

use holdup_evidence::Ns;
use holdup_evidence::observed::{Statement, StatementKind};
use holdup_evidence::units::duration;
use holdup_model::title::Title;

/// Words with which a program says itself that a length is too long.
const SLOW: [&str; 6] = [
    "too long",
    "too slow",
    " slow ",
    "slow:",
    "longer than expected",
    "exceeded threshold",
];

/// Words that say that nothing was slow, or that slowness was not looked at.
const NOT_SLOW: [&str; 3] = ["not too", "nothing", "is off"];

/// Words right before a number that make it the length of what was waited for.
const TIES: [&str; 7] = ["after", "for", "since", "took", "waited", "exceeded", "been"];

/// The same of several words: `took too long (2.3s)`.
const TIES_OF_TWO: [&str; 1] = ["too long"];

/// Words of the same clause by which it is the length of what comes next.
const PROMISES: [&str; 10] = [
    "next",
    "retry",
    "retrying",
    "again",
    "sleep",
    "sleeping",
    "will",
    "reconnect",
    "reconnecting",
    "backoff",
];

/// What ends a clause.
const CLAUSE_ENDS: [char; 5] = [',', ';', '|', '!', '?'];

/// Units of lengths as programs write them, with their nanoseconds.
const UNITS: [(&[&str], f64); 7] = [
    (&["ns", "nsec", "nsecs", "nanoseconds"], 1.0),
    (&["us", "µs", "usec", "usecs", "micros", "microseconds"], 1e3),
    (
        &["ms", "msec", "msecs", "millis", "millisecond", "milliseconds"],
        1e6,
    ),
    (&["s", "sec", "secs", "second", "seconds"], 1e9),
    (&["m", "min", "mins", "minute", "minutes"], 60e9),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600e9),
    (&["d", "day", "days"], 86_400e9),
];

/// Parts of one length, and by how much its digits may differ from what was read of them, as a share.
const MAX_PARTS: usize = 6;
const ROUNDED: f64 = 1e-6;

/// The words of a statement that stands for itself, with what it comes to before them.
pub(super) fn before(said: Title, one: &Statement, times: u64) -> Title {
    if one.of_reader || one.known.is_some() || !one.blames.is_empty() || times > 1 {
        return said;
    }
    let ns = one.ns.filter(|ns| *ns > 0 && is_tied(&one.text, *ns));
    let Some(length) = ns.map(duration) else {
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
        false => Title::from(format!("{clause} {length}")).followed_by(": ", &said),
    }
}

fn is_slow(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|words| text.contains(words));
    says(&SLOW) && !says(&NOT_SLOW)
}

/// Whether a line's own words tie a length to the wait: `not granted after 30000 ms`, but not `next try in 45000 ms`.
fn is_tied(text: &str, ns: Ns) -> bool {
    let mut begins = text.char_indices().filter(|(at, char)| {
        let before = text.get(..*at).and_then(|before| before.chars().next_back());
        char.is_ascii_digit() && !before.is_some_and(|one| one.is_alphanumeric() || matches!(one, '.' | '_'))
    });
    begins.any(|(at, _)| {
        let (before, number) = text.split_at(at);
        is_length(number, ns as f64) && ties(before)
    })
}

/// Whether the last word before a number ties it, in a clause that promises nothing.
fn ties(before: &str) -> bool {
    let clause = before.rsplit(CLAUSE_ENDS).next().unwrap_or(before);
    let clause = clause.to_ascii_lowercase();
    let between = |one: char| matches!(one, ' ' | ':' | '=' | '"' | '(' | '[');
    let clause = clause.trim_end_matches(between);
    let words = || clause.split(|one: char| !one.is_alphanumeric());
    let ties = |last: &str| TIES.contains(&last) || TIES_OF_TWO.iter().any(|two| clause.ends_with(two));
    words().next_back().is_some_and(ties) && !words().any(|word| PROMISES.contains(&word))
}

/// Whether a text begins with this length, in one part or several: `2.285637356s`, `2m 5s`.
fn is_length(text: &str, wanted: f64) -> bool {
    let mut sum = 0.0;
    let mut rest = text;
    for _ in 0..MAX_PARTS {
        let digits = rest.find(|one: char| !one.is_ascii_digit() && one != '.');
        let (number, behind) = rest.split_at(digits.unwrap_or(rest.len()));
        let behind = behind.trim_start_matches([' ', '-']);
        let letters = behind
            .find(|one: char| !one.is_alphabetic())
            .unwrap_or(behind.len());
        let (unit, more) = behind.split_at(letters);
        let known = UNITS.iter().find(|(names, _)| names.contains(&unit));
        let (Ok(number), Some((_, unit))) = (number.parse::<f64>(), known) else {
            break;
        };
        sum += number * unit;
        rest = more.trim_start();
    }
    (sum - wanted).abs() <= wanted * ROUNDED + 1.0
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
        before(text.into(), &one, 1).into()
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
    fn a_length_that_is_of_something_else_is_not_told_as_the_waits() {
        for (kind, ns, text) in [
            (
                StatementKind::TimedOut,
                45_000_000_000,
                "heartbeat timed out, next try in 45000 ms",
            ),
            (
                StatementKind::TimedOut,
                45_000_000_000,
                "heartbeat timed out: the next try is made after 45000 ms",
            ),
            (
                StatementKind::TimedOut,
                45_000_000_000,
                "link to peer 4 timed out; will reconnect after 45000 ms",
            ),
            (
                StatementKind::Stalled,
                90_000_000_000,
                "worker 3 is blocked (a batch has 90000 ms)",
            ),
            (
                StatementKind::Took,
                9_000_000_000,
                "the slow batch may run for as long: 9000 ms",
            ),
            (
                StatementKind::Took,
                4_000_000_000,
                "the slow log is off; backup took 4000 ms",
            ),
            (
                StatementKind::Took,
                4_000_000_000,
                "backup took 4000 ms: not too slow for a disk",
            ),
        ] {
            assert_eq!(told(kind, Some(ns), text), text);
        }
        // The other number of a line is none of the wait's.
        let text = "lock not granted after 30000 ms, next try in 45000 ms";
        let said = told(StatementKind::TimedOut, Some(30_000_000_000), text);
        assert!(said.starts_with("a wait was given up after 30.00 s: "), "{said}");
        assert_eq!(told(StatementKind::TimedOut, Some(45_000_000_000), text), text);
        let text = "peer has not answered for 2m5s";
        let said = told(StatementKind::Stalled, Some(125_000_000_000), text);
        assert!(
            said.starts_with("something was blocked or waited for 2 min 5 s: "),
            "{said}"
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
