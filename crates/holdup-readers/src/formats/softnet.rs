//! `/proc/net/softnet_stat`: what each CPU took of the packets that came in.
//!
//! In: a row of hexadecimal counts for each CPU: packets, drops, how often it had to stop before it was done, and more; the kernel prints no
//! names. Out: one statement: packets that were dropped, or one CPU that takes nearly all of them, or that nothing was dropped. The share of the
//! CPU with the most packets and how often it had to stop are told in each case where they are more than chance.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("softnet-stat", Family::Host, recognise).about("/proc/net/softnet_stat");

/// Counts of a row: nine before 3.11 of the kernel, fifteen now; eight digits each.
const MIN_COUNTS: usize = 9;
const MAX_COUNTS: usize = 15;
const DIGITS: usize = 8;

/// Counts that have been 0 since 2.6.17, by which a row is no other dump of memory.
const UNUSED: std::ops::Range<usize> = 3..8;

/// Rows that are no chance, and CPUs of one machine.
const MIN_ROWS: usize = 2;
const MAX_CPUS: usize = 8192;

/// A part of all packets that was dropped from which it is much: the norm of lists of counters.
const MIN_DROPPED_SHARE: f64 = 0.001;

/// A part of all packets that one CPU has from which the work is not spread, of how many packets and CPUs.
const ONE_CPU_SHARE: f64 = 0.8;
const MIN_PACKETS: u64 = 1_000_000;
const MIN_CPUS: usize = 4;

/// Of so many packets one CPU had to stop once before it was done, where they are too many for it: else it is told as a figure, no trouble.
const MAX_PACKETS_PER_SQUEEZE: u64 = 1_000;

/// Of more packets than these once is never: it takes them all in time, and its share is no matter.
const MAX_PACKETS_PER_SQUEEZE_TOLD: u64 = 1_000_000;

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    let rows = text.lines().filter(|line| Row::of(line).is_some());
    Sureness::certain_if(rows.take(MIN_ROWS).count() == MIN_ROWS)
}

/// What one CPU counted.
#[derive(Debug, Clone, Copy)]
struct Row {
    packets: u64,
    dropped: u64,
    squeezed: u64,
}

impl Row {
    fn of(line: &str) -> Option<Row> {
        let mut counts = [0_u64; MAX_COUNTS];
        let mut have = 0;
        for word in line.split_whitespace() {
            let fits = word.len() == DIGITS && word.bytes().all(|byte| byte.is_ascii_hexdigit());
            *counts.get_mut(have).filter(|_| fits)? = u64::from_str_radix(word, 16).ok()?;
            have += 1;
        }
        let unused = counts.get(UNUSED)?.iter().all(|count| *count == 0);
        let [packets, dropped, squeezed, ..] = counts;
        (have >= MIN_COUNTS && unused).then_some(Row {
            packets,
            dropped,
            squeezed,
        })
    }
}

#[derive(Debug, Default)]
struct Reader {
    rows: Vec<Row>,
    quote: Option<Quote>,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        match Row::of(text) {
            Some(row) if self.rows.len() < MAX_CPUS => {
                self.quote.get_or_insert_with(|| out.here());
                self.rows.push(row);
                Understood::Evidence
            }
            Some(_) => {
                out.account().left_out += 1;
                Understood::Evidence
            }
            None => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let all = std::mem::take(self);
        let Some(quote) = all.quote else { return };
        let (kind, share, text) = judged(&all.rows);
        out.statement(Statement {
            share: Some(share),
            ..statements::one(kind, None, quote, text)
        });
    }
}

/// What the rows of all CPUs say together.
fn judged(rows: &[Row]) -> (StatementKind, f64, String) {
    let sum = |count: fn(&Row) -> u64| rows.iter().map(count).fold(0, u64::saturating_add);
    let packets = sum(|row| row.packets);
    let dropped = sum(|row| row.dropped);
    let part = |of: u64| of as f64 / (packets.saturating_add(dropped)).max(1) as f64;
    if part(dropped) >= MIN_DROPPED_SHARE {
        let text = format!(
            "{dropped} packets that came in were dropped ({:.2} % of all): the queue of a CPU was full \
             (net.core.netdev_max_backlog), as it takes them too slowly{}",
            part(dropped) * 100.0,
            of_one_cpu(rows, packets).map_or_else(String::new, |(_, _, told)| format!("; {told}"))
        );
        return (StatementKind::Exhausted, part(dropped), text);
    }
    if let Some((kind, share, told)) = of_one_cpu(rows, packets) {
        let told = match dropped {
            0 => format!("{told}; none was dropped"),
            _ => told,
        };
        return (kind, share, told);
    }
    let text = format!(
        "no packet that came in was dropped for a full queue of a CPU on {} CPUs ({dropped} of {packets})",
        rows.len()
    );
    (StatementKind::WithinNorm, part(dropped), text)
}

/// The CPU that has nearly all of the packets, and whether they are too many for it.
fn of_one_cpu(rows: &[Row], packets: u64) -> Option<(StatementKind, f64, String)> {
    let (cpu, row) = rows.iter().enumerate().max_by_key(|(_, row)| row.packets)?;
    let share = row.packets as f64 / packets.max(1) as f64;
    if rows.len() < MIN_CPUS || packets < MIN_PACKETS || share < ONE_CPU_SHARE {
        return None;
    }
    let too_many = row.squeezed.saturating_mul(MAX_PACKETS_PER_SQUEEZE) >= row.packets;
    let of = row.packets.checked_div(row.squeezed);
    let of = of.filter(|of| *of <= MAX_PACKETS_PER_SQUEEZE_TOLD)?;
    let (kind, often) = match too_many {
        true => (StatementKind::Warned, String::new()),
        false => (StatementKind::Took, format!(", once for {of} packets")),
    };
    let text = format!(
        "CPU {cpu} takes nearly all packets that come in, {} of {packets} ({:.0} %), and {} times it had not taken all when its budget was \
         used up (time_squeeze{often}): the work is not spread over the {} CPUs (queues of the card and their interrupts, or RPS)",
        row.packets,
        share * 100.0,
        row.squeezed,
        rows.len()
    );
    Some((kind, share, text))
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const ZEROS: &str = "00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000";

    fn said(rows: &[[u64; 3]]) -> (StatementKind, String) {
        let rows = rows.iter().map(|[packets, dropped, squeezed]| {
            format!("{packets:08x} {dropped:08x} {squeezed:08x} {ZEROS}\n")
        });
        let reading = read_text("s", rows.collect::<String>().as_bytes());
        assert_eq!(reading.observed.sources[0].format, "softnet-stat");
        let one = &reading.observed.statements[0];
        (one.kind, one.text.clone())
    }

    #[test]
    fn one_cpu_that_takes_all_is_told() {
        let (kind, told) = said(&[
            [90_000_000, 0, 99_077],
            [1_000_000, 0, 0],
            [1_000_000, 0, 0],
            [1_000_000, 0, 0],
        ]);
        assert_eq!(kind, StatementKind::Warned);
        assert!(told.starts_with("CPU 0 takes nearly all packets"), "{told}");
        assert!(told.contains("99077 times") && told.contains("(97 %)"), "{told}");
    }

    #[test]
    fn drops_are_told_where_they_are_a_part_that_matters() {
        let (kind, told) = said(&[[1_000_000, 40_000, 0], [1_000_000, 0, 0]]);
        assert_eq!(kind, StatementKind::Exhausted);
        assert!(
            told.starts_with("40000 packets that came in were dropped (1.96 %"),
            "{told}"
        );
        let (kind, _) = said(&[[90_000_000, 40, 0], [91_000_000, 0, 9]]);
        assert_eq!(kind, StatementKind::WithinNorm);
    }

    #[test]
    fn healthy_machines_and_small_ones_are_well() {
        // Two CPUs, of which one has the card's interrupt, are no machine to spread work on; nor is one that has hardly begun.
        assert_eq!(said(&[[9_000_000, 0, 1], [0, 0, 0]]).0, StatementKind::WithinNorm);
        // One CPU that takes all, and in time, is enough.
        let row = [1_000_000, 0, 0];
        assert_eq!(
            said(&[[90_000_000, 0, 77], row, row, row]).0,
            StatementKind::WithinNorm
        );
        let idle = said(&[[9_000, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0]]);
        assert_eq!(idle.0, StatementKind::WithinNorm);
    }

    #[test]
    fn a_share_is_told_as_a_figure_where_the_cpu_is_nearly_always_done() {
        let row = [2_000_000, 0, 0];
        let (kind, told) = said(&[row, row, [80_000_000, 0, 800], row]);
        assert_eq!(kind, StatementKind::Took);
        assert!(
            told.starts_with("CPU 2 takes nearly all packets") && told.contains("(93 %), and 800 times"),
            "{told}"
        );
        assert!(told.contains("(time_squeeze, once for 100000 packets)"), "{told}");
        assert!(told.ends_with("none was dropped"), "{told}");
        // Some that were dropped, and too few to matter, are not told as none.
        let (_, told) = said(&[row, row, [80_000_000, 3, 800], row]);
        assert!(!told.contains("dropped"), "{told}");
        // Work that is spread has no CPU to name, however often each had to stop.
        let spread = [80_000_000, 0, 9_000];
        assert_eq!(said(&[spread; 4]).0, StatementKind::WithinNorm);
    }

    #[test]
    fn another_dump_of_words_is_not_taken() {
        let dump =
            "0b5e20c7 00000000 00000a11 00000001 00000000 00000000 00000000 00000000 00000000\n".repeat(4);
        assert_ne!(
            read_text("s", dump.as_bytes()).observed.sources[0].format,
            "softnet-stat"
        );
        for cut in ["0", "00000000 zzzzzzzz", &"00000000 ".repeat(40)] {
            let _ = read_text("s", cut.as_bytes());
        }
    }
}
