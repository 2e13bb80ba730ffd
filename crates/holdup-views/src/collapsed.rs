//! The waits as collapsed stacks, for flame graphs and for `holdup diff`: `sshd (812);main;read_[k];[disk.read] 1200`.
//!
//! In: a report. Out: a line for each different stack, outermost frame first, its nanoseconds last. The last frame is the
//! cause. Frames end in `_[k]` (kernel), `_[j]` (Java) or `_[i]` (inlined), as flame graph programs know them. A name can
//! neither begin a frame nor a line: what is not printable is escaped already, and `;` is `\x3b`. Since every line ends in
//! `] NUMBER`, no name can pass for a second number.

use crate::samples::{Kind, Place, samples};
use holdup_model::report::Report;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes the stacks, in the order of their names.
///
/// # Errors
/// When writing to `out` fails.
pub(crate) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    for sample in samples(report) {
        let mut line = String::new();
        for place in &sample.stack {
            frame(place, &mut line);
            line.push(';');
        }
        line.push_str(&format!("[{}]", sample.wait.cause));
        let sum = stacks.entry(line).or_default();
        *sum = sum.saturating_add(sample.wait.ns);
    }
    for (stack, ns) in stacks.iter().filter(|(_, ns)| **ns > 0) {
        writeln!(out, "{stack} {ns}")?;
    }
    Ok(())
}

fn frame(place: &Place, line: &mut String) {
    for character in place.name.chars() {
        match character {
            ';' => line.push_str("\\x3b"),
            other => line.push(other),
        }
    }
    line.push_str(match place.kind {
        Kind::Kernel => "_[k]",
        Kind::Java => "_[j]",
        Kind::Inlined => "_[i]",
        Kind::Process
        | Kind::Thread
        | Kind::Native
        | Kind::Python
        | Kind::JavaScript
        | Kind::Ruby
        | Kind::Php
        | Kind::Perl
        | Kind::Bash => "",
    });
}
