//! Lists of a database's sessions, as its client prints them: `pg_stat_activity` and `SHOW PROCESSLIST`.
//!
//! In: a table in any of the forms of [`table`](super::table). Out: what each session does, for how long, and where the list
//! tells it, which lock it waits for and who has that.

use super::table::{self, Row, Table, Taken};
use super::{activity, locks, processlist, put};
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("database-sessions", Family::Databases, recognise)
    .about("sessions of PostgreSQL or MySQL");

/// Lines of the beginning in which the head must be.
const LOOKED_AT: usize = 40;

/// Rows that are kept until the list is over.
const ROWS: usize = 20_000;

fn recognise(head: &[u8]) -> Sureness {
    let mut records = Table::default();
    for (number, line) in head.split(|byte| *byte == b'\n').take(LOOKED_AT).enumerate() {
        let line = line.trim_ascii_end();
        if table::head(line).is_some() || table::comma_head(line).is_some() {
            return Sureness::Certain;
        }
        let taken = records.take(line, number as u64);
        if records.is_headed() || matches!(&taken, Taken::Row(row) if is_session(row)) {
            return Sureness::Certain;
        }
    }
    Sureness::certain_if(records.end().is_some_and(|row| is_session(&row)))
}

/// Whether the record of a client's expanded form is of a session.
fn is_session(row: &Row) -> bool {
    let postgresql = row.has("pid") && (row.has("state") || row.has("wait_event_type"));
    let mysql = row.has("id") && row.has("command") && row.has("time");
    postgresql || mysql || table::is_of_locks(|name| row.has(name))
}

#[derive(Debug, Default)]
struct Reader {
    table: Table,
    rows: Vec<Row>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        match self.table.take(line.trim_ascii_end(), out.here().line) {
            Taken::Row(row) => {
                self.keep(row);
                Understood::Evidence
            }
            Taken::Part => Understood::Evidence,
            Taken::No => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        if let Some(row) = self.table.end() {
            self.keep(row);
        }
        let made = activity::made(&self.rows);
        if self.rows.iter().any(locks::is_one) {
            locks::put(&std::mem::take(&mut self.rows), out);
        }
        for row in std::mem::take(&mut self.rows) {
            let session = match row.has("pid") {
                true => activity::session(&row, made),
                false => processlist::session(&row),
            };
            if let Some(session) = session {
                let line = session.statement.clone();
                out.at_line(row.line);
                put(session, None, line.as_bytes(), out);
            }
        }
    }
}

impl Reader {
    fn keep(&mut self, row: Row) {
        if self.rows.len() < ROWS {
            self.rows.push(row);
        }
    }
}
