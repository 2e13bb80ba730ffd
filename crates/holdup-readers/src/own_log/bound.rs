//! Whether a line says in its own words that a number of things to serve is at its limit: a word for the limit, what is counted, and that
//! it is reached, in this order and in one sentence: `Maximum number of concurrent DNS queries reached (max: 25)`.

/// Words for a limit.
const BOUNDS: [&str; 4] = ["max", "maximum", "limit", "quota"];

/// What a service counts of its work; their plurals are known by their beginning.
const COUNTED: [&str; 17] = [
    "channel",
    "child",
    "client",
    "connection",
    "consumer",
    "job",
    "lookup",
    "peer",
    "process",
    "quer",
    "request",
    "session",
    "stream",
    "thread",
    "transaction",
    "user",
    "worker",
];

/// That the limit is reached.
const REACHED: [&str; 4] = ["reached", "exceeded", "hit", "exhausted"];

/// Words that take it back, or make it a condition or a wish.
const OPEN: [&str; 9] = [
    "not", "never", "no", "if", "when", "until", "once", "before", "without",
];

/// Where the phrase begins.
pub(super) fn reached(line: &[u8]) -> Option<usize> {
    let mut bound: Option<usize> = None;
    let mut counts = false;
    let mut open = false;
    let mut at = 0;
    while let Some(rest) = line.get(at..).filter(|rest| !rest.is_empty()) {
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let Some(word) = rest.get(..length).filter(|word| !word.is_empty()) else {
            // Another sentence, or a value.
            if matches!(rest, [b';' | b'=' | b'_', ..] | [b'.' | b':', b' ', ..]) {
                (bound, counts, open) = (None, false, false);
            }
            at += 1;
            continue;
        };
        let is = |known: &&str| word.eq_ignore_ascii_case(known.as_bytes());
        let begins = |known: &&str| {
            word.get(..known.len())
                .is_some_and(|begin| begin.eq_ignore_ascii_case(known.as_bytes()))
        };
        if OPEN.iter().any(is) {
            open = true;
        } else if BOUNDS.iter().any(is) {
            bound = bound.or(Some(at));
        } else if COUNTED.iter().any(begins) {
            counts = true;
        } else if REACHED.iter().any(is) && counts && !open && bound.is_some() && !measured(line, at + length)
        {
            return bound;
        }
        at += length;
    }
    None
}

/// Whether a number stands behind the word: a figure, as in `maximum of sessions reached 40 today`.
fn measured(line: &[u8], end: usize) -> bool {
    let behind = line.get(end..).unwrap_or_default();
    let behind = behind.strip_prefix(b" ").unwrap_or_default();
    behind.first().is_some_and(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::reached;

    #[test]
    fn a_number_of_things_at_its_limit_is_known_by_its_sentence() {
        for line in [
            "dnsmasq[7]: Maximum number of concurrent DNS queries reached (max: 25)",
            "WARN limit of 40 open sessions for tenant a has been reached, waiting",
            "quota of streams per peer exceeded",
            "Max number of running jobs hit; the rest stays in the spool",
        ] {
            assert!(reached(line.as_bytes()).is_some(), "{line}");
        }
    }

    #[test]
    fn settings_figures_and_conditions_are_none() {
        for line in [
            "limit of sessions was not reached",
            "maximum of sessions reached 40 today",
            "new clients wait when the maximum number of connections is reached",
            "max_connections = 100; target reached by the worker",
            "maximum heap size. The client has reached the server",
            "Reached target Multi-User System with at most 4 workers",
        ] {
            assert_eq!(reached(line.as_bytes()), None, "{line}");
        }
    }
}
