//! By what a generator was seeded: the kernel's log hardly ever says so, but when it was and what is there leave few.
//!
//! In: [`Randomness`] and the instant of the seeding. Out: words. A source that is there, and that the kernel was reported not to
//! count, has seeded nothing; one of which it is not known whether it is there stays in the list.

use holdup_evidence::Ns;
use holdup_evidence::randomness::Randomness;

/// Before so many nanoseconds after boot a kernel has no drivers, however fast the machine: they come with its last initcalls.
const BEFORE_DRIVERS: Ns = 30_000_000;

/// Before so many there was no time to get enough out of the timing of events: 256 bits are wanted, a tick of the fastest
/// clock, 1,000 a second, gives one at most, and interrupts one for each 64 of them.
const BEFORE_TIMING: Ns = 250_000_000;

/// What a line says that names the CPU: kernels before 5.19 without back-ported changes.
const BY_CPU: &str = "trusting CPU";

/// Something that can seed a generator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum By {
    /// The CPU's instructions for it, in words.
    Cpu(String),
    /// A seed that the boot loader left.
    Loader,
    /// A hardware source, a file or a daemon.
    Named(String),
    /// The jitter of interrupts and of the CPU's own speed.
    Timing,
}

impl By {
    fn words(&self) -> String {
        match self {
            By::Cpu(names) => format!("the CPU's {names}"),
            By::Loader => "a seed of the boot loader's".to_owned(),
            By::Named(name) => name.clone(),
            By::Timing => "the timing of interrupts and of the CPU".to_owned(),
        }
    }
}

/// Behind the time and the line: by what; empty where nothing is left to say.
pub(super) fn words(randomness: &Randomness, at: Ns, line: &str) -> String {
    if line.contains(BY_CPU) {
        return ": by the CPU's instruction, as that says".to_owned();
    }
    let left = left(randomness, at);
    let words: Vec<String> = left.iter().map(By::words).collect();
    match left.as_slice() {
        [] => String::new(),
        [By::Timing] => format!(": by {}, since no source that counts is there", words[0]),
        [one] => format!(": by {}, since nothing else was there so early", one.words()),
        [..] => format!(
            ": by {}; which of them does not stand in the log",
            words.join(" or ")
        ),
    }
}

/// Whether it can only have been the CPU.
pub(super) fn is_cpu(randomness: &Randomness) -> bool {
    let seeded = randomness.generator.seeded.as_ref();
    seeded.is_some_and(|(at, line)| {
        line.contains(BY_CPU) || matches!(left(randomness, *at).as_slice(), [By::Cpu(_)])
    })
}

/// All that can have done it by then.
fn left(randomness: &Randomness, at: Ns) -> Vec<By> {
    let mut left = of_boot(randomness);
    if at >= BEFORE_DRIVERS {
        left.extend(later(randomness).map(By::Named));
    }
    if at >= BEFORE_TIMING {
        left.push(By::Timing);
    }
    left
}

/// What counts before there are drivers.
fn of_boot(randomness: &Randomness) -> Vec<By> {
    let names = randomness.instructions.as_deref().unwrap_or_default();
    let cpu = !names.is_empty() && randomness.generator.trust_cpu != Some(false);
    let loader = randomness.loader_seed.as_ref().is_none_or(|(there, _)| *there)
        && randomness.trust_loader != Some(false);
    let cpu = cpu.then(|| By::Cpu(names.join(" and ")));
    cpu.into_iter().chain(loader.then_some(By::Loader)).collect()
}

/// What counts once drivers and services are there.
fn later(randomness: &Randomness) -> impl Iterator<Item = String> {
    let generator = &randomness.generator;
    let hardware = generator.hardware_source.as_deref();
    let hardware = hardware.filter(|name| !matches!(*name, "" | "none") && randomness.quality != Some(0));
    let seed = randomness.saved_seed.as_ref();
    let seed = seed.filter(|seed| seed.credited != Some(false));
    hardware
        .map(str::to_owned)
        .into_iter()
        .chain(seed.map(|seed| format!("the saved seed {}", seed.path)))
        .chain(randomness.daemons.iter().map(|daemon| daemon.name.clone()))
}

#[cfg(test)]
mod tests {
    use super::{is_cpu, words};
    use holdup_evidence::facts::RandomFacts;
    use holdup_evidence::randomness::Randomness;

    const LINE: &str = "crng init done";

    /// Nothing is trusted, and nothing is there.
    fn without() -> Randomness {
        Randomness {
            generator: RandomFacts {
                hardware_source: Some("none".to_owned()),
                trust_cpu: Some(false),
                ..RandomFacts::default()
            },
            instructions: Some(Vec::new()),
            trust_loader: Some(false),
            ..Randomness::default()
        }
    }

    #[test]
    fn without_sources_it_was_the_timing_of_events() {
        assert!(words(&without(), 2_800_000_000, LINE).starts_with(": by the timing"));
        // So early it can't have been, whatever it was.
        assert_eq!(words(&without(), 0, LINE), "");
    }

    #[test]
    fn so_early_there_is_only_what_the_kernel_was_started_with() {
        let mut cpu = without();
        cpu.instructions = Some(vec!["RDRAND".to_owned()]);
        assert_eq!(words(&cpu, 0, LINE), "", "it is not trusted");
        cpu.generator.trust_cpu = None;
        assert_eq!(
            words(&cpu, 0, LINE),
            ": by the CPU's RDRAND, since nothing else was there so early"
        );
        // Drivers are there by then, and nothing that they drive.
        assert!(words(&cpu, 36_000_000, LINE).contains("by the CPU's RDRAND, since"));
        cpu.generator.seeded = Some((36_000_000, LINE.to_owned()));
        assert!(is_cpu(&cpu));
        cpu.trust_loader = None;
        assert!(!is_cpu(&cpu));
        assert!(words(&cpu, 0, LINE).contains("the CPU's RDRAND or a seed of the boot loader's"));
        cpu.loader_seed = Some((false, "the log".to_owned()));
        assert!(!words(&cpu, 0, LINE).contains("loader"));
    }

    #[test]
    fn later_it_may_have_been_any_that_counts() {
        let mut device = without();
        device.generator.hardware_source = Some("virtio_rng.0".to_owned());
        device.quality = Some(1_000);
        assert_eq!(
            words(&device, 900_000_000, LINE),
            ": by virtio_rng.0 or the timing of interrupts and of the CPU; which of them does not stand in the log"
        );
        device.quality = Some(0);
        assert!(words(&device, 900_000_000, LINE).starts_with(": by the timing"));
    }

    #[test]
    fn old_kernels_say_that_it_was_the_cpu() {
        let line = "crng done (trusting CPU's manufacturer)";
        assert_eq!(
            words(&without(), 0, line),
            ": by the CPU's instruction, as that says"
        );
    }
}
