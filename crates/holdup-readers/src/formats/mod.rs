//! The formats, one file each.

mod strace_summary;
mod sysstat;
mod vmstat;

use crate::format::Format;

/// Every format that is read.
pub static ALL: &[&Format] = &[
    &sysstat::IOSTAT,
    &sysstat::MPSTAT,
    &sysstat::PIDSTAT,
    &sysstat::SAR,
    &strace_summary::FORMAT,
    &sysstat::JSON,
    &vmstat::FORMAT,
];
