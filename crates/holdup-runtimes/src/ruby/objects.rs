//! Objects of Ruby that are read: texts, arrays, and what the interpreter keeps for itself.
//!
//! In: the address of an object. Out: what it is, its text, where its elements are. All lengths are bounded.

use super::versions::{Embedded, Layout};
use crate::memory::{Memory, Source};

/// Bytes of a name or path that are kept; more is cut off.
const TEXT_MAX: u64 = 1024;

/// A longer text or array is none.
const LENGTH_MAX: u64 = 1 << 32;

/// The bits of an object's flags that say what it is.
const KIND: u64 = 0x1f;

/// The bits that say which of the interpreter's own objects it is.
const OWN_SHIFT: u32 = 12;
const OWN: u64 = 0xf;

/// Where the bits begin that each kind uses as it likes. The second is the one that tells short texts and arrays from long ones.
const USER_SHIFT: u32 = 12;
const USER_1: u64 = 1 << (USER_SHIFT + 1);
/// Where the length of a short text and of a short array begins.
const TEXT_SHIFT: u32 = USER_SHIFT + 2;
const TEXT_LENGTH: u64 = 0x1f;
const ARRAY_SHIFT: u32 = USER_SHIFT + 3;

/// Offsets in texts and arrays.
const LENGTH: u64 = 16;
const TEXT: u64 = 24;
const ELEMENTS: u64 = 16;
const ELEMENTS_BEHIND: u64 = 32;

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A `String`.
    Text,
    /// An `Array`.
    Array,
    /// Where a frame keeps variables of its own and its method.
    Variables,
    /// A method.
    Method,
    /// A method's or block's code.
    Code,
    /// A structure of C.
    Data,
}

impl Kind {
    fn of(flags: u64) -> Option<Kind> {
        Some(match (flags & KIND, (flags >> OWN_SHIFT) & OWN) {
            (0x05, _) => Kind::Text,
            (0x07, _) => Kind::Array,
            (0x0c, _) => Kind::Data,
            (0x1a, 2) => Kind::Variables,
            (0x1a, 6) => Kind::Method,
            (0x1a, 7) => Kind::Code,
            _ => return None,
        })
    }
}

/// What an object is, and its flags. Numbers, `nil` and the like are no addresses.
fn kind<S: Source>(memory: &mut Memory<S>, object: u64) -> Option<(Option<Kind>, u64)> {
    if object == 0 || !object.is_multiple_of(8) {
        return None;
    }
    let flags = memory.word(object)?;
    Some((Kind::of(flags), flags))
}

/// Whether an object is of a kind.
pub(super) fn is<S: Source>(memory: &mut Memory<S>, object: u64, wanted: Kind) -> Option<bool> {
    Some(kind(memory, object)?.0 == Some(wanted))
}

/// Where an array's elements are, and how many.
pub(super) fn array<S: Source>(memory: &mut Memory<S>, layout: &Layout, object: u64) -> Option<(u64, u64)> {
    let (Some(Kind::Array), flags) = kind(memory, object)? else {
        return None;
    };
    let (begin, length) = if flags & USER_1 != 0 {
        let length = (flags >> ARRAY_SHIFT) & layout.array_length;
        (object.checked_add(ELEMENTS)?, length)
    } else {
        let length = memory.word(object.checked_add(LENGTH)?)?;
        (memory.pointer(object.checked_add(ELEMENTS_BEHIND)?)?, length)
    };
    (length < LENGTH_MAX).then_some((begin, length))
}

/// A text.
pub(super) fn text<S: Source>(memory: &mut Memory<S>, layout: &Layout, object: u64) -> Option<String> {
    let (Some(Kind::Text), flags) = kind(memory, object)? else {
        return None;
    };
    let long = flags & USER_1 != 0;
    let (begin, length) = match (long, layout.text) {
        (true, _) => (
            memory.pointer(object.checked_add(TEXT)?)?,
            memory.word(object.checked_add(LENGTH)?)?,
        ),
        (false, Embedded::Flags) => (object.checked_add(LENGTH)?, (flags >> TEXT_SHIFT) & TEXT_LENGTH),
        (false, Embedded::Word) => (
            object.checked_add(TEXT)?,
            memory.word(object.checked_add(LENGTH)?)?,
        ),
    };
    if length >= LENGTH_MAX {
        return None;
    }
    memory.text(begin, usize::try_from(length.min(TEXT_MAX)).ok()?)
}
