//! `pg_stat_replication`: how far the replicas of a PostgreSQL server are behind.
//!
//! In: rows of psql with columns `write_lag`, `flush_lag`, `replay_lag` and a name. Out: one statement: the replica that is furthest behind, and at
//! which step, or that all are close. An empty lag is none: nothing is written.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{any_line, name_of};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("pg-replication", Family::Databases, recognise).about("pg_stat_replication");

/// How far a replica is behind from which it does not keep up: thirty seconds.
const BEHIND_NS: Ns = 30_000_000_000;

/// The longest lag that is one: a year.
const MAX_SECONDS: f64 = 31_536_000.0;

/// The columns, and what a replica that is behind there is slow to do, in the order of the steps.
const LAGS: [(&str, &str); 3] = [
    (
        "write_lag",
        "to receive and write it: the network or the replica is slow",
    ),
    ("flush_lag", "to sync it to its disk"),
    (
        "replay_lag",
        "to apply it: a query on it blocks that, or it has too little CPU or disk, or it is delayed on purpose (recovery_min_apply_delay)",
    ),
];

const COLUMNS: usize = 40;

fn recognise(head: &[u8]) -> Sureness {
    let is = |line: &str| line.contains("replay_lag") && line.contains('|') && line.contains("write_lag");
    Sureness::certain_if(any_line(head, is))
}

/// `03:12:44.120`, `1 day 02:00:00` in nanoseconds.
fn lag(text: &str) -> Option<Ns> {
    let mut words = text.split_whitespace().rev();
    let mut seconds = 0.0;
    for part in words.next()?.split(':') {
        seconds = seconds * 60.0 + part.parse::<f64>().ok()?;
    }
    if let Some(unit) = words.next() {
        let days: f64 = words.next()?.parse().ok().filter(|_| unit.starts_with("day"))?;
        seconds += days * 86_400.0;
    }
    (0.0..MAX_SECONDS)
        .contains(&seconds)
        .then_some((seconds * 1e9) as Ns)
}

#[derive(Debug, Default)]
struct Reader {
    columns: Vec<String>,
    quote: Option<Quote>,
    replicas: usize,
    worst: Option<(Ns, String, usize, Quote)>,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        if !text.contains('|') {
            let ruled = text.bytes().all(|byte| matches!(byte, b'-' | b'+'));
            return match ruled || text.starts_with('(') && text.contains(" row") {
                true => Understood::Ignorable,
                false => Understood::No,
            };
        }
        // Only a frame has a line before the first cell; without one an empty cell is the last.
        let framed = text.strip_prefix('|').and_then(|rest| rest.strip_suffix('|'));
        let cells: Vec<&str> = framed
            .unwrap_or(text)
            .split('|')
            .take(COLUMNS)
            .map(str::trim)
            .collect();
        if cells.contains(&"replay_lag") {
            self.columns = cells.iter().map(|cell| (*cell).to_owned()).collect();
            return Understood::Evidence;
        }
        if self.columns.is_empty() || cells.len() != self.columns.len() {
            return Understood::No;
        }
        let cell = |name: &str| {
            let at = self.columns.iter().position(|column| column == name)?;
            cells.get(at).copied().filter(|cell| !cell.is_empty())
        };
        let name = ["application_name", "client_addr", "usename", "pid"]
            .iter()
            .find_map(|name| cell(name));
        let name = name_of(name.unwrap_or("a replica"));
        self.replicas += 1;
        self.quote.get_or_insert_with(|| out.here());
        let steps = LAGS.iter().enumerate();
        let lags: Vec<(usize, Ns)> = steps
            .filter_map(|(at, (column, _))| Some((at, cell(column).and_then(lag)?)))
            .collect();
        let Some(most) = lags.iter().map(|(_, behind)| *behind).max() else {
            return Understood::Evidence;
        };
        // Each step holds the ones before it: the first that has half of the whole is where it is slow.
        let slow = lags.iter().find(|(_, behind)| behind.saturating_mul(2) >= most);
        let longer = self.worst.as_ref().is_none_or(|(known, ..)| most > *known);
        if let Some((at, _)) = slow.filter(|_| longer) {
            self.worst = Some((most, name, *at, out.here()));
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let all = std::mem::take(self);
        let (Some(quote), replicas) = (all.quote, all.replicas) else {
            return;
        };
        let Some((behind, name, at, place)) = all.worst.filter(|(behind, ..)| *behind >= BEHIND_NS) else {
            let text = format!(
                "none of {replicas} replicas is {} or more behind",
                duration(BEHIND_NS)
            );
            out.statement(statements::one(StatementKind::WithinNorm, None, quote, text));
            return;
        };
        let Some((column, means)) = LAGS.get(at) else {
            return;
        };
        let text = format!(
            "the replica {name} is {} behind ({column}): it is slow {means}",
            duration(behind)
        );
        out.statement(Statement {
            ns: Some(behind),
            ..statements::one(StatementKind::Stalled, None, place, text)
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(rows: &str) -> (StatementKind, String) {
        let text = format!(
            " application_name |   state   | write_lag | flush_lag | replay_lag\n------------------+-----------+-----------+-----------+------------\n{rows}"
        );
        let reading = read_text("p", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "pg-replication");
        let one = &reading.observed.statements[0];
        (one.kind, one.text.clone())
    }

    #[test]
    fn the_replica_that_is_furthest_behind_and_why() {
        let (kind, told) = said(
            " a | streaming | 00:00:00.001 | 00:00:00.002 | 00:00:00.003\n b | streaming | 00:00:00.002 | 00:00:00.003 | 03:12:44.12\n",
        );
        assert_eq!(kind, StatementKind::Stalled);
        assert!(
            told.starts_with("the replica b is 3 h 1")
                && told.contains("behind (replay_lag): it is slow to apply it"),
            "{told}"
        );
        let (_, told) = said(" b | catchup | 1 day 02:00:00 | 1 day 02:00:01 | 1 day 02:00:02\n");
        assert!(told.contains("(write_lag)"), "{told}");
    }

    #[test]
    fn the_whole_way_counts_where_its_steps_share_it() {
        let row = |lags: &str| said(&format!(" a | streaming | {lags}\n"));
        let (kind, told) = row("00:00:25 | 00:00:25 | 00:00:49");
        assert_eq!(kind, StatementKind::Stalled);
        assert!(
            told.contains("49.00 s behind (write_lag)") || told.contains("49.0 s behind (write_lag)"),
            "{told}"
        );
        let (kind, told) = row("00:00:10 | 00:00:20 | 00:00:39");
        assert_eq!(kind, StatementKind::Stalled);
        assert!(told.contains("(flush_lag)"), "{told}");
        let (kind, _) = row("00:00:10 | 00:00:20 | 00:00:29");
        assert_eq!(kind, StatementKind::WithinNorm);
    }

    #[test]
    fn replicas_that_keep_up_are_well() {
        let (kind, told) =
            said(" a | streaming | 00:00:00.001 | 00:00:00.002 | 00:00:01.003\n c | streaming |  |  | \n");
        assert_eq!(kind, StatementKind::WithinNorm);
        assert_eq!(told, "none of 2 replicas is 30.00 s or more behind");
        let _ = read_text("p", b"write_lag|replay_lag\n|\nx|y\n9:9:9:9:9|1 y 2\n");
    }
}
