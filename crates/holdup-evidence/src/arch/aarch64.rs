//! aarch64, and 32-bit programs of ARM on it.

use std::sync::LazyLock;
use syscalls::{aarch64, arm, x86, x86_64};

/// x19 to x28, the frame pointer x29, the link register x30.
pub const SAVED: usize = 12;

/// Where x29 is among them.
pub const FRAME_POINTER: usize = 10;

/// Bytes of `struct epoll_event`.
pub const EPOLL_EVENT_BYTES: u64 = 16;

/// Calls beyond this number are none.
const CALLS: usize = 512;

/// By number: the same call of x86-64, which has all of these calls. What is not there has none.
static CALLS_OF_X86_64: LazyLock<Vec<Option<i32>>> = LazyLock::new(|| {
    let same = |number| {
        let name = match aarch64::Sysno::new(number)?.name() {
            // The kernel's own tables have one name for both.
            "fstatat" => "newfstatat",
            name => name,
        };
        name.parse().ok().map(|call: x86_64::Sysno| call.id())
    };
    (0..CALLS).map(same).collect()
});

/// A call of aarch64 in the numbering of x86-64.
#[must_use]
pub fn call(number: i32) -> Option<i32> {
    let number = usize::try_from(number).ok()?;
    *CALLS_OF_X86_64.get(number)?
}

/// The number of a call in 32-bit programs (EABI), by that of i386: the two have the same names, and the same first arguments.
#[must_use]
pub fn call_of_32_bit(i386: u16) -> Option<u16> {
    let name = x86::Sysno::new(i386.into())?.name();
    let number = name.parse().ok().map(|call: arm::Sysno| call.id())?;
    u16::try_from(number).ok()
}
