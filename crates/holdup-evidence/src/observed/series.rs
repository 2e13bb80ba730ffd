//! A figure over time, as iostat, vmstat, top and their kin print it.

use super::{Quote, When};
use crate::Ns;
use serde::{Deserialize, Serialize};

/// A figure of one thing over time, thinned where there is much of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// What is measured.
    pub metric: Metric,
    /// Of what: a device, a CPU, a process; empty for the machine.
    #[serde(default)]
    pub of: String,
    /// Which artefact, as a [`Quote`] has it: series of two artefacts are never one.
    #[serde(default)]
    pub source: u32,
    /// The values that were kept, in order. The greatest is always among them.
    #[serde(default)]
    pub points: Vec<Point>,
    /// How many there were, those that were not kept included.
    #[serde(default)]
    pub count: u64,
    /// Their sum.
    #[serde(default)]
    pub sum: f64,
}

/// One value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Point {
    /// Which report of its artefact it belongs to, from 0: values of one report were measured together.
    pub report: u32,
    /// The value, in the metric's unit.
    pub value: f64,
    /// When the report was made.
    pub at: Option<When>,
    /// The time that it covers, ns; `None` where it is a state or that is not known.
    pub over: Option<Ns>,
    /// Whether it is an average since boot, as the first report of iostat and vmstat is: never to be taken for now.
    pub since_boot: bool,
    /// Whether it may be one, which cannot be determined: the only report of top. It shows what there is much of, and nothing
    /// that is little in it is ruled out.
    pub perhaps_since_boot: bool,
    /// Where it was read.
    pub quote: Quote,
}

impl Series {
    /// The values that are of an interval, and not of the time since boot.
    pub fn of_intervals(&self) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(|point| !point.since_boot)
    }

    /// The greatest of them.
    #[must_use]
    pub fn greatest(&self) -> Option<&Point> {
        self.of_intervals().max_by(|a, b| a.value.total_cmp(&b.value))
    }

    /// The value in one report.
    #[must_use]
    pub fn in_report(&self, report: u32) -> Option<&Point> {
        let at = self.points.binary_search_by_key(&report, |point| point.report);
        at.ok().map(|at| &self.points[at])
    }
}

/// What can be measured. The unit is in the name; shares are 0..100 as the tools print them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // each says itself: what, and in which unit
pub enum Metric {
    CpuUserPercent,
    CpuNicePercent,
    CpuSystemPercent,
    CpuIowaitPercent,
    CpuStealPercent,
    CpuIdlePercent,
    CpuIrqPercent,
    CpuSoftirqPercent,
    LoadAverage1,
    LoadAverage5,
    LoadAverage15,
    ProcessesRunnable,
    ProcessesBlocked,
    ProcessesTotal,
    ProcessesStopped,
    ProcessesZombie,
    DiskUtilPercent,
    DiskReadsPerSecond,
    DiskWritesPerSecond,
    DiskReadsMergedPerSecond,
    DiskWritesMergedPerSecond,
    DiskReadKibPerSecond,
    DiskWriteKibPerSecond,
    DiskReadWaitMs,
    DiskWriteWaitMs,
    DiskWaitMs,
    DiskServiceMs,
    DiskQueueLength,
    DiskRequestKib,
    DiskReadRequestKib,
    DiskWriteRequestKib,
    DiskDiscardsPerSecond,
    DiskFlushesPerSecond,
    DiskFlushWaitMs,
    MemoryTotalKib,
    MemoryFreeKib,
    MemoryAvailableKib,
    MemoryUsedKib,
    MemoryCachedKib,
    MemoryDirtyKib,
    MemoryWritebackKib,
    MemoryCommittedKib,
    MemoryCommitLimitKib,
    MemoryBuffersKib,
    MemoryLockedKib,
    MemorySlabUnreclaimableKib,
    SwapTotalKib,
    SwapUsedKib,
    SwapInKibPerSecond,
    SwapOutKibPerSecond,
    BlocksInPerSecond,
    BlocksOutPerSecond,
    InterruptsPerSecond,
    ContextSwitchesPerSecond,
    TasksStartedPerSecond,
    MajorFaultsPerSecond,
    ProcessCpuPercent,
    ProcessMemoryPercent,
    ProcessResidentKib,
    ProcessSwapKib,
    ProcessReadKibPerSecond,
    ProcessWriteKibPerSecond,
    ProcessIoDelayTicks,
    ProcessWaitPercent,
    ThreadLifeMs,
    SafepointReachMs,
    SafepointPauseMs,
    GcPauseMs,
    AllocationStallMs,
    HeapAfterGcPercent,
    FileSystemUsedPercent,
    FileSystemAvailableKib,
    FileSystemInodesUsedPercent,
    PressureCpuSomePercent,
    PressureMemorySomePercent,
    PressureMemoryFullPercent,
    PressureIoSomePercent,
    PressureIoFullPercent,
    NetworkReceivedKibPerSecond,
    NetworkSentKibPerSecond,
    NetworkUtilPercent,
    TcpRetransmitsPerSecond,
    DiskTransfersPerSecond,
    SwapInPagesPerSecond,
    SwapOutPagesPerSecond,
    NetworkReceiveDropsPerSecond,
    NetworkReceiveErrorsPerSecond,
    TcpSegmentsSentPerSecond,
    PressureCpuFullPercent,
    TcpSegmentsSent,
    TcpSegmentsSentAgain,
    ListenQueueOverflows,
    SynQueueOverflows,
    TcpSocketsInUse,
    TcpSocketsTimeWait,
    OpenFiles,
    OpenFilesLimit,
    ConntrackEntries,
    ConntrackLimit,
    EntropyAvailableBits,
    EntropyPoolBits,
    TasksRunnable,
    ThreadsTotal,
    ProcessThreads,
    NetworkReceivedPacketsPerSecond,
    NetworkSentPacketsPerSecond,
    ProcessVoluntarySwitchesPerSecond,
    ProcessForcedSwitchesPerSecond,
}

impl Metric {
    /// Whether it counts per cent.
    #[must_use]
    pub fn is_percent(self) -> bool {
        use Metric as M;
        matches!(
            self,
            M::CpuUserPercent
                | M::CpuNicePercent
                | M::CpuSystemPercent
                | M::CpuIowaitPercent
                | M::CpuStealPercent
                | M::CpuIdlePercent
                | M::CpuIrqPercent
                | M::CpuSoftirqPercent
                | M::DiskUtilPercent
                | M::ProcessCpuPercent
                | M::ProcessMemoryPercent
                | M::ProcessWaitPercent
                | M::HeapAfterGcPercent
                | M::FileSystemUsedPercent
                | M::FileSystemInodesUsedPercent
                | M::PressureCpuSomePercent
                | M::PressureMemorySomePercent
                | M::PressureMemoryFullPercent
                | M::PressureIoSomePercent
                | M::PressureIoFullPercent
                | M::NetworkUtilPercent
                | M::PressureCpuFullPercent
        )
    }

    /// Whether it is how things stand at an instant, and not of a stretch of time: the first report of vmstat has such
    /// figures beside averages since boot.
    #[must_use]
    pub fn is_state(self) -> bool {
        use Metric as M;
        matches!(
            self,
            M::LoadAverage1
                | M::LoadAverage5
                | M::LoadAverage15
                | M::ProcessesRunnable
                | M::ProcessesBlocked
                | M::ProcessesTotal
                | M::ProcessesStopped
                | M::ProcessesZombie
                | M::MemoryTotalKib
                | M::MemoryFreeKib
                | M::MemoryAvailableKib
                | M::MemoryUsedKib
                | M::MemoryCachedKib
                | M::MemoryDirtyKib
                | M::MemoryWritebackKib
                | M::MemoryCommittedKib
                | M::MemoryCommitLimitKib
                | M::MemoryBuffersKib
                | M::MemoryLockedKib
                | M::MemorySlabUnreclaimableKib
                | M::SwapTotalKib
                | M::SwapUsedKib
                | M::ProcessMemoryPercent
                | M::ProcessResidentKib
                | M::ProcessSwapKib
                | M::HeapAfterGcPercent
                | M::FileSystemUsedPercent
                | M::FileSystemAvailableKib
                | M::FileSystemInodesUsedPercent
                | M::TcpSocketsInUse
                | M::TcpSocketsTimeWait
                | M::OpenFiles
                | M::OpenFilesLimit
                | M::ConntrackEntries
                | M::ConntrackLimit
                | M::EntropyAvailableBits
                | M::EntropyPoolBits
                | M::TasksRunnable
                | M::ThreadsTotal
                | M::ProcessThreads
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Metric;

    #[test]
    fn shares_are_told_from_other_figures() {
        for share in [Metric::CpuUserPercent, Metric::PressureCpuFullPercent] {
            assert!(share.is_percent(), "{share:?}");
        }
        for other in [Metric::DiskQueueLength, Metric::MemoryBuffersKib] {
            assert!(!other.is_percent(), "{other:?}");
        }
    }

    #[test]
    fn what_stands_is_told_from_what_is_counted_over_time() {
        for state in [
            Metric::MemoryBuffersKib,
            Metric::MemoryCommitLimitKib,
            Metric::ProcessesZombie,
            Metric::FileSystemUsedPercent,
            Metric::OpenFiles,
        ] {
            assert!(state.is_state(), "{state:?}");
        }
        for over_time in [
            Metric::DiskQueueLength,
            Metric::ListenQueueOverflows,
            Metric::PressureIoFullPercent,
            Metric::CpuIdlePercent,
        ] {
            assert!(!over_time.is_state(), "{over_time:?}");
        }
    }
}
