//! `dig`: a query to a name server.
//!
//! In: comments with `;` and records. Out: how long the answer took, from which server, or that there was none.

use super::{cut, ms};
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("dig", Family::Host, recognise)
    .about("dig")
    .openings(&["; <<>> DiG "]);

/// Milliseconds from which an answer is late: a server across an ocean is some 200 ms away, and what it does not know it asks others.
const LATE_MS: f64 = 500.0;

fn recognise(head: &[u8]) -> Sureness {
    let head = text_of(head);
    let is_its = |line: &str| {
        line.starts_with("; <<>> DiG ")
            || line.starts_with(";; ->>HEADER<<-")
            || line.starts_with(";; Query time:")
    };
    Sureness::certain_if(head.lines().any(|line| is_its(line.trim_start())))
}

#[derive(Debug, Default)]
struct Reader {
    /// What was asked for.
    name: String,
    status: String,
    server: String,
    time: Option<(f64, Quote)>,
    failed: Option<(StatementKind, String, Quote)>,
    begun: Quote,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        if let Some(rest) = text.strip_prefix("; <<>> DiG ") {
            self.close(out);
            self.begun = out.here();
            let (_, words) = rest.split_once("<<>>").unwrap_or(("", rest));
            let name = words
                .split_whitespace()
                .find(|word| word.contains('.') && !word.starts_with(['@', '+', '-']));
            self.name = cut(name.unwrap_or_default());
            return Understood::Evidence;
        }
        let Some(said) = text.strip_prefix(";; ") else {
            // The question has the name with its last dot, and the records are data.
            if let Some(question) = text
                .strip_prefix(';')
                .and_then(|text| text.split_whitespace().next())
                && question.ends_with('.')
            {
                self.name = cut(question);
                return Understood::Evidence;
            }
            return Understood::Ignorable;
        };
        if let Some(rest) = said.strip_prefix("Query time: ") {
            let time = rest
                .split_whitespace()
                .next()
                .and_then(|time| crate::numbers::decimal(time.as_bytes()));
            let unit = if rest.ends_with("usec") { 1e-3 } else { 1.0 };
            self.time = time.map(|time| (time * unit, out.here()));
        } else if let Some(rest) = said.strip_prefix("SERVER: ") {
            self.server = cut(rest.split(['#', ' ']).next().unwrap_or_default());
        } else if let Some((_, status)) = said.split_once("status: ") {
            self.status = cut(status.split(',').next().unwrap_or_default());
        } else if said.contains("timed out") || said.contains("no servers could be reached") {
            self.failed = Some((StatementKind::TimedOut, cut(said), out.here()));
        } else if said.contains("refused") || said.contains("unreachable") {
            self.failed = Some((StatementKind::Unreachable, cut(said), out.here()));
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close(out);
    }
}

impl Reader {
    fn close(&mut self, out: &mut Out<'_>) {
        let all = std::mem::take(self);
        let of = match all.name.as_str() {
            "" => "the query".to_owned(),
            name => format!("the query for {name}"),
        };
        if let Some((kind, said, quote)) = all.failed {
            out.statement(statements::one(kind, None, quote, format!("{of}: {said}")));
        }
        if matches!(all.status.as_str(), "SERVFAIL" | "REFUSED") {
            let after = all
                .time
                .as_ref()
                .map(|(time, _)| format!(" after {}", duration(ms(*time))))
                .unwrap_or_default();
            let why = match (all.status.as_str(), &all.time) {
                ("REFUSED", _) => ": it does not answer such queries",
                // A server that knows that it fails says so at once; late it says so when those that it asked did not answer.
                (_, Some((time, _))) if *time >= LATE_MS => {
                    ": it could not resolve the name, as the servers that it asked itself did not answer in time"
                }
                _ => ": it could not resolve the name",
            };
            let text = format!(
                "{of} has no answer: status {} of {}{after}{why}",
                all.status, all.server
            );
            out.statement(Statement {
                ns: all.time.as_ref().map(|(time, _)| ms(*time)),
                ..statements::one(StatementKind::Unreachable, None, all.begun, text)
            });
            return;
        }
        let Some((time, quote)) = all.time else { return };
        let (kind, norm) = match time >= LATE_MS {
            true => (StatementKind::Took, String::new()),
            false => (
                StatementKind::WithinNorm,
                format!(" (from {} on it is late)", duration(ms(LATE_MS))),
            ),
        };
        let server = match all.server.as_str() {
            "" => String::new(),
            server => format!(" by {server}"),
        };
        let text = format!("{of} was answered{server} after {}{norm}", duration(ms(time)));
        out.statement(Statement {
            ns: Some(ms(time)),
            ..statements::one(kind, None, quote, text)
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> Vec<(StatementKind, String)> {
        let reading = read_text("d", text.as_bytes());
        assert_eq!(reading.observed.sources.len(), 1);
        assert_eq!(reading.observed.sources[0].format, "dig");
        let all = reading.observed.statements.into_iter();
        all.map(|one| (one.kind, one.text)).collect()
    }

    const ANSWER: &str = "; <<>> DiG 9.18 <<>> db.example\n;; Got answer:\n;; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: 7\n\n\
        ;; QUESTION SECTION:\n;db.example.\tIN\tA\n\n;; ANSWER SECTION:\ndb.example. 30 IN A 10.3.1.7\n\n;; Query time: 4012 msec\n\
        ;; SERVER: 10.0.0.2#53(10.0.0.2)\n";

    #[test]
    fn a_late_answer_and_one_in_time() {
        let text = "the query for db.example. was answered by 10.0.0.2 after 4.01 s";
        assert_eq!(said(ANSWER), [(StatementKind::Took, text.to_owned())]);
        assert_eq!(said(&ANSWER.replace("4012", "4"))[0].0, StatementKind::WithinNorm);
    }

    #[test]
    fn no_answer() {
        let text = "; <<>> DiG 9.18 <<>> @10.0.0.2 db.example\n;; connection timed out; no servers could be reached\n";
        let found = "the query for db.example: connection timed out; no servers could be reached";
        assert_eq!(said(text), [(StatementKind::TimedOut, found.to_owned())]);
        let late = "the query for db.example. has no answer: status SERVFAIL of 10.0.0.2 after 4.01 s: it could not resolve the name, as the \
            servers that it asked itself did not answer in time";
        let all = said(&ANSWER.replace("NOERROR", "SERVFAIL"));
        assert_eq!(all, [(StatementKind::Unreachable, late.to_owned())]);
        let at_once = said(&ANSWER.replace("NOERROR", "SERVFAIL").replace("4012", "3"));
        assert!(
            at_once[0]
                .1
                .ends_with("after 3.0 ms: it could not resolve the name"),
            "{at_once:?}"
        );
        let refused = said(&ANSWER.replace("NOERROR", "REFUSED"));
        assert!(
            refused[0].1.ends_with("it does not answer such queries"),
            "{refused:?}"
        );
    }
}
