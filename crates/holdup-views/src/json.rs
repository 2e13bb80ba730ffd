//! The report as JSON, for other programs.
//!
//! In: a report. Out: one JSON document, indented, with a newline at its end. JSON escapes the control characters of ASCII itself, and no
//! others: a terminal that the document is printed to would act upon those, and upon marks that turn the direction of text. They stand as
//! escapes too, which mean the same to who parses it.

use crate::text::is_unprintable;

use holdup_model::report::Report;
use holdup_model::timeline::MAX_PIECES_IN_JSON;
use std::io::{self, Write};

/// Writes the report.
///
/// # Errors
/// When writing to `out` fails.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let shortened = report.timeline.as_ref().map(|timeline| Report {
        timeline: Some(timeline.longest(MAX_PIECES_IN_JSON)),
        ..report.clone()
    });
    let text = serde_json::to_string_pretty(shortened.as_ref().unwrap_or(report))?;
    write_escaped(&text, out)?;
    writeln!(out)
}

/// Writes JSON with all that does not print as an escape. Outside of strings everything but line ends prints, so what is escaped is in one.
fn write_escaped(json: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut written = 0;
    for (at, character) in json.char_indices() {
        if character.is_ascii_graphic() || matches!(character, ' ' | '\n') || !is_unprintable(character) {
            continue;
        }
        out.write_all(&json.as_bytes()[written..at])?;
        for unit in character.encode_utf16(&mut [0; 2]) {
            write!(out, "\\u{unit:04x}")?;
        }
        written = at + character.len_utf8();
    }
    out.write_all(&json.as_bytes()[written..])
}

#[cfg(test)]
mod tests {
    use super::write_escaped;

    fn escaped(text: &str) -> String {
        let json = serde_json::to_string_pretty(&[text]).expect("text is JSON");
        let mut out = Vec::new();
        write_escaped(&json, &mut out).expect("it is memory");
        let out = String::from_utf8(out).expect("it is text");
        let back: Vec<String> = serde_json::from_str(&out).expect("it is JSON");
        assert_eq!(back, [text], "what is parsed is the same");
        out
    }

    #[test]
    fn what_does_not_print_is_an_escape() {
        assert!(escaped("csi\u{9b}31m").contains("csi\\u009b31m"));
        assert!(escaped("photo\u{202e}gpj.exe").contains("photo\\u202egpj.exe"));
        assert!(escaped("a\u{7f}b\u{2066}").contains("a\\u007fb\\u2066"));
        assert!(escaped("tag\u{e0041}").contains("tag\\udb40\\udc41"));
    }

    #[test]
    fn names_in_any_script_stay() {
        for name in ["Müller", "файл", "文件", "a\nb\t\"c\"", "e\u{301}", "🦀"] {
            let json = serde_json::to_string_pretty(&[name]).expect("text is JSON");
            assert_eq!(escaped(name), json);
        }
    }
}
