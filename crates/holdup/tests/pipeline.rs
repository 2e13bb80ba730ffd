//! The pipeline of docs/pipelines.md is real: its script is run, and ends as the page says. And what `--fail-on` makes of runs.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use support::{HOLDUP, holdup, json, lossy};
use tempfile::TempDir;

/// The script of the page.
fn script() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pipelines.md");
    let page = fs::read_to_string(page).unwrap();
    let behind = page.split("\n## A pipeline\n").nth(1).unwrap();
    let block = behind.split("```sh\n").nth(1).unwrap();
    block.split("```").next().unwrap().to_owned()
}

fn program(folder: &Path, name: &str, body: &str) {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A folder with a baseline, in which the script ran.
fn ran(work: &str, released: &str, baseline: &str) -> (TempDir, Output) {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path(), "work", work);
    program(folder.path(), "work.released", released);
    fs::write(folder.path().join("baseline.json"), baseline).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", &script()]).current_dir(folder.path());
    let output = shell
        .env("HOLDUP", HOLDUP)
        .env("RUNS", "4")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (folder, output)
}

fn baseline() -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("baseline.json");
    let output = holdup(&["--json", file.to_str().unwrap()])
        .args(["sleep", "0.01"])
        .output()
        .unwrap();
    assert!(output.status.success());
    fs::read_to_string(file).unwrap()
}

#[test]
fn the_pipeline_of_the_page_passes_and_fails_as_it_says() {
    let baseline = baseline();
    let attach = baseline.replacen("\"kind\": \"run\"", "\"kind\": \"attach\"", 1);
    assert_ne!(attach, baseline);
    for (work, released, baseline, status, said) in [
        (
            "sleep 0.02",
            "sleep 0.4",
            &baseline,
            0,
            "--fail-on passed: AFTER is faster",
        ),
        (
            "exit 7",
            "true",
            &baseline,
            7,
            "exit status 7 is that of the command",
        ),
        (
            "sleep 0.4",
            "sleep 0.02",
            &attach,
            1,
            "--fail-on failed: AFTER is slower",
        ),
    ] {
        let (folder, output) = ran(work, released, baseline);
        let stderr = lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{work}: {stderr}");
        // Of a run that passed nothing is said with -q; what passed stands in the files.
        let files: Vec<String> = ["holdup.xml", "diff.xml", "summary.md", "annotations"]
            .iter()
            .filter_map(|name| fs::read_to_string(folder.path().join("results").join(name)).ok())
            .collect();
        let all = format!("{stderr}\n{}", files.join("\n"));
        let (outcome, reason) = said.split_once(": ").unwrap_or(("", said));
        assert!(all.contains(reason), "{work}: {all}");
        assert!(
            outcome.contains("passed") || stderr.contains(said),
            "{work}: {stderr}"
        );
        assert!(files[0].starts_with("<?xml"), "{}", files[0]);
        // A run that cannot be judged fails nothing, and what follows is done.
        if *baseline == attach {
            assert!(
                stderr.contains("--fail-on cannot tell: the baseline is of another command"),
                "{stderr}"
            );
        }
    }
}

#[test]
fn a_condition_decides_only_for_a_command_that_succeeded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.json");
    let run = |condition: &str, script: &str| {
        let options = ["--fail-on", condition, "--json", file.to_str().unwrap()];
        let output = holdup(&options).args(["sh", "-c", script]).output().unwrap();
        let report = json(&file);
        let gate = report["gate"]["outcome"].as_str().unwrap().to_owned();
        (
            output.status.code().unwrap(),
            gate,
            report["subject"]["exit"].as_i64().unwrap(),
        )
    };
    let of = |status, gate: &str, exit| (status, gate.to_owned(), exit);
    assert_eq!(run("timer.sleep>100ms", "sleep 0.2"), of(1, "failed", 0));
    assert_eq!(run("timer.sleep>1h", "sleep 0.2"), of(0, "passed", 0));
    assert_eq!(run("timer.sleep>100ms", "sleep 0.2; exit 3"), of(3, "failed", 3));
    assert_eq!(run("timer.sleep>1h", "exit 1"), of(1, "passed", 1));
    assert_eq!(
        run("timer.sleep>100ms", "sleep 0.2; kill -9 $$"),
        of(137, "failed", 137)
    );
    // A rule that is for artefacts has not judged a run.
    assert_eq!(run("finding:log-gap", "true").0, 3);
}

#[test]
fn bad_conditions_are_said_before_the_command_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (ran, garbage) = (folder.path().join("ran"), folder.path().join("garbage.json"));
    fs::write(&garbage, "{}").unwrap();
    let garbage = garbage.to_str().unwrap();
    for options in [
        &["--fail-on", "disc.sync>20%"][..],
        &["--fail-on", "regression"],
        &["--fail-on", "new-finding"],
        &["--fail-on", "disk>1%", "--baseline", garbage],
        &["--fail-on", "new-finding", "--baseline", garbage],
        &["--fail-on", "new-finding", "--baseline", "/nowhere"],
        &["--baseline", garbage],
    ] {
        let output = holdup(options).arg("touch").arg(&ran).output().unwrap();
        let stderr = lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{options:?}: {stderr}");
        assert!(!ran.exists(), "{options:?}");
    }
}

#[test]
fn a_comparison_tells_regression_chance_and_failure_apart() {
    let runs = |name: &str| format!("{}/tests/diff/{name}", env!("CARGO_MANIFEST_DIR"));
    let diff = |condition: &str, before: &str, after: &str| {
        let mut command = Command::new(HOLDUP);
        command
            .args(["diff", "-q", "--fail-on", condition])
            .args([runs(before), runs(after)]);
        command
            .stdin(Stdio::null())
            .output()
            .unwrap()
            .status
            .code()
            .unwrap()
    };
    assert_eq!(diff("regression", "before", "after"), 1);
    assert_eq!(diff("regression>5%", "before", "after"), 1);
    assert_eq!(diff("regression>60%", "before", "after"), 0);
    assert_eq!(
        diff("regression>25%", "before", "after"),
        3,
        "the interval has the limit in it"
    );
    assert_eq!(diff("regression", "after", "before"), 0);
    assert_eq!(
        diff("regression", "before/1.json", "after/1.json"),
        3,
        "one run each"
    );
    assert_eq!(diff("regression", "before", "nowhere"), 125);
    assert_eq!(diff("disk>1%", "before", "after"), 2);
}
