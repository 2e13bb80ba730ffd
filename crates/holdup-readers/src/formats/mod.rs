//! The formats, one file each.

mod strace_log;
mod strace_summary;

use crate::format::Format;

/// Every format that is read.
pub static ALL: &[&Format] = &[&strace_log::LTRACE, &strace_log::FORMAT, &strace_summary::FORMAT];
