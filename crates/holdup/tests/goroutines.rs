//! Goroutines of a real program: where each stands in the program's own code, and those that wait for a lock for good.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

mod support;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::{Guarded, HOLDUP, list, lossy, read_until};

/// Two goroutines that take two locks in different orders, while a ticker lives; with an argument in the same order.
const PROGRAM: &str = "\
package main

import (
\t\"fmt\"
\t\"os\"
\t\"sync\"
\t\"time\"
)

var orders, stock sync.Mutex

func payFirst(taken chan bool) {
\torders.Lock()
\ttaken <- true
\ttime.Sleep(50 * time.Millisecond)
\tstock.Lock()
}

func paySecond(taken chan bool) {
\tstock.Lock()
\ttaken <- true
\ttime.Sleep(50 * time.Millisecond)
\torders.Lock()
}

func main() {
\ttaken := make(chan bool)
\tif len(os.Args) == 1 {
\t\tgo payFirst(taken)
\t\tgo paySecond(taken)
\t\t<-taken
\t\t<-taken
\t}
\ttime.Sleep(200 * time.Millisecond)
\tfmt.Println(\"ready\")
\tfor range time.Tick(100 * time.Millisecond) {
\t}
}
";

/// The first Go whose goroutines are read.
const SINCE_MINOR: u32 = 17;

/// Builds the program; `None` where there is no Go that is new enough, which is said.
fn built(folder: &Path) -> Option<PathBuf> {
    let version = Command::new("go").arg("version").output();
    let version = version.map(|output| lossy(&output.stdout)).unwrap_or_default();
    let minor = version.split("go1.").nth(1);
    let minor = minor.and_then(|rest| rest.split(['.', ' ']).next()?.parse::<u32>().ok());
    if minor.is_none_or(|minor| minor < SINCE_MINOR) {
        eprintln!("SKIPPED: no Go 1.{SINCE_MINOR} or later in PATH: {version:?}");
        return None;
    }
    let source = folder.join("shop.go");
    std::fs::write(&source, PROGRAM).unwrap();
    let program = folder.join("shop");
    let output = Command::new("go")
        .args(["build", "-o", program.to_str().unwrap(), source.to_str().unwrap()])
        .env("GOFLAGS", "")
        .env("GOCACHE", folder.join("cache"))
        .env("GO111MODULE", "off")
        .env("CGO_ENABLED", "0")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", lossy(&output.stderr));
    Some(program)
}

fn report(program: &Path, arguments: &[&str], backend: &str) -> Value {
    let mut shop = Command::new(program);
    let mut shop = Guarded::spawn(shop.args(arguments).stdout(Stdio::piped()));
    read_until(shop.0.stdout.as_mut().unwrap(), "ready\n");
    let output = Command::new(HOLDUP)
        .args([
            "attach",
            "-d",
            "2",
            "--format",
            "json",
            "--backend",
            backend,
            "-p",
        ])
        .arg(shop.0.id().to_string())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn of_rule(report: &Value) -> Option<&Value> {
    let findings = list(report, "findings");
    findings
        .iter()
        .find(|finding| finding["rule"] == "tasks-wait-for-lock")
}

#[test]
fn goroutines_that_wait_for_each_other_are_a_finding_and_stand_in_the_programs_own_lines() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = built(folder.path()) else {
        return;
    };
    for backend in ["bpf", "proc"] {
        let report = report(&program, &[], backend);
        let finding = of_rule(&report).unwrap_or_else(|| panic!("{backend}: {report:#}"));
        let title = finding["title"].as_str().unwrap();
        assert!(
            title.contains("main.payFirst (shop.go:16) and main.paySecond (shop.go:23)"),
            "{title}"
        );
        let stands = |function: &str, line: u64| {
            list(&report, "tasks").iter().any(|task| {
                let asker = &task["asker"];
                let frames = asker["stack"].as_array().unwrap();
                task["state"] == "waiting"
                    && asker["frame"] == function
                    && frames
                        .iter()
                        .any(|frame| frame["symbol"] == function && frame["line"] == line)
            })
        };
        assert!(stands("main.payFirst", 16), "{report:#}");
        assert!(stands("main.paySecond", 23), "{report:#}");
    }
}

#[test]
fn goroutines_that_wait_for_a_ticker_are_no_finding() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = built(folder.path()) else {
        return;
    };
    let report = report(&program, &["calm"], "bpf");
    assert!(of_rule(&report).is_none(), "{report:#}");
}
