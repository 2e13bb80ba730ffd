//! Reports whose every name is hostile.

use holdup_model::report::Report;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use serde_json::Value;

/// Texts of an enum's own; all other strings of a report are free.
const CLOSED: [&str; 15] = [
    "schema",
    "kind",
    "backend",
    "cause",
    "severity",
    "confidence",
    "how",
    "how_known",
    "compared",
    "measure",
    "presence",
    "contends_cause",
    "outcome",
    "predicted_by",
    "bottleneck",
];

/// Verdicts of a scaling; others under that name are sentences.
const VERDICTS: [&str; 3] = ["scales", "cpu-bound", "contends"];

/// Puts texts, in turn, into every free string of a report, keys of resources' details included.
fn fill(value: &mut Value, key: &str, texts: &mut impl Iterator<Item = String>) {
    match value {
        Value::String(text) if VERDICTS.contains(&text.as_str()) && key == "verdict" => {}
        Value::String(text) if !CLOSED.contains(&key) && key != "doing" && key != "language" => {
            *text = texts.next().expect("texts do not end");
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, key, texts)),
        Value::Object(fields) => {
            for (key, field) in fields.iter_mut() {
                fill(field, key, texts);
            }
            if key == "detail" {
                *fields = std::mem::take(fields)
                    .into_iter()
                    .map(|(_, value)| (texts.next().expect("texts do not end"), value))
                    .collect();
            }
        }
        _ => {}
    }
}

/// The report with these texts in the place of every name.
pub fn filled(report: &Report, texts: &[String]) -> Report {
    let mut value = serde_json::to_value(report).expect("a report is JSON");
    fill(&mut value, "", &mut texts.iter().cloned().cycle());
    serde_json::from_value(value).expect("only free strings were changed")
}

/// Names that somebody made to do harm, and names that are merely long.
pub fn nasty() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-z/ ]{0,300}",
        Just(String::new()),
        Just("\x1b[2J\x1b[H\x1b]0;title\x07".to_owned()),
        Just("line\nof\r\nits own\u{85}\u{2028}".to_owned()),
        Just("\u{202e}\u{2066}\u{200f}\u{feff}\u{ad}".to_owned()),
        Just(format!("z{}", "\u{30d}".repeat(100))),
        Just("全角".repeat(80)),
        Just("👩‍👩‍👧‍👦🏳️‍🌈".repeat(9)),
        Just("\\x1b[0m".to_owned()),
        Just("a;b;c 12".to_owned()),
        Just("12 34\n56".to_owned()),
        Just("# HELP up\nup{x=\"1\"} 1".to_owned()),
        Just("\"}\\\n{,=".to_owned()),
        Just("[a](http://b) ![c](d) <script>e</script> | f | `` g".to_owned()),
        Just("@somebody https://example.org #1 *b* ~~c~~ &lt;".to_owned()),
    ]
}
