//! Lines of real programs: those that explain a wait, those that do not, and for how long the former count.

use super::{LogText, judge};
use holdup_evidence::Ns;
use holdup_evidence::facts::{LogLine, LogReason};

const SECOND: Ns = 1_000_000_000;

fn text(bytes: &[u8], added: usize) -> LogText<'_> {
    LogText {
        bytes,
        added: Some(added),
        first_line: Some(1),
        written_ago: SECOND,
        watched: 5 * SECOND,
        lives: 3_600 * SECOND,
        named: true,
    }
}

/// What lines say that were written meanwhile.
fn meanwhile(lines: &str) -> Vec<LogLine> {
    judge(&text(lines.as_bytes(), 0))
}

fn before(lines: &str) -> Vec<LogLine> {
    judge(&text(lines.as_bytes(), lines.len()))
}

#[test]
fn programs_say_why_work_waits() {
    use LogReason::{
        Defers, Limit, Lock, NoAnswer, NoDescriptor, NoMemory, NoSpace, Refuses, Slows, Unreachable,
    };
    for (line, reason) in [
        (
            "2026/11/28 15:30:07 [notice] 31961#31961: *68 delaying request, excess: 10.988, by zone \"perclient\", client: 127.0.0.1, request: \"GET /d HTTP/1.1\"",
            Slows,
        ),
        (
            "2026/11/28 15:30:07 [error] 31961#31961: *68 limiting requests, excess: 60.9 by zone \"z\", client: 127.0.0.1",
            Limit,
        ),
        (
            "2026/11/28 15:30:07 [alert] 7#7: 64 worker_connections are not enough",
            Limit,
        ),
        (
            "2026/11/28 15:30:07 [error] 7#7: *9 upstream timed out (110: Connection timed out) while reading response header from upstream, client: ::1",
            NoAnswer,
        ),
        (
            "2026/11/28 15:30:07 [crit] 7#7: accept4() failed (24: Too many open files)",
            NoDescriptor,
        ),
        (
            "28-Nov-2026 15:39:45.081 xfer-in: info: zone fjord.example/IN: zone transfer deferred due to quota",
            Defers,
        ),
        (
            "28-Nov-2026 15:39:45.081 client: warning: client @0x7f 127.0.0.1#5353: no more recursive clients (12/10/12): quota reached",
            Limit,
        ),
        (
            "[28-Nov-2026 15:30:07] WARNING: [pool www] server reached pm.max_children setting (2), consider raising it",
            Limit,
        ),
        (
            "2026-11-28 15:30:07.123 UTC [77] FATAL:  sorry, too many clients already",
            Limit,
        ),
        (
            "2026-11-28 15:30:07.123 UTC [77] FATAL:  remaining connection slots are reserved for non-replication superuser connections",
            Limit,
        ),
        (
            "2026-11-28 15:30:07.123 UTC [77] LOG:  process 77 still waiting for ShareLock on transaction 741 after 1000.108 ms",
            Lock,
        ),
        ("2026-11-28 15:30:07 7 [Warning] Too many connections", Limit),
        (
            "2026-11-28 15:18:52.1+00:00 [warning] <0.1.0> disk resource limit alarm set on node 'orders@localhost'.",
            Refuses,
        ),
        (
            "77:M 28 Nov 2026 15:30:07.123 # MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist on disk",
            Refuses,
        ),
        (
            "77:M 28 Nov 2026 15:30:07.123 # Error allocating a client: max number of clients reached",
            Limit,
        ),
        (
            "Nov 28 15:30:07 mx postfix/qmgr[77]: warning: mail for relay.example is using up 2000 of 2000 active queue entries: mail transport unavailable",
            Defers,
        ),
        (
            "[2026-11-28T15:30:07,123][WARN ][o.e.c.r.a.DiskThresholdMonitor] [n1] flood stage disk watermark [95%] exceeded on [x], all indices on this node will be marked read-only",
            Refuses,
        ),
        (
            "Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space",
            NoMemory,
        ),
        (
            "2026-11-28 15:30:07 ERROR app.pool: QueuePool limit of size 5 overflow 10 reached, connection timed out, timeout 30.00",
            Limit,
        ),
        (
            "sqlalchemy.exc.TimeoutError: QueuePool limit of size 2 overflow 1 reached, connection timed out, timeout 2.00",
            Limit,
        ),
        (
            "2026-11-28 15:30:07,123 ERROR c.z.h.p.HikariPool: HikariPool-1 - Connection is not available, request timed out after 30000ms.",
            Limit,
        ),
        (
            "2026-11-28 15:30:07: (server.c.1939) [note] sockets disabled, connection limit reached",
            Refuses,
        ),
        (
            "[Sat Nov 28 15:30:07.123 2026] [mpm_event:error] [pid 7:tid 8] AH10159: server is within MinSpareThreads of MaxRequestWorkers, consider raising the MaxRequestWorkers setting",
            Limit,
        ),
        (
            "[WARNING]  (77) : Server web/nginx1 is DOWN, reason: Layer4 connection problem",
            Unreachable,
        ),
        (
            "[ALERT]    (77) : backend 'web' has no server available!",
            Unreachable,
        ),
        (
            "Nov 28 15:30:07 app[7]: write failed: No space left on device",
            NoSpace,
        ),
        (
            "{\"level\":\"warn\",\"ts\":\"2026-11-28T15:30:07Z\",\"msg\":\"all alarm\",\"error\":\"etcdserver: mvcc: database space exceeded\"}",
            Refuses,
        ),
        (
            "Nov 28 15:30:07 gate sshd[7]: drop connection #10 from [10.0.0.7]:41 on [10.0.0.1]:22 past MaxStartups",
            Limit,
        ),
    ] {
        let said = meanwhile(line);
        assert_eq!(
            said.first().map(|one| one.reason),
            Some(reason),
            "{line}: {said:?}"
        );
    }
}

#[test]
fn ordinary_lines_say_nothing() {
    for line in [
        "2026/11/28 15:30:07 [notice] 7#7: using the \"epoll\" event method",
        "2026/11/28 15:30:07 [error] 7#7: *9 open() \"/srv/limit exceeded/x\" failed (2: No such file or directory), client: ::1",
        "2026/11/28 15:30:07 [info] 7#7: *9 client timed out (110: Connection timed out) while waiting for request, client: ::1",
        "127.0.0.1 - - [28/Nov/2026:15:30:07 +0000] \"GET /too-many-connections HTTP/1.1\" 404 153 \"-\" \"curl\"",
        "2026-11-28 15:30:07 0 [Note] InnoDB: Completed initialization of buffer pool",
        "2026-11-28 15:30:07 0 [Warning] Changed limits: max_open_files: 1024  max_connections: 151  table_cache: 421",
        "77:M 28 Nov 2026 15:30:07.123 # WARNING: The TCP backlog setting of 511 cannot be enforced because /proc/sys/net/core/somaxconn is set to the lower value of 128.",
        "77:M 28 Nov 2026 15:30:07.123 # WARNING Memory overcommit must be enabled! Without it, a background save or replication may fail under low memory condition.",
        "77:M 28 Nov 2026 15:30:07.123 * Ready to accept connections",
        "2026-11-28 15:18:52.1+00:00 [info] <0.1.0> Memory high watermark set to 488 MiB (512000000 bytes) of 24030 MiB",
        "2026-11-28 15:18:52.1+00:00 [info] <0.1.0> Disk free limit set to 50MB",
        "2026-11-28 15:30:07.123 UTC [77] LOG:  database system is ready to accept connections",
        "2026-11-28 15:30:07.123 UTC [77] ERROR:  relation \"too many connections\" does not exist at character 15",
        "2026-11-28 15:30:07.123 UTC [77] LOG:  could not receive data from client: Connection reset by peer",
        "[28-Nov-2026 15:30:07] NOTICE: ready to handle connections",
        "28-Nov-2026 15:39:44.569 resolver: notice: resolver priming query complete: operation canceled",
        "2026-11-28 15:30:07 DEBUG pool: limit reached, waiting",
        "INFO  timeout=30s retries=3",
        "2026-11-28 15:30:07 status unpacked python3-async-timeout:all 4.0.2-1",
        "2026-11-28 15:30:07 stats: nr_throttled 11120, TCPTimeouts: 28, rto:208 backoff:4",
        "2026-11-28 15:30:07 e1000: eth0 NIC Link is Up 1000 Mbps Full Duplex, Flow Control: RX",
        "[2.1s][info][gc] GC(41) To-space exhausted",
        "2026-11-28 15:30:07 ERROR cannot open /srv/queue_full/too_many_connections of http://a/limit-exceeded",
        "Nov 28 15:30:07 mx postfix/smtp[7]: 4F: to=<a@example.org>, relay=mx[10.0.0.1]:25, status=sent (250 2.0.0 Ok: queued as 7)",
        "Nov 28 15:30:07 mx postfix/qmgr[7]: statistics: 0 deferred",
        "SELECT * FROM jobs WHERE state = 'limit exceeded'",
        "[1] 2026/11/28 15:30:07.123 [INF] Server is ready",
    ] {
        assert_eq!(meanwhile(line), [], "{line}");
    }
}

#[test]
fn lines_that_differ_in_numbers_are_one_with_its_count_and_the_last_is_quoted() {
    let old = "2026/11/28 15:30:01 [notice] 7#7: *1 delaying request, excess: 1.000, by zone \"z\"\n";
    let new = "2026/11/28 15:30:07 [notice] 7#7: *2 delaying request, excess: 2.000, by zone \"z\"\n\
               2026/11/28 15:30:08 [notice] 7#7: *3 delaying request, excess: 3.000, by zone \"z\"\n";
    let said = judge(&text(format!("{old}{new}").as_bytes(), old.len()));
    let [one] = said.as_slice() else {
        panic!("{said:?}")
    };
    assert_eq!((one.during, one.before, one.line), (2, 1, Some(3)));
    assert!(one.text.contains("excess: 3.000"), "{}", one.text);
    assert_eq!(one.ago, Some(SECOND));
}

#[test]
fn an_old_event_counts_for_a_minute_and_a_state_until_it_ends() {
    let event = "2026-11-28 15:30:07 UTC [7] FATAL:  sorry, too many clients already\n";
    let state = "2026-11-28 15:30:07 UTC [warning] disk resource limit alarm set on node a\n";
    let later = |seconds: u64| {
        format!(
            "2026-11-28 15:{:02}:{:02} UTC [7] LOG:  checkpoint complete\n",
            30 + seconds / 60,
            seconds % 60
        )
    };
    assert_eq!(before(&format!("{event}{}", later(50))).len(), 1);
    assert_eq!(before(&format!("{event}{}", later(600))), []);
    let standing = before(&format!("{state}{}", later(600)));
    assert!(standing[0].standing, "{standing:?}");
    assert_eq!(standing[0].ago, Some(594 * SECOND));
    let ended = "2026-11-28 15:31:07 UTC [warning] disk resource limit alarm cleared on node a\n";
    assert_eq!(before(&format!("{state}{ended}{}", later(600))), []);
    let other = "2026-11-28 15:31:07 UTC [warning] lease of user b cleared\n";
    assert_eq!(
        before(&format!("{state}{other}{}", later(600))).len(),
        1,
        "of something else"
    );
    let of_another_process = format!("{state}{}", later(600));
    let log = LogText {
        lives: 60 * SECOND,
        ..text(of_another_process.as_bytes(), of_another_process.len())
    };
    assert_eq!(judge(&log), []);
}

#[test]
fn what_is_quoted_is_the_message_alone() {
    for (line, text) in [
        (
            "2026/11/28 15:30:07 [warn] 7#7: *71 delaying request, excess: 1.9",
            "delaying request, excess: 1.9",
        ),
        (
            "2026/11/28 15:30:07 [alert] 7#7: 16 worker_connections are not enough",
            "16 worker_connections are not enough",
        ),
        (
            "2026-11-28 15:18:52.1+00:00 [warning] <0.287.0> disk resource limit alarm set on node o",
            "disk resource limit alarm set on node o",
        ),
        (
            "2026-11-28 15:30:07.123 UTC [77] FATAL:  sorry, too many clients already",
            "sorry, too many clients already",
        ),
        (
            "[ALERT]    (77) : backend 'web' has no server available!",
            "backend 'web' has no server available!",
        ),
        ("pool exhausted, request waits", "pool exhausted, request waits"),
    ] {
        assert_eq!(meanwhile(line).first().map(|one| one.text.as_str()), Some(text));
    }
}

#[test]
fn names_of_limits_at_the_start_are_no_reason() {
    for line in [
        "2026-11-28 15:30:07.123 UTC [7] LOG kernel file descriptor limit: 20000 (hard: 20000); max_client_conn: 100, max expected fd use: 112",
        "2026-11-28 15:30:07 [note] maximum allowed packet is 16M",
        "Limiting to approx 1048479 file handles (943629 sockets)",
    ] {
        assert_eq!(meanwhile(line), [], "{line}");
    }
}

#[test]
fn what_was_put_off_and_then_done_is_over() {
    let put_off =
        "28-Nov-2026 15:39:44 xfer-in: info: zone a.example/IN: zone transfer deferred due to quota\n";
    let done = "28-Nov-2026 15:39:45 xfer-in: info: zone a.example/IN: transferred serial 1\n";
    let other = "28-Nov-2026 15:39:45 xfer-in: info: zone b.example/IN: transferred serial 1\n";
    assert_eq!(before(&format!("{put_off}{done}")), []);
    assert_eq!(before(&format!("{put_off}{other}")).len(), 1);
    let mail = "Nov 28 15:30:07 mx postfix/smtp[7]: 4F2A: to=<a@b.example>, status=deferred (connect to mx.b.example timed out)\n";
    let sent = "Nov 28 15:30:17 mx postfix/smtp[7]: 4F2A: to=<a@b.example>, relay=mx.b.example, status=sent (250 Ok)\n";
    assert_eq!(before(mail).len(), 1);
    assert_eq!(before(&format!("{mail}{sent}")), []);
}

#[test]
fn a_state_without_a_time_lasts_until_it_ends() {
    let down = "[ALERT]    (77) : backend 'web' has no server available!\n";
    let more = "Connect from 127.0.0.1:47220 to 127.0.0.1:24694 (f/HTTP)\n".repeat(40);
    assert_eq!(before(&format!("{down}{more}")).len(), 1);
    let up = "[WARNING]  (77) : backend 'web' server w1 is UP, available again\n";
    assert_eq!(before(&format!("{down}{up}{more}")), []);
}

#[test]
fn lines_without_a_time_count_where_the_file_is_a_log_and_young() {
    let line = "pool exhausted, request waits\n";
    assert_eq!(meanwhile(line).len(), 1);
    assert_eq!(before(line).len(), 1);
    let old = LogText {
        written_ago: 3_000 * SECOND,
        ..text(line.as_bytes(), line.len())
    };
    assert_eq!(judge(&old), []);
    let no_log = LogText {
        named: false,
        ..text(line.as_bytes(), 0)
    };
    assert_eq!(judge(&no_log), []);
    assert_eq!(
        meanwhile("\0\u{1}\u{2}\u{3}pool exhausted\u{4}\u{5}\u{6}\u{7}"),
        []
    );
}
