//! aarch64 has none of the calls that others took the place of.

/// Calls that are refused.
pub(crate) const REFUSED: &[libc::c_long] = &[];

/// Calls that open files, and which argument has the flags.
pub(crate) const OPENING: &[(libc::c_long, u8)] = &[(libc::SYS_openat, 2)];
