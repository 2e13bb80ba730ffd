//! `free`, old (with `-/+ buffers/cache`) and new, with any unit.
//!
//! In: a head and lines `Mem:` and `Swap:`, in any language: columns are known by their order. Out: memory in KiB. Without
//! a letter the unit is not known (`-m` and `-k` print the same table): amounts of memory in KiB are all multiples of a
//! page's 4 KiB, and that tells them from MiB.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use crate::numbers::{whole, words};
use crate::sizes;
use holdup_evidence::observed::Metric;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("free", Family::Host, recognise)
    .about("free")
    .openings(&["total used free shared"]);

/// KiB of a page, of which all amounts are multiples.
const PAGE: u64 = 4;

/// Amounts that must be multiples of a page before that is no chance: one of 256 tables in MiB has four such.
const MIN_MULTIPLES: usize = 4;

fn recognise(head: &[u8]) -> Sureness {
    let mut best = Sureness::No;
    let mut after_head = false;
    for line in head.split(|byte| *byte == b'\n') {
        if is_head(line) {
            return Sureness::Certain;
        }
        // In another language the head says nothing: four or more words without a digit, then a colon and figures.
        let figures = words(line).skip(1).filter_map(amount).count();
        let row = words(line).next().is_some_and(|word| word.ends_with(b":")) && figures >= 3;
        if row && after_head && figures + 1 == words(line).count() {
            best = Sureness::Likely;
        }
        after_head =
            words(line).count() >= 5 && !line.iter().any(|byte| byte.is_ascii_digit() || *byte == b':');
    }
    best
}

fn is_head(line: &[u8]) -> bool {
    let mut words = words(line);
    words.next() == Some(b"total") && words.next() == Some(b"used") && words.next() == Some(b"free")
}

/// A number with or without a unit; the number of bytes in the first case.
fn amount(word: &[u8]) -> Option<Amount> {
    whole(word)
        .map(Amount::Bare)
        .or_else(|| sizes::with_unit(word).map(|bytes| Amount::Kib(bytes / 1024.0)))
}

#[derive(Debug, Clone, Copy)]
enum Amount {
    Bare(u64),
    Kib(f64),
}

#[derive(Debug, Default)]
struct Reader {
    /// Columns of the head; 0 before there is one.
    columns: usize,
    /// Whether its fifth column is of buffers alone, as before procps 3.3.10 and with `-w`.
    apart: bool,
    /// KiB of one, where it is reported or has been inferred.
    unit: Option<f64>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.trim_ascii().is_empty() {
            return Understood::Ignorable;
        }
        let all = words(line).count();
        let has_digit = line.iter().any(u8::is_ascii_digit);
        if is_head(line) || (all >= 5 && !has_digit && !line.contains(&b':')) {
            self.columns = all;
            self.apart = words(line).any(|word| word == b"buffers") || all == 7;
            out.report(None, None, false);
            return Understood::Evidence;
        }
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let (Some(title), Some(rest)) = (parts.next(), parts.next()) else {
            return Understood::No;
        };
        let amounts: Vec<Amount> = words(rest).map_while(amount).collect();
        if self.columns == 0 || amounts.len() < 2 {
            return Understood::No;
        }
        match title.trim_ascii() {
            b"-/+ buffers/cache" | b"Low" | b"High" | b"Total" | b"Comm" | b"-/+ Puffer/Cache" => {
                Understood::Ignorable
            }
            b"Swap" | b"Auslager" => {
                self.swap(&amounts, out);
                Understood::Evidence
            }
            _ if amounts.len() >= 5 => {
                self.memory(&amounts, out);
                Understood::Evidence
            }
            _ => Understood::No,
        }
    }
}

impl Reader {
    fn kib(&self, amount: Option<&Amount>) -> Option<f64> {
        match (*amount?, self.unit) {
            (Amount::Kib(kib), _) => Some(kib),
            (Amount::Bare(number), Some(unit)) => Some(number as f64 * unit),
            // `-h` leaves the unit of 0 out in some versions.
            (Amount::Bare(0), None) => Some(0.0),
            (Amount::Bare(_), None) => None,
        }
    }

    fn memory(&mut self, amounts: &[Amount], out: &mut Out<'_>) {
        self.unit = total_kib(out).or_else(|| inferred(amounts));
        if self.unit.is_none() && amounts.iter().any(|amount| matches!(amount, Amount::Bare(1..))) {
            out.problem("the unit of these amounts is not known (`free -h` prints it)");
        }
        // total used free shared buff/cache available; or …, buffers, cached; or all of them with `-w`.
        let last = match (self.apart, self.columns) {
            (true, 7) => [
                (4, Metric::MemoryBuffersKib),
                (5, Metric::MemoryCachedKib),
                (6, Metric::MemoryAvailableKib),
            ],
            (true, _) => [
                (4, Metric::MemoryBuffersKib),
                (5, Metric::MemoryCachedKib),
                (9, Metric::MemoryAvailableKib),
            ],
            (false, _) => [
                (4, Metric::MemoryCachedKib),
                (5, Metric::MemoryAvailableKib),
                (9, Metric::MemoryBuffersKib),
            ],
        };
        let first = [
            (0, Metric::MemoryTotalKib),
            (1, Metric::MemoryUsedKib),
            (2, Metric::MemoryFreeKib),
        ];
        for (at, metric) in first.into_iter().chain(last) {
            if let Some(kib) = self.kib(amounts.get(at)) {
                out.figure(metric, "", kib);
            }
        }
    }

    fn swap(&self, amounts: &[Amount], out: &mut Out<'_>) {
        let metrics = [Metric::SwapTotalKib, Metric::SwapUsedKib];
        for (amount, metric) in amounts.iter().zip(metrics) {
            if let Some(kib) = self.kib(Some(amount)) {
                out.figure(metric, "", kib);
            }
        }
    }
}

/// KiB of the unit that the command line asked for, where the text has it.
fn total_kib(out: &mut Out<'_>) -> Option<f64> {
    let line = out.source().tool.clone()?;
    let mut words = line.split_whitespace().skip_while(|word| !word.ends_with("free"));
    words.next()?;
    let mut unit = 1.0;
    for word in words.filter(|word| word.starts_with('-') && !word.starts_with("--")) {
        for letter in word.chars() {
            unit = match letter {
                'b' => 1.0 / 1024.0,
                'k' => 1.0,
                'm' => 1024.0,
                'g' => 1024.0 * 1024.0,
                _ => unit,
            };
        }
    }
    Some(unit)
}

/// The same by the amounts themselves.
fn inferred(amounts: &[Amount]) -> Option<f64> {
    let bare: Vec<u64> = amounts
        .iter()
        .filter_map(|amount| match amount {
            Amount::Bare(number) => Some(*number),
            Amount::Kib(_) => None,
        })
        .collect();
    let total = *bare.first()?;
    let pages = bare
        .iter()
        .filter(|number| **number > 0 && **number % PAGE == 0)
        .count();
    let all = bare.iter().all(|number| number % PAGE == 0);
    /// Of a machine: 64 MiB at least, 64 TiB at most.
    const PLAUSIBLE_KIB: std::ops::Range<u64> = 65_536..68_719_476_736;
    // In bytes they are multiples of a page, too: such amounts in KiB would all be whole numbers of 4 MiB.
    let bytes = bare.iter().all(|number| number % (PAGE * 1024) == 0);
    if bytes && pages >= MIN_MULTIPLES {
        return (total / 1024 >= PLAUSIBLE_KIB.start).then_some(1.0 / 1024.0);
    }
    if all && pages >= MIN_MULTIPLES && PLAUSIBLE_KIB.contains(&total) {
        return Some(1.0);
    }
    // Not multiples of a page: MiB or GiB, and a machine with so many GiB prints none that are below 1024.
    const PLAUSIBLE_MIB: std::ops::Range<u64> = 1_024..16_777_216;
    (!all && PLAUSIBLE_MIB.contains(&total)).then_some(1024.0)
}

#[cfg(test)]
mod tests {
    use crate::{Reading, read_text};
    use holdup_evidence::observed::Metric;

    fn value(reading: &Reading, metric: Metric) -> Option<f64> {
        let series = reading.observed.of(metric).next();
        series
            .and_then(|series| series.points.first())
            .map(|point| point.value)
    }

    const KIB: &str = "               total        used        free      shared  buff/cache   available
Mem:         8147456     1853764     2011340       17120     4282352     5974404
Swap:        2097148      524288     1572860
";

    #[test]
    fn units_told_by_a_letter_a_prompt_or_the_amounts() {
        let reading = read_text("f", KIB.as_bytes());
        assert_eq!(value(&reading, Metric::MemoryAvailableKib), Some(5_974_404.0));
        assert_eq!(value(&reading, Metric::SwapUsedKib), Some(524_288.0));
        let mib = "$ free -m
             total       used       free     shared    buffers     cached
Mem:          1655       1642         13          0          1         44
-/+ buffers/cache:       1597         58
Swap:         2046        979       1067
";
        let reading = read_text("f", mib.as_bytes());
        assert_eq!(value(&reading, Metric::MemoryFreeKib), Some(13.0 * 1024.0));
        assert_eq!(value(&reading, Metric::MemoryCachedKib), Some(44.0 * 1024.0));
        assert_eq!(value(&reading, Metric::MemoryAvailableKib), None);
        assert_eq!(reading.accounts[0].not_understood, 0);
        let bare = read_text("f", mib.strip_prefix("$ free -m\n").unwrap().as_bytes());
        assert_eq!(value(&bare, Metric::MemoryFreeKib), Some(13.0 * 1024.0));
        let german = "               gesamt      benutzt     frei      gemns.  Puffer/Cache verf\u{fc}gbar
Speicher:        7,8Gi       1,8Gi       1,9Gi        16Mi       4,1Gi       5,7Gi
Swap:            2,0Gi          0B       2,0Gi
";
        let reading = read_text("f", german.as_bytes());
        assert_eq!(
            value(&reading, Metric::MemoryTotalKib),
            Some(7.8 * 1024.0 * 1024.0)
        );
        assert_eq!(value(&reading, Metric::SwapUsedKib), Some(0.0));
        assert_eq!(reading.accounts[0].not_understood, 0);
    }

    #[test]
    fn a_unit_that_cannot_be_told_is_not_assumed() {
        let text = "total used free shared buff/cache available\nMem: 31 4 12 0 8 20\nSwap: 0 0 0\n";
        let reading = read_text("f", text.as_bytes());
        assert_eq!(value(&reading, Metric::MemoryTotalKib), None);
        assert_eq!(reading.accounts[0].problems.len(), 1);
    }

    #[test]
    fn rubbish_and_cut_lines() {
        for cut in 0..KIB.len() {
            let mut text = KIB.as_bytes()[..cut].to_vec();
            text.extend_from_slice(b"\nMem: -1 x \xff\n\x00: 99999999999999999999999 5 5 5 5 5\n:::\n");
            assert!(
                read_text("f", &text)
                    .accounts
                    .iter()
                    .map(|account| account.lines)
                    .sum::<u64>()
                    >= 3
            );
        }
    }
}
