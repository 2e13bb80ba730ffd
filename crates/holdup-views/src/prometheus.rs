//! The report as figures in Prometheus' text format, for a scrape or for node_exporter's textfile collector.
//!
//! In: a report. Out: the text, version 0.0.4: for each figure its HELP, its TYPE and its values. All are gauges of one observation: the
//! next one begins anew, and may be shorter. Times are seconds, written with nine decimals, so that no nanosecond is rounded.
//! Labels are bounded: see [`figures`].

use crate::figures::{Figure, Unit, figures};
use holdup_model::report::Report;
use std::io::{self, Write};

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// Writes the text.
///
/// # Errors
/// When writing to `out` fails.
pub(crate) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    for figure in figures(report) {
        let name = name(&figure);
        writeln!(out, "# HELP {name} {}", figure.about)?;
        writeln!(out, "# TYPE {name} gauge")?;
        for (labels, value) in &figure.values {
            let labels: Vec<String> = labels
                .iter()
                .map(|(key, value)| format!("{key}=\"{}\"", escaped(value)))
                .collect();
            let labels = match labels.is_empty() {
                true => String::new(),
                false => format!("{{{}}}", labels.join(",")),
            };
            match figure.unit {
                Unit::Count => writeln!(out, "{name}{labels} {value}")?,
                Unit::Time => writeln!(out, "{name}{labels} {}.{:09}", value / SECOND, value % SECOND)?,
            }
        }
    }
    Ok(())
}

fn name(figure: &Figure) -> String {
    let unit = match figure.unit {
        Unit::Count => "",
        Unit::Time => "_seconds",
    };
    format!("holdup_{}{unit}", figure.name.join("_"))
}

/// A label's value: what ends it or begins an escape is escaped.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
