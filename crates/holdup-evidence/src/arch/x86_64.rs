//! x86-64, and i386 programs on it.

/// rbx, rbp, r12, r13, r14, r15.
pub const SAVED: usize = 6;

/// Where rbp is among them.
pub const FRAME_POINTER: usize = 1;

/// Bytes of `struct epoll_event`, which is packed.
pub const EPOLL_EVENT_BYTES: u64 = 12;

/// The numbering is its own.
#[must_use]
pub fn call(number: i32) -> Option<i32> {
    Some(number)
}

/// The number of a call in 32-bit programs, by that of i386.
#[must_use]
pub fn call_of_32_bit(i386: u16) -> Option<u16> {
    Some(i386)
}
