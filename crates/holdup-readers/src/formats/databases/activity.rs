//! PostgreSQL's own list of its sessions: any choice of columns of `pg_stat_activity`, and what people compute beside them.

use super::table::Row;
use super::{ids, printable, seconds};
use crate::numbers::{decimal, whole};
use crate::stamp;
use holdup_evidence::Ns;
use holdup_evidence::observed::{DatabaseServer, SeenSession, SessionDoing, When};

const DAY: f64 = 86_400.0;

/// Columns with an instant, of which the youngest of all rows is when the list was made: the session that asked for it began
/// its own statement then.
const INSTANTS: [&str; 5] = [
    "now",
    "state_change",
    "query_start",
    "xact_start",
    "backend_start",
];

/// Words in the name of a column that has a length of time, those that say most first.
const LENGTHS: [&str; 8] = [
    "wait", "query", "state", "duration", "runtime", "running", "age", "xact",
];

/// When the list was made, in nanoseconds since the epoch: the youngest instant in it.
pub(super) fn made(rows: &[Row]) -> Option<i64> {
    let instants = rows
        .iter()
        .flat_map(|row| INSTANTS.iter().filter_map(|name| instant(row.cell(name))));
    instants.max()
}

/// What a row tells; `None` of the server's own processes.
pub(super) fn session(row: &Row, made: Option<i64>) -> Option<SeenSession> {
    let id = row.cell("pid");
    whole(id)?;
    let doing = doing(row)?;
    // A statement began, or the session has been idle since its last one ended.
    let began: &[&str] = match doing {
        // Without that the statement's own beginning: it ended later, and others have taken long since.
        SessionDoing::IdleInTransaction => &["state_change", "query_start", "xact_start"],
        SessionDoing::Idle => &["state_change"],
        _ => &["query_start"],
    };
    let began = began.iter().find_map(|name| instant(row.cell(name)));
    let since = made.zip(began);
    let since = since.and_then(|(made, began)| Ns::try_from(made.checked_sub(began)?).ok());
    let client = ["application_name", "usename", "client_addr"]
        .iter()
        .map(|name| row.cell(name))
        .find(|cell| !cell.is_empty());
    let held_by = row
        .cells()
        .find(|(name, _)| name.contains("block"))
        .map(|(_, cell)| ids(cell));
    Some(SeenSession {
        server: DatabaseServer::Postgresql,
        id: printable(id),
        client: client.map(printable).unwrap_or_default(),
        doing,
        doing_ns: since.or_else(|| length_of(row)),
        lock: match doing {
            SessionDoing::Waits => printable(row.cell("wait_event")),
            _ => String::new(),
        },
        held_by: held_by.unwrap_or_default(),
        statement: printable(row.cell("query")),
    })
}

fn doing(row: &Row) -> Option<SessionDoing> {
    // Before PostgreSQL 9.6 there was a column for it.
    let waits = row.cell("wait_event_type") == b"Lock" || row.cell("waiting") == b"t";
    let state = row.cell("state");
    Some(match state {
        b"idle" => SessionDoing::Idle,
        _ if state.starts_with(b"idle in transaction") => SessionDoing::IdleInTransaction,
        // As people shorten it in queries of their own.
        b"idletx" | b"idle in tx" => SessionDoing::IdleInTransaction,
        b"waiting" => SessionDoing::Waits,
        _ if waits => SessionDoing::Waits,
        b"active" => SessionDoing::Works,
        _ => return None,
    })
}

/// A length of time that somebody computed.
pub(super) fn length_of(row: &Row) -> Option<Ns> {
    LENGTHS.iter().find_map(|word| {
        let mut cells = row.cells().filter(|(name, _)| name.contains(word));
        cells.find_map(|(_, cell)| interval(cell))
    })
}

/// `00:00:02.558644`, `1 day 02:03:04`, `-00:00:00.1`: of the last, nothing.
fn interval(text: &[u8]) -> Option<Ns> {
    let mut total = 0.0;
    let mut words = crate::numbers::words(text).peekable();
    while let Some(word) = words.next() {
        if let Some(count) = whole(word) {
            let unit = words.next()?;
            let days = if unit.starts_with(b"day") {
                1.0
            } else if unit.starts_with(b"mon") {
                30.0
            } else {
                return None;
            };
            total += count as f64 * days * DAY;
            continue;
        }
        let mut parts = word.split(|byte| *byte == b':');
        let (hours, minutes) = (whole(parts.next()?)?, whole(parts.next()?)?);
        let rest = parts.next().and_then(decimal)?;
        if parts.next().is_some() || words.peek().is_some() {
            return None;
        }
        return seconds(total + hours as f64 * 3600.0 + minutes as f64 * 60.0 + rest);
    }
    None
}

/// `2026-11-23 11:26:34.773919+00`.
fn instant(text: &[u8]) -> Option<i64> {
    // The zone of whole hours has no minutes.
    let mut text = text.to_vec();
    let zone = text.iter().rposition(|byte| matches!(byte, b'+' | b'-'))?;
    if text.len() - zone == 3 {
        text.extend_from_slice(b"00");
    }
    match stamp::iso(&text)?.0.at? {
        When::Unix(ns) => Some(ns),
        _ => None,
    }
}
