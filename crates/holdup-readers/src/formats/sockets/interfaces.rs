//! `netstat -i`: what each interface received and sent, and what it lost.
//!
//! In: a heading with `RX-OK`, `RX-DRP` and so on, a row for each interface. Out: one statement: the interface that lost the largest part of its
//! packets, or that none lost many. Counts are since boot.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{any_line, name_of, number};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("netstat-interfaces", Family::Host, recognise).about("netstat -i");

/// A part of all packets that was lost from which it is much: the norm of lists of counters.
const MIN_LOST_SHARE: f64 = 0.001;

/// Packets from which a share says something.
const MIN_PACKETS: f64 = 1_000.0;

/// What is lost, by the columns' ends, what that means, and whether it is a fault: a host drops what it does not want, too.
const LOST: [(&str, &str, bool); 3] = [
    ("ERR", "had errors: cable, port or card", true),
    (
        "DRP",
        "were dropped: nobody wanted them, or their queue was full",
        false,
    ),
    ("OVR", "came faster than they were taken (overruns)", true),
];

fn recognise(head: &[u8]) -> Sureness {
    Sureness::certain_if(any_line(head, |line| !Columns::of(line).names.is_empty()))
}

/// The names of a heading.
#[derive(Debug, Default)]
struct Columns {
    names: Vec<String>,
}

impl Columns {
    /// `Iface  MTU  RX-OK RX-ERR RX-DRP RX-OVR  TX-OK TX-ERR TX-DRP TX-OVR Flg`; without names where it is none.
    fn of(text: &str) -> Columns {
        let is = text.starts_with("Iface") && text.contains(" RX-OK") && text.contains(" TX-OK");
        let names = text.split_whitespace().map(str::to_owned);
        Columns {
            names: if is { names.collect() } else { Vec::new() },
        }
    }

    fn value(&self, words: &[&str], name: &str) -> Option<f64> {
        let at = self.names.iter().position(|known| known == name)?;
        number(words.get(at)?)
    }
}

#[derive(Debug, Default)]
struct Reader {
    columns: Columns,
    quote: Option<Quote>,
    interfaces: usize,
    /// Whether that is a fault, the largest part that was lost, and what is told of it.
    worst: Option<(bool, f64, String, Quote)>,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let columns = Columns::of(text);
        if !columns.names.is_empty() {
            self.columns = columns;
            return Understood::Evidence;
        }
        let words: Vec<&str> = text.split_whitespace().take(16).collect();
        // A row lacks the flags at most.
        if self.columns.names.is_empty() || words.len() + 1 < self.columns.names.len() {
            return match text.starts_with("Kernel Interface table") {
                true => Understood::Ignorable,
                false => Understood::No,
            };
        }
        let mut is_row = false;
        for (way, verb) in [("RX", "received"), ("TX", "sent")] {
            let Some(packets) = self.columns.value(&words, &format!("{way}-OK")) else {
                continue;
            };
            is_row = true;
            for (what, means, fault) in LOST {
                let Some(lost) = self.columns.value(&words, &format!("{way}-{what}")) else {
                    continue;
                };
                let share = lost / (lost + packets).max(1.0);
                let larger = self
                    .worst
                    .as_ref()
                    .is_none_or(|(of_fault, worst, ..)| (fault, share) > (*of_fault, *worst));
                if lost + packets >= MIN_PACKETS && share >= MIN_LOST_SHARE && larger {
                    let name = words.first().map(|name| name_of(name)).unwrap_or_default();
                    let told = format!(
                        "{name}: {lost:.0} packets {means} ({way}-{what}) beside {packets:.0} that were {verb}, {:.1} % since boot",
                        share * 100.0
                    );
                    self.worst = Some((fault, share, told, out.here()));
                }
            }
        }
        if !is_row {
            return Understood::No;
        }
        self.interfaces += 1;
        self.quote.get_or_insert_with(|| out.here());
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let all = std::mem::take(self);
        let Some(quote) = all.quote else { return };
        let statement = match all.worst {
            Some((fault, share, text, quote)) => {
                let kind = match fault {
                    true => StatementKind::Failed,
                    false => StatementKind::Warned,
                };
                Statement {
                    share: Some(share.min(1.0)),
                    ..statements::one(kind, None, quote, text)
                }
            }
            None => {
                let text = format!(
                    "none of {} interfaces lost {} % of its packets or more",
                    all.interfaces,
                    MIN_LOST_SHARE * 100.0
                );
                statements::one(StatementKind::WithinNorm, None, quote, text)
            }
        };
        out.statement(statement);
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(rows: &str) -> (StatementKind, String) {
        let text = format!(
            "Kernel Interface table\nIface      MTU    RX-OK RX-ERR RX-DRP RX-OVR    TX-OK TX-ERR TX-DRP TX-OVR Flg\n{rows}"
        );
        let reading = read_text("n", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "netstat-interfaces");
        let one = &reading.observed.statements[0];
        (one.kind, one.text.clone())
    }

    #[test]
    fn the_interface_that_lost_most() {
        let (kind, told) = said(
            "eth0      1500  1200345      0  88321 0       903456      0      0      0 BMRU\nlo       65536    12034      0      0 0        12034      0      0      0 LRU\n",
        );
        assert_eq!(kind, StatementKind::Warned);
        assert_eq!(
            told,
            "eth0: 88321 packets were dropped: nobody wanted them, or their queue was full (RX-DRP) beside 1200345 that were received, 6.9 % since boot"
        );
        let errors = "eth1      1500  100000   5000      0 0       100000      0      0      0 BMRU\n";
        let (kind, told) = said(errors);
        assert_eq!(kind, StatementKind::Failed);
        assert!(told.contains("had errors"), "{told}");
        // A fault is told before what may be none.
        let dropped = "eth0      1500  1200345      0  88321 0       903456      0      0      0 BMRU\n";
        assert_eq!(said(&format!("{errors}{dropped}")).0, StatementKind::Failed);
        assert_eq!(said(&format!("{dropped}{errors}")).0, StatementKind::Failed);
    }

    #[test]
    fn few_of_many_or_hardly_any_packets_are_well() {
        let (kind, _) =
            said("eth0      1500  1200345      3     21 0       903456      0      0      0 BMRU\n");
        assert_eq!(kind, StatementKind::WithinNorm);
        let (kind, _) =
            said("wg0       1420       12      0      9 0           12      0      0      0 OPRU\n");
        assert_eq!(kind, StatementKind::WithinNorm);
        let _ = read_text("n", b"Iface RX-OK TX-OK\neth0 x\neth0 1 2\n");
    }
}
