//! The table of `holdup doctor`, as text of 80 columns.

use super::{Checkup, State};
use holdup_proc::capability::Machine;
use holdup_views::text::printable;

/// Columns.
const WIDTH: usize = 80;
/// Where notes begin: behind the longest name and "not told".
const NOTE: usize = 44;
/// Where what is lost and the fix begin.
const DETAIL: usize = 13;

/// The whole table.
pub(super) fn text(checkup: &Checkup, machine: &Machine) -> String {
    let release = machine.kernel_release.as_deref().map(ascii).unwrap_or_default();
    let mut text = format!("holdup doctor   Linux {release}\n\n");
    for row in &checkup.rows {
        let (word, note) = match &row.state {
            State::Yes(note) => ("yes", note),
            State::No(why) => ("NO", why),
            State::NotTold(why) => ("not told", why),
        };
        let head = format!("  {:<31} {word:<8}", ascii(&row.what));
        wrap(&mut text, &head, &ascii(note), NOTE);
        if matches!(row.state, State::No(_)) {
            wrap(&mut text, "      lost", &ascii(&row.lost), DETAIL);
            wrap(&mut text, "      fix", &ascii(&row.fix), DETAIL);
        }
    }
    for (name, value) in asides(machine) {
        wrap(&mut text, &format!("  {name:<40}"), &ascii(&value), NOTE);
    }
    text.push('\n');
    wrap(&mut text, "", &checkup.sentence(), 0);
    text
}

/// What holdup does not need but people ask about.
fn asides(machine: &Machine) -> Vec<(&'static str, String)> {
    let mut asides = Vec::new();
    let tracefs = machine
        .tracefs
        .clone()
        .unwrap_or_else(|| "not mounted".to_owned());
    asides.push(("(not needed) tracefs", tracefs));
    if let Some(value) = machine.unprivileged_bpf_disabled {
        asides.push(("(not needed) unprivileged_bpf_disabled", value.to_string()));
    }
    if let Some(value) = machine.kptr_restrict {
        asides.push(("kptr_restrict", value.to_string()));
    }
    if machine.status.seccomp.is_some_and(|mode| mode != 0) {
        asides.push((
            "seccomp",
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
fn wrap(text: &mut String, head: &str, words: &str, indent: usize) {
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
