//! `nodetool compactionstats` of Cassandra: how many compactions wait, and how far the running ones are.
//!
//! In: `pending tasks: 812`, perhaps by keyspace and table below, and rows with what is done and all, in bytes. Out: a statement about those
//! that wait and the one that has most left. Source: Cassandra's documentation, "nodetool compactionstats".

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{Largest, any_line, holds, name_of, number, percent, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("nodetool-compactionstats", Family::Host, recognise)
        .about("nodetool compactionstats");

/// Compactions of one node that wait above which Reaper, which repairs clusters of Cassandra, begins no repair, so as not to overwhelm the
/// node (its setting `maxPendingCompactions`). The best number is 0, or a very small one (DataStax, "Alert metrics"), so that fewer are
/// judged only where there is none.
const MAX_PENDING_COMPACTIONS: f64 = 20.0;

fn recognise(head: &[u8]) -> Sureness {
    let may = holds(head, "pending tasks:")
        || holds(head, "compaction type")
        || holds(head, "Active compaction remaining time");
    let of_it =
        |line: &str| line.contains("compaction type") || line.starts_with("Active compaction remaining time");
    let waits = |line: &str| pending(line).is_some();
    Sureness::certain_if(may && (any_line(head, of_it) || any_line(head, waits) && holds(head, "ompaction")))
}

fn pending(line: &str) -> Option<f64> {
    number(line.strip_prefix("pending tasks:")?.trim())
}

#[derive(Debug, Default)]
struct Reader {
    pending: Option<(f64, Quote)>,
    /// By keyspace and table.
    tables: Largest,
    running: Largest,
    remaining: String,
}

/// `- shop.orders: 700` below the pending ones.
fn of_table(line: &str) -> Option<(&str, f64)> {
    let (name, count) = line.strip_prefix("- ")?.split_once(':')?;
    Some((name.trim(), number(count.trim())?))
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if let Some(count) = pending(&text) {
            if self.pending.is_some() {
                self.end(out);
            }
            self.pending = Some((count, out.here()));
        } else if let Some((name, count)) = of_table(&text) {
            self.tables.take(count, name, out.here());
        } else if let Some(time) = text.strip_prefix("Active compaction remaining time :") {
            self.remaining = name_of(time);
        } else if !(text.contains("compaction type") && text.contains("progress")) {
            // The last is the share that is done, before it the unit, all and what is done; the name is the keyspace and table before those.
            let words: Vec<&str> = text.split_whitespace().take(20).collect();
            let [.., keyspace, table, done, all, _unit, share] = words.as_slice() else {
                return Understood::No;
            };
            let (Some(done), Some(all), Some(share)) = (number(done), number(all), percent(share)) else {
                return Understood::No;
            };
            let name = format!("{keyspace}.{table} ({share:.0} % done)");
            self.running.take((all - done).max(0.0), &name, out.here());
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let Some((count, quote)) = read.pending else {
            return;
        };
        let mut text = format!("{count:.0} compactions of Cassandra wait");
        if let Some((of, name, _)) = &read.tables.first {
            text.push_str(&format!(", {of:.0} of them of {name}"));
        }
        if let Some((_, name, _)) = &read.running.first {
            text.push_str(&format!(
                "; {} run, of which {name} has most left",
                read.running.count
            ));
        }
        if !read.remaining.is_empty() && !read.remaining.starts_with("n/a") {
            text.push_str(&format!("; remaining time {}", read.remaining));
        }
        let kind = if count > MAX_PENDING_COMPACTIONS {
            StatementKind::Stalled
        } else if count > 0.0 {
            StatementKind::Took
        } else {
            text.push_str(" (0 is well)");
            StatementKind::WithinNorm
        };
        out.statement(statements::one(kind, None, quote, text));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const STATS: &str = "pending tasks: 812\n- shop.orders: 700\n- shop.carts: 112\n\n\
        id                                   compaction type keyspace table  completed    total        unit  progress\n\
        0a1b2c3d-0000-0000-0000-000000000000 Compaction      shop     orders 1000000      9000000      bytes 11.11%\n\
        Active compaction remaining time :   2h10m05s\n";

    #[test]
    fn what_waits_and_what_runs() {
        let reading = read_text("n", STATS.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "nodetool-compactionstats");
        assert_eq!(reading.accounts[0].not_understood, 0);
        assert_eq!(
            reading.texts(),
            [
                "812 compactions of Cassandra wait, 700 of them of shop.orders; 1 run, of which shop.orders (11 % done) has most left; \
                 remaining time 2h10m05s"
            ]
        );
        assert_eq!(reading.observed.statements[0].kind, StatementKind::Stalled);
    }

    #[test]
    fn a_node_that_keeps_up_is_well_and_other_lists_are_none() {
        for (count, kind) in [(0, StatementKind::WithinNorm), (20, StatementKind::Took)] {
            let text = format!("pending tasks: {count}\nActive compaction remaining time :        n/a\n");
            assert_eq!(read_text("n", text.as_bytes()).observed.statements[0].kind, kind);
        }
        let other = "pending tasks: 3\n- wash: 2\n";
        assert_ne!(
            read_text("n", other.as_bytes()).observed.sources[0].format,
            "nodetool-compactionstats"
        );
    }
}
