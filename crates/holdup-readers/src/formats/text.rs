//! Any text that is of no other format.
//!
//! In: lines. Out: what they state in words. No beginning is recognised as this: it is what is left.

use crate::format::{Family, Format, LineReader, Shape, Sureness, Understood};
use crate::gather::Out;
use crate::statements::Statements;

/// The format's name.
pub const ID: &str = "text";

pub(crate) static FORMAT: Format =
    Format::new(ID, Family::Times, |_| Sureness::No, Shape::Lines(reader)).about("any other text");

/// A reader of any text.
pub(crate) fn reader() -> Box<dyn LineReader> {
    Box::<Reader>::default()
}

#[derive(Debug, Default)]
struct Reader {
    statements: Statements,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Understood::Ignorable;
        }
        match self.statements.line(line, out) {
            true => Understood::Evidence,
            false => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.statements.end(out);
    }
}
