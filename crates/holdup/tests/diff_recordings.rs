//! `holdup diff` of recordings, several runs on each side: the verdict, its significance, and which side is which.
//!
//! The recordings are Parquet files: minutes of a mail server whose disk takes as long as is planted, and runs of `sleep` that
//! `holdup run -o` recorded now.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

#[path = "../../holdup-recording/examples/story/minutes.rs"]
mod minutes;
mod support;

use holdup_evidence::Cause;
use minutes::{SLOW, minute};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{HOLDUP, holdup, lossy};

/// How the planted runs of one side vary, per mille of their mean: 1.2 % from run to run.
const VARIED: [u64; 4] = [985, 995, 1_010, 1_010];

/// Nanoseconds of a second that the queue manager waits for its disk, BEFORE and AFTER.
const SYNC_BEFORE: i64 = 100_000_000;
const SYNC_AFTER: i64 = 125_000_000;

/// `holdup diff`'s comparison, and its words.
fn json_and_text(arguments: &[&str]) -> (Value, String) {
    let diff = |format: &str| {
        let output = Command::new(HOLDUP)
            .args(["diff", "--format", format])
            .args(arguments)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", lossy(&output.stderr));
        lossy(&output.stdout)
    };
    let mut report: Value = serde_json::from_str(&diff("json")).unwrap();
    (report["comparison"].take(), diff("terminal"))
}

/// A recording of a minute in which the disk took so long a second, per mille of `ns`.
fn recorded(folder: &Path, name: &str, ns: i64, per_mille: u64) -> PathBuf {
    let mut segment = minute(0, 1);
    let planted = ns.unsigned_abs() * per_mille / 1_000 * 60;
    let all = &mut segment.attributed;
    let wait = all
        .waits
        .iter_mut()
        .find(|wait| wait.cause == Cause::DiskSync)
        .unwrap();
    let was = std::mem::replace(&mut wait.ns, planted);
    wait.path_ns = planted;
    let thread = all
        .threads
        .iter_mut()
        .find(|thread| thread.causes.contains_key(&Cause::DiskSync));
    thread.unwrap().causes.get_mut(&Cause::DiskSync).unwrap().ns = planted;
    all.path.get_mut(&Cause::DiskSync).unwrap().ns = planted;
    // What it does not wait for the disk it waits for work.
    for idle in all
        .waits
        .iter_mut()
        .filter(|wait| wait.cause == Cause::Idle && wait.asker.name.process == "qmgr")
    {
        idle.ns = idle.ns + was - planted;
    }
    let tally = all.path.get_mut(&Cause::Idle).unwrap();
    tally.ns = tally.ns + was - planted;
    let path = folder.join(format!("{name}-{per_mille}-{ns}.parquet"));
    holdup_recording::save(&segment, &path).unwrap();
    path
}

/// Both sides as `diff` takes them.
fn sides<'a>(before: &'a [PathBuf], after: &'a [PathBuf]) -> Vec<&'a str> {
    let text = |path: &'a PathBuf| path.to_str().unwrap();
    let mut words = vec!["--before"];
    words.extend(before.iter().map(text));
    words.push("--after");
    words.extend(after.iter().map(text));
    words
}

fn cause<'a>(given: &'a Value, id: &str) -> &'a Value {
    let mut causes = given["causes"].as_array().unwrap().iter();
    causes.find(|one| one["cause"] == id).unwrap()
}

/// Four runs of this length a second, each in a file of its own.
fn four(folder: &Path, name: &str, ns: i64) -> Vec<PathBuf> {
    let runs = VARIED.iter().enumerate();
    runs.map(|(at, per_mille)| recorded(folder, &format!("{name}{at}"), ns, *per_mille))
        .collect()
}

#[test]
fn recordings_of_four_runs_each_tell_which_side_is_slower_and_that_it_is_no_chance() {
    let folder = tempfile::tempdir().unwrap();
    let before = four(folder.path(), "before", SYNC_BEFORE);
    let after = four(folder.path(), "after", SYNC_AFTER);
    let (slower, text) = json_and_text(&sides(&before, &after));
    assert_eq!(
        (&slower["unit"], &slower["before_n"], &slower["after_n"]),
        (&"second".into(), &4.into(), &4.into())
    );
    assert_eq!(
        (&slower["significant"], &slower["compared"]),
        (&true.into(), &"recordings".into())
    );
    let sync = cause(&slower, "disk.sync");
    assert_eq!(
        (
            &sync["before_ns"],
            &sync["after_ns"],
            &sync["change_ns"],
            &sync["significant"]
        ),
        (
            &SYNC_BEFORE.into(),
            &SYNC_AFTER.into(),
            &(SYNC_AFTER - SYNC_BEFORE).into(),
            &true.into()
        )
    );
    let interval: Vec<i64> = slower["interval_ns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|end| end.as_i64().unwrap())
        .collect();
    assert!(
        interval[0] > 0 && (interval[0]..=interval[1]).contains(&(SYNC_AFTER - SYNC_BEFORE)),
        "{interval:?}"
    );
    // Nothing else changed, and nothing else is claimed.
    let claimed = slower["causes"].as_array().unwrap().iter();
    let claimed: Vec<&Value> = claimed.filter(|one| one["significant"] == true).collect();
    assert_eq!(claimed, [sync]);
    let verdict = slower["verdict"][0].as_str().unwrap();
    assert!(
        verdict.starts_with("AFTER is slower than BEFORE: +25.0 ms (+")
            && verdict.contains("all of it waiting for data to be safe on disk"),
        "{verdict}"
    );
    assert!(text.contains("+25.0 ms  BEFORE 100 ms    AFTER 125 ms"), "{text}");

    // Turned round it is the other way round, and as sure.
    let (faster, _) = json_and_text(&sides(&after, &before));
    assert_eq!(
        (&faster["significant"], &faster["p"]),
        (&true.into(), &slower["p"])
    );
    assert_eq!(
        faster["change_ns"].as_i64().unwrap(),
        -slower["change_ns"].as_i64().unwrap()
    );
    let verdict = faster["verdict"][0].as_str().unwrap();
    assert!(
        verdict.starts_with("AFTER is faster than BEFORE: -25.0 ms (-"),
        "{verdict}"
    );
}

#[test]
fn a_difference_that_runs_have_among_themselves_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let before = four(folder.path(), "before", SYNC_BEFORE);
    // Half a per cent more, where runs vary by 1.2.
    let after = four(folder.path(), "after", SYNC_BEFORE + SYNC_BEFORE / 200);
    let (both, text) = json_and_text(&sides(&before, &after));
    assert_eq!(both["significant"], false, "{both}");
    assert_eq!(cause(&both, "disk.sync")["significant"], false);
    let mut causes = both["causes"].as_array().unwrap().iter();
    assert!(causes.all(|one| one["significant"] != true), "{both}");
    assert!(text.contains("No significant difference"), "{text}");
}

#[test]
fn three_runs_each_are_too_few_to_tell() {
    let folder = tempfile::tempdir().unwrap();
    let before = four(folder.path(), "before", SYNC_BEFORE);
    let after = four(folder.path(), "after", SYNC_AFTER);
    let (both, text) = json_and_text(&sides(&before[..3], &after[..3]));
    assert_eq!(both["significant"], Value::Null);
    let verdict = both["verdict"][0].as_str().unwrap();
    assert!(verdict.starts_with("AFTER took longer than BEFORE"), "{verdict}");
    // The terminal's lines break anywhere.
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("Record at least four runs of each to know"),
        "{text}"
    );
}

#[test]
fn the_same_recording_twice_as_long_shows_no_difference() {
    let folder = tempfile::tempdir().unwrap();
    let [once, twice] = ["once", "twice"].map(|name| folder.path().join(name));
    // What the story's servers do comes again every five minutes; the slow minute is among none of these.
    let first = SLOW + 3;
    for (place, minutes) in [(&once, 5), (&twice, 10)] {
        std::fs::create_dir(place).unwrap();
        for number in first..first + minutes {
            holdup_recording::save(&minute(number, 2), &place.join(format!("{number}.parquet"))).unwrap();
        }
    }
    let (once, twice) = (once.to_str().unwrap(), twice.to_str().unwrap());
    for both in [[once, twice], [twice, once]] {
        let (same, text) = json_and_text(&both);
        assert_eq!((&same["before_n"], &same["after_n"]), (&1.into(), &1.into()));
        assert_eq!(same["unit"], "second");
        assert!(same["before_ns"].as_i64().unwrap() > 0);
        assert_eq!(
            (&same["before_ns"], &same["change_ns"]),
            (&same["after_ns"], &0.into())
        );
        let changed = same["causes"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["change_ns"] != 0);
        assert_eq!(changed.count(), 0, "{same}");
        assert!(
            text.contains("No difference: BEFORE and AFTER take") && !text.contains("Where the time went"),
            "{text}"
        );
    }
}

#[test]
fn real_runs_that_were_recorded_tell_what_was_planted() {
    let folder = tempfile::tempdir().unwrap();
    let [before, after] = [("before", "0.02"), ("after", "0.5")].map(|(name, length)| {
        let place = folder.path().join(name);
        std::fs::create_dir(&place).unwrap();
        for run in 0..4 {
            let file = place.join(format!("{run}.parquet"));
            let status = holdup(&["-q", "-o", file.to_str().unwrap()])
                .args(["sleep", length])
                .output()
                .unwrap()
                .status;
            assert!(status.success());
        }
        place.to_str().unwrap().to_owned()
    });
    let (both, text) = json_and_text(&[&before, &after]);
    assert_eq!(
        (&both["unit"], &both["before_n"], &both["after_n"]),
        (&"run".into(), &4.into(), &4.into()),
        "{both}"
    );
    // Both slept for as long as they were reported, whatever else the machine does.
    let sleep = cause(&both, "timer.sleep");
    assert_eq!(sleep["significant"], true, "{both}");
    let [slept, longer] = ["before_ns", "after_ns"].map(|side| sleep[side].as_i64().unwrap());
    assert!(slept >= 20_000_000 && longer >= 500_000_000, "{sleep}");
    assert!(text.contains("BEFORE sleep 0.02, AFTER sleep 0.5"), "{text}");
}
