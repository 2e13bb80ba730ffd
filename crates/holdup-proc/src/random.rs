//! `/proc/sys/kernel/random`, `/sys/class/misc/hw_random` and the kernel command line: the random generator.
//!
//! Features are read and versions are not, because stable kernels carry the generators of later ones.

use crate::root::{Problem, Root, number, text, word};
use crate::{cpuinfo, kernel_log};
use holdup_evidence::facts::RandomFacts;

/// What is in `rng_current` when no source is attached.
const NO_SOURCE: &str = "none";

/// The generator and what feeds it.
pub fn read(root: &Root, problems: &mut Vec<Problem>) -> RandomFacts {
    let directory = root.proc.join("sys/kernel/random");
    let hardware = root.sys.join("class/misc/hw_random");
    let flags = cpuinfo::flags(root, problems);
    let mut hardware_source = word(&hardware.join("rng_current"), problems);
    // Without the directory the kernel's hardware source layer isn't loaded, so nothing is attached; but
    // only where sysfs is there at all.
    if hardware_source.is_none() && root.sys.join("class/misc").exists() && !hardware.exists() {
        hardware_source = Some(NO_SOURCE.to_owned());
    }
    RandomFacts {
        seeded: kernel_log::seeded(root, problems),
        pool_size: number(&directory.join("poolsize"), problems),
        entropy_available: number(&directory.join("entropy_avail"), problems),
        blocking_pool: directory
            .join("poolsize")
            .exists()
            .then(|| directory.join("read_wakeup_threshold").exists()),
        hardware_source,
        hardware_available: word(&hardware.join("rng_available"), problems),
        cpu_instruction: flags.random_instruction,
        trust_cpu: text(&root.proc.join("cmdline"), problems)
            .and_then(|line| switch(&line, "random.trust_cpu=")),
        virtual_machine: flags.hypervisor,
    }
}

/// A switch on the kernel's command line, such as `random.trust_cpu=`. The last one wins, as in the kernel, and the words for
/// yes and no are the kernel's.
pub(crate) fn switch(command_line: &str, name: &str) -> Option<bool> {
    let value = command_line
        .split_whitespace()
        .filter_map(|word| word.strip_prefix(name))
        .next_back()?;
    match value.to_ascii_lowercase().as_str() {
        "on" => Some(true),
        "off" => Some(false),
        value if value.starts_with(['y', 't', '1']) => Some(true),
        value if value.starts_with(['n', 'f', '0']) => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{read, switch};
    use crate::root::Tree;
    use holdup_evidence::facts::RandomFacts;

    #[test]
    fn an_unseeded_guest() {
        let tree = Tree::new(&[
            ("proc/sys/kernel/random/poolsize", "256\n"),
            ("proc/sys/kernel/random/entropy_avail", "10\n"),
            ("proc/cmdline", "console=ttyS0 random.trust_cpu=off\n"),
            ("proc/cpuinfo", "flags : fpu hypervisor\n"),
            ("sys/class/misc/hw_random/rng_current", "none\n"),
            ("sys/class/misc/hw_random/rng_available", "\n"),
            ("dev/kmsg", "5,80,2810000,-;random: crng init done\n"),
        ]);
        let mut problems = Vec::new();
        assert_eq!(
            read(&tree.root, &mut problems),
            RandomFacts {
                seeded: Some((2_810_000_000, "random: crng init done".to_owned())),
                pool_size: Some(256),
                entropy_available: Some(10),
                blocking_pool: Some(false),
                hardware_source: Some("none".to_owned()),
                hardware_available: Some(String::new()),
                cpu_instruction: Some(false),
                trust_cpu: Some(false),
                virtual_machine: Some(true),
            }
        );
        assert_eq!(problems, []);
    }

    #[test]
    fn an_old_pool_blocks() {
        let tree = Tree::new(&[
            ("proc/sys/kernel/random/poolsize", "4096\n"),
            ("proc/sys/kernel/random/read_wakeup_threshold", "64\n"),
        ]);
        assert_eq!(read(&tree.root, &mut Vec::new()).blocking_pool, Some(true));
    }

    #[test]
    fn no_source_layer_is_no_source_but_no_sysfs_is_not_measured() {
        let without = Tree::new(&[("sys/class/misc/fuse/dev", "10:229\n")]);
        assert_eq!(
            read(&without.root, &mut Vec::new()).hardware_source.as_deref(),
            Some("none")
        );
        assert_eq!(
            read(&Tree::new(&[]).root, &mut Vec::new()),
            RandomFacts::default()
        );
    }

    #[test]
    fn the_last_word_on_trust_counts() {
        let trust_cpu = |line| switch(line, "random.trust_cpu=");
        assert_eq!(trust_cpu("random.trust_cpu=on random.trust_cpu=0"), Some(false));
        assert_eq!(trust_cpu("random.trust_cpu=Y"), Some(true));
        assert_eq!(trust_cpu("quiet xrandom.trust_cpu=on"), None);
    }
}
