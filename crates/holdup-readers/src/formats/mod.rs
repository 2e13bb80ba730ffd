//! The formats, one file each.

mod free;
mod lsblk;
mod strace_summary;
mod swaps;
mod top;

use crate::format::Format;

/// Every format that is read.
pub static ALL: &[&Format] = &[
    &free::FORMAT,
    &lsblk::FORMAT,
    &lsblk::JSON,
    &strace_summary::FORMAT,
    &swaps::FORMAT,
    &top::FORMAT,
];
