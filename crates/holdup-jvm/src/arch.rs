//! Which registers HotSpot's code has what in, by processor. Where frames have what is the same on both.

#[cfg_attr(target_arch = "x86_64", expect(dead_code, reason = "of the other processor"))]
mod aarch64;
#[cfg_attr(target_arch = "aarch64", expect(dead_code, reason = "of the other processor"))]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::{BYTECODE, KEPT, THREAD, return_address};
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{BYTECODE, KEPT, THREAD, return_address};

pub(crate) use holdup_evidence::arch::{FRAME_POINTER, SAVED};
