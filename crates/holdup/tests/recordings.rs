//! Recordings: what `run -o` and `attach -o` write, `show` says again; and of a directory of minutes any part.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

#[path = "../../holdup-recording/examples/story/minutes.rs"]
mod minutes;
#[path = "../../holdup-recording/examples/story/look.rs"]
mod story_look;
mod support;

use minutes::{SLOW, minute};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use story_look::look;
use support::{Guarded, HOLDUP, holdup, json, list, lossy, number};

/// `holdup show WORDS`, by a reader in UTC.
fn show(path: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(HOLDUP);
    command.arg("show").arg(path).args(words).env("TZ", "UTC");
    command.output().unwrap()
}

/// The report of `holdup show`, which ends well.
fn shown(path: &Path, words: &[&str]) -> Value {
    let output = show(path, &[words, &["--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Ten minutes, the eighth with a slow disk.
fn ten_minutes() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..10 {
        let path = folder.path().join(format!("{number}.parquet"));
        holdup_recording::save(&minute(number, 2), &path).unwrap();
    }
    folder
}

/// What both have but for what is said of the recording.
fn same(live: &Value, mut recorded: Value) {
    let recording = recorded.as_object_mut().unwrap().remove("recording").unwrap();
    assert_eq!(number(&recording, "segments"), 1);
    assert_eq!(live, &recorded);
}

#[test]
fn a_recorded_run_is_told_as_it_was_live() {
    let folder = tempfile::tempdir().unwrap();
    let (live, recording) = (folder.path().join("live.json"), folder.path().join("run.parquet"));
    let options = [
        "-q",
        "--json",
        live.to_str().unwrap(),
        "-o",
        recording.to_str().unwrap(),
    ];
    let script = "sleep 0.05; dd if=/dev/zero of=\"$0\" bs=4k count=2 oflag=dsync; exit 3";
    let file = folder.path().join("written");
    let status = holdup(&options)
        .args(["sh", "-c", script])
        .arg(file)
        .output()
        .unwrap()
        .status;
    assert_eq!(status.code(), Some(3));
    let live = json(&live);
    assert!(!list(&live, "waits").is_empty());
    same(&live, shown(&recording, &[]));
    let segment = holdup_recording::read_one(&recording).unwrap();
    assert!(!segment.attributed.timeline.pieces.is_empty());
    let libc = &segment.head.build_ids["libc.so.6"];
    assert!(
        libc.len() == 40 && libc.bytes().all(|digit| digit.is_ascii_hexdigit()),
        "{libc}"
    );
}

#[test]
fn what_was_attached_to_is_told_as_it_was_live() {
    let folder = tempfile::tempdir().unwrap();
    let (live, recording) = (folder.path().join("live.json"), folder.path().join("run.parquet"));
    let sleeper = Guarded::spawn(Command::new("sleep").arg("600"));
    let pid = sleeper.0.id().to_string();
    let mut command = Command::new(HOLDUP);
    command
        .args(["attach", "-q", "-d", "0.2", "-p", &pid, "--json"])
        .arg(&live)
        .arg("-o")
        .arg(&recording);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", lossy(&output.stderr));
    let live = json(&live);
    // What holdup made of it afterwards is no part of what it saw of the machine.
    let stretches = list(&live["host_figures"], "stretches");
    let end = stretches
        .iter()
        .map(|one| number(one, "from_ns") + number(one, "ns"))
        .max();
    assert!(
        end.unwrap() <= number(&live["subject"], "wall_ns"),
        "{end:?} {}",
        live["subject"]
    );
    same(&live, shown(&recording, &[]));
}

#[test]
fn a_look_at_the_machine_is_told_as_it_was_live() {
    let folder = tempfile::tempdir().unwrap();
    let (live, recording) = (
        folder.path().join("live.json"),
        folder.path().join("host.parquet"),
    );
    let mut command = Command::new(HOLDUP);
    command.args(["host", "-q", "-d", "1", "--json"]).arg(&live);
    let output = command.arg("-o").arg(&recording).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", lossy(&output.stderr));
    let live = json(&live);
    assert!(!list(&live["host"], "resources").is_empty(), "{live}");
    same(&live, shown(&recording, &[]));
    // A page of it, too, and what it says is not that nothing waited.
    let page = folder.path().join("page.html");
    assert!(
        show(&recording, &["--html", page.to_str().unwrap()])
            .status
            .success()
    );
    assert_eq!(shown(&page, &[])["host"], live["host"]);
    let of_one = show(&recording, &["--process", "sh"]);
    assert_eq!(of_one.status.code(), Some(1));
    assert!(
        lossy(&of_one.stderr).contains("remove --process"),
        "{}",
        lossy(&of_one.stderr)
    );
    // Beside another it is compared by its figures.
    let output = Command::new(HOLDUP)
        .args(["diff", "--json", "-", "--per", "report"])
        .args([&recording, &recording])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", lossy(&output.stderr));
}

#[test]
fn of_looks_the_last_is_told_and_among_waits_of_threads_none() {
    let folder = tempfile::tempdir().unwrap();
    for number in [3, 4] {
        let path = folder.path().join(format!("look-{number}.parquet"));
        holdup_recording::save(&look(number), &path).unwrap();
    }
    let text = lossy(&show(folder.path(), &[]).stdout);
    assert!(
        text.contains("1 snapshot of this machine before it is not shown"),
        "{text}"
    );
    let report = shown(folder.path(), &[]);
    assert_eq!(report["subject"]["kind"], "host");
    assert_eq!(report["recording"]["from"], "2026-03-02T12:04:00Z");
    assert!(
        report["host"]["resources"].to_string().contains("sda"),
        "{}",
        report["host"]
    );
    for number in 0..6 {
        let path = folder.path().join(format!("{number}.parquet"));
        holdup_recording::save(&minute(number, 1), &path).unwrap();
    }
    let report = shown(folder.path(), &[]);
    assert_eq!(
        (&report["subject"]["kind"], &report["host"]),
        (&"attach".into(), &Value::Null)
    );
    assert_eq!(report["recording"]["segments"], 6);
    let text = lossy(&show(folder.path(), &["--worst"]).stdout);
    assert!(
        text.contains("2 snapshots of the whole machine are not included: `holdup show"),
        "{text}"
    );
}

#[test]
fn secrets_in_arguments_are_not_kept_and_all_arguments_only_where_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let of = |options: &[&str]| {
        let path = folder.path().join("x.parquet");
        let options = [&["-q", "-o", path.to_str().unwrap()], options].concat();
        let words = ["sh", "-c", "exit 0", "app", "--password=hunter2", "--level", "7"];
        assert!(holdup(&options).args(words).output().unwrap().status.success());
        shown(&path, &[])["subject"]["command"].to_string()
    };
    assert_eq!(
        of(&[]),
        r#"["sh","-c","exit 0","app","--password=***","--level","7"]"#
    );
    assert_eq!(of(&["--redact"]), r#"["sh","[6 arguments taken out]"]"#);
}

#[test]
fn a_place_that_takes_none_is_found_before_the_command_runs() {
    let folder = tempfile::tempdir().unwrap();
    let ran = folder.path().join("ran");
    for place in ["gone/x.parquet", "."] {
        let place = folder.path().join(place);
        let output = holdup(&["-o", place.to_str().unwrap()])
            .arg("touch")
            .arg(&ran)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(125));
        assert_eq!(
            lossy(&output.stderr).lines().count(),
            1,
            "{}",
            lossy(&output.stderr)
        );
    }
    assert!(!ran.exists());
}

#[test]
fn a_full_disk_is_one_sentence_and_the_commands_status_stays() {
    let script = r#"mount -t tmpfs -o size=4k holdup-full "$1" && "$0" run -q -o "$1/x.parquet" -- sh -c 'exit 3'; echo $?; ls -A "$1""#;
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("unshare");
    command
        .args(["-m", "sh", "-c", script, HOLDUP])
        .arg(folder.path());
    let output = command.output().unwrap();
    let said = lossy(&output.stderr);
    assert!(
        said.contains("cannot write") && said.contains("No space left on device"),
        "{said}"
    );
    assert_eq!(lossy(&output.stdout), "3\n", "{said}");
}

#[test]
fn a_time_is_found_and_what_was_then() {
    let folder = ten_minutes();
    let report = shown(folder.path(), &["--at", "12:07:30"]);
    assert_eq!(report["recording"]["from"], "2026-03-02T12:07:00Z");
    let sync = list(&report, "causes")
        .iter()
        .find(|cause| cause["cause"] == "disk.sync")
        .unwrap();
    assert_eq!(number(sync, "ns"), minutes::SLOW_SYNC);
    let report = shown(folder.path(), &["--last", "2m"]);
    assert_eq!(report["recording"]["segments"], 2);
    assert_eq!(report["recording"]["from"], "2026-03-02T12:08:00Z");
    let report = shown(folder.path(), &["--at", "2026-03-02 12:08", "--last", "3m"]);
    assert_eq!(report["recording"]["segments"], 3);
    let nothing = show(folder.path(), &["--at", "2026-03-01 12:00"]);
    assert_eq!(nothing.status.code(), Some(1));
    assert_eq!(
        lossy(&nothing.stderr),
        "holdup: nothing was recorded at 2026-03-01 12:00:00, but 10 segments from 2026-03-02 12:00:00 to 12:10:00\n"
    );
}

#[test]
fn several_segments_are_told_as_one() {
    let folder = ten_minutes();
    let whole = shown(folder.path(), &[]);
    assert_eq!(whole["recording"]["segments"], 10);
    assert_eq!(number(&whole["subject"], "wall_ns"), 10 * minutes::MINUTE);
    assert_eq!(list(&whole, "threads").len(), 3, "the same threads all the time");
    let qmgr = shown(folder.path(), &["--process", "qmgr"]);
    let sync = 9 * minutes::USUAL_SYNC + minutes::SLOW_SYNC;
    assert_eq!(number(&list(&qmgr, "causes")[1], "ns"), sync);
    assert_eq!(list(&qmgr, "threads").len(), 1);
    let disk = shown(folder.path(), &["--cause", "disk"]);
    assert!(
        list(&disk, "waits")
            .iter()
            .all(|wait| wait["cause"] == "disk.sync")
    );
    assert_eq!(disk["causes"], whole["causes"], "a share is one of the whole");
    assert_eq!(
        show(folder.path(), &["--process", "nginx"]).status.code(),
        Some(1)
    );
    assert_eq!(show(folder.path(), &["--request"]).status.code(), Some(1));
    assert_eq!(show(folder.path(), &["--cause", "dis"]).status.code(), Some(2));
}

#[test]
fn the_minute_that_was_unlike_the_others_is_found() {
    let folder = ten_minutes();
    let report = shown(folder.path(), &["--worst"]);
    let unlike = &report["recording"]["unlike"];
    assert_eq!(unlike["compared"], 10);
    let [one] = list(unlike, "segments").as_slice() else {
        panic!("{unlike}")
    };
    assert_eq!(one["from"], format!("2026-03-02T12:0{SLOW}:00Z"));
    assert_eq!(one["causes"][0]["cause"], "disk.sync");
    assert_eq!(report["recording"]["segments"], 1);
    let text = lossy(&show(folder.path(), &["--worst"]).stdout);
    assert!(
        text.contains("12:07:00 disk.sync 750 ms per second, usually 5.0 ms"),
        "{text}"
    );
}

#[test]
fn what_lies_between_segments_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let mut segments: Vec<_> = [0, 1, 3, 4, 5].map(|number| minute(number, 1)).into();
    // Set forward by an hour before the fourth, booted before the last.
    for segment in &mut segments[3..] {
        segment.head.started_unix += 3_600_000_000_000;
        segment.facts.unix_minus_monotonic = segment
            .facts
            .unix_minus_monotonic
            .map(|ns| ns + 3_600_000_000_000);
    }
    segments[4].head.boot_id = Some("another".to_owned());
    for (number, segment) in segments.iter().enumerate() {
        holdup_recording::save(segment, &folder.path().join(format!("{number}.parquet"))).unwrap();
    }
    let report = shown(folder.path(), &[]);
    let breaks = list(&report["recording"], "breaks");
    let kinds: Vec<&str> = breaks.iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        ["gap", "clock", "boot"],
        "nothing is missing where a clock was set"
    );
    assert_eq!(breaks[1]["ns"], 3_600_000_000_000_i64);
    let markdown = lossy(&show(folder.path(), &["--format", "markdown"]).stdout);
    let page = lossy(&show(folder.path(), &["--format", "html"]).stdout);
    for view in [markdown, page] {
        assert!(
            view.contains("5 segments") && view.contains("the machine rebooted"),
            "{view}"
        );
    }
    assert_eq!(
        list(&report, "threads").len(),
        4,
        "after a boot no thread is the same"
    );
}

#[test]
fn a_clock_that_was_set_back_leaves_the_order_of_what_happened() {
    let folder = tempfile::tempdir().unwrap();
    // The clock is set back by two minutes before the third.
    for number in 0..5 {
        let mut segment = minute(number, 1);
        if number >= 2 {
            let back = 120_000_000_000;
            segment.head.started_unix -= back;
            segment.facts.unix_minus_monotonic = segment.facts.unix_minus_monotonic.map(|ns| ns - back);
        }
        holdup_recording::save(&segment, &folder.path().join(format!("{}.parquet", 9 - number))).unwrap();
    }
    let report = shown(folder.path(), &[]);
    let breaks = list(&report["recording"], "breaks");
    let kinds: Vec<&str> = breaks.iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["clock"], "one break, and nothing counts twice");
    assert_eq!(breaks[0]["ns"], -120_000_000_000_i64);
    let text = lossy(&show(folder.path(), &[]).stdout);
    assert!(
        text.contains("the clock was set back by 2 min 0 s before 12:00:00"),
        "{text}"
    );
    assert!(!text.contains("counts twice"), "{text}");
    // A date of which there were two is reported with both.
    let both = shown(folder.path(), &["--at", "2026-03-02T12:00:30Z"]);
    assert_eq!(both["recording"]["segments"], 2);
}

#[test]
fn a_night_in_which_the_machine_slept_is_neither_a_gap_nor_a_clock_that_was_set() {
    let folder = tempfile::tempdir().unwrap();
    let night = 8 * 3_600_000_000_000_u64;
    for number in 0..4 {
        let mut segment = minute(number, 1);
        let slept = if number >= 2 { night } else { 0 };
        segment.head.started_unix += slept.cast_signed();
        let facts = &mut segment.facts;
        facts.boot_minus_monotonic = Some(slept);
        facts.unix_minus_monotonic = facts.unix_minus_monotonic.map(|ns| ns + slept.cast_signed());
        holdup_recording::save(&segment, &folder.path().join(format!("{number}.parquet"))).unwrap();
    }
    let report = shown(folder.path(), &[]);
    let breaks = list(&report["recording"], "breaks");
    let kinds: Vec<&str> = breaks.iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["suspended"]);
    assert_eq!(breaks[0]["ns"], night);
    let text = lossy(&show(folder.path(), &[]).stdout);
    assert!(text.contains("the machine was suspended for"), "{text}");
}

#[test]
fn a_damaged_segment_is_left_out_and_named() {
    let folder = ten_minutes();
    let path = folder.path().join("3.parquet");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let report = shown(folder.path(), &[]);
    assert_eq!(report["recording"]["segments"], 9);
    assert!(
        report["recording"]["problems"][0]
            .as_str()
            .unwrap()
            .contains("3.parquet")
    );
    let alone = show(&path, &[]);
    assert_eq!(alone.status.code(), Some(125));
    assert!(
        lossy(&alone.stderr).contains("is damaged (its end is missing"),
        "{}",
        lossy(&alone.stderr)
    );
}

#[test]
fn read_says_who_reads_recordings() {
    let folder = ten_minutes();
    let output = Command::new(HOLDUP)
        .arg("read")
        .arg(folder.path().join("0.parquet"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        lossy(&output.stderr).contains("is a recording; `holdup show` reads it"),
        "{}",
        lossy(&output.stderr)
    );
}
