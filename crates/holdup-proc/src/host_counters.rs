//! `/proc/stat`, `/proc/pressure` and `/proc/diskstats`: what the machine's figures over time are made of.
//!
//! In: the tree. Out: [`HostCounters`], in which what the kernel does not tell is missing. Three small files and a list of names: some
//! tenths of a millisecond.

use crate::root::{Root, text_if_there};
use crate::{clocks, pressure};
use holdup_evidence::observed::Metric;
use holdup_evidence::{CpuTicks, HostCounters};
use std::collections::{BTreeMap, BTreeSet};

/// Columns of the `cpu` line after its name: user nice system idle iowait irq softirq steal. What follows, guests' time, is part of
/// the first two.
const COLUMNS: usize = 8;
const IDLE: usize = 3;
const IOWAIT: usize = 4;

/// Field of "time spent doing I/Os", milliseconds, counted from 0 after the name.
const BUSY_FIELD: usize = 9;

/// Reads them.
#[must_use]
pub fn read(root: &Root) -> HostCounters {
    let stat = text_if_there(&root.proc.join("stat")).unwrap_or_default();
    let pressure = pressure::read(root);
    let stalled = [
        Metric::PressureCpuSomePercent,
        Metric::PressureMemorySomePercent,
        Metric::PressureIoSomePercent,
    ]
    .map(|wanted| {
        let found = pressure.iter().find(|(metric, _)| *metric == wanted);
        found.map(|(_, microseconds)| *microseconds)
    });
    HostCounters {
        at: clocks::monotonic(),
        cpu: stat.lines().next().and_then(cpu),
        stalled,
        disks: disks(root),
    }
}

/// The first line of `/proc/stat`.
fn cpu(line: &str) -> Option<CpuTicks> {
    let columns: Option<Vec<u64>> = line
        .strip_prefix("cpu ")?
        .split_whitespace()
        .take(COLUMNS)
        .map(|word| word.parse().ok())
        .collect();
    let columns = columns?;
    Some(CpuTicks {
        all: columns.iter().copied().fold(0, u64::saturating_add),
        idle: *columns.get(IDLE)?,
        iowait: columns.get(IOWAIT).copied().unwrap_or(0),
    })
}

/// Whole disks: below `/sys/block` there are no partitions. Where there is no `/sys`, all.
fn disks(root: &Root) -> BTreeMap<String, u64> {
    let whole = std::fs::read_dir(root.sys.join("block")).ok();
    let whole: Option<BTreeSet<String>> = whole.map(|entries| {
        let names = entries.flatten().map(|entry| entry.file_name());
        names.map(|name| name.to_string_lossy().into_owned()).collect()
    });
    let text = text_if_there(&root.proc.join("diskstats")).unwrap_or_default();
    text.lines()
        .filter_map(|line| {
            let mut fields = line.split_whitespace().skip(2);
            let name = fields.next()?;
            let busy = fields.nth(BUSY_FIELD)?.parse().ok()?;
            // `/sys` has `!` where a name has `/`.
            let of = name.replace('/', "!");
            let counts = whole.as_ref().is_none_or(|whole| whole.contains(&of));
            counts.then(|| (name.to_owned(), busy))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::root::Tree;
    use holdup_evidence::{CpuTicks, HostCounters};

    #[test]
    fn counters_of_whole_disks_and_all_cpus_are_read() {
        let tree = Tree::new(&[
            (
                "proc/stat",
                "cpu  100 5 20 800 60 1 2 3 50 0\ncpu0 100 5 20 800 60 1 2 3 50 0\n",
            ),
            (
                "proc/pressure/io",
                "some avg10=9.00 avg60=8.00 avg300=7.00 total=1234\nfull avg10=0 avg60=0 avg300=0 total=56\n",
            ),
            (
                "proc/diskstats",
                "8 0 sda 1 2 3 4 5 6 7 8 9 1000 11\n8 1 sda1 1 2 3 4 5 6 7 8 9 900 11\n7 0 loop0 short\n",
            ),
            ("sys/block/sda/size", "1\n"),
        ]);
        let reading = read(&tree.root);
        assert_eq!(
            reading,
            HostCounters {
                at: reading.at,
                cpu: Some(CpuTicks {
                    all: 991,
                    idle: 800,
                    iowait: 60
                }),
                stalled: [None, None, Some(1_234)],
                disks: [("sda".to_owned(), 1_000)].into(),
            }
        );
        let nothing = read(&Tree::new(&[("proc/stat", "cpu  1 x\n")]).root);
        assert_eq!((nothing.cpu, nothing.disks.len()), (None, 0));
    }
}
