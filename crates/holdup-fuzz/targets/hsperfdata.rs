//! Performance data of a JVM. Input: the memory as it is read from a process.

use holdup_jvm::figures::Copy;
use holdup_jvm::hsperfdata::Index;

/// How many mutations the ordinary tests try.
pub(crate) const MUTATIONS: usize = 20_000;

/// Reads it whole, and by the index of it a shorter copy.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(index) = Index::parse(bytes) else {
        return;
    };
    for bytes in [bytes, &bytes[..bytes.len() / 2]] {
        let jvm = Copy {
            index: &index,
            bytes,
        }
        .jvm(1);
        assert!(jvm.options.len() <= 64);
        assert!(jvm.version.is_none_or(|version| version.len() <= 3 * 4_096));
    }
}
