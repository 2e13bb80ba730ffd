//! `/proc/interrupts`: how many of each kind every CPU has served.
//!
//! In: the text. Out: counts by CPU and by what they were about, as [`holdup_evidence::INTERRUPTS`] orders that. A line that is not
//! understood is not counted.

use crate::root::{Root, text_if_there};
use holdup_evidence::INTERRUPTS;
use std::collections::BTreeMap;

/// Kinds, by their place in [`INTERRUPTS`].
const DEVICES: usize = 0;
const TIMERS: usize = 1;
const NETWORK: usize = 2;
const DISKS: usize = 3;
const CALLS: usize = 4;

/// Interrupts of a CPU since boot, by kind.
pub type Counts = [u64; INTERRUPTS.len()];

/// All CPUs' counts; none where the file is not there.
#[must_use]
pub fn read(root: &Root) -> BTreeMap<u32, Counts> {
    text_if_there(&root.proc.join("interrupts")).map_or_else(BTreeMap::new, |text| counts(&text))
}

fn counts(text: &str) -> BTreeMap<u32, Counts> {
    let mut lines = text.lines();
    let number = |word: &str| word.strip_prefix("CPU")?.parse().ok();
    let cpus: Vec<u32> = lines
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .filter_map(number)
        .collect();
    let mut all = BTreeMap::new();
    for line in lines {
        let Some((label, rest)) = line.split_once(':') else {
            continue;
        };
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        let Some((here, about)) = words.split_at_checked(cpus.len()) else {
            continue;
        };
        let kind = kind(label.trim(), about);
        for (cpu, word) in cpus.iter().zip(here) {
            if let Ok(count) = word.parse::<u64>() {
                let of: &mut Counts = all.entry(*cpu).or_default();
                of[kind] = of[kind].saturating_add(count);
            }
        }
    }
    all
}

/// What a line is about: by its label, or by the names of the devices that share it.
fn kind(label: &str, about: &[&str]) -> usize {
    /// How the names of drivers begin that are known.
    const OF_DISKS: [&str; 8] = [
        "nvme",
        "ahci",
        "ata",
        "mpt",
        "megasas",
        "virtio-blk",
        "mmc",
        "usb-storage",
    ];
    const OF_NETWORKS: [&str; 6] = ["eth", "en", "wl", "mlx", "ib", "ena"];
    match label {
        "LOC" => return TIMERS,
        "RES" | "CAL" | "TLB" => return CALLS,
        _ => {}
    }
    let named = |names: &[&str]| {
        about
            .iter()
            .any(|word| names.iter().any(|name| word.starts_with(name)))
    };
    match (named(&OF_DISKS), named(&OF_NETWORKS)) {
        (true, false) => DISKS,
        (false, true) => NETWORK,
        _ => DEVICES,
    }
}

#[cfg(test)]
mod tests {
    use super::counts;

    const TEXT: &str = "           CPU0       CPU2\n 24:  1  2  IO-APIC   5-edge      ACPI:Ged\n \
                        30:  10  20  PCI-MSI 1-edge nvme0q1\n 31:  100  200  PCI-MSI 1-edge eth0-rx-0\n\
                        LOC:  1000  2000  Local timer interrupts\nRES: 5 6 Rescheduling interrupts\nERR:  3\nbad\n\
                        CAL:  x  7 Function call interrupts\n";

    #[test]
    fn each_cpu_has_its_counts_by_kind() {
        let all = counts(TEXT);
        assert_eq!(all[&0], [1, 1000, 100, 10, 5, 0]);
        assert_eq!(all[&2], [2, 2000, 200, 20, 13, 0]);
        assert_eq!(all.len(), 2);
        assert!(counts("").is_empty());
    }
}
