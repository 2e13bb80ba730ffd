//! Messages over several lines, and lines that say more of what stands above them.

use crate::{read_as, read_text};
use holdup_evidence::observed::{Statement, StatementKind};

fn said(text: &str) -> Vec<Statement> {
    read_text("t", text.as_bytes()).observed.statements
}

/// Of a text that another reader would take.
fn said_as_text(text: &str) -> Vec<Statement> {
    read_as(&crate::formats::text::FORMAT, text.as_bytes())
        .observed
        .statements
}

#[test]
fn a_line_that_closes_a_bracket_is_of_the_message_above_it() {
    let text = "[Mon Feb 03 10:00:01.113311 2020] [proxy_fcgi:error] [pid 77:tid\n88991122] (70007)The timeout specified has expired: [client\n10.0.0.1:555] AH01075: Error dispatching\n";
    let all = said(text);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0].kind, StatementKind::TimedOut);
    assert!(
        all[0]
            .text
            .starts_with("[proxy_fcgi:error] [pid 77:tid | 88991122] (70007)The timeout"),
        "{all:?}"
    );
}

#[test]
fn a_line_without_a_time_that_names_nothing_is_of_the_message_right_above_it() {
    let text = "W200101 10:00:01.000001 7 kv/lease.go:12 [n1,r81] have been waiting 45.5s for a lease of range 81\nThe range is likely unavailable.\n";
    let all = said(text);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(
        (all[0].kind, all[0].ns),
        (StatementKind::Unreachable, Some(45_500_000_000))
    );
    // What names a thing is a statement of its own, and so is what stands further below.
    let own = "2020-01-01T10:00:01Z request took 3s\n\nconnection refused\n";
    assert_eq!(said(own).len(), 2, "{:?}", said(own));
}

#[test]
fn what_is_below_a_numbered_item_is_of_it() {
    let text = "1. fork: 2 latency spikes (average 310ms, mean deviation 6ms).\nWorst all time event: 702ms.\n\nLongest pause: 5ms\n";
    let all = said(text);
    let worst = all.iter().find(|one| one.ns == Some(702_000_000)).unwrap();
    assert!(
        worst.text.starts_with("fork: Worst all time event: 702ms."),
        "{all:?}"
    );
    assert!(all.iter().any(|one| one.text == "Longest pause: 5ms"), "{all:?}");
}

#[test]
fn the_stages_of_a_mail_and_figures_at_a_limit() {
    let sent = "Jun 12 08:10:01 mx postfix/smtp[22]: 9C3: to=<a@b.example>, relay=none, delay=212, delays=0.1/1.9/210/0, dsn=4.4.1, status=deferred (connect to b.example[10.0.0.9]:25: Connection timed out)";
    assert_eq!(said(sent)[0].ns, Some(210_000_000_000));
    let long = "x".repeat(400);
    let rejected = format!(
        "rejected execution of {long} on Pool[name = n1/write, queue capacity = 90, Exec@1[Running, pool size = 3, active threads = 3, queued tasks = 91]]"
    );
    let all = said(&rejected);
    assert_eq!(all[0].kind, StatementKind::Exhausted, "{all:?}");
    assert!(
        all[0].text.contains("queued tasks = 91") && all[0].text.contains("n1/write"),
        "{all:?}"
    );
    let room = "rejected execution of a on Pool[queue capacity = 90, queued tasks = 12]";
    assert_eq!(said(room)[0].kind, StatementKind::Failed);
}

#[test]
fn nothing_of_a_failure_is_no_failure() {
    assert_eq!(said("Exception Count (Count / 1 sec)                0\n"), []);
    assert_eq!(said("Full list of resources:\n"), []);
    assert_eq!(said_as_text("min: 0, max: 0, avg: 0.00 (99 samples)\n"), []);
    assert_eq!(
        said_as_text("min: 0, max: 15, avg: 0.31 (99 samples)\n")[0].ns,
        Some(15_000_000)
    );
}

#[test]
fn columns_below_dashes_and_who_blocks_a_row() {
    let text = "  SID EVENT                      SECONDS_IN_WAIT BLOCKING_SESSION\n----- -------------------------- --------------- ----------------\n  142 enq: TX - row lock wait                1832              211\n  211 client idle                            2210\n";
    let all = said(text);
    assert!(
        all[0].kind == StatementKind::Stalled
            && all[0].text.starts_with(
                "session 142 is blocked by 211: 142: BLOCKING_SESSION 211, EVENT enq: TX - row lock wait"
            ),
        "{all:?}"
    );
    let free = "  SID EVENT        BLOCKING_SESSION\n----- ------------ ----------------\n  211 client idle                 0\n";
    assert!(
        said(free).iter().all(|one| one.kind > StatementKind::Failed),
        "{:?}",
        said(free)
    );
}

#[test]
fn names_of_rows_without_a_heading_and_own_time() {
    let text = "                     AppTime           MPITime   MPI%\nMax               352.552782        154.702501\nAll             19670.993357       6097.388160  31.00\n";
    let all = said(text);
    assert!(all[0].text.starts_with("All: MPI% 31.00"), "{all:?}");
    let profile = "   ncalls  tottime  percall  cumtime  percall filename:lineno(function)\n        1    0.002    0.002    9.990    9.990 /a/run.py:1(run)\n     1204    7.912    0.007    7.912    0.007 {method 'recv' of 'socket' objects}\n";
    let all = said_as_text(profile);
    assert!(
        all[0]
            .text
            .starts_with("{method 'recv' of 'socket' objects}: tottime 7.912"),
        "{all:?}"
    );
    assert_eq!(all[0].ns, Some(7_912_000_000));
}
