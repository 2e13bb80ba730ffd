//! `kafka-consumer-groups --describe`: of which topic a group of consumers is behind, and whether it has consumers.
//!
//! In: a heading with `TOPIC`, `PARTITION`, `CURRENT-OFFSET`, `LOG-END-OFFSET` and `LAG`, and a row for each partition; `-` stands for what there
//! is none of. Out: a statement about the partition with the largest lag, and one about a group without consumers.
//! Source: `ConsumerGroupCommand.scala` of Kafka.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{Largest, any_line, holds, name_of, number, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("kafka-consumer-groups", Family::Host, recognise)
    .about("kafka-consumer-groups --describe");

/// Groups without consumers that are told by name.
const MAX_GROUPS: usize = 20;

/// Columns of a row.
const MAX_COLUMNS: usize = 20;

fn recognise(head: &[u8]) -> Sureness {
    let table = holds(head, "LAG") && any_line(head, |line| Heading::of(line).is_some());
    Sureness::certain_if(
        table || holds(head, "Consumer group") && any_line(head, |line| inactive(line).is_some()),
    )
}

/// Which word of a row is what.
#[derive(Debug, Clone, PartialEq)]
struct Heading {
    group: Option<usize>,
    topic: usize,
    partition: usize,
    end: usize,
    lag: usize,
    consumer: Option<usize>,
}

impl Heading {
    fn of(line: &str) -> Option<Heading> {
        let names: Vec<&str> = line.split_whitespace().take(MAX_COLUMNS).collect();
        let at = |name: &str| names.iter().position(|known| *known == name);
        Some(Heading {
            group: at("GROUP"),
            topic: at("TOPIC")?,
            partition: at("PARTITION")?,
            end: at("LOG-END-OFFSET")?,
            lag: at("LAG")?,
            consumer: at("CONSUMER-ID"),
        })
    }
}

/// `Consumer group 'billing' has no active members.`
fn inactive(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("Consumer group '")?;
    let (group, rest) = rest.split_once('\'')?;
    (rest.contains("has no active members") || rest.contains("is rebalancing")).then_some(group)
}

#[derive(Debug, Default)]
struct Reader {
    heading: Option<Heading>,
    lags: Largest,
    /// Partitions that nobody reads though they have a lag.
    unread: u64,
    /// Of the partition with the largest lag.
    nobody: bool,
    inactive: Vec<(String, bool, Quote)>,
}

impl Reader {
    fn row(&mut self, text: &str, out: &Out<'_>) -> Option<()> {
        let heading = self.heading.as_ref()?;
        let words: Vec<&str> = text.split_whitespace().take(MAX_COLUMNS).collect();
        let word = |at: usize| words.get(at).copied();
        let (topic, partition) = (word(heading.topic)?, word(heading.partition)?);
        number(partition)?;
        let lag = match word(heading.lag)? {
            // Nothing was ever read of it: what is in it is not known from here.
            "-" => 0.0,
            lag => number(lag.trim_start_matches('-'))?,
        };
        let group = heading
            .group
            .and_then(word)
            .map_or_else(String::new, |group| format!(" of group {}", name_of(group)));
        let nobody = heading
            .consumer
            .is_some_and(|at| matches!(word(at), None | Some("-")));
        let end = word(heading.end).unwrap_or_default();
        let name = format!(
            "partition {partition} of topic {}{group}, whose log ends at {end},",
            name_of(topic)
        );
        self.unread += u64::from(nobody && lag > 0.0);
        if self.lags.take(lag, &name, out.here()) {
            self.nobody = nobody;
        }
        Some(())
    }
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if let Some(heading) = Heading::of(&text) {
            // Of another group the heading comes again: the largest is that of all.
            self.heading = Some(heading);
            return Understood::Evidence;
        }
        if let Some(group) = inactive(&text) {
            if self.inactive.len() < MAX_GROUPS {
                let rebalances = text.contains("is rebalancing");
                self.inactive.push((name_of(group), rebalances, out.here()));
            }
            return Understood::Evidence;
        }
        match self.row(&text, out) {
            Some(()) => Understood::Evidence,
            None => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        for (group, rebalances, quote) in read.inactive {
            let text = match rebalances {
                true => format!("consumer group {group} is rebalancing: none of its members reads meanwhile"),
                false => format!("consumer group {group} has no active members: nobody reads for it"),
            };
            // A group that runs now and then has none in between; it is trouble where messages wait for it.
            let kind = match rebalances || read.unread > 0 {
                true => StatementKind::Stalled,
                false => StatementKind::Took,
            };
            out.statement(statements::one(kind, None, quote, text));
        }
        let Some((lag, name, quote)) = &read.lags.first else {
            return;
        };
        if *lag <= 0.0 {
            let text = format!(
                "no partition has a lag: {} partitions, the largest lag is 0",
                read.lags.count
            );
            out.statement(statements::one(
                StatementKind::WithinNorm,
                None,
                quote.clone(),
                text,
            ));
            return;
        }
        let mut text = format!("{name} has the largest lag: {lag:.0} messages");
        if read.lags.count > 1 {
            text.push_str(&format!(
                " of {:.0} of all {} partitions",
                read.lags.sum, read.lags.count
            ));
        }
        if read.nobody {
            text.push_str("; no consumer is assigned to it");
        }
        if read.unread > 1 {
            text.push_str(&format!(
                "; {} partitions with a lag have no consumer",
                read.unread
            ));
        }
        // A lag alone may be that of an instant; nobody there to read it is not.
        let kind = match read.nobody {
            true => StatementKind::Stalled,
            false => StatementKind::Took,
        };
        out.statement(statements::one(kind, None, quote.clone(), text));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const ROWS: &str = "GROUP    TOPIC   PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG    CONSUMER-ID   HOST        CLIENT-ID\n\
        billing  orders  0          1000            1010            10     bill-1-aa     /10.0.0.4   bill-1\n\
        billing  orders  1          2000            90500           88500  bill-2-bb     /10.0.0.5   bill-2\n";

    #[test]
    fn the_partition_with_the_largest_lag() {
        let reading = read_text("k", ROWS.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "kafka-consumer-groups");
        assert_eq!(reading.accounts[0].not_understood, 0);
        assert_eq!(
            reading.texts(),
            [
                "partition 1 of topic orders of group billing, whose log ends at 90500, has the largest lag: 88500 messages of 88510 of \
                 all 2 partitions"
            ]
        );
        assert_eq!(reading.observed.statements[0].kind, StatementKind::Took);
    }

    #[test]
    fn a_group_without_consumers() {
        let text = format!(
            "Consumer group 'billing' has no active members.\n\n{}",
            ROWS.replace("bill-2-bb     /10.0.0.5   bill-2", "-             -           -")
        );
        let reading = read_text("k", text.as_bytes());
        assert!(
            reading.texts()[0].starts_with("consumer group billing has no active members"),
            "{reading:?}"
        );
        assert!(
            reading.texts()[1].ends_with("; no consumer is assigned to it"),
            "{reading:?}"
        );
        assert_eq!(reading.observed.statements[1].kind, StatementKind::Stalled);
    }

    #[test]
    fn without_a_lag_all_is_well_and_other_tables_are_none() {
        let well = ROWS.replace("88500", "0").replace(" 10 ", " 0  ");
        assert_eq!(
            read_text("k", well.as_bytes()).observed.statements[0].kind,
            StatementKind::WithinNorm
        );
        let other = "TOPIC PARTITION LEADER\norders 1 3\n";
        assert_ne!(
            read_text("k", other.as_bytes()).observed.sources[0].format,
            "kafka-consumer-groups"
        );
    }
}
