//! `mysqltuner`: what it marks as not well, and what it recommends to change.
//!
//! In: lines `[OK] …`, `[--] …`, `[!!] …`. Out: a statement about each that it marks with `[!!]`; where none is, that all is well by its checks.
//! Source: `mysqltuner.pl`.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{any_line, holds, name_of, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("mysqltuner", Family::Databases, recognise).about("mysqltuner");

/// Marked lines that are told.
const MAX_TOLD: usize = 40;

/// Words of lines that are of the server's load, and not of its passwords or versions: they are told first.
const OF_LOAD: [&str; 14] = [
    "memory usage",
    "slow queries",
    "buffer",
    "temporary tables",
    "joins",
    "sorts",
    "cache",
    "locks",
    "connections",
    "aborted",
    "log file",
    "swap",
    "table_open",
    "fragmented",
];

fn recognise(head: &[u8]) -> Sureness {
    let marked = |line: &str| line.starts_with("[!!] ") || line.starts_with("[OK] ");
    let named = holds(head, "MySQLTuner")
        || holds(head, "-------- Storage Engine")
        || holds(head, "-------- Performance Metrics");
    Sureness::certain_if(named && any_line(head, marked))
}

#[derive(Debug, Default)]
struct Reader {
    marked: Vec<(bool, String, Quote)>,
    well: u64,
    first: Option<Quote>,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if text.starts_with("[OK]") {
            self.well = self.well.saturating_add(1);
            self.first.get_or_insert_with(|| out.here());
            return Understood::Evidence;
        }
        if let Some(message) = text.strip_prefix("[!!]") {
            let lower = message.to_ascii_lowercase();
            let of_load = OF_LOAD.iter().any(|word| lower.contains(word));
            if self.marked.len() < MAX_TOLD {
                self.marked.push((!of_load, name_of(message), out.here()));
            } else {
                out.account().left_out += 1;
            }
            return Understood::Evidence;
        }
        match text.starts_with("[--]") || text.starts_with("--------") {
            true => Understood::Evidence,
            // Its recommendations repeat what it marks.
            false => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let mut read = std::mem::take(self);
        if read.marked.is_empty() {
            if let Some(quote) = read.first {
                let text = format!("mysqltuner marks nothing; {} of its checks are well", read.well);
                out.statement(statements::one(StatementKind::WithinNorm, None, quote, text));
            }
            return;
        }
        read.marked.sort_by_key(|(other, ..)| *other);
        for (_, message, quote) in read.marked {
            out.statement(statements::one(
                StatementKind::Warned,
                None,
                quote,
                format!("{message} (marked by mysqltuner)"),
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    #[test]
    fn what_is_marked_with_what_is_of_the_load_first() {
        let text = ">>  MySQLTuner 2.2.12\n[OK] Logged in using credentials\n-------- Security Recommendations ------\n\
            [!!] User 'a'@'%' has no password set.\n-------- Performance Metrics ------\n[--] Up for: 3d\n\
            [!!] Temporary tables created on disk: 61% (900 on disk / 1K total)\n";
        let reading = read_text("m", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "mysqltuner");
        assert_eq!(
            reading.texts()[0],
            "Temporary tables created on disk: 61% (900 on disk / 1K total) (marked by mysqltuner)"
        );
        assert_eq!(reading.observed.statements[0].kind, StatementKind::Warned);
        let well = text.replace("[!!]", "[OK]");
        assert_eq!(
            read_text("m", well.as_bytes()).observed.statements[0].kind,
            StatementKind::WithinNorm
        );
    }

    #[test]
    fn other_lists_are_none() {
        let text = "[OK] a\n[!!] b\n";
        assert_ne!(
            read_text("m", text.as_bytes()).observed.sources[0].format,
            "mysqltuner"
        );
    }
}
