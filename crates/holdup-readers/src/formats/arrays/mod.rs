//! Arrays of disks, as the kernel and the tools that manage them list them, and the health that a disk reports of itself.
//!
//! Out: a statement for each array or disk that is not whole, with what is missing in it and how far its repair is.

pub(super) mod drbd;
pub(super) mod drbdadm;
pub(super) mod lvs;
pub(super) mod mdadm;
pub(super) mod mdstat;
pub(super) mod raid_controllers;
pub(super) mod smartctl;
pub(super) mod zpool;

/// Bytes of a name that are kept.
const NAME: usize = 80;

/// Members of an array, or counts of a disk, that a statement names.
const NAMED: usize = 6;

/// Bytes of the tool's own words that are kept.
const WORDS: usize = 160;

/// The beginning of a text, cut between characters.
fn cut(text: &str, most: usize) -> String {
    text.char_indices()
        .take_while(|(at, char)| at + char.len_utf8() <= most)
        .map(|(_, char)| char)
        .collect()
}

/// Adds to a list that names only the first few.
fn name(list: &mut Vec<String>, text: &str) {
    if list.len() < NAMED {
        list.push(cut(text, NAME));
    }
}

/// A text with single blanks.
fn single(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
