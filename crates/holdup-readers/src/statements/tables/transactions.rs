//! InnoDB's list of transactions: which ones wait for a lock, and which one runs meanwhile and has changed rows.
//!
//! In: rows with the columns `trx_state` and `trx_mysql_thread_id`, in any of the client's forms. Out: how many wait, and who is most likely in their
//! way: of those that run and have locked rows the one with most. The table does not say whose lock it is, and neither does this.

use super::{Fact, Row, Table};
use crate::statements::cells::number;
use holdup_evidence::observed::StatementKind;

/// Those who wait that are named, and rows that are kept.
const MAX_NAMED: usize = 4;
const MAX_KEPT: usize = 2_000;

/// What the rows say.
#[derive(Debug, Default)]
pub(super) struct Transactions {
    /// The session and the line of each that waits.
    waiting: Vec<(String, u64)>,
    /// The one that runs and has locked most rows: how many, which session, since when.
    holder: Option<(f64, String, String)>,
    running: u64,
}

impl Table {
    /// Takes a row of InnoDB's transactions.
    pub(super) fn take_transaction(&mut self, row: &Row) {
        let cell = |name: &str| {
            let mut columns = self.columns.iter();
            let at = columns.position(|column| column.name.eq_ignore_ascii_case(name))?;
            row.cells.get(at).map(String::as_str)
        };
        let Some((state, session)) = cell("trx_state").zip(cell("trx_mysql_thread_id")) else {
            return;
        };
        let started = cell("trx_started").unwrap_or_default().to_owned();
        let rows = |name: &str| Some(cell(name).and_then(number)?.0);
        let locked = rows("trx_rows_locked");
        // Nobody waits for one that has locked nothing.
        let has_none = locked == Some(0.0) && rows("trx_rows_modified").unwrap_or(0.0) <= 0.0;
        let locked = locked.unwrap_or(0.0);
        let session = session.to_owned();
        let all = self.transactions.get_or_insert_default();
        if state.eq_ignore_ascii_case("LOCK WAIT") {
            if all.waiting.len() < MAX_KEPT {
                all.waiting.push((session, row.line));
            }
        } else if state.eq_ignore_ascii_case("RUNNING") && !has_none {
            all.running += 1;
            if all.holder.as_ref().is_none_or(|(most, ..)| locked > *most) {
                all.holder = Some((locked, session, started));
            }
        }
    }
}

impl Transactions {
    /// What they say together.
    pub(super) fn fact(&self) -> Option<Fact> {
        let (_, line) = self.waiting.first()?;
        let count = self.waiting.len();
        let mut names: Vec<&str> = self.waiting.iter().map(|(session, _)| session.as_str()).collect();
        names.truncate(MAX_NAMED);
        let (form, of) = match count {
            1 => ("transaction waits for a lock", "session"),
            _ => ("transactions wait for locks", "sessions"),
        };
        let holder = match &self.holder {
            Some((locked, session, started)) => {
                let since = match started.as_str() {
                    "" => String::new(),
                    started => format!(", begun at {started}"),
                };
                let rows = match *locked > 0.0 {
                    true => format!(", {locked:.0} rows locked"),
                    false => String::new(),
                };
                let sure = if self.running == 1 {
                    "the only one that runs"
                } else {
                    "most likely"
                };
                format!("; in their way is {sure}: the transaction of session {session}{since}{rows}")
            }
            None => String::new(),
        };
        Some(Fact {
            kind: StatementKind::Stalled,
            share: None,
            ns: None,
            line: *line,
            text: format!("{count} {form} ({of} {}){holder}", names.join(", ")),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    fn said(text: &str) -> Vec<String> {
        let all = read_text("t", text.as_bytes()).observed.statements.into_iter();
        all.map(|one| one.text).collect()
    }

    const TABLE: &str = "+--------+-----------+---------------------+---------------------+-----------------+\n\
        | trx_id | trx_state | trx_started         | trx_mysql_thread_id | trx_rows_locked |\n\
        +--------+-----------+---------------------+---------------------+-----------------+\n\
        | 8802   | LOCK WAIT | 2026-03-04 10:29:31 |                 501 |               1 |\n\
        | 8801   | LOCK WAIT | 2026-03-04 10:29:11 |                 500 |               1 |\n\
        | 8102   | RUNNING   | 2026-03-04 10:00:01 |                 312 |           40122 |\n\
        +--------+-----------+---------------------+---------------------+-----------------+\n";

    #[test]
    fn who_runs_with_locked_rows_is_in_the_way_of_those_that_wait() {
        let words = "2 transactions wait for locks (sessions 501, 500); in their way is the only one that runs: the transaction of session 312, \
            begun at 2026-03-04 10:00:01, 40122 rows locked";
        let all = said(TABLE);
        assert!(all.iter().any(|text| text.starts_with(words)), "{all:?}");
    }

    #[test]
    fn one_that_has_locked_nothing_is_in_nobodys_way() {
        let all = said(&TABLE.replace("40122", "    0"));
        assert!(!all.iter().any(|text| text.contains("in their way")), "{all:?}");
        assert!(
            all.iter().any(|text| text.starts_with("2 transactions wait")),
            "{all:?}"
        );
    }

    #[test]
    fn without_a_wait_nobody_is_in_the_way() {
        let text = TABLE.replace("LOCK WAIT", "RUNNING  ");
        let all = said(&text);
        assert!(!all.iter().any(|text| text.contains("in their way")), "{all:?}");
    }
}
