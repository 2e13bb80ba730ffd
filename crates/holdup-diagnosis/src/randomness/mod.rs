//! What a machine's sources of randomness mean: whether anybody can ever wait for it, and what does not help.
//!
//! In: [`Randomness`], as it was read. Out: [`Aspect`]s in the order in which they are reported: the generator, its sources, who
//! feeds it, who reads. Nothing here goes by a version: generators were back-ported to kernels that are ten years older.

pub mod blocks;
mod origin;

use crate::rules::{duration, say};
use holdup_evidence::Ns;
use holdup_evidence::randomness::Randomness;
use holdup_model::randomness::{Aspect, State};

/// `poolsize` of the generator that counts up to 256 bits once and stays there.
const NEW_POOL: u32 = 256;

/// Nanoseconds after boot from which the seeding was late: most machines are seeded before their first service starts.
const LATE: Ns = 30_000_000_000;

/// Whether a reader can be made to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocking {
    /// `/dev/random` has a pool that readers empty: at any time.
    AnyTime,
    /// Only until the generator is seeded, once after each boot.
    UntilSeeded,
    /// Nothing tells.
    Unknown,
}

/// Whether a reader of `/dev/random` can be made to wait, by what this kernel offers.
#[must_use]
pub fn blocking(randomness: &Randomness) -> Blocking {
    match (randomness.generator.blocking_pool, randomness.insecure_flag) {
        (Some(true), _) => Blocking::AnyTime,
        // One and the same series of changes took the pool away and brought the flag.
        (Some(false), _) | (None, Some(true)) => Blocking::UntilSeeded,
        // A filter may refuse what it does not know.
        (None, Some(false) | None) => Blocking::Unknown,
    }
}

/// All that can be said.
#[must_use]
pub fn aspects(randomness: &Randomness) -> Vec<Aspect> {
    let mut all = vec![waits(randomness), seeded(randomness)];
    all.extend(pool(randomness));
    all.push(cpu(randomness));
    all.push(hardware(randomness));
    all.extend(loader(randomness));
    all.extend(saved_seed(randomness));
    all.extend(daemons(randomness));
    all.extend(egd(randomness));
    all.extend(readers(randomness));
    all
}

fn aspect(about: &str, state: State, text: impl Into<String>) -> Aspect {
    Aspect {
        about: about.to_owned(),
        state,
        text: text.into(),
    }
}

fn waits(randomness: &Randomness) -> Aspect {
    const ABOUT: &str = "can be waited for";
    match (blocking(randomness), randomness.ready) {
        (Blocking::AnyTime, _) => aspect(
            ABOUT,
            State::Poor,
            "yes: this kernel has a blocking pool (read_wakeup_threshold), which readers of /dev/random empty and then wait \
             for; readers of /dev/urandom and getrandom never wait once it is seeded",
        ),
        (Blocking::UntilSeeded, Some(true)) => aspect(
            ABOUT,
            State::Good,
            "no, not in this boot: this kernel has no blocking pool, and its generator is seeded; neither \
             /dev/random nor getrandom blocks any more",
        ),
        (Blocking::UntilSeeded, Some(false)) => aspect(
            ABOUT,
            State::Poor,
            "yes, now: the generator is not seeded yet, and getrandom and /dev/random block until it is",
        ),
        (Blocking::UntilSeeded, None) => aspect(
            ABOUT,
            State::Plain,
            "only until the generator is seeded: this kernel has no blocking pool",
        ),
        (Blocking::Unknown, Some(false)) => {
            aspect(ABOUT, State::Poor, "yes, now: the generator is not seeded yet")
        }
        (Blocking::Unknown, _) => aspect(
            ABOUT,
            State::Unknown,
            "not known: no /proc/sys/kernel/random, and getrandom is filtered or old",
        ),
    }
}

fn seeded(randomness: &Randomness) -> Aspect {
    const ABOUT: &str = "seeded";
    match (&randomness.generator.seeded, randomness.ready) {
        (Some((at, line)), _) => {
            let line = line
                .rsplit_once("random: ")
                .map_or(line.as_str(), |(_, message)| message);
            let state = if *at >= LATE { State::Poor } else { State::Good };
            let by = origin::words(randomness, *at, line);
            aspect(
                ABOUT,
                state,
                format!("{} after boot (\"{line}\"){by}", duration(*at)),
            )
        }
        (None, Some(true)) => aspect(
            ABOUT,
            State::Plain,
            "yes; when does not stand in the kernel's log, which can't be read or no longer goes back so far",
        ),
        (None, Some(false)) => aspect(ABOUT, State::Poor, "not yet"),
        (None, None) => aspect(ABOUT, State::Unknown, "not known"),
    }
}

fn pool(randomness: &Randomness) -> Option<Aspect> {
    const ABOUT: &str = "pool";
    let size = randomness.generator.pool_size?;
    let available = randomness.generator.entropy_available;
    let of = available.map_or(format!("{size} bits"), |available| {
        format!("{available} of {size} bits")
    });
    Some(match (size, available) {
        (NEW_POOL, Some(NEW_POOL)) => aspect(
            ABOUT,
            State::Good,
            format!(
                "{of}: full. This generator counts to 256 once and stays there; readers take nothing from it, and 256 is not low"
            ),
        ),
        (NEW_POOL, Some(_)) => aspect(
            ABOUT,
            State::Poor,
            format!("{of}: this generator is seeded at 256, and readers take nothing from it"),
        ),
        (NEW_POOL, None) => aspect(
            ABOUT,
            State::Plain,
            format!("{of}, which readers take nothing from"),
        ),
        _ if blocking(randomness) == Blocking::AnyTime => aspect(
            ABOUT,
            State::Plain,
            format!(
                "{of}: readers of /dev/random take from it, and wait when it is empty; it says nothing of /dev/urandom"
            ),
        ),
        _ => aspect(
            ABOUT,
            State::Plain,
            format!("{of}: an estimate that no reader waits for on this kernel, however low it is"),
        ),
    })
}

fn cpu(randomness: &Randomness) -> Aspect {
    const ABOUT: &str = "CPU";
    let trust = randomness.generator.trust_cpu;
    let Some(names) = &randomness.instructions else {
        return aspect(ABOUT, State::Unknown, "its flags are not known");
    };
    match (names.as_slice(), trust) {
        ([], _) if randomness.generator.virtual_machine == Some(true) => aspect(
            ABOUT,
            State::Plain,
            "offers no instruction for it; on the host -cpu host, or a model with RDRAND, would",
        ),
        ([], _) => aspect(ABOUT, State::Plain, "offers no instruction for it"),
        (names, Some(false)) => aspect(
            ABOUT,
            State::Poor,
            format!(
                "offers {}, and random.trust_cpu=off has the kernel not count it",
                names.join(" and ")
            ),
        ),
        (names, Some(true)) => aspect(
            ABOUT,
            State::Good,
            format!(
                "offers {}, and random.trust_cpu=on has the kernel count it",
                names.join(" and ")
            ),
        ),
        (names, None) => {
            let text = match origin::is_cpu(randomness) {
                true => "and that is what the kernel was seeded by",
                false => {
                    "which the kernel mixes in; whether it counts is the kernel's default (random.trust_cpu is not given)"
                }
            };
            aspect(
                ABOUT,
                State::Good,
                format!("offers {}, {text}", names.join(" and ")),
            )
        }
    }
}

fn hardware(randomness: &Randomness) -> Aspect {
    const ABOUT: &str = "hardware source";
    let generator = &randomness.generator;
    let others = generator.hardware_available.as_deref().unwrap_or_default();
    let others: Vec<&str> = others.split_whitespace().filter(|name| *name != "none").collect();
    match (
        generator.hardware_source.as_deref(),
        randomness.quality,
        randomness.feeding_thread,
    ) {
        (None, ..) => aspect(ABOUT, State::Unknown, "not known: no /sys/class/misc"),
        (Some("none" | ""), ..) if !others.is_empty() => aspect(
            ABOUT,
            State::Poor,
            format!(
                "none is in use, although there is {}: write its name to /sys/class/misc/hw_random/rng_current",
                others.join(", ")
            ),
        ),
        (Some("none" | ""), ..) if generator.virtual_machine == Some(true) => aspect(
            ABOUT,
            State::Plain,
            "none; a guest gets one by -device virtio-rng-pci",
        ),
        (Some("none" | ""), ..) => aspect(ABOUT, State::Plain, "none"),
        (Some(source), Some(0), _) => aspect(
            ABOUT,
            State::Plain,
            format!(
                "{source}, whose quality is set to 0: the kernel takes bytes from it and counts none of them"
            ),
        ),
        (Some(source), Some(quality), Some(false)) => aspect(
            ABOUT,
            State::Plain,
            format!(
                "{source}, quality {quality} of 1024; the kernel's thread that would feed from it (hwrng) does not run, so only daemons can"
            ),
        ),
        (Some(source), Some(quality), Some(true)) => aspect(
            ABOUT,
            State::Good,
            format!(
                "{source}, quality {quality} of 1024: the kernel's own thread (hwrng) feeds from it, and counts so much of it"
            ),
        ),
        (Some(source), Some(quality), None) => {
            aspect(ABOUT, State::Good, format!("{source}, quality {quality} of 1024"))
        }
        // Before it was reported, the thread was started only for a source that counts.
        (Some(source), None, Some(true)) => aspect(
            ABOUT,
            State::Good,
            format!(
                "{source}: the kernel thread hwrng feeds from it; this kernel does not show how much of it \
                 counts"
            ),
        ),
        (Some(source), None, _) => aspect(ABOUT, State::Plain, format!("{source}; its quality is not known")),
    }
}

fn loader(randomness: &Randomness) -> Option<Aspect> {
    const ABOUT: &str = "boot loader's seed";
    let (there, how) = randomness.loader_seed.as_ref()?;
    Some(match (there, randomness.trust_loader) {
        (false, _) => aspect(ABOUT, State::Plain, format!("none: {how}")),
        (true, Some(false)) => aspect(
            ABOUT,
            State::Plain,
            format!("given ({how}), and random.trust_bootloader=off has the kernel not count it"),
        ),
        (true, _) => aspect(ABOUT, State::Good, format!("given ({how})")),
    })
}

fn saved_seed(randomness: &Randomness) -> Option<Aspect> {
    const ABOUT: &str = "saved seed";
    let seed = randomness.saved_seed.as_ref()?;
    Some(match seed.credited {
        Some(true) => aspect(
            ABOUT,
            State::Good,
            format!("{}, counted (SYSTEMD_RANDOM_SEED_CREDIT)", seed.path),
        ),
        Some(false) => aspect(
            ABOUT,
            State::Plain,
            format!("{}, mixed in and not counted: it ends no wait", seed.path),
        ),
        None => aspect(ABOUT, State::Plain, seed.path.clone()),
    })
}

fn daemons(randomness: &Randomness) -> Option<Aspect> {
    const ABOUT: &str = "daemons";
    let daemons = &randomness.daemons;
    if daemons.is_empty() {
        return None;
    }
    let names: Vec<String> = daemons
        .iter()
        .map(|daemon| format!("{} ({})", daemon.name, daemon.pid))
        .collect();
    let (runs, feeds) = match names.len() {
        1 => ("runs", "it"),
        _ => ("run", "they"),
    };
    let names = names.join(", ");
    Some(match (blocking(randomness), randomness.ready) {
        (Blocking::AnyTime, _) => aspect(
            ABOUT,
            State::Good,
            format!(
                "{names} {runs}: {feeds} may fill the pool that readers of /dev/random empty. Not if the source is /dev/urandom: \
                 that counts the same bytes again"
            ),
        ),
        (Blocking::UntilSeeded, Some(true)) => aspect(
            ABOUT,
            State::Pointless,
            format!(
                "{names} {runs}, but no reader waits for what {feeds} add: on this kernel nothing waits \
                 after the seeding, and before it the daemon starts too late"
            ),
        ),
        _ => aspect(ABOUT, State::Plain, format!("{names} {runs}")),
    })
}

/// The switch for Java that everybody knows.
fn egd(randomness: &Randomness) -> Option<Aspect> {
    let pointless = blocking(randomness) == Blocking::UntilSeeded && randomness.ready == Some(true);
    pointless.then(|| {
        aspect(
            "old remedies",
            State::Pointless,
            "haveged, rngd -r /dev/urandom, -Djava.security.egd=file:/dev/./urandom: all against the blocking pool that this \
             kernel does not have; the last changes Java's algorithm and nothing else",
        )
    })
}

fn readers(randomness: &Randomness) -> Option<Aspect> {
    /// Readers that are named.
    const NAMED: usize = 5;
    if randomness.readers.is_empty() {
        return None;
    }
    let named: Vec<String> = randomness
        .readers
        .iter()
        .take(NAMED)
        .map(|reader| {
            format!(
                "{} ({}) {} of {} in {}",
                reader.process,
                reader.pid,
                say::several(reader.bytes, "byte"),
                reader.from,
                duration(reader.ns)
            )
        })
        .collect();
    Some(aspect("read by", State::Plain, named.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::{Blocking, State, aspects, blocking};
    use holdup_evidence::facts::RandomFacts;
    use holdup_evidence::randomness::{FeedingDaemon, RandomReader, Randomness, SavedSeed};

    /// A guest of today: nothing is wrong.
    fn healthy() -> Randomness {
        Randomness {
            generator: RandomFacts {
                seeded: Some((110_000_000, "random: crng init done".to_owned())),
                pool_size: Some(256),
                entropy_available: Some(256),
                blocking_pool: Some(false),
                hardware_source: Some("virtio_rng.0".to_owned()),
                hardware_available: Some("virtio_rng.0 none".to_owned()),
                cpu_instruction: Some(true),
                trust_cpu: None,
                virtual_machine: Some(true),
            },
            instructions: Some(vec!["RDRAND".to_owned(), "RDSEED".to_owned()]),
            quality: Some(1024),
            feeding_thread: Some(true),
            ready: Some(true),
            insecure_flag: Some(true),
            ..Randomness::default()
        }
    }

    fn of(randomness: &Randomness, about: &str) -> (State, String) {
        let found = aspects(randomness).into_iter().find(|one| one.about == about);
        let one = found.unwrap_or_else(|| panic!("nothing about {about}"));
        (one.state, one.text)
    }

    #[test]
    fn a_pool_of_256_is_full_and_nothing_is_wrong() {
        let aspects = aspects(&healthy());
        assert!(aspects.iter().all(|one| one.state != State::Poor), "{aspects:?}");
        let (state, text) = of(&healthy(), "pool");
        assert!(state == State::Good && text.contains("256 is not low"), "{text}");
        assert_eq!(of(&healthy(), "can be waited for").0, State::Good);
    }

    #[test]
    fn whether_anybody_waits_is_told_by_features() {
        let mut randomness = healthy();
        randomness.generator.blocking_pool = Some(true);
        randomness.generator.pool_size = Some(4096);
        // A kernel of ten years ago, and one of five with all back-ports.
        assert_eq!(blocking(&randomness), Blocking::AnyTime);
        assert_eq!(of(&randomness, "can be waited for").0, State::Poor);
        randomness.generator.blocking_pool = Some(false);
        assert_eq!(blocking(&randomness), Blocking::UntilSeeded);
        assert!(of(&randomness, "pool").1.contains("no reader waits for"));
        randomness.generator.blocking_pool = None;
        assert_eq!(blocking(&randomness), Blocking::UntilSeeded);
        randomness.insecure_flag = Some(false);
        assert_eq!(blocking(&randomness), Blocking::Unknown);
        randomness.ready = Some(false);
        assert!(of(&randomness, "can be waited for").1.starts_with("yes, now"));
    }

    #[test]
    fn a_daemon_helps_where_there_is_a_pool_and_not_elsewhere() {
        let mut randomness = healthy();
        randomness.daemons.push(FeedingDaemon {
            name: "haveged".to_owned(),
            pid: 812,
        });
        assert_eq!(of(&randomness, "daemons").0, State::Pointless);
        assert_eq!(of(&randomness, "old remedies").0, State::Pointless);
        randomness.generator.blocking_pool = Some(true);
        assert_eq!(of(&randomness, "daemons").0, State::Good);
        assert!(aspects(&randomness).iter().all(|one| one.about != "old remedies"));
    }

    #[test]
    fn sources_that_do_not_count_are_said_to() {
        let mut randomness = healthy();
        randomness.quality = Some(0);
        assert!(of(&randomness, "hardware source").1.contains("counts none"));
        randomness.quality = None;
        let (state, text) = of(&randomness, "hardware source");
        assert!(state == State::Good && text.contains("feeds from it"), "{text}");
        randomness.quality = Some(1024);
        randomness.feeding_thread = Some(false);
        assert!(of(&randomness, "hardware source").1.contains("does not run"));
        randomness.generator.hardware_source = Some("none".to_owned());
        assert_eq!(of(&randomness, "hardware source").0, State::Poor);
        randomness.generator.hardware_available = None;
        assert!(of(&randomness, "hardware source").1.contains("virtio-rng-pci"));
        randomness.generator.trust_cpu = Some(false);
        assert_eq!(of(&randomness, "CPU").0, State::Poor);
        randomness.saved_seed = Some(SavedSeed {
            path: "/var/lib/systemd/random-seed".to_owned(),
            credited: Some(false),
        });
        assert!(of(&randomness, "saved seed").1.contains("not counted"));
        randomness.loader_seed = Some((true, "the device tree".to_owned()));
        randomness.trust_loader = Some(false);
        assert!(of(&randomness, "boot loader's seed").1.contains("not count"));
    }

    #[test]
    fn a_late_seeding_is_poor_and_what_is_not_told_is_said() {
        let mut randomness = healthy();
        randomness.generator.seeded = Some((102_000_000_000, "random: crng init done".to_owned()));
        assert_eq!(of(&randomness, "seeded").0, State::Poor);
        let nothing = Randomness::default();
        for about in ["can be waited for", "seeded", "CPU", "hardware source"] {
            assert_eq!(of(&nothing, about).0, State::Unknown, "{about}");
        }
    }

    #[test]
    fn readers_are_named_where_somebody_watched() {
        let mut randomness = healthy();
        randomness.readers.push(RandomReader {
            process: "curl".to_owned(),
            pid: 7,
            from: "/dev/urandom".to_owned(),
            calls: 3,
            bytes: 12_288,
            ns: 240_000_000,
        });
        let (_, text) = of(&randomness, "read by");
        assert!(text.contains("curl (7)") && text.contains("240 ms"), "{text}");
    }
}
