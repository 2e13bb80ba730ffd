//! `SHOW [GLOBAL] STATUS` of MySQL and MariaDB, whole or some of its names.
//!
//! Out: what is beyond a norm, gravest first: a cluster that stops its members, threads that wait, rows' locks, a cache that is too small;
//! else the figures that are within theirs. Counters since the start are told as parts of what they count.

use super::{Names, Reader, pair};
use crate::format::{Family, Format, Shape, Sureness};
use holdup_evidence::observed::{Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format = Format::new(
    "mysql-status",
    Family::Databases,
    recognise,
    Shape::Lines(|| Reader::boxed(judge)),
)
.about("SHOW STATUS of MySQL");

/// Names of which one says that it is this, because no other program has them.
const NAMES: [&str; 14] = [
    "wsrep_flow_control_paused",
    "wsrep_local_recv_queue",
    "wsrep_local_recv_queue_avg",
    "wsrep_cluster_status",
    "Threads_running",
    "Threads_connected",
    "Innodb_row_lock_current_waits",
    "Innodb_row_lock_time_avg",
    "Innodb_row_lock_waits",
    "Innodb_buffer_pool_wait_free",
    "Innodb_log_waits",
    "Connection_errors_max_connections",
    "Table_locks_waited",
    "Seconds_Behind_Master",
];

/// Lines that are looked at.
const LOOKED_AT: usize = 600;

fn recognise(head: &[u8]) -> Sureness {
    let lines = head.split(|byte| *byte == b'\n').take(LOOKED_AT);
    let named = |line: &[u8]| {
        pair(line).is_some_and(|(name, value)| {
            NAMES.contains(&name.as_str()) && value.starts_with(|first: char| first.is_ascii_alphanumeric())
        })
    };
    // A replica's status is another report.
    let own = |line: &[u8]| named(line) && !line.trim_ascii().starts_with(b"Seconds_");
    Sureness::certain_if(lines.into_iter().any(own))
}

/// A part of the time from which a member of a cluster is slowed down: the manual of Galera wants it near 0.
const PAUSED: f64 = 0.05;

/// Statements that wait in a member's queue, on average, from which it can't keep up.
const QUEUED: f64 = 1.0;

/// Milliseconds of an average wait for a row's lock from which a person notices.
const ROW_WAIT_MS: f64 = 100.0;

fn judge(names: &Names) -> Vec<Statement> {
    let mut said = Vec::new();
    cluster(names, &mut said);
    if let Some(times) = names.some("Connection_errors_max_connections") {
        let text = format!("{times:.0} connections were refused because max_connections was reached");
        said.push(names.say(
            StatementKind::Exhausted,
            "Connection_errors_max_connections",
            text,
        ));
    }
    if let Some(waits) = names.some("Innodb_row_lock_current_waits") {
        let text = format!("{waits:.0} statements wait for the lock of a row at this moment");
        said.push(names.say(StatementKind::Stalled, "Innodb_row_lock_current_waits", text));
    }
    let average = names.number("Innodb_row_lock_time_avg");
    if let Some(ms) = average.filter(|ms| *ms >= ROW_WAIT_MS) {
        let ns = super::seconds(ms / 1e3);
        let waits = names.some("Innodb_row_lock_waits");
        let often = waits
            .map(|waits| format!(" ({waits:.0} waits since the start)"))
            .unwrap_or_default();
        let text = format!(
            "a statement that waits for the lock of a row waits for {} on average{often}",
            duration(ns)
        );
        said.push(Statement {
            ns: Some(ns),
            ..names.say(StatementKind::Stalled, "Innodb_row_lock_time_avg", text)
        });
    }
    for (name, what) in [
        (
            "Innodb_buffer_pool_wait_free",
            "for a free page of the buffer pool, which is too small",
        ),
        (
            "Innodb_log_waits",
            "for room in the log buffer (innodb_log_buffer_size)",
        ),
    ] {
        if let Some(times) = names.some(name) {
            let text = format!("statements waited {times:.0} times {what} ({name})");
            said.push(names.say(StatementKind::Stalled, name, text));
        }
    }
    if said.is_empty() {
        said.extend(within(names));
    }
    said
}

fn cluster(names: &Names, said: &mut Vec<Statement>) {
    let status = names.text("wsrep_cluster_status");
    if !status.is_empty() && !status.eq_ignore_ascii_case("primary") {
        let text =
            format!("this member of the cluster takes no statements: it is {status} (wsrep_cluster_status)");
        said.push(names.say(StatementKind::Exhausted, "wsrep_cluster_status", text));
    }
    let paused = names.number("wsrep_flow_control_paused");
    if let Some(part) = paused.filter(|part| (PAUSED..=1.0).contains(part)) {
        let text = format!(
            "flow control of the cluster paused replication for {:.1} % of the time (wsrep_flow_control_paused): a member does not keep up",
            part * 100.0
        );
        said.push(Statement {
            share: Some(part),
            ..names.say(StatementKind::Stalled, "wsrep_flow_control_paused", text)
        });
    }
    let queue = names.number("wsrep_local_recv_queue_avg");
    if let Some(length) = queue.filter(|length| *length >= QUEUED) {
        let text = format!(
            "{length:.1} changes wait in this member's queue on average (wsrep_local_recv_queue_avg)"
        );
        said.push(names.say(StatementKind::Stalled, "wsrep_local_recv_queue_avg", text));
    }
}

/// What is within its norm, for a page that says so.
fn within(names: &Names) -> Option<Statement> {
    let norms = [
        ("wsrep_flow_control_paused", "up to 0.05 is usual"),
        ("Innodb_row_lock_current_waits", "0 is usual"),
        ("Innodb_row_lock_time_avg", "up to 100 ms is usual"),
        ("Connection_errors_max_connections", "0 is usual"),
        ("Innodb_buffer_pool_wait_free", "0 is usual"),
        ("Innodb_log_waits", "0 is usual"),
    ];
    let present = norms.iter().filter(|(name, _)| !names.text(name).is_empty());
    let parts: Vec<String> = present
        .clone()
        .map(|(name, norm)| format!("{name} {} ({norm})", names.text(name)))
        .collect();
    let (first, _) = present.clone().next()?;
    Some(names.say(StatementKind::WithinNorm, first, parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> Vec<(StatementKind, String)> {
        let all = read_text("t", text.as_bytes()).observed.statements;
        all.into_iter().map(|one| (one.kind, one.text)).collect()
    }

    #[test]
    fn in_a_frame_and_without() {
        for text in [
            "+---+---+\n| Variable_name | Value |\n+---+---+\n| wsrep_flow_control_paused | 0.31 |\n+---+---+\n",
            "Variable_name\tValue\nwsrep_flow_control_paused\t0.31\n",
        ] {
            assert!(
                said(text)[0].1.contains("for 31.0 % of the time"),
                "{:?}",
                said(text)
            );
        }
    }

    #[test]
    fn waits_for_rows_and_what_is_within_the_norm() {
        let text = "| Innodb_row_lock_current_waits | 12 |\n| Innodb_row_lock_time_avg | 4100 |\n";
        let all = said(text);
        assert!(all[0].1.starts_with("12 statements wait"), "{all:?}");
        assert!(all[1].1.contains("4.10 s on average"), "{all:?}");
        let text = "| Innodb_row_lock_current_waits | 0 |\n| Innodb_row_lock_time_avg | 3 |\n";
        assert_eq!(said(text)[0].0, StatementKind::WithinNorm);
    }
}
