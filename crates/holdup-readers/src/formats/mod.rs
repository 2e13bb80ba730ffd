//! The formats, one file each.

mod dmesg;
mod dmesg_json;
mod free;
mod journal;
mod journal_json;
mod jvm_log;
mod lsblk;
mod strace_log;
mod strace_summary;
mod swaps;
mod sysstat;
mod systemd_blame;
mod systemd_chain;
mod systemd_dump;
mod systemd_plot;
mod systemd_time;
mod thread_dump;
mod time_command;
mod timed_log;
mod tls_debug;
mod top;
mod vmstat;

use crate::format::Format;

/// Every format that is read.
pub static ALL: &[&Format] = &[
    &dmesg::FORMAT,
    &dmesg_json::FORMAT,
    &free::FORMAT,
    &journal::FORMAT,
    &journal_json::FORMAT,
    &jvm_log::FORMAT,
    &lsblk::FORMAT,
    &lsblk::JSON,
    &strace_log::FORMAT,
    &strace_log::LTRACE,
    &strace_summary::FORMAT,
    &swaps::FORMAT,
    &sysstat::IOSTAT,
    &sysstat::JSON,
    &sysstat::MPSTAT,
    &sysstat::PIDSTAT,
    &sysstat::SAR,
    &systemd_blame::FORMAT,
    &systemd_chain::FORMAT,
    &systemd_dump::FORMAT,
    &systemd_plot::FORMAT,
    &systemd_time::FORMAT,
    &thread_dump::FORMAT,
    &thread_dump::javacore::FORMAT,
    &thread_dump::json::FORMAT,
    &time_command::FORMAT,
    &timed_log::FORMAT,
    &tls_debug::FORMAT,
    &top::FORMAT,
    &vmstat::FORMAT,
];
