//! Where a Java virtual machine gets seeds from, and what helps a thread of it that waits for one.
//!
//! What Java does, tried on JDK 17 and 25 with an empty pipe in the place of `/dev/random`: as delivered, `new SecureRandom()` is
//! NativePRNG, whose bytes come from `/dev/urandom`; its `generateSeed`, DRBG and SHA1PRNG go by `-Djava.security.egd` (else by
//! `securerandom.source` in java.security, delivered as `file:/dev/random`), and `getInstanceStrong` by neither. Any other text than
//! `file:/dev/random` and `file:/dev/urandom` there, the dot included, makes another algorithm the default, which takes its seeds from
//! there; so `file:/dev/./random` makes even `nextBytes` and `UUID.randomUUID` wait.
//!
//! In: what is known of the machine and of the wait. Out: evidence and remedies.

use super::Run;
use holdup_evidence::Jvm;
use holdup_model::finding::{Evidence, Finding, Remedy};

/// What Java's switch does not reach: the class behind that name opens `/dev/random` by itself, whatever the switch says.
/// Java 17 on a slow pipe: 1.1 s without the switch, 0.6 s with it (as long as the bytes take to come), 0.03 s with this.
pub(super) const STRONG_INSTANCE: &str = "for SecureRandom.getInstanceStrong(), which does not go by \
     -Djava.security.egd, set securerandom.strongAlgorithms=NativePRNGNonBlocking:SUN in its java.security";

/// That class, in a stack.
pub(super) const STRONG_CLASS: &str = "NativePRNG$Blocking";
pub(super) const SWITCH_IS_OF_NO_USE: &str =
    "-Djava.security.egd: this is a strong instance, which opens /dev/random whatever that says";

/// The options, without their values.
const EGD: &str = "-Djava.security.egd=";
const FILE: &str = "-Djava.security.properties=";

/// What the path of the kernel's device that never blocks ends with, wherever `/dev` is.
const NEVER_BLOCKS: &str = "/urandom";

/// The sources that keep NativePRNG the default.
const RANDOM: &str = "file:/dev/random";
const URANDOM: &str = "file:/dev/urandom";

/// The first version that has a DRBG, and the first that takes `file:/dev/urandom` for what it says.
const WITH_DRBG: u32 = 9;
const LITERAL: u32 = 8;

/// What is known of a machine.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seeds<'a> {
    major: Option<u32>,
    /// Whether its options are known, and what they say.
    known: bool,
    egd: Option<&'a str>,
    /// Whether they name a further file of such settings.
    file: bool,
}

impl<'a> Seeds<'a> {
    /// Of the machine in this process.
    pub(super) fn of(run: &'a Run<'_>, pid: u32) -> Seeds<'a> {
        let jvm = run.facts.jvms.iter().find(|jvm| jvm.pid == pid);
        jvm.map_or_else(Seeds::default, Seeds::of_jvm)
    }

    fn of_jvm(jvm: &'a Jvm) -> Seeds<'a> {
        let options = jvm.security.as_deref();
        let given = options.unwrap_or_default();
        let egd = given.iter().rev().find_map(|option| option.strip_prefix(EGD));
        Seeds {
            major: jvm.version.as_deref().and_then(major),
            known: options.is_some(),
            egd: egd.filter(|egd| !egd.is_empty()),
            file: given.iter().any(|option| option.starts_with(FILE)),
        }
    }

    /// What `new SecureRandom()` is.
    fn algorithm(&self) -> &'static str {
        match (self.egd.unwrap_or(RANDOM), self.major) {
            (RANDOM | URANDOM, _) => "NativePRNG",
            (_, Some(major)) if major < WITH_DRBG => "SHA1PRNG",
            _ => "DRBG",
        }
    }

    /// What this machine uses, as far as its command line tells.
    pub(super) fn evidence(&self) -> Option<Evidence> {
        if !self.known {
            return None;
        }
        let java = self
            .major
            .map_or("this JVM".to_owned(), |major| format!("Java {major}"));
        let unless = match self.file {
            true => "unless the file of -Djava.security.properties or its java.security says otherwise",
            false => "unless its java.security says otherwise",
        };
        let text = match self.egd {
            None => format!(
                "{java} was started without {}: {unless}, new SecureRandom() is NativePRNG, whose bytes come from /dev/urandom; \
                 seeds (generateSeed, DRBG, SHA1PRNG) and getInstanceStrong() read /dev/random",
                EGD.trim_end_matches('=')
            ),
            Some(egd) => {
                let algorithm = self.algorithm();
                let bytes = match algorithm {
                    "NativePRNG" => ", whose bytes come from /dev/urandom",
                    _ => ", which is seeded from there",
                };
                format!(
                    "{java} was started with {EGD}{egd}: new SecureRandom() is {algorithm}{bytes}; seeds (generateSeed, DRBG, \
                     SHA1PRNG) are read from {}, and getInstanceStrong() reads /dev/random",
                    path(egd)
                )
            }
        };
        Some(Evidence::new(text, "the options that the JVM reports"))
    }

    /// What helps, and what does not, a thread that waits in a read of `device`. `frames`: whether its Java frames are known, and are
    /// not those of a strong instance.
    pub(super) fn remedies(&self, device: &str, frames: bool, mut finding: Finding) -> Finding {
        if device.ends_with(NEVER_BLOCKS) {
            return finding.remedy(Remedy::pointless(
                "-Djava.security.egd: Java's default takes its bytes from /dev/urandom whatever that says",
            ));
        }
        let switch = match (self.egd, self.major) {
            (_, Some(major)) if major < LITERAL => Some(
                "start Java with -Djava.security.egd=file:/dev/./urandom (before Java 8 only with the dot)"
                    .to_owned(),
            ),
            (None, _) => Some(format!("start Java with {EGD}{URANDOM}")),
            (Some(egd), _) if path(egd).ends_with(NEVER_BLOCKS) => None,
            (Some(egd), _) => Some(format!("start Java with {EGD}{URANDOM} instead of {egd}")),
        };
        let switched = switch.is_none();
        finding = match switch {
            Some(switch) => finding.remedy(Remedy::safe(switch)),
            None => finding,
        };
        if !frames || switched {
            finding = finding.remedy(Remedy::safe(STRONG_INSTANCE));
        }
        if switched {
            return finding.remedy(Remedy::pointless(
                "-Djava.security.egd: it says so already, and what reads here does not go by it",
            ));
        }
        match self.major {
            Some(major) if major < LITERAL => finding,
            Some(LITERAL) => finding.remedy(Remedy::pointless(
                "file:/dev/./urandom with the dot: on Java 8 it also changes the algorithm, to SHA1PRNG",
            )),
            _ => finding.remedy(Remedy::pointless(
                "file:/dev/./urandom with the dot: since Java 9 it also changes the algorithm, to DRBG",
            )),
        }
    }
}

/// 17 of `17.0.15`, 8 of `1.8.0_452`.
fn major(version: &str) -> Option<u32> {
    let version = version.strip_prefix("1.").unwrap_or(version);
    version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn path(source: &str) -> &str {
    source.strip_prefix("file:").unwrap_or(source)
}

#[cfg(test)]
mod tests {
    use super::Seeds;
    use holdup_evidence::{Cause, Jvm};
    use holdup_model::finding::{Finding, Severity};

    fn jvm(version: &str, options: Option<&[&str]>) -> Jvm {
        Jvm {
            version: Some(version.to_owned()),
            security: options.map(|all| all.iter().map(|one| (*one).to_owned()).collect()),
            ..Jvm::default()
        }
    }

    /// The evidence and the remedies, for a reader of `/dev/random` whose frames are known.
    fn seeds(version: &str, options: Option<&[&str]>) -> (String, Vec<String>) {
        let jvm = jvm(version, options);
        let seeds = Seeds::of_jvm(&jvm);
        let evidence = holdup_model::finding::Evidence::new("it waits", "sched_switch");
        let finding = Finding::without_duration(
            "blocking-entropy-device",
            Severity::Warning,
            String::new(),
            Cause::RandomDevice,
            evidence,
        );
        let finding = seeds.remedies("/dev/random", true, finding);
        let remedies = finding.remedies.iter().map(|remedy| remedy.text.clone());
        let text = seeds.evidence().map(|evidence| evidence.text).unwrap_or_default();
        (text, remedies.collect())
    }

    #[test]
    fn as_delivered_seeds_come_from_random_and_bytes_do_not() {
        let (text, remedies) = seeds("17.0.15", Some(&[]));
        assert!(
            text.starts_with("Java 17 was started without -Djava.security.egd"),
            "{text}"
        );
        assert!(text.contains("is NativePRNG"), "{text}");
        assert_eq!(
            remedies[0],
            "start Java with -Djava.security.egd=file:/dev/urandom"
        );
        assert!(remedies[1].contains("to DRBG"), "{remedies:?}");
    }

    #[test]
    fn what_is_not_known_is_not_said() {
        let (text, remedies) = seeds("17.0.15", None);
        assert_eq!(text, "");
        assert_eq!(
            remedies[0],
            "start Java with -Djava.security.egd=file:/dev/urandom"
        );
    }

    #[test]
    fn the_dot_changes_the_algorithm_by_version() {
        for (version, algorithm) in [("1.8.0_452", "SHA1PRNG"), ("11.0.2", "DRBG"), ("25", "DRBG")] {
            let (text, remedies) = seeds(version, Some(&["-Djava.security.egd=file:/dev/./random"]));
            assert!(
                text.contains(&format!(
                    "new SecureRandom() is {algorithm}, which is seeded from there"
                )),
                "{text}"
            );
            assert_eq!(
                remedies[0],
                "start Java with -Djava.security.egd=file:/dev/urandom instead of file:/dev/./random"
            );
            assert!(remedies[1].ends_with(&format!("to {algorithm}")), "{remedies:?}");
        }
        let (_, remedies) = seeds("1.7.0_80", Some(&[]));
        assert_eq!(remedies.len(), 1);
        assert!(
            remedies[0].contains("file:/dev/./urandom (before Java 8"),
            "{remedies:?}"
        );
    }

    #[test]
    fn a_switch_that_is_set_already_is_not_advised_again() {
        for egd in ["file:/dev/urandom", "file:/dev/./urandom"] {
            let option = format!("-Djava.security.egd={egd}");
            let (text, remedies) = seeds(
                "17.0.15",
                Some(&["-Djava.security.egd=file:/dev/random", &option]),
            );
            assert!(text.contains(&format!("are read from {}", &egd[5..])), "{text}");
            assert!(remedies[0].contains("getInstanceStrong"), "{remedies:?}");
            assert!(remedies[1].contains("it says so already"), "{remedies:?}");
        }
    }
}
