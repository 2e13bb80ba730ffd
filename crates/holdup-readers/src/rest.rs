//! Whether somebody who says that he waits is only without work: `waiting for connections`, `waiting for more updates`.

/// Words that may stand before what is waited for.
const BEFORE: [&[u8]; 10] = [
    b"new",
    b"more",
    b"incoming",
    b"further",
    b"next",
    b"the",
    b"any",
    b"some",
    b"client",
    b"another",
];

/// What a program at rest waits for. Of most only the plural: `waiting for a connection` is one that a pool does not give.
const WORK: [&[u8]; 19] = [
    b"connections",
    b"clients",
    b"jobs",
    b"job",
    b"tasks",
    b"work",
    b"requests",
    b"messages",
    b"events",
    b"commands",
    b"command",
    b"queries",
    b"input",
    b"updates",
    b"signals",
    b"changes",
    b"items",
    b"orders",
    b"instructions",
];

/// Words that may stand between.
const MAX_BEFORE: usize = 2;

/// Whether a text that stands behind `waiting for` names work, and ends or goes on with another clause.
pub(crate) fn is_work(behind: &[u8]) -> bool {
    let mut rest = behind;
    for _ in 0..=MAX_BEFORE {
        rest = rest.trim_ascii_start();
        let letters = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let (word, more) = rest.split_at_checked(letters).unwrap_or_default();
        if WORK.iter().any(|known| word.eq_ignore_ascii_case(known)) {
            // `waiting for requests to finish`, `… from the pool`: those of others.
            let next = more.strip_prefix(b" ").unwrap_or_default();
            let others: [&[u8]; 6] = [b"to ", b"from ", b"of ", b"lock", b"slot", b"in "];
            return !others.iter().any(|other| next.starts_with(other));
        }
        if !BEFORE.iter().any(|known| word.eq_ignore_ascii_case(known)) {
            return false;
        }
        rest = more;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::is_work;

    #[test]
    fn work_that_may_come_and_what_somebody_keeps() {
        for text in [
            " connections",
            " jobs",
            " new client connections on port 3306",
            " more updates",
            " work.",
            " messages; to exit press CTRL+C",
        ] {
            assert!(is_work(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            " a connection from the pool",
            " lock",
            " requests to finish",
            " messages from the peer 10.0.0.7",
            " jobs of another user",
            " table metadata lock",
            " the result of the new job runner",
        ] {
            assert!(!is_work(text.as_bytes()), "{text}");
        }
    }
}
