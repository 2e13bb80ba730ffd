//! Where this machine's randomness comes from: the CPU, the hardware source and its thread, the boot loader, the saved seed,
//! the daemons that feed it.
//!
//! In: files below a [`Root`], and what [`try_generator`] was answered. Out: [`Randomness`]. Of processes only `comm` is read.
//! Features are read and versions are not, because stable kernels carry the generators of later ones.

use crate::root::{Problem, Root, number, text, text_if_there};
use crate::{cpuinfo, kernel_log, names, random};
use holdup_evidence::randomness::{FeedingDaemon, Randomness, SavedSeed};

/// Daemons that feed the generator, by what the kernel keeps of their names: 15 bytes.
const DAEMONS: [&str; 6] = [
    "haveged",
    "rngd",
    "jitterentropy-r",
    "timer_entropyd",
    "audio-entropyd",
    "egd.pl",
];

/// The kernel's thread that feeds the generator from the hardware source.
const THREAD: &str = "hwrng";

/// Where seeds are saved: systemd; Debian's older scripts; Red Hat's.
const SEEDS: [&str; 3] = [
    "lib/systemd/random-seed",
    "lib/urandom/random-seed",
    "lib/random-seed",
];

/// The kind of a seed (`SETUP_RNG_SEED`), in the list of data that loaders of x86 hand over, as sysfs writes it.
const SEED_DATA: &str = "0x9";

/// Where an administrator has the service that loads systemd's seed told otherwise.
const DROP_INS: &str = "systemd/system/systemd-random-seed.service.d";

/// What it is reported there; since version 243.
const CREDIT: &str = "SYSTEMD_RANDOM_SEED_CREDIT=";

/// Processes that are looked at: the number space of a large machine.
const PROCESSES: usize = 100_000;

/// What the generator itself answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answers {
    /// `getrandom` gave a byte without waiting.
    pub ready: Option<bool>,
    /// It knows `GRND_INSECURE`.
    pub insecure_flag: Option<bool>,
}

/// Asks the generator for a byte in two ways, neither of which waits.
#[must_use]
pub fn try_generator() -> Answers {
    // Since Linux 5.6; not in every version of the C library's header.
    const GRND_INSECURE: libc::c_uint = 0x4;
    let ask = |flags: libc::c_uint| {
        let mut byte = [0_u8; 1];
        // SAFETY: the buffer is as long as the call is reported, and it is ours.
        let got = unsafe { libc::syscall(libc::SYS_getrandom, byte.as_mut_ptr(), byte.len(), flags) };
        match got {
            1 => Ok(()),
            _ => Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)),
        }
    };
    Answers {
        ready: match ask(libc::GRND_NONBLOCK) {
            Ok(()) => Some(true),
            Err(libc::EAGAIN) => Some(false),
            Err(_) => None,
        },
        insecure_flag: match ask(GRND_INSECURE) {
            Ok(()) => Some(true),
            Err(libc::EINVAL) => Some(false),
            Err(_) => None,
        },
    }
}

/// Reads all of it.
pub fn read(root: &Root, answers: Answers, problems: &mut Vec<Problem>) -> Randomness {
    let hardware = root.sys.join("class/misc/hw_random");
    let (daemons, feeding_thread) = processes(root);
    let command_line = text(&root.proc.join("cmdline"), problems);
    Randomness {
        generator: random::read(root, problems),
        instructions: cpuinfo::random_instructions(root, problems),
        quality: number(&hardware.join("rng_quality"), problems),
        feeding_thread,
        loader_seed: loader_seed(root),
        trust_loader: command_line.and_then(|line| random::switch(&line, "random.trust_bootloader=")),
        saved_seed: saved_seed(root),
        daemons,
        ready: answers.ready,
        insecure_flag: answers.insecure_flag,
        readers: Vec::new(),
    }
}

/// The daemons, and whether the kernel's thread is there; `None` where no process can be seen.
fn processes(root: &Root) -> (Vec<FeedingDaemon>, Option<bool>) {
    let Ok(entries) = std::fs::read_dir(&root.proc) else {
        return (Vec::new(), None);
    };
    let mut daemons = Vec::new();
    let (mut thread, mut seen) = (false, false);
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    for pid in pids.take(PROCESSES) {
        let Some(name) = names::comm(root, pid) else {
            continue;
        };
        seen = true;
        thread |= name == THREAD;
        if DAEMONS.contains(&name.as_str()) {
            daemons.push(FeedingDaemon { name, pid });
        }
    }
    daemons.sort_by_key(|daemon| daemon.pid);
    (daemons, seen.then_some(thread))
}

/// Whether the boot loader left a seed: firmware lists its table in the kernel's log, a loader of x86 hands over a list of
/// data, a device tree has had a property.
fn loader_seed(root: &Root) -> Option<(bool, String)> {
    let handed_over = handed_over(root);
    if handed_over == Some(true) {
        return Some((
            true,
            "one is in the list of data that the loader handed over".to_owned(),
        ));
    }
    if let Ok(log) = kernel_log::text(root) {
        let table = log.lines().find(|line| {
            let text = line.split_once(';').map(|(_, text)| text);
            text.is_some_and(|text| text.starts_with("efi: ") && text.contains(" RNG="))
        });
        if table.is_some() {
            return Some((
                true,
                "the firmware's table of a seed is in the kernel's log".to_owned(),
            ));
        }
        // A log that goes back to the beginning would have it.
        let from_the_start = log.lines().any(|line| line.contains(";Linux version "));
        let with_firmware = root.sys.join("firmware/efi").exists();
        if from_the_start && with_firmware {
            return Some((
                false,
                "the kernel's log lists no such table of the firmware's".to_owned(),
            ));
        }
    }
    if handed_over == Some(false) && !root.sys.join("firmware/efi").exists() {
        let why = "there is none in the list of data that the loader handed over";
        return Some((false, why.to_owned()));
    }
    let chosen = root.proc.join("device-tree/chosen");
    chosen
        .exists()
        .then(|| (chosen.join("rng-seed").exists(), "the device tree".to_owned()))
}

/// Whether a seed is in the list of data of x86's boot protocol; `None` where there is no such list.
fn handed_over(root: &Root) -> Option<bool> {
    let parameters = root.sys.join("kernel/boot_params");
    if !parameters.exists() {
        return None;
    }
    // Without data there is no folder for them.
    let Ok(entries) = std::fs::read_dir(parameters.join("setup_data")) else {
        return Some(false);
    };
    let kinds = entries.flatten().map(|entry| entry.path().join("type"));
    let kinds: Vec<Option<String>> = kinds.map(|path| text_if_there(&path)).collect();
    if kinds.iter().flatten().any(|kind| kind.trim() == SEED_DATA) {
        return Some(true);
    }
    // A kind that can't be read may be one.
    kinds.iter().all(Option::is_some).then_some(false)
}

/// The first seed there is, and whether it counts.
fn saved_seed(root: &Root) -> Option<SavedSeed> {
    let path = SEEDS
        .iter()
        .map(|seed| root.var.join(seed))
        .find(|path| path.exists())?;
    let systemd = path.ends_with("systemd/random-seed");
    Some(SavedSeed {
        // The others are written to /dev/urandom, which never counts.
        credited: Some(systemd && is_credited(root)),
        path: path.to_string_lossy().into_owned(),
    })
}

/// Whether the service is told to have it counted: not, unless somebody says so.
fn is_credited(root: &Root) -> bool {
    let Ok(entries) = std::fs::read_dir(root.etc.join(DROP_INS)) else {
        return false;
    };
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    // The last one wins, as in systemd.
    files.sort();
    let mut values = files.iter().filter_map(|file| {
        let text = text_if_there(file)?;
        let value = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        value
            .filter_map(|line| line.split_once(CREDIT).map(|(_, value)| value))
            .next_back()
            .map(|value| {
                value
                    .trim_matches(|c: char| c == '"' || c.is_whitespace())
                    .to_ascii_lowercase()
            })
    });
    let value = values.next_back().unwrap_or_default();
    matches!(value.as_str(), "1" | "yes" | "true" | "on" | "force")
}

#[cfg(test)]
mod tests {
    use super::{Answers, read, try_generator};
    use crate::root::Tree;
    use holdup_evidence::randomness::{FeedingDaemon, SavedSeed};

    fn of(files: &[(&str, &str)]) -> holdup_evidence::randomness::Randomness {
        let tree = Tree::new(files);
        let mut problems = Vec::new();
        let mut randomness = read(&tree.root, Answers::default(), &mut problems);
        assert_eq!(problems, []);
        // The tree is in a folder of its own.
        if let Some(seed) = &mut randomness.saved_seed {
            let at = seed.path.find("/var/").unwrap();
            seed.path.drain(..at);
        }
        randomness
    }

    #[test]
    fn a_guest_with_a_device_and_a_daemon() {
        let randomness = of(&[
            ("proc/cpuinfo", "flags : fpu rdrand rdseed hypervisor\n"),
            ("proc/cmdline", "quiet random.trust_bootloader=off\n"),
            ("proc/70/comm", "hwrng\n"),
            ("proc/812/comm", "haveged\n"),
            ("proc/90/comm", "rngd-not\n"),
            ("sys/class/misc/hw_random/rng_quality", "1024\n"),
            ("var/lib/systemd/random-seed", "x"),
        ]);
        let names = ["RDRAND", "RDSEED"].map(str::to_owned).to_vec();
        assert_eq!(randomness.instructions, Some(names));
        assert_eq!(randomness.quality, Some(1024));
        assert_eq!(randomness.feeding_thread, Some(true));
        assert_eq!(randomness.trust_loader, Some(false));
        let daemon = FeedingDaemon {
            name: "haveged".to_owned(),
            pid: 812,
        };
        assert_eq!(randomness.daemons, [daemon]);
        let seed = SavedSeed {
            path: "/var/lib/systemd/random-seed".to_owned(),
            credited: Some(false),
        };
        assert_eq!(randomness.saved_seed, Some(seed));
        assert_eq!(randomness.loader_seed, None);
    }

    #[test]
    fn a_saved_seed_counts_only_where_somebody_said_so() {
        let credited = |drop_ins: &[(&str, &str)]| {
            let mut files = vec![("var/lib/systemd/random-seed", "x")];
            files.extend(drop_ins);
            of(&files).saved_seed.unwrap().credited
        };
        const A: &str = "etc/systemd/system/systemd-random-seed.service.d/a.conf";
        const B: &str = "etc/systemd/system/systemd-random-seed.service.d/b.conf";
        let force = "[Service]\nEnvironment=\"SYSTEMD_RANDOM_SEED_CREDIT=force\"\n";
        assert_eq!(credited(&[(A, force)]), Some(true));
        assert_eq!(credited(&[(A, &force.replace("Env", "#Env"))]), Some(false));
        let no = "[Service]\nEnvironment=SYSTEMD_RANDOM_SEED_CREDIT=no\n";
        assert_eq!(credited(&[(A, force), (B, no)]), Some(false));
        let old = of(&[("var/lib/urandom/random-seed", "x"), (A, force)]);
        assert_eq!(old.saved_seed.unwrap().credited, Some(false));
    }

    #[test]
    fn a_seed_of_the_firmware_is_in_the_log() {
        let log = "6,1,0,-;Linux version 6.1\n6,9,0,-;efi: ACPI=0x1 SMBIOS=0x2 RNG=0x3 \n";
        let (seed, _) = of(&[("dev/kmsg", log)]).loader_seed.unwrap();
        assert!(seed);
        let without = log.replace("RNG=", "INITRD=");
        let firmware = ("sys/firmware/efi/x", "");
        let (seed, _) = of(&[("dev/kmsg", &without), firmware]).loader_seed.unwrap();
        assert!(!seed);
        // A log that has lost its beginning says nothing.
        let cut = without.replace("Linux version", "x");
        assert_eq!(of(&[("dev/kmsg", &cut), firmware]).loader_seed, None);
    }

    #[test]
    fn a_seed_of_a_loader_without_firmware_is_in_its_list() {
        const VERSION: (&str, &str) = ("sys/kernel/boot_params/version", "0x020f\n");
        const OTHER: (&str, &str) = ("sys/kernel/boot_params/setup_data/0/type", "0x2\n");
        const SEED: (&str, &str) = ("sys/kernel/boot_params/setup_data/1/type", "0x9\n");
        let there = |files: &[(&str, &str)]| of(files).loader_seed.map(|(there, _)| there);
        assert_eq!(there(&[VERSION, OTHER, SEED]), Some(true));
        assert_eq!(there(&[VERSION, OTHER]), Some(false));
        assert_eq!(there(&[VERSION]), Some(false));
        // Firmware may have one all the same, and a kind that can't be read may be one.
        assert_eq!(there(&[VERSION, ("sys/firmware/efi/x", "")]), None);
        assert_eq!(
            there(&[VERSION, ("sys/kernel/boot_params/setup_data/0/data", "")]),
            None
        );
    }

    #[test]
    fn nothing_is_told_where_nothing_is() {
        assert_eq!(of(&[]), holdup_evidence::randomness::Randomness::default());
    }

    #[test]
    fn the_generator_answers_without_waiting() {
        // A machine that runs tests is seeded, unless a filter refuses the call.
        assert_ne!(try_generator().ready, Some(false));
    }
}
