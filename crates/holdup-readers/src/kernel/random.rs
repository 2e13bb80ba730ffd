//! The random generator's messages. Their text changed over the years, and the version does not tell which a kernel has,
//! because the whole generator was back-ported.

use super::text::{after, number, owned, until};
use holdup_evidence::observed::KernelEvent;

/// Whether the message is from the first function of the kernel that can say anything: then a boot begins here, even
/// where the lines before it were filtered out.
pub(super) fn in_start_kernel(said: &[u8]) -> bool {
    after(said, b"called from start_kernel+").is_some()
}

/// What a message behind `random: ` tells.
pub(super) fn event(said: &[u8]) -> Option<KernelEvent> {
    const FULLY: [&[u8]; 3] = [
        b"crng init done",
        // 4.19 to 5.16: with "(trusting CPU's manufacturer)".
        b"crng done",
        // Up to 4.7.
        b"nonblocking pool is initialized",
    ];
    if FULLY.iter().any(|form| said.starts_with(form)) {
        return Some(KernelEvent::RandomSeeded { fully: true });
    }
    if said.starts_with(b"fast init done") {
        return Some(KernelEvent::RandomSeeded { fully: false });
    }
    // `systemd: uninitialized urandom read (16 bytes read)`; up to 4.7 `dd urandom read with 35 bits of entropy available`.
    let reader = until(said, b": uninitialized urandom read").or_else(|| until(said, b" urandom read with "));
    if let Some(process) = reader {
        return Some(KernelEvent::UnseededRead {
            process: owned(process),
            suppressed: 0,
        });
    }
    let suppressed = after(said, b" urandom warning(s) missed").and_then(|_| number(said));
    suppressed.map(|suppressed| KernelEvent::UnseededRead {
        process: String::new(),
        suppressed,
    })
}
