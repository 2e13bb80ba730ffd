//! Histograms that BPF tools print: of lengths of time, of queues, of sizes.
//!
//! In: a heading and rows, as bcc (`usecs : count distribution`, `4 -> 7 : 12 |***|`) and bpftrace (`@usecs:`, `[4, 8) 12 |@@|`)
//! have them. Out: a statement for each histogram: how far it reaches, how many are there, where most are, and where a second heap of slow
//! ones is.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::sizes;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("histogram", Family::Host, recognise).about("histograms of BPF tools");

/// Rows from which it is no chance.
const ROWS: usize = 3;

/// Characters of a title that are kept.
const TITLE: usize = 100;

/// Rows of one histogram that are kept: powers of two have 64, bpftrace's linear ones as many as were asked for.
const MAX_ROWS: usize = 1_000;

/// Two heaps are apart where between them it falls to a half of the lower one: the width of a peak is measured at half of its height.
const VALLEY: u64 = 2;

/// Counts scatter by their square root (Poisson); a rise of three times that is no chance.
const SCATTER: f64 = 3.0;

/// Units that a heading names.
const UNITS: [(&str, f64); 8] = [
    ("nsecs", 1.0),
    ("ns", 1.0),
    ("usecs", 1e3),
    ("us", 1e3),
    ("msecs", 1e6),
    ("ms", 1e6),
    ("secs", 1e9),
    ("seconds", 1e9),
];

fn recognise(head: &[u8]) -> Sureness {
    let head = text_of(head);
    let lines = || head.lines().map(str::trim);
    let rows = lines().filter_map(Row::of).count();
    // Without a heading the bars beside ranges say what it is.
    let drawn =
        || lines().filter(|line| line.contains("->") && line.ends_with('|') && Row::of(line).is_some());
    Sureness::certain_if(
        rows >= ROWS && (lines().any(|line| heading(line).is_some()) || drawn().count() >= ROWS),
    )
}

/// The name of what is counted: `usecs : count distribution`, `@usecs:`, `@usecs[md0]:`.
fn heading(line: &str) -> Option<&str> {
    let of_bcc = || {
        let (name, rest) = line.split_once(':')?;
        let rest = rest.trim_start().strip_prefix("count")?;
        rest.trim().starts_with("distribution").then(|| name.trim())
    };
    let of_bpftrace = || line.strip_prefix('@')?.strip_suffix(':');
    of_bcc().or_else(of_bpftrace)
}

/// A row: its values as they are printed, the greatest of them, and how many there are.
#[derive(Debug, Clone)]
struct Row {
    values: String,
    greatest: f64,
    count: u64,
}

impl Row {
    fn of(line: &str) -> Option<Row> {
        let (values, rest) = match line.strip_prefix('[') {
            Some(rest) => rest.split_once([')', ']'])?,
            None => line.split_once(':')?,
        };
        let values = values.trim();
        let mut numbers = values
            .split([',', ' '])
            .filter(|word| !matches!(*word, "" | "->" | "..."));
        let (first, last) = (numbers.next()?, numbers.next());
        if numbers.next().is_some() || !first.starts_with(|first: char| first.is_ascii_digit()) {
            return None;
        }
        let mut words = rest.split_whitespace();
        let count = words.next()?.parse().ok()?;
        let bar = words.next().is_none_or(|bar| bar.starts_with('|'));
        bar.then_some(Row {
            values: values.to_owned(),
            greatest: number(last.unwrap_or(first))?,
            count,
        })
    }
}

/// `512`, `4K`.
fn number(word: &str) -> Option<f64> {
    let bytes = word.as_bytes();
    crate::numbers::decimal(bytes).or_else(|| sizes::with_unit(bytes))
}

#[derive(Debug, Default)]
struct Reader {
    title: String,
    name: String,
    quote: Quote,
    total: u64,
    /// The last one that is not empty, and the fullest.
    last: Option<(Row, Quote)>,
    most: Option<Row>,
    rows: Vec<Row>,
}

/// The largest heap behind the fullest row: how many are there, and its fullest row.
fn slow_heap(rows: &[Row]) -> Option<(u64, &Row)> {
    let fullest =
        (0..rows.len()).max_by_key(|at| (rows.get(*at).map(|row| row.count), std::cmp::Reverse(*at)))?;
    let mut heap: Option<(u64, &Row)> = None;
    let mut before = rows.get(fullest)?.count;
    // The lowest so far.
    let mut lowest = before;
    for row in rows.get(fullest + 1..)? {
        let rise = row.count.saturating_sub(lowest) as f64;
        let rises =
            row.count > before && row.count / VALLEY >= lowest && rise > SCATTER * (row.count as f64).sqrt();
        if rises && heap.is_none()
            || row.count > before && heap.as_ref().is_some_and(|(_, top)| row.count > top.count)
        {
            let already = heap.map_or(0, |(count, _)| count);
            heap = Some((already, row));
        }
        if let Some((count, _)) = &mut heap {
            *count = count.saturating_add(row.count);
        }
        lowest = lowest.min(row.count);
        before = row.count;
    }
    heap
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line);
        let text = text.trim();
        if text.bytes().all(|byte| !byte.is_ascii_alphanumeric()) {
            return Understood::Ignorable;
        }
        if let Some(name) = heading(text) {
            self.end(out);
            self.name = name.chars().take(TITLE).collect();
            self.quote = out.here();
            return Understood::Evidence;
        }
        if let Some(row) = Row::of(text) {
            self.total = self.total.saturating_add(row.count);
            if self.most.as_ref().is_none_or(|most| row.count > most.count) {
                self.most = Some(row.clone());
            }
            if self.rows.len() < MAX_ROWS {
                self.rows.push(row.clone());
            }
            if row.count > 0 {
                self.last = Some((row, out.here()));
            }
            return Understood::Evidence;
        }
        // What stands above says what was measured.
        if text.contains(' ') {
            self.end(out);
            self.title = text.chars().take(TITLE).collect();
        }
        Understood::No
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let total = std::mem::take(&mut self.total);
        let rows = std::mem::take(&mut self.rows);
        let (Some((last, quote)), Some(most)) = (self.last.take(), self.most.take()) else {
            return;
        };
        let unit = UNITS.iter().find(|(unit, _)| {
            let mut words = self.name.split(|char: char| !char.is_ascii_alphanumeric());
            words.any(|word| word == *unit)
        });
        let ns = unit.map(|(_, unit)| (last.greatest * unit).clamp(0.0, 1e18) as u64);
        let title = match self.title.as_str() {
            "" => String::new(),
            title => format!(" ({title})"),
        };
        let name = match self.name.as_str() {
            "" => "the histogram",
            name => name,
        };
        let mut text = format!(
            "{name}{title} reaches {}, {} times of {total}; most, {} of them, are at {}",
            last.values, last.count, most.count, most.values
        );
        // Where the heap is the last row alone it is told already.
        let slow = slow_heap(&rows).filter(|(_, top)| top.values != last.values);
        if let Some((count, top)) = slow {
            text.push_str(&format!(
                "; a second heap, {count} of them, {:.1} %, is around {}",
                count as f64 / total as f64 * 100.0,
                top.values
            ));
        }
        out.statement(statements::one(StatementKind::Took, ns, quote, text));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    fn buckets(text: &str) -> Vec<(Option<u64>, String)> {
        let reading = read_text("h", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "histogram");
        let statements = reading.observed.statements.into_iter();
        statements.map(|one| (one.ns, one.text)).collect()
    }

    #[test]
    fn how_far_it_reaches_and_where_most_are() {
        let text = "operation = sync\n     msecs               : count     distribution\n\
            \x20        0 -> 1          : 40       |*****     |\n         2 -> 3          : 0        |          |\n\
            \x20     512 -> 1023       : 3        |*         |\n";
        assert_eq!(
            buckets(text),
            [(
                Some(1_023_000_000),
                "msecs (operation = sync) reaches 512 -> 1023, 3 times of 43; most, 40 of them, are at 0 -> 1".to_owned()
            )]
        );
        let text = "@length:\n[0, 1)    50 |@@@@|\n[1, 2)     0 |    |\n[2, 4)     7 |@   |\n";
        assert_eq!(
            buckets(text),
            [(
                None,
                "length reaches 2, 4, 7 times of 57; most, 50 of them, are at 0, 1".to_owned()
            )]
        );
    }

    #[test]
    fn a_second_heap_of_slow_ones_is_told_and_a_tail_is_none() {
        let rows = "@read_us[sdb]:\n[16, 32)   900 |@@@@@|\n[32, 64)   400 |@@|\n[64, 128)    20 |   |\n[128, 256)    4 |   |\n\
            [256, 512)   3 |   |\n[512, 1K)    2 |   |\n[1K, 2K)   60 |   |\n[2K, 4K)  150 |@  |\n[4K, 8K)   31 |   |\n";
        assert_eq!(
            buckets(rows)[0].1,
            "read_us[sdb] reaches 4K, 8K, 31 times of 1570; most, 900 of them, are at 16, 32; a second heap, 241 of them, 15.4 %, is \
             around 2K, 4K"
        );
        let tail = rows
            .replace(" 60 |", " 2 |")
            .replace("150 |", "1 |")
            .replace(" 31 |", " 1 |");
        assert!(!buckets(&tail)[0].1.contains("heap"), "{tail}");
        // Rows alone.
        let text =
            "  0 -> 1    : 40   |*****  |\n  2 -> 3    : 10   |*      |\n  4 -> 7    : 2    |       |\n";
        assert_eq!(
            buckets(text)[0].1,
            "the histogram reaches 4 -> 7, 2 times of 52; most, 40 of them, are at 0 -> 1"
        );
    }
}
