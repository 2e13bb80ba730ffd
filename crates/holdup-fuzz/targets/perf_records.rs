//! The kernel's announcements of mappings. Input: the bytes of one record.

use holdup_bpf::mappings::{Change, announced};

/// How many mutations the ordinary tests try.
pub(crate) const MUTATIONS: usize = 20_000;

/// Reads it; a mapping that is understood does not end before it begins.
pub(crate) fn run(bytes: &[u8]) {
    if let Some(mapped) = announced(bytes)
        && let Change::Map(mapping) = mapped.change
    {
        assert!(mapping.start <= mapping.end);
    }
}
