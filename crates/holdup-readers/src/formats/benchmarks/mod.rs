//! Benchmarks: what they measured, in the sentence that a person would take from their page. They have no norms: what is much depends on
//! what was asked for.

pub(super) mod disk_speed;
pub(super) mod fio;
pub(super) mod fio_json;
pub(super) mod iperf;
pub(super) mod load_tests;
pub(super) mod pgbench;
pub(super) mod requests;
mod stalls;
pub(super) mod sysbench;
pub(super) mod vegeta;
