//! `INFO` of Redis and Valkey.
//!
//! Out: what is beyond a norm, gravest first: memory and connections that are used up, data that could not be kept, a server that
//! stood still to copy itself or for the disk; else the figures that are within theirs.

use super::{Names, Reader, has};
use crate::format::{Family, Format, Shape};
use holdup_evidence::observed::{Statement, StatementKind};
use holdup_evidence::units::{bytes, duration};

pub(crate) static FORMAT: Format = Format::new(
    "redis-info",
    Family::Databases,
    |head| has(head, NAMES, 3),
    Shape::Lines(|| Reader::boxed(judge)),
)
.about("INFO of Redis");

const NAMES: &[&str] = &[
    "redis_version",
    "connected_clients",
    "blocked_clients",
    "used_memory",
    "used_memory_human",
    "maxmemory",
    "mem_fragmentation_ratio",
    "total_commands_processed",
    "instantaneous_ops_per_sec",
    "rejected_connections",
    "evicted_keys",
    "keyspace_misses",
    "latest_fork_usec",
    "rdb_last_bgsave_status",
    "aof_enabled",
    "aof_delayed_fsync",
    "master_link_status",
];

/// A part of a limit from which it is as good as reached.
const FULL: f64 = 0.95;

/// Seconds for which the server may stand still to copy its tables: its own latency monitor is set to 0.1 s in its manual's example.
const FORK_S: f64 = 0.1;

/// The server's memory by its own account and by the kernel's: above 1.5 its manual speaks of fragmentation, below 1 of swap. Small
/// servers have more of their program than of data.
const FRAGMENTED: f64 = 1.5;
const SWAPPED: f64 = 1.0;
const MIN_BYTES: f64 = 268_435_456.0;

fn judge(names: &Names) -> Vec<Statement> {
    let mut said = Vec::new();
    memory(names, &mut said);
    clients(names, &mut said);
    if names.text("rdb_last_bgsave_status") == "err" {
        let text = "the last save of all data to the disk failed (rdb_last_bgsave_status err)";
        said.push(names.say(StatementKind::Failed, "rdb_last_bgsave_status", text.to_owned()));
    }
    if names.text("master_link_status") == "down" {
        let text = format!("the link to the master {} is down", names.text("master_host"));
        said.push(names.say(StatementKind::Unreachable, "master_link_status", text));
    }
    if let Some(times) = names.some("aof_delayed_fsync") {
        let text = format!("{times:.0} writes waited for a sync of the append-only file (aof_delayed_fsync)");
        said.push(names.say(StatementKind::Stalled, "aof_delayed_fsync", text));
    }
    let fork = names.number("latest_fork_usec").map(|us| us / 1e6);
    if let Some(fork) = fork.filter(|fork| *fork >= FORK_S) {
        let ns = super::seconds(fork);
        let text = format!(
            "the server was blocked for {} when it last copied itself (fork), to save its data or for a replica",
            duration(ns)
        );
        said.push(Statement {
            ns: Some(ns),
            ..names.say(StatementKind::Stalled, "latest_fork_usec", text)
        });
    }
    if said.is_empty() {
        said.extend(within(names, fork));
    }
    said
}

fn memory(names: &Names, said: &mut Vec<Statement>) {
    let used = names.number("used_memory").unwrap_or(0.0);
    let part = names.some("maxmemory").map(|limit| (used / limit, limit));
    let evicted = names.some("evicted_keys");
    if let Some((part, limit)) = part.filter(|(part, _)| *part >= FULL) {
        let evicted = match evicted {
            Some(keys) => format!("; {keys:.0} keys were evicted"),
            None => String::new(),
        };
        let text = format!(
            "memory is used up: {} of {} (maxmemory), policy {}{evicted}",
            bytes(used as u64),
            bytes(limit as u64),
            names.text("maxmemory_policy")
        );
        said.push(Statement {
            share: Some(part),
            ..names.say(StatementKind::Exhausted, "used_memory", text)
        });
    } else if let Some(keys) = evicted {
        let text = format!("{keys:.0} keys were evicted because memory was used up (evicted_keys)");
        said.push(names.say(StatementKind::Exhausted, "evicted_keys", text));
    }
    let ratio = names
        .number("mem_fragmentation_ratio")
        .filter(|_| used >= MIN_BYTES);
    let name = "mem_fragmentation_ratio";
    match ratio {
        Some(ratio) if ratio > 0.0 && ratio < SWAPPED => {
            let text =
                format!("{name} {ratio}: a part of the server's memory is in swap (below {SWAPPED} it is)");
            said.push(names.say(StatementKind::Stalled, name, text));
        }
        Some(ratio) if ratio > FRAGMENTED => {
            let text = format!("{name} {ratio}: memory is fragmented (from {FRAGMENTED} on it is)");
            said.push(names.say(StatementKind::Warned, name, text));
        }
        _ => {}
    }
}

fn clients(names: &Names, said: &mut Vec<Statement>) {
    let (now, most) = (names.some("connected_clients"), names.some("maxclients"));
    if let Some(refused) = names.some("rejected_connections") {
        let most = most
            .map(|most| format!(" (maxclients {most:.0})"))
            .unwrap_or_default();
        let text = format!("{refused:.0} connections were refused because there were too many{most}");
        said.push(names.say(StatementKind::Exhausted, "rejected_connections", text));
    } else if let Some((now, most)) = now.zip(most).filter(|(now, most)| now / most >= FULL) {
        let text = format!("connections are nearly used up: {now:.0} of {most:.0} (maxclients)");
        said.push(names.say(StatementKind::Exhausted, "connected_clients", text));
    }
}

/// The figures that are within their norms.
fn within(names: &Names, fork: Option<f64>) -> Option<Statement> {
    let mut listed = Vec::new();
    if names.number("rejected_connections").is_some() {
        listed.push("no connection was refused".to_owned());
    }
    if names.number("evicted_keys").is_some() {
        listed.push("no key was evicted".to_owned());
    }
    if let Some((used, limit)) = names.number("used_memory").zip(names.some("maxmemory")) {
        let part = 100.0 * used / limit;
        listed.push(format!(
            "{part:.0} % of maxmemory are used (from {:.0} % on it is used up)",
            FULL * 100.0
        ));
    }
    if let Some(fork) = fork {
        let (took, norm) = (duration(super::seconds(fork)), duration(super::seconds(FORK_S)));
        listed.push(format!("the last fork took {took} (from {norm} on it is long)"));
    }
    let text = listed.join(", ");
    (!text.is_empty()).then(|| names.say(StatementKind::WithinNorm, "used_memory", text))
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const WELL: &str = "# Clients\r\nconnected_clients:12\r\nmaxclients:10000\r\n# Memory\r\nused_memory:21474021\r\nmaxmemory:1073741824\r\n\
        mem_fragmentation_ratio:3.1\r\n# Stats\r\nrejected_connections:0\r\nevicted_keys:0\r\nlatest_fork_usec:880\r\n";

    fn said(text: &str) -> Vec<(StatementKind, String)> {
        let reading = read_text("r", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "redis-info");
        let all = reading.observed.statements.into_iter();
        all.map(|one| (one.kind, one.text)).collect()
    }

    #[test]
    fn figures_within_their_norms_are_told_with_those() {
        let text = "no connection was refused, no key was evicted, 2 % of maxmemory are used (from 95 % on it is used up), the last fork \
            took 880 µs (from 100 ms on it is long)";
        assert_eq!(said(WELL), [(StatementKind::WithinNorm, text.to_owned())]);
    }

    #[test]
    fn memory_and_pauses_beyond_theirs_are_told() {
        let full = WELL
            .replace("used_memory:21474021", "used_memory:1073700000")
            .replace("evicted_keys:0", "evicted_keys:51")
            .replace("fork_usec:880", "fork_usec:2500000");
        let kinds: Vec<StatementKind> = said(&full).into_iter().map(|(kind, _)| kind).collect();
        use StatementKind as K;
        assert_eq!(kinds, [K::Exhausted, K::Warned, K::Stalled]);
        assert_eq!(
            said(&full)[2].1,
            "the server was blocked for 2.50 s when it last copied itself (fork), to save its data or for a replica"
        );
    }

    #[test]
    fn values_that_are_none_say_nothing() {
        let text = "used_memory:-1\nmaxmemory:x\nevicted_keys:\nrejected_connections:1e999\nlatest_fork_usec:99999999999999999999\n";
        let _ = said(text);
    }
}
