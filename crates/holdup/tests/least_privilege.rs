//! While it reads what hostile programs wrote, holdup has the capabilities that its table names and no others; CMD has all that holdup was
//! started with. Looked at from outside, in `/proc/PID/task/*/status`.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{Guarded, HOLDUP, holdup, lossy};

/// When this is over, the test has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// BPF, PERFMON, SYS_PTRACE, DAC_READ_SEARCH, CHECKPOINT_RESTORE, SYSLOG, SYS_RESOURCE, SYS_NICE, KILL, SETGID, SETUID.
const TRACE: u64 =
    1 << 39 | 1 << 38 | 1 << 19 | 1 << 2 | 1 << 40 | 1 << 34 | 1 << 24 | 1 << 23 | 1 << 5 | 1 << 6 | 1 << 7;

/// An ordinary user.
const NOBODY: u32 = 65_534;

/// A set of capabilities in the status of a thread.
fn set(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    u64::from_str_radix(line.unwrap_or_else(|| panic!("no {name}")).trim(), 16).unwrap()
}

fn statuses(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    let paths = tasks.flatten().map(|task| task.path().join("status"));
    paths.filter_map(|path| fs::read_to_string(path).ok()).collect()
}

/// Whether each thread has given up what is not in `most`, for good.
fn reduced(pid: u32, most: u64) -> bool {
    let statuses = statuses(pid);
    let least = |status: &String| {
        let within = |name| set(status, name) & !most == 0;
        ["CapEff:", "CapPrm:", "CapBnd:", "CapInh:", "CapAmb:"]
            .into_iter()
            .all(within)
            && status.contains("NoNewPrivs:\t1")
    };
    !statuses.is_empty() && statuses.iter().all(least)
}

fn until(what: &str, mut is: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is() {
        assert!(Instant::now() < end, "{what}");
        std::thread::yield_now();
    }
}

fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

fn sleeper() -> Guarded {
    Guarded::spawn(Command::new("sleep").arg("600"))
}

#[test]
fn attach_keeps_what_the_table_says() {
    let sleeper = sleeper();
    let mut command = Command::new(HOLDUP);
    command
        .args(["attach", "-d", "600", "-p", &sleeper.0.id().to_string()])
        .stdout(Stdio::null());
    let holdup = Guarded::spawn(&mut command);
    let pid = holdup.0.id();
    until("attach gives up its rights", || reduced(pid, TRACE));
    // What it kept is what it works with: not nothing.
    assert_eq!(
        set(&statuses(pid)[0], "CapEff:") & (1 << 39 | 1 << 19),
        1 << 39 | 1 << 19
    );
}

#[test]
fn run_keeps_what_the_table_says_and_cmd_keeps_all() {
    let own = fs::read_to_string("/proc/self/status").unwrap();
    let mut command = holdup(&["--quiet"]);
    command.args(["sleep", "600"]).stderr(Stdio::null());
    let holdup = Guarded::spawn(&mut command);
    let pid = holdup.0.id();
    until("run gives up its rights", || reduced(pid, TRACE));
    let named =
        |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n");
    let mut cmd = None;
    until("CMD begins", || {
        cmd = children(pid).into_iter().find(named);
        cmd.is_some()
    });
    let cmd = cmd.unwrap();
    let status = &statuses(cmd)[0];
    for name in ["CapEff:", "CapPrm:", "CapBnd:", "CapInh:", "CapAmb:"] {
        assert_eq!(set(status, name), set(&own, name), "{name}");
    }
    assert!(status.contains("NoNewPrivs:\t0"), "{status}");
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(cmd.cast_signed()),
        nix::sys::signal::Signal::SIGKILL,
    )
    .unwrap();
}

#[test]
fn the_processes_of_a_recorder_that_observe_keep_what_the_table_says() {
    let place = tempfile::tempdir().unwrap();
    let mut command = Command::new(HOLDUP);
    command
        .args(["record", "--every", "60s", "--dir"])
        .arg(place.path().join("recordings"))
        .stderr(Stdio::null());
    let recorder = Guarded::spawn(&mut command);
    let mut observer = None;
    until("an observer gives up its rights", || {
        observer = children(recorder.0.id())
            .into_iter()
            .find(|pid| reduced(*pid, TRACE));
        observer.is_some()
    });
}

#[test]
fn a_report_gets_into_another_users_folder_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let report = folder.path().join("r.json");
    let recording = folder.path().join("r.holdup");
    let written = |path: &Path| {
        let file = fs::metadata(path).unwrap();
        assert!(file.len() > 0 && file.mode() & 0o077 == 0, "{path:?}");
    };
    let mut command = holdup(&[
        "--json",
        report.to_str().unwrap(),
        "-o",
        recording.to_str().unwrap(),
    ]);
    let output = command.arg("true").output().unwrap();
    assert!(output.status.success(), "{}", lossy(&output.stderr));
    written(&report);
    written(&recording);
    // And again, over what is there.
    let output = Command::new(HOLDUP)
        .arg("show")
        .arg(&recording)
        .arg("--json")
        .arg(&report)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", lossy(&output.stderr));
    written(&report);
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        2,
        "nothing else is left"
    );
}
