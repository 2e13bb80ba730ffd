//! The same hosts at two times, or two groups of hosts: what their programs waited for, and each host that is compared with itself.
//!
//! In: a comparison of a fleet; of anything else there is nothing to write. Out: a line for each program and cause, and one for each host.

use super::{heading, limit, line, rest, signed, sure};
use crate::sheet::{Paint, Sheet};
use crate::units::duration;
use holdup_model::report::{Comparison, HostChange, ProgramChange};

/// Writes both tables.
pub(super) fn write(sheet: &mut Sheet, comparison: &Comparison) {
    if comparison.hosts.is_empty() && comparison.programs.is_empty() {
        return;
    }
    let most = limit(sheet.style().verbose);
    let changed = || comparison.programs.iter().filter(|one| one.change_ns != 0);
    if changed().next().is_some() {
        heading(
            sheet,
            "Time by program and cause, for a second and host, largest change first:",
        );
    }
    changed().take(most).for_each(|one| program(sheet, one));
    let more = changed().count().saturating_sub(most);
    rest(sheet, more, "program changed less", "programs changed less");
    sheet.blank();
    if comparison.hosts.is_empty() {
        return;
    }
    heading(sheet, "Time by host, for a second, largest change first:");
    comparison
        .hosts
        .iter()
        .take(most)
        .for_each(|one| host(sheet, one));
    let more = comparison.hosts.len().saturating_sub(most);
    rest(sheet, more, "host changed less", "hosts changed less");
    sheet.blank();
}

fn named(process: Option<&str>) -> &str {
    process.unwrap_or("all other programs")
}

fn program(sheet: &mut Sheet, one: &ProgramChange) {
    let words = vec![
        sheet.name(named(one.process.as_deref())).paint(Paint::Bold),
        sheet.words(one.cause.phrase()),
        sheet.words(sure(one.significant)).paint(Paint::Dim),
    ];
    let edge = sheet.name(one.cause.id()).paint(Paint::Dim);
    let figures = [
        signed(one.change_ns),
        duration(one.before_ns),
        duration(one.after_ns),
    ];
    let [change, before, after] = figures.each_ref().map(String::as_str);
    line(sheet, change, before, after, words, Some(edge));
}

fn host(sheet: &mut Sheet, one: &HostChange) {
    let mut words = vec![sheet.name(&one.host).paint(Paint::Bold)];
    if one.unlike == Some(true) {
        words.push(sheet.words("unlike the other hosts").paint(Paint::Yellow));
    }
    if let Some(cause) = one.cause.filter(|_| one.of_it_ns != 0) {
        let process = named(one.process.as_deref());
        words.push(sheet.words(&format!(
            "most: {process}, {} {}",
            cause.id(),
            signed(one.of_it_ns)
        )));
    }
    let figures = [
        signed(one.change_ns),
        duration(one.before_ns),
        duration(one.after_ns),
    ];
    let [change, before, after] = figures.each_ref().map(String::as_str);
    line(sheet, change, before, after, words, None);
}
