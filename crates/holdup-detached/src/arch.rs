//! System calls that not every processor's kernel has.

#[cfg(target_arch = "aarch64")]
pub(crate) mod aarch64;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64 as here;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64 as here;
