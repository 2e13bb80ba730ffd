//! Lists of counters of packets: `ethtool -S`, `netstat -s` of BSD and macOS, `ip -s` as names and numbers, and whatever else has a
//! name and a count on each line.
//!
//! In: lines `name: 12` and `12 words of what`. Out: one statement about the loss that is the largest part of what it is a part of.
//! Which counter that is its name tells: packets of the same queue and direction, or the line that has the first words of it. Drivers
//! name counters as they like, so that none of them is known by heart here.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("counters", Family::Host, recognise)
    .about("ethtool -S, and other lists of counters")
    .openings(&["NIC statistics:"]);

/// A part of all packets from which on a loss is no longer within what a network does: TCP's rate falls with the root of the loss
/// (Mathis et al., 1997); at one in a thousand, a connection over 50 ms has less than 10 Mbit/s.
const MIN_LOSS_SHARE: f64 = 0.001;

/// Counters that are kept, and bytes of a name.
const COUNTERS: usize = 4_096;
const NAME: usize = 80;

/// Lines of names with an underscore that make a list without a heading one.
const MIN_NAMES: usize = 8;

/// Lines of names of what is received or sent that do so: what is left where somebody picked out the losses.
const MIN_DIRECTED: usize = 3;

/// Parts of names of what was lost, refused, damaged or done again.
const LOSSES: [&str; 22] = [
    "drop",
    "discard",
    "miss",
    "err",
    "fail",
    "overrun",
    "overflow",
    "lost",
    "retrans",
    "no_buf",
    "no_dma",
    "no_frag",
    "out_of_buf",
    "nobuf",
    "bad",
    "crc",
    "fifo",
    "abort",
    "collision",
    "reject",
    "invalid",
    "duplicate",
];

/// Parts of names that take that back: events that are no packets, or that lose nothing.
const HARMLESS: [&str; 7] = [
    "no_error",
    "without",
    "recover",
    "completely",
    "filtered",
    "error_free",
    "badly_",
];

/// Parts of names of what a loss is a part of.
const WHOLES: [&str; 6] = ["packets", "pkts", "frames", "framecount", "segments", "requests"];

/// Lines of figures with words behind them, of packets or frames that are received or sent, that make a list without a heading one.
const MIN_WORDED: usize = 3;

fn recognise(head: &[u8]) -> Sureness {
    let mut names = 0;
    let mut worded = (0, false, 0);
    let mut directed = 0;
    let mut losses = false;
    let mut section = false;
    for line in head.split(|byte| *byte == b'\n') {
        let text = line.trim_ascii();
        if text == b"NIC statistics:" {
            return Sureness::Certain;
        }
        // BSD's sections are in small letters, Linux' are not.
        if section && sentence(text).is_some_and(|(_, words)| words.starts_with("packet")) {
            return Sureness::Certain;
        }
        section = matches!(text, b"tcp:" | b"udp:" | b"ip:");
        if let Some((name, _)) = named(text).filter(|(name, _)| name.contains('_')) {
            names += 1;
            directed += usize::from(direction(&name).is_some());
            losses |= is_loss(&name);
        } else if let Some((_, words)) = sentence(text) {
            let of_network = direction(&words).is_some() && is_whole(&words);
            worded.0 += usize::from(of_network);
            worded.1 |= is_loss(&words);
            worded.2 += 1;
        }
    }
    let lines = head
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty());
    let enough = names >= MIN_NAMES || directed >= MIN_DIRECTED && losses;
    let count = lines.count();
    let worded = worded.0 >= MIN_WORDED && worded.1 && worded.2 * 4 >= count * 3;
    match enough && names * 2 >= count || worded {
        true => Sureness::Likely,
        false => Sureness::No,
    }
}

/// `rx_missed_errors: 12`, `rxq0: rx_drops: 3`, `[2]: rx_bytes: 4`.
fn named(text: &[u8]) -> Option<(String, u64)> {
    let colon = memchr::memrchr(b':', text)?;
    let value = crate::numbers::whole(text.get(colon + 1..)?.trim_ascii())?;
    let name = text.get(..colon)?.trim_ascii();
    let words = name.iter().filter(|byte| **byte == b' ').count();
    let letters = name.iter().any(u8::is_ascii_alphabetic);
    (letters && words <= 2 && name.len() <= NAME).then(|| (text_of(name).to_lowercase(), value))
}

/// A count, with or without commas between its thousands: `239,166`.
fn grouped(text: &[u8]) -> Option<u64> {
    if !text.contains(&b',') {
        return crate::numbers::whole(text);
    }
    let mut groups = text.split(|byte| *byte == b',');
    let first = groups.next()?;
    let begins = (1..=3).contains(&first.len());
    (begins && groups.all(|group| group.len() == 3)).then_some(())?;
    let digits: Vec<u8> = text.iter().copied().filter(|byte| *byte != b',').collect();
    crate::numbers::whole(&digits)
}

/// `40440 data packets (7010117 bytes) retransmitted`, without what stands in brackets.
fn sentence(text: &[u8]) -> Option<(u64, String)> {
    let end = text.iter().position(u8::is_ascii_whitespace)?;
    let value = grouped(text.get(..end)?)?;
    let words = text.get(end..)?.trim_ascii_start();
    let words = text_of(words.get(..NAME).unwrap_or(words));
    let mut kept = String::new();
    let mut depth = 0_u32;
    for char in words.chars() {
        match char {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(char),
            _ => {}
        }
    }
    let kept = kept
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .to_lowercase();
    (!kept.is_empty()).then_some((value, kept))
}

#[derive(Debug)]
struct Counter {
    name: String,
    value: u64,
    quote: Quote,
}

#[derive(Debug, Default)]
struct Reader {
    counters: Vec<Counter>,
    section: String,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = line.trim_ascii();
        if text.is_empty() || text.starts_with(b"```") {
            return Understood::Ignorable;
        }
        let counter = named(text).or_else(|| sentence(text).map(|(value, name)| (name, value)));
        if let Some((name, value)) = counter {
            if self.counters.len() >= COUNTERS {
                out.account().left_out += 1;
                return Understood::Evidence;
            }
            self.counters.push(Counter {
                name: format!("{}{name}", self.section),
                value,
                quote: out.here(),
            });
            return Understood::Evidence;
        }
        match text.strip_suffix(b":") {
            Some(heading) if heading.len() <= NAME => {
                self.section.clear();
                // Of a card all counters are of one section.
                if heading != b"NIC statistics" {
                    self.section = format!("{}: ", text_of(heading).to_lowercase());
                }
                Understood::Ignorable
            }
            _ => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let all = std::mem::take(&mut self.counters);
        let lost = all
            .iter()
            .filter(|counter| counter.value > 0 && is_loss(&counter.name));
        let with_whole = lost.map(|counter| {
            let whole = whole_of(counter, &all);
            let share = whole.map(|whole| counter.value as f64 / whole.value as f64);
            (counter, whole, share)
        });
        // What is a good part of something comes before what is not, and of each the largest; of two that count the same the one whose
        // name says more.
        let worst = with_whole.max_by_key(|(counter, _, share)| {
            let much = share.is_some_and(|share| share >= MIN_LOSS_SHARE);
            (much, counter.value, counter.name.len())
        });
        let Some((counter, whole, share)) = worst else {
            return;
        };
        let part = share.zip(whole).map(|(share, whole)| {
            let percent = share * 100.0;
            let decimals = match percent {
                10.0.. => 0,
                0.1.. => 1,
                _ => 4,
            };
            format!(
                ", {percent:.decimals$} % of {} {} (from {} % on it is much)",
                whole.value,
                whole.name,
                MIN_LOSS_SHARE * 100.0
            )
        });
        let text = format!("{} {}{}", counter.name, counter.value, part.unwrap_or_default());
        // Of an unknown whole nothing can be said.
        let kind = match share {
            Some(share) if share >= MIN_LOSS_SHARE => StatementKind::Failed,
            _ => StatementKind::Took,
        };
        out.statement(Statement {
            share,
            ..statements::one(kind, None, counter.quote.clone(), text)
        });
    }
}

fn is_loss(name: &str) -> bool {
    LOSSES.iter().any(|part| name.contains(part)) && !HARMLESS.iter().any(|part| name.contains(part))
}

/// What a counter is a part of: of one that is reported in words the longest line that has its first words, of a name the packets of
/// its queue and direction, else of its direction.
fn whole_of<'a>(counter: &Counter, all: &'a [Counter]) -> Option<&'a Counter> {
    let larger = || {
        all.iter()
            .filter(|other| other.value >= counter.value && !is_loss(&other.name))
    };
    if counter.name.contains(' ') && !counter.name.contains('_') {
        let begins = larger()
            .filter(|other| counter.name.starts_with(&format!("{} ", other.name)))
            .max_by_key(|other| other.name.len());
        return begins.or_else(|| {
            // What a card never took is none of what it received: lost with a direction, or missed on its way in.
            let into = direction(&counter.name).or(counter.name.contains("missed").then_some(true))?;
            larger()
                .filter(|other| direction(&other.name) == Some(into) && is_whole(&other.name))
                .filter(|_| is_whole(&counter.name))
                .max_by_key(|other| (other.name.contains("total"), other.value))
        });
    }
    let queue = counter.name.rsplit_once(": ").map_or("", |(queue, _)| queue);
    let direction = direction(&counter.name)?;
    larger()
        .filter(|other| {
            let own = other.name.rsplit_once(": ").map_or("", |(queue, _)| queue);
            (own == queue || own.is_empty())
                && self::direction(&other.name) == Some(direction)
                && WHOLES.iter().any(|part| other.name.contains(part))
        })
        .max_by_key(|other| (other.name.starts_with(queue) && !queue.is_empty(), other.value))
        .or_else(|| {
            // Cards that count by queue alone.
            larger()
                .filter(|other| self::direction(&other.name) == Some(direction))
                .filter(|other| WHOLES.iter().any(|part| other.name.contains(part)))
                .max_by_key(|other| other.value)
        })
}

/// Whether a counter is of all packets of a direction, by its name.
fn is_whole(name: &str) -> bool {
    WHOLES.iter().any(|part| name.contains(part))
}

/// Whether a counter is of what is received or of what is sent.
fn direction(name: &str) -> Option<bool> {
    let name = name.rsplit_once(": ").map_or(name, |(_, name)| name);
    match (
        name.contains("rx") || name.contains("receive"),
        name.contains("tx") || name.contains("sent") || name.contains("transmit"),
    ) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::{Statement, StatementKind};

    fn said(text: &str) -> Vec<Statement> {
        let reading = read_text("c", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "counters");
        reading.observed.statements
    }

    #[test]
    fn a_queue_that_drops_one_in_fifty_is_told_with_what_it_dropped_of() {
        let text = "NIC statistics:\n     rx_packets: 900000\n     rx_crc_errors: 3\n     q1: rx_pkts: 50000\n     q1: rx_no_buf_drops: 1000\n     q2: rx_pkts: 850000\n";
        let [one] = &said(text)[..] else {
            panic!("{:?}", said(text))
        };
        assert_eq!(
            one.text,
            "q1: rx_no_buf_drops 1000, 2.0 % of 50000 q1: rx_pkts (from 0.1 % on it is much)"
        );
        assert_eq!((one.kind, one.share), (StatementKind::Failed, Some(0.02)));
    }

    #[test]
    fn the_largest_of_several_losses_decides_and_not_the_first() {
        let text = "NIC statistics:\n     rx_packets: 90000000\n     tx_packets: 400\n     rx_crc_errors: 120000\n     tx_errors: 90\n     \
            rx_missed_errors: 7400000\n     rx_errors: 7400000\n     collisions: 3\n";
        let [one] = &said(text)[..] else {
            panic!("{:?}", said(text))
        };
        assert!(
            one.text
                .starts_with("rx_missed_errors 7400000, 8.2 % of 90000000 rx_packets"),
            "{}",
            one.text
        );
    }

    #[test]
    fn losses_that_somebody_picked_out_are_a_list_too() {
        let text = "     rx_queue_0_drops: 0\n     rx_queue_1_drops: 4100\n     rx_queue_2_drops: 90210\n     tx_timeout_count: 0\n";
        let [one] = &said(text)[..] else {
            panic!("{:?}", said(text))
        };
        assert_eq!(
            (one.kind, one.text.as_str()),
            (StatementKind::Took, "rx_queue_2_drops 90210")
        );
        for other in [
            "rx_pin: 3\ntx_pin: 4\nrx_buffer: 512\n",
            "rx_errors: 3\na line of words\n",
        ] {
            let format = &read_text("c", other.as_bytes()).observed.sources[0].format;
            assert_ne!(format, "counters", "{other}");
        }
    }

    #[test]
    fn figures_with_words_behind_them_and_commas_between_their_thousands() {
        let text = "     12,500 RX_ER   Received Packets Dropped Count\n  1,000,000 TPR   Total Packets Received\n    900,000 GPRC  Good Packets Received Count\n  2,000,000 TPT   Total Packets Transmitted\n";
        let [one] = &said(text)[..] else {
            panic!("{:?}", said(text))
        };
        assert!(
            one.text
                .starts_with("rx_er received packets dropped count 12500, 1.2 % of 1000000"),
            "{}",
            one.text
        );
        let missed = "  300 Missed Frames\n 9000 Total Frames Received\n 8000 Good Frames Received\n 500 Frames Sent\n";
        let [one] = &said(missed)[..] else {
            panic!("{:?}", said(missed))
        };
        assert!(
            one.text
                .starts_with("missed frames 300, 3.3 % of 9000 total frames received"),
            "{}",
            one.text
        );
        let words = "3 packets received from us\n4 apples, bad ones\n5 packets sent\nthe rest\nis prose\n";
        assert_ne!(
            read_text("c", words.as_bytes()).observed.sources[0].format,
            "counters"
        );
    }

    #[test]
    fn few_losses_of_very_many_are_no_failure() {
        let text =
            "NIC statistics:\n     rx_packets: 3900000000\n     rx_missed_errors: 4100\n     tx_errors: 0\n";
        let [one] = &said(text)[..] else {
            panic!("{:?}", said(text))
        };
        assert_eq!(one.kind, StatementKind::Took, "{one:?}");
    }

    #[test]
    fn sentences_of_bsd_are_parts_of_the_line_with_their_first_words() {
        let text = "tcp:\n\t900 packets sent\n\t\t400 data packets (1 bytes)\n\t\t120 data packets (9 bytes) retransmitted\n\t80 packets received\n";
        let [one] = &said(text)[..] else {
            panic!("{:?}", said(text))
        };
        assert_eq!(
            one.text,
            "tcp: data packets retransmitted 120, 30 % of 400 tcp: data packets (from 0.1 % on it is much)"
        );
    }

    #[test]
    fn rubbish_states_nothing() {
        let text = "NIC statistics:\n:\n: 4\n9\n(((\nrx: 99999999999999999999999\n";
        assert_eq!(said(text), [], "{text}");
    }
}
