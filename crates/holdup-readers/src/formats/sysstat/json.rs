//! JSON of `iostat -o JSON`, `mpstat -o JSON` and `sadf -j`.
//!
//! In: a document, however early it ends: iostat closes its brackets only when it ends by itself, and people end it. So
//! the reports are read one by one, each a document of its own.

use super::columns::{Kind, column, sane};
use super::stamp::{SECOND, date, line as stamp_line};
use crate::format::{Sureness, Understood};
use crate::gather::Out;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Metric, When};
use memchr::{memchr_iter, memmem};
use serde_json::{Map, Value};

pub(super) fn recognise(head: &[u8]) -> Sureness {
    let begins = head.trim_ascii_start().starts_with(b"{") && memmem::find(head, b"\"sysstat\"").is_some();
    if begins { Sureness::Certain } else { Sureness::No }
}

/// Reads a document.
pub(super) fn read(document: &[u8], out: &mut Out<'_>) {
    out.source().tool = Some("sysstat".to_owned());
    let mut from = 0;
    let mut line = Lines { at: 0, number: 1 };
    let mut any = false;
    while let Some(found) = find(document, from, b"\"statistics\"") {
        host(document.get(from..found).unwrap_or_default(), out);
        any = true;
        let Some(open) = find(document, found, b"[") else {
            break;
        };
        from = reports(document, open + 1, &mut line, out);
    }
    if !any {
        out.problem("no statistics in it");
    }
}

/// The longest name of a host or a release that is read, bytes with its quotes.
const LONGEST_WORD: usize = 1_024;

/// The longest report of one moment, bytes: one of a machine with 500 CPUs has 200,000. Its values take many times that in memory.
const LONGEST_REPORT: usize = 8 << 20;

fn find(document: &[u8], from: usize, what: &[u8]) -> Option<usize> {
    memmem::find(document.get(from..)?, what).map(|at| from + at)
}

/// What stands before the statistics of a host.
fn host(head: &[u8], out: &mut Out<'_>) {
    let text = |key: &str| {
        let at = memmem::find(head, key.as_bytes())? + key.len();
        let value = head.get(at..)?.trim_ascii_start().strip_prefix(b":")?;
        let value = value.get(..LONGEST_WORD).unwrap_or(value);
        let mut values = serde_json::Deserializer::from_slice(value).into_iter::<Value>();
        values.next()?.ok()
    };
    let word = |key| text(key).and_then(|value| value.as_str().map(str::to_owned));
    if let Some(name) = word("\"nodename\"") {
        out.source().host = Some(name);
    }
    let (release, cpus) = (
        word("\"release\""),
        text("\"number-of-cpus\"").and_then(|cpus| cpus.as_u64()),
    );
    let facts = out.facts();
    if facts.kernel_release.is_none() {
        facts.kernel_release = release;
    }
    if facts.cpus.is_none() {
        facts.cpus = cpus.and_then(|cpus| u32::try_from(cpus).ok());
    }
}

/// Which line a place is in, asked in order.
struct Lines {
    at: usize,
    number: u64,
}

impl Lines {
    fn of(&mut self, document: &[u8], at: usize) -> u64 {
        let between = document.get(self.at..at).unwrap_or_default();
        self.number += memchr_iter(b'\n', between).count() as u64;
        self.at = at;
        self.number
    }
}

/// Reads the reports from here to the end of the list; where that is.
fn reports(document: &[u8], mut from: usize, lines: &mut Lines, out: &mut Out<'_>) -> usize {
    let mut number = 0_u32;
    loop {
        let rest = document.get(from..).unwrap_or_default();
        let skipped = rest
            .iter()
            .position(|byte| !byte.is_ascii_whitespace() && *byte != b',');
        let Some(skipped) = skipped else {
            out.problem("it ends in the middle: its list of reports is not closed");
            return document.len();
        };
        from += skipped;
        let rest = document.get(from..).unwrap_or_default();
        let rest = rest.get(..LONGEST_REPORT).unwrap_or(rest);
        if rest.first() == Some(&b']') {
            return from + 1;
        }
        out.at_line(lines.of(document, from));
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<Value>();
        match values.next() {
            Some(Ok(Value::Object(report))) => {
                let last = !values
                    .byte_offset()
                    .checked_add(from)
                    .is_some_and(|end| more(document, end));
                one(&report, number, last, out);
                out.count(b"", Understood::Evidence);
            }
            other => {
                let cut = rest.get(..rest.len().min(80)).unwrap_or_default();
                out.count(cut, Understood::No);
                if !matches!(other, Some(Ok(_))) {
                    out.problem("it ends in the middle, or is damaged: the reports before that were read");
                    return document.len();
                }
            }
        }
        from += values.byte_offset();
        number = number.saturating_add(1);
    }
}

/// Whether another report follows.
fn more(document: &[u8], from: usize) -> bool {
    let mut rest = document.get(from..).unwrap_or_default().iter();
    rest.find(|byte| !byte.is_ascii_whitespace()) == Some(&b',')
}

/// Takes a report.
fn one(report: &Map<String, Value>, number: u32, last: bool, out: &mut Out<'_>) {
    let (at, over) = match report.get("timestamp") {
        Some(Value::String(text)) => (stamp_line(text.as_bytes()).map(|(at, _)| at), None),
        Some(Value::Object(stamp)) => instant(stamp),
        _ => (None, None),
    };
    let tool = if report.contains_key("avg-cpu") || report.contains_key("disk") && over.is_none() {
        "iostat"
    } else if over.is_some() {
        "sadf"
    } else {
        "mpstat"
    };
    // mpstat without an interval prints the average since boot, and only that.
    let since_boot = number == 0 && (tool == "iostat" || tool == "mpstat" && last);
    out.source().tool.get_or_insert_default().replace_range(.., tool);
    out.report(at, over, since_boot);
    for (section, value) in report {
        section_of(section, value, out);
    }
}

/// The time of `sadf -j`, and what it covers.
fn instant(stamp: &Map<String, Value>) -> (Option<When>, Option<Ns>) {
    let text = |key| stamp.get(key).and_then(Value::as_str).unwrap_or_default();
    let utc = stamp.get("utc").and_then(Value::as_u64) == Some(1);
    let at = stamp_line(format!("{} {}", text("date"), text("time")).as_bytes());
    let at = at.map(|(at, of_day)| match date(text("date").as_bytes()) {
        Some(day) if utc => day
            .checked_mul(86_400_000_000_000)
            .and_then(|ns| ns.checked_add(i64::try_from(of_day).ok()?))
            .map_or(at, When::Unix),
        _ => at,
    });
    let over = stamp.get("interval").and_then(Value::as_u64);
    (at, over.map(|seconds| seconds.saturating_mul(SECOND)))
}

/// Takes what is below a key of a report.
fn section_of(section: &str, value: &Value, out: &mut Out<'_>) {
    match value {
        Value::Array(rows) => rows.iter().for_each(|row| section_of(section, row, out)),
        Value::Object(row) => {
            let name = |key: &str| row.get(key).and_then(Value::as_str);
            if let Some(name) = name("disk_device").or_else(|| name("disk-device")) {
                figures(Kind::Disk, name, row, out);
            } else if let Some(name) = name("cpu").filter(|_| section == "cpu-load") {
                let cpu = if name == "all" {
                    String::new()
                } else {
                    format!("cpu{name}")
                };
                figures(Kind::Cpu, &cpu, row, out);
            } else if let Some(name) = name("iface") {
                figures(Kind::Interface, name, row, out);
            } else {
                of_machine(section, row, out);
            }
            for (inner, value) in row.iter().filter(|(_, value)| !value.is_number()) {
                section_of(inner, value, out);
            }
        }
        _ => {}
    }
}

fn of_machine(section: &str, row: &Map<String, Value>, out: &mut Out<'_>) {
    match section {
        "avg-cpu" => figures(Kind::Cpu, "", row, out),
        "queue"
        | "swap-pages"
        | "paging"
        | "io-reads"
        | "io-writes"
        | "memory"
        | "net-tcp"
        | "process-and-context-switch" => figures(Kind::Machine, "", row, out),
        _ => {
            let own: &[(&str, Metric)] = match section {
                "net-etcp" => &[("retrans", Metric::TcpRetransmitsPerSecond)],
                "psi-cpu" => &[("some_avg", Metric::PressureCpuSomePercent)],
                "psi-io" => &[
                    ("some_avg", Metric::PressureIoSomePercent),
                    ("full_avg", Metric::PressureIoFullPercent),
                ],
                "psi-mem" => &[
                    ("some_avg", Metric::PressureMemorySomePercent),
                    ("full_avg", Metric::PressureMemoryFullPercent),
                ],
                _ => &[],
            };
            for (key, metric) in own {
                let value = row.get(*key).and_then(Value::as_f64);
                if let Some(value) = value.and_then(|value| sane(*metric, value)) {
                    out.figure(*metric, "", value);
                }
            }
        }
    }
}

fn figures(kind: Kind, of: &str, row: &Map<String, Value>, out: &mut Out<'_>) {
    for (key, value) in row {
        if let Some((metric, factor)) = column(kind, key.as_bytes())
            && let Some(value) = value.as_f64().and_then(|value| sane(metric, value * factor))
        {
            out.figure(metric, of, value);
        }
    }
}
