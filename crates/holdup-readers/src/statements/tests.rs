//! Constructed lines in the style of programs, and what damage by copying does to them.

use super::{durations, kinds};
use crate::read_text;
use holdup_evidence::observed::Statement;
use holdup_evidence::observed::StatementKind::{
    self, Deadlock, Ended, Exhausted, Failed, Stalled, TimedOut, Took, Unreachable, Warned,
};

fn statements(text: &str) -> Vec<Statement> {
    read_text("text", text.as_bytes()).observed.statements
}

fn kind(line: &str) -> Option<StatementKind> {
    kinds::of(line.as_bytes()).map(|found| found.kind)
}

fn millis(line: &str) -> Option<u64> {
    durations::longest(line.as_bytes(), false).map(|length| length.ns / 1_000_000)
}

#[test]
fn words_say_what_happened() {
    for (line, expected) in [
        ("ERROR: deadlock detected while updating carts", Deadlock),
        ("container shop-3 was OOMKilled", Ended),
        ("java.lang.OutOfMemoryError: Java heap space", Ended),
        ("goroutine panic: index out of range", Ended),
        ("write /data/x: no space left on device", Exhausted),
        ("open: ENOSPC", Exhausted),
        ("read of block 7: EIO", Failed),
        ("rename: EROFS, stat: ESTALE", Failed),
        ("getaddrinfo EAI_AGAIN db", Unreachable),
        ("connect EHOSTUNREACH 10.0.0.7:80", Unreachable),
        ("accept4: too many open files", Exhausted),
        ("pool orders is exhausted, 40 of 40 in use", Exhausted),
        ("read tcp 10.9.8.7:80: i/o timeout", TimedOut),
        ("orders.GetConnectionTimeoutException: pool", TimedOut),
        ("{close,etimedout}", TimedOut),
        ("session 7 expired, timeout of 4000ms exceeded", TimedOut),
        ("rpc: context deadline exceeded", TimedOut),
        ("Timeout::Error: Waited 1 sec", TimedOut),
        (
            "database shop is not available, trying again in 5 seconds...",
            Unreachable,
        ),
        ("page_cleaner: 1000ms intended loop took 7471ms.", Stalled),
        ("Net::ReadTimeout with #<TCPSocket:(closed)>", TimedOut),
        ("missed heartbeats from client, limit: 60s", TimedOut),
        ("file descriptor limit alarm set.", Exhausted),
        (
            "[gc][7] overhead, spent [21.3s] collecting in the last [21.5s]",
            Stalled,
        ),
        ("connect to db-2:5432: Connection refused", Unreachable),
        ("server [db-2] not responding", TimedOut),
        ("worker 4 is stuck since noon", Stalled),
        ("cgroup is being throttled", Stalled),
        ("slow query on carts", Stalled),
        ("upload failed", Failed),
        ("errors: 3", Failed),
        ("E1124 10:11:12.131415 7 sync.go:5] pods", Failed),
        ("W1124 10:11:12.131415 7 sync.go:5] pods", Warned),
        ("[warn] cache is cold", Warned),
    ] {
        assert_eq!(kind(line), Some(expected), "{line}");
    }
}

#[test]
fn what_is_taken_back_or_set_states_nothing() {
    for line in [
        "0 errors",
        "done, no errors",
        "without any failures",
        "errors: 0",
        "error=null",
        "{\"error\":null,\"ok\":true}",
        "{\"error\":\"\",\"ok\":true}",
        "RX errors 0 dropped 0",
        "timeout=30s",
        "connect_timeout: 10",
        "deadlock_timeout = 1s",
        "negotiated timeout 40000",
        "panic=10 quiet",
        "failover is ready",
        " oom_kill_process+0x1f0/0x3a0",
        "core::panicking::try",
        "exchange of keys",
        "systemd-analyze critical-chain",
        "-XX:+ExitOnOutOfMemoryError",
        "errors: No known data errors",
        "",
    ] {
        assert_eq!(kind(line), None, "{line}");
    }
}

#[test]
fn lengths_of_what_happened() {
    for (line, expected) in [
        ("took 8 seconds", 8_000),
        ("done in 12.5s", 12_500),
        ("duration: 5034.123 ms", 5_034),
        ("elapsed 2m30s", 150_000),
        ("real 0m10.349s", 10_349),
        ("stopped for 1,5 s", 1_500),
        ("moved 1,200 ms behind", 1_200),
        ("{\"duration_ms\":517,\"n\":3}", 517),
        ("# Query_time: 12.5  Lock_time: 0.1", 12_500),
        ("Scan (cost=0.4..9.1 rows=1) (actual time=3.5..907.2 rows=1)", 907),
        ("took 3ms, then 40ms, then 7ms", 40),
        ("ttl=31 time=137 ms", 137),
        ("gave up after 5m", 300_000),
        ("ran 250 milliseconds", 250),
        ("the agent needed 4 s", 4_000),
        ("212 ms out of 500 ms", 212),
    ] {
        assert_eq!(millis(line), Some(expected), "{line}");
    }
}

#[test]
fn what_is_no_length() {
    for line in [
        "timeout=30s",
        "every 10s",
        "interval: 5 s",
        "keepalive_timeout 65s",
        "[ 10s ] 4100 operations",
        "[t=10s] 4100 operations",
        "seen 5 minutes ago",
        "at 10:11:12.500 s",
        "v1.2.3s",
        "10.0.0.1 ms",
        "12 MB/s",
        "5m",
        "up 3 days",
        "certificate expires in 5 hours",
        "nginx   4m8s   default",
        "2026-01-02s",
        "99999999999999999999999 s",
        "id a12s",
        "",
    ] {
        assert_eq!(millis(line), None, "{line}");
    }
}

#[test]
fn lines_that_differ_in_numbers_are_one_with_count_and_longest() {
    let text = "2031-04-05 10:00:00 WARN request 17 to 10.1.1.7:80 timed out after 3.5 s
2031-04-05 10:00:30 WARN request 18 to 10.1.1.9:80 timed out after 9.5 s
2031-04-05 10:01:00 WARN request 4711 to 10.1.1.7:80 timed out after 4 s
";
    let all = statements(text);
    let [one] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((one.kind, one.times, one.ns), (TimedOut, 3, Some(9_500_000_000)));
    assert_eq!(one.quote.line, 2);
    assert_eq!(one.text, "request 18 to 10.1.1.9:80 timed out after 9.5 s");
    let between = one
        .last
        .zip(one.first)
        .and_then(|(last, first)| last.since(first));
    assert_eq!(between, Some(60_000_000_000));
}

#[test]
fn a_short_message_has_the_line_that_says_of_what() {
    let all = statements("# Query_time: 12.5\nselect * from carts;\n");
    assert_eq!(all[0].text, "# Query_time: 12.5 | select * from carts;");
    let all = statements("closing connection (10.1.1.7:80 -> 10.1.1.8:90):\n{handshake_timeout,handshake}\n");
    assert_eq!(
        all[0].text,
        "closing connection (10.1.1.7:80 -> 10.1.1.8:90): {handshake_timeout,handshake}"
    );
}

#[test]
fn a_heading_is_told_with_the_message_below_it_in_composed_logs_too() {
    let text = "queue_1              | closing connection (10.1.1.7:80 -> 10.1.1.8:90):\nqueue_1              | missed heartbeats from client, after 60s of silence\n";
    let all = read_text("text", text.as_bytes()).observed.statements;
    assert!(
        all[0].text.contains("10.1.1.7:80") && all[0].text.contains("missed heartbeats"),
        "{all:?}"
    );
}

#[test]
fn a_length_has_the_command_that_took_it() {
    let all = statements("$ cp carts /backup\ndone in 12.5 s\n");
    assert_eq!(
        (&*all[0].text, all[0].ns),
        ("cp carts /backup | done in 12.5 s", Some(12_500_000_000))
    );
}

#[test]
fn a_deadlock_has_the_lines_below_it_that_name_what_waits() {
    let all = statements(
        "LATEST DETECTED DEADLOCK\n-----\n*** (1) TRANSACTION:\nTRANSACTION 71, ACTIVE 0 sec\n*** (1) WAITING FOR THIS LOCK:\nindex PRIMARY of table `shop`.`carts` waiting\n",
    );
    assert_eq!(all[0].kind, Deadlock);
    assert!(all[0].text.contains("TRANSACTION 71"), "{all:?}");
    assert!(all[0].text.contains("`shop`.`carts`"), "{all:?}");
    let kernel = statements(
        "[   36.1] WARNING: possible circular locking dependency detected\n[   36.2] cat/7 is trying to acquire lock:\n[   36.3] ffff (&one_mutex){+.+.}, at: f+0x1/0x2\n",
    );
    assert!(kernel[0].text.contains("&one_mutex"), "{kernel:?}");
}

#[test]
fn of_a_table_of_latencies_the_longest_row_is_stated() {
    let all = statements(
        "Tracing reads of carts\nCOMM    PID   LAT(ms) FILE\ndd      101      1.25 a\ncp      102     77.50 b\ndd      103      9.00 c\n",
    );
    let [one] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((one.kind, one.times, one.ns), (Took, 3, Some(77_500_000)));
    assert_eq!(
        one.text,
        "Tracing reads of carts: COMM cp, PID 102, LAT(ms) 77.50, FILE b"
    );
}

#[test]
fn a_long_line_keeps_what_matters() {
    let line = format!(
        "service carts {} connection refused by db-2 {}",
        "x ".repeat(900),
        "y ".repeat(900)
    );
    let all = statements(&line);
    assert!(all[0].text.starts_with("service carts"), "{}", all[0].text);
    assert!(
        all[0].text.contains("connection refused by db-2"),
        "{}",
        all[0].text
    );
    assert!(all[0].text.len() < 500);
}

#[test]
fn memory_is_bounded_and_a_flood_pushes_nothing_out() {
    let word = |number: u32| -> String {
        number
            .to_string()
            .bytes()
            .map(|digit| char::from(digit - b'0' + b'a'))
            .collect()
    };
    let mut text: String = (0..5_000)
        .map(|number| format!("warning: {} is cold\n", word(number)))
        .collect();
    text.push_str("deadlock detected\n");
    let reading = read_text("text", text.as_bytes());
    let all = &reading.observed.statements;
    assert_eq!(all.len(), super::ROOM + 1);
    assert!(all.iter().any(|one| one.kind == Deadlock));
    assert_eq!(reading.accounts[0].left_out, 5_000 - super::ROOM as u64);
}

/// Every text is read, and gives statements or none; what is no text is refused.
/// A short message is completed by the line below it, but not by another message.
#[test]
fn a_line_with_a_time_of_its_own_completes_no_short_message() {
    let text = "[   21.484777] ata1: COMRESET failed (errno=-16)\n[   21.491474] EXT4-fs (mmcblk0p2): mounting ext3 file system\n";
    let reading = read_text("text", text.as_bytes());
    let told = |one: &Statement| one.text.contains("EXT4");
    assert!(
        !reading.observed.statements.iter().any(told),
        "{:?}",
        reading.observed.statements
    );
    let goes_on =
        "2031-04-05 10:00:00 closing connection, error:\n2031-04-05 10:00:00 peer 10.1.1.7 went away\n";
    let text = &read_text("text", goes_on.as_bytes()).observed.statements[0].text;
    assert_eq!(text, "closing connection, error: | peer 10.1.1.7 went away");
}

/// The level, the process's number and dashes stand before the words; a count belongs to them.
#[test]
fn what_a_logger_puts_before_its_message_is_not_told() {
    let told = |line: &str| {
        let line = format!("2031-04-05 10:00:00 {line}\n");
        read_text("text", line.as_bytes()).observed.statements[0]
            .text
            .clone()
    };
    for (line, expected) in [
        (
            "WARN 42 --- [pool-1] a.b.Pool : pool is exhausted, all in use",
            "[pool-1] a.b.Pool : pool is exhausted, all in use",
        ),
        (
            "[WARN ][a.b.C] carts are slow, nobody knows why",
            "[a.b.C] carts are slow, nobody knows why",
        ),
        (
            "INFO  -- : Completed 200 OK in 3037ms",
            "Completed 200 OK in 3037ms",
        ),
        (
            "3 slow requests are blocked on shop.7 at least",
            "3 slow requests are blocked on shop.7 at least",
        ),
        ("error timed out", "error timed out"),
    ] {
        assert_eq!(told(line), expected);
    }
}

#[test]
fn every_text_has_an_account() {
    for text in [
        "a\n",
        "one two three\nfour\n",
        "{\"a\":1}\n",
        "\u{65e5}\u{672c}\n",
        "db timed out\n",
    ] {
        let reading = read_text("text", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "text", "{text}");
        let account = &reading.accounts[0];
        assert_eq!(account.evidence + account.not_understood, account.lines, "{text}");
        assert_eq!(
            account.evidence > 0,
            !reading.observed.statements.is_empty(),
            "{text}"
        );
    }
    let binary: Vec<u8> = (0..4_096_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    assert_eq!(read_text("binary", &binary).observed.sources[0].format, "");
}

/// What copying does to lines does not change what they state.
#[test]
fn damage_by_copying_changes_no_statement() {
    const LINES: [&str; 12] = [
        "connect to db-2:5432 failed: Connection refused",
        "2031-04-05 10:00:00 ERROR carts: pool exhausted after 2.5 s",
        "{\"level\":\"error\",\"error\":\"dial tcp 10.1.1.7:80: i/o timeout\"}",
        "# Query_time: 12.5",
        "select count(*) from carts where id = 7;",
        "checkpoint took 10 seconds to complete",
        "0 errors",
        "Events:",
        "Warning  Unhealthy  13s (x9 over 58s)  kubelet  probe failed: 503",
        "COMM    PID   LAT(ms) FILE",
        "dd      101      1.25 a",
        "cp      102     77.50 b",
    ];
    let damages: [fn(&str) -> String; 5] = [
        |line| format!("> {line}"),
        |line| format!("{line}\r"),
        |line| format!("\x1b[31m{line}\x1b[0m"),
        |line| line.replace(' ', "\u{a0}"),
        |line| format!("{line}   "),
    ];
    let mut random: u64 = 0x2545_f491_4f6c_dd1d;
    for _ in 0..300 {
        let mut lines: Vec<&str> = Vec::new();
        for _ in 0..6 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            lines.push(LINES[(random % LINES.len() as u64) as usize]);
        }
        let whole = lines.join("\n");
        let expected = statements(&whole);
        for damage in damages {
            let damaged: Vec<String> = lines.iter().map(|line| damage(line)).collect();
            assert_eq!(statements(&damaged.join("\n")), expected, "{whole}");
        }
        let fenced = format!("{whole}\n```\n");
        assert_eq!(statements(&fenced), expected, "{whole}");
    }
    // Columns that became tabs.
    let table = LINES[9..].join("\n");
    let tabs: String = table
        .split("  ")
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\t");
    assert_eq!(statements(&tabs)[0].ns, statements(&table)[0].ns);
}

#[test]
fn hostile_lines_are_read_to_their_end() {
    for text in [
        "\u{a0}",
        ">>>>>>>>>>>>>>>>>>",
        "0x",
        "1.",
        "1:",
        "timeout",
        "timeout=",
        "error:",
        "error\":\"",
        "(ms) (ms) a b c",
        "9".repeat(5_000).as_str(),
        "a 1s 1s 1s 1s",
        "\u{fffd}failed",
    ] {
        let _ = statements(text);
        let _ = statements(&text.repeat(50));
    }
    for cut in 0.."COMM PID LAT(ms) X\ndd 1 2 failed\n".len() {
        let _ = statements(&"COMM PID LAT(ms) X\ndd 1 2 failed\n"[..cut]);
    }
}

#[test]
fn a_step_that_went_well_is_no_failure_and_a_colour_is_no_part_of_a_line() {
    assert_eq!(
        kind("[  OK  ] Started Remount Root and Kernel File Systems."),
        None
    );
    assert_eq!(kind("[  OK  ]Stopped the crash reporter."), None);
    assert_eq!(kind("[FAILED] Failed to start shop.service."), Some(Failed));
    let found = statements("[[0;1;31mFAILED[0m] Failed to start [0;1;39mthe shop's web server[0m.\n");
    assert_eq!(found[0].text, "[FAILED] Failed to start the shop's web server.");
    let found = statements("query rate(errors[5m]) failed, see [10] and [0;1]\n");
    assert_eq!(found[0].text, "query rate(errors[5m]) failed, see [10] and [0;1]");
}

#[test]
fn what_lines_blame_is_counted_over_all_that_differ_in_numbers() {
    let found = statements(
        "2026-01-02T03:04:05Z [CRITICAL] WORKER TIMEOUT (pid:71)\n\
         2026-01-02T03:04:09Z [CRITICAL] WORKER TIMEOUT (pid:72)\n\
         2026-01-02T03:04:29Z [CRITICAL] WORKER TIMEOUT (pid:71)\n",
    );
    let blames: Vec<(&str, u64)> = found[0]
        .blames
        .iter()
        .map(|blame| (blame.of.as_str(), blame.times))
        .collect();
    assert_eq!(blames, [("process 71", 2), ("process 72", 1)]);
}

#[test]
fn the_name_of_an_errno_before_an_address_is_no_setting() {
    for text in [
        "Error: connect ETIMEDOUT 10.3.0.7:443\n",
        "connect ETIMEDOUT 10.3.0.7:443\n",
        "read ECONNRESET 10.3.0.7:443\n",
    ] {
        let all = statements(text);
        assert!(
            all[0].blames.iter().any(|blame| blame.of == "10.3.0.7:443"),
            "{all:?}"
        );
    }
    assert!(statements("timeout 30\n").is_empty());
}

#[test]
fn a_statement_of_sql_and_a_typed_command_state_nothing() {
    for text in [
        "SELECT * FROM jobs WHERE failed_at IS NULL AND error = 'timeout'\n",
        "| UPDATE jobs SET failed = 1 |\n",
        "curl -s http://a:9200/_cat/pools?h=rejected,failed\n",
        "kubectl get pods | grep -v Failed\n",
    ] {
        assert!(statements(text).is_empty(), "{text}: {:?}", statements(text));
    }
    assert!(!statements("Update failed: no space left on device\n").is_empty());
    assert!(
        !statements("docker daemon crashed: out of memory while it pulled the image of the shop\n")
            .is_empty()
    );
}

#[test]
fn a_length_within_brackets_is_no_colour_and_of_alike_lines_the_longest_counts() {
    let all =
        statements("gateway: Still creating... [50s elapsed]\ngateway: Still creating... [30m50s elapsed]\n");
    assert_eq!(all[0].ns, Some(1_850_000_000_000));
    assert!(all[0].text.contains("[30m50s elapsed]"), "{all:?}");
}

#[test]
fn how_long_somebody_waits_before_the_next_try_is_no_length() {
    let all = statements(
        "worker - ERROR: cannot connect to db-1:5432\nworker - ERROR: trying again in 32.00 seconds\n",
    );
    assert!(all.iter().all(|one| one.ns.is_none()), "{all:?}");
}

#[test]
fn what_is_full_is_used_up_and_what_is_done_in_full_is_not() {
    let kind = |line: &str| {
        let said = read_text("t", format!("{line}\n").as_bytes()).observed.statements;
        said.first().map(|one| one.kind)
    };
    for line in [
        "*** listen queue of socket 4 full !!! (129/128) ***",
        "the write buffer of client 7 is full, rejecting requests",
        "Disk /data full",
    ] {
        assert_eq!(kind(line), Some(Exhausted), "{line}");
    }
    for line in [
        "full table scan of orders",
        "queue: full duplex",
        "cache full: false",
        "a full backup of the volume",
    ] {
        assert_ne!(kind(line), Some(Exhausted), "{line}");
    }
}

#[test]
fn a_warning_that_something_took_seconds_is_a_wait() {
    let text = "2026-03-03 10:00:01,404 WARN [Sync@334] - fsync-ing the log took 3539ms which will slow operations\n\
        2026-03-03 10:00:02,404 WARN [Sync@334] - the cache took 3ms to fill\n";
    let said = read_text("t", text.as_bytes()).observed.statements;
    let slow: Vec<&str> = said
        .iter()
        .filter(|one| one.kind == Stalled)
        .map(|one| one.text.as_str())
        .collect();
    assert_eq!(slow.len(), 1, "{said:?}");
    assert!(slow[0].contains("3539ms"));
}

#[test]
fn a_line_like_one_that_said_nothing_is_not_passed_over_for_a_code() {
    let text = "[    1.000000] worker 44444 ended with exit code 143\n[    2.000000] worker 55555 ended with exit code 143\n\
        [    3.000000] worker 66666 ended with exit code 137\n";
    let said = read_text("t", text.as_bytes()).observed.statements;
    assert!(
        said.iter()
            .any(|one| one.kind == Ended && one.text.contains("66666")),
        "{said:?}"
    );
}

#[test]
fn a_flag_that_is_not_set_states_nothing() {
    assert_eq!(
        kind("DevSta: CorrErr- NonFatalErr- FatalErr- UnsupReq- AuxPwr-"),
        None
    );
    assert_eq!(
        kind("LnkSta: Speed 5GT/s (downgraded), Width x2 (downgraded)"),
        Some(Stalled)
    );
    assert_eq!(kind("DevSta: CorrErr- NonFatalErr+ FatalErr-"), Some(Failed));
}
