//! `tc -s qdisc`: queues in front of network devices.
//!
//! In: a line for each queue, and below it what was sent, what was dropped and what waits. Out: the queue that dropped the largest part.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("tc-queues", Family::Host, recognise)
    .about("tc -s qdisc")
    .openings(&["qdisc "]);

/// A part of all packets from which a loss is much, as in lists of counters.
const MIN_LOSS_SHARE: f64 = 0.001;

const NAME: usize = 100;

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    let mut lines = text.lines().map(str::trim_start);
    let has = |begin: &str, within: &str| {
        let mut lines = text.lines().map(str::trim_start);
        lines.any(|line| line.starts_with(begin) && line.contains(within))
    };
    match has("Sent ", "pkt (dropped ")
        && lines.any(|line| line.starts_with("qdisc ") || line.starts_with("class "))
    {
        true => Sureness::Certain,
        false => Sureness::No,
    }
}

#[derive(Debug, Default)]
struct Queue {
    name: String,
    sent: u64,
    dropped: u64,
    waiting: String,
    quote: Quote,
}

impl Queue {
    fn part(&self) -> f64 {
        self.dropped as f64 / (self.sent.saturating_add(self.dropped)).max(1) as f64
    }
}

#[derive(Debug, Default)]
struct Reader {
    now: Option<Queue>,
    worst: Option<Queue>,
}

/// The number behind a word.
fn behind(words: &[&str], name: &str) -> Option<u64> {
    let at = words.iter().position(|word| *word == name)?;
    words.get(at + 1)?.trim_end_matches([',', ')']).parse().ok()
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..400).unwrap_or(line));
        let words: Vec<&str> = text
            .split_whitespace()
            .map(|word| word.trim_start_matches('('))
            .collect();
        match (words.as_slice(), &mut self.now) {
            ([], _) => Understood::Ignorable,
            (["qdisc" | "class", kind, handle, place @ ..], _) => {
                self.close();
                let device = place
                    .iter()
                    .position(|word| *word == "dev")
                    .and_then(|at| place.get(at + 1));
                let of = device.map(|device| format!(" of {device}")).unwrap_or_default();
                self.now = Some(Queue {
                    name: format!("{kind} {handle}{of}").chars().take(NAME).collect(),
                    quote: out.here(),
                    ..Queue::default()
                });
                Understood::Evidence
            }
            (["Sent", _, "bytes", sent, ..], Some(queue)) => {
                queue.sent = sent.parse().unwrap_or(0);
                queue.dropped = behind(&words, "dropped").unwrap_or(0);
                queue.quote = out.here();
                Understood::Evidence
            }
            (["backlog", _, packets, ..], Some(queue)) => {
                queue.waiting = packets.trim_end_matches('p').chars().take(20).collect();
                Understood::Evidence
            }
            _ => Understood::Ignorable,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close();
        let Some(worst) = self.worst.take() else { return };
        let kind = match worst.part() >= MIN_LOSS_SHARE {
            true => StatementKind::Failed,
            false => StatementKind::WithinNorm,
        };
        let waiting = match worst.waiting.as_str() {
            "" | "0" => String::new(),
            waiting => format!(", {waiting} packets wait in it"),
        };
        let text = format!(
            "queue {} dropped {} of {} packets, {:.2} % (from {} % on it is much){waiting}",
            worst.name,
            worst.dropped,
            worst.sent.saturating_add(worst.dropped),
            worst.part() * 100.0,
            MIN_LOSS_SHARE * 100.0
        );
        out.statement(Statement {
            share: Some(worst.part()),
            ..statements::one(kind, None, worst.quote, text)
        });
    }
}

impl Reader {
    fn close(&mut self) {
        let Some(now) = self.now.take() else { return };
        if self.worst.as_ref().is_none_or(|worst| now.part() > worst.part()) {
            self.worst = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    #[test]
    fn the_queue_that_drops_most() {
        let text = "qdisc mq 0: dev eth0 root\n Sent 812 bytes 900 pkt (dropped 0, overlimits 0 requeues 1)\n backlog 0b 0p requeues 1\n\
            qdisc fq_codel 0: dev eth1 parent :1 limit 10240p\n Sent 812 bytes 900 pkt (dropped 100, overlimits 0 requeues 1)\n backlog 81Kb 54p requeues 1\n";
        let reading = read_text("t", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "tc-queues");
        let one = &reading.observed.statements[0];
        assert_eq!(
            one.text,
            "queue fq_codel 0: of eth1 dropped 100 of 1000 packets, 10.00 % (from 0.1 % on it is much), 54 packets wait in it"
        );
        assert_eq!(one.kind, StatementKind::Failed);
        let well = read_text("t", text.replace("100,", "0,").as_bytes());
        assert_eq!(well.observed.statements[0].kind, StatementKind::WithinNorm);
    }
}
