//! `holdup diff` as a user runs it: reports of real runs (`sleep 0.10` and `sleep 0.13`, four each), artefacts, recordings, and
//! what was made to do harm.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use support::{HOLDUP, lossy};

fn diff(arguments: &[&str]) -> Output {
    let mut command = Command::new(HOLDUP);
    command.arg("diff").args(arguments).stdin(Stdio::null());
    command.output().unwrap()
}

fn json_of(arguments: &[&str]) -> Value {
    let output = diff(&[&["--format", "json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", lossy(&output.stderr));
    let mut report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["subject"]["kind"], "diff");
    report["comparison"].take()
}

/// No number: this status, and one sentence with these words.
fn refused(arguments: &[&str], status: i32, words: &[&str]) {
    let output = diff(arguments);
    let text = lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{text}");
    assert!(output.stdout.is_empty() && text.lines().count() == 1, "{text}");
    for word in words {
        assert!(text.contains(word), "{text}");
    }
    assert!(!text.contains('\x1b'), "{text:?}");
}

fn fixtures(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/diff")
        .join(name);
    path.to_str().unwrap().to_owned()
}

fn samples(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/samples")
        .join(name);
    path.to_str().unwrap().to_owned()
}

fn written(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> String {
    let path: PathBuf = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The change of a cause.
fn cause<'a>(given: &'a Value, id: &str) -> &'a Value {
    let mut causes = given["causes"].as_array().unwrap().iter();
    causes.find(|one| one["cause"] == id).unwrap()
}

#[test]
fn four_real_runs_each_tell_what_was_planted() {
    let listed = json_of(&[&fixtures("before"), &fixtures("after")]);
    assert_eq!(
        (&listed["unit"], &listed["before_n"], &listed["after_n"]),
        (&"run".into(), &4.into(), &4.into())
    );
    assert_eq!(listed["significant"], true, "{listed}");
    let sleep = cause(&listed, "timer.sleep");
    assert_eq!(sleep["significant"], true);
    let change = sleep["change_ns"].as_i64().unwrap();
    assert!((29_000_000..31_000_000).contains(&change), "{sleep}");
    let verdict = listed["verdict"][0].as_str().unwrap();
    assert!(verdict.starts_with("AFTER is slower than BEFORE: +"), "{verdict}");
    assert!(
        listed["differences"][0]["before"]
            .as_str()
            .unwrap()
            .contains("sleep 0.10"),
        "{listed}"
    );
}

#[test]
fn one_run_each_claims_nothing_unless_others_tell_how_runs_vary() {
    let (before, after) = (fixtures("before/1.json"), fixtures("after/1.json"));
    let alone = json_of(&[&before, &after]);
    assert_eq!(
        (&alone["significant"], &alone["interval_ns"]),
        (&Value::Null, &Value::Null)
    );
    let said = alone["verdict"].to_string();
    assert!(said.contains("run-to-run variation was not measured"), "{said}");
    let noise = fixtures("before");
    let noted = json_of(&["--before", &before, "--after", &after, "--noise", &noise]);
    assert_eq!(
        (&noted["significant"], &noted["noise_n"]),
        (&true.into(), &4.into())
    );
    let itself = json_of(&[&before, &before]);
    assert_eq!(
        (&itself["change_ns"], &itself["significant"]),
        (&0.into(), &Value::Null)
    );
}

#[test]
fn times_of_the_field_report_are_for_each_request() {
    let folder = tempfile::tempdir().unwrap();
    let time = |name: &str, real: &str| {
        let command = "$ time for i in `seq 1 500`; do curl -s https://localhost:8443/ > /dev/null; done";
        written(folder.path(), name, format!("{command}\nreal\t{real}\n"))
    };
    let (before, after) = (time("before", "0m23,093s"), time("after", "0m28,930s"));
    let both = json_of(&[&before, &after]);
    assert_eq!(
        (&both["unit"], &both["significant"]),
        (&"request".into(), &Value::Null)
    );
    assert_eq!(
        (&both["before_ns"], &both["after_ns"], &both["change_ns"]),
        (&46_186_000.into(), &57_860_000.into(), &11_674_000.into())
    );
    // Under the controller, 45 and 64 % of the samples read from the socket.
    let profile = |name: &str, read: u32| {
        let rest = 1_000 - read;
        let text =
            format!("run;App.get;Socket.read {read}\nrun;App.get;App.write {rest}\nrun;idle;wait 99000\n");
        written(folder.path(), name, text)
    };
    let (one, other) = (profile("one.collapsed", 450), profile("other.collapsed", 640));
    let timed = json_of(&[
        "--before", &before, &one, "--after", &after, &other, "--under", "App.get",
    ]);
    let most = &timed["amounts"][0];
    assert_eq!(
        (&most["name"], &most["measure"]),
        (&"Socket.read".into(), &"ns".into())
    );
    let ms = |field: &str| most[field].as_f64().unwrap() / 1e6;
    assert!(
        (ms("before") - 20.78).abs() < 0.01 && (ms("after") - 37.03).abs() < 0.01,
        "{most}"
    );
    let text = lossy(&diff(&[&before, &after]).stdout);
    assert!(text.contains("+11.7 ms (+25.3 %) a request"), "{text}");
}

#[test]
fn artefacts_of_each_kind_are_compared() {
    for (before, after, unit) in [
        ("strace-summary", "strace-summary", "run"),
        ("iostat/healthy-x-12.7.5.txt", "iostat/burst-x.txt", "report"),
        ("collapsed/wall-java.txt", "collapsed/contended.txt", "whole"),
        ("thread-dump", "thread-dump", "dump"),
    ] {
        let first = |name: &str| -> String {
            let path = PathBuf::from(samples(name));
            if path.is_file() {
                return path.to_str().unwrap().to_owned();
            }
            let entries = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
            let mut files: Vec<PathBuf> = entries
                .filter(|path| path.extension().is_none_or(|end| end != "toml"))
                .collect();
            files.sort();
            files[0].to_str().unwrap().to_owned()
        };
        let (before, after) = (first(before), first(after));
        if !Path::new(&before).exists() || !Path::new(&after).exists() {
            panic!("{before} or {after} is not there");
        }
        let there = json_of(&[&before, &after]);
        assert_eq!(there["unit"], unit, "{before}");
        let itself = json_of(&[&before, &before]);
        assert_eq!(itself["amounts"], Value::Array(vec![]), "{before}");
        let back = json_of(&[&after, &before]);
        let change = |found: &Value| -> Vec<(String, i64)> {
            let amounts = found["amounts"].as_array().unwrap().iter();
            let mut all: Vec<_> = amounts
                .map(|one| {
                    let change = (one["change"].as_f64().unwrap() * 1e6).round() as i64;
                    (one["name"].as_str().unwrap().to_owned(), change)
                })
                .collect();
            all.sort();
            all
        };
        let negated: Vec<(String, i64)> = change(&back).into_iter().map(|(name, ns)| (name, -ns)).collect();
        assert_eq!(change(&there), negated, "{before} {after}");
    }
}

#[test]
fn what_has_nothing_in_common_is_refused_without_a_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let before = fixtures("before/1.json");
    let iostat = samples("iostat/burst-x.txt");
    refused(
        &[&before, &iostat],
        2,
        &["BEFORE is recordings of holdup, AFTER is figures over time"],
    );
    let rubbish = written(path, "rubbish\x1b[2J", "words that no tool prints\n");
    refused(&[&rubbish, &before], 2, &["has nothing that can be compared"]);
    refused(
        &["--per", "request", &before, &before],
        2,
        &["counts no requests", "--per request=BEFORE,AFTER"],
    );
    refused(&["--per", "0", &before, &before], 2, &["--per"]);
    refused(&[&before], 2, &[]);
    refused(&[&before, "no such file"], 1, &["no such file"]);
    let whole = fs::read_to_string(&before).unwrap();
    let cut = written(path, "cut", &whole[..whole.len() / 2]);
    refused(&[&cut, &before], 1, &["damaged"]);
    let newer = written(path, "newer", whole.replace("holdup.report/1", "holdup.report/2"));
    refused(
        &[&newer, &before],
        1,
        &["holdup.report/2", "reads holdup.report/1"],
    );
    let deep = format!("{{\"schema\":\"holdup.report/1\",\"x\":{}", "[".repeat(1 << 20));
    refused(&[&written(path, "deep", deep), &before], 1, &["damaged"]);
    refused(
        &[&written(path, "parquet", b"PAR1 and nothing more"), &before],
        1,
        &[],
    );
    let fifo = path.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    refused(
        &[fifo.to_str().unwrap(), &before],
        1,
        &["neither a file nor a directory"],
    );
}

#[test]
fn a_comparison_is_a_page_that_show_opens_again() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let page = page.to_str().unwrap();
    let (before, after) = (fixtures("before"), fixtures("after"));
    let without = json_of(&[&before, &after]);
    let with = json_of(&["--html", page, &before, &after]);
    let show = |format: &str| {
        let mut command = Command::new(HOLDUP);
        command
            .args(["show", page, "--format", format])
            .stdin(Stdio::null());
        lossy(&command.output().unwrap().stdout)
    };
    let shown: Value = serde_json::from_str(&show("json")).unwrap();
    assert_eq!(shown["comparison"], with);
    let text = lossy(&diff(&[&before, &after]).stdout);
    assert_eq!(show("terminal"), text);
    // The stacks are there for the picture, and the sums of both sides are what was reported in words.
    assert_eq!(without["stacks"], Value::Null);
    let nodes = with["stacks"]["nodes"].as_array().unwrap();
    let sum = |side: &str| nodes.iter().map(|node| node[side].as_f64().unwrap()).sum::<f64>();
    for (side, one) in [("before", &with["before_ns"]), ("after", &with["after_ns"])] {
        let one = one.as_f64().unwrap();
        assert!(
            (sum(side) - one).abs() < 0.02 * one,
            "{side}: {} of {one}",
            sum(side)
        );
    }
    let page = fs::read_to_string(page).unwrap();
    let title = page.split_once("<title>").unwrap().1;
    assert!(title.starts_with("AFTER is slower than BEFORE: +"), "{title:.80}");
}

#[test]
fn a_profile_twice_as_long_has_the_same_picture() {
    let folder = tempfile::tempdir().unwrap();
    let stacks = "main;read_[k] 400\nmain;write 500\nmain 100\n";
    let once = written(folder.path(), "once", stacks);
    let twice = written(folder.path(), "twice", stacks.repeat(2));
    let page = folder.path().join("page.html");
    let same = json_of(&["--html", page.to_str().unwrap(), &once, &twice]);
    assert_eq!(same["amounts"], Value::Array(vec![]));
    let nodes = same["stacks"]["nodes"].as_array().unwrap();
    assert!(
        nodes.len() == 4 && nodes.iter().all(|node| node["before"] == node["after"]),
        "{nodes:?}"
    );
}

#[test]
fn hostile_names_stay_in_their_lines() {
    let folder = tempfile::tempdir().unwrap();
    let stacks = |name: &str, weight: u32| {
        let text = format!("main;\x1b[2Jevil\u{202e};x 100\nmain;y {weight}\nmain;z 5\n");
        written(folder.path(), name, text)
    };
    let output = diff(&[&stacks("a", 100), &stacks("b", 900)]);
    let text = lossy(&output.stdout);
    assert!(
        text.contains("evil") && !text.contains('\x1b') && !text.contains('\u{202e}'),
        "{text}"
    );
}
