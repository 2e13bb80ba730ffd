//! The sysstat family: `iostat`, `mpstat`, `pidstat`, `sar` and what they write as JSON.
//!
//! In: their outputs, of versions 9 to 12 and any locale. Out: series of figures, and what the banner says of the machine.
//! The four print tables of one kind, so that one reader does for all: [`tables`]. Which one it was shows in its tables.
//!
//! With a banner line, the first report of `iostat` is the average since boot (but with `-y`, which shows only where the
//! command was pasted with it). Without a banner the output was cut out of its middle: then the first report is as good
//! as any other.

mod columns;
mod header;
mod json;
mod reclaim;
mod stamp;
mod tables;

use crate::format::{Family, Format, Shape, Sureness};
use header::{Tool, headless, tool_of};

/// What only a banner of these begins with. `uname -a` has the host there, the kernel's log the word "version".
const BANNERS: &[&str] = &[
    "Linux 2.", "Linux 3.", "Linux 4.", "Linux 5.", "Linux 6.", "Linux 7.", "avg-cpu:",
];

pub(super) static IOSTAT: Format =
    Format::lines::<tables::Reader>("iostat", Family::Host, |head| sure(head, Tool::Iostat))
        .about("iostat")
        // The banner does not say whose it is: its table does, and the source is named by that.
        .openings(BANNERS);

pub(super) static MPSTAT: Format =
    Format::lines::<tables::Reader>("mpstat", Family::Host, |head| sure(head, Tool::Mpstat)).about("mpstat");

pub(super) static PIDSTAT: Format =
    Format::lines::<tables::Reader>("pidstat", Family::Host, |head| sure(head, Tool::Pidstat))
        .about("pidstat");

pub(super) static SAR: Format =
    Format::lines::<tables::Reader>("sar", Family::Host, |head| sure(head, Tool::Sar)).about("sar");

pub(super) static JSON: Format = Format::new(
    "sysstat-json",
    Family::Host,
    json::recognise,
    Shape::Document(json::read),
)
.about("JSON of iostat, mpstat and sadf");

fn sure(head: &[u8], tool: Tool) -> Sureness {
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = head
        .trim_ascii_start()
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    // A banner opens iostat's format, whosever it is.
    let format = match lines.find_map(tool_of) {
        Some(_) if stamp::banner(first).is_some() => Some(Tool::Iostat),
        None => of_rows(head),
        other => other,
    };
    if format == Some(tool) {
        Sureness::Certain
    } else {
        Sureness::No
    }
}

/// Whose rows these are, where the heading was left out: one may be chance.
fn of_rows(head: &[u8]) -> Option<Tool> {
    let mut rows = head.split(|byte| *byte == b'\n').filter_map(headless);
    let first = rows.next()?;
    rows.next().map(|_| first.tool)
}

#[cfg(test)]
mod tests;
