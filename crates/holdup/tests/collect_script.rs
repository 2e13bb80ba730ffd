//! The script of `holdup read --collect-script`: it runs in every shell, writes to stdout alone, and what it writes is read.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use support::{HOLDUP, lossy};

/// Shells that people have where holdup is not.
const SHELLS: &[&[&str]] = &[&["sh"], &["dash"], &["bash", "--posix"], &["busybox", "sh"]];

/// Parts that need not be recognised, by how their names begin, and why.
const NOT_READ: &[(&str, &str)] = &[
    ("journalctl", "says that there is no journal where there is none"),
    (
        "systemd-analyze",
        "says that systemd does not run where it does not",
    ),
];

const TABLE: &str = "% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 99.96  101.677521   101677521         1           getrandom
------ ----------- ----------- --------- --------- ----------------
100.00  101.677521                     1           total
";

fn script(folder: &Path) {
    let output = Command::new(HOLDUP)
        .args(["read", "--collect-script"])
        .output()
        .unwrap();
    assert_eq!(
        (output.status.code(), lossy(&output.stderr)),
        (Some(0), String::new())
    );
    assert!(output.stdout.starts_with(b"#!/bin/sh\n"));
    fs::write(folder.join("collect.sh"), output.stdout).unwrap();
}

#[test]
fn every_shell_understands_it() {
    let folder = tempfile::tempdir().unwrap();
    script(folder.path());
    for shell in SHELLS {
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).args(["-n", "collect.sh"]);
        let output = command.current_dir(folder.path()).output().unwrap();
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{shell:?}: {}",
            lossy(&output.stderr)
        );
    }
}

#[test]
fn what_it_writes_is_read() {
    let folder = tempfile::tempdir().unwrap();
    script(folder.path());
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    for shell in [SHELLS[1], SHELLS[3]] {
        let output = Command::new(shell[0])
            .args(&shell[1..])
            .arg("../collect.sh")
            .current_dir(&empty)
            .env("SECONDS_EACH", "1")
            .env("TMPDIR", &empty)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{shell:?}: {}", lossy(&output.stderr));
        assert_eq!(
            fs::read_dir(&empty).unwrap().count(),
            0,
            "{shell:?}: it writes to stdout alone"
        );
        let text = lossy(&output.stdout);
        let parts = text
            .lines()
            .filter(|line| line.starts_with("#holdup-part "))
            .count();
        let ends = text
            .lines()
            .filter(|line| line.starts_with("#holdup-end "))
            .count();
        assert!(
            parts > 8 && parts == ends,
            "{shell:?}: {parts} parts, {ends} ends"
        );
        let file = folder.path().join("collected");
        // A part that somebody adds by hand is one, too.
        let mark = text.lines().next().unwrap().rsplit(' ').next().unwrap();
        let added = format!("{text}#holdup-part {mark} strace -c\n{TABLE}");
        fs::write(&file, added).unwrap();
        let output = Command::new(HOLDUP)
            .args(["read", "--json", "report", "collected"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(output.stderr.is_empty(), "{}", lossy(&output.stderr));
        let report: Value = serde_json::from_slice(&fs::read(folder.path().join("report")).unwrap()).unwrap();
        let whole = &report["artefacts"][0];
        assert_eq!(whole["format"], "holdup-collect");
        // It was added without an end.
        assert_eq!(whole["problems"].as_array().unwrap().len(), 1, "{whole}");
        let last = report["artefacts"].as_array().unwrap().last().unwrap();
        assert_eq!(
            (&last["format"], &last["understood"]),
            (&"strace-summary".into(), &5.into())
        );
        // Each part is recognised, and each line of it understood.
        for name in whole["files"]["names"].as_array().unwrap() {
            let name = name.as_str().unwrap();
            let excused = NOT_READ.iter().any(|(start, _)| name.starts_with(start));
            assert!(excused, "{shell:?}: {name} is not recognised");
        }
        for part in report["artefacts"].as_array().unwrap() {
            assert_eq!(part["not_understood"], 0, "{shell:?}: {part}");
        }
        for (name, format) in [
            ("uptime", "uptime"),
            ("cat /proc/loadavg", "loadavg"),
            ("sh -c turn=0", "ps"),
        ] {
            let artefacts = report["artefacts"].as_array().unwrap();
            let part = artefacts.iter().find(|part| {
                part["name"]
                    .as_str()
                    .unwrap()
                    .strip_prefix("collected/")
                    .is_some_and(|part| part.starts_with(name))
            });
            let part = part.unwrap_or_else(|| panic!("{shell:?}: no {name} in {artefacts:?}"));
            assert_eq!(
                (&part["format"], &part["not_understood"]),
                (&format.into(), &0.into()),
                "{shell:?}: {part}"
            );
            assert!(part["understood"].as_u64() > Some(0), "{shell:?}: {part}");
        }
        // Each part is in the account, but for what had nothing to say.
        let files = &whole["files"];
        let found = files["read"].as_u64().unwrap() + files["not_recognised"].as_u64().unwrap();
        assert!(
            found > 8 && found <= parts as u64 + 1,
            "{shell:?}: {parts} parts, {files}"
        );
    }
}
