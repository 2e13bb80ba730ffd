//! `holdup fleet` on a directory as a store: what is uploaded is what is shown, before and after it was put together.
//!
//! `holdup-fleet` is a program of another package, which stands beside holdup once the workspace is built.

#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod support;

use holdup_evidence::{Cause, SystemFacts};
use holdup_model::attributed::Attributed;
use holdup_model::report::{Backend, Report, SubjectKind};
use holdup_recording::{Head, Segment};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use support::HOLDUP;

const MINUTE: u64 = 60_000_000_000;

/// 2026-11-29 08:00 UTC.
const EIGHT: i64 = 1_795_939_200_000_000_000;

fn segment(host: &str, minute: u64) -> Segment {
    let started = (
        1_000_000_000 + minute * MINUTE,
        EIGHT + (minute * MINUTE).cast_signed(),
    );
    let head = Head {
        host: Some(host.to_owned()),
        boot_id: Some(format!("{host}-boot")),
        kernel: Some("6.1".to_owned()),
        command: vec!["the whole machine".to_owned()],
        ..Head::new((SubjectKind::Attach, Backend::Bpf), started, MINUTE)
    };
    let name = serde_json::json!({"pid": 7, "tid": 7, "process": "db", "thread": "db"});
    let attributed: Attributed = serde_json::from_value(serde_json::json!({
        "of_threads": true, "elapsed": MINUTE, "wall": MINUTE,
        "waits": [{
            "cause": Cause::DiskSync, "ns": 1_000_000_007 + minute, "count": 3, "max": 900_000_000,
            "resource": {"name": "nvme0n1"}, "asker": {"name": name},
        }],
    }))
    .expect("only fields that exist");
    Segment {
        head,
        attributed,
        facts: SystemFacts::default(),
        look: None,
    }
}

fn run(program: &Path, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().expect("it starts")
}

fn fleet(arguments: &[&str]) -> Output {
    let program = Path::new(HOLDUP).with_file_name("holdup-fleet");
    assert!(program.is_file(), "build it: cargo build -p holdup-fleet");
    let all: Vec<&str> = ["fleet"].into_iter().chain(arguments.iter().copied()).collect();
    run(Path::new(HOLDUP), &all)
}

fn report(output: &Output) -> Report {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn sum(report: &Report) -> u64 {
    report.waits.iter().map(|wait| wait.ns).sum()
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.path().is_dir() {
            true => all.extend(files(&entry.path())),
            false => all.push(entry.path()),
        }
    }
    all
}

#[test]
fn sums_of_all_hosts_are_those_of_each_to_the_nanosecond() {
    let place = tempfile::tempdir().unwrap();
    let url = format!("file://{}", place.path().join("store").display());
    let mut expected = 0;
    for (host, minutes) in [("db-3", 0..4), ("web-1", 1..3)] {
        let directory = place.path().join(host);
        std::fs::create_dir(&directory).unwrap();
        for minute in minutes {
            let path = directory.join(format!("holdup-{minute}.parquet"));
            holdup_recording::save(&segment(host, minute), &path).unwrap();
        }
        let directory = directory.display().to_string();
        for _ in 0..2 {
            let done = fleet(&["upload", "--dir", &directory, "--to", &url]);
            assert!(done.status.success(), "{done:?}");
        }
        expected += sum(&report(&run(
            Path::new(HOLDUP),
            &["show", &directory, "--json", "-"],
        )));
    }
    assert_eq!(files(&place.path().join("store")).len(), 6);
    let show = || report(&fleet(&["show", &url, "--json", "-", "--last", "1h"]));
    let shown = show();
    assert_eq!(sum(&shown), expected);
    assert_eq!(shown.subject.kind, SubjectKind::Fleet);
    let hosts: Vec<_> = shown
        .hosts
        .iter()
        .map(|host| (host.name.as_str(), host.segments))
        .collect();
    assert_eq!(hosts, [("db-3", 4), ("web-1", 2)]);
    // One minute behind is not silent, and what is of a host says so.
    assert!(shown.hosts.iter().all(|host| host.silent_since.is_none()));
    assert!(shown.waits.iter().all(|wait| wait.host.is_some()));

    let compacted = fleet(&["compact", &url, "--last", "36500d"]);
    assert!(compacted.status.success(), "{compacted:?}");
    assert_eq!(sum(&show()), expected);

    // An object that anybody has put there costs that object, and is said.
    let mut all = files(&place.path().join("store"));
    all.sort();
    std::fs::write(&all[0], "PAR1 nonsense").unwrap();
    let shown = show();
    assert_eq!(shown.store.map(|store| store.problems.len()), Some(1));
    assert!(sum(&report(&fleet(&["show", &url, "--json", "-", "--last", "1h"]))) < expected);
}
