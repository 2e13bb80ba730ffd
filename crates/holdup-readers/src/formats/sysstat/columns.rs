//! What the columns of sysstat's tables measure, by their names.
//!
//! Names, never places: between versions 9 and 12 columns were renamed, split by reads and writes, and put into another
//! order. The same names, without `/s` and with `-percent`, are the keys of its JSON.

use holdup_evidence::observed::Metric;

/// What the rows of a table are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A CPU, or all of them.
    Cpu,
    /// A disk, partition or group.
    Disk,
    /// A network interface.
    Interface,
    /// A process or thread.
    Process,
    /// The machine.
    Machine,
    /// Something that says nothing to us: interrupts by number, terminals, buses.
    Other,
}

/// KiB in a sector of 512 bytes, which is what the kernel counts in whatever the disk's own sectors are.
const SECTOR: f64 = 0.5;
/// KiB in a MiB.
const MIB: f64 = 1024.0;
/// KiB in a byte.
const BYTE: f64 = 1.0 / 1024.0;

/// The metric of a column, and what to multiply its values with.
pub(super) fn column(kind: Kind, name: &[u8]) -> Option<(Metric, f64)> {
    match kind {
        Kind::Cpu => Some((cpu(name)?, 1.0)),
        Kind::Disk => disk(name),
        Kind::Interface => interface(name),
        Kind::Process => Some((process(name)?, 1.0)),
        Kind::Machine => machine(name),
        Kind::Other => None,
    }
}

fn cpu(name: &[u8]) -> Option<Metric> {
    Some(match name {
        b"%user" | b"%usr" | b"user" | b"usr" => Metric::CpuUserPercent,
        b"%nice" | b"nice" => Metric::CpuNicePercent,
        b"%system" | b"%sys" | b"system" | b"sys" => Metric::CpuSystemPercent,
        b"%iowait" | b"iowait" => Metric::CpuIowaitPercent,
        b"%steal" | b"steal" => Metric::CpuStealPercent,
        b"%idle" | b"idle" => Metric::CpuIdlePercent,
        b"%irq" | b"irq" => Metric::CpuIrqPercent,
        b"%soft" | b"soft" => Metric::CpuSoftirqPercent,
        _ => return None,
    })
}

fn disk(name: &[u8]) -> Option<(Metric, f64)> {
    Some(match name {
        b"r/s" => (Metric::DiskReadsPerSecond, 1.0),
        b"w/s" => (Metric::DiskWritesPerSecond, 1.0),
        b"d/s" => (Metric::DiskDiscardsPerSecond, 1.0),
        b"f/s" => (Metric::DiskFlushesPerSecond, 1.0),
        b"rrqm/s" => (Metric::DiskReadsMergedPerSecond, 1.0),
        b"wrqm/s" => (Metric::DiskWritesMergedPerSecond, 1.0),
        b"rsec/s" | b"rd_sec/s" | b"rd_sec" | b"Blk_read/s" => (Metric::DiskReadKibPerSecond, SECTOR),
        b"wsec/s" | b"wr_sec/s" | b"wr_sec" | b"Blk_wrtn/s" => (Metric::DiskWriteKibPerSecond, SECTOR),
        b"rkB/s" | b"kB_read/s" | b"rkB" => (Metric::DiskReadKibPerSecond, 1.0),
        b"wkB/s" | b"kB_wrtn/s" | b"wkB" => (Metric::DiskWriteKibPerSecond, 1.0),
        b"rMB/s" | b"MB_read/s" => (Metric::DiskReadKibPerSecond, MIB),
        b"wMB/s" | b"MB_wrtn/s" => (Metric::DiskWriteKibPerSecond, MIB),
        b"avgrq-sz" => (Metric::DiskRequestKib, SECTOR),
        b"areq-sz" => (Metric::DiskRequestKib, 1.0),
        b"rareq-sz" => (Metric::DiskReadRequestKib, 1.0),
        b"wareq-sz" => (Metric::DiskWriteRequestKib, 1.0),
        b"avgqu-sz" | b"aqu-sz" => (Metric::DiskQueueLength, 1.0),
        b"await" => (Metric::DiskWaitMs, 1.0),
        b"r_await" => (Metric::DiskReadWaitMs, 1.0),
        b"w_await" => (Metric::DiskWriteWaitMs, 1.0),
        b"f_await" => (Metric::DiskFlushWaitMs, 1.0),
        b"svctm" => (Metric::DiskServiceMs, 1.0),
        b"%util" | b"util" | b"util-percent" => (Metric::DiskUtilPercent, 1.0),
        b"tps" => (Metric::DiskTransfersPerSecond, 1.0),
        _ => return None,
    })
}

fn interface(name: &[u8]) -> Option<(Metric, f64)> {
    Some(match name {
        b"rxkB/s" | b"rxkB" => (Metric::NetworkReceivedKibPerSecond, 1.0),
        b"txkB/s" | b"txkB" => (Metric::NetworkSentKibPerSecond, 1.0),
        b"rxbyt/s" => (Metric::NetworkReceivedKibPerSecond, BYTE),
        b"txbyt/s" => (Metric::NetworkSentKibPerSecond, BYTE),
        b"rxpck/s" | b"rxpck" => (Metric::NetworkReceivedPacketsPerSecond, 1.0),
        b"txpck/s" | b"txpck" => (Metric::NetworkSentPacketsPerSecond, 1.0),
        b"%ifutil" | b"ifutil-percent" => (Metric::NetworkUtilPercent, 1.0),
        b"rxdrop/s" | b"rxdrop" => (Metric::NetworkReceiveDropsPerSecond, 1.0),
        b"rxerr/s" | b"rxerr" => (Metric::NetworkReceiveErrorsPerSecond, 1.0),
        _ => return None,
    })
}

fn process(name: &[u8]) -> Option<Metric> {
    Some(match name {
        b"%CPU" => Metric::ProcessCpuPercent,
        b"%wait" => Metric::ProcessWaitPercent,
        b"RSS" => Metric::ProcessResidentKib,
        b"%MEM" => Metric::ProcessMemoryPercent,
        b"majflt/s" => Metric::MajorFaultsPerSecond,
        b"kB_rd/s" => Metric::ProcessReadKibPerSecond,
        b"kB_wr/s" => Metric::ProcessWriteKibPerSecond,
        b"iodelay" => Metric::ProcessIoDelayTicks,
        b"cswch/s" => Metric::ProcessVoluntarySwitchesPerSecond,
        b"nvcswch/s" => Metric::ProcessForcedSwitchesPerSecond,
        _ => return None,
    })
}

fn machine(name: &[u8]) -> Option<(Metric, f64)> {
    let metric = match name {
        b"bread/s" | b"bread" => return Some((Metric::BlocksInPerSecond, SECTOR)),
        b"bwrtn/s" | b"bwrtn" => return Some((Metric::BlocksOutPerSecond, SECTOR)),
        b"pgpgin/s" | b"pgpgin" => Metric::BlocksInPerSecond,
        b"pgpgout/s" | b"pgpgout" => Metric::BlocksOutPerSecond,
        b"runq-sz" => Metric::ProcessesRunnable,
        b"plist-sz" => Metric::ProcessesTotal,
        b"blocked" => Metric::ProcessesBlocked,
        b"ldavg-1" => Metric::LoadAverage1,
        b"ldavg-5" => Metric::LoadAverage5,
        b"ldavg-15" => Metric::LoadAverage15,
        b"cswch/s" | b"cswch" => Metric::ContextSwitchesPerSecond,
        b"pswpin/s" | b"pswpin" => Metric::SwapInPagesPerSecond,
        b"pswpout/s" | b"pswpout" => Metric::SwapOutPagesPerSecond,
        b"majflt/s" | b"majflt" => Metric::MajorFaultsPerSecond,
        b"kbmemfree" | b"memfree" => Metric::MemoryFreeKib,
        b"kbavail" | b"avail" => Metric::MemoryAvailableKib,
        b"kbmemused" | b"memused" => Metric::MemoryUsedKib,
        b"kbcached" | b"cached" => Metric::MemoryCachedKib,
        b"kbcommit" | b"commit" => Metric::MemoryCommittedKib,
        b"kbdirty" | b"dirty" => Metric::MemoryDirtyKib,
        b"kbswpused" | b"swpused" => Metric::SwapUsedKib,
        b"%scpu" => Metric::PressureCpuSomePercent,
        b"%sio" => Metric::PressureIoSomePercent,
        b"%fio" => Metric::PressureIoFullPercent,
        b"%smem" => Metric::PressureMemorySomePercent,
        b"%fmem" => Metric::PressureMemoryFullPercent,
        b"oseg/s" | b"oseg" => Metric::TcpSegmentsSentPerSecond,
        _ => return None,
    };
    Some((metric, 1.0))
}

/// A value as it may be taken: no figure of these is negative; counters that went backwards print astronomic ones, and a
/// share is at most the whole, but for what rounding adds.
pub(super) fn sane(metric: Metric, value: f64) -> Option<f64> {
    /// Above anything that a machine does in a second.
    const ABSURD: f64 = 1e12;
    /// Percent to which rounding and jitter of the interval take a whole.
    const ROUNDED: f64 = 110.0;
    let share = matches!(
        metric,
        Metric::CpuUserPercent
            | Metric::CpuNicePercent
            | Metric::CpuSystemPercent
            | Metric::CpuIowaitPercent
            | Metric::CpuStealPercent
            | Metric::CpuIdlePercent
            | Metric::CpuIrqPercent
            | Metric::CpuSoftirqPercent
            | Metric::DiskUtilPercent
            | Metric::NetworkUtilPercent
    );
    match value {
        _ if !(0.0..ABSURD).contains(&value) => None,
        _ if share && value > ROUNDED => None,
        _ if share => Some(value.min(100.0)),
        _ => Some(value),
    }
}
