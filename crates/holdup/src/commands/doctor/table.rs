//! The table of `holdup doctor`, as text of 80 columns.

use super::{Checkup, State};
use holdup_proc::capability::Machine;
use holdup_views::text::printable;

/// Columns.
const WIDTH: usize = 80;
/// Where the answer begins: behind the longest name.
const ANSWER: usize = 33;
/// Where notes begin: behind the longest answer, "not needed".
const NOTE: usize = 47;
/// Where what is lost and the fix begin.
const DETAIL: usize = 13;

/// The whole table.
pub(super) fn text(checkup: &Checkup, machine: &Machine) -> String {
    let release = machine.kernel_release.as_deref().map(ascii).unwrap_or_default();
    let mut text = format!("holdup doctor   Linux {release}\n\n");
    wrap(&mut text, "", &checkup.sentence(), 0);
    text.push('\n');
    for row in &checkup.rows {
        let (word, note) = match &row.state {
            State::Yes(note) => ("yes", note),
            State::No(why) => ("NO", why),
            State::Unknown(why) => ("unknown", why),
        };
        wrap(&mut text, &head(&ascii(&row.what), word), &ascii(note), NOTE);
        if matches!(row.state, State::No(_)) {
            wrap(&mut text, "      lost", &ascii(&row.lost), DETAIL);
            wrap(&mut text, "      fix", &ascii(&row.fix), DETAIL);
        }
    }
    for (name, answer, value) in asides(machine) {
        wrap(&mut text, &head(name, answer), &ascii(&value), NOTE);
    }
    text
}

/// A row's name and answer.
fn head(name: &str, answer: &str) -> String {
    let name = format!("  {name}");
    format!("{name:<ANSWER$}  {answer}  ")
}

/// What holdup does not need but people ask about: name, answer, value.
fn asides(machine: &Machine) -> Vec<(&'static str, &'static str, String)> {
    const NOT_NEEDED: &str = "not needed";
    let mut asides = Vec::new();
    let tracefs = machine
        .tracefs
        .clone()
        .unwrap_or_else(|| "not mounted".to_owned());
    asides.push(("tracefs", NOT_NEEDED, tracefs));
    if let Some(value) = machine.unprivileged_bpf_disabled {
        asides.push(("unprivileged_bpf_disabled", NOT_NEEDED, format!("is {value}")));
    }
    if let Some(value) = machine.kptr_restrict {
        asides.push(("kptr_restrict", NOT_NEEDED, format!("is {value}")));
    }
    if machine.status.seccomp.is_some_and(|mode| mode != 0) {
        asides.push((
            "seccomp",
            "unknown",
            "filters system calls here; it may refuse bpf(2)".to_owned(),
        ));
    }
    asides
}

/// Names and the kernel's words, on one line and without anything a terminal acts upon.
fn ascii(text: &str) -> String {
    printable(text, false)
}

/// Sets words behind a head, the lines after the first indented.
pub(super) fn wrap(text: &mut String, head: &str, words: &str, indent: usize) {
    let mut line = format!("{head:<indent$}");
    let mut empty = true;
    for word in words.split(' ') {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(indent);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    text.push_str(line.trim_end());
    text.push('\n');
}
