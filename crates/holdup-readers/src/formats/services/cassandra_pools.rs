//! `nodetool tpstats` of Cassandra: in which pool tasks wait, which were refused, and which messages were dropped.
//!
//! In: a heading `Pool Name  Active  Pending  Completed  Blocked  All time blocked`, a row for each pool, and below `Message type  Dropped` a row
//! for each type. Out: a statement about blocked tasks, about the longest queue, and about dropped messages.
//! Source: Cassandra's documentation, "nodetool tpstats" and "Thread pool and read/write latency statistics".

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{Largest, any_line, holds, number, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::StatementKind;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("nodetool-tpstats", Family::Host, recognise).about("nodetool tpstats");

fn recognise(head: &[u8]) -> Sureness {
    Sureness::certain_if(
        holds(head, "All time blocked") && any_line(head, |line| line.starts_with("Pool Name ")),
    )
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum Part {
    #[default]
    Other,
    Pools,
    Messages,
}

#[derive(Debug, Default)]
struct Reader {
    part: Part,
    pending: Largest,
    /// Beside the longest queue, how many are at work.
    active: f64,
    blocked: Largest,
    ever_blocked: Largest,
    dropped: Largest,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if text.starts_with("Pool Name ") {
            if self.pending.count > 0 {
                self.end(out);
            }
            self.part = Part::Pools;
            return Understood::Evidence;
        }
        if text.starts_with("Message type ") && text.contains("Dropped") {
            self.part = Part::Messages;
            return Understood::Evidence;
        }
        let words: Vec<&str> = text.split_whitespace().take(12).collect();
        match (self.part, words.as_slice()) {
            (Part::Pools, [pool, active, pending, _, blocked, ever]) => {
                let figures = [active, pending, blocked, ever].map(|word| number(word));
                let [Some(active), Some(pending), Some(blocked), Some(ever)] = figures else {
                    return Understood::No;
                };
                if self.pending.take(pending, pool, out.here()) {
                    self.active = active;
                }
                self.blocked.take(blocked, pool, out.here());
                self.ever_blocked.take(ever, pool, out.here());
            }
            (Part::Messages, [kind, dropped, ..]) => match number(dropped) {
                Some(dropped) => {
                    self.dropped.take(dropped, kind, out.here());
                }
                None => return Understood::No,
            },
            _ => return Understood::No,
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let some = |largest: &Largest| largest.first.clone().filter(|(value, ..)| *value > 0.0);
        let mut well = true;
        let count = |value: f64| format!("{value:.0}");
        if let Some((blocked, pool, quote)) = some(&read.blocked) {
            well = false;
            let text =
                format!("{blocked:.0} tasks of Cassandra's pool {pool} are blocked: its queue is full");
            out.statement(statements::one(StatementKind::Exhausted, None, quote, text));
        }
        // How many may wait depends on the load: only with what was refused or dropped it is too many. Counts since the start say
        // nothing of now, so that dropped messages alone are no trouble.
        let refuses = !well || some(&read.dropped).is_some();
        if let Some((pending, pool, quote)) =
            some(&read.pending).filter(|(pending, ..)| *pending > read.active)
        {
            well = false;
            let next = read.pending.and_next(count);
            let text = format!(
                "{pending:.0} tasks wait in Cassandra's pool {pool}, in which {:.0} are at work{next}",
                read.active
            );
            let kind = match refuses {
                true => StatementKind::Stalled,
                false => StatementKind::Took,
            };
            out.statement(statements::one(kind, None, quote, text));
        }
        let waits = !well;
        if let Some((dropped, kind, quote)) = some(&read.dropped) {
            well = false;
            let next = read.dropped.and_next(count);
            let text = format!(
                "{dropped:.0} messages of type {kind} were dropped since Cassandra began, because they waited for too long{next}"
            );
            let kind = match waits {
                true => StatementKind::Warned,
                false => StatementKind::Took,
            };
            out.statement(statements::one(kind, None, quote, text));
        }
        if let Some((ever, pool, quote)) = some(&read.ever_blocked).filter(|_| well) {
            let text = format!(
                "{ever:.0} tasks of Cassandra's pool {pool} were blocked since it began; none is now"
            );
            out.statement(statements::one(StatementKind::Took, None, quote, text));
            return;
        }
        if let Some((pending, pool, quote)) = read.pending.first.filter(|_| well) {
            let text = format!(
                "nothing is blocked or dropped; most tasks wait in pool {pool}: {pending:.0}, while {:.0} are at work",
                read.active
            );
            out.statement(statements::one(StatementKind::WithinNorm, None, quote, text));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const POOLS: &str = "Pool Name                         Active   Pending      Completed   Blocked  All time blocked\n\
        MutationStage                         32      9120       81203311         0                 0\n\
        ReadStage                              2         4        1203311         0                 0\n\
        Native-Transport-Requests            128       300        9203311         7               410\n\n\
        Message type           Dropped\nREAD                         0\nMUTATION                  5120\n";

    #[test]
    fn what_is_blocked_waits_and_was_dropped() {
        let reading = read_text("n", POOLS.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "nodetool-tpstats");
        assert_eq!(reading.accounts[0].not_understood, 0);
        assert_eq!(
            reading.texts(),
            [
                "7 tasks of Cassandra's pool Native-Transport-Requests are blocked: its queue is full",
                "9120 tasks wait in Cassandra's pool MutationStage, in which 32 are at work; next Native-Transport-Requests, 300",
                "5120 messages of type MUTATION were dropped since Cassandra began, because they waited for too long",
            ]
        );
    }

    #[test]
    fn a_node_that_keeps_up_is_well() {
        let text = POOLS
            .replace("9120", "   4")
            .replace("         7               410", "         0                 0")
            .replace("5120", "   0")
            .replace("128       300", "128         3");
        assert_eq!(
            read_text("n", text.as_bytes()).observed.statements[0].kind,
            StatementKind::WithinNorm
        );
    }

    #[test]
    fn messages_that_were_dropped_once_are_no_trouble() {
        let text = "Pool Name     Active   Pending   Completed   Blocked  All time blocked\n\
            ReadStage          2         1        3311         0                 0\n\nMessage type    Dropped\nREAD    3\n";
        let reading = read_text("n", text.as_bytes());
        assert_eq!(reading.observed.statements[0].kind, StatementKind::Took);
    }

    #[test]
    fn other_tables_are_none() {
        let text = "Pool Name   Size\nmain  3\n";
        assert_ne!(
            read_text("n", text.as_bytes()).observed.sources[0].format,
            "nodetool-tpstats"
        );
    }
}
