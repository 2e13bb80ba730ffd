//! Documents in JSON that are read as a whole, within a bound.
//!
//! In: the text, which may be anybody's. Out: its values. A value is as little as two bytes of text and takes some hundred in memory, so that a
//! document within the bound of bytes could take gigabytes.

use serde::de::Error as _;
use serde_json::{Error, Value};

/// Values in a document, those of lists too: a dump of ten thousand threads with a hundred frames each has a million.
const VALUES: usize = 6_000_000;

/// Whether it may be read: each value but the first of a list or an object follows a comma, and that one its bracket.
pub(crate) fn is_within(document: &[u8]) -> bool {
    let mut values = document.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{'));
    values.nth(VALUES).is_none()
}

/// Reads one.
///
/// # Errors
/// When it is damaged, or has too many values.
pub(crate) fn value(document: &[u8]) -> Result<Value, Error> {
    if !is_within(document) {
        return Err(Error::custom(format!("it has more than {VALUES} values")));
    }
    serde_json::from_slice(document)
}

#[cfg(test)]
mod tests {
    use super::{VALUES, value};

    #[test]
    fn a_document_of_empty_values_without_end_is_refused() {
        let bomb = format!("[{}\"\"]", "\"\",".repeat(VALUES));
        let refused = value(bomb.as_bytes()).expect_err("it has too many values");
        assert!(refused.to_string().contains("more than"), "{refused}");
        assert!(value(br#"{"threadDump": {"threads": []}}"#).is_ok());
    }
}
