//! The formats, one file each.

mod strace_log;
mod strace_summary;
mod thread_dump;

use crate::format::Format;

/// Every format that is read.
pub static ALL: &[&Format] = &[
    &thread_dump::javacore::FORMAT,
    &strace_log::LTRACE,
    &strace_log::FORMAT,
    &strace_summary::FORMAT,
    &thread_dump::FORMAT,
    &thread_dump::json::FORMAT,
];
