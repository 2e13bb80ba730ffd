//! Nothing that a report contains can do anything to a terminal.

mod samples;

use holdup_views::{Style, terminal};
use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};
use samples::nasty::{filled, nasty};
use unicode_width::UnicodeWidthStr;

/// The escape sequences that are ours.
const OURS: [&str; 5] = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[1;33m", "\x1b[1;31m"];

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
