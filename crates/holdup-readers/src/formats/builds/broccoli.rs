//! The slowest nodes of a build by Broccoli, as `ember build` and `ember serve` print them.
//!
//! In: a heading `Slowest Nodes (totalTime >= 5%) | Total (avg)`, a line of dashes, and rows `Babel: app (3) | 9120ms (3040 ms)`; the time of
//! the whole build may stand before or behind them. Out: a statement about the largest, with its share of the build.
//! Source: `print-slow-nodes` of ember-cli and broccoli-slow-trees.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{Largest, any_line, holds, number, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Statement, StatementKind};
use holdup_evidence::units::{duration, whole_percent};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("broccoli-times", Family::Times, recognise)
    .about("the slowest nodes of a build by Broccoli");

fn recognise(head: &[u8]) -> Sureness {
    let titled = holds(head, "Slowest Nodes") || holds(head, "Slowest Trees");
    // Other tables have milliseconds behind a bar too, but none with the mean beside them.
    let row = |line: &str| Row::of(line).is_some_and(|row| titled || row.mean.is_some());
    Sureness::certain_if((titled || holds(head, "----+----")) && any_line(head, row))
}

/// `Babel: app (3)   | 9120ms (3040 ms)`.
#[derive(Debug, PartialEq)]
struct Row<'a> {
    name: &'a str,
    ms: f64,
    mean: Option<f64>,
}

/// Milliseconds.
fn ms(text: &str) -> Option<f64> {
    number(text.trim().strip_suffix("ms")?.trim())
}

impl<'a> Row<'a> {
    fn of(line: &'a str) -> Option<Row<'a>> {
        let (name, times) = line.rsplit_once('|')?;
        let (all, mean) = times.split_once('(').unwrap_or((times, ""));
        let name = name.trim();
        let mean = ms(mean.trim().trim_end_matches(')'));
        (!name.is_empty()).then_some(Row {
            name,
            ms: ms(all)?,
            mean,
        })
    }
}

/// `Build successful (16345ms)`.
fn whole(line: &str) -> Option<f64> {
    let (_, rest) = line.split_once("Build successful (")?;
    ms(rest.split(')').next()?)
}

fn ns(ms: f64) -> Ns {
    (ms.clamp(0.0, 1e12) * 1e6) as Ns
}

#[derive(Debug, Default)]
struct Reader {
    nodes: Largest,
    /// Of the largest, how long each of several took.
    mean: Option<f64>,
    whole: Option<f64>,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if let Some(row) = Row::of(&text) {
            if self.nodes.take(row.ms, row.name, out.here()) {
                self.mean = row.mean;
            }
            return Understood::Evidence;
        }
        if let Some(ms) = whole(&text) {
            // Behind the rows of another build it is the next one's.
            if self.whole.is_some() && self.nodes.count > 0 {
                self.end(out);
            }
            self.whole = Some(ms);
            return Understood::Evidence;
        }
        if text.starts_with("Slowest Nodes") || text.starts_with("Slowest Trees") {
            if self.nodes.count > 0 {
                self.end(out);
            }
            return Understood::Evidence;
        }
        match text.chars().all(|char| matches!(char, '-' | '+')) {
            true => Understood::Evidence,
            false => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let Some((value, name, quote)) = &read.nodes.first else {
            return;
        };
        let time = |ms: f64| duration(ns(ms));
        let mut text = format!("{name} took {}", time(*value));
        if let Some(mean) = read.mean.filter(|mean| *mean < *value) {
            text.push_str(&format!(" ({} at the mean)", time(mean)));
        }
        let whole = read.whole.filter(|whole| *whole >= *value);
        match whole {
            Some(whole) => {
                let part = whole_percent(ns(*value), ns(whole));
                text.push_str(&format!(", {part} of the build's {}", time(whole)));
            }
            None => text.push_str(&format!(
                ", the largest of {} slowest nodes of the build",
                read.nodes.count
            )),
        }
        text.push_str(&read.nodes.and_next(time));
        out.statement(Statement {
            share: whole.map(|whole| value / whole),
            ..statements::one(StatementKind::Took, Some(ns(*value)), quote.clone(), text)
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    const TABLE: &str = "Build successful (20100ms) – Serving on http://localhost:4200/\n\n\
        Slowest Nodes (totalTime >= 5%)                  | Total (avg)         \n\
        -------------------------------------------------+---------------------\n\
        Bundler (1)                                      | 4020ms              \n\
        Babel: shop (4)                                  | 12060ms (3015 ms)   \n";

    #[test]
    fn the_slowest_node_and_its_part_of_the_build() {
        let reading = read_text("b", TABLE.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "broccoli-times");
        assert_eq!(
            reading.texts(),
            [
                "Babel: shop (4) took 12.06 s (3.02 s at the mean), 60 % of the build's 20.10 s; next Bundler (1), 4.02 s"
            ]
        );
    }

    #[test]
    fn an_excerpt_without_the_whole() {
        let rows: String = TABLE.lines().skip(2).map(|line| format!("{line}\n")).collect();
        assert_eq!(
            read_text("b", rows.as_bytes()).texts(),
            [
                "Babel: shop (4) took 12.06 s (3.02 s at the mean), the largest of 2 slowest nodes of the build; next Bundler (1), \
                 4.02 s"
            ]
        );
    }

    #[test]
    fn other_tables_are_none() {
        for text in [
            "name | time\n-----|-----\na | 12 ms\nb | 3 ms\n",
            " name   | took\n--------+------\n orders | 12ms\n shops  | 3ms\n",
        ] {
            assert_ne!(
                read_text("b", text.as_bytes()).observed.sources[0].format,
                "broccoli-times"
            );
        }
    }
}
