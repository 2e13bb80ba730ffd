//! Lines that say that somebody gave up waiting: for a free connection of a pool, or for the server behind a proxy.
//!
//! The words are those of the libraries and servers themselves (HikariCP, Tomcat's and Commons' pools, SQLAlchemy, node-postgres,
//! Apache's HTTP client, PgBouncer; nginx), wherever the program that uses them puts them into its line.

use crate::gather::text_of;
use crate::numbers::{decimal, whole};
use holdup_evidence::Ns;
use holdup_evidence::observed::LogEvent;
use memchr::memmem::find;

/// What all of these lines have in them, in one case or the other: one look at each other line is enough.
const TIMED_OUT: &[u8] = b"imed out";
const TIMEOUT: &[u8] = b"imeout";

const MS: f64 = 1e6;
const SECOND: f64 = 1e9;

/// The longest name of a pool or a server, bytes.
const NAME: usize = 120;

/// What a line says of that.
#[inline]
pub(super) fn event(line: &[u8]) -> Option<LogEvent> {
    if find(line, TIMED_OUT).is_none() && find(line, TIMEOUT).is_none() {
        return None;
    }
    hikari(line)
        .or_else(|| tomcat(line))
        .or_else(|| sqlalchemy(line))
        .or_else(|| by_words(line))
        .or_else(|| nginx(line))
}

fn none_free(pool: &[u8], ns: Option<Ns>, size: Option<u64>, waiting: Option<u64>) -> LogEvent {
    LogEvent::NoConnectionFree {
        pool: text_of(pool.get(..pool.len().min(NAME)).unwrap_or_default()),
        ns,
        size,
        waiting,
    }
}

/// `HikariPool-1 - Connection is not available, request timed out after 30001ms (total=10, active=10, idle=0, waiting=3).`
fn hikari(line: &[u8]) -> Option<LogEvent> {
    let (before, rest) = around(line, b" - Connection is not available, request timed out after ")?;
    let ns = number_of(rest).map(|ms| (ms * MS) as Ns);
    let size = after(rest, b"total=");
    Some(none_free(last_word(before), ns, size, after(rest, b"waiting=")))
}

/// `[http-1] Timeout: Pool empty. Unable to fetch a connection in 30 seconds, none available[size:10; busy:10; idle:0; …].`
fn tomcat(line: &[u8]) -> Option<LogEvent> {
    let (_, rest) = around(line, b"Timeout: Pool empty. Unable to fetch a connection in ")?;
    let ns = number_of(rest).map(|seconds| (seconds * SECOND) as Ns);
    Some(none_free(b"", ns, after(rest, b"size:"), None))
}

/// `QueuePool limit of size 5 overflow 10 reached, connection timed out, timeout 30.00`
fn sqlalchemy(line: &[u8]) -> Option<LogEvent> {
    let (_, rest) = around(line, b"QueuePool limit of size ")?;
    let (limits, time) = around(rest, b" reached, connection timed out, timeout ")?;
    let size = number_of(limits).zip(after(limits, b"overflow "));
    let size = size.map(|(size, overflow)| (size as u64).saturating_add(overflow));
    let ns = number_of(time).map(|seconds| (seconds * SECOND) as Ns);
    Some(none_free(b"QueuePool", ns, size, None))
}

/// Pools that say that, and not more.
fn by_words(line: &[u8]) -> Option<LogEvent> {
    const WORDS: [&[u8]; 4] = [
        // Commons DBCP and Pool.
        b"Timeout waiting for idle object",
        // node-postgres, of a pool and of the server: it says so where neither had a connection in time.
        b"timeout exceeded when trying to connect",
        // Apache HttpClient.
        b"Timeout waiting for connection from pool",
        // PgBouncer, to its client.
        b"query_wait_timeout",
    ];
    let said = WORDS.iter().any(|words| find(line, words).is_some());
    said.then(|| none_free(b"", None, None, None))
}

/// `upstream timed out (110: Connection timed out) while reading response header from upstream, client: …, upstream: "http://…"`
fn nginx(line: &[u8]) -> Option<LogEvent> {
    let (_, rest) = around(line, b"upstream timed out (")?;
    let (_, rest) = around(rest, b") while ")?;
    let end = find(rest, b", client: ")?;
    let doing = rest.get(..end)?;
    let (_, upstream) = around(rest, b", upstream: \"")?;
    let upstream = upstream.get(..find(upstream, b"\"")?)?;
    // The path is the client's own, and another for each request.
    let host = match around(upstream, b"://") {
        Some((_, rest)) if !rest.starts_with(b"unix:") => {
            let end = rest.iter().position(|byte| *byte == b'/');
            rest.get(..end.unwrap_or(rest.len()))?
        }
        _ => upstream,
    };
    Some(LogEvent::UpstreamSilent {
        upstream: text_of(host.get(..host.len().min(NAME))?),
        doing: text_of(doing.get(..doing.len().min(NAME))?),
    })
}

/// What stands before and behind some words.
fn around<'l>(line: &'l [u8], words: &[u8]) -> Option<(&'l [u8], &'l [u8])> {
    let at = find(line, words)?;
    Some((line.get(..at)?, line.get(at + words.len()..)?))
}

/// The number that a text begins with.
fn number_of(text: &[u8]) -> Option<f64> {
    let digit = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let end = text.iter().position(|byte| !digit(byte)).unwrap_or(text.len());
    let number = text.get(..end)?;
    decimal(number.strip_suffix(b".").unwrap_or(number))
}

/// The whole number behind some words.
fn after(text: &[u8], words: &[u8]) -> Option<u64> {
    let (_, rest) = around(text, words)?;
    let end = rest.iter().position(|byte| !byte.is_ascii_digit());
    whole(rest.get(..end.unwrap_or(rest.len()))?)
}

fn last_word(text: &[u8]) -> &[u8] {
    let start = text.iter().rposition(u8::is_ascii_whitespace);
    text.get(start.map_or(0, |at| at + 1)..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::event;
    use holdup_evidence::observed::LogEvent;

    fn none_free(line: &str) -> (String, Option<u64>, Option<u64>, Option<u64>) {
        match event(line.as_bytes()) {
            Some(LogEvent::NoConnectionFree {
                pool,
                ns,
                size,
                waiting,
            }) => (pool, ns, size, waiting),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn each_pool_has_its_own_words() {
        let second = 1_000_000_000;
        let hikari = "2026-11-23 10:00:00,1 WARN o.h.e.SqlExceptionHelper : shop - Connection is not available, request timed out after 30001ms (total=10, active=10, idle=0, waiting=3)";
        assert_eq!(
            none_free(hikari),
            ("shop".to_owned(), Some(30_001_000_000), Some(10), Some(3))
        );
        let older = "HikariPool-1 - Connection is not available, request timed out after 1000ms.";
        assert_eq!(
            none_free(older),
            ("HikariPool-1".to_owned(), Some(second), None, None)
        );
        let tomcat = "[exec-7] Timeout: Pool empty. Unable to fetch a connection in 30 seconds, none available[size:10; busy:10; idle:0; lastwait:30000].";
        assert_eq!(
            none_free(tomcat),
            (String::new(), Some(30 * second), Some(10), None)
        );
        let python = "sqlalchemy.exc.TimeoutError: QueuePool limit of size 5 overflow 10 reached, connection timed out, timeout 30.00 (Background on this error at: x)";
        assert_eq!(
            none_free(python),
            ("QueuePool".to_owned(), Some(30 * second), Some(15), None)
        );
        none_free("Cannot get a connection, pool error Timeout waiting for idle object");
    }

    #[test]
    fn a_proxy_names_the_server_without_the_clients_path() {
        let line = "2026/11/23 10:00:00 [error] 7#7: *1 upstream timed out (110: Connection timed out) while reading response header from upstream, client: 127.0.0.1, server: , request: \"GET /a?token=b HTTP/1.1\", upstream: \"http://10.0.0.9:8080/a?token=b\", host: \"shop\"";
        assert_eq!(
            event(line.as_bytes()),
            Some(LogEvent::UpstreamSilent {
                upstream: "10.0.0.9:8080".to_owned(),
                doing: "reading response header from upstream".to_owned(),
            })
        );
        for other in [
            "connection timed out",
            "upstream timed out (",
            "read timeout set to 30 s",
            "QueuePool limit of size x",
        ] {
            assert_eq!(event(other.as_bytes()), None, "{other}");
        }
    }
}
