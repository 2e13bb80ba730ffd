//! `holdup record`: segments that follow on each other, one recorder a folder, and what is left when it ends in either way.

#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod support;

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use support::{Guarded, HOLDUP};

/// Segments there are, by name, which is by time.
fn segments(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut segments: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "parquet"))
        .collect();
    segments.sort();
    segments
}

fn recorder(folder: &Path) -> Guarded {
    Guarded::spawn(
        Command::new(HOLDUP)
            .args(["record", "--every", "5s", "--dir"])
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped()),
    )
}

/// Until so many segments are there.
fn until(folder: &Path, count: usize, recorder: &mut Guarded) {
    while segments(folder).len() < count {
        assert!(recorder.0.try_wait().unwrap().is_none(), "the recorder has ended");
        std::thread::yield_now();
    }
}

fn signal(child: &Guarded, signal: Signal) {
    kill(Pid::from_raw(child.0.id().cast_signed()), signal).unwrap();
}

fn show(path: &Path) -> serde_json::Value {
    let output = Command::new(HOLDUP)
        .args(["show", "--json", "-"])
        .arg(path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn words(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn segments_follow_on_each_other_and_a_recorder_that_is_told_to_end_writes_the_last() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("recordings");
    let mut recorder_one = recorder(&folder);
    until(&folder, 2, &mut recorder_one);
    let second = recorder(&folder).output();
    assert_eq!(second.status.code(), Some(125));
    assert!(
        words(&second).contains("another holdup records to"),
        "{}",
        words(&second)
    );
    let before = segments(&folder).len();
    signal(&recorder_one, Signal::SIGTERM);
    let ended = recorder_one.output();
    assert_eq!(ended.status.code(), Some(0), "{}", words(&ended));
    let all = segments(&folder);
    assert!(all.len() > before, "the last one was written");
    // Nanoseconds since boot at which each began, and its length: none begins after the one before has ended.
    let mut ended_at = None;
    for segment in &all {
        let metadata = std::fs::metadata(segment).unwrap();
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777,
            0o600
        );
        let report = show(segment);
        assert_eq!(report["subject"]["command"][0], "the whole machine");
        let observed = report["coverage"]["observed_ns"].as_u64().unwrap();
        assert!(observed > 0 && report["coverage"]["own_cost_ns"].as_u64().unwrap() > 0);
        let from = report["recording"]["from"].as_str().unwrap().to_owned();
        let to = report["recording"]["to"].as_str().unwrap().to_owned();
        if let Some(before) = ended_at.replace(to) {
            assert!(from <= before, "a gap from {before} to {from}");
        }
    }
    // All of them together are reported as one.
    assert_eq!(show(&folder)["recording"]["segments"], all.len());
}

#[test]
fn what_a_killed_recorder_had_begun_is_written_and_the_next_one_takes_over() {
    let place = tempfile::tempdir().unwrap();
    let mut first = recorder(place.path());
    until(place.path(), 1, &mut first);
    let before = segments(place.path());
    signal(&first, Signal::SIGKILL);
    first.0.wait().unwrap();
    // Its child ends with it, and writes what it has.
    while segments(place.path()).len() == before.len() {
        std::thread::yield_now();
    }
    // It holds the folder as long as it writes.
    let lock = std::fs::File::open(place.path().join(".recorder")).unwrap();
    drop(Flock::lock(lock, FlockArg::LockExclusive).unwrap());
    let mut next = recorder(place.path());
    let there = segments(place.path()).len();
    until(place.path(), there + 1, &mut next);
    signal(&next, Signal::SIGINT);
    assert_eq!(next.output().status.code(), Some(0));
    for segment in segments(place.path()) {
        show(&segment);
    }
    let left = std::fs::read_dir(place.path()).unwrap().flatten();
    let unfinished: Vec<_> = left
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(".holdup-"))
        .collect();
    assert!(unfinished.is_empty(), "{unfinished:?}");
}

#[test]
fn what_cannot_be_recorded_is_one_sentence() {
    let place = tempfile::tempdir().unwrap();
    for (words, said) in [
        (vec!["--every", "1s"], "a length of time from 5s to 1h"),
        (
            vec!["--on", "psi.io>20"],
            "a percentage for psi.io (psi.io>20%), not psi.io>20",
        ),
        (vec!["--prometheus", "/tmp/x.txt"], "files that end in .prom"),
        (vec!["--keep-size", "0"], "a size such as 500M or 2G"),
        (
            vec!["--unit", "no-such-unit"],
            "no unit \"no-such-unit.service\" is running",
        ),
        (
            vec!["--dir", "/proc/none"],
            "cannot create the directory \"/proc/none\"",
        ),
    ] {
        let mut command = Command::new(HOLDUP);
        command.arg("record");
        if !words.contains(&"--dir") {
            command.arg("--dir").arg(place.path());
        }
        let output = command.args(words).stdin(Stdio::null()).output().unwrap();
        assert!(!output.status.success());
        assert!(
            self::words(&output).contains(said),
            "{said}: {}",
            self::words(&output)
        );
    }
}

/// Reads a recorder's words until it says this.
fn until_it_says(recorder: &mut Guarded, said: &str) -> String {
    let mut lines = BufReader::new(recorder.0.stderr.as_mut().unwrap()).lines();
    let mut all = String::new();
    for line in lines.by_ref() {
        let line = line.unwrap();
        all.push_str(&line);
        if line.contains(said) {
            return all;
        }
    }
    panic!("it never said {said:?}: {all}");
}

#[test]
fn a_full_disk_costs_segments_is_told_and_leaves_nothing_half() {
    let place = tempfile::tempdir().unwrap();
    // A file system of its own, and so small that no segment fits, in a mount namespace of its own.
    let script = "mount -t tmpfs -o size=16k,mode=0700 none \"$1\" && setpriv --pdeathsig KILL \"$0\" record --every 5s --dir \"$1\"; ls -A \"$1\"";
    let mut recorder = Guarded::spawn(
        Command::new("unshare")
            .args(["--mount", "sh", "-c", script, HOLDUP])
            .arg(place.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped()),
    );
    let said = until_it_says(&mut recorder, "a segment is lost");
    assert!(said.contains("No space left on device"), "{said}");
    // It goes on, in case there is room again; and the next loss is reported, too.
    until_it_says(&mut recorder, "a segment is lost");
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", recorder.0.id())).unwrap();
    let holdup: i32 = children.trim().parse().unwrap();
    kill(Pid::from_raw(holdup), Signal::SIGINT).unwrap();
    // Its own words are read to their end, so that it is not ended by a pipe that nobody reads.
    std::io::copy(recorder.0.stderr.as_mut().unwrap(), &mut std::io::sink()).unwrap();
    let ended = recorder.output();
    assert_eq!(
        String::from_utf8(ended.stdout).unwrap(),
        ".recorder\n",
        "nothing half is left"
    );
}

#[test]
fn a_folder_that_goes_away_is_told_and_the_recorder_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("recordings");
    let mut recorder = recorder(&folder);
    until(&folder, 1, &mut recorder);
    // The recorder may write a file while the folder is emptied.
    while folder.exists() {
        std::fs::remove_dir_all(&folder).ok();
    }
    let said = until_it_says(&mut recorder, "a segment is lost");
    assert!(said.contains("cannot write"), "{said}");
    std::fs::create_dir(&folder).unwrap();
    until(&folder, 1, &mut recorder);
    signal(&recorder, Signal::SIGTERM);
    std::io::copy(recorder.0.stderr.as_mut().unwrap(), &mut std::io::sink()).unwrap();
    assert!(recorder.0.wait().unwrap().success());
}

#[test]
fn detail_is_kept_where_a_condition_holds_and_figures_are_written_for_a_collector() {
    let place = tempfile::tempdir().unwrap();
    let segments_of = |condition: &str, folder: &Path, figures: &Path| {
        let mut recorder = Guarded::spawn(
            Command::new(HOLDUP)
                .args(["record", "--every", "5s", "--on", condition, "--dir"])
                .arg(folder)
                .arg("--prometheus")
                .arg(figures)
                .stdin(Stdio::null())
                .stderr(Stdio::null()),
        );
        until(folder, 3, &mut recorder);
        signal(&recorder, Signal::SIGINT);
        assert!(recorder.0.wait().unwrap().success());
        segments(folder)
    };
    let figures = place.path().join("holdup.prom");
    let words = |path: &Path| show(path)["recording"]["lines"].to_string();
    let always = segments_of("load<1000000", &place.path().join("always"), &figures);
    assert!(
        words(&always[1]).contains("in full detail, because load<1000000 ("),
        "{}",
        words(&always[1])
    );
    assert!(
        !show(&always[1])["timeline"]["pieces"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    let text = std::fs::read_to_string(&figures).unwrap();
    assert!(text.starts_with("# ") && text.contains("holdup_"), "{text}");
    let never = segments_of("blocked>1000000", &place.path().join("never"), &figures);
    assert!(!words(&never[1]).contains("in full detail"));
    assert_eq!(
        show(&never[1])["timeline"]["pieces"].as_array().unwrap().len(),
        0,
        "single pieces were not kept"
    );
    assert!(
        !show(&never[1])["windows"].as_array().unwrap().is_empty(),
        "when it was is told all the same"
    );
}

/// The processes that observe for a recorder:
/// that of this segment and, for a moment, that of the one before, which may not have ended yet.
fn observers(recorder: &Guarded) -> Vec<Pid> {
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", recorder.0.id())).unwrap();
    let pids = children.split_whitespace().map(|pid| pid.parse().unwrap());
    pids.map(Pid::from_raw).collect()
}

fn to_observers(recorder: &Guarded, signal: Signal) {
    let reached = observers(recorder)
        .into_iter()
        .filter(|pid| kill(*pid, signal).is_ok());
    assert!(reached.count() > 0, "nobody observes");
}

/// What segments say of themselves where they have nothing.
fn reasons(folder: &Path) -> Vec<String> {
    let gaps = |path: &PathBuf| show(path)["coverage"]["not_measured"].clone();
    let all = segments(folder).iter().map(gaps).collect::<Vec<_>>();
    let lines = all.iter().filter_map(|gaps| gaps.as_array()).flatten();
    let whole = lines.filter(|gap| gap["what"] == "everything in this segment");
    whole.map(|gap| gap["why"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_observer_that_never_ends_is_killed_and_its_segment_says_so() {
    let place = tempfile::tempdir().unwrap();
    let mut recorder = recorder(place.path());
    until(place.path(), 1, &mut recorder);
    // It does not act on any signal from here on.
    to_observers(&recorder, Signal::SIGSTOP);
    while !reasons(place.path())
        .iter()
        .any(|why| why.contains("did not end in time"))
    {
        assert!(recorder.0.try_wait().unwrap().is_none(), "the recorder has ended");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    // One that somebody kills has a segment, too; and the recorder goes on.
    let count = segments(place.path()).len();
    to_observers(&recorder, Signal::SIGKILL);
    while !reasons(place.path()).iter().any(|why| why.contains("SIGKILL")) {
        assert!(recorder.0.try_wait().unwrap().is_none(), "the recorder has ended");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    until(place.path(), count + 2, &mut recorder);
    signal(&recorder, Signal::SIGTERM);
    let ended = recorder.output();
    assert_eq!(ended.status.code(), Some(0), "{}", words(&ended));
}

#[test]
fn a_recorder_that_is_told_twice_to_end_waits_for_nobody() {
    let place = tempfile::tempdir().unwrap();
    let mut recorder = recorder(place.path());
    until(place.path(), 1, &mut recorder);
    to_observers(&recorder, Signal::SIGSTOP);
    signal(&recorder, Signal::SIGTERM);
    // It ends in any case; a second signal is what a person sends who does not want to wait for that.
    std::thread::sleep(std::time::Duration::from_millis(500));
    signal(&recorder, Signal::SIGTERM);
    let ended = recorder.output();
    assert_eq!(ended.status.code(), Some(0), "{}", words(&ended));
    assert!(
        reasons(place.path())
            .iter()
            .any(|why| why.contains("did not end in time"))
    );
}
