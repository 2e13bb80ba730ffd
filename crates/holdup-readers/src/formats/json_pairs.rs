//! Names and values of JSON, as they come, whole or cut: people paste a part of an answer, with the command before it.
//!
//! In: a line. Out: each name with its value, in the line's order, whatever they are nested in. What is no JSON gives nothing.

/// Bytes of a line that are looked at: an answer without line breaks is one line.
const LINE_BYTES: usize = 256 << 10;

/// Bytes of a value that are handed out.
const VALUE_BYTES: usize = 600;

/// The value of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// Between quotation marks, as it is written.
    Text(&'a str),
    /// A number, `true`, `false`, `null`.
    Bare(&'a str),
    /// An object or a list, whose own names follow.
    Nested,
}

impl<'a> Value<'a> {
    /// The text or number itself.
    pub(super) fn text(self) -> &'a str {
        match self {
            Value::Text(text) | Value::Bare(text) => text,
            Value::Nested => "",
        }
    }

    pub(super) fn number(self) -> Option<f64> {
        super::report::number(self.text())
    }
}

/// The names and values of a line.
pub(super) fn pairs(line: &str) -> Pairs<'_> {
    Pairs {
        rest: cut(line, LINE_BYTES),
    }
}

/// Whether a line may be part of an answer: all of its lines begin with a sign or a text between quotation marks.
pub(super) fn is_json(line: &str) -> bool {
    let first = line.trim_start().chars().next();
    first.is_none_or(|first| matches!(first, '{' | '}' | '[' | ']' | ',' | '"'))
}

/// At most so many bytes, between characters.
fn cut(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.get(..end).unwrap_or_default()
}

#[derive(Debug, Clone)]
pub(super) struct Pairs<'a> {
    rest: &'a str,
}

/// What stands before the quotation mark that closes a text, and what behind it; of a text that is cut, all.
fn closed(text: &str) -> (&str, &str) {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => {
                let behind = text.get(at + 1..).unwrap_or_default();
                return (text.get(..at).unwrap_or_default(), behind);
            }
            _ => {}
        }
    }
    (text, "")
}

impl<'a> Iterator for Pairs<'a> {
    type Item = (&'a str, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (_, text) = self.rest.split_once('"')?;
            let (name, behind) = closed(text);
            self.rest = behind;
            let Some(value) = behind.trim_start().strip_prefix(':') else {
                continue;
            };
            let value = value.trim_start();
            if let Some(text) = value.strip_prefix('"') {
                let (text, behind) = closed(text);
                self.rest = behind;
                return Some((name, Value::Text(cut(text, VALUE_BYTES))));
            }
            if value.is_empty() || value.starts_with(['{', '[']) {
                self.rest = value;
                return Some((name, Value::Nested));
            }
            let end = value.find([',', '}', ']']).unwrap_or(value.len());
            let (bare, behind) = value.split_at_checked(end)?;
            self.rest = behind;
            return Some((name, Value::Bare(cut(bare.trim_end(), VALUE_BYTES))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Value, pairs};

    #[test]
    fn names_with_values_in_one_line_or_cut() {
        let line = r#"{"a":"x \"y\"","b" : {"c":12.5,"d":["e","f"],"g":null},"h":"cut off"#;
        let all: Vec<_> = pairs(line).collect();
        assert_eq!(
            all,
            [
                ("a", Value::Text(r#"x \"y\""#)),
                ("b", Value::Nested),
                ("c", Value::Bare("12.5")),
                ("d", Value::Nested),
                ("g", Value::Bare("null")),
                ("h", Value::Text("cut off")),
            ]
        );
        for line in ["", "\"", "\"a", "\"a\":", "a: b", "\"\\", "\"é\":é"] {
            assert!(pairs(line).count() <= 1, "{line}");
        }
    }
}
