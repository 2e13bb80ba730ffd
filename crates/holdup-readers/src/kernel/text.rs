//! Pieces of messages.

use crate::find::find;

/// What comes after `before`, wherever that stands.
pub(super) fn after<'a>(text: &'a [u8], before: &[u8]) -> Option<&'a [u8]> {
    let at = find(text, before)?;
    text.get(at + before.len()..)
}

/// What stands before `end`.
pub(super) fn until<'a>(text: &'a [u8], end: &[u8]) -> Option<&'a [u8]> {
    text.get(..find(text, end)?)
}

/// The first word, without a comma, colon or point at its end.
pub(super) fn word(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| *byte == b' ').unwrap_or(text.len());
    let word = text.get(..end).unwrap_or_default();
    let kept = word
        .iter()
        .rposition(|byte| !matches!(byte, b',' | b':' | b'.' | b';'));
    word.get(..kept.map_or(0, |last| last + 1)).unwrap_or_default()
}

/// The number that it begins with.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    crate::numbers::whole(text.get(..count)?)
}

/// As text, whatever its encoding; names in messages are short.
pub(super) fn owned(text: &[u8]) -> String {
    const MAX_BYTES: usize = 200;
    String::from_utf8_lossy(text.get(..MAX_BYTES).unwrap_or(text)).into_owned()
}
