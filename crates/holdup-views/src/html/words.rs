//! What a page says, as its script gets it: the terminal's words, names of causes, the text to copy.
//!
//! In: a report. Out: a JSON value; every text in it has been made printable, as for a terminal.

use crate::markdown;
use crate::sheet::{Paint, Said};
use crate::terminal::margins::nothing_found_mood;
use crate::terminal::words::{TerminalWords, TileWords, findings_count, headline, terminal_words};
use crate::text::printable;
use holdup_evidence::Cause;
use holdup_model::report::Report;
use serde_json::{Map, Value, json};

/// All words of a page.
pub(super) fn words(report: &Report) -> Value {
    let listed = terminal_words(report);
    let headline = printable(&headline(report, &listed), true);
    let (level, nothing) = nothing_found_mood(report);
    let causes: Map<String, Value> = Cause::ALL
        .iter()
        .map(|cause| {
            (
                cause.id().to_owned(),
                json!({"phrase": cause.phrase(), "cpu": cause.on_cpu()}),
            )
        })
        .collect();
    json!({
        "headline": headline,
        "markdown": message(report),
        "header": rows(&listed.header),
        "about": rows(&listed.about),
        "verdict": rows(&listed.verdict),
        "tiles": entries(&listed.tiles),
        "handed_on": entries(&listed.handed_on),
        "rest": rest(&listed),
        "parts": listed.parts.iter().filter(|(_, said)| !said.is_empty())
            .map(|(name, said)| json!({"name": name, "rows": rows(said)})).collect::<Vec<_>>(),
        "gaps": rows(&listed.gaps),
        "living": rows(&listed.living),
        "accounting": rows(&listed.accounting),
        "page": listed.page,
        "findings": findings_count(report),
        "nothing_found": { "level": level, "words": nothing },
        "causes": causes,
    })
}

fn rest(result: &TerminalWords) -> Value {
    result
        .rest
        .iter()
        .map(|(cause, ns)| json!({"cause": cause, "ns": ns}))
        .collect()
}

fn entries(entries: &[TileWords]) -> Value {
    let one = |one: &TileWords| {
        json!({"cause": one.cause, "ns": one.ns, "open": one.open, "share": one.share, "time": one.time,
            "waits": one.waits, "rows": rows(&one.rows)})
    };
    entries.iter().map(one).collect()
}

fn rows(said: &[Said]) -> Value {
    let look = |paint: Paint| match paint {
        Paint::Plain => "",
        Paint::Bold => "bold",
        Paint::Dim => "dim",
        Paint::Yellow => "warn",
        Paint::Red => "bad",
    };
    let row = |said: &Said| {
        let body: Vec<Value> = said
            .body
            .iter()
            .map(|(text, paint, blank)| json!([text, look(*paint), blank]))
            .collect();
        json!({"lead": said.lead, "body": body, "edge": said.edge})
    };
    said.iter().map(row).collect()
}

/// The text for a message: the same as `--format markdown`.
fn message(report: &Report) -> String {
    let mut text = Vec::new();
    markdown::write(report, &mut text).expect("memory can be written to");
    String::from_utf8(text).expect("only text is written")
}

#[cfg(test)]
mod tests {
    use super::words;
    use crate::Style;
    use crate::html::tests::report;
    use crate::terminal;
    use holdup_model::report::{Recording, Report, SubjectKind};
    use serde_json::Value;

    /// A machine on which nobody was seen to wait behind another.
    fn machine() -> Report {
        let mut report = report();
        report.subject.kind = SubjectKind::Attach;
        report.findings.clear();
        report.coverage.unknown_ns = Some(0);
        report.recording = Some(Recording {
            machine: true,
            ..Recording::default()
        });
        report
    }

    /// The text without its line breaks.
    fn flat(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_machine_has_one_verdict_in_all_views() {
        const SENTENCE: &str = "No thread waited behind another one for a second.";
        const ELSEWHERE: &str = "No hold-up found";
        let report = machine();
        let mut out = Vec::new();
        terminal::write(&report, &Style::default(), &mut out).unwrap();
        let text = flat(&String::from_utf8(out).unwrap());
        let words = words(&report);
        let said = |value: &Value| flat(&value.as_str().unwrap_or_default().replace('\\', ""));
        for (view, said) in [
            ("terminal", text),
            ("page's title", said(&words["headline"])),
            ("Markdown", said(&words["markdown"])),
            ("page", flat(&words["verdict"].to_string())),
        ] {
            assert!(said.contains(SENTENCE), "{view}: {said}");
            assert!(!said.contains(ELSEWHERE), "{view}: {said}");
        }
        assert_eq!(words["nothing_found"]["words"], "No wait of a second");
        assert_eq!(words["nothing_found"]["level"], "good");
    }

    #[test]
    fn a_machine_of_which_nothing_was_observed_is_not_called_well() {
        let mut report = machine();
        report.coverage.observed_ns = Some(0);
        let words = words(&report);
        assert_eq!(words["nothing_found"]["level"], "note");
        let headline = words["headline"].as_str().unwrap_or_default();
        assert!(headline.contains("Nothing was observed"), "{headline}");
    }

    #[test]
    fn the_first_line_is_the_verdict_and_the_text_is_the_terminals() {
        let words = words(&report());
        assert_eq!(
            words["headline"],
            "sshd -t: The kernel had no randomness to give yet (97.3 % of 1.04 s: 1.01 s waiting for the kernel's random \
             generator to be seeded)"
        );
        let markdown = words["markdown"].as_str().unwrap_or_default();
        assert!(
            markdown.contains("### critical: The kernel had no randomness"),
            "{markdown}"
        );
    }
}
