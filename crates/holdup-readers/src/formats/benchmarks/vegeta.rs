//! The report of the load generator vegeta.
//!
//! In: rows with the names of their columns in brackets: `Latencies     [min, mean, 50, 90, 95, 99, max]  12.1ms, 9.21s, …`, `Success [ratio] 36.20%`.
//! Out: how many requests failed and with which codes, how long one took at the mean, at a high percentile and at most. Source: `lib/reporters.go`.

use super::requests::MANY_FAIL;
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{any_line, holds, length, ns_of, number, percent, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("vegeta", Family::Times, recognise).about("vegeta");

fn recognise(head: &[u8]) -> Sureness {
    let is_row = |line: &str| row(line).is_some_and(|(name, ..)| name == "Latencies");
    Sureness::certain_if(holds(head, "Latencies") && holds(head, "[total, rate") && any_line(head, is_row))
}

/// `Requests      [total, rate]            1, 1.00`: the name, the columns, the values.
fn row(line: &str) -> Option<(&str, Vec<&str>, Vec<&str>)> {
    let (name, rest) = line.split_once('[')?;
    let (columns, values) = rest.split_once(']')?;
    let columns = columns.split(',').map(str::trim).take(16).collect();
    let values = values.split(',').map(str::trim).take(16).collect();
    let name = name.trim();
    (!name.is_empty() && name.len() < 20).then_some((name, columns, values))
}

#[derive(Debug, Default)]
struct Reader {
    requests: f64,
    success: Option<f64>,
    codes: String,
    mean: Option<f64>,
    high: Option<(String, f64)>,
    longest: Option<f64>,
    quote: Option<Quote>,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        let Some((name, columns, values)) = row(&text) else {
            return Understood::No;
        };
        let value = |name: &str| {
            let at = columns.iter().position(|column| *column == name)?;
            values.get(at).copied()
        };
        match name {
            "Requests" => self.requests = value("total").and_then(number).unwrap_or(0.0),
            "Latencies" => {
                self.mean = value("mean").and_then(length);
                self.longest = value("max").and_then(length);
                self.high = ["99", "95", "90"]
                    .iter()
                    .find_map(|high| Some(((*high).to_owned(), length(value(high)?)?)));
                self.quote = Some(out.here());
            }
            "Success" => self.success = values.first().copied().and_then(percent),
            "Status Codes" => self.codes = values.join(", ").chars().take(100).collect(),
            "Duration" | "Bytes In" | "Bytes Out" => {}
            _ => return Understood::No,
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let (Some(mean), Some(quote)) = (read.mean, read.quote) else {
            return;
        };
        let told = |seconds: f64| duration(ns_of(seconds));
        let mut text = format!("a request took {} at the mean", told(mean));
        if let Some((place, seconds)) = &read.high {
            text.push_str(&format!(", {place} % of them at most {}", told(*seconds)));
        }
        if let Some(longest) = read.longest {
            text.push_str(&format!(", the longest {}", told(longest)));
        }
        let failed = read.success.map_or(0.0, |percent| 1.0 - percent / 100.0);
        if failed > 0.0 {
            text = format!(
                "{:.1} % of {:.0} requests failed (status codes {}; 0 is no answer at all); {text}",
                failed * 100.0,
                read.requests,
                read.codes.trim()
            );
        }
        let kind = match failed >= MANY_FAIL {
            true => StatementKind::Failed,
            false => StatementKind::Took,
        };
        out.statement(Statement {
            share: Some(failed).filter(|failed| *failed > 0.0),
            ..statements::one(kind, read.longest.map(ns_of), quote, text)
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const REPORT: &str = "Requests      [total, rate, throughput]         600, 10.02, 2.10\nDuration      [total, attack, wait]             1m29.8s, 59.98s, 29.8s\n\
        Latencies     [min, mean, 50, 90, 95, 99, max]  12.1ms, 4.2s, 4.1s, 9.8s, 10.2s, 12.5s, 30.1s\nBytes In      [total, mean]                     9, 0.10\n\
        Success       [ratio]                           40.00%\nStatus Codes  [code:count]                      0:360  200:240\nError Set:\n";

    fn said(text: &str) -> (StatementKind, String) {
        let observed = read_text("v", text.as_bytes()).observed;
        assert_eq!(observed.sources[0].format, "vegeta");
        let one = observed.statements.iter().find(|one| one.of_reader).unwrap();
        (one.kind, one.text.clone())
    }

    #[test]
    fn most_requests_fail() {
        let (kind, text) = said(REPORT);
        assert_eq!(kind, StatementKind::Failed);
        assert_eq!(
            text,
            "60.0 % of 600 requests failed (status codes 0:360  200:240; 0 is no answer at all); a request took 4.20 s at the mean, 99 % of them at most \
             12.50 s, the longest 30.10 s"
        );
    }

    #[test]
    fn older_columns_and_all_well() {
        let text = "Requests [total, rate] 9, 1.00\nLatencies [mean, 50, 95, 99, max] 12ms, 12ms, 14ms, 15ms, 16ms\nSuccess [ratio] 100.00%\n";
        let (kind, text) = said(text);
        assert_eq!(kind, StatementKind::Took);
        assert_eq!(
            text,
            "a request took 12.0 ms at the mean, 99 % of them at most 15.0 ms, the longest 16.0 ms"
        );
    }

    #[test]
    fn rubbish() {
        let _ = read_text(
            "v",
            b"Requests [total, rate\nLatencies [] ,,,\nLatencies [mean, max] x, y\nSuccess [ratio] %\n",
        );
    }
}
