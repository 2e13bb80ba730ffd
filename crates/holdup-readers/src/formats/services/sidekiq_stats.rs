//! Sidekiq's own report (`sidekiqmon`): how many of its threads are at work, and how far behind each queue is.
//!
//! In: `Busy: 25`, `Enqueued: 48,211`, `Threads: 25 (25 busy)`, and a table of queues with `NAME SIZE LATENCY`, the age of the oldest job in seconds.
//! Out: a statement about the queue that is farthest behind, or that none is. Source: `lib/sidekiq/monitor.rs`.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::formats::report::{any_line, holds, name_of, ns_of, number, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("sidekiq-report", Family::Host, recognise).about("sidekiqmon");

/// Seconds from which a queue is behind: jobs that nobody waits for may be a minute late.
const BEHIND_SECONDS: f64 = 60.0;

/// What begins like another format within the report.
const TABLED: &str = "lsblk";

fn recognise(head: &[u8]) -> Sureness {
    let is_heading = |line: &str| is_queues(line);
    Sureness::certain_if(holds(head, "LATENCY") && holds(head, "Enqueued:") && any_line(head, is_heading))
}

/// The heading of the table of queues.
fn is_queues(line: &str) -> bool {
    line.split_whitespace().eq(["NAME", "SIZE", "LATENCY"])
}

#[derive(Debug, Default)]
struct Reader {
    in_queues: bool,
    threads: f64,
    busy: f64,
    enqueued: Option<(f64, Quote)>,
    /// The queue that is farthest behind: seconds, name, jobs.
    latest: Option<(f64, String, f64, Quote)>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_in(line);
        if text.is_empty() || text.starts_with("----") {
            self.in_queues = false;
            return Understood::Ignorable;
        }
        if is_queues(&text) {
            self.in_queues = true;
            return Understood::Evidence;
        }
        if self.in_queues {
            let words: Vec<&str> = text.split_whitespace().collect();
            let [name, size, latency] = words.as_slice() else {
                return Understood::No;
            };
            let (Some(size), Some(latency)) = (number(size), number(latency)) else {
                return Understood::No;
            };
            if self.latest.as_ref().is_none_or(|(most, ..)| latency > *most) {
                self.latest = Some((latency, name_of(name), size, out.here()));
            }
            return Understood::Evidence;
        }
        let Some((name, value)) = text.split_once(':') else {
            return Understood::Ignorable;
        };
        let value = value.trim();
        match name.trim() {
            "Enqueued" => self.enqueued = number(value).map(|count| (count, out.here())),
            "Threads" => {
                let (all, busy) = value.split_once('(').unwrap_or((value, ""));
                self.threads += number(all.trim()).unwrap_or(0.0);
                self.busy += busy.split(' ').next().and_then(number).unwrap_or(0.0);
            }
            _ => return Understood::Ignorable,
        }
        Understood::Evidence
    }

    fn keeps(&self, other: &Format) -> bool {
        other.id == TABLED
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let Some((seconds, name, size, quote)) = read.latest else {
            return;
        };
        let all = read.enqueued.map_or(size, |(count, _)| count.max(size));
        let threads = match read.threads {
            0.0 => String::new(),
            threads => format!(
                "; {:.0} of {threads:.0} threads of Sidekiq are at work",
                read.busy
            ),
        };
        let full = read.threads > 0.0 && read.busy >= read.threads;
        let (kind, text) = match (seconds >= BEHIND_SECONDS, full) {
            (true, true) => (
                StatementKind::Exhausted,
                format!(
                    "the queue {name} is {} behind (latency): {size:.0} jobs wait in it, {all:.0} in all{threads}, so none is free: its jobs come faster \
                     than they are done, or they hang",
                    duration(ns_of(seconds))
                ),
            ),
            (true, false) => (
                StatementKind::Stalled,
                format!(
                    "the queue {name} is {} behind (latency): {size:.0} jobs wait in it, {all:.0} in all{threads}: nobody serves this queue, or not \
                     before the others",
                    duration(ns_of(seconds))
                ),
            ),
            (false, _) => (
                StatementKind::WithinNorm,
                format!(
                    "no queue of Sidekiq is a minute behind; the most is {name} with {seconds:.2} s{threads}"
                ),
            ),
        };
        out.statement(statements::one(
            kind,
            Some(ns_of(seconds)).filter(|ns| *ns > 0),
            quote,
            text,
        ));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const REPORT: &str = "Sidekiq 7.1.2\n2024-01-02 10:00:00 UTC\n\n---- Overview ----\n  Processed: 9,123\n     Failed: 12\n       Busy: 10\n   Enqueued: 1,210\n\n\
        ---- Processes (1) ----\nweb-1:9:ab [jobs]\n  Threads: 10 (10 busy)\n   Queues: default, mail\n\n---- Queues (2) ----\nNAME      SIZE  LATENCY\ndefault  1,200  1,804.10\nmail        10     2.10\n";

    fn said(text: &str) -> (StatementKind, String) {
        let observed = read_text("s", text.as_bytes()).observed;
        assert_eq!(observed.sources[0].format, "sidekiq-report");
        let one = observed.statements.iter().find(|one| one.of_reader).unwrap();
        (one.kind, one.text.clone())
    }

    #[test]
    fn a_queue_that_is_behind_while_all_are_at_work() {
        let (kind, text) = said(REPORT);
        assert_eq!(kind, StatementKind::Exhausted);
        assert!(
            text.starts_with("the queue default is 30 min 4 s behind (latency): 1200 jobs wait in it, 1210 in all; 10 of 10 threads of Sidekiq are at work"),
            "{text}"
        );
    }

    #[test]
    fn a_queue_that_nobody_serves() {
        assert_eq!(
            said(&REPORT.replace("(10 busy)", "(2 busy)")).0,
            StatementKind::Stalled
        );
    }

    #[test]
    fn queues_that_are_served() {
        assert_eq!(
            said(&REPORT.replace("1,804.10", "0.41")).0,
            StatementKind::WithinNorm
        );
        let disks = "NAME   SIZE TYPE\nsda    10G disk\n";
        assert_ne!(
            read_text("s", disks.as_bytes()).observed.sources[0].format,
            "sidekiq-report"
        );
    }
}
