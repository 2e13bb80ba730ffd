//! The records of the BPF programs. Input: the bytes of one record.

use holdup_bpf::decode;

/// How many mutations the ordinary tests try.
pub(crate) const MUTATIONS: usize = 5_000;

/// Longer than the longest record, bytes: what follows a short input is zeros, so that a corpus of short files reaches
/// into every type of record.
const LONGER_THAN_ANY: usize = 24 << 10;

/// Reads it as it is, and as the beginning of a long one.
pub(crate) fn run(bytes: &[u8]) {
    // An error is an answer.
    let _ = decode::decode(bytes);
    let mut long = bytes.to_vec();
    long.resize(bytes.len().max(LONGER_THAN_ANY), 0);
    let _ = decode::decode(&long);
}
