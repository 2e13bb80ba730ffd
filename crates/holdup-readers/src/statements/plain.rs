//! Lines without what copying does to them: quoting, no-break spaces, fences of Markdown.

/// The no-break space in UTF-8.
const NO_BREAK: [u8; 2] = [0xc2, 0xa0];

/// Levels of quoting that are taken off.
const LEVELS: usize = 8;

/// Makes lines plain, in one buffer.
#[derive(Debug, Default)]
pub(super) struct Plain {
    buffer: Vec<u8>,
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
