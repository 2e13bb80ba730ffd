//! Rows of several figures and a name that are sorted by one of the figures, as profilers of all languages print them.
//!
//! In: lines of a text that no reader knows, before blanks are taken off. Out: the first row of such a list, by the column that it is sorted by,
//! if the heading above names that column as a share or a time. Where names stand and how wide a column is does not matter: the list is sorted
//! by what its maker wants to be looked at.

use super::cells::number;
use super::tables::Fact;
use crate::gather::text_of;
use holdup_evidence::observed::StatementKind;

/// Rows from which it is a list, and those that are kept of one.
const MIN_ROWS: usize = 3;
const MAX_ROWS: usize = 400;

/// Figures of a row.
const MIN_FIGURES: usize = 2;
const MAX_FIGURES: usize = 12;

/// Bytes of a line that are looked at, and of a name.
const LINE: usize = 300;
const NAME: usize = 120;

/// Lines above the rows that may be their heading.
const HEADINGS: usize = 2;

/// Characters that a name of a column may stand beside its figures.
const BESIDE: usize = 3;

/// Lists of one artefact.
const MAX_LISTS: usize = 16;

/// The smallest share of all that is told.
const MIN_SHARE: f64 = 0.1;

/// Figures that are told of a row.
const MAX_FIGURES_TOLD: usize = 4;

/// Parts of names of columns that are shares, and of those that are times.
const SHARES: [&str; 3] = ["%", "pct", "percent"];
const TIMES: [&str; 9] = [
    "time", "self", "cum", "sec", "total", "wait", "ms", "elapsed", "latency",
];

/// A word with its place in characters.
type Word = (usize, usize, String);

#[derive(Debug, Clone)]
struct Row {
    figures: Vec<Word>,
    name: String,
    line: u64,
}

/// A list that was sorted.
#[derive(Debug)]
pub(super) struct Sorted {
    first: u64,
    last: u64,
    fact: Fact,
}

/// Follows the lists of one artefact.
#[derive(Debug, Default)]
pub(super) struct SortedRows {
    rows: Vec<Row>,
    /// Whether the names stand first.
    name_first: bool,
    /// The last lines that are no rows, in which the columns may be named.
    headings: Vec<String>,
    found: Vec<Sorted>,
}

impl SortedRows {
    /// Takes a line; a line without a figure costs next to nothing.
    pub(super) fn line(&mut self, line: &[u8], number: u64) {
        let line = line.get(..LINE).unwrap_or(line);
        let Some((row, name_first)) = row(line, number) else {
            self.pass(line);
            return;
        };
        let same = self
            .rows
            .first()
            .is_some_and(|first| first.figures.len() == row.figures.len() && self.name_first == name_first);
        if !same {
            self.close();
        }
        self.name_first = name_first;
        if self.rows.len() < MAX_ROWS {
            self.rows.push(row);
        }
    }

    /// Passes over a line that is no row.
    pub(super) fn pass(&mut self, line: &[u8]) {
        if !self.rows.is_empty() {
            self.close();
            self.headings.clear();
        }
        let line = line.get(..LINE).unwrap_or(line);
        let rule = !line.iter().any(u8::is_ascii_alphanumeric) && !line.contains(&b'%');
        if rule {
            return;
        }
        if self.headings.len() >= HEADINGS {
            self.headings.remove(0);
        }
        self.headings.push(text_of(line));
    }

    fn close(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        if rows.len() < MIN_ROWS || self.found.len() >= MAX_LISTS {
            return;
        }
        self.found.extend(self.judge(&rows));
    }

    /// The name of a column: the words of the headings that stand above its figures.
    fn label(&self, rows: &[Row], column: usize) -> String {
        let figures = rows.iter().filter_map(|row| row.figures.get(column));
        let (begin, end) = figures.fold((usize::MAX, 0), |(begin, end), (from, to, _)| {
            (begin.min(*from), end.max(*to))
        });
        let mut names = Vec::new();
        for heading in &self.headings {
            let words = words(heading);
            let above = |(from, to, _): &&Word| *from < end && begin < *to;
            let beside = |(from, to, _): &&Word| *from < end + BESIDE && begin < *to + BESIDE;
            let named = words.iter().find(above).or_else(|| words.iter().find(beside));
            names.extend(named.map(|(_, _, word)| word.clone()));
        }
        names.join(" ")
    }

    fn judge(&self, rows: &[Row]) -> Option<Sorted> {
        let columns = rows.first()?.figures.len();
        let value = |row: &Row, column: usize| {
            let (_, _, word) = row.figures.get(column)?;
            number(word).map(|(value, _)| value)
        };
        let labels: Vec<String> = (0..columns).map(|column| self.label(rows, column)).collect();
        let has = |column: usize, parts: &[&str]| {
            let label = labels.get(column).map(|label| label.to_ascii_lowercase());
            label.is_some_and(|label| parts.iter().any(|part| label.contains(part)))
        };
        let sorted = |column: &usize| {
            let values: Option<Vec<f64>> = rows.iter().map(|row| value(row, *column)).collect();
            let values = values.unwrap_or_default();
            let falls = values.windows(2).all(|two| two[0] >= two[1]);
            falls && values.first() > values.last()
        };
        let sorted: Vec<usize> = (0..columns).filter(sorted).collect();
        let by = (sorted.iter().find(|column| has(**column, &SHARES)))
            .or_else(|| sorted.iter().find(|column| has(**column, &TIMES)))
            .copied()?;
        let first = rows.first()?;
        let most = value(first, by)?;
        let sum: f64 = rows.iter().filter_map(|row| value(row, by)).sum();
        let share = match has(by, &SHARES) {
            true => most / 100.0,
            false => most / sum.max(f64::MIN_POSITIVE),
        };
        if !(MIN_SHARE..=1.0).contains(&share) {
            return None;
        }
        let told = std::iter::once(by).chain((0..columns).filter(|column| *column != by));
        let told = told.take(MAX_FIGURES_TOLD).filter_map(|column| {
            let (label, (_, _, figure)) = (labels.get(column)?, first.figures.get(column)?);
            Some(format!("{label} {figure}").trim().to_owned())
        });
        let told: Vec<String> = told.collect();
        Some(Sorted {
            first: first.line,
            last: rows.last()?.line,
            fact: Fact {
                kind: StatementKind::Took,
                share: Some(share),
                ns: None,
                line: first.line,
                text: format!(
                    "{}: {}; the first of {} rows, which are sorted by it",
                    first.name,
                    told.join(", "),
                    rows.len()
                ),
            },
        })
    }

    /// Ends the last list.
    pub(super) fn end(&mut self) {
        self.close();
    }

    /// Whether a line is of a list that was sorted.
    pub(super) fn has(&self, line: u64) -> bool {
        self.found
            .iter()
            .any(|list| (list.first..=list.last).contains(&line))
    }

    /// What all lists say.
    pub(super) fn facts(&mut self) -> Vec<Fact> {
        self.found.drain(..).map(|list| list.fact).collect()
    }
}

/// The words of a line with their places in characters.
fn words(text: &str) -> Vec<Word> {
    let mut found: Vec<Word> = Vec::new();
    let mut within = false;
    for (at, char) in text.chars().enumerate() {
        if char.is_whitespace() {
            within = false;
            continue;
        }
        match found.last_mut().filter(|_| within) {
            Some((_, end, word)) => {
                *end = at + 1;
                word.push(char);
            }
            None => found.push((at, at + 1, String::from(char))),
        }
        within = true;
    }
    found
}

/// Whether a word is a figure: a number with a unit of one or two letters or a sign of per cent, and no date.
fn is_figure(word: &str) -> bool {
    number(word).is_some_and(|(_, unit)| unit.len() <= 2 && !word.contains([':', '/', '=']))
        && word.len() < 24
}

/// A row of figures with a name before or behind them, and which it is.
fn row(line: &[u8], number: u64) -> Option<(Row, bool)> {
    let digits = line
        .iter()
        .filter(|byte| byte.is_ascii_digit())
        .take(MIN_FIGURES)
        .count();
    if digits < MIN_FIGURES {
        return None;
    }
    let text = text_of(line);
    let mut all = words(&text);
    let before = all.iter().take_while(|(_, _, word)| is_figure(word)).count();
    let behind = all
        .iter()
        .rev()
        .take_while(|(_, _, word)| is_figure(word))
        .count();
    let fits = |figures: usize| (MIN_FIGURES..=MAX_FIGURES).contains(&figures) && figures < all.len();
    let (figures, names, name_first) = match (fits(before), fits(behind)) {
        (true, false) => {
            let names = all.split_off(before);
            (all, names, false)
        }
        (false, true) => {
            let figures = all.split_off(all.len() - behind);
            (figures, all, true)
        }
        _ => return None,
    };
    let name = names
        .into_iter()
        .map(|(_, _, word)| word)
        .collect::<Vec<_>>()
        .join(" ");
    let name = name.trim_matches('"');
    if !name.contains(|char: char| char.is_alphabetic()) {
        return None;
    }
    let name = name.chars().take(NAME).collect();
    let row = Row {
        figures,
        name,
        line: number,
    };
    Some((row, name_first))
}

#[cfg(test)]
mod tests {
    use crate::{read_as, read_text};

    /// Of a text whose table another reader would take.
    fn said_as_text(text: &str) -> Vec<String> {
        let statements = read_as(&crate::formats::text::FORMAT, text.as_bytes())
            .observed
            .statements;
        statements.into_iter().map(|one| one.text).collect()
    }

    fn said(text: &str) -> Vec<String> {
        let statements = read_text("t", text.as_bytes()).observed.statements;
        statements.into_iter().map(|one| one.text).collect()
    }

    #[test]
    fn names_behind_figures_below_a_heading_of_two_lines() {
        let text = "  %   cumulative   self              self     total\n time   seconds   seconds    calls  ms/call  ms/call  name\n \
             91.22    419.93   419.93       24 21663.75 21672.50  blend_all\n  4.99    425.25     5.32       24   221.67   221.67  mix\n  \
             0.27    428.98     1.47 14791887     0.00     0.00  fit\n";
        assert!(
            said_as_text(text)[0]
                .starts_with("blend_all: % time 91.22, cumulative seconds 419.93, self seconds 419.93"),
            "{:?}",
            said_as_text(text)
        );
    }

    #[test]
    fn names_before_figures_without_a_name_of_their_column() {
        let text = "                 self.time self.pct total.time total.pct\n\"openText\"         93.26    91.17      93.26     91.17\n\
             \"readAll\"           1.18     1.12       1.18      1.12\n\"scan\"              0.30     0.29       0.30      0.29\n";
        assert!(
            said_as_text(text)[0].starts_with("openText: self.pct 91.17, self.time 93.26"),
            "{:?}",
            said_as_text(text)
        );
    }

    #[test]
    fn rows_that_are_not_sorted_or_not_named_are_no_list() {
        for text in [
            "time  calls  name\n 3 4 a\n 9 1 b\n 2 8 c\n",
            "weight  height  name\n 9 4 a\n 8 1 b\n 2 8 c\n",
            "%time calls name\n 9 4 a\n 8 1 b\n",
        ] {
            let all = said(text);
            assert!(!all.iter().any(|one| one.contains("sorted")), "{all:?}");
        }
    }
}
