//! The formats, one file each.

mod jvm_log;
mod strace_log;
mod strace_summary;
mod time_command;
mod timed_log;
mod tls_debug;

use crate::format::Format;

/// Every format that is read.
pub static ALL: &[&Format] = &[
    &jvm_log::FORMAT,
    &strace_log::LTRACE,
    &strace_log::FORMAT,
    &strace_summary::FORMAT,
    &time_command::FORMAT,
    &timed_log::FORMAT,
    &tls_debug::FORMAT,
];
