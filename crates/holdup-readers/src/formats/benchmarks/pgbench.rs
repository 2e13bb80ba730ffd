//! `pgbench`.
//!
//! Out: how long a transaction took at the mean, how many there were a second, with how many clients, and of the statements that it lists with
//! their latency (`-r`) the longest. Its own transactions all update one of as many branches as the database is scaled to: with more clients than
//! that they wait for each other. Source: PostgreSQL's documentation, "pgbench", "Good Practices".

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::decimal;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("pgbench", Family::Times, recognise).about("pgbench");

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    let has = |name: &str| text.lines().any(|line| line.trim_start().starts_with(name));
    match has("latency average") && has("number of clients:")
        || has("number of transactions actually processed")
    {
        true => Sureness::Certain,
        false => Sureness::No,
    }
}

#[derive(Debug, Default)]
struct Reader {
    clients: String,
    rate: String,
    mean: Option<(f64, Quote)>,
    /// Whether the transactions are those that update a branch, and how many branches there are.
    updates_branches: bool,
    scale: Option<u64>,
    /// Whether the lines below are statements with their latency, and the longest, in milliseconds.
    lists: bool,
    longest: Option<(f64, String)>,
}

/// Bytes of a statement.
const STATEMENT: usize = 120;

/// A statement with its mean latency in milliseconds; newer versions have the number of failures between.
fn listed(text: &str) -> Option<(f64, &str)> {
    let (ms, rest) = text.split_once(char::is_whitespace)?;
    let ms = decimal(ms.as_bytes()).filter(|ms| (0.0..1e12).contains(ms))?;
    let rest = rest.trim_start();
    let behind = rest.trim_start_matches(|char: char| char.is_ascii_digit());
    let statement = if behind.starts_with("  ") { behind } else { rest };
    Some((ms, statement.trim()))
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..400).unwrap_or(line));
        let text = text.trim();
        let first = |rest: &str| {
            rest.split_whitespace()
                .next()
                .unwrap_or_default()
                .chars()
                .take(20)
                .collect::<String>()
        };
        if let Some(rest) = text.strip_prefix("scaling factor:") {
            self.scale = first(rest).parse().ok();
        } else if let Some(rest) = text.strip_prefix("transaction type:") {
            self.updates_branches = rest.contains("TPC-B") && !rest.contains("(without");
        } else if let Some(rest) = text.strip_prefix("number of clients:") {
            self.clients = first(rest);
        } else if let Some(rest) = text.strip_prefix("tps =") {
            self.rate = first(rest);
        } else if let Some((_, rest)) = text.split_once("latency average")
            && let Some(ms) = decimal(first(rest.trim_start_matches([' ', '=', ':'])).as_bytes())
        {
            self.mean = Some((ms, out.here()));
        } else if text.starts_with("statement latencies in milliseconds") {
            self.lists = true;
        } else if let Some((ms, statement)) = listed(text).filter(|_| self.lists) {
            if self.longest.as_ref().is_none_or(|(longest, _)| ms > *longest) {
                self.longest = Some((ms, statement.chars().take(STATEMENT).collect()));
            }
        } else {
            return Understood::Ignorable;
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let Some((ms, quote)) = self.mean.take() else {
            return;
        };
        let ns = (ms.clamp(0.0, 1e12) * 1e6) as u64;
        let part = |before: &str, value: &str, behind: &str| match value {
            "" => String::new(),
            value => format!("{before}{value}{behind}"),
        };
        let longest = self.longest.take().map(|(ms, statement)| {
            format!(
                "; longest statement {}: `{statement}`",
                duration((ms * 1e6) as u64)
            )
        });
        let clients: u64 = self.clients.parse().unwrap_or(0);
        let contended = self
            .scale
            .filter(|scale| self.updates_branches && *scale < clients);
        let contended = contended.map(|scale| {
            let branches = match scale {
                1 => "the row of the only branch".to_owned(),
                several => format!("one of the rows of {several} branches"),
            };
            format!("; each of them updates {branches} (scaling factor {scale}): they wait for each other's row locks")
        });
        let text = format!(
            "a transaction took {} at the mean (latency average){}{}{}{}",
            duration(ns),
            part(", ", &self.rate, " a second"),
            part(" with ", &self.clients, " clients"),
            contended.unwrap_or_default(),
            longest.unwrap_or_default()
        );
        out.statement(Statement {
            ns: Some(ns),
            ..statements::one(StatementKind::Took, None, quote, text)
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn the_longest_of_the_statements_that_are_listed() {
        let text = "number of clients: 5\nnumber of transactions actually processed: 90\nlatency average = 1301.2 ms\ntps = 3.8\n\
            statement latencies in milliseconds and failures:\n   0.004   0  \\set aid random(1, 1000)\n 912.102   0  UPDATE branches SET b = b + 1;\n  7.102   0  END;\n";
        assert_eq!(
            read_text("p", text.as_bytes()).texts(),
            [
                "a transaction took 1.30 s at the mean (latency average), 3.8 a second with 5 clients; \
              longest statement 912 ms: `UPDATE branches SET b = b + 1;`"
            ]
        );
    }

    #[test]
    fn more_clients_than_branches_wait_for_each_other() {
        let text = |kind: &str, scale: &str| {
            format!(
                "transaction type: {kind}\nscaling factor: {scale}\nquery mode: simple\nnumber of clients: 40\nnumber of threads: 2\n\
                 number of transactions actually processed: 2356\nlatency average = 88.1 ms\ntps = 454.1\n"
            )
        };
        let said = |kind: &str, scale: &str| read_text("p", text(kind, scale).as_bytes()).texts().concat();
        let one = said("<builtin: TPC-B (sort of)>", "1");
        assert!(one.ends_with(
            "with 40 clients; each of them updates the row of the only branch (scaling factor 1): they wait for each other's row locks"
        ), "{one}");
        assert!(said("TPC-B (sort of)", "4").contains("one of the rows of 4 branches"));
        for (kind, scale) in [
            ("<builtin: TPC-B (sort of)>", "50"),
            ("<builtin: select only>", "1"),
            ("orders.sql", "1"),
        ] {
            assert!(!said(kind, scale).contains("branch"), "{kind}");
        }
    }

    #[test]
    fn the_mean_of_a_transaction() {
        let text = "starting vacuum...end.\nscaling factor: 10\nnumber of clients: 32\nduration: 60 s\nnumber of transactions actually processed: 2356\n\
            latency average = 812.441 ms\ntps = 39.388 (including connections establishing)\n";
        let reading = read_text("p", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "pgbench");
        let texts = reading.texts();
        assert_eq!(
            texts,
            ["a transaction took 812 ms at the mean (latency average), 39.388 a second with 32 clients"]
        );
    }
}
