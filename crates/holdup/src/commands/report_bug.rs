//! `holdup report-bug`: what a bug report needs, in one file that its author can read before anybody else does.
//!
//! In: this machine, and a report if one is given. Out: a file in Markdown, with what tells of people and places taken out, and a list of what
//! is in it. Nothing is sent.

use crate::cli::BugArgs;
use crate::commands::{doctor, show};
use crate::output;
use crate::verdict;
use anyhow::{Context, bail};
use holdup_model::report::{Machine, Report};
use holdup_recording::redact_report;
use holdup_views::Style;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Bytes of a report.
const MAX_REPORT: u64 = 64 << 20;

/// Looks, takes out, writes, and says what is there.
///
/// # Errors
/// When the report can't be read, or the file can't be written or is there already.
pub(crate) fn run(args: &BugArgs) -> anyhow::Result<u8> {
    let report = args.report.as_deref().map(redacted).transpose()?;
    let (doctor, _) = doctor::text(&Style::default());
    let text = text(verdict::this_machine().as_ref(), &doctor, report.as_deref());
    let path = &args.output;
    let cannot = || format!("cannot write {path:?}");
    // Only its owner may read it, and nothing that is there already is lost.
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(cannot)?;
    output::print(summary(path, report.is_some()).as_bytes())?;
    Ok(0)
}

/// A report as JSON without what tells of people and places.
fn redacted(path: &Path) -> anyhow::Result<String> {
    let mut report = match show::page::report(path)? {
        Some(report) => report,
        None => of_json(path)?,
    };
    redact_report(&mut report);
    serde_json::to_string_pretty(&report).context("a report is JSON")
}

fn of_json(path: &Path) -> anyhow::Result<Report> {
    let cannot = || format!("cannot read {path:?}");
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path);
    let mut text = Vec::new();
    file.with_context(cannot)?
        .take(MAX_REPORT + 1)
        .read_to_end(&mut text)
        .with_context(cannot)?;
    if text.len() as u64 > MAX_REPORT {
        bail!("{path:?} has more than {} MiB", MAX_REPORT >> 20);
    }
    serde_json::from_slice(&text)
        .with_context(|| format!("{path:?} is no report; give a file that --json or --html wrote"))
}

/// The file.
fn text(machine: Option<&Machine>, doctor: &str, report: Option<&str>) -> String {
    let mut text = format!(
        "# What happened\n\n(What you did, what you expected, and what holdup said instead.)\n\n# Versions\n\n- holdup {}\n",
        env!("CARGO_PKG_VERSION")
    );
    if let Some(machine) = machine {
        text.push_str(&format!(
            "- Linux {}, {}\n",
            machine.kernel,
            std::env::consts::ARCH
        ));
    }
    // The doctor names this machine nowhere; should a path or a setting do so, it is taken out.
    let host = machine
        .map(|machine| machine.host.as_str())
        .filter(|host| host.len() >= SHORTEST_HOST);
    let doctor = match host {
        Some(host) => doctor.replace(host, "***"),
        None => doctor.to_owned(),
    };
    text.push_str(&format!("\n# holdup doctor\n\n{}", block(&doctor)));
    if let Some(report) = report {
        text.push_str(&format!("\n# The report\n\n{}", block(report)));
    }
    text
}

/// A shorter name is a part of too many words.
const SHORTEST_HOST: usize = 3;

/// Text as it is: four blanks before each line, which nothing in it can end.
fn block(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

/// What is said on the terminal.
fn summary(path: &Path, with_report: bool) -> String {
    let report = match with_report {
        true => "  the report, without arguments, home directories, host name, passwords, tokens and keys\n",
        false => "  no report: --report FILE adds one that --json wrote\n",
    };
    format!(
        "Wrote {path:?}:\n  the version of holdup, the kernel, and the output of holdup doctor\n{report}Nothing was sent. Read the \
         file, say at its top what happened, and attach it to an issue.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::{block, summary, text};
    use holdup_model::report::Machine;
    use std::path::Path;

    #[test]
    fn the_host_is_not_named() {
        let machine = Machine {
            host: "db7.example".to_owned(),
            kernel: "6.18.0".to_owned(),
        };
        let text = text(Some(&machine), "seen on db7.example\n", Some("{}"));
        assert!(!text.contains("db7") && text.contains("6.18.0") && text.contains("    seen on ***"));
    }

    #[test]
    fn what_a_report_contains_ends_no_block() {
        assert_eq!(block("```\n# x"), "    ```\n    # x\n");
    }

    #[test]
    fn it_says_that_nothing_is_sent() {
        for with_report in [true, false] {
            assert!(summary(Path::new("x"), with_report).contains("Nothing was sent."));
        }
    }
}
