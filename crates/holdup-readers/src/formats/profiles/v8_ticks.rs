//! What `node --prof-process` prints: how many of V8's ticks fell into which function.
//!
//! In: sections in brackets (`[JavaScript]:`), below each a heading and rows of ticks, shares and a name. Out: the entry with most ticks, with
//! its section and share, how much went to the collector of garbage, and who called it, by the bottom-up profile.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("v8-ticks", Family::Profiles, recognise)
    .about("the profile of node --prof-process")
    .openings(&["Statistical profiling result from "]);

/// Bytes of a name.
const NAME: usize = 160;

/// The part of all ticks from which the collector is named beside another entry.
const MIN_COLLECTOR_SHARE: f64 = 0.1;

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    let begins = text.contains("Statistical profiling result from ");
    let mut lines = text.lines().map(str::trim);
    let section = lines.any(|line| matches!(Section::of(line), Some(Section::Entries(_))));
    let heading = text.lines().any(|line| {
        let mut words = line.split_whitespace();
        words.by_ref().take(2).eq(["ticks", "total"]) || line.trim().starts_with("ticks parent  name")
    });
    Sureness::certain_if((begins || section) && heading)
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
enum Section {
    /// Functions or files, each with its own ticks.
    Entries(&'static str),
    /// Sums of the other sections.
    Summary,
    /// Who called what.
    BottomUp,
    #[default]
    Other,
}

impl Section {
    /// ` [JavaScript]:`.
    fn of(line: &str) -> Option<Section> {
        let name = line.strip_prefix('[')?.strip_suffix("]:")?;
        Some(match name {
            "Shared libraries" => Section::Entries("shared libraries"),
            "JavaScript" => Section::Entries("JavaScript"),
            "C++" => Section::Entries("C++"),
            "Summary" => Section::Summary,
            name if name.starts_with("Bottom up") => Section::BottomUp,
            _ => Section::Other,
        })
    }
}

/// A row: ticks, the share of all, and a name.
fn row(text: &str) -> Option<(u64, f64, &str)> {
    let (ticks, rest) = text.split_once(' ')?;
    let ticks = ticks.parse().ok()?;
    let (share, mut rest) = rest.trim_start().split_once(' ')?;
    let share: f64 = share.strip_suffix('%')?.parse().ok()?;
    // The share without libraries.
    if let Some((second, name)) = rest.trim_start().split_once(' ')
        && second.ends_with('%')
    {
        rest = name;
    }
    let name = rest.trim();
    (!name.is_empty() && (0.0..=100.0).contains(&share)).then_some((ticks, share, name))
}

#[derive(Debug, Default)]
struct Entry {
    ticks: u64,
    share: f64,
    name: String,
    section: &'static str,
    quote: Quote,
}

#[derive(Debug, Default)]
struct Reader {
    section: Section,
    most: Entry,
    collector: f64,
    /// The first caller of each of the bottom-up profile's entries, while the entry is the one with most ticks.
    awaits_caller: bool,
    caller: String,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..1_000).unwrap_or(line));
        let text = text.trim();
        if let Some(section) = Section::of(text) {
            self.section = section;
            return Understood::Evidence;
        }
        let Some((ticks, share, name)) = row(text) else {
            return Understood::Ignorable;
        };
        match &self.section {
            Section::Entries(section) if ticks > self.most.ticks => {
                self.most = Entry {
                    ticks,
                    share,
                    name: name.chars().take(NAME).collect(),
                    section,
                    quote: out.here(),
                };
            }
            Section::Summary if name == "GC" => self.collector = share,
            Section::BottomUp if self.awaits_caller => {
                self.awaits_caller = false;
                if name != self.most.name {
                    self.caller = format!(
                        "{} ({share} % of it)",
                        name.chars().take(NAME).collect::<String>()
                    );
                }
            }
            Section::BottomUp if self.caller.is_empty() => {
                self.awaits_caller = ticks == self.most.ticks && name == self.most.name;
            }
            _ => {}
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let most = read.most;
        if most.ticks == 0 {
            return;
        }
        let caller = match read.caller.as_str() {
            "" => String::new(),
            caller => format!(", called by {caller}"),
        };
        let collector = match read.collector / 100.0 >= MIN_COLLECTOR_SHARE {
            true => format!("; {} % in the collector of garbage", read.collector),
            false => String::new(),
        };
        let text = format!(
            "{} ({}): {} % of all ticks, {}{caller}{collector}",
            most.name, most.section, most.share, most.ticks
        );
        out.statement(Statement {
            share: Some(most.share / 100.0),
            ..statements::one(StatementKind::Took, None, most.quote, text)
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn the_function_with_most_ticks_its_caller_and_the_collector() {
        let text = "Statistical profiling result from isolate-v8.log, (900 ticks, 2 unaccounted, 0 excluded).\n\n [Shared libraries]:\n   ticks  total  nonlib   name\n     12    1.3%          /usr/bin/node\n\n \
            [JavaScript]:\n   ticks  total  nonlib   name\n    500   55.6%   56.8%  LazyCompile: *words /app/a.js:7:3\n\n [Summary]:\n   ticks  total  nonlib   name\n    \
            510   56.7%   57.0%  JavaScript\n    180   20.0%   20.3%  GC\n\n [Bottom up (heavy) profile]:\n   ticks parent  name\n    500   55.6%  LazyCompile: *words /app/a.js:7:3\n    \
            450   90.0%    LazyCompile: *page /app/b.js:1:1\n";
        let reading = read_text("v", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "v8-ticks");
        assert_eq!(
            reading.texts(),
            [
                "LazyCompile: *words /app/a.js:7:3 (JavaScript): 55.6 % of all ticks, 500, called by LazyCompile: *page /app/b.js:1:1 (90 % of it); \
              20 % in the collector of garbage"
            ]
        );
    }

    #[test]
    fn rubbish_is_survived() {
        let text = "Statistical profiling result from x\n [C++]:\n ticks  total\n 9 9% \n 99999999999999999999 1% x\n 1 NaN% x\n [Bottom up:\n";
        let _ = read_text("v", text.as_bytes());
    }
}
