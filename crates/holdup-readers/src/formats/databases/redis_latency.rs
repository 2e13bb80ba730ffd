//! Latency that Redis and Valkey have recorded themselves: `LATENCY LATEST` and `LATENCY HISTORY EVENT`, as `redis-cli` prints them.
//!
//! In: numbered lists within a numbered list: of the latest an event, the time, its last and its longest length in milliseconds; of a history
//! the time and the length. Out: a statement with the longest.

use super::redis_slowlog::Item;
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("redis-latency", Family::Databases, recognise)
    .about("the latency monitor of Redis");

/// Bytes of an event's name, and events that are kept.
const NAME: usize = 60;
const MAX_EVENTS: usize = 200;

const NS_PER_MS: Ns = 1_000_000;

/// Seconds since 1970 from which a number is a time: Redis is younger.
const MIN_TIME_S: u64 = 1_200_000_000;

/// Milliseconds of a length: longer than a day is none.
const MAX_MS: u64 = 86_400_000;

fn is_time(item: &Item<'_>) -> bool {
    item.integer
        .is_some_and(|seconds| (MIN_TIME_S..1 << 33).contains(&seconds))
}

fn recognise(head: &[u8]) -> Sureness {
    let lines: Vec<&[u8]> = head.split(|byte| *byte == b'\n').collect();
    let begins = |three: &[&[u8]]| {
        let mut items = three.iter().map(|line| Item::of(line));
        let (Some(Some(first)), Some(Some(second))) = (items.next(), items.next()) else {
            return false;
        };
        let third = items.next().flatten();
        if first.places.len() != 2 || !first.ends_with(1) || !second.at(&[2]) {
            return false;
        }
        // Of a history two numbers, of the latest a name and three.
        let history = is_time(&first)
            && second.integer.is_some_and(|ms| ms <= MAX_MS)
            && third.as_ref().is_none_or(|third| third.places.len() == 2);
        let latest = first.integer.is_none()
            && is_time(&second)
            && third.is_some_and(|third| third.at(&[3]) && third.integer.is_some());
        history || latest
    };
    let all: Vec<&[u8]> = lines.into_iter().chain([&b""[..]]).collect();
    Sureness::certain_if(all.windows(3).any(begins))
}

#[derive(Debug, Default)]
struct Event {
    name: String,
    longest: u64,
    times: u64,
    quote: Quote,
}

#[derive(Debug, Default)]
struct Reader {
    /// The event of the command whose output a history is.
    asked: String,
    /// Whether the entry that is being read has a name of its own.
    named: bool,
    events: Vec<Event>,
}

/// The event that a typed command asks for: `latency history fork`.
fn asked(text: &str) -> Option<&str> {
    let lower = text.to_ascii_lowercase();
    let at = lower.find("latency history ")? + "latency history ".len();
    text.get(at..)?.split_whitespace().next()
}

impl Reader {
    fn longer(&mut self, ms: u64, out: &Out<'_>) {
        if let Some(event) = self.events.last_mut()
            && ms <= MAX_MS
            && ms > event.longest
        {
            event.longest = ms;
            event.quote = out.here();
        }
    }

    fn begin(&mut self, name: String, out: &mut Out<'_>) {
        if self.events.len() >= MAX_EVENTS {
            out.account().left_out += 1;
            return;
        }
        self.events.push(Event {
            name,
            times: 1,
            quote: out.here(),
            ..Event::default()
        });
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Understood::Ignorable;
        }
        let Some(item) = Item::of(line) else {
            let text = text_of(line.get(..400).unwrap_or(line));
            return match asked(&text) {
                Some(event) => {
                    self.asked = event.chars().take(NAME).collect();
                    Understood::Evidence
                }
                None => Understood::Ignorable,
            };
        };
        match (item.places.as_slice(), item.integer) {
            ([_, 1], Some(_)) => {
                // One history is one event, with all of its entries.
                match self.events.last_mut().filter(|_| !self.named) {
                    Some(event) => event.times += 1,
                    None => self.begin(self.asked.clone(), out),
                }
                self.named = false;
            }
            ([_, 1], None) => {
                let name = text_of(item.text.get(..NAME).unwrap_or(item.text));
                self.named = true;
                self.begin(name.trim_matches('"').to_owned(), out);
            }
            ([2], Some(ms)) if !self.named => self.longer(ms, out),
            ([3 | 4], Some(ms)) if self.named => self.longer(ms, out),
            _ => {}
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        for event in std::mem::take(&mut self.events) {
            if event.longest == 0 {
                continue;
            }
            let ns = event.longest.saturating_mul(NS_PER_MS);
            let name = match event.name.as_str() {
                "" => "an event".to_owned(),
                name => format!("the event {name}"),
            };
            let text = format!(
                "{name} of Redis took up to {} ({} ms)",
                duration(ns),
                event.longest
            );
            out.statement(Statement {
                times: event.times,
                ..statements::one(StatementKind::Took, Some(ns), event.quote, text)
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn the_longest_of_each_event_and_of_a_history() {
        let text = "1) 1) \"aof-fsync-always\"\n   2) (integer) 1404783772\n   3) (integer) 380\n   4) (integer) 3100\n\
            2) 1) \"command\"\n   2) (integer) 1404783770\n   3) (integer) 12\n   4) (integer) 118\n";
        let reading = read_text("l", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "redis-latency");
        assert_eq!(
            reading.texts(),
            [
                "the event aof-fsync-always of Redis took up to 3.10 s (3100 ms)",
                "the event command of Redis took up to 118 ms (118 ms)"
            ]
        );
        let text = "127.0.0.1:6379> latency history fork\n1) 1) (integer) 1404783772\n   2) (integer) 381\n2) 1) (integer) 1404783800\n   2) (integer) 2211\n";
        assert_eq!(
            read_text("l", text.as_bytes()).texts(),
            ["the event fork of Redis took up to 2.21 s (2211 ms)"]
        );
    }

    #[test]
    fn lists_of_other_things_are_none_and_rubbish_is_survived() {
        let text = "1) 1) \"key\"\n   2) \"value\"\n   3) (integer) 3\n";
        assert_ne!(
            read_text("l", text.as_bytes()).observed.sources[0].format,
            "redis-latency"
        );
        let text = "1) 1) (integer) 1404783772\n   2) (integer) 99999999999999999999\n1) 1) \"\n   2) (integer) 1404783772\n   3) (integer) 1\n";
        for end in 0..text.len() {
            let _ = read_text("l", text.as_bytes().get(..end).unwrap_or_default());
        }
    }
}
