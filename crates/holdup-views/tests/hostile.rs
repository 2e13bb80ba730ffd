//! Nothing that a report contains can do anything to a terminal.

mod samples;

use holdup_analysis::report::Report;
use holdup_views::{Style, terminal};
use proptest::prelude::{
    Just, ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest,
};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

/// Texts of an enum's own; all other strings of a report are free.
const CLOSED: [&str; 8] = [
    "schema",
    "kind",
    "backend",
    "cause",
    "severity",
    "confidence",
    "how",
    "how_known",
];

/// The escape sequences that are ours.
const OURS: [&str; 5] = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[1;33m", "\x1b[1;31m"];

/// Puts texts, in turn, into every free string of a report, keys of resources' details included.
fn fill(value: &mut Value, key: &str, texts: &mut impl Iterator<Item = String>) {
    match value {
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

fn filled(report: &Report, texts: &[String]) -> Report {
    let mut value = serde_json::to_value(report).expect("a report is JSON");
    fill(&mut value, "", &mut texts.iter().cloned().cycle());
    serde_json::from_value(value).expect("only free strings were changed")
}

fn nasty() -> impl Strategy<Value = String> {
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
    ]
}

proptest! {
    // Each case sets every sample; that is work enough.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_text_acts_on_the_terminal_or_leaves_its_line(
        texts in proptest::collection::vec(nasty(), 1..20),
        width in 0_usize..140,
        (colour, unicode, verbose, quiet) in any::<(bool, bool, bool, bool)>(),
    ) {
        let style = Style { width, colour, unicode, verbose, quiet };
        for (name, report) in samples::all() {
            let mut out = Vec::new();
            terminal::write(&filled(&report, &texts), &style, &mut out).expect("a vector takes everything");
            let mut text = String::from_utf8(out).expect("only text is written");
            if colour {
                for ours in OURS {
                    text = text.replace(ours, "");
                }
            }
            prop_assert!(unicode || text.is_ascii(), "{name}: {text}");
            for line in text.split('\n') {
                prop_assert!(!line.chars().any(char::is_control), "{name}: {line:?}");
                prop_assert!(line.width() <= style.columns(), "{name}: {} columns: {line}", line.width());
                prop_assert_eq!(line.trim_end_matches(' '), line, "{}: blanks at the end", name);
            }
        }
    }
}

#[test]
fn filling_reaches_what_is_printed() {
    let report = filled(&samples::hostile().report(), &["here".to_owned()]);
    let mut out = Vec::new();
    let style = Style {
        verbose: true,
        ..Style::default()
    };
    terminal::write(&report, &style, &mut out).expect("a vector takes everything");
    let text = String::from_utf8(out).expect("only text is written");
    // Command, resource, asker, module, holder, finding, evidence, remedy, risk, command, loss, gap …
    assert!(text.matches("here").count() > 20, "{text}");
}
