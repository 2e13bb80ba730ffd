//! `line_profiler` (`kernprof -l`): how much of a Python function's time each of its lines took.
//!
//! In: for each function its whole time, its file and name, and rows `LINE HITS TIME PER-HIT %-TIME SOURCE`. Out: a statement about the line
//! with most time of the function with most, with its source. Source: `line_profiler.py`, `show_func`.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::formats::report::{any_line, holds, name_of, ns_of, number, rounded, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("line-profiler", Family::Profiles, recognise).about("line_profiler of Python");

fn recognise(head: &[u8]) -> Sureness {
    Sureness::certain_if(holds(head, "Per Hit") && any_line(head, is_heading))
}

fn is_heading(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().take(12).collect();
    words
        == [
            "Line", "#", "Hits", "Time", "Per", "Hit", "%", "Time", "Line", "Contents",
        ]
}

/// A row of a line that ran.
#[derive(Debug, PartialEq)]
struct Row<'a> {
    number: &'a str,
    hits: f64,
    percent: f64,
    source: &'a str,
}

impl<'a> Row<'a> {
    fn of(line: &'a str) -> Option<Row<'a>> {
        let mut rest = line.trim_start();
        let mut word = || {
            let end = rest.find(char::is_whitespace)?;
            let (word, behind) = rest.split_at_checked(end)?;
            rest = behind.trim_start();
            Some(word)
        };
        let line_number = word()?;
        let (hits, time, each, percent) = (number(word()?)?, word()?, word()?, number(word()?)?);
        number(time).and(number(each))?;
        let is_number = line_number.bytes().all(|byte| byte.is_ascii_digit());
        (is_number && percent <= 100.0).then_some(Row {
            number: line_number,
            hits,
            percent,
            source: rest.trim(),
        })
    }
}

#[derive(Debug, Default, Clone)]
struct Function {
    name: String,
    file: String,
    seconds: f64,
    /// The line with most of it: its number, hits, per cent, source.
    line: Option<(String, f64, f64, String, Quote)>,
}

#[derive(Debug, Default)]
struct Reader {
    current: Function,
    reads: bool,
    longest: Option<Function>,
    functions: u64,
}

impl Reader {
    fn close(&mut self) {
        self.reads = false;
        let read = std::mem::take(&mut self.current);
        if read.line.is_none() {
            return;
        }
        self.functions = self.functions.saturating_add(1);
        if self
            .longest
            .as_ref()
            .is_none_or(|longest| read.seconds > longest.seconds)
        {
            self.longest = Some(read);
        }
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_in(line);
        if text.is_empty() {
            return Understood::Ignorable;
        }
        if let Some(rest) = text.strip_prefix("Total time: ") {
            self.close();
            self.current.seconds = rest
                .strip_suffix('s')
                .and_then(|rest| number(rest.trim()))
                .unwrap_or(0.0);
        } else if let Some(file) = text.strip_prefix("File: ") {
            self.current.file = name_of(file);
        } else if let Some(function) = text.strip_prefix("Function: ") {
            self.current.name = name_of(function.split(" at line ").next().unwrap_or(function));
        } else if is_heading(&text) {
            if self.current.line.is_some() {
                self.close();
            }
            self.reads = true;
        } else if let Some(row) = Row::of(&text).filter(|_| self.reads) {
            if self
                .current
                .line
                .as_ref()
                .is_none_or(|(_, _, percent, ..)| row.percent > *percent)
            {
                let (number, source) = (row.number.to_owned(), name_of(row.source));
                self.current.line = Some((number, row.hits, row.percent, source, out.here()));
            }
        } else {
            return Understood::Ignorable;
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close();
        let read = std::mem::take(self);
        let Some(function) = read.longest else { return };
        let Some((number, hits, percent, source, quote)) = function.line else {
            return;
        };
        let of = match (function.name.as_str(), function.file.as_str()) {
            ("", "") => String::new(),
            (name, "") => format!(" of {name}"),
            ("", file) => format!(" of {file}"),
            (name, file) => format!(" of {name} ({file})"),
        };
        let mut text = format!("line {number}{of} took {} %", rounded(percent));
        if function.seconds > 0.0 {
            text.push_str(&format!(" of its {}", duration(ns_of(function.seconds))));
        }
        text.push_str(&format!(" in {hits:.0} hits: `{source}`"));
        if read.functions > 1 {
            text.push_str(&format!("; the longest of {} functions", read.functions));
        }
        let ns = (function.seconds > 0.0).then(|| ns_of(function.seconds * percent / 100.0));
        out.statement(Statement {
            share: Some(percent / 100.0),
            ..statements::one(StatementKind::Took, ns, quote, text)
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    const PROFILE: &str = "Timer unit: 1e-06 s\n\nTotal time: 4 s\nFile: /srv/shop/load.py\nFunction: load at line 12\n\n\
        Line #      Hits         Time  Per Hit   % Time  Line Contents\n==============================================================\n\
        \x20   12                                           def load(days):\n    13        30       1200.0     40.0      0.1      for day in days:\n\
        \x20   14        29    3600000.0 124137.9     90.0          rows.append(fetch(day, 3))\n";

    #[test]
    fn the_line_that_takes_the_time() {
        let reading = read_text("l", PROFILE.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "line-profiler");
        assert_eq!(
            reading.texts(),
            [
                "line 14 of load (/srv/shop/load.py) took 90 % of its 4.00 s in 29 hits: `rows.append(fetch(day, 3))`"
            ]
        );
        assert_eq!(reading.observed.statements[0].share, Some(0.9));
    }

    #[test]
    fn an_excerpt_and_other_tables() {
        let rows: String = PROFILE.lines().skip(6).map(|line| format!("{line}\n")).collect();
        assert_eq!(
            read_text("l", rows.as_bytes()).texts(),
            ["line 14 took 90 % in 29 hits: `rows.append(fetch(day, 3))`"]
        );
        let other = "Line # Hits Per Hit\n1 2 3\n";
        assert_ne!(
            read_text("l", other.as_bytes()).observed.sources[0].format,
            "line-profiler"
        );
    }
}
