//! The machine's own counters at an instant: what a figure over time is the difference of two of.

use crate::Ns;
use std::collections::BTreeMap;

/// What the kernel has counted since boot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// When that was, `CLOCK_MONOTONIC`.
    pub at: Ns,
    /// Time of all CPUs together; `None` where it is not known.
    pub cpu: Option<CpuTicks>,
    /// For how long some task stood still for want of a CPU, of memory, of a disk, microseconds; `None` where it is not known.
    pub stalled: [Option<u64>; 3],
    /// For how long each disk was busy, milliseconds. Partitions are not among them.
    pub disks: BTreeMap<String, u64>,
}

/// Time of CPUs, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// All of it.
    pub all: u64,
    /// Of that with nothing to do.
    pub idle: u64,
    /// With nothing to do while a task of that CPU waited for a disk.
    pub iowait: u64,
}
