//! `rtla timerlat top`: how late each CPU's timer interrupt and its thread ran, in microseconds.
//!
//! In: a heading with `IRQ Timer Latency` and `Thread Timer Latency`, and a row for each CPU with the current, least, mean and greatest value of
//! both. The whole comes again and again; the last values count, because the greatest only grow. Out: the CPU whose thread was latest, beside the
//! others. Source: `tools/tracing/rtla/src/timerlat_top.c` of the kernel.

use super::report::{any_line, number, rounded, text_in};
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, StatementKind};
use holdup_evidence::units::duration;
use std::collections::BTreeMap;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("rtla-timerlat", Family::Host, recognise).about("rtla timerlat top");

/// Nanoseconds from which a real-time task would notice: what the kernel's own tests of latency call late.
const LATE_NS: Ns = 1_000_000;

/// Figures of each half of a row.
const FIGURES: usize = 4;

/// CPUs that are kept.
const MAX_CPUS: usize = 8_192;

fn recognise(head: &[u8]) -> Sureness {
    Sureness::certain_if(any_line(head, |line| {
        line.contains("IRQ Timer Latency") && line.contains("Thread Timer Latency")
    }))
}

/// `  0 #5823      |  24  0  1  24 |  1035  3  7  1035`: the CPU, and the greatest delay of its interrupt and of its thread.
fn row(text: &str) -> Option<(u32, f64, f64)> {
    let mut parts = text.split('|');
    let mut who = parts.next()?.split_whitespace();
    let cpu = who.next()?.parse().ok()?;
    who.next().filter(|count| count.starts_with('#'))?;
    let greatest = |part: &str| {
        let figures: Vec<f64> = part.split_whitespace().filter_map(number).collect();
        figures.get(FIGURES - 1).copied()
    };
    let interrupt = greatest(parts.next()?)?;
    let thread = greatest(parts.next()?)?;
    Some((cpu, interrupt, thread))
}

#[derive(Debug, Default)]
struct Reader {
    /// Of each CPU its greatest delays, and where they stand.
    cpus: BTreeMap<u32, (f64, f64, Quote)>,
    /// What a figure is of, in nanoseconds.
    unit: Option<f64>,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if text.contains("Timer Latency (") {
            self.unit = Some(if text.contains("(ns)") { 1.0 } else { 1e3 });
            return Understood::Evidence;
        }
        let Some((cpu, interrupt, thread)) = row(&text) else {
            return Understood::Ignorable;
        };
        if self.cpus.len() < MAX_CPUS || self.cpus.contains_key(&cpu) {
            self.cpus.insert(cpu, (interrupt, thread, out.here()));
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let unit = read.unit.unwrap_or(1e3);
        let latest = read
            .cpus
            .iter()
            .max_by(|one, other| one.1.1.total_cmp(&other.1.1));
        let Some((cpu, (interrupt, thread, quote))) = latest else {
            return;
        };
        let others = read.cpus.iter().filter(|(other, _)| *other != cpu);
        let next = others
            .map(|(_, (_, thread, _))| *thread)
            .max_by(|one, other| one.total_cmp(other));
        let ns = (thread * unit).clamp(0.0, 1e18) as Ns;
        let us = |value: f64| format!("{} \u{b5}s", rounded(value * unit / 1e3));
        let beside = next.map_or_else(String::new, |next| {
            format!("; the other CPUs at most {}", us(next))
        });
        let text = format!(
            "CPU {cpu}: a timer's thread ran up to {} late ({}), its interrupt {}{beside} (from {} on it is late)",
            us(*thread),
            duration(ns),
            us(*interrupt),
            duration(LATE_NS)
        );
        let kind = match ns >= LATE_NS {
            true => StatementKind::Stalled,
            false => StatementKind::WithinNorm,
        };
        out.statement(statements::one(kind, Some(ns), quote.clone(), text));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const TOP: &str = "                                     Timer Latency\n  0 00:00:06   |          IRQ Timer Latency (us)        |         Thread Timer Latency (us)\n\
        CPU COUNT      |      cur       min       avg       max |      cur       min       avg       max\n\
        \x20 0 #8123      |        1         0         1         4 |        6         2         6        11\n\
        \x20 7 #8124      |       31         0         1        31 |     2412         3         7      2412\n";

    #[test]
    fn the_latest_cpu_is_told_beside_the_others() {
        let found = read_text("r", TOP.as_bytes()).observed;
        assert_eq!(found.sources[0].format, "rtla-timerlat");
        assert_eq!(found.statements[0].kind, StatementKind::Stalled);
        assert_eq!(
            found.statements[0].text,
            "CPU 7: a timer's thread ran up to 2412 \u{b5}s late (2.4 ms), its interrupt 31 \u{b5}s; the other CPUs at most 11 \u{b5}s \
             (from 1.0 ms on it is late)"
        );
    }

    #[test]
    fn a_machine_that_is_in_time_is_well() {
        for text in [
            TOP.replace("2412", "24"),
            TOP.replace("(us)", "(ns)"),
            TOP.lines().take(4).collect::<Vec<_>>().join("\n"),
        ] {
            let found = read_text("r", text.as_bytes()).observed;
            assert_eq!(found.statements[0].kind, StatementKind::WithinNorm, "{text}");
        }
    }

    #[test]
    fn rubbish_is_no_row() {
        for row in [
            "0 #1 | |",
            "x #1 | 1 2 3 4 | 1 2 3 4",
            "0 1 | 1 2 3 4 | 1 2 3 4",
            "0 #1 | 1 2 3 4 | 1 2",
        ] {
            assert!(super::row(row).is_none(), "{row}");
        }
    }
}
