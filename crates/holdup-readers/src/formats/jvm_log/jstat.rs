//! `jstat -gcutil` and `jstat -gc`: how full the generations of a heap are, and how long collections took so far.
//!
//! In: a heading and rows of numbers. Out: between the first row and the last one: full collections and the time that they took, beside
//! how full the old generation is. Of one row alone, what all of them took since the start.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use crate::numbers::{decimal, words};
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("jstat", Family::Runtime, recognise).about("jstat -gcutil, jstat -gc");

/// Per cent of the old generation from which a full collection that has just ended has freed next to nothing.
const FULL_PERCENT: f64 = 95.0;

/// The part of the time that full collections may take: the JVM itself gives up at 98 %, and 5 % is felt.
const MIN_FULL_SHARE: f64 = 0.05;

fn recognise(head: &[u8]) -> Sureness {
    match head
        .split(|byte| *byte == b'\n')
        .any(|line| Columns::of(line).is_some())
    {
        true => Sureness::Certain,
        false => Sureness::No,
    }
}

/// Where the columns are.
#[derive(Debug, Clone, PartialEq)]
struct Columns {
    /// Per cent of the old generation.
    old: Option<usize>,
    /// Size and use of the old generation, KiB.
    sizes: Option<(usize, usize)>,
    full: usize,
    full_time: usize,
    time: usize,
    count: usize,
    /// Whether the first column is the time since the start.
    stamped: bool,
}

impl Columns {
    fn of(line: &[u8]) -> Option<Columns> {
        let names: Vec<&[u8]> = words(line).take(32).collect();
        let at = |name: &[u8]| names.iter().position(|other| *other == name);
        at(b"YGC")?;
        Some(Columns {
            old: at(b"O"),
            sizes: at(b"OC").zip(at(b"OU")),
            full: at(b"FGC")?,
            full_time: at(b"FGCT")?,
            time: at(b"GCT")?,
            count: names.len(),
            stamped: names.first() == Some(&&b"Timestamp"[..]),
        })
    }
}

/// One row.
#[derive(Debug, Clone)]
struct Row {
    old: Option<f64>,
    full: f64,
    full_s: f64,
    all_s: f64,
    /// Seconds since the start, where known.
    at_s: Option<f64>,
    quote: Quote,
}

#[derive(Debug, Default)]
struct Reader {
    columns: Option<Columns>,
    first: Option<Row>,
    last: Option<Row>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Understood::Ignorable;
        }
        if let Some(columns) = Columns::of(line) {
            if self.columns.as_ref().is_some_and(|old| *old != columns) {
                self.close(out);
            }
            self.columns = Some(columns);
            return Understood::Evidence;
        }
        let Some(columns) = &self.columns else {
            return Understood::No;
        };
        // What a collector does not have is a dash.
        let values: Vec<f64> = words(line)
            .take(columns.count)
            .map_while(|word| if word == b"-" { Some(0.0) } else { decimal(word) })
            .collect();
        if values.len() != columns.count {
            return Understood::No;
        }
        let value = |at: usize| values.get(at).copied().unwrap_or(0.0);
        let of_sizes = columns.sizes.filter(|(size, _)| value(*size) > 0.0);
        let row = Row {
            old: columns
                .old
                .map(value)
                .or(of_sizes.map(|(size, used)| 100.0 * value(used) / value(size))),
            full: value(columns.full),
            full_s: value(columns.full_time),
            all_s: value(columns.time),
            at_s: columns.stamped.then(|| value(0)),
            quote: out.here(),
        };
        self.first.get_or_insert_with(|| row.clone());
        self.last = Some(row);
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close(out);
    }
}

fn ns(seconds: f64) -> Ns {
    (seconds.clamp(0.0, 1e9) * 1e9) as Ns
}

impl Reader {
    fn close(&mut self, out: &mut Out<'_>) {
        let (Some(first), Some(last)) = (self.first.take(), self.last.take()) else {
            return;
        };
        let old = last
            .old
            .map(|old| format!("the old generation is {old:.1} % full"));
        let full = last.old.is_some_and(|old| old >= FULL_PERCENT);
        let more = last.full - first.full;
        let took = ns(last.full_s - first.full_s);
        let mut kind = StatementKind::WithinNorm;
        let mut listed = Vec::new();
        let mut length = None;
        if more > 0.0 && took > 0 {
            let within = last
                .at_s
                .zip(first.at_s)
                .map(|(last, first)| last - first)
                .filter(|within| *within > 0.0);
            let part = within.map(|within| (last.full_s - first.full_s) / within);
            let much = part.is_some_and(|part| part >= MIN_FULL_SHARE);
            kind = match () {
                () if full => StatementKind::Exhausted,
                () if much => StatementKind::Stalled,
                () => StatementKind::Took,
            };
            length = Some(took);
            let within = within
                .map(|within| format!(" of {}", duration(ns(within))))
                .unwrap_or_default();
            listed.push(format!(
                "{more:.0} full collections took {}{within} between these rows",
                duration(took)
            ));
        }
        listed.extend(old);
        if more <= 0.0 && last.full > 0.0 {
            let (all, count) = (ns(last.full_s), last.full);
            let mean = duration(ns(last.full_s / count));
            listed.push(format!(
                "{count:.0} full collections took {} since the start, {mean} each",
                duration(all)
            ));
            if last.full_s * 2.0 > last.all_s || full {
                (kind, length) = (StatementKind::Took, Some(all));
            }
        }
        if kind == StatementKind::WithinNorm {
            listed.push(format!(
                "no full collection between these rows (with them and from {FULL_PERCENT} % on the heap is used up)"
            ));
        }
        let whole = if last.all_s > 0.0 {
            last.full_s / last.all_s
        } else {
            0.0
        };
        out.statement(Statement {
            share: (kind != StatementKind::WithinNorm).then_some(whole),
            ..statements::one(kind, length, last.quote, listed.join(", "))
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(rows: &str) -> (StatementKind, String) {
        let text =
            format!("  S0     S1     E      O      M     CCS    YGC     YGCT    FGC    FGCT     GCT\n{rows}");
        let reading = read_text("j", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "jstat");
        assert_eq!(reading.accounts[0].not_understood, 0);
        let one = &reading.observed.statements[0];
        (one.kind, one.text.clone())
    }

    #[test]
    fn full_collections_that_free_nothing() {
        let rows = "  0.00   0.00 100.00  99.98  95.12  91.22    812   22.112   412  812.120  834.232\n\
            \x20 0.00   0.00 100.00  99.99  95.12  91.22    812   22.112   417  821.620  843.732\n";
        assert_eq!(
            said(rows),
            (
                StatementKind::Exhausted,
                "5 full collections took 9.50 s between these rows, the old generation is 100.0 % full"
                    .to_owned()
            )
        );
    }

    #[test]
    fn a_heap_with_room_is_well() {
        let rows = "  0.00  44.12  12.21  21.98  95.12  91.22    812   22.112     2    0.120   22.232\n";
        let (kind, text) = said(&rows.repeat(2));
        assert_eq!(kind, StatementKind::WithinNorm);
        assert!(
            text.starts_with("the old generation is 22.0 % full, 2 full collections took 120 ms"),
            "{text}"
        );
    }

    #[test]
    fn rubbish_is_survived() {
        let text = "YGC FGC FGCT GCT\n1 2 3\n-1 1e400 nan inf\n1 1 1 1\n";
        let _ = read_text("j", text.as_bytes());
    }
}
