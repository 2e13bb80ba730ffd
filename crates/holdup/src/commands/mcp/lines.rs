//! Lines of a stream, bounded: a line without an end takes no memory.

use std::io::{BufRead, Result};

/// Bytes of a line that is understood: requests of ours have some hundred.
pub(super) const LINE: usize = 1 << 20;

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line, without its end.
    Whole(Vec<u8>),
    /// A line that is too long, and was passed over.
    TooLong,
    /// Nothing more.
    End,
}

/// The next line of at most `most` bytes.
pub(super) fn next(from: &mut impl BufRead, most: usize) -> Result<Line> {
    let (mut line, mut too_long) = (Vec::new(), false);
    loop {
        let part = match from.fill_buf() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            part => part?,
        };
        let end = part.iter().position(|byte| *byte == b'\n');
        let length = end.unwrap_or(part.len());
        if line.len() + length > most {
            too_long = true;
            line = Vec::new();
        } else if !too_long {
            line.extend_from_slice(&part[..length]);
        }
        let over = part.is_empty();
        from.consume(length + usize::from(end.is_some()));
        match () {
            () if end.is_none() && !over => {}
            () if too_long => return Ok(Line::TooLong),
            () if over && line.is_empty() => return Ok(Line::End),
            () => return Ok(Line::Whole(line)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, next};
    use std::io::BufReader;

    #[test]
    fn a_line_that_is_too_long_costs_only_itself() {
        let text = format!("ab\n{}\ncd\n\nlast", "x".repeat(100));
        for buffer in [1, 3, 7, 1_000] {
            let mut from = BufReader::with_capacity(buffer, text.as_bytes());
            let mut lines = Vec::new();
            loop {
                match next(&mut from, 10).unwrap() {
                    Line::End => break,
                    line => lines.push(line),
                }
            }
            let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
            assert_eq!(
                lines,
                [whole("ab"), Line::TooLong, whole("cd"), whole(""), whole("last")],
                "{buffer}"
            );
        }
    }
}
