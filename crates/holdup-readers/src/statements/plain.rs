//! Lines without what copying does to them: quoting, no-break spaces, fences of Markdown, colours that lost their escape.

use std::ops::Range;

/// The no-break space in UTF-8.
const NO_BREAK: [u8; 2] = [0xc2, 0xa0];

/// Bytes of a colour's numbers: `38;5;208`, `0;1;31`, `38;2;255;255;255`.
const LONGEST_COLOUR: usize = 20;

/// Levels of quoting that are taken off.
const LEVELS: usize = 8;

/// Makes lines plain, in one buffer.
#[derive(Debug, Default)]
pub(super) struct Plain {
    buffer: Vec<u8>,
    uncoloured: Vec<u8>,
}

/// The first colour without its escape: `[0;1;31m`, `[0m`, `[31m`. A length of PromQL (`[5m]`) ends with a bracket.
fn colour(line: &[u8]) -> Option<Range<usize>> {
    memchr::memchr_iter(b'[', line).find_map(|start| {
        let rest = line.get(start + 1..)?;
        let length = rest
            .iter()
            .take(LONGEST_COLOUR)
            .take_while(|byte| byte.is_ascii_digit() || **byte == b';')
            .count();
        let codes = rest.get(..length)?;
        let ends = rest.get(length) == Some(&b'm');
        let bracket = rest.get(length + 1) == Some(&b']');
        let several = memchr::memchr(b';', codes).is_some();
        // `[30m50s elapsed]` is a length.
        let digit = rest.get(length + 1).is_some_and(u8::is_ascii_digit);
        let one = matches!(codes, [b'1'] | [b'3' | b'4' | b'9', b'0'..=b'9']) && !bracket && !digit;
        (ends && (several || one || codes == b"0")).then_some(start..start + length + 2)
    })
}

impl Plain {
    /// The line without quoting, with blanks for no-break spaces, and without blanks at either end. A fence is no line.
    pub(super) fn of<'a>(&'a mut self, line: &'a [u8]) -> &'a [u8] {
        let line = match memchr::memchr(NO_BREAK[1], line) {
            None => line,
            Some(_) => {
                self.buffer.clear();
                let mut rest = line;
                while let Some((&first, behind)) = rest.split_first() {
                    match behind.split_first() {
                        Some((&second, after)) if [first, second] == NO_BREAK => {
                            self.buffer.push(b' ');
                            rest = after;
                        }
                        _ => {
                            self.buffer.push(first);
                            rest = behind;
                        }
                    }
                }
                &self.buffer
            }
        };
        let line = match colour(line) {
            None => line,
            Some(_) => {
                self.uncoloured.clear();
                let mut rest = line;
                while let Some(at) = colour(rest) {
                    self.uncoloured
                        .extend_from_slice(rest.get(..at.start).unwrap_or_default());
                    rest = rest.get(at.end..).unwrap_or_default();
                }
                self.uncoloured.extend_from_slice(rest);
                &self.uncoloured
            }
        };
        let mut line = line.trim_ascii();
        for _ in 0..LEVELS {
            match line {
                [b'>', b' ' | b'\t' | b'>', ..] => {
                    line = line.get(1..).unwrap_or_default().trim_ascii_start()
                }
                _ => break,
            }
        }
        let fence = line.starts_with(b"```") || line.starts_with(b"~~~");
        if fence || line == b">" { b"" } else { line }
    }
}
