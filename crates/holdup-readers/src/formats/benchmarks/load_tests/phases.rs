//! Phases of a request as k6 measures them: which has the time, and what that phase is.
//!
//! In: the mean of each phase. Out: a sentence where most of a request's time is not the server's work: k6 counts what comes before a request
//! is sent in none of its own lengths of requests. Source: k6's documentation, "Built-in metrics".

use crate::formats::report::ns_of;
use holdup_evidence::units::duration;

/// Phases by k6's names, in the order in which they happen, and what each is. The first has the connection's two within it where one is made.
const K6: [(&str, &str); 6] = [
    (
        "http_req_blocked",
        "the wait for a free connection or a new one, with the lookup of its name",
    ),
    ("http_req_connecting", "the connection (TCP)"),
    ("http_req_tls_handshaking", "the handshake (TLS)"),
    ("http_req_sending", "sending the request"),
    ("http_req_waiting", "the server's own work until its first byte"),
    ("http_req_receiving", "the transfer of the answer"),
];

/// Places of phases.
const BLOCKED: usize = 0;
const CONNECTING: usize = 1;
const HANDSHAKING: usize = 2;
const SENDING: usize = 3;
const WAITING: usize = 4;
const RECEIVING: usize = 5;

/// Seconds from which a phase is worth a sentence, and its part of the whole: what a person would not wait for is nobody's trouble.
const LONG_SECONDS: f64 = 0.2;
const LARGE_PART: f64 = 0.5;

/// Which phase a name is of.
pub(super) fn place(name: &str) -> Option<usize> {
    K6.iter().position(|(known, _)| *known == name)
}

/// What has the time of a request, if that is not the server's work.
pub(super) fn told(phases: &[Option<f64>; 6]) -> Option<String> {
    let of = |at: usize| phases.get(at).copied().flatten().unwrap_or(0.0);
    let blocked = phases.get(BLOCKED).copied().flatten()?;
    // What is in no other phase: the lookup of the name, and the wait for a connection.
    let named = (blocked - of(CONNECTING) - of(HANDSHAKING)).max(0.0);
    let own = |at: usize| if at == BLOCKED { named } else { of(at) };
    let whole: f64 = (0..K6.len()).map(own).sum();
    let before = named + of(CONNECTING) + of(HANDSHAKING);
    let told = |seconds: f64| duration(ns_of(seconds));
    let longest = [WAITING, SENDING, RECEIVING]
        .map(own)
        .into_iter()
        .fold(0.0, f64::max);
    if before >= LONG_SECONDS && before > longest {
        let mut parts = vec![format!(
            "{} waiting for a free connection or looking up a name",
            told(named)
        )];
        for at in [CONNECTING, HANDSHAKING] {
            if of(at) > 0.0 {
                let (_, what) = K6.get(at)?;
                parts.push(format!("{} {what}", told(of(at))));
            }
        }
        return Some(format!(
            "{} of the time is lost before the request is sent: {} blocked ({}), while the server needed {}",
            if before >= LARGE_PART * whole {
                "most"
            } else {
                "the largest part"
            },
            told(before),
            parts.join(", "),
            told(of(WAITING))
        ));
    }
    let (at, (_, what)) = K6
        .iter()
        .enumerate()
        .filter(|(at, _)| ![BLOCKED, WAITING].contains(at))
        .max_by(|(one, _), (other, _)| own(*one).total_cmp(&own(*other)))?;
    (own(at) >= LONG_SECONDS && own(at) >= LARGE_PART * whole)
        .then(|| format!("most of the time is {what}: {} of {}", told(own(at)), told(whole)))
}

#[cfg(test)]
mod tests {
    use super::told;

    #[test]
    fn what_is_lost_before_the_request_is_told_by_its_parts() {
        let phases = [
            Some(2.35),
            Some(0.08),
            Some(0.7),
            Some(0.002),
            Some(0.28),
            Some(0.36),
        ];
        let text = "most of the time is lost before the request is sent: 2.35 s blocked (1.57 s waiting for a free connection or looking up a \
                    name, 80.0 ms the connection (TCP), 700 ms the handshake (TLS)), while the server needed 280 ms";
        assert_eq!(told(&phases).as_deref(), Some(text));
        // It is the longest of all phases, and less than all others together.
        let phases = [Some(3.1), Some(3.0), None, Some(0.9), Some(2.8), Some(0.1)];
        let text = "the largest part of the time is lost before the request is sent: 3.10 s blocked";
        assert!(
            told(&phases).is_some_and(|found| found.starts_with(text)),
            "{:?}",
            told(&phases)
        );
        let phases = [Some(2.7), Some(2.6), None, Some(0.9), Some(2.8), Some(0.1)];
        assert_eq!(told(&phases), None, "the server needs longer");
        let phases = [Some(5.0), None, None, Some(0.0), Some(0.1), Some(0.1)];
        assert!(told(&phases).is_some_and(|text| text.contains("5.00 s waiting for a free connection")));
        let phases = [Some(0.0), None, None, Some(0.0), Some(0.1), Some(3.0)];
        assert_eq!(
            told(&phases).as_deref(),
            Some("most of the time is the transfer of the answer: 3.00 s of 3.10 s")
        );
    }

    #[test]
    fn a_server_that_works_and_short_phases_say_nothing() {
        for phases in [
            [Some(0.001), None, None, Some(0.0), Some(3.0), Some(0.1)],
            [Some(0.05), Some(0.04), None, Some(0.0), Some(0.01), Some(0.0)],
            [None; 6],
        ] {
            assert_eq!(told(&phases), None);
        }
    }
}
