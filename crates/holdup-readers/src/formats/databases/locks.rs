//! PostgreSQL's list of its locks: any choice of columns of `pg_locks`, alone, joined with the sessions, or counted.
//!
//! In: rows with a mode and whether it was given. Out: sessions that wait, with those that have a lock on the same thing with which theirs
//! conflicts; of a list that counts sessions a statement about the lock for which most wait.

use super::table::Row;
use super::{activity, printable};
use crate::gather::Out;
use crate::numbers::{decimal, whole};
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{DatabaseServer, SeenSession, SessionDoing, StatementKind};
use holdup_evidence::units::duration;

/// Columns that together say which thing is locked.
const THING: [&str; 14] = [
    "relation",
    "relname",
    "relation_name",
    "table_name",
    "table",
    "object",
    "regclass",
    "page",
    "tuple",
    "virtualxid",
    "transactionid",
    "classid",
    "objid",
    "objsubid",
];

/// Columns that count sessions.
const COUNTS: [&str; 5] = ["backends", "count", "sessions", "waiters", "n"];

/// Sessions that are said to have one lock; of more, the first.
const HOLDERS: usize = 64;

/// Modes of locks on tables, weakest first, and for each those with which it conflicts, as bits in the same order.
const MODES: [(&str, u8); 8] = [
    ("AccessShareLock", 0b1000_0000),
    ("RowShareLock", 0b1100_0000),
    ("RowExclusiveLock", 0b1111_0000),
    ("ShareUpdateExclusiveLock", 0b1111_1000),
    ("ShareLock", 0b1110_1100),
    ("ShareRowExclusiveLock", 0b1111_1100),
    ("ExclusiveLock", 0b1111_1110),
    ("AccessExclusiveLock", 0b1111_1111),
];

/// Whether a row is of that list.
pub(super) fn is_one(row: &Row) -> bool {
    row.has("mode") && row.has("granted")
}

/// Whether two modes exclude each other; of modes that are not known it is assumed.
fn conflict(one: &[u8], other: &[u8]) -> bool {
    let place = |mode: &[u8]| {
        MODES
            .iter()
            .position(|(name, _)| name.as_bytes().eq_ignore_ascii_case(mode))
    };
    match (place(one), place(other)) {
        (Some(one), Some(other)) => MODES.get(one).is_some_and(|(_, with)| with & (1 << other) != 0),
        _ => true,
    }
}

fn granted(row: &Row) -> Option<bool> {
    match row.cell("granted") {
        b"t" | b"true" | b"TRUE" | b"yes" => Some(true),
        b"f" | b"false" | b"FALSE" | b"no" => Some(false),
        _ => None,
    }
}

fn thing(row: &Row) -> Vec<String> {
    let cells = THING.iter().map(|name| row.cell(name));
    cells
        .filter(|cell| !cell.is_empty() && *cell != b"-")
        .map(printable)
        .collect()
}

/// Puts what they tell into the evidence.
pub(super) fn put(rows: &[Row], out: &mut Out<'_>) {
    let last = out.here().line;
    joined(rows, out);
    let waits = || rows.iter().filter(|row| granted(row) == Some(false));
    for row in waits() {
        let object = thing(row);
        let in_the_way = rows.iter().filter(|other| {
            granted(other) == Some(true)
                && thing(other) == object
                && (!row.has("pid") || other.cell("pid") != row.cell("pid"))
                && conflict(row.cell("mode"), other.cell("mode"))
        });
        let mode = printable(row.cell("mode"));
        let what = match object.first() {
            Some(name) => format!("{mode} on {}", object_of(row, name)),
            None => mode,
        };
        out.at_line(row.line);
        if whole(row.cell("pid")).is_some() {
            let mut held_by: Vec<String> = in_the_way.map(|other| printable(other.cell("pid"))).collect();
            if held_by.is_empty() {
                held_by.extend(ahead(rows, row).map(|other| printable(other.cell("pid"))));
            }
            held_by.dedup();
            held_by.truncate(HOLDERS);
            let statement = printable(row.cell("query"));
            let line = statement.clone();
            let session = SeenSession {
                server: DatabaseServer::Postgresql,
                id: printable(row.cell("pid")),
                client: printable(row.cell("usename")),
                doing: SessionDoing::Waits,
                doing_ns: waited(row),
                lock: what,
                held_by,
                statement,
            };
            super::put(session, None, line.as_bytes(), out);
            continue;
        }
        let Some(count) = counted(row) else { continue };
        let holders: Vec<String> = in_the_way
            .map(|other| match counted(other) {
                Some(count) => format!("{count} with {}", printable(other.cell("mode"))),
                None => printable(other.cell("mode")),
            })
            .collect();
        let behind = match holders.as_slice() {
            [] => String::new(),
            holders => format!(" behind {}", holders.join(" and ")),
        };
        let ns = waited(row);
        let oldest = ns
            .map(|ns| format!(", the oldest for {}", duration(ns)))
            .unwrap_or_default();
        let verb = if count == 1 {
            "session waits"
        } else {
            "sessions wait"
        };
        let text = format!("{count} {verb} for {what}{oldest}{behind}");
        out.statement(statements::one(StatementKind::Stalled, ns, out.here(), text));
    }
    out.at_line(last);
}

/// Of a list joined with the sessions that has no lock for which one waits (those for a transaction stand in other databases' rows, or
/// were left out): the sessions themselves, each once.
fn joined(rows: &[Row], out: &mut Out<'_>) {
    let all_granted = rows.iter().all(|row| granted(row) == Some(true));
    if !all_granted
        || !rows
            .iter()
            .any(|row| row.has("state") || row.has("wait_event_type"))
    {
        return;
    }
    let made = activity::made(rows);
    let mut told: Vec<&[u8]> = Vec::new();
    for row in rows {
        let id = row.cell("pid");
        if told.contains(&id) || told.len() >= HOLDERS {
            continue;
        }
        told.push(id);
        if let Some(session) = activity::session(row, made) {
            out.at_line(row.line);
            let statement = session.statement.clone();
            super::put(session, None, statement.as_bytes(), out);
        }
    }
}

/// Those that wait for the same thing with a mode that excludes this one's, and have waited longer: PostgreSQL lets nobody pass them.
fn ahead<'a>(rows: &'a [Row], row: &'a Row) -> impl Iterator<Item = &'a Row> {
    let (object, own) = (thing(row), waited(row));
    rows.iter().filter(move |other| {
        granted(other) == Some(false)
            && other.cell("pid") != row.cell("pid")
            && thing(other) == object
            && conflict(row.cell("mode"), other.cell("mode"))
            && own.is_some()
            && waited(other) > own
    })
}

/// A transaction and a row are known by numbers, a table by its name.
fn object_of(row: &Row, name: &str) -> String {
    let kind = printable(row.cell("locktype"));
    match kind.as_str() {
        "" | "relation" => name.to_owned(),
        kind => format!("{kind} {name}"),
    }
}

fn counted(row: &Row) -> Option<u64> {
    COUNTS.iter().find_map(|name| whole(row.cell(name)))
}

/// How long it has waited: an interval, or a number whose column says the unit.
fn waited(row: &Row) -> Option<Ns> {
    let by_unit = || {
        let mut cells = row
            .cells()
            .filter(|(name, _)| name.contains("wait") || name.contains("age"));
        cells.find_map(|(name, cell)| {
            let unit = match name.rsplit('_').next()? {
                "ms" => 1e-3,
                "s" | "sec" | "secs" | "seconds" => 1.0,
                _ => return None,
            };
            super::seconds(decimal(cell)? * unit)
        })
    };
    activity::length_of(row).or_else(by_unit)
}

#[cfg(test)]
mod tests {
    use super::conflict;
    use crate::read_text;
    use holdup_evidence::observed::What;

    #[test]
    fn the_modes_that_exclude_each_other_are_those_of_the_manual() {
        assert!(!conflict(b"AccessShareLock", b"ExclusiveLock"));
        assert!(conflict(b"AccessShareLock", b"AccessExclusiveLock"));
        assert!(!conflict(b"ShareLock", b"ShareLock"));
        assert!(conflict(b"RowExclusiveLock", b"ShareLock"));
        assert!(conflict(b"ShareUpdateExclusiveLock", b"ShareUpdateExclusiveLock"));
        assert!(!conflict(b"ShareUpdateExclusiveLock", b"RowExclusiveLock"));
        for (one, _) in super::MODES {
            for (other, _) in super::MODES {
                let (one, other) = (one.as_bytes(), other.as_bytes());
                assert_eq!(conflict(one, other), conflict(other, one));
            }
        }
    }

    #[test]
    fn who_waits_and_who_has_it() {
        let text = " locktype | relation |        mode         | granted | pid \n----------+----------+---------------------+---------+-----\n \
            relation | carts    | RowExclusiveLock    | t       | 71\n relation | carts    | AccessExclusiveLock | f       | 72\n \
            relation | carts    | AccessShareLock     | f       | 73\n relation | stock    | RowExclusiveLock    | t       | 74\n(4 rows)\n";
        let observed = read_text("t", text.as_bytes()).observed;
        let sessions: Vec<(&str, &str, Vec<&str>)> = observed
            .happenings
            .iter()
            .filter_map(|one| match &one.what {
                What::Session(session) => {
                    let held: Vec<&str> = session.held_by.iter().map(String::as_str).collect();
                    Some((session.id.as_str(), session.lock.as_str(), held))
                }
                _ => None,
            })
            .collect();
        assert_eq!(
            sessions,
            [
                ("72", "AccessExclusiveLock on carts", vec!["71"]),
                // Which of the two came first the list does not say.
                ("73", "AccessShareLock on carts", vec![]),
            ]
        );
    }

    #[test]
    fn one_that_waits_stands_before_those_that_came_later() {
        let text = "pid | relation | mode | granted | wait_ms\n71 | carts | RowExclusiveLock | t |\n72 | carts | AccessExclusiveLock | f | 9000\n\
            73 | carts | AccessShareLock | f | 4000\n";
        let observed = read_text("t", text.as_bytes()).observed;
        let behind: Vec<Vec<String>> = observed
            .happenings
            .iter()
            .filter_map(|one| match &one.what {
                What::Session(session) => Some(session.held_by.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(behind, [["71"], ["72"]]);
    }

    #[test]
    fn a_list_that_counts() {
        let text = "mode | granted | relation | backends | wait_ms\nAccessShareLock | f | carts | 7 | 2500\nAccessExclusiveLock | t | carts | 1 |\n";
        let said = read_text("t", text.as_bytes()).observed.statements;
        assert_eq!(
            said[0].text,
            "7 sessions wait for AccessShareLock on carts, the oldest for 2.50 s behind 1 with AccessExclusiveLock"
        );
    }
}
