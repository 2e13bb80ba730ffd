//! `nodetool status`: which nodes of a Cassandra cluster are up.
//!
//! In: `Datacenter: dc1`, a legend, and a row for each node that begins with two letters: up or down, normal, leaving, joining, moving or stopped.
//! Out: one statement: the nodes that are down, else those that join, leave or move, else that all are up.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{any_line, name_of};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("cassandra-ring", Family::Databases, recognise).about("nodetool status");

/// What other lines begin with.
const LEGEND: [&str; 5] = ["Datacenter:", "====", "Status=Up", "|/ State=", "--"];

/// Nodes that are named.
const MAX_NAMED: usize = 4;

fn recognise(head: &[u8]) -> Sureness {
    Sureness::certain_if(any_line(head, |line| line.starts_with("|/ State=Normal/")))
}

#[derive(Debug, Default)]
struct Reader {
    quote: Option<Quote>,
    nodes: usize,
    down: Vec<String>,
    moving: Vec<String>,
}

/// The letters of a row and the address or name behind them: `DN  10.0.0.2  1.1 TiB …`.
fn row(text: &str) -> Option<(bool, char, &str)> {
    let mut words = text.split_whitespace();
    let mut letters = words.next().filter(|word| word.len() == 2)?.chars();
    let (up, state) = (letters.next()?, letters.next()?);
    let address = words.next()?;
    (matches!(up, 'U' | 'D') && matches!(state, 'N' | 'L' | 'J' | 'M' | 'S')).then_some((
        up == 'U',
        state,
        address,
    ))
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let Some((up, state, address)) = row(text) else {
            return match LEGEND.iter().any(|begin| text.starts_with(begin)) {
                true => Understood::Ignorable,
                false => Understood::No,
            };
        };
        self.nodes += 1;
        let list = match (up, state) {
            (false, _) | (true, 'S') => &mut self.down,
            (true, 'N') => {
                self.quote.get_or_insert_with(|| out.here());
                return Understood::Evidence;
            }
            _ => &mut self.moving,
        };
        if self.quote.is_none() || list.is_empty() {
            self.quote = Some(out.here());
        }
        if list.len() < MAX_NAMED {
            let name = name_of(address);
            list.push(match (up, state) {
                (_, 'S') => format!("{name} (stopped)"),
                _ => name,
            });
        } else {
            out.account().left_out += 1;
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let all = std::mem::take(self);
        let Some(quote) = all.quote else { return };
        let (kind, text) = if !all.down.is_empty() {
            let text = format!(
                "of {} nodes of Cassandra these are down (DN): {}; writes for them wait as hints, and reads that want their copies fail",
                all.nodes,
                all.down.join(", ")
            );
            (StatementKind::Unreachable, text)
        } else if !all.moving.is_empty() {
            let text = format!(
                "of {} nodes of Cassandra these join, leave or move, for which data is copied: {}",
                all.nodes,
                all.moving.join(", ")
            );
            (StatementKind::Warned, text)
        } else {
            let text = format!("all {} nodes of Cassandra are up (UN)", all.nodes);
            (StatementKind::WithinNorm, text)
        };
        out.statement(statements::one(kind, None, quote, text));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(states: &[&str]) -> (StatementKind, String) {
        let mut text = "Datacenter: dc1\n===============\nStatus=Up/Down\n|/ State=Normal/Leaving/Joining/Moving\n--  Address  Load  Tokens\n".to_owned();
        for (state, number) in states.iter().zip(1..) {
            text.push_str(&format!("{state}  10.0.0.{number}   1.2 TiB    256     33.1%\n"));
        }
        let reading = read_text("n", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "cassandra-ring");
        let one = &reading.observed.statements[0];
        (one.kind, one.text.clone())
    }

    #[test]
    fn nodes_that_are_down_and_such_as_move() {
        let (kind, told) = said(&["UN", "DN", "UN"]);
        assert_eq!(kind, StatementKind::Unreachable);
        assert!(
            told.starts_with("of 3 nodes of Cassandra these are down (DN): 10.0.0.2;"),
            "{told}"
        );
        assert_eq!(said(&["UN", "UJ"]).0, StatementKind::Warned);
        let (kind, told) = said(&["UN", "DS"]);
        assert_eq!(kind, StatementKind::Unreachable);
        assert!(told.contains("10.0.0.2 (stopped)"), "{told}");
        // With `-r` it prints names.
        let named =
            "|/ State=Normal/Leaving/Joining/Moving\nUN  cass1  1.2 TiB  256\nDN  cass3  1.2 TiB  256\n";
        let told = read_text("n", named.as_bytes()).observed.statements[0]
            .text
            .clone();
        assert!(
            told.starts_with("of 2 nodes of Cassandra these are down (DN): cass3;"),
            "{told}"
        );
    }

    #[test]
    fn a_whole_ring_is_well() {
        assert_eq!(
            said(&["UN", "UN"]),
            (
                StatementKind::WithinNorm,
                "all 2 nodes of Cassandra are up (UN)".to_owned()
            )
        );
        let _ = read_text("n", b"|/ State=Normal/\nDN\nDN x\nUN 1.2\n\xff\xff 1.2\n");
    }
}
