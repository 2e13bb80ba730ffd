//! Lines in the style of many programs, and what they blame.

use super::of;
use crate::statements::kinds;
use holdup_evidence::observed::How::{self, *};

fn blamed(line: &str) -> Option<(String, How)> {
    let found = kinds::of(line.as_bytes())?;
    of(line.as_bytes(), found.kind)
}

#[test]
fn peers_are_known_by_their_form_and_by_the_words_before_them() {
    for (line, of, how) in [
        (
            "dial tcp 10.0.0.5:6379: connect: connection refused",
            "10.0.0.5:6379",
            Refused,
        ),
        (
            "Error: connect ECONNREFUSED 127.0.0.1:5432",
            "127.0.0.1:5432",
            Refused,
        ),
        (
            "read tcp [::1]:50258->[::1]:6380: i/o timeout",
            "[::1]:6380",
            NoAnswer,
        ),
        ("dial tcp redis:6379: i/o timeout", "redis:6379", NoAnswer),
        (
            "upstream timed out (110: Connection timed out), client: 192.0.2.7, server: shop, upstream: \"fastcgi://127.0.0.1:9000\", host: \"192.0.2.9:80\"",
            "fastcgi://127.0.0.1:9000",
            NoAnswer,
        ),
        (
            "connect() to unix:/run/php/shop.sock failed (111: Connection refused) while connecting to upstream",
            "/run/php/shop.sock",
            Refused,
        ),
        (
            "Connection to node 1 (broker-1/10.0.0.7:9092) could not be established. Broker may not be available.",
            "broker-1/10.0.0.7:9092",
            NoConnection,
        ),
        (
            "ConnectTransportException: [es-1][10.0.0.7:9300] connect_timeout[30s]",
            "es-1[10.0.0.7:9300]",
            NoAnswer,
        ),
        (
            "Connection to node -1 could not be established.",
            "node -1",
            NoConnection,
        ),
        (
            "connect to mx.example.com[192.0.2.25]:25: Connection timed out",
            "mx.example.com[192.0.2.25]:25",
            NoAnswer,
        ),
        (
            "connection to server at \"db-2\" (10.0.0.9), port 5432 failed: Connection refused",
            "db-2:5432",
            Refused,
        ),
        (
            "postgres://shop:secret@db:5432/carts: connection reset by peer",
            "postgres://db:5432",
            Broken,
        ),
        (
            "Server shop/web-1 is DOWN, reason: Layer4 timeout, check duration: 10001ms.",
            "server shop/web-1",
            NoAnswer,
        ),
        (
            "Server shop/web-1 is DOWN, reason: Layer7 wrong status, code: 503",
            "server shop/web-1",
            Unavailable,
        ),
    ] {
        assert_eq!(blamed(line), Some((of.to_owned(), how)), "{line}");
    }
}

#[test]
fn names_pools_paths_and_processes_are_blamed_too() {
    for (line, of, how) in [
        (
            "dial tcp: lookup db-1 on 10.0.0.2:53: no such host",
            "db-1",
            Unresolved,
        ),
        (
            "curl: (6) Could not resolve host: api.example.com",
            "api.example.com",
            Unresolved,
        ),
        ("getaddrinfo ENOTFOUND db.internal", "db.internal", Unresolved),
        ("java.net.UnknownHostException: shop-db", "shop-db", Unresolved),
        (
            "could not translate host name \"pg\" to address: Name or service not known",
            "pg",
            Unresolved,
        ),
        (
            "HikariPool-1 - Connection is not available, request timed out after 30014ms.",
            "the connection pool HikariPool-1",
            NoFreeConnection,
        ),
        ("write /data/x: no space left on device", "/data/x", NoSpace),
        (
            "PermissionError: [Errno 13] Permission denied: '/srv/shop/a.db'",
            "/srv/shop/a.db",
            Denied,
        ),
        (
            "touch: cannot touch '/mnt/a': Read-only file system",
            "/mnt/a",
            ReadOnly,
        ),
        ("[CRITICAL] WORKER TIMEOUT (pid:7214)", "process 7214", TimedOut),
        ("Out of memory: Killed process 812 (node)", "process 812", Killed),
    ] {
        assert_eq!(blamed(line), Some((of.to_owned(), how)), "{line}");
    }
}

#[test]
fn nobody_is_blamed_for_a_client_who_left_or_without_a_name() {
    for line in [
        "client prematurely closed connection, client: 192.0.2.7, upstream: \"http://10.0.0.5:80/\"",
        "connection refused",
        "timed out, client: 192.0.2.7:4711",
        "main.go:36: request failed: timed out",
        "12:03:11 worker timed out",
        "permission denied",
        "On node 0, zone DMA: 1 pages in unavailable ranges",
        "upload to version 1.2.3.4 failed",
    ] {
        assert_eq!(blamed(line), None, "{line}");
    }
}

#[test]
fn who_has_no_descriptor_left_is_the_one_who_writes() {
    for line in [
        "socket() failed (24: Too many open files) while connecting to upstream, upstream: \"http://10.0.0.5:80/\"",
        "open() \"/srv/shop/index.html\" failed (24: Too many open files)",
        "accept4: EMFILE at 10.0.0.5:8080",
    ] {
        assert_eq!(blamed(line), None, "{line}");
    }
    assert_eq!(
        blamed("ERROR 1040 (08004): connect to 10.0.0.5:3306: Too many connections"),
        Some(("10.0.0.5:3306".to_owned(), TooMany))
    );
}
