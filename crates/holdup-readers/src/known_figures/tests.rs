//! Each known figure is judged in a line as its program writes it, in tables and beside others, and a healthy one says nothing.

use super::table::{TABLES, all, key, row, rows, words};
use super::{MAX_STATEMENTS, Row};
use crate::read_text;
use holdup_evidence::observed::{Statement, StatementKind};
use std::collections::HashSet;

/// Lines as the programs write them, of bad figures and of healthy ones: one for each row of the table of the same place, in the same
/// order.
const EXAMPLES: [[&str; 2]; TABLES.len()] = [
    [
        include_str!("examples/kernel.txt"),
        include_str!("examples/kernel-healthy.txt"),
    ],
    [
        include_str!("examples/data.txt"),
        include_str!("examples/data-healthy.txt"),
    ],
    [
        include_str!("examples/runtimes.txt"),
        include_str!("examples/runtimes-healthy.txt"),
    ],
    [
        include_str!("examples/infra.txt"),
        include_str!("examples/infra-healthy.txt"),
    ],
];

/// Bytes of a meaning at most: it stands behind the figure.
const MAX_MEANING_BYTES: usize = 180;

/// Bytes of a name of one word at least: a shorter one is a word of other programs, too.
const MIN_WORD_BYTES: usize = 8;

fn said(text: &str) -> Vec<Statement> {
    read_text("t", text.as_bytes()).observed.statements
}

/// What is said of known figures.
fn known(text: &str) -> Vec<Statement> {
    let mut all = said(text);
    all.retain(|one| one.known.is_some() && one.of_reader);
    all
}

/// Whether something is said that is no trouble: a count of what waits, a length of time.
fn is_no_trouble(one: &Statement) -> bool {
    matches!(one.kind, StatementKind::Took | StatementKind::WithinNorm)
}

/// Each row with a bad and a healthy line.
fn examples() -> Vec<(&'static Row, &'static str, &'static str)> {
    let lines = |which: usize| EXAMPLES.iter().flat_map(move |files| files[which].lines());
    let both = lines(0).zip(lines(1));
    all()
        .iter()
        .zip(both)
        .map(|(row, (bad, well))| (row, bad, well))
        .collect()
}

#[test]
fn each_line_of_a_table_is_a_row_with_examples_and_a_name_of_its_own() {
    let mut known = HashSet::new();
    let mut wrong = Vec::new();
    for (table, [bad, well]) in TABLES.iter().zip(EXAMPLES) {
        let lines = table
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        wrong.extend(lines.filter(|line| row(line).is_none()).map(str::to_owned));
        let count = rows(table).count();
        assert_eq!((bad.lines().count(), well.lines().count()), (count, count));
    }
    for row in all() {
        let (name, means) = (row.name, row.means);
        let one_word = words(name.as_bytes()).len() < 2;
        if one_word && name.len() < MIN_WORD_BYTES {
            wrong.push(format!("too short: {name}"));
        }
        if !known.insert(key(name.as_bytes())) {
            wrong.push(format!("twice: {name}"));
        }
        if means.is_empty() || means.len() > MAX_MEANING_BYTES || means.ends_with('.') {
            wrong.push(format!("meaning of {} bytes: {means}", means.len()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_bad_example_states_its_kind_and_meaning() {
    let wrong: Vec<String> = examples()
        .into_iter()
        .filter(|(row, line, _)| {
            let known = known(line);
            !known
                .iter()
                .any(|one| one.kind == row.kind && one.known == Some(row.known()))
        })
        .map(|(row, line, _)| format!("{}: {line}", row.name))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_healthy_example_states_trouble() {
    let wrong: Vec<String> = examples()
        .into_iter()
        .filter_map(|(row, _, line)| {
            let of_trouble = said(line).into_iter().find(|one| !is_no_trouble(one))?;
            Some(format!("{}: {line}: {}", row.name, of_trouble.text))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn all_healthy_examples_together_state_no_trouble_and_all_bad_ones_only_so_many() {
    for [bad, well] in EXAMPLES {
        let known_bad = known(bad);
        assert!(known_bad.len() <= MAX_STATEMENTS);
        assert!(bad.is_empty() || !known_bad.is_empty());
        let wrong: Vec<String> = known(well).into_iter().map(|one| one.text).collect();
        assert_eq!(wrong, [""; 0]);
    }
}
