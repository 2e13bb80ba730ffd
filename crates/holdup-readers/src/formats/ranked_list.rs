//! Lists of names with one figure each, below a title that says what it counts: start-up times by module, queues with their messages.
//!
//! In: a title with a unit of time (`Load times (ms) of plugins:`) or `Listing queues …`, and rows of two cells, a number and a name in either
//! order. Out: a statement about the largest, the next, and all together.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::decimal;
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, StatementKind};
use holdup_evidence::units::{duration, whole_percent};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("ranked-list", Family::Times, recognise).about("a list of names with figures");

/// Rows from which it is no chance, and lines of the beginning that are looked at.
const MIN_ROWS: usize = 3;
const LOOKED_AT: usize = 60;

/// Bytes of a line, and of a name.
const LINE: usize = 300;
const NAME: usize = 100;

/// What the figures are.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Unit {
    /// Nanoseconds of one.
    Time(f64),
    Messages,
}

impl Unit {
    /// The unit that a title names; a title has no figure of its own.
    fn of(title: &str) -> Option<Unit> {
        if title.starts_with("Listing queues") || title.ends_with("list_queues") {
            return Some(Unit::Messages);
        }
        let lower = title.to_ascii_lowercase();
        let times = ["time", "took", "duration", "slow", "latency", "spent"];
        if !times.iter().any(|word| lower.contains(word)) {
            return None;
        }
        let mut words = lower.split(|char: char| !char.is_ascii_alphabetic() && char != 'µ');
        words.find_map(|word| {
            Some(Unit::Time(match word {
                "ms" | "msec" | "msecs" | "millis" | "milliseconds" => 1e6,
                "us" | "µs" | "usec" | "usecs" | "microseconds" => 1e3,
                "seconds" | "secs" | "sec" => 1e9,
                _ => return None,
            }))
        })
    }
}

/// A row: its name and its number.
fn row(line: &str) -> Option<(&str, f64)> {
    let line = line.trim();
    let mut words = line.split_whitespace();
    let (first, second) = (words.next()?, words.next()?);
    if words.next().is_some() {
        return None;
    }
    let number = |word: &str| decimal(word.as_bytes()).filter(|value| (0.0..1e15).contains(value));
    let name = |word: &str| {
        word.starts_with(|char: char| char.is_alphabetic() || matches!(char, '_' | '@' | '/' | '.'))
    };
    match (number(first), number(second)) {
        (Some(value), None) if name(second) => Some((second, value)),
        (None, Some(value)) if name(first) => Some((first, value)),
        _ => None,
    }
}

fn is_fence(line: &str) -> bool {
    !line.chars().any(char::is_alphanumeric)
}

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    let mut rows = 0;
    let mut others = 0;
    let mut titled = false;
    let mut queues = false;
    for line in text
        .lines()
        .map(str::trim)
        .filter(|line| !is_fence(line))
        .take(LOOKED_AT)
    {
        match row(line) {
            Some(_) if titled => rows += 1,
            Some(_) => return Sureness::No,
            None if Unit::of(line).is_some() => {
                titled = true;
                queues |= Unit::of(line) == Some(Unit::Messages);
            }
            None => others += 1,
        }
    }
    let enough = if queues { 1 } else { MIN_ROWS };
    match titled && rows >= enough && rows > 2 * others {
        true => Sureness::Likely,
        false => Sureness::No,
    }
}

#[derive(Debug, Default)]
struct Reader {
    unit: Option<Unit>,
    sum: f64,
    rows: u64,
    /// The largest, and the next.
    largest: Option<(f64, String, Quote)>,
    next: Option<(f64, String)>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..LINE).unwrap_or(line));
        if is_fence(&text) {
            return Understood::Ignorable;
        }
        let Some((name, value)) = row(&text).filter(|_| self.unit.is_some()) else {
            if let Some(unit) = Unit::of(text.trim()) {
                self.end(out);
                self.unit = Some(unit);
                return Understood::Evidence;
            }
            return Understood::Ignorable;
        };
        let name: String = name.chars().take(NAME).collect();
        self.sum += value;
        self.rows += 1;
        if self.largest.as_ref().is_none_or(|(largest, ..)| value > *largest) {
            let before = self.largest.replace((value, name, out.here()));
            self.next = before.map(|(value, name, _)| (value, name));
        } else if self.next.as_ref().is_none_or(|(next, _)| value > *next) {
            self.next = Some((value, name));
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let (Some(unit), Some((value, name, quote))) = (read.unit, read.largest) else {
            return;
        };
        let next = read.next.filter(|(next, _)| *next > 0.0);
        let statement = match unit {
            Unit::Time(ns) => {
                let whole = |value: f64| (value * ns).clamp(0.0, 1e18) as Ns;
                let next = next.map_or_else(String::new, |(next, name)| {
                    format!("; next {name}, {}", duration(whole(next)))
                });
                let text = format!(
                    "{name} took {}, {} of all {}{next}",
                    duration(whole(value)),
                    whole_percent(whole(value), whole(read.sum)),
                    read.rows
                );
                statements::one(StatementKind::Took, Some(whole(value)), quote, text)
            }
            Unit::Messages if value > 0.0 => {
                let next = next.map_or_else(String::new, |(next, name)| format!("; next {name}, {next}"));
                let text = format!(
                    "the queue {name} has {value} messages{next}; {} queues in all",
                    read.rows
                );
                statements::one(StatementKind::Took, None, quote, text)
            }
            Unit::Messages => {
                let text = format!("none of {} queues has a message", read.rows);
                statements::one(StatementKind::WithinNorm, None, quote, text)
            }
        };
        out.statement(statement);
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    #[test]
    fn names_with_times_in_either_order() {
        for text in [
            "We see that these modules (times in ms) take most:\n```\n382.4 unicorn\n275.6 cap.stone\n60.6 arguments\n```\n",
            "Startup time by module, milliseconds\nunicorn   382.4\ncap.stone 275.6\narguments  60.6\n",
        ] {
            let reading = read_text("l", text.as_bytes());
            assert_eq!(reading.observed.sources[0].format, "ranked-list");
            assert_eq!(
                reading.texts(),
                ["unicorn took 382 ms, 53 % of all 3; next cap.stone, 276 ms"]
            );
        }
    }

    #[test]
    fn queues_with_messages_and_empty_ones() {
        let text = "Listing queues ...\nnotifications.info\t1536\nreply_9a1\t0\nscheduler\t2\n...done.\n";
        assert_eq!(
            read_text("l", text.as_bytes()).texts(),
            ["the queue notifications.info has 1536 messages; next scheduler, 2; 3 queues in all"]
        );
        let well = text.replace("1536", "0").replace("\t2", "\t0");
        assert_eq!(
            read_text("l", well.as_bytes()).observed.statements[0].kind,
            StatementKind::WithinNorm
        );
    }

    #[test]
    fn other_lists_are_none() {
        for text in [
            "120 a\n40 b\n12 c\n",
            "Sizes in MB:\n120 a\n40 b\n12 c\n",
            "The time was 3 seconds.\nIt was long ago\nand far away\n12 c\n",
        ] {
            assert_ne!(
                read_text("l", text.as_bytes()).observed.sources[0].format,
                "ranked-list"
            );
        }
    }
}
