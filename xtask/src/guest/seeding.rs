//! What `holdup boot` and `holdup doctor` say of the generator in a guest whose sources are known.
//!
//! In: what the guest left, and what it could be seeded by. Out: a cell of the table. The truth is the emulator's command
//! line, the kernel's own line about the seeding, and when `sshd -t` was started.

use super::randomness::{self, CAUSE, LEAST_NS, SAME_INSTANT_SECONDS};
use super::source::Source;
use super::table::Cell;
use crate::report::Report;
use anyhow::Context;
use serde::Deserialize;
use std::path::Path;

/// The rule about it.
const RULE: &str = "crng-not-seeded";

/// How far holdup's instant of the seeding may be from the kernel's line, nanoseconds: it is the same line, in microseconds.
const SAME_LINE_NS: u64 = 1_000;

/// What `holdup doctor` says of a generator that has nothing to give.
const NOT_YET: &str = "yes, now: the generator is not seeded yet";

/// What the table calls it.
pub(super) fn name(source: Source) -> String {
    format!("seeded-by-{}", source.word())
}

/// The report of `holdup boot`.
#[derive(Debug, Deserialize)]
struct OfBoot {
    boot: Boot,
    findings: Vec<Finding>,
}

#[derive(Debug, Deserialize)]
struct Finding {
    rule: String,
    severity: String,
}

#[derive(Debug, Deserialize)]
struct Boot {
    release: Option<String>,
    seeded_ns: Option<u64>,
    from_kernel: bool,
    randomness: Vec<Aspect>,
}

#[derive(Debug, Deserialize)]
struct Aspect {
    about: String,
    state: String,
    text: String,
}

/// What a guest left.
#[derive(Debug)]
struct Said {
    boot: OfBoot,
    /// The report about `sshd -t`.
    run: Report,
    /// When the kernel says that it was seeded, seconds since boot.
    seeded: f64,
    /// When `sshd -t` was about to be started, seconds since boot.
    up: f64,
    /// What `holdup doctor` said before that.
    doctor: String,
}

/// Judges what the guest left in `out`.
pub(super) fn judge(out: &Path, source: Source, kernel: &str) -> anyhow::Result<Cell> {
    let said = read(out)?;
    let wrong = wrong(&said, source, kernel);
    Ok(if wrong.is_empty() {
        let waited = unseeded(&said.run) as f64 / 1e9;
        Cell::Right(format!("at {:.2} s, sshd waited {waited:.2} s", said.seeded))
    } else {
        Cell::Wrong(wrong)
    })
}

fn read(out: &Path) -> anyhow::Result<Said> {
    let read = |name: &str| {
        let file = out.join("randomness").join(name);
        let bytes = std::fs::read(&file).with_context(|| format!("read {}", file.display()))?;
        anyhow::Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let log = read("kernel.log")?;
    Ok(Said {
        boot: serde_json::from_str(&read("boot.json")?).context("understand what holdup boot said")?,
        run: serde_json::from_str(&read("report.json")?).context("understand what holdup run said")?,
        seeded: randomness::seeded_at(&log).context("the kernel's log does not say when it was seeded")?,
        up: read("up")?.trim().parse().context("understand /proc/uptime")?,
        doctor: std::fs::read_to_string(out.join("doctor.txt")).context("read what holdup doctor said")?,
    })
}

/// For how long sshd waited for the seeding, nanoseconds, by holdup.
fn unseeded(run: &Report) -> u64 {
    let waits = run.waits.iter().filter(|wait| wait.cause == CAUSE);
    waits.map(|wait| wait.ns).sum()
}

/// What must be said about one thing of the generator: its state, and a part of its words.
fn expected(source: Source) -> Vec<(&'static str, &'static str, &'static str)> {
    let (seeded, cpu, hardware) = match source {
        Source::Nothing => (
            "by the timing of interrupts",
            ("plain", "no instruction"),
            ("plain", "none"),
        ),
        Source::VirtioRng => (
            "by virtio_rng.0 or the timing",
            ("plain", "no instruction"),
            // 5.10 does not tell its quality.
            ("good", "virtio_rng.0"),
        ),
        Source::Rdrand => (
            "by the CPU's RDRAND,",
            ("good", "offers RDRAND"),
            ("plain", "none"),
        ),
    };
    vec![
        ("can be waited for", "good", "no, not in this boot"),
        ("seeded", "good", seeded),
        ("pool", "good", "256 of 256 bits"),
        ("CPU", cpu.0, cpu.1),
        ("hardware source", hardware.0, hardware.1),
    ]
}

/// Everything that is not as it must be.
fn wrong(said: &Said, source: Source, kernel: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut check = |right: bool, what: String| {
        if !right {
            wrong.push(what);
        }
    };
    let boot = &said.boot.boot;
    let release = boot.release.as_deref().unwrap_or("none");
    check(
        boot.from_kernel && release.starts_with(kernel),
        format!("the kernel is {release}"),
    );
    let line = (said.seeded * 1e9).round() as u64;
    check(
        boot.seeded_ns.is_some_and(|ns| ns.abs_diff(line) <= SAME_LINE_NS),
        format!("it was seeded at {line} ns, and holdup says {:?}", boot.seeded_ns),
    );
    for (about, state, words) in expected(source) {
        let found = boot.randomness.iter().find(|aspect| aspect.about == about);
        check(
            found.is_some_and(|aspect| aspect.state == state && aspect.text.contains(words)),
            format!("{about} is not {state} with \"{words}\": {found:?}"),
        );
    }
    let unseeded_yet = said.doctor.contains(NOT_YET);
    check(
        unseeded_yet == (said.seeded > said.up),
        format!("holdup doctor said before sshd that it is not seeded: {unseeded_yet}"),
    );
    let warnings = said.boot.findings.iter().filter(|one| one.severity != "note");
    let rules: Vec<&str> = warnings.map(|one| one.rule.as_str()).collect();
    check(rules.is_empty(), format!("holdup boot warns of {rules:?}"));

    let fires = said.run.findings.iter().any(|one| one.rule == RULE);
    let (waited, late) = (unseeded(&said.run), said.seeded - said.up);
    let must = match source {
        Source::Nothing => waited >= LEAST_NS && fires,
        // Seeded before it was started: nothing to wait for. Else it waited until then, and not longer.
        Source::VirtioRng | Source::Rdrand => {
            waited as f64 / 1e9 <= late.max(0.0) + SAME_INSTANT_SECONDS && (waited > 0 || !fires)
        }
    };
    check(
        must,
        format!(
            "sshd, started {late:.3} s before the seeding, waited {waited} ns for it; {RULE} fires: {fires}"
        ),
    );
    if source == Source::Rdrand {
        check(
            late < 0.0,
            format!("RDRAND did not seed it before sshd: {late:.3} s after"),
        );
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::{OfBoot, Said, wrong};
    use crate::guest::source::Source;

    const RUN: &str = include_str!("sample.json");

    fn said(seeded: f64, by: &str, cpu: &str) -> Said {
        let boot = format!(
            r#"{{"boot": {{"release": "6.1.0-1", "seeded_ns": {}, "from_kernel": true, "randomness": [
            {{"about": "can be waited for", "state": "good", "text": "no, not in this boot: x"}},
            {{"about": "seeded", "state": "good", "text": "x: {by}"}},
            {{"about": "pool", "state": "good", "text": "256 of 256 bits: full"}},
            {cpu},
            {{"about": "hardware source", "state": "plain", "text": "none"}}]}}, "findings": []}}"#,
            (seeded * 1e9) as u64
        );
        let boot: OfBoot = serde_json::from_str(&boot).unwrap();
        let run = serde_json::from_str(RUN).unwrap();
        let doctor = if seeded > 1.8 { super::NOT_YET } else { "no" }.to_owned();
        Said {
            boot,
            run,
            seeded,
            up: 1.8,
            doctor,
        }
    }

    const NO_CPU: &str = r#"{"about": "CPU", "state": "plain", "text": "offers no instruction"}"#;

    #[test]
    fn a_guest_without_sources_is_right_and_the_same_with_rdrand_is_not() {
        let without = said(2.81, "by the timing of interrupts and of the CPU", NO_CPU);
        assert_eq!(wrong(&without, Source::Nothing, "6.1"), Vec::<String>::new());
        let failed = wrong(&without, Source::Rdrand, "6.1");
        assert_eq!(failed.len(), 3, "{failed:?}");
        assert_eq!(wrong(&without, Source::Nothing, "5.10").len(), 1);
    }

    #[test]
    fn who_waited_for_a_generator_that_was_ready_is_wrong() {
        let cpu = r#"{"about": "CPU", "state": "good", "text": "offers RDRAND"}"#;
        let mut rdrand = said(0.0, "by the CPU's RDRAND, since", cpu);
        let failed = wrong(&rdrand, Source::Rdrand, "6.1");
        assert!(
            failed.len() == 1 && failed[0].starts_with("sshd, started"),
            "{failed:?}"
        );
        rdrand.run.waits.clear();
        rdrand.run.findings.clear();
        assert_eq!(wrong(&rdrand, Source::Rdrand, "6.1"), Vec::<String>::new());
        rdrand.boot.boot.seeded_ns = None;
        assert_eq!(wrong(&rdrand, Source::Rdrand, "6.1").len(), 1);
    }
}
