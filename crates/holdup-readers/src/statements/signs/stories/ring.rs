//! A network card whose ring of packets to send does not move: drivers of Intel's cards print the ring with it.
//!
//! In: `Detected Hardware Unit Hang:` and the lines below it, with figures in hexadecimal. Out: for each interface the head and the tail of the
//! ring, whether the head stood still from one report to the next, and for how long the oldest packet waits.

use super::{Line, Span};
use crate::statements::signs::Told;
use crate::statements::tables::Fact;
use holdup_evidence::observed::StatementKind;
use holdup_evidence::units::duration;

/// Lines below the first that belong to it.
const BLOCK: u64 = 24;

/// Interfaces that are followed.
const MAX_UNITS: usize = 32;

/// Bytes of a name.
const MAX_BYTES: usize = 80;

/// Words of a name, driver and address and interface.
const NAME_WORDS: usize = 3;

/// The interfaces of one artefact.
#[derive(Debug, Default)]
pub(super) struct Rings {
    units: Vec<Unit>,
    /// The one whose report is being read, and where that began.
    current: Option<(usize, u64)>,
}

#[derive(Debug, Default)]
struct Unit {
    name: String,
    reports: u64,
    head: Option<String>,
    tail: Option<String>,
    /// Whether the head was elsewhere in another report.
    moved: bool,
    sent: Option<u64>,
    now: Option<u64>,
    span: Span,
}

impl Rings {
    pub(super) fn line(&mut self, line: Line<'_>) {
        if let Some((before, _)) = line.text.split_once(": Detected ") {
            if line.text.contains("Unit Hang") {
                self.begin(before, line);
            }
            return;
        }
        let Some((place, begun)) = self.current else {
            return;
        };
        if line.number > begun + BLOCK {
            self.current = None;
            return;
        }
        let Some(unit) = self.units.get_mut(place) else {
            return;
        };
        let mut values = line
            .text
            .split('<')
            .skip(1)
            .filter_map(|rest| rest.split('>').next().map(str::trim));
        let Some(first) = values.next().filter(|value| value.len() <= 16) else {
            return;
        };
        let has = |name: &str| line.text.contains(name);
        if has("TDH, TDT") {
            unit.head(first);
            unit.tail = values.next().map(str::to_owned);
        } else if has("TDH ") {
            unit.head(first);
        } else if has("TDT ") {
            unit.tail = Some(first.to_owned());
        } else if has("time_stamp ") {
            unit.sent = u64::from_str_radix(first, 16).ok();
        } else if has("jiffies ") {
            unit.now = u64::from_str_radix(first, 16).ok();
        }
    }

    fn begin(&mut self, before: &str, line: Line<'_>) {
        let mut words: Vec<&str> = before.split_whitespace().rev().take(NAME_WORDS).collect();
        words.reverse();
        // What a log has before the driver's name ends with a bracket or a colon.
        let from = words
            .iter()
            .rposition(|word| word.ends_with([']', ':']))
            .map_or(0, |at| at + 1);
        let name = words.get(from..).unwrap_or_default().join(" ");
        let place = match self.units.iter().position(|unit| unit.name == name) {
            Some(place) => place,
            None if self.units.len() < MAX_UNITS && name.len() <= MAX_BYTES => {
                self.units.push(Unit {
                    name,
                    ..Unit::default()
                });
                self.units.len() - 1
            }
            None => return,
        };
        if let Some(unit) = self.units.get_mut(place) {
            unit.reports += 1;
            unit.span.add(line);
        }
        self.current = Some((place, line.number));
    }

    pub(super) fn end(self, told: &mut Told) -> Vec<Fact> {
        // Without the ring its message says all that there is.
        let known = self
            .units
            .iter()
            .filter(|unit| unit.head.is_some() && unit.head != unit.tail);
        let facts = known.map(|unit| Fact {
            kind: StatementKind::Stalled,
            share: None,
            ns: unit.span.ns(),
            line: unit.span.tell(told),
            text: unit.sentence(),
        });
        facts.collect()
    }
}

impl Unit {
    fn head(&mut self, head: &str) {
        self.moved |= self.head.as_deref().is_some_and(|before| before != head);
        self.head = Some(head.to_owned());
    }

    fn sentence(&self) -> String {
        let place = |place: &Option<String>| place.clone().unwrap_or_else(|| "unknown".to_owned());
        let mut said = format!(
            "the network card {} does not send: its transmit ring {} (head {}, tail {})",
            self.name,
            if self.moved {
                "stops again and again"
            } else {
                "does not move"
            },
            place(&self.head),
            place(&self.tail)
        );
        if self.reports > 1 {
            said.push_str(&format!(", in {} reports", self.reports));
        }
        if let Some(ns) = self.span.ns() {
            said.push_str(&format!(" over {}", duration(ns)));
        }
        let waited = self
            .now
            .zip(self.sent)
            .and_then(|(now, sent)| now.checked_sub(sent));
        if let Some(jiffies) = waited.filter(|jiffies| *jiffies > 0) {
            said.push_str(&format!(
                ", the oldest packet waits for {jiffies} ticks of the kernel's clock"
            ));
        }
        said.push_str("; packets pile up until the card is reset (turning off TSO often helps)");
        said
    }
}
