//! A diagnostic report of Node.js (`--report-on-signal`, `process.report.writeReport()`).
//!
//! In: one JSON object with a heading, the stack of JavaScript, resources used, and the handles of its event loop. Out: why it was written
//! and where JavaScript was then, how much of a CPU it used, and what the event loop has open.

use crate::format::{Family, Format, Shape, Sureness};
use crate::gather::Out;
use crate::json;
use crate::statements;
use holdup_evidence::observed::{Statement, StatementKind};
use serde::Deserialize;
use serde_json::Value;

pub(crate) static FORMAT: Format =
    Format::new("node-report", Family::Threads, recognise, Shape::Document(read))
        .about("a diagnostic report of Node.js");

/// Kinds of handles that are told.
const KINDS: usize = 4;

/// Characters of a value that is told.
const VALUE: usize = 200;

/// Events for which a report is written though nothing failed.
const ASKED: [&str; 3] = ["JavaScript API", "Signal", "NodeReport"];

fn recognise(head: &[u8]) -> Sureness {
    let has = |name: &[u8]| memchr::memmem::find(head, name).is_some();
    let begins = head.trim_ascii_start().starts_with(b"{");
    Sureness::certain_if(begins && has(b"\"reportVersion\"") && has(b"\"nodejsVersion\""))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Report {
    header: Value,
    javascript_stack: Value,
    resource_usage: Value,
    libuv: Vec<Value>,
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn cut(text: &str) -> String {
    text.chars().take(VALUE).collect::<String>().trim().to_owned()
}

/// The first frame that is of the program, and no part of Node.js.
fn own_frame(stack: &Value) -> Option<&str> {
    let frames = || stack.get("stack").and_then(Value::as_array).into_iter().flatten();
    let own = |frame: &&str| {
        !frame.contains("(node:") && !frame.starts_with("at node:") && !frame.contains("Unavailable")
    };
    let frames = frames().filter_map(Value::as_str).map(str::trim);
    let mut all = frames.clone();
    frames
        .clone()
        .find(own)
        .or_else(|| all.next())
        .filter(|frame| !frame.contains("Unavailable"))
}

fn read(document: &[u8], out: &mut Out<'_>) {
    out.at_line(1);
    let report: Report = match json::is_within(document).then(|| serde_json::from_slice(document)) {
        Some(Ok(report)) => report,
        _ => {
            out.problem("the JSON is cut off or damaged");
            return;
        }
    };
    let header = &report.header;
    let (event, trigger) = (text(header, "event"), text(header, "trigger"));
    let at = own_frame(&report.javascript_stack).map_or_else(String::new, |frame| {
        format!(", in {}", cut(frame.strip_prefix("at ").unwrap_or(frame)))
    });
    let message = match text(&report.javascript_stack, "message") {
        "" => event,
        message => message,
    };
    let asked = ASKED.contains(&trigger) || matches!(trigger, "GetReport" | "WriteReport");
    let pid = header
        .get("processId")
        .and_then(Value::as_u64)
        .map_or_else(String::new, |pid| format!(" (pid {pid})"));
    let (kind, does) = match asked {
        true => (StatementKind::Took, "was asked for a report"),
        false => (StatementKind::Ended, "wrote a report"),
    };
    let why = cut(message);
    let why = match why.as_str() {
        "" => String::new(),
        why => format!(": {why}"),
    };
    let sentence = format!("Node.js{pid} {does} by {trigger}{why}{at}");
    out.statement(statements::one(kind, None, out.here(), sentence));
    if let Some(percent) = report
        .resource_usage
        .get("cpuConsumptionPercent")
        .and_then(Value::as_f64)
    {
        let text = format!("Node.js{pid} used {percent:.1} % of a CPU since it began{at}");
        out.statement(Statement {
            share: Some(percent / 100.0),
            ..statements::one(StatementKind::Took, None, out.here(), text)
        });
    }
    handles(&report.libuv, out);
}

/// What the event loop has open: kinds of active handles, those of which there are most first.
fn handles(all: &[Value], out: &mut Out<'_>) {
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    let active = |handle: &&Value| handle.get("is_active").and_then(Value::as_bool) == Some(true);
    for handle in all.iter().filter(active) {
        let kind = text(handle, "type");
        match kinds.iter().position(|(known, _)| *known == kind) {
            Some(at) => kinds[at].1 += 1,
            None if kinds.len() < VALUE => kinds.push((kind, 1)),
            None => {}
        }
    }
    kinds.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
    if kinds.is_empty() {
        return;
    }
    let told: Vec<String> = kinds
        .iter()
        .take(KINDS)
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    let text = format!("the event loop has active handles: {}", told.join(", "));
    out.statement(statements::one(StatementKind::Took, None, out.here(), text));
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn why_it_was_written_and_where_the_program_was() {
        let text = r#"{"header":{"reportVersion":3,"event":"Allocation failed - JavaScript heap out of memory","trigger":"FatalError","processId":812,"nodejsVersion":"v20.1.0"},
            "javascriptStack":{"message":"No stack.","stack":["at node:internal/x:3:1 (node:x)","at load (/srv/app/feed.js:12:5)"]},
            "resourceUsage":{"cpuConsumptionPercent":97.5},
            "libuv":[{"type":"tcp","is_active":true},{"type":"timer","is_active":false},{"type":"tcp","is_active":true}]}"#;
        let reading = read_text("n", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "node-report");
        let said: Vec<&str> = reading
            .observed
            .statements
            .iter()
            .map(|one| one.text.as_str())
            .collect();
        assert_eq!(
            said,
            [
                "Node.js (pid 812) wrote a report by FatalError: No stack., in load (/srv/app/feed.js:12:5)",
                "Node.js (pid 812) used 97.5 % of a CPU since it began, in load (/srv/app/feed.js:12:5)",
                "the event loop has active handles: 2 tcp",
            ]
        );
        let cut = read_text("n", &text.as_bytes()[..200]);
        assert!(cut.observed.statements.is_empty() || !cut.observed.statements[0].of_reader);
    }
}
