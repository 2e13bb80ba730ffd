//! What database servers say of their sessions: PostgreSQL's log, lists of sessions, and the titles of its processes.

mod activity;
pub(crate) mod current_op;
pub(crate) mod explain;
mod explain_io;
pub(crate) mod explain_json;
pub(crate) mod innodb_status;
pub(crate) mod lock_tree;
mod locks;
mod main_table;
pub(crate) mod mongo_explain;
pub(crate) mod mongo_stat;
pub(crate) mod mysql_plan;
pub(crate) mod mysql_plan_json;
pub(crate) mod mysql_slow_log;
pub(crate) mod mysqltuner;
pub(crate) mod oracle_alert;
pub(crate) mod pg_activity;
pub(crate) mod pg_replication;
pub(crate) mod postgresql_log;
mod processlist;
pub(crate) mod progress;
pub(crate) mod query_digest;
pub(crate) mod redis_latency;
pub(crate) mod redis_ping;
pub(crate) mod redis_slowlog;
mod semaphores;
pub(crate) mod sessions;
pub(crate) mod sql_server;
pub(crate) mod sqlite_plan;
pub(crate) mod statement_totals;
mod table;
pub(crate) mod table_scans;
pub(crate) mod titles;
pub(crate) mod tkprof;
mod unindexed;

use crate::gather::{Out, text_of};
use holdup_evidence::Ns;
use holdup_evidence::observed::{SeenSession, What, When};

const SECOND: f64 = 1e9;

/// Bytes of a statement that are kept.
const STATEMENT: usize = 200;

/// Sessions that are said to have one lock; of more, the first.
const HOLDERS: usize = 64;

/// Text that the server has from its clients, in one line and cut to a bearable length.
fn printable(text: &[u8]) -> String {
    let text = text.get(..text.len().min(STATEMENT)).unwrap_or(text);
    let words: Vec<String> = crate::numbers::words(text).map(text_of).collect();
    words.join(" ")
}

/// The numbers of sessions in `15917, 15914` or `{15917,15914}`.
fn ids(text: &[u8]) -> Vec<String> {
    let numbers = text.split(|byte| !byte.is_ascii_digit());
    let numbers = numbers.filter(|number| !number.is_empty());
    numbers.take(HOLDERS).map(text_of).collect()
}

/// Nanoseconds of a count of seconds; `None` where it is none.
fn seconds(count: f64) -> Option<Ns> {
    let ns = count * SECOND;
    (ns >= 0.0 && ns < Ns::MAX as f64).then_some(ns as Ns)
}

fn put(session: SeenSession, at: Option<When>, line: &[u8], out: &mut Out<'_>) {
    out.happened(What::Session(session), at, None, line);
}

#[cfg(test)]
mod tests;
