//! A guest that systemd starts, in which a service waits for a disk that is not there, and what `holdup boot` must say of it.
//!
//! In: what the guest left. Out: a cell of the table. The truth is the units below.

use super::table::Cell;
use crate::setup::Packages;
use anyhow::Context;
use serde::Deserialize;
use std::path::Path;

/// What the table calls it.
pub(super) const NAME: &str = "boot-with-systemd";

/// What must be on this machine, to be copied: nothing of it is started here.
pub(super) const PACKAGES: Packages = Packages {
    purpose: "boot a guest with systemd",
    names: &["systemd", "bash", "coreutils", "mount", "util-linux"],
};

/// The first process, and what of Debian's units would need more than is there.
pub(super) const WORDS: &str = "rdinit=/usr/lib/systemd/systemd systemd.unit=multi-user.target \
     systemd.mask=systemd-logind.service systemd.mask=systemd-networkd.service systemd.mask=getty.target \
     systemd.mask=systemd-timesyncd.service systemd.mask=systemd-update-utmp.service";

/// Units and settings.
pub(super) const FILES: [(&str, &str); 7] = [
    ("/look.sh", include_str!("systemd/look.sh")),
    (
        "/etc/systemd/system/look.service",
        include_str!("systemd/look.service"),
    ),
    (
        "/etc/systemd/system/shop.service",
        include_str!("systemd/shop.service"),
    ),
    (
        "/etc/systemd/system/data.mount",
        include_str!("systemd/data.mount"),
    ),
    (
        "/etc/systemd/system/ssh.service",
        include_str!("systemd/ssh.service"),
    ),
    (
        "/etc/systemd/system/dev-vdz.device.d/limit.conf",
        include_str!("systemd/device.conf"),
    ),
    ("/etc/machine-id", "00112233445566778899aabbccddeeff\n"),
];

/// What is started.
pub(super) const LINKS: [(&str, &str); 3] = [
    (
        "/etc/systemd/system/multi-user.target.wants/look.service",
        "../look.service",
    ),
    (
        "/etc/systemd/system/multi-user.target.wants/shop.service",
        "../shop.service",
    ),
    (
        "/etc/systemd/system/multi-user.target.wants/ssh.service",
        "../ssh.service",
    ),
];

/// The disk that is waited for, and for how long, nanoseconds (`device.conf`).
const DISK: &str = "/dev/vdz";
const LIMIT_NS: u64 = 12_000_000_000;

/// How far holdup's length may be off, nanoseconds: systemd looks at its time-outs when it gets to it.
const OFF_NS: u64 = 1_000_000_000;

/// The rule.
const RULE: &str = "device-never-appeared";

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
    verdict: String,
    took_ns: Option<u64>,
    seeded_ns: Option<u64>,
    phases: Vec<serde_json::Value>,
    chain: Vec<serde_json::Value>,
    waits: Vec<Wait>,
    missing: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Wait {
    unit: String,
    cause: String,
    ns: u64,
}

/// Judges what the guest left in `out`.
pub(super) fn judge(out: &Path) -> anyhow::Result<Cell> {
    let file = out.join("boot.json");
    let text = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
    let said: OfBoot = serde_json::from_str(&text).context("understand what holdup boot said")?;
    let wrong = wrong(&said);
    Ok(if wrong.is_empty() {
        Cell::Right(said.boot.verdict)
    } else {
        Cell::Wrong(wrong)
    })
}

fn wrong(said: &OfBoot) -> Vec<String> {
    let boot = &said.boot;
    let waited = boot.waits.iter().find(|wait| wait.unit == DISK);
    let long = waited.is_some_and(|wait| {
        wait.cause == "device.wait" && wait.ns.abs_diff(LIMIT_NS) <= OFF_NS && Some(wait.ns) <= boot.took_ns
    });
    let mut warnings = said.findings.iter().filter(|one| one.severity != "note");
    let rules: Vec<&str> = warnings.by_ref().map(|one| one.rule.as_str()).collect();
    [
        (
            boot.verdict.contains(DISK),
            format!("the verdict is {}", boot.verdict),
        ),
        (
            long,
            format!("{DISK} was waited for: {waited:?} of {:?}", boot.took_ns),
        ),
        (rules == [RULE], format!("the findings are {rules:?}")),
        (
            boot.seeded_ns.is_some(),
            "the time of its seeding is missing".to_owned(),
        ),
        (!boot.phases.is_empty(), "systemd's phases are missing".to_owned()),
        (!boot.chain.is_empty(), "the critical chain is missing".to_owned()),
        (boot.missing.is_empty(), format!("not seen: {:?}", boot.missing)),
    ]
    .into_iter()
    .filter(|(right, _)| !right)
    .map(|(_, what)| what)
    .collect()
}

#[cfg(test)]
mod tests {
    use super::{OfBoot, wrong};

    const SAID: &str = r#"{"findings": [{"rule": "device-never-appeared", "severity": "warning"}], "boot": {
        "verdict": "12 s of it waiting for /dev/vdz", "took_ns": 20000000000, "seeded_ns": 1, "phases": [1], "chain": [1],
        "waits": [{"unit": "/dev/vdz", "cause": "device.wait", "ns": 12100000000}], "missing": []}}"#;

    fn failures(said: &str) -> usize {
        let said: OfBoot = serde_json::from_str(said).unwrap();
        wrong(&said).len()
    }

    #[test]
    fn each_thing_that_must_be_is_missed() {
        assert_eq!(failures(SAID), 0);
        for (right, wrong) in [
            ("waiting for /dev/vdz", "nothing"),
            ("12100000000", "1200000000"),
            ("device-never-appeared", "hole-in-critical-chain"),
            (r#""seeded_ns": 1"#, r#""seeded_ns": null"#),
            (r#""phases": [1]"#, r#""phases": []"#),
            (r#""chain": [1]"#, r#""chain": []"#),
            (r#""missing": []"#, r#""missing": ["units"]"#),
        ] {
            assert!(SAID.contains(right));
            assert_eq!(failures(&SAID.replace(right, wrong)), 1, "{wrong}");
        }
    }
}
