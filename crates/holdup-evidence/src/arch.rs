//! What of the evidence depends on the processor: numbers of system calls, and which registers tell who called.
//!
//! System calls have one numbering everywhere in holdup, in events and in recordings: that of x86-64, which has all calls that the other
//! processors have. What a kernel says is put into it where it comes in, so that a recording means the same wherever it is read.

pub mod aarch64;
pub mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64 as here;
#[cfg(target_arch = "x86_64")]
pub use x86_64 as here;

pub use here::{FRAME_POINTER, SAVED};

/// Values of the registers whose value in a caller can be known, in the order of the processor's module.
pub type SavedRegisters = [u64; SAVED];

/// A system call as this machine's kernel numbers it, in holdup's numbering; what is below 0 stays what it is, and [`crate::Call::UNTOLD`] is
/// what has no number there.
#[must_use]
pub fn call(number: i32) -> i32 {
    match number {
        ..0 => number,
        _ => here::call(number).unwrap_or(crate::Call::UNTOLD),
    }
}

#[cfg(test)]
mod tests;
