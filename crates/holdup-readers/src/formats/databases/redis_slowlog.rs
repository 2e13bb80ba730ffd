//! The slow log of Redis and Valkey, as `redis-cli` prints `SLOWLOG GET`.
//!
//! In: numbered lists within a numbered list: of each entry its number, the time, microseconds, the command, the client. Out: one
//! statement for each command, with the longest time and how often; arguments are data and stay out, but for the first, the key.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use std::collections::BTreeMap;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("redis-slowlog", Family::Databases, recognise).about("the slow log of Redis");

/// Commands that are kept apart, and bytes of a word.
const COMMANDS: usize = 200;
const WORD: usize = 60;

const NS_PER_US: Ns = 1_000;

fn recognise(head: &[u8]) -> Sureness {
    let lines: Vec<&[u8]> = head.split(|byte| *byte == b'\n').collect();
    let entry = |three: &[&[u8]]| {
        let [first, second, third] = three else {
            return false;
        };
        let first = Item::of(first);
        let of = |line: &&[u8], number| {
            Item::of(line).is_some_and(|item| item.at(&[number]) && item.integer.is_some())
        };
        first.is_some_and(|item| item.places.len() == 2 && item.ends_with(1) && item.integer.is_some())
            && of(second, 2)
            && of(third, 3)
    };
    Sureness::certain_if(
        lines.windows(3).any(entry) || lines.iter().any(|line| Field::of(line) == Some(Field::Id)),
    )
}

/// A line of an entry as other clients print it: a name and a value.
#[derive(Debug, PartialEq)]
enum Field<'a> {
    Id,
    /// The server counts microseconds, whatever the client's title says.
    Time(u64),
    Command(&'a [u8]),
    Other,
}

impl<'a> Field<'a> {
    /// `1) Slow log id: 2`, `   Running time(ms): 1598440`, `   Command: keys k1*`.
    fn of(line: &'a [u8]) -> Option<Field<'a>> {
        let line = line.trim_ascii();
        let colon = memchr::memchr(b':', line)?;
        let (name, value) = (line.get(..colon)?, line.get(colon + 1..)?.trim_ascii());
        let number = || crate::numbers::whole(value);
        Some(match name {
            _ if name.ends_with(b"Slow log id") => number().map(|_| Field::Id)?,
            _ if name.starts_with(b"Running time") => Field::Time(number()?),
            b"Command" => Field::Command(value),
            b"Start at" | b"Client IP and port" | b"Client name" => Field::Other,
            _ => return None,
        })
    }
}

/// A line: its numbers in the lists, and its value.
#[derive(Debug)]
pub(super) struct Item<'a> {
    pub(super) places: Vec<u64>,
    pub(super) integer: Option<u64>,
    pub(super) text: &'a [u8],
}

impl<'a> Item<'a> {
    /// ` 2) 1) (integer) 7`, `   4) 1) "KEYS"`.
    pub(super) fn of(line: &'a [u8]) -> Option<Item<'a>> {
        const DEPTH: usize = 4;
        let mut rest = line.trim_ascii();
        let mut places = Vec::new();
        while places.len() < DEPTH {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (number, behind) = rest.split_at(digits);
            let Some(behind) = behind.strip_prefix(b") ").filter(|_| digits > 0) else {
                break;
            };
            places.push(crate::numbers::whole(number)?);
            rest = behind.trim_ascii_start();
        }
        let integer = rest.strip_prefix(b"(integer) ").and_then(crate::numbers::whole);
        (!places.is_empty()).then_some(Item {
            places,
            integer,
            text: rest,
        })
    }

    pub(super) fn at(&self, places: &[u64]) -> bool {
        self.places == places
    }

    pub(super) fn ends_with(&self, place: u64) -> bool {
        self.places.last() == Some(&place)
    }
}

#[derive(Debug, Default)]
struct Reader {
    /// Of the entry that is being read.
    ns: Option<Ns>,
    words: Vec<String>,
    in_command: bool,
    quote: Option<Quote>,
    /// By name: the longest, how often, the words of the longest, where.
    commands: BTreeMap<String, (Ns, u64, String, Quote)>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Understood::Ignorable;
        }
        if let Some(field) = Field::of(line) {
            self.field(field, out);
            return Understood::Evidence;
        }
        let Some(item) = Item::of(line) else {
            // The prompt with the command.
            return match line.ends_with(b"```") || memchr::memmem::find(line, b"> ").is_some() {
                true => Understood::Ignorable,
                false => Understood::No,
            };
        };
        match (item.places.as_slice(), item.integer) {
            ([_, 1], Some(_)) => {
                self.close(out);
                self.quote = Some(out.here());
            }
            ([2], Some(_)) => {}
            ([3], Some(us)) => self.ns = us.checked_mul(NS_PER_US),
            ([4, 1], _) => {
                self.in_command = true;
                self.word(item.text);
            }
            ([4..=6], _) if !self.in_command => {}
            ([place], _) if self.in_command => {
                // The client's address is the fifth of the entry, and its words begin again with the second.
                let of_command = usize::try_from(*place).is_ok_and(|place| place == self.words.len() + 1);
                match of_command {
                    true => self.word(item.text),
                    false => self.in_command = false,
                }
            }
            _ => {}
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close(out);
        for (name, (ns, times, words, quote)) in std::mem::take(&mut self.commands) {
            let text = format!("{name} took {}: {words}", holdup_evidence::units::duration(ns));
            out.statement(Statement {
                times,
                ..statements::one(StatementKind::Took, Some(ns), quote, text)
            });
        }
    }
}

impl Reader {
    fn field(&mut self, field: Field<'_>, out: &mut Out<'_>) {
        match field {
            Field::Id => {
                self.close(out);
                self.quote = Some(out.here());
            }
            Field::Time(us) => self.ns = us.checked_mul(NS_PER_US),
            Field::Command(words) => crate::numbers::words(words)
                .take(2)
                .for_each(|word| self.word(word)),
            Field::Other => {}
        }
    }

    fn word(&mut self, text: &[u8]) {
        let text = text.strip_prefix(b"\"").unwrap_or(text);
        let text = text.strip_suffix(b"\"").unwrap_or(text);
        self.words.push(text_of(text.get(..WORD).unwrap_or(text)));
    }

    fn close(&mut self, out: &mut Out<'_>) {
        let words = std::mem::take(&mut self.words);
        self.in_command = false;
        let (Some(ns), Some(name), Some(quote)) = (self.ns.take(), words.first(), self.quote.take()) else {
            return;
        };
        let name = name.to_ascii_uppercase();
        let listed = words.iter().take(2).cloned().collect::<Vec<_>>().join(" ");
        if self.commands.len() >= COMMANDS && !self.commands.contains_key(&name) {
            out.account().left_out += 1;
            return;
        }
        let known = self
            .commands
            .entry(name)
            .or_insert_with(|| (ns, 0, listed.clone(), quote.clone()));
        known.1 += 1;
        if ns > known.0 {
            (known.0, known.2, known.3) = (ns, listed, quote);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn the_longest_of_each_command_with_its_key() {
        let text = "127.0.0.1:6379> SLOWLOG GET 2\n 1) 1) (integer) 31\n    2) (integer) 1730000000\n    3) (integer) 2400123\n    4) 1) \"KEYS\"\n       2) \"user:*\"\n    5) \"10.0.0.4:4411\"\n    6) \"\"\n \
            2) 1) (integer) 30\n    2) (integer) 1729999990\n    3) (integer) 90011\n    4) 1) \"keys\"\n       2) \"*\"\n    5) \"10.0.0.4:4412\"\n    6) \"\"\n";
        let reading = read_text("r", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "redis-slowlog");
        let [one] = reading.observed.statements.as_slice() else {
            panic!("{:?}", reading.observed.statements)
        };
        assert_eq!(
            (one.text.as_str(), one.times),
            ("KEYS took 2.40 s: KEYS user:*", 2)
        );
    }

    #[test]
    fn entries_of_names_and_values_are_microseconds_too() {
        let text = "127.0.0.1:6379> slowlog get\n1) Slow log id: 4\n   Start at: 1730000000\n   Running time(ms): 731000\n   Command: smembers big:set\n   Client IP and port: 10.0.0.4:4411\n   Client name:\n";
        let reading = read_text("r", text.as_bytes());
        assert_eq!(
            reading.observed.statements[0].text,
            "SMEMBERS took 731 ms: smembers big:set"
        );
        assert_eq!(reading.accounts[0].not_understood, 0);
    }

    #[test]
    fn what_is_cut_anywhere_is_survived() {
        let text = " 1) 1) (integer) 31\n 2) (integer) 17\n 3) (integer) 99999999999999999999\n 4) 1) \"\n9) 9) 9) 9) 9)\n";
        for end in 0..text.len() {
            let _ = read_text("r", &text.as_bytes()[..end]);
        }
    }
}
