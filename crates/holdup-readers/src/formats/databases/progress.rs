//! `pg_stat_progress_vacuum`, `_create_index`, `_copy`, `_analyze`, `_cluster` and `_basebackup` of PostgreSQL: how far a long command is.
//!
//! In: a table in one of the forms of [`table`](super::table). Out: for each row a statement about its phase and how much of it is done, and
//! whether it waits for transactions of others. Source: "Progress Reporting" of PostgreSQL's manual.

use super::table::{Row, Table, Taken};
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::formats::report::{any_line, holds, name_of, number};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("command-progress", Family::Databases, recognise)
    .about("pg_stat_progress_* of PostgreSQL");

/// Rows that are told: a server has few such commands at a time.
const MAX_ROWS: usize = 100;

/// How much there is and how much of it is done, in the order in which it is told.
const AMOUNTS: [(&str, &str, &str); 9] = [
    ("lockers_total", "lockers_done", "transactions that it waits for"),
    ("blocks_total", "blocks_done", "blocks"),
    ("heap_blks_total", "heap_blks_scanned", "blocks of the table"),
    ("sample_blks_total", "sample_blks_scanned", "blocks of the sample"),
    ("tuples_total", "tuples_done", "rows"),
    ("bytes_total", "bytes_processed", "bytes"),
    ("backup_total", "backup_streamed", "bytes"),
    ("partitions_total", "partitions_done", "partitions"),
    ("indexes_total", "indexes_processed", "indexes"),
];

fn is_progress(names: &[String]) -> bool {
    let has = |name: &str| names.iter().any(|one| one == name);
    let amounts = AMOUNTS
        .iter()
        .filter(|(total, done, _)| has(total) && has(done))
        .count();
    has("pid") && amounts > 0 && (has("phase") || has("command"))
}

fn recognise(head: &[u8]) -> Sureness {
    if !holds(head, "_total") {
        return Sureness::No;
    }
    let names = |line: &str| -> Vec<String> {
        line.split('|')
            .map(|name| name.trim().to_ascii_lowercase())
            .collect()
    };
    if any_line(head, |line| line.contains('|') && is_progress(&names(line))) {
        return Sureness::Certain;
    }
    let mut table = Table::of(is_progress);
    for (number, line) in head.split(|byte| *byte == b'\n').enumerate() {
        if let Taken::Row(row) = table.take(line.trim_ascii_end(), number as u64) {
            return Sureness::certain_if(is_row(&row));
        }
    }
    Sureness::certain_if(table.end().is_some_and(|row| is_row(&row)))
}

fn is_row(row: &Row) -> bool {
    let names: Vec<String> = row.cells().map(|(name, _)| name.to_owned()).collect();
    is_progress(&names)
}

/// What a row says.
fn said(row: &Row, quote: Quote) -> Option<Statement> {
    let text = |name: &str| name_of(&text_of(row.cell(name)));
    let pid = text("pid");
    let phase = text("phase");
    if !pid.bytes().all(|byte| byte.is_ascii_digit()) || pid.is_empty() {
        return None;
    }
    let what = match text("command").as_str() {
        "" if row.has("heap_blks_vacuumed") => "VACUUM".to_owned(),
        "" if row.has("sample_blks_total") => "ANALYZE".to_owned(),
        "" if row.has("backup_total") => "base backup".to_owned(),
        "" => "a command".to_owned(),
        command => command.to_owned(),
    };
    let mut said = format!("{what} of pid {pid}");
    let relation = text("relid");
    if !relation.is_empty() {
        said.push_str(&format!(" on {relation}"));
    }
    if !phase.is_empty() {
        said.push_str(&format!(" is in phase `{phase}`"));
    }
    let mut share = None;
    let mut lockers = false;
    for (total, done, of) in AMOUNTS {
        let (Some(all), Some(part)) = (number(&text(total)), number(&text(done))) else {
            continue;
        };
        if all <= 0.0 || part > all {
            continue;
        }
        if total == "lockers_total" {
            lockers = part < all;
            said.push_str(&format!("; {part:.0} of {all:.0} {of} have ended"));
        } else {
            share = share.or(Some(part / all));
            said.push_str(&format!("; {:.0} % of {all:.0} {of} done", 100.0 * part / all));
        }
    }
    let blocker = text("current_locker_pid");
    if lockers && !blocker.is_empty() && blocker != "0" {
        said.push_str(&format!("; now it waits for the transaction of pid {blocker}"));
    }
    let kind = match lockers || phase.starts_with("waiting") {
        true => StatementKind::Stalled,
        false => StatementKind::Took,
    };
    Some(statements::one(kind, None, quote, said))
}

#[derive(Debug)]
struct Reader {
    table: Table,
    rows: usize,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader {
            table: Table::of(is_progress),
            rows: 0,
        }
    }
}

impl Reader {
    fn put(&mut self, row: &Row, out: &mut Out<'_>) {
        let quote = Quote {
            line: row.line,
            ..out.here()
        };
        let Some(one) = said(row, quote) else { return };
        match self.rows < MAX_ROWS {
            true => out.statement(one),
            false => out.account().left_out += 1,
        }
        self.rows += 1;
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        match self.table.take(line.trim_ascii_end(), out.here().line) {
            Taken::Row(row) => {
                self.put(&row, out);
                Understood::Evidence
            }
            Taken::Part => Understood::Evidence,
            Taken::No => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        if let Some(row) = self.table.end() {
            self.put(&row, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind as K;

    #[test]
    fn an_index_that_waits_for_a_transaction() {
        let text = "-[ RECORD 1 ]------+---------------------------------\npid                | 9180\ndatname            | shop\nrelid              | 16402\n\
            command            | CREATE INDEX CONCURRENTLY\nphase              | waiting for writers before build\nlockers_total      | 2\n\
            lockers_done       | 1\ncurrent_locker_pid | 8121\nblocks_total       | 0\nblocks_done        | 0\n";
        let reading = read_text("p", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "command-progress");
        assert_eq!(
            reading.texts(),
            [
                "CREATE INDEX CONCURRENTLY of pid 9180 on 16402 is in phase `waiting for writers before build`; 1 of 2 transactions that it \
                 waits for have ended; now it waits for the transaction of pid 8121"
            ]
        );
        assert_eq!(reading.observed.statements[0].kind, K::Stalled);
    }

    #[test]
    fn a_vacuum_on_its_way() {
        let text = " pid  | datname | relid |     phase     | heap_blks_total | heap_blks_scanned | heap_blks_vacuumed \n\
            ------+---------+-------+---------------+-----------------+-------------------+--------------------\n\
            \x207003 | shop    | 16402 | scanning heap |           40000 |             10000 |                  0 \n(1 row)\n";
        let reading = read_text("p", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "command-progress");
        assert_eq!(
            reading.texts(),
            [
                "VACUUM of pid 7003 on 16402 is in phase `scanning heap`; 25 % of 40000 blocks of the table done"
            ]
        );
    }

    #[test]
    fn rubbish_is_none() {
        for text in [
            "pid | phase | blocks_total | blocks_done\n---+---\n x | y | 1 | 2\n",
            "pid | phase | blocks_total | blocks_done\n---+---\n | y | 1e999 | 2\n",
        ] {
            assert!(
                read_text("p", text.as_bytes()).observed.statements.is_empty(),
                "{text}"
            );
        }
    }
}
