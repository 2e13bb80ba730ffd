//! The randomness of a machine, as `holdup doctor` and `holdup host` show it: a heading, and a row for each thing.
//!
//! In: what it means ([`Aspect`]), and a [`Style`]. Out: text. Names in it come from the machine and are made printable.

use crate::sheet::{Paint, Sheet};
use crate::style::Style;
use holdup_model::randomness::{Aspect, State};

/// Column at which the words begin: behind the longest subject.
const WORDS: usize = 23;

/// The section by itself.
#[must_use]
pub fn text(aspects: &[Aspect], style: &Style) -> String {
    let mut sheet = Sheet::new(style);
    section(&mut sheet, aspects);
    sheet.into_text()
}

/// The section within a report.
pub(crate) fn section(sheet: &mut Sheet, aspects: &[Aspect]) {
    let body = vec![sheet.words("Randomness of this machine").paint(Paint::Bold)];
    sheet.line(2, body);
    for aspect in aspects {
        let paint = match aspect.state {
            State::Good | State::Plain | State::Pointless => Paint::Plain,
            State::Poor => Paint::Yellow,
            State::Unknown => Paint::Dim,
        };
        let words = match aspect.state {
            State::Pointless => format!("does not help here: {}", aspect.text),
            _ => aspect.text.clone(),
        };
        let lead = vec![sheet.name(&format!("    {}", aspect.about)).paint(Paint::Dim)];
        let body = vec![sheet.words(&words).paint(paint)];
        sheet.led(lead, WORDS, body);
    }
}

#[cfg(test)]
mod tests {
    use super::text;
    use crate::style::Style;
    use holdup_model::randomness::{Aspect, State};

    #[test]
    fn rows_are_plain_within_the_columns_and_hostile_names_do_nothing() {
        let aspect = |state, words: &str| Aspect {
            about: "hardware source".to_owned(),
            state,
            text: words.to_owned(),
        };
        let aspects = [
            aspect(State::Poor, &"a word ".repeat(40)),
            aspect(State::Pointless, "evil\x1b[2J\nname"),
        ];
        let text = text(
            &aspects,
            &Style {
                unicode: false,
                ..Style::default()
            },
        );
        for line in text.lines() {
            assert!(line.chars().count() <= 80 && !line.contains('\x1b'), "{line:?}");
        }
        assert!(text.contains("does not help here: evil\\x1b[2J\\nname"), "{text}");
    }
}
