//! `/proc/kallsyms`. Input: the file.

use holdup_symbols::KernelSymbols;
use std::io::Write;

/// How many mutations the ordinary tests try.
pub(crate) const MUTATIONS: usize = 3_000;

/// Reads it, and asks for the name of addresses all over.
pub(crate) fn run(bytes: &[u8]) {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    file.write_all(bytes).expect("and written");
    let symbols = KernelSymbols::load(file.path()).expect("what makes no sense is left out, not an error");
    for address in [0, 1, 0xffff_ffff_8100_0104, u64::MAX].into_iter().chain((0..64).map(|bit| 1 << bit)) {
        let _ = symbols.name(address);
    }
    assert!(!symbols.hidden() || symbols.name(u64::MAX).is_none());
}
