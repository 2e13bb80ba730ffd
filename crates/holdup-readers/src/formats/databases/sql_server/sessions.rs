//! Lists of sessions of SQL Server: `sys.dm_exec_requests`, `sys.dm_os_waiting_tasks`, `sp_who2`: who blocks whom.
//!
//! In: a heading with `session_id` or `SPID`, and `blocking_session_id` or `BlkBy`, with tabs, bars or a line of dashes, and rows. Out: a
//! statement about the session at the beginning of the longest chain, with who waits behind it; else about the longest wait.
//! Source: Microsoft's reference of both views and of `sp_who`.

use super::chains::{Session, Sessions};
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::formats::dash_table::DashTable;
use crate::formats::report::{any_line, holds, name_of, number};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::StatementKind;
use holdup_evidence::units::{counted, duration};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("sql-server-sessions", Family::Databases, recognise)
        .about("sys.dm_exec_requests, sp_who2");

/// Sessions that are kept, bytes of a row, and sessions that are told by number.
const MAX_SESSIONS: usize = 5_000;
const ROW_BYTES: usize = 8_192;
const MAX_NAMED: usize = 6;

/// Waits in which a session has nothing to do.
const IDLE: [&str; 5] = [
    "WAITFOR",
    "BROKER_RECEIVE_WAITFOR",
    "SP_SERVER_DIAGNOSTICS_SLEEP",
    "XE_TIMER_EVENT",
    "MISCELLANEOUS",
];

fn recognise(head: &[u8]) -> Sureness {
    let has = |name: &str| holds(head, name);
    let may = has("blocking_session_id") || has("BlkBy") || has("blocked");
    Sureness::certain_if(may && any_line(head, |line| heading(line).is_some()))
}

/// The table that a heading begins.
fn heading(line: &str) -> Option<DashTable> {
    let table = DashTable::of(line);
    let view = table.has("session_id") && table.has("blocking_session_id");
    let procedure =
        table.has("SPID") && (table.has("BlkBy") || table.has("blocked") && table.has("waittype"));
    (view || procedure).then_some(table)
}

#[derive(Debug, Default)]
struct Reader {
    table: Option<DashTable>,
    sessions: Sessions,
}

impl Reader {
    fn row(&mut self, row: &[String], out: &mut Out<'_>) -> Option<()> {
        let table = self.table.as_ref()?;
        let cell = |names: &[&str]| {
            let all = names.iter().map(|name| table.cell(row, name));
            let mut told = all.filter(|value| !matches!(*value, "" | "NULL" | "." | "0"));
            told.next().unwrap_or("")
        };
        let id: u64 = cell(&["session_id", "SPID"]).parse().ok()?;
        let session = Session {
            blocker: cell(&["blocking_session_id", "BlkBy", "blocked"])
                .parse()
                .ok()
                .filter(|blocker| *blocker != id),
            wait: name_of(cell(&["wait_type", "last_wait_type", "lastwaittype"])),
            ms: number(cell(&[
                "wait_time",
                "wait_duration_ms",
                "wait_time_ms",
                "waittime",
            ])),
            does: name_of(cell(&[
                "text",
                "query_text",
                "sql_text",
                "statement_text",
                "command",
                "cmd",
            ])),
            quote: out.here(),
        };
        if self.sessions.0.len() >= MAX_SESSIONS && !self.sessions.0.contains_key(&id) {
            out.account().left_out += 1;
            return Some(());
        }
        // Tasks of one session that work side by side have a row each: the one that is blocked counts.
        let known = self.sessions.0.entry(id).or_default();
        if known.blocker.is_none() && (session.blocker.is_some() || session.ms >= known.ms) {
            *known = session;
        }
        Some(())
    }
}

fn ns(ms: f64) -> Ns {
    (ms.clamp(0.0, 1e12) * 1e6) as Ns
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..ROW_BYTES).unwrap_or(line));
        let text = text.trim_end();
        if text.is_empty() {
            return Understood::Ignorable;
        }
        if let Some(table) = heading(text) {
            self.table = Some(table);
            return Understood::Evidence;
        }
        if self.table.as_mut().is_some_and(|table| table.dashes(text)) {
            return Understood::Evidence;
        }
        let row = self.table.as_ref().and_then(|table| table.row(text));
        match row.and_then(|row| self.row(&row, out)) {
            Some(()) => Understood::Evidence,
            None => Understood::Ignorable,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let sessions = std::mem::take(self).sessions;
        let does = |session: &Session| match session.does.as_str() {
            "" => String::new(),
            does => format!(" (`{does}`)"),
        };
        if let Some((first, behind)) = sessions.chains().iter().max_by_key(|(_, behind)| behind.len()) {
            let Some((id, session)) = sessions.longest_wait(behind) else {
                return;
            };
            let named: Vec<String> = behind.iter().take(MAX_NAMED).map(u64::to_string).collect();
            let more = if behind.len() > MAX_NAMED { ", …" } else { "" };
            let count = counted(behind.len() as u64, "session", "sessions");
            let own = sessions.0.get(first).map_or_else(String::new, does);
            let waited = session
                .ms
                .map_or_else(String::new, |ms| format!(" for {}", duration(ns(ms))));
            let with = if session.wait.is_empty() {
                String::new()
            } else {
                format!(" with {}", session.wait)
            };
            let text = format!(
                "session {first}{own} blocks {count} ({}{more}); session {id} has waited{waited}{with}{}",
                named.join(", "),
                does(session)
            );
            let quote = session.quote.clone();
            out.statement(statements::one(
                StatementKind::Stalled,
                session.ms.map(ns),
                quote,
                text,
            ));
            return;
        }
        let blocked = sessions.blocked();
        if let Some(session) = blocked.first().and_then(|id| sessions.0.get(id)) {
            let text = format!(
                "{} block each other in a ring",
                counted(blocked.len() as u64, "session", "sessions")
            );
            out.statement(statements::one(
                StatementKind::Deadlock,
                None,
                session.quote.clone(),
                text,
            ));
            return;
        }
        let busy: Vec<u64> = sessions
            .0
            .iter()
            .filter(|(_, one)| {
                !one.wait.is_empty() && !IDLE.contains(&one.wait.as_str()) && one.ms > Some(0.0)
            })
            .map(|(id, _)| *id)
            .collect();
        if let Some((id, session)) = sessions.longest_wait(&busy) {
            let waited = session.ms.map_or_else(String::new, |ms| duration(ns(ms)));
            let text = format!(
                "session {id}{} has waited {waited} with {}; nobody blocks another",
                does(session),
                session.wait
            );
            let quote = session.quote.clone();
            out.statement(statements::one(
                StatementKind::Took,
                session.ms.map(ns),
                quote,
                text,
            ));
        } else if let Some(session) = sessions.0.values().next() {
            let text = format!(
                "none of {} is blocked",
                counted(sessions.0.len() as u64, "session", "sessions")
            );
            out.statement(statements::one(
                StatementKind::WithinNorm,
                None,
                session.quote.clone(),
                text,
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const ROWS: &str = "session_id\tstatus\tblocking_session_id\twait_type\twait_time\ttext\n\
        55\tsleeping\t0\tNULL\t0\tupdate stock set n = 1\n62\tsuspended\t55\tLCK_M_X\t183000\tupdate stock set n = 2\n\
        63\tsuspended\t62\tLCK_M_S\t9000\tselect n from stock\n";

    #[test]
    fn who_blocks_the_others() {
        let reading = read_text("s", ROWS.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "sql-server-sessions");
        assert_eq!(
            reading.texts(),
            [
                "session 55 (`update stock set n = 1`) blocks 2 sessions (62, 63); session 62 has waited for 3 min 3 s with LCK_M_X \
                 (`update stock set n = 2`)"
            ]
        );
        assert_eq!(reading.observed.statements[0].kind, StatementKind::Stalled);
    }

    #[test]
    fn nobody_is_blocked_or_all_are() {
        let well = ROWS
            .replace("\t55\tLCK_M_X\t183000", "\t0\tNULL\t0")
            .replace("\t62\tLCK_M_S\t9000", "\t0\tNULL\t0");
        assert_eq!(
            read_text("s", well.as_bytes()).observed.statements[0].kind,
            StatementKind::WithinNorm
        );
        let ring = ROWS.replace("sleeping\t0", "suspended\t63");
        assert_eq!(
            read_text("s", ring.as_bytes()).observed.statements[0].kind,
            StatementKind::Deadlock
        );
    }

    #[test]
    fn by_a_line_of_dashes_and_other_tables() {
        let text = "SPID  Status     Login  HostName BlkBy DBName Command\n----- ---------- ------ -------- ----- ------ ----------------\n\
            55    sleeping   app    web1       .   shop   AWAITING COMMAND\n62    SUSPENDED  app    web2     55    shop   UPDATE\n";
        let reading = read_text("s", text.as_bytes());
        assert!(
            reading.texts()[0].starts_with("session 55 (`AWAITING COMMAND`) blocks 1 session (62)"),
            "{reading:?}"
        );
        let other = "session_id\tuser\n1\ta\n";
        assert_ne!(
            read_text("s", other.as_bytes()).observed.sources[0].format,
            "sql-server-sessions"
        );
    }
}
