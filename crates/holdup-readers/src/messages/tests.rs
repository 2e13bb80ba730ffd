//! Each known message is found in a line as its program writes it, and no two contradict each other.

use super::{GAP, MESSAGES, Message, TABLES, of, row, rows};
use std::collections::HashSet;

/// Lines as the programs write them: one for each row of the table of the same place, in the same order.
const EXAMPLES: [&str; TABLES.len()] = [
    include_str!("examples/kernel.txt"),
    include_str!("examples/data.txt"),
    include_str!("examples/runtimes.txt"),
    include_str!("examples/infra.txt"),
    include_str!("examples/storage.txt"),
    include_str!("examples/devices.txt"),
    include_str!("examples/services.txt"),
];

/// Rows that each table has at least.
const MIN_ROWS: usize = 100;

/// Bytes of the words that are searched, at least, and of all words of a row: fewer are words of other programs, too.
const MIN_FIRST_BYTES: usize = 8;
const MIN_BYTES: usize = 11;
const MIN_PIECE_BYTES: usize = 6;

/// Bytes of a meaning at most: it stands behind the line.
const MAX_MEANING_BYTES: usize = 240;

/// Each message with its example.
pub(crate) fn examples() -> Vec<(&'static Message, &'static str)> {
    let all = MESSAGES.as_ref().unwrap().all.iter();
    all.zip(EXAMPLES.iter().flat_map(|file| file.lines())).collect()
}

#[test]
fn each_line_of_a_table_is_a_row_and_has_an_example() {
    for (table, examples) in TABLES.iter().zip(EXAMPLES) {
        let lines = table
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        for line in lines {
            assert!(row(line).is_some(), "{line}");
        }
        let count = rows(table).count();
        assert!(count >= MIN_ROWS, "{count}");
        assert_eq!(count, examples.lines().count());
    }
}

#[test]
fn each_message_is_found_in_its_example() {
    let wrong: Vec<String> = examples()
        .into_iter()
        .filter(|(message, line)| of(line.as_bytes()).is_none_or(|found| found.message != *message))
        .map(|(message, line)| {
            let found = of(line.as_bytes()).map(|found| found.message);
            format!("{message:?}\n  {line}\n  {found:?}")
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn words_are_distinctive_no_two_rows_have_the_same_and_meanings_are_short() {
    let mut known = HashSet::new();
    let mut wrong = Vec::new();
    for message in &MESSAGES.as_ref().unwrap().all {
        let first = message.pieces.first().map_or(0, |piece| piece.len());
        let short = message.pieces.iter().any(|piece| piece.len() < MIN_PIECE_BYTES);
        if first < MIN_FIRST_BYTES || message.length() < MIN_BYTES || short {
            wrong.push(format!("too short: {}", message.pieces.join(GAP)));
        }
        if !known.insert(message.pieces.clone()) {
            wrong.push(format!("twice: {}", message.pieces.join(GAP)));
        }
        let means = message.means;
        if means.is_empty()
            || means.len() > MAX_MEANING_BYTES
            || means.ends_with('.')
            || means != means.trim()
        {
            wrong.push(format!("meaning of {} bytes: {means}", means.len()));
        }
        if message.program.is_empty() {
            wrong.push(format!("no program: {means}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_cause_in_a_line_or_else_the_more_specific_message_counts_and_words_within_a_word_do_not() {
    let line = b"Memory cgroup out of memory: Killed process 7 (java) total-vm:1kB, anon-rss:1kB";
    assert!(of(line).unwrap().message.means.contains("cgroup"));
    let line = b"rpc error: code = Unavailable desc = etcdserver: no leader";
    assert!(of(line).unwrap().message.means.contains("elected"));
    let line = b"Kernel panic - not syncing: hung_task: blocked tasks";
    assert!(of(line).unwrap().message.means.contains("waited too long"));
    assert!(of(b"xnf_conntrack: table full, dropping packet").is_none());
    assert!(of(b"nf_conntrack: table full, dropping packet").is_some());
    assert!(of(b"table is full of dropped packets").is_none());
}

#[test]
fn a_line_of_many_messages_costs_no_more_than_a_bound_of_tries() {
    let line = b"NETDEV WATCHDOG: NETDEV WATCHDOG: ".repeat(100_000);
    assert!(of(&line).is_none());
}
