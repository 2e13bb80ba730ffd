//! `/proc/pressure`: for how long tasks stood still for want of CPU, memory or disks since boot.
//!
//! In: the three files. Out: microseconds of each kind. Two readings tell of the time between them; the averages that the kernel
//! has beside them are of other times.

use crate::root::{Root, text_if_there};
use holdup_evidence::observed::Metric;

/// File, beginning of the line, what it is.
const LINES: [(&str, &str, Metric); 6] = [
    ("cpu", "some ", Metric::PressureCpuSomePercent),
    ("cpu", "full ", Metric::PressureCpuFullPercent),
    ("memory", "some ", Metric::PressureMemorySomePercent),
    ("memory", "full ", Metric::PressureMemoryFullPercent),
    ("io", "some ", Metric::PressureIoSomePercent),
    ("io", "full ", Metric::PressureIoFullPercent),
];

/// What each kind took so far, microseconds; those that the kernel does not tell are left out.
#[must_use]
pub fn read(root: &Root) -> Vec<(Metric, u64)> {
    let files = ["cpu", "memory", "io"].map(|name| {
        let file = root.proc.join("pressure").join(name);
        (name, text_if_there(&file).unwrap_or_default())
    });
    let holds = |(name, start, metric): (&str, &str, Metric)| {
        let (_, text) = files.iter().find(|(file, _)| *file == name)?;
        let line = text.lines().find_map(|line| line.strip_prefix(start))?;
        Some((metric, line.split_once("total=")?.1.trim().parse().ok()?))
    };
    LINES.into_iter().filter_map(holds).collect()
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::root::Tree;
    use holdup_evidence::observed::Metric;

    #[test]
    fn totals_are_taken_and_averages_are_not() {
        let tree = Tree::new(&[
            (
                "proc/pressure/io",
                "some avg10=9.00 avg60=8.00 avg300=7.00 total=1234\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=56\n",
            ),
            (
                "proc/pressure/cpu",
                "some avg10=1.00 avg60=1.00 avg300=1.00 total=7\n",
            ),
        ]);
        assert_eq!(
            read(&tree.root),
            [
                (Metric::PressureCpuSomePercent, 7),
                (Metric::PressureIoSomePercent, 1234),
                (Metric::PressureIoFullPercent, 56),
            ]
        );
        assert!(read(&Tree::new(&[]).root).is_empty());
    }
}
