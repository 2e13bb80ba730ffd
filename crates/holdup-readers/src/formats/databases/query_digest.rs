//! Digests of slow logs: `pt-query-digest` and `mysqldumpslow`.
//!
//! In: rows of the profile (`#    1 0x5EE4… 1234.5678 45.6%  5000 0.2469  0.05 SELECT orders`), or `Count: 120  Time=3.20s (384s)  …` with the
//! statement below. Out: a statement about the query that took most time in all, with its share, how often and how long each time.
//! Source: `QueryReportFormatter.pm` of Percona Toolkit, `mysqldumpslow.sh` of MySQL.

use super::main_table::main_table;
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{Largest, any_line, holds, name_of, ns_of, number, percent, rounded, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("query-digest", Family::Databases, recognise)
    .about("pt-query-digest, mysqldumpslow");

fn recognise(head: &[u8]) -> Sureness {
    let profile = holds(head, "0x") && any_line(head, |line| profile(line).is_some());
    Sureness::certain_if(profile || holds(head, "Time=") && any_line(head, |line| dumped(line).is_some()))
}

/// What a query took.
#[derive(Debug, Default, Clone, PartialEq)]
struct Query {
    name: String,
    /// Seconds, in all and each time.
    all: f64,
    each: f64,
    calls: f64,
    share: Option<f64>,
    /// Seconds for locks, each time, and rows.
    lock: f64,
    rows: Option<f64>,
}

/// A row of the profile.
fn profile(line: &str) -> Option<Query> {
    let words: Vec<&str> = line.strip_prefix('#')?.split_whitespace().take(40).collect();
    let [rank, id, all, share, calls, each, rest @ ..] = words.as_slice() else {
        return None;
    };
    number(rank)?;
    id.strip_prefix("0x")?;
    // Behind the variance stands the kind of statement and its table.
    let name = rest.get(1..)?.join(" ");
    Some(Query {
        name: name_of(&format!(
            "{name} (query {})",
            id.chars().take(18).collect::<String>()
        )),
        all: number(all)?,
        each: number(each)?,
        calls: number(calls)?,
        share: Some(percent(share)? / 100.0),
        ..Query::default()
    })
}

/// `Count: 120  Time=3.20s (384s)  Lock=0.00s (0s)  Rows=10.0 (1200), shop[shop]@[10.0.0.1]`.
fn dumped(line: &str) -> Option<Query> {
    let rest = line.strip_prefix("Count:")?;
    let calls = number(rest.split_whitespace().next()?)?;
    let behind = |name: &str| {
        let (_, rest) = rest.split_once(name)?;
        let (each, rest) = rest.split_once('(')?;
        let (all, _) = rest.split_once(')')?;
        Some((
            number(each.trim().trim_end_matches('s'))?,
            number(all.trim().trim_end_matches('s'))?,
        ))
    };
    let (each, all) = behind("Time=")?;
    Some(Query {
        name: String::new(),
        // Whole seconds: of quick ones they are none.
        all: all.max(each * calls),
        each,
        calls,
        share: None,
        lock: behind("Lock=").map_or(0.0, |(each, _)| each),
        rows: behind("Rows=").map(|(each, _)| each),
    })
}

#[derive(Debug, Default)]
struct Reader {
    queries: Largest,
    largest: Query,
    /// Whether the next line is the statement of the largest.
    statement_follows: bool,
    /// Whether the shares are those of the digest.
    shares: bool,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if let Some(query) = profile(&text).or_else(|| dumped(&text)) {
            self.shares |= query.share.is_some();
            let is_largest = self.queries.take(query.all, &query.name, out.here());
            self.statement_follows = is_largest && query.share.is_none();
            if is_largest {
                self.largest = query;
            }
            return Understood::Evidence;
        }
        if std::mem::take(&mut self.statement_follows) {
            let table = main_table(&text).map_or_else(String::new, |table| format!(" on {table}"));
            self.largest.name = name_of(&format!("the query{table} `{}`", name_of(&text)));
            return Understood::Evidence;
        }
        Understood::Ignorable
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let Some((all, _, quote)) = read.queries.first else {
            return;
        };
        let query = read.largest;
        let told = |seconds: f64| duration(ns_of(seconds));
        let sum = read.queries.sum;
        let share = query.share.or((sum > 0.0).then(|| all / sum));
        let name = match query.name.as_str() {
            "" => "a query",
            name => name,
        };
        let mut text = format!(
            "{name} took {} in {:.0} calls, {} each time",
            told(all),
            query.calls,
            told(query.each)
        );
        if let Some(share) = share {
            let of = match read.shares {
                true => "of all time".to_owned(),
                false => format!("of the {} queries listed", read.queries.count),
            };
            text.push_str(&format!("; {} % {of}", rounded(share * 100.0)));
        }
        if query.lock > 0.0 {
            text.push_str(&format!("; it waited {} each time for locks", told(query.lock)));
        }
        if let Some(rows) = query.rows {
            text.push_str(&format!("; {rows:.0} rows each time"));
        }
        let share = share.filter(|share| *share <= 1.0);
        out.statement(Statement {
            share,
            ..statements::one(StatementKind::Took, Some(ns_of(all)), quote, text)
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn the_first_of_a_profile() {
        let text = "# Profile\n# Rank Query ID                            Response time  Calls R/Call  V/M\n\
            # ==== =================================== ============== ===== ======= =====\n\
            #    1 0xAB12CD34EF56AB12CD34EF56AB12CD34   900.5000 75.0%   3000  0.3000  0.02 SELECT orders items\n\
            #    2 0x11112222333344445555666677778888   300.0000 25.0%    100  3.0000  0.40 UPDATE stock\n";
        let reading = read_text("q", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "query-digest");
        assert_eq!(
            reading.texts(),
            [
                "SELECT orders items (query 0xAB12CD34EF56AB12) took 15 min 1 s in 3000 calls, 300 ms each time; 75 % of all time"
            ]
        );
    }

    #[test]
    fn the_largest_that_was_dumped() {
        let text = "Count: 2  Time=0.50s (1s)  Lock=0.00s (0s)  Rows=1.0 (2), a[a]@[10.1.1.1]\n  select N\n\n\
            Count: 30  Time=4.00s (120s)  Lock=1.50s (45s)  Rows=20.0 (600), a[a]@[10.1.1.1]\n  select * from orders where day = 'S'\n";
        assert_eq!(
            read_text("q", text.as_bytes()).texts(),
            [
                "the query on orders `select * from orders where day = 'S'` took 2 min 0 s in 30 calls, 4.00 s each time; 99.2 % of the 2 \
                 queries listed; it waited 1.50 s each time for locks; 20 rows each time"
            ]
        );
    }

    #[test]
    fn other_lists_are_none() {
        for text in ["# 1 0xAB 12\n", "Count: 3 Time=now\n"] {
            assert_ne!(
                read_text("q", text.as_bytes()).observed.sources[0].format,
                "query-digest"
            );
        }
    }
}
