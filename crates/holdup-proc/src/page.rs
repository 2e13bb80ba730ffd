//! How large this kernel's pages are: on some processors that is a choice of whoever built it.

use nix::unistd::{SysconfVar, sysconf};
use std::sync::LazyLock;

/// Bytes of a page in what is reported in pages.
const REPORTED: u64 = 4096;

static BYTES: LazyLock<u64> = LazyLock::new(|| {
    let size = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
    size.and_then(|bytes| u64::try_from(bytes).ok())
        .filter(|bytes| bytes.is_power_of_two())
        .unwrap_or(REPORTED)
});

/// Bytes of a page.
pub(crate) fn bytes() -> u64 {
    *BYTES
}

/// A number of pages of this kernel, in pages of 4 KiB: what is reported means the same wherever it is read.
pub(crate) fn reported(pages: u64) -> u64 {
    of_bytes(pages, bytes())
}

fn of_bytes(pages: u64, bytes: u64) -> u64 {
    pages.saturating_mul((bytes / REPORTED).max(1))
}

#[cfg(test)]
mod tests {
    use super::of_bytes;

    #[test]
    fn pages_are_reported_as_if_they_had_4_kib() {
        assert_eq!(
            [4 << 10, 16 << 10, 64 << 10].map(|bytes| of_bytes(3, bytes)),
            [3, 12, 48]
        );
        assert_eq!(of_bytes(u64::MAX, 64 << 10), u64::MAX);
    }
}
