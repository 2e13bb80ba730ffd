//! What a statement names, and what is told with one that names nothing.

use super::statements::is_sum;
use holdup_evidence::Ns;
use holdup_evidence::observed::Statement;
use std::cmp::Reverse;

/// Things that a line names; with more it is data.
const MAX_THINGS: usize = 2;

/// What a logger writes before its message, a thread and a level: `[Server thread/WARN]:`.
const LEVELS: [&str; 5] = ["/ERROR", "/WARN", "/INFO", "/FATAL", "/DEBUG"];

/// How many things a line names: addresses, paths, names with a sign or a number in them. Of two lines that are as grave, the
/// one that says of what is better.
pub(super) fn things(text: &str) -> usize {
    let named = |word: &&str| {
        let sign = word.contains(['/', '.', ':', '-', '_', '@'])
            || word.contains(|char: char| char.is_ascii_digit());
        sign && word.chars().filter(char::is_ascii_alphanumeric).count() > 2
    };
    let words = text
        .split_whitespace()
        .filter(|word| !LEVELS.iter().any(|level| word.contains(level)));
    let words = words.map(|word| word.trim_matches(|char: char| !char.is_alphanumeric() && char != '/'));
    words.filter(named).take(MAX_THINGS).count()
}

/// Whether a statement says neither what nor how much.
pub(super) fn is_vague(one: &Statement) -> bool {
    one.blames.is_empty() && one.ns.is_none() && one.share.is_none() && things(&one.text) == 0
}

/// Lines before and behind a statement in which may stand how long what it speaks of took, and the shortest time that is told so, nanoseconds.
const NEAR: u64 = 10;
const MIN_NEAR_NS: Ns = 500_000_000;

/// The longest time that is stated near a statement which names nothing: `considering it to be crashed`, and `a single tick took 73.23 seconds`
/// above it.
pub(super) fn length_near<'a>(one: &Statement, statements: &[&'a Statement]) -> Option<&'a Statement> {
    let near = |other: &&Statement| {
        other.quote.source == one.quote.source
            && other.quote.line != one.quote.line
            && other.quote.line.abs_diff(one.quote.line) <= NEAR
            && other.ns.is_some_and(|ns| ns >= MIN_NEAR_NS)
            && !is_sum(other)
    };
    let others = statements.iter().copied().filter(near);
    others.max_by_key(|other| (other.ns, Reverse(other.quote.line)))
}

#[cfg(test)]
mod tests {
    use super::things;

    #[test]
    fn levels_and_full_stops_name_nothing() {
        assert_eq!(
            things("[Server Watchdog/ERROR]: Considering it to be crashed."),
            0
        );
        assert_eq!(things("waiting for application startup. | done."), 0);
        assert_eq!(things("host-3.shop does not answer"), 1);
        assert_eq!(things("/srv/data is full on node7, and so is /var"), 2);
    }
}
