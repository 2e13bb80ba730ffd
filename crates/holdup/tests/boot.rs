//! `holdup boot` as a user runs it: files of a boot, files of two boots, a kernel log alone, this machine.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use support::{HOLDUP, lossy};

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/samples");

/// The kernel of a boot whose generator took 105 s, in logs of whole seconds.
const KERNEL: &str = "Mar 07 09:00:25 host1 kernel: random: get_random_bytes called from start_kernel+0x93/0x531 with crng_init=0
Mar 07 09:00:25 host1 kernel: random: fast init done
Mar 07 09:00:25 host1 kernel: random: systemd: uninitialized urandom read (16 bytes read)
Mar 07 09:02:10 host1 kernel: random: crng init done
Mar 07 09:02:10 host1 kernel: random: 7 urandom warning(s) missed due to ratelimiting
";

/// What its service manager said of a unit that was tried twice.
const UNITS: &str = "Mar 07 09:00:28 host1 systemd[1]: Starting OpenBSD Secure Shell server...
Mar 07 09:01:58 host1 systemd[1]: ssh.service: Start-pre operation timed out. Terminating.
Mar 07 09:01:58 host1 systemd[1]: ssh.service: Failed with result 'timeout'.
Mar 07 09:01:58 host1 systemd[1]: Failed to start OpenBSD Secure Shell server.
Mar 07 09:01:58 host1 systemd[1]: ssh.service: Scheduled restart job, restart counter is at 1.
Mar 07 09:01:58 host1 systemd[1]: Starting OpenBSD Secure Shell server...
Mar 07 09:02:10 host1 systemd[1]: Started OpenBSD Secure Shell server.
";

/// Its critical chain: the second try took 11.6 s.
const CHAIN: &str = "The time after the unit is active or started is printed after the \"@\" character.
The time the unit takes to start is printed after the \"+\" character.

multi-user.target @1min 44.120s
└─ssh.service @1min 32.504s +11.600s
  └─network.target @2.204s
    └─networking.service @1.001s +1.202s
";

fn boot(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(HOLDUP);
    command.arg("boot").args(arguments).current_dir(folder);
    command.stdin(Stdio::null()).output().unwrap()
}

fn report(arguments: &[&str], folder: &Path) -> Value {
    let output = boot(&[&["--format", "json"], arguments].concat(), folder);
    assert_eq!(output.status.code(), Some(0), "{}", lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn rules(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings
        .map(|finding| finding["rule"].as_str().unwrap())
        .collect()
}

/// The arguments for the three files of one boot.
const FILES: [&str; 6] = [
    "--kernel-log",
    "kernel",
    "--journal",
    "units",
    "--critical-chain",
    "chain",
];

#[test]
fn three_files_of_one_boot_are_one_verdict() {
    let folder = folder(&[("kernel", KERNEL), ("units", UNITS), ("chain", CHAIN)]);
    let report = report(&FILES, folder.path());
    assert_eq!(report["subject"]["kind"], "boot");
    assert_eq!(rules(&report), ["crng-not-seeded"]);
    let finding = &report["findings"][0];
    assert_eq!(
        (&finding["cause"], &finding["ns"], &finding["confidence"]),
        (
            &"random.unseeded".into(),
            &102_000_000_000_u64.into(),
            &"proved".into()
        )
    );
    assert_eq!(finding["asker"]["process"], "ssh.service");
    let causes = report["causes"].as_array().unwrap();
    assert_eq!(causes.len(), 1);
    assert_eq!(
        (&causes[0]["cause"], &causes[0]["ns"]),
        (&finding["cause"], &finding["ns"])
    );
    assert!(report["coverage"]["observed_ns"].is_null());
    let part = &report["boot"];
    assert_eq!(part["seeded_ns"], 105_000_000_000_u64);
    assert_eq!(part["holes"][0]["ns"], 90_300_000_000_u64);
    assert_eq!(
        part["holes"][0]["what"],
        "ssh.service waited for the random generator to be seeded, 102 s"
    );
    let seeded = part["milestones"].as_array().unwrap().iter();
    let seeded = seeded.clone().find(|one| one["what"] == "random-seeded").unwrap();
    assert_eq!(seeded["with"][0], "ssh.service");
    let words = "102 s of it ssh.service waited for the random generator to be seeded.";
    assert!(
        part["verdict"].as_str().unwrap().ends_with(words),
        "{}",
        part["verdict"]
    );
}

#[test]
fn the_text_begins_with_the_verdict_and_fits() {
    let folder = folder(&[("kernel", KERNEL), ("units", UNITS), ("chain", CHAIN)]);
    let output = boot(&FILES, folder.path());
    let text = lossy(&output.stdout);
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("no {words} in {text}"));
    let order = [
        "ssh.service",
        "Time line",
        "105.000 s   the random generator is seeded",
        "Waited",
        "Critical chain",
        "a gap of 1 min 30 s after network.target",
        "crng-not-seeded",
    ];
    assert!(order.map(at).is_sorted(), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn files_of_two_boots_are_never_joined() {
    // The unit of a day later; its second try took 12 s in the log and 10.1 s in the chain.
    let later = UNITS.replace("Mar 07", "Mar 08");
    let chain = CHAIN.replace("+11.600s", "+10.100s");
    let folder = folder(&[("kernel", KERNEL), ("units", &later), ("chain", &chain)]);
    let report = report(&FILES, folder.path());
    let mut found = rules(&report);
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "crng-not-seeded",
            "hole-in-critical-chain",
            "unit-start-timed-out"
        ]
    );
    assert_eq!(report["boot"]["apart"][0], "units");
    assert!(report["boot"]["holes"][0]["what"].is_null());
    let unseeded = report["causes"].as_array().unwrap().iter();
    assert!(unseeded.clone().all(|cause| cause["cause"] != "random.unseeded"));
}

#[test]
fn a_kernel_log_alone_is_enough() {
    let sample = format!("{SAMPLES}/dmesg/boot-6.1.txt");
    let report = report(&["--kernel-log", &sample], Path::new("/"));
    let part = &report["boot"];
    assert_eq!(part["release"], "6.1.0-56-amd64");
    let milestones = part["milestones"].as_array().unwrap().iter();
    let whats: Vec<&str> = milestones.map(|one| one["what"].as_str().unwrap()).collect();
    assert_eq!(
        whats,
        ["first-line", "kernel-ready", "init-started", "random-seeded"]
    );
    assert_eq!(rules(&report), Vec::<&str>::new());
    assert_eq!(report["causes"].as_array().unwrap().len(), 0);
    // Another machine's log says nothing of this one.
    assert_eq!(part["randomness"], serde_json::json!([]));
    assert_eq!(part["missing"], serde_json::json!([]));
}

#[test]
fn causes_are_what_is_proved_and_never_more_than_the_boot() {
    for (format, name, cause) in [
        ("journal", "device-never-came.txt", "device.wait"),
        ("journal-json", "network-in-vain.json", "net.connect"),
    ] {
        let report = report(
            &["--journal", &format!("{SAMPLES}/{format}/{name}")],
            Path::new("/"),
        );
        let causes = report["causes"].as_array().unwrap();
        assert_eq!(causes[0]["cause"], cause);
        let sum: u64 = causes.iter().map(|cause| cause["ns"].as_u64().unwrap()).sum();
        assert!(sum <= report["subject"]["wall_ns"].as_u64().unwrap(), "{report}");
        assert_eq!(report["boot"]["waits"][0]["cause"], cause);
    }
}

#[test]
fn the_same_findings_as_by_read() {
    let folder = folder(&[("kernel", KERNEL), ("units", UNITS), ("chain", CHAIN)]);
    let found = report(&FILES, folder.path());
    let mut command = Command::new(HOLDUP);
    command.args(["read", "--format", "json", "kernel", "units", "chain"]);
    let output = command.current_dir(folder.path()).output().unwrap();
    let read: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(rules(&found), rules(&read));
    assert!(read.get("boot").is_none());
    assert!(read["findings"][0]["ns"].is_null());
}

#[test]
fn what_is_not_there_or_not_a_log_is_said() {
    let folder = folder(&[("poem", "roses are red\nviolets are blue\n")]);
    for arguments in [["--journal", "none"], ["--kernel-log", "poem"]] {
        let output = boot(&arguments, folder.path());
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(output.stdout.is_empty());
        assert_eq!(
            lossy(&output.stderr).lines().count(),
            1,
            "{}",
            lossy(&output.stderr)
        );
    }
}

#[test]
fn this_machine_is_told_or_the_reason_why_not() {
    let output = boot(&["--format", "json"], Path::new("/"));
    match output.status.code() {
        Some(0) => {
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(report["subject"]["kind"], "boot");
            assert!(report["boot"]["verdict"].is_string());
            let randomness = report["boot"]["randomness"].as_array().unwrap();
            assert!(randomness.iter().any(|one| one["about"] == "can be waited for"));
            // What nobody looked at is not passed over.
            let systemd = Path::new("/run/systemd/system").exists();
            let missing = report["boot"]["missing"].as_array().unwrap().iter();
            let services = missing.filter(|one| one.as_str().unwrap().contains("the waits of services"));
            assert_eq!(services.count(), usize::from(!systemd));
        }
        code => {
            assert_eq!(code, Some(1));
            assert!(!output.stderr.is_empty());
        }
    }
}
