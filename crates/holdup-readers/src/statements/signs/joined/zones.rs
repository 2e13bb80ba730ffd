//! Memory that the kernel could not give while there was some: how much a zone has free beside its lowest mark, and whether a piece of the size
//! that was asked for is free at all.
//!
//! In: `java: page allocation failure: order:0, mode:0x…`, `Node 0 Normal free:2264kB min:13224kB low:…`, `Node 0 Normal: 486*4kB 46*8kB … = 2344kB`,
//! `Free swap  = 7812092kB`. Out: one fact for the failures. Where a process was ended for its memory, that says more, and nothing is told here.

use super::{Line, behind, leading_number};
use crate::statements::signs::Told;
use crate::statements::tables::Fact;
use holdup_evidence::observed::StatementKind;
use holdup_evidence::units::bytes;

/// Zones that are kept, failures that are told, and bytes of a name.
const MAX_ZONES: usize = 64;
const MAX_TOLD: usize = 200;
const MAX_CHARS: usize = 40;

/// KiB of the smallest piece.
const PIECE_KIB: u64 = 4;

/// The largest order that the kernel knows.
const MAX_ORDER: u32 = 11;

#[derive(Debug, Default)]
struct Zone {
    name: String,
    free: u64,
    min: u64,
    files: u64,
    /// The size of the largest piece that is free, KiB.
    largest: Option<u64>,
}

#[derive(Debug)]
struct Failure {
    process: String,
    order: u32,
    mode: String,
    number: u64,
}

#[derive(Debug, Default)]
pub(super) struct Zones {
    zones: Vec<Zone>,
    failures: Vec<Failure>,
    count: u64,
    free_swap: Option<u64>,
}

/// KiB behind a name: `free:2264kB`.
fn kib(text: &str, name: &str) -> Option<u64> {
    let (value, rest) = leading_number(behind(text, name)?.trim_start())?;
    rest.starts_with("kB").then_some(value as u64)
}

/// The zone's name before some words: `Node 0 Normal`, where a log has cut the line `Normal`.
fn zone_before(text: &str, words: &str) -> Option<String> {
    let (before, _) = text.split_once(words)?;
    let all: Vec<&str> = before.split_whitespace().collect();
    let name = all
        .last()
        .filter(|name| name.chars().all(char::is_alphanumeric))?;
    let node = match all.len().checked_sub(3).and_then(|at| all.get(at..)) {
        Some([node, number, _]) if node.ends_with("Node") => format!(" of node {number}"),
        _ => String::new(),
    };
    Some(format!("{name}{node}").chars().take(MAX_CHARS).collect())
}

fn failure(line: Line<'_>) -> Option<Failure> {
    let (before, rest) = line.text.split_once(": page allocation failure")?;
    let order = leading_number(behind(rest, "order:")?)?.0 as u32;
    let mode = behind(rest, "mode:")?.split([',', ' ']).next()?;
    Some(Failure {
        process: before
            .rsplit([' ', ']'])
            .next()?
            .chars()
            .take(MAX_CHARS)
            .collect(),
        order: order.min(MAX_ORDER),
        mode: mode.chars().take(2 * MAX_CHARS).collect(),
        number: line.number,
    })
}

/// The largest piece that is free, KiB: `486*4kB (UM) 46*8kB 0*16kB`.
fn largest(text: &str) -> Option<u64> {
    let mut some = false;
    let mut most = 0;
    for word in text.split_whitespace() {
        let Some((count, size)) = word.split_once(['*', '_']) else {
            continue;
        };
        let size = size.strip_suffix("kB").and_then(|size| size.parse::<u64>().ok());
        if let (Ok(count), Some(size)) = (count.parse::<u64>(), size) {
            some = true;
            most = if count > 0 { size.max(most) } else { most };
        }
    }
    some.then_some(most)
}

impl Zones {
    pub(super) fn line(&mut self, line: Line<'_>) {
        let text = line.text;
        if let Some(failure) = failure(line) {
            self.count += 1;
            if self.failures.len() < MAX_TOLD {
                self.failures.push(failure);
            }
            return;
        }
        if let (Some(free), Some(min)) = (kib(text, " free:"), kib(text, " min:")) {
            let Some(name) = zone_before(text, " free:") else {
                return;
            };
            let files = kib(text, "active_file:").unwrap_or(0) + kib(text, "inactive_file:").unwrap_or(0);
            let zone = Zone {
                name,
                free,
                min,
                files,
                largest: None,
            };
            let room = self.zones.len() < MAX_ZONES;
            match self.zones.iter_mut().find(|known| known.name == zone.name) {
                Some(known) => *known = zone,
                None if room => self.zones.push(zone),
                None => {}
            }
            return;
        }
        if text.contains("*4kB") || text.contains("_4kB") {
            // What stands in front of it, a host or a time, may have a colon of its own.
            let from = text.find("Node ").unwrap_or(0);
            let name = text.get(from..).and_then(|text| zone_before(text, ": "));
            let zone = name.and_then(|name| self.zones.iter_mut().find(|zone| zone.name == name));
            if let Some(zone) = zone {
                zone.largest = largest(text);
            }
            return;
        }
        if let Some(rest) = behind(text, "Free swap") {
            self.free_swap = kib(rest, "=").or(self.free_swap);
        }
    }

    pub(super) fn end(self, told: &mut Told) -> Option<Fact> {
        let first = self.failures.first()?;
        let low = self.zones.iter().filter(|zone| zone.free < zone.min);
        let why = match low.max_by_key(|zone| zone.min) {
            Some(zone) => below(zone),
            None => in_pieces(first.order, &self.zones)?,
        };
        for failure in &self.failures {
            told.add(failure.number);
        }
        let files: u64 = self.zones.iter().map(|zone| zone.files).sum();
        let cache = match files {
            0 => String::new(),
            files => format!("; {} of file cache are there to be freed", size_of(files)),
        };
        let swap = match self.free_swap {
            None | Some(0) => String::new(),
            Some(free) => format!(", {} of swap are free", size_of(free)),
        };
        let times = match self.count {
            1 => String::new(),
            count => format!(" ({count} times)"),
        };
        Some(Fact {
            kind: StatementKind::Exhausted,
            share: None,
            ns: None,
            line: first.number,
            text: format!(
                "the kernel could not give {} a piece of {} (page allocation failure, order:{}, mode:{}){times}: {why}{cache}{swap}",
                first.process,
                size_of(PIECE_KIB << first.order),
                first.order,
                first.mode
            ),
        })
    }
}

fn size_of(kib: u64) -> String {
    bytes(kib.saturating_mul(1_024))
}

/// A zone that has less than what the kernel keeps for itself.
fn below(zone: &Zone) -> String {
    format!(
        "zone {} has only {} kB free, below its lowest mark (min) of {} kB, so that the reserve is used up and reclaim does not keep up \
         (vm.min_free_kbytes); what asks without being able to wait fails",
        zone.name, zone.free, zone.min
    )
}

/// Zones with room, and none of it in one piece of this size.
fn in_pieces(order: u32, zones: &[Zone]) -> Option<String> {
    let wanted = PIECE_KIB << order;
    let zone = zones.iter().max_by_key(|zone| zone.free)?;
    let known: Vec<u64> = zones.iter().filter_map(|zone| zone.largest).collect();
    let most = known.iter().max().copied()?;
    (order > 0 && known.len() == zones.len() && most < wanted).then(|| {
        format!(
            "zone {} has {} free, but no piece larger than {}: its memory is fragmented",
            zone.name,
            size_of(zone.free),
            size_of(most)
        )
    })
}
