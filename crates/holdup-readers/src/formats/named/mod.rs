//! What programs tell of themselves as names and values, one a line: `INFO` of Redis, status pages of servers, times of `curl -w`.
//!
//! In: lines `name: value`, `name=value`, `name value`. Out: statements. A file for each program knows the names and the norms:
//! what is beyond them is reported, and where nothing is, the figures with their norms. Names that are not known say nothing.

pub(super) mod backup;
pub(super) mod clock_sync;
pub(super) mod cpu_stat;
pub(super) mod curl;
pub(super) mod links;
pub(super) mod memory_events;
pub(super) mod mysql_status;
pub(super) mod nvme;
pub(super) mod php_fpm;
pub(super) mod redis_info;
pub(super) mod replica;
pub(super) mod seff;
pub(super) mod sensors;
pub(super) mod storage_links;
pub(super) mod task_sched;
pub(super) mod web_server;

use crate::format::{LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, Statement, StatementKind};

/// Names that are kept, and bytes of a name and of a value.
const NAMES: usize = 1_000;
const NAME: usize = 80;
const VALUE: usize = 200;

/// Words of a name; a longer one is a sentence.
const WORDS: usize = 4;

/// Lines of the beginning in which the names are looked for.
const LOOKED_AT: usize = 200;

/// How sure it is that a text has these names: `most` of them have to be there.
fn has(head: &[u8], names: &[&str], most: usize) -> Sureness {
    let lines = head.split(|byte| *byte == b'\n').take(LOOKED_AT);
    let mut seen: Vec<&str> = Vec::new();
    for line in lines {
        let Some((name, _)) = pair(line) else { continue };
        if let Some(known) = names.iter().find(|known| **known == name)
            && !seen.contains(known)
        {
            seen.push(known);
        }
    }
    Sureness::certain_if(seen.len() >= most)
}

/// A line's name and value.
fn pair(line: &[u8]) -> Option<(String, String)> {
    let line = line.get(..NAME + VALUE).unwrap_or(line);
    let text = text_of(line);
    let text = text.trim().trim_start_matches('"').trim_end_matches(',');
    // A row of a table with a frame: `| name | value |`.
    if let Some(inner) = text.strip_prefix('|').and_then(|rest| rest.strip_suffix('|')) {
        let (name, value) = inner.split_once('|').filter(|(_, value)| !value.contains('|'))?;
        let (name, value) = (name.trim(), value.trim());
        return (!name.is_empty() && name.len() <= NAME).then(|| (name.to_owned(), value.to_owned()));
    }
    let at = text.find([':', '=']).or_else(|| text.find(char::is_whitespace))?;
    let (name, value) = text.split_at_checked(at)?;
    let name = name.trim().trim_end_matches('"').trim();
    let value = value.trim_start_matches([':', '=']).trim().trim_matches('"');
    (!name.is_empty() && name.len() <= NAME).then(|| (name.to_owned(), value.to_owned()))
}

/// What was reported, and where.
#[derive(Debug, Default)]
pub(super) struct Names {
    all: Vec<(String, String, Quote)>,
}

impl Names {
    /// A value as text; empty where the name is not there.
    fn text(&self, name: &str) -> &str {
        let found = self.all.iter().find(|(known, _, _)| known == name);
        found.map_or("", |(_, value, _)| value)
    }

    /// A value as a number.
    fn number(&self, name: &str) -> Option<f64> {
        let value = self.text(name).split_whitespace().next()?;
        crate::numbers::decimal(value.trim_end_matches('s').as_bytes()).filter(|value| *value >= 0.0)
    }

    /// A number that is more than none.
    fn some(&self, name: &str) -> Option<f64> {
        self.number(name).filter(|value| *value > 0.0)
    }

    /// Where a name stands.
    fn place(&self, name: &str) -> Quote {
        let found = self.all.iter().find(|(known, _, _)| known == name);
        found
            .or(self.all.first())
            .map_or_else(Quote::default, |(_, _, quote)| quote.clone())
    }

    /// A statement at the place of a name.
    fn say(&self, kind: StatementKind, name: &str, text: String) -> Statement {
        statements::one(kind, None, self.place(name), text)
    }
}

/// Seconds as nanoseconds.
fn seconds(value: f64) -> Ns {
    (value.clamp(0.0, 1e9) * 1e9) as Ns
}

/// Reads the names and values of one program.
pub(super) struct Reader {
    names: Names,
    judge: fn(&Names) -> Vec<Statement>,
    /// A name that each report has once, whatever stands before it, or what that begins with, with a blank at its end; empty where
    /// the first one is that.
    once: &'static str,
}

impl Reader {
    fn boxed(judge: fn(&Names) -> Vec<Statement>) -> Box<dyn LineReader> {
        Self::once("", judge)
    }

    /// Of reports that may have other figures before their own.
    fn once(once: &'static str, judge: fn(&Names) -> Vec<Statement>) -> Box<dyn LineReader> {
        Box::new(Reader {
            names: Names::default(),
            judge,
            once,
        })
    }

    fn close(&mut self, out: &mut Out<'_>) {
        let names = std::mem::take(&mut self.names);
        if !names.all.is_empty() {
            (self.judge)(&names)
                .into_iter()
                .for_each(|one| out.statement(one));
        }
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let trimmed = line.trim_ascii();
        if trimmed.is_empty() || matches!(trimmed.first(), Some(b'#' | b'-' | b'*' | b'+')) {
            return Understood::Ignorable;
        }
        let Some((name, value)) = pair(line) else {
            // An indented word alone goes on with a value that is a list.
            if line.first().is_some_and(u8::is_ascii_whitespace)
                && let Some((_, value, _)) = self.names.all.last_mut()
                && value.len() + trimmed.len() < VALUE
            {
                value.push(' ');
                value.push_str(&text_of(trimmed));
            }
            return Understood::Ignorable;
        };
        // A name that comes again begins another report of the same.
        let again = self.names.all.first().is_some_and(|(first, _, _)| *first == name);
        let once = |name: &str| name == self.once || self.once.ends_with(' ') && name.starts_with(self.once);
        if again || once(&name) && self.names.all.iter().any(|(known, _, _)| once(known)) {
            self.close(out);
        }
        if self.names.all.len() >= NAMES {
            out.account().left_out += 1;
            return Understood::Evidence;
        }
        // A sentence around the figures is nobody's.
        let is_name = name.split_whitespace().count() <= WORDS;
        self.names.all.push((name, value, out.here()));
        match is_name {
            true => Understood::Evidence,
            false => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close(out);
    }
}

#[cfg(test)]
mod tests {
    use super::pair;

    #[test]
    fn names_and_values_stand_in_several_forms() {
        for line in ["a_b: 12", "a_b=12", "a_b 12", "  \"a_b\" : \"12\",", "a_b:12\r"] {
            assert_eq!(
                pair(line.as_bytes()),
                Some(("a_b".to_owned(), "12".to_owned())),
                "{line}"
            );
        }
        for line in ["", ":", "word", "= 3"] {
            assert_eq!(pair(line.as_bytes()), None, "{line}");
        }
    }
}
