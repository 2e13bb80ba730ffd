//! `mongostat` and `mongotop` of MongoDB: whether operations wait in queues, how full the cache is, and which collection takes the time.
//!
//! In: headings that come again, and a row for each interval, or for each collection. Out: a statement about the longest queue, or the cache
//! where the server makes its clients empty it, or the collection with most time. Source: MongoDB's manual of both tools.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{
    Largest, any_line, holds, length, name_of, ns_of, number, percent, rounded, text_in,
};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("mongostat", Family::Host, recognise).about("mongostat, mongotop");

/// Per cent of the cache that may be dirty or used before the threads of clients have to empty it themselves (`eviction_dirty_trigger`,
/// `eviction_trigger` of WiredTiger).
const DIRTY_PERCENT: f64 = 20.0;
const USED_PERCENT: f64 = 95.0;

/// Words of a row.
const MAX_WORDS: usize = 40;

fn recognise(head: &[u8]) -> Sureness {
    let may = holds(head, "getmore") || holds(head, "total");
    Sureness::certain_if(may && any_line(head, |line| Heading::of(line).is_some()))
}

#[derive(Debug, Clone, PartialEq)]
enum Heading {
    /// Where in a row which column is.
    Stat {
        queue: Option<usize>,
        active: Option<usize>,
        dirty: Option<usize>,
        used: Option<usize>,
        words: usize,
    },
    Top,
}

impl Heading {
    fn of(line: &str) -> Option<Heading> {
        let words: Vec<&str> = line.split_whitespace().take(MAX_WORDS).collect();
        let at = |names: [&str; 2]| words.iter().position(|word| names.contains(word));
        match words.as_slice() {
            ["ns", "total", "read", ..] => return Some(Heading::Top),
            ["insert", "query", "update", "delete", "getmore", ..] => {}
            [_, "insert", "query", "update", "delete", "getmore", ..] => {}
            _ => return None,
        }
        // `idx miss %` and `locked db` are names of several words, with one cell each.
        let several = |place: usize| {
            let before = words.get(..place).unwrap_or_default();
            before
                .iter()
                .filter(|word| matches!(**word, "miss" | "%" | "db"))
                .count()
        };
        let cell = |names: [&str; 2]| at(names).map(|place| place - several(place).min(place));
        Some(Heading::Stat {
            queue: cell(["qrw", "qr|qw"]),
            active: cell(["arw", "ar|aw"]),
            dirty: cell(["dirty", "%dirty"]),
            used: cell(["used", "%used"]),
            words: words.len() - several(words.len()),
        })
    }
}

/// `12|30`.
fn two(word: &str) -> Option<(f64, f64)> {
    let (one, other) = word.split_once('|')?;
    Some((number(one)?, number(other)?))
}

#[derive(Debug, Default)]
struct Reader {
    heading: Option<Heading>,
    rows: u64,
    queued: u64,
    queues: Largest,
    dirty: Largest,
    used: Largest,
    collections: Largest,
    of_largest: String,
    first: Option<Quote>,
}

impl Reader {
    fn row(&mut self, text: &str, out: &Out<'_>) -> Option<()> {
        let cells: Vec<&str> = text.split_whitespace().take(MAX_WORDS).collect();
        let cell = |at: usize| cells.get(at).copied();
        match self.heading.as_ref()? {
            Heading::Top => {
                let [name, total, read, write] = cells.as_slice() else {
                    return None;
                };
                let seconds = length(total)?;
                length(read).and(length(write))?;
                if self.collections.take(seconds, name, out.here()) {
                    self.of_largest = format!("reading {}, writing {}", name_of(read), name_of(write));
                }
            }
            Heading::Stat {
                queue,
                active,
                dirty,
                used,
                words,
            } => {
                // The time may be several words.
                let is_row = cells.len() >= *words
                    && cell(0)?.starts_with(|first: char| first == '*' || first.is_alphanumeric());
                let queue = queue.and_then(cell).map(two);
                if !is_row || queue == Some(None) {
                    return None;
                }
                self.rows = self.rows.saturating_add(1);
                self.first.get_or_insert_with(|| out.here());
                if let Some((reads, writes)) = queue.flatten() {
                    let active = active.and_then(cell).and_then(two);
                    let active = active.map_or_else(String::new, |(read, write)| {
                        format!(", while {read:.0} read and {write:.0} write")
                    });
                    self.queued += u64::from(reads + writes > 0.0);
                    let name = format!(
                        "{reads:.0} readers and {writes:.0} writers of MongoDB wait in its queue{active}"
                    );
                    self.queues.take(reads + writes, &name, out.here());
                }
                for (at, largest) in [(dirty, &mut self.dirty), (used, &mut self.used)] {
                    if let Some(share) = at.and_then(cell).and_then(percent) {
                        largest.take(share, "", out.here());
                    }
                }
            }
        }
        Some(())
    }
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if let Some(heading) = Heading::of(&text) {
            self.heading = Some(heading);
            return Understood::Evidence;
        }
        match self.row(&text, out) {
            Some(()) => Understood::Evidence,
            None => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let mut well = true;
        let rows = read.rows;
        if let Some((_, text, quote)) = read.queues.first.filter(|(waiting, ..)| *waiting > 0.0) {
            well = false;
            let text = format!("{text}; somebody waits in {} of {rows} intervals", read.queued);
            // A queue in only some of the intervals may have been brief.
            let kind = match read.queued == rows {
                true => StatementKind::Stalled,
                false => StatementKind::Took,
            };
            out.statement(statements::one(kind, None, quote, text));
        }
        for (largest, limit, what) in [
            (read.dirty, DIRTY_PERCENT, "dirty"),
            (read.used, USED_PERCENT, "used"),
        ] {
            if let Some((share, _, quote)) = largest.first.filter(|(share, ..)| *share >= limit) {
                well = false;
                let text = format!(
                    "{} % of MongoDB's cache is {what}: from {limit:.0} % on the threads of its clients have to empty it",
                    rounded(share)
                );
                out.statement(Statement {
                    share: Some(share / 100.0).filter(|share| *share <= 1.0),
                    ..statements::one(StatementKind::Exhausted, None, quote, text)
                });
            }
        }
        if let Some(quote) = read.first.filter(|_| well) {
            let text = format!("nobody waits in MongoDB's queues in {rows} intervals (0 is well)");
            out.statement(statements::one(StatementKind::WithinNorm, None, quote, text));
        }
        if let Some((seconds, name, quote)) = &read.collections.first
            && *seconds > 0.0
        {
            let next = read.collections.and_next(|seconds| duration(ns_of(seconds)));
            let text = format!(
                "collection {name} takes {} of an interval: {}{next}",
                duration(ns_of(*seconds)),
                read.of_largest
            );
            out.statement(statements::one(
                StatementKind::Took,
                Some(ns_of(*seconds)),
                quote.clone(),
                text,
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const ROWS: &str = "insert query update delete getmore command dirty  used flushes vsize  res qrw   arw net_in net_out conn                time\n\
        \x20   *0    12     *0     *0       0     4|0  1.2% 62.0%       0 2.10G 800M 8|31 1|128   900b   40.1k   90 Apr  4 10:00:01.100\n\
        \x20   *0    10     *0     *0       0     4|0  1.4% 62.1%       0 2.10G 800M 2|11 1|128   900b   40.1k   90 Apr  4 10:00:02.100\n";

    #[test]
    fn the_longest_queue() {
        let reading = read_text("m", ROWS.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "mongostat");
        assert_eq!(reading.accounts[0].not_understood, 0);
        assert_eq!(
            reading.texts(),
            [
                "8 readers and 31 writers of MongoDB wait in its queue, while 1 read and 128 write; somebody waits in 2 of 2 intervals"
            ]
        );
        assert_eq!(reading.observed.statements[0].kind, StatementKind::Stalled);
    }

    #[test]
    fn empty_queues_are_well_and_a_dirty_cache_is_not() {
        let well = ROWS.replace("8|31", " 0|0").replace("2|11", " 0|0");
        assert_eq!(
            read_text("m", well.as_bytes()).observed.statements[0].kind,
            StatementKind::WithinNorm
        );
        let dirty = well.replace(" 1.4%", "23.4%");
        assert!(
            read_text("m", dirty.as_bytes()).texts()[0].starts_with("23.4 % of MongoDB's cache is dirty")
        );
    }

    #[test]
    fn the_collection_that_takes_the_time() {
        let text = "                ns    total    read    write    2024-04-04T10:00:00Z\n    shop.orders    820ms    800ms    20ms\n\
            \x20     shop.cart     14ms    14ms     0ms\n";
        assert_eq!(
            read_text("m", text.as_bytes()).texts(),
            [
                "collection shop.orders takes 820 ms of an interval: reading 800ms, writing 20ms; next shop.cart, 14.0 ms"
            ]
        );
    }

    #[test]
    fn other_tables_are_none() {
        let text = "insert update delete\n1 2 3\nns total\na 3\n";
        assert_ne!(
            read_text("m", text.as_bytes()).observed.sources[0].format,
            "mongostat"
        );
    }
}
