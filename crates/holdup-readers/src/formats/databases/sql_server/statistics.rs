//! `SET STATISTICS TIME` and `SET STATISTICS IO` of SQL Server: how long statements ran, and of which table they read most.
//!
//! In: `Table 'orders'. Scan count 1, logical reads 123, physical reads 4, …`, and `SQL Server Execution Times:` with `CPU time = 15 ms,
//! elapsed time = 20 ms.` below or behind it. Out: a statement about the longest, with the table of the most logical reads.
//! Source: Microsoft's reference of both settings.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{Largest, any_line, holds, name_of, number, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("sql-server-statistics", Family::Databases, recognise)
        .about("STATISTICS TIME and IO of SQL Server");

fn recognise(head: &[u8]) -> Sureness {
    let io = holds(head, "logical reads") && any_line(head, |line| Reads::of(line).is_some());
    Sureness::certain_if(
        io || holds(head, "elapsed time = ") && any_line(head, |line| Times::of(line).is_some()),
    )
}

/// What was read of a table.
#[derive(Debug, PartialEq)]
struct Reads {
    table: String,
    scans: f64,
    logical: f64,
    physical: f64,
    ahead: f64,
}

/// The number behind a name: `logical reads 123`.
fn behind(text: &str, name: &str) -> Option<f64> {
    let mut parts = text.split([',', '.']);
    parts.find_map(|part| number(part.trim().strip_prefix(name)?.trim()))
}

impl Reads {
    fn of(line: &str) -> Option<Reads> {
        let rest = line.strip_prefix("Table '")?;
        let (table, rest) = rest.split_once('\'')?;
        Some(Reads {
            // Temporary tables have their name filled up with underscores.
            table: name_of(table.split("____").next().unwrap_or(table)),
            scans: behind(rest, "Scan count").unwrap_or(0.0),
            logical: behind(rest, "logical reads")?,
            physical: behind(rest, "physical reads").unwrap_or(0.0),
            ahead: behind(rest, "read-ahead reads").unwrap_or(0.0),
        })
    }
}

/// Milliseconds of CPU and in all.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Times {
    cpu: f64,
    elapsed: f64,
}

impl Times {
    fn of(line: &str) -> Option<Times> {
        let (_, rest) = line.split_once("CPU time = ")?;
        let (cpu, rest) = rest.split_once(" ms")?;
        let (_, rest) = rest.split_once("elapsed time = ")?;
        let (elapsed, _) = rest.split_once(" ms")?;
        Some(Times {
            cpu: number(cpu.trim())?,
            elapsed: number(elapsed.trim())?,
        })
    }
}

fn ns(ms: f64) -> Ns {
    (ms.clamp(0.0, 1e12) * 1e6) as Ns
}

#[derive(Debug, Default)]
struct Reader {
    /// Whether the times that follow are those of compiling.
    compiles: bool,
    executed: Option<(Times, Quote, u64)>,
    compiled: Option<(Times, Quote)>,
    statements: u64,
    tables: Largest,
    of_largest: String,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        let heading = text.to_ascii_lowercase();
        let mut known = false;
        if heading.starts_with("sql server parse and compile time") {
            (self.compiles, known) = (true, true);
        } else if heading.starts_with("sql server execution times") {
            (self.compiles, known) = (false, true);
        }
        if let Some(reads) = Reads::of(&text) {
            if self.tables.take(reads.logical, &reads.table, out.here()) {
                self.of_largest = format!(
                    "scan count {:.0}, {:.0} physical and {:.0} read-ahead reads",
                    reads.scans, reads.physical, reads.ahead
                );
            }
            return Understood::Evidence;
        }
        let Some(times) = Times::of(&text) else {
            return match known {
                true => Understood::Evidence,
                false => Understood::Ignorable,
            };
        };
        if self.compiles {
            if self
                .compiled
                .as_ref()
                .is_none_or(|(known, _)| times.elapsed > known.elapsed)
            {
                self.compiled = Some((times, out.here()));
            }
            return Understood::Evidence;
        }
        self.statements = self.statements.saturating_add(1);
        if self
            .executed
            .as_ref()
            .is_none_or(|(known, ..)| times.elapsed > known.elapsed)
        {
            self.executed = Some((times, out.here(), self.statements));
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let table = read.tables.first.as_ref().filter(|(logical, ..)| *logical > 0.0);
        let of_table = table.map(|(logical, name, _)| {
            let all = read.tables.sum;
            let share = if all > *logical {
                format!(" of {all:.0}")
            } else {
                String::new()
            };
            let next = read.tables.and_next(|reads| format!("{reads:.0}"));
            format!(
                "table {name} had {logical:.0} logical reads{share} ({}){next}",
                read.of_largest
            )
        });
        let compiled = read.compiled.as_ref().map_or(0.0, |(times, _)| times.elapsed);
        if let Some((times, quote, _)) = read
            .executed
            .as_ref()
            .filter(|(times, ..)| times.elapsed >= compiled)
        {
            let mut text = format!(
                "the {} took {}, of which {} on the CPU",
                if read.statements > 1 {
                    "longest statement"
                } else {
                    "statement"
                },
                duration(ns(times.elapsed)),
                duration(ns(times.cpu))
            );
            if times.cpu > times.elapsed {
                text.push_str(" (of several at once)");
            }
            if let Some(of_table) = of_table {
                text.push_str(&format!("; {of_table}"));
            }
            out.statement(statements::one(
                StatementKind::Took,
                Some(ns(times.elapsed)),
                quote.clone(),
                text,
            ));
        } else if let Some((times, quote)) = read.compiled.filter(|(times, _)| times.elapsed > 0.0) {
            let text = format!(
                "to parse and compile took {}, of which {} on the CPU, longer than any statement ran",
                duration(ns(times.elapsed)),
                duration(ns(times.cpu))
            );
            out.statement(statements::one(
                StatementKind::Took,
                Some(ns(times.elapsed)),
                quote,
                text,
            ));
        } else if let Some((of_table, (_, _, quote))) = of_table.zip(table) {
            out.statement(statements::one(
                StatementKind::Took,
                None,
                quote.clone(),
                of_table,
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    const MESSAGES: &str = "SQL Server parse and compile time: \n   CPU time = 3 ms, elapsed time = 4 ms.\n\n(812 rows affected)\n\
        Table 'Worktable'. Scan count 0, logical reads 0, physical reads 0, read-ahead reads 0, lob logical reads 0.\n\
        Table 'orders'. Scan count 5, logical reads 90000, physical reads 12, read-ahead reads 800, lob logical reads 0.\n\
        Table 'shops'. Scan count 1, logical reads 10000, physical reads 0, read-ahead reads 0, lob logical reads 0.\n\n\
        \x20SQL Server Execution Times:\n   CPU time = 900 ms,  elapsed time = 12400 ms.\n";

    #[test]
    fn how_long_and_which_table() {
        let reading = read_text("s", MESSAGES.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "sql-server-statistics");
        assert_eq!(
            reading.texts(),
            [
                "the statement took 12.40 s, of which 900 ms on the CPU; table orders had 90000 logical reads of 100000 (scan count 5, \
                 12 physical and 800 read-ahead reads); next shops, 10000"
            ]
        );
    }

    #[test]
    fn compiling_that_takes_longer_and_reads_alone() {
        let text = MESSAGES.replace("elapsed time = 4 ms", "elapsed time = 30000 ms");
        assert!(read_text("s", text.as_bytes()).texts()[0].starts_with("to parse and compile took 30.00 s"));
        let alone =
            "Table 'orders'. Scan count 5, logical reads 90000, physical reads 12, read-ahead reads 800.\n";
        assert!(
            read_text("s", alone.as_bytes()).texts()[0].starts_with("table orders had 90000 logical reads (")
        );
    }

    #[test]
    fn other_texts_are_none() {
        for text in [
            "Table 'orders' does not exist\n",
            "CPU time = none, elapsed time = 4\n",
        ] {
            assert_ne!(
                read_text("s", text.as_bytes()).observed.sources[0].format,
                "sql-server-statistics"
            );
        }
    }
}
