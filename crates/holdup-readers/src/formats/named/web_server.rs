//! Status pages of Apache (`mod_status`) and nginx (`stub_status`).
//!
//! Out: how many workers are busy and whether one is left; how many connections were dropped.

use super::{LOOKED_AT, Names, Reader, has, pair};
use crate::format::{Family, Format, LineReader, Shape, Sureness, Understood};
use crate::gather::{Out, text_of};
use holdup_evidence::observed::{Statement, StatementKind};

pub(crate) static FORMAT: Format = Format::new(
    "server-status",
    Family::Runtime,
    recognise,
    Shape::Lines(|| Box::new(Pages(Reader::boxed(judge)))),
)
.about("status page of Apache or nginx");

/// What Apache's page has in a sentence, as its short form names it.
const SENTENCE: &str = " requests currently being processed, ";

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    let mut lines = text.lines().take(LOOKED_AT);
    if lines.any(|line| workers(line).is_some()) {
        return Sureness::Certain;
    }
    match has(head, &["BusyWorkers", "IdleWorkers"], 2) {
        Sureness::No => has(head, &["Active connections", "Reading"], 2),
        sure => sure,
    }
}

/// Busy and idle workers.
fn workers(line: &str) -> Option<(u64, u64)> {
    let (busy, rest) = line.trim().split_once(SENTENCE)?;
    let idle = rest.strip_suffix(" idle workers")?;
    let busy = busy.rsplit(' ').next()?;
    Some((busy.parse().ok()?, idle.parse().ok()?))
}

/// Gives the sentences of the pages the names of their short forms.
struct Pages(Box<dyn LineReader>);

impl LineReader for Pages {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line);
        if let Some((busy, idle)) = workers(&text) {
            self.0.line(format!("BusyWorkers: {busy}").as_bytes(), out);
            return self.0.line(format!("IdleWorkers: {idle}").as_bytes(), out);
        }
        // ` 16630948 16630948 31070465` below `server accepts handled requests`.
        let counts: Vec<&str> = text.split_whitespace().take(4).collect();
        if let [accepts, handled, requests] = counts.as_slice()
            && counts
                .iter()
                .all(|count| count.bytes().all(|byte| byte.is_ascii_digit()))
        {
            self.0.line(format!("accepts: {accepts}").as_bytes(), out);
            self.0.line(format!("handled: {handled}").as_bytes(), out);
            return self.0.line(format!("requests: {requests}").as_bytes(), out);
        }
        match pair(line) {
            Some(_) => self.0.line(line, out),
            None => Understood::Ignorable,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.0.end(out);
    }
}

fn judge(names: &Names) -> Vec<Statement> {
    if let Some((busy, idle)) = names.number("BusyWorkers").zip(names.number("IdleWorkers")) {
        let (kind, text) = match idle == 0.0 && busy > 0.0 {
            true => (
                StatementKind::Exhausted,
                format!("all {busy:.0} workers are busy, and none is idle: the next request waits"),
            ),
            false => (
                StatementKind::WithinNorm,
                format!(
                    "{busy:.0} workers are busy and {idle:.0} idle (with one idle, no request waits for a worker)"
                ),
            ),
        };
        return vec![Statement {
            share: Some(busy / (busy + idle).max(1.0)),
            ..names.say(kind, "BusyWorkers", text)
        }];
    }
    let Some((accepts, handled)) = names.number("accepts").zip(names.number("handled")) else {
        return Vec::new();
    };
    let dropped = accepts - handled;
    let (kind, text) = match dropped > 0.0 {
        true => (
            StatementKind::Exhausted,
            format!(
                "{dropped:.0} of {accepts:.0} connections were dropped (accepted and not handled): a limit was reached"
            ),
        ),
        false => (
            StatementKind::WithinNorm,
            format!(
                "all {accepts:.0} connections were handled (none dropped is well); {} active now",
                names.text("Active connections")
            ),
        ),
    };
    vec![names.say(kind, "accepts", text)]
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> (StatementKind, String) {
        let reading = read_text("s", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "server-status");
        let one = &reading.observed.statements[0];
        (one.kind, one.text.clone())
    }

    #[test]
    fn workers_that_are_all_busy_are_used_up() {
        let page =
            "Server uptime: 3 days\n150 requests currently being processed, 0 idle workers\nWWWWKKKK\n";
        assert_eq!(
            said(page),
            (
                StatementKind::Exhausted,
                "all 150 workers are busy, and none is idle: the next request waits".to_owned()
            )
        );
        assert_eq!(
            said("Total Accesses: 9\nBusyWorkers: 3\nIdleWorkers: 7\n").0,
            StatementKind::WithinNorm
        );
    }

    #[test]
    fn connections_that_were_accepted_and_not_handled_are_dropped() {
        let page = "Active connections: 291\nserver accepts handled requests\n 1663 1600 3107\nReading: 6 Writing: 179 Waiting: 106\n";
        let text = "63 of 1663 connections were dropped (accepted and not handled): a limit was reached";
        assert_eq!(said(page), (StatementKind::Exhausted, text.to_owned()));
    }
}
