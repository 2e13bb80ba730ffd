//! `holdup try`: a wait is taken away and measured; what can't be is refused in one sentence; and nothing stays, also when holdup is
//! killed in the middle of it.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]
#![allow(clippy::print_stderr, reason = "what holdup said of a test that failed")]

mod support;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use support::{Guarded, HOLDUP, json, lossy};

/// What was killed goes in its own time. This is how long it may take before the test is given up, not what is measured.
const PATIENCE: Duration = Duration::from_secs(60);

fn attempt(words: &[&str]) -> Command {
    let mut command = Command::new(HOLDUP);
    command.arg("try").args(words).stdin(Stdio::null());
    command
}

fn refused(words: &[&str], status: i32, because: &str) {
    let output: Output = attempt(words).output().unwrap();
    let stderr = lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{words:?}: {stderr}");
    assert!(stderr.contains(because), "{words:?}: {stderr}");
}

#[test]
fn a_sleep_is_taken_away_and_the_report_says_what_that_brought() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let options = [
        "--without",
        "timer.sleep",
        "--yes",
        "--runs",
        "2",
        "--json",
        file.to_str().unwrap(),
        "--keep",
        directory.path().to_str().unwrap(),
    ];
    let cmd = ["--", "sh", "-c", "sleep 0.3; cat >/dev/null"];
    let attempt = || attempt(&[&options[..], &cmd].concat()).output().unwrap();
    // A kernel that hides a switch now and then hides a sleep with it, and of that run less is reported than there was.
    let seen_whole = |_: &Output| {
        ["1-as-is.json", "2-as-is.json"]
            .iter()
            .all(|name| json(&directory.path().join(name))["coverage"]["lost"] == serde_json::json!([]))
    };
    let output = (0..5).map(|_| attempt()).find(seen_whole).unwrap();
    let report = json(&file);
    let part = &report["experiment"];
    let pairs = part["pairs"].as_array().unwrap();
    assert_eq!((&report["subject"]["kind"], pairs.len()), (&"try".into(), 2));
    assert_eq!(
        (&part["without"], &part["runs"]),
        (&"timer.sleep".into(), &2.into())
    );
    assert_eq!(part["remaining_ns"], 0, "{part}");
    let sleep = part["causes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["cause"] == "timer.sleep")
        .unwrap();
    assert!(sleep["baseline_ns"].as_u64().unwrap() >= 300_000_000);
    let ratio = part["baseline_ns"].as_f64().unwrap() / part["measured_ns"].as_f64().unwrap();
    assert!((part["speedup"].as_f64().unwrap() / ratio - 1.0).abs() < 1e-3);
    let [low, high] = [0, 1].map(|end| part["interval"][end].as_f64().unwrap());
    assert!(low <= ratio && ratio <= high);
    assert!(part["risk"].as_str().unwrap().contains("ordering"));
    let stdout = lossy(&output.stdout);
    for word in [
        "predicted",
        "measured",
        "remaining",
        "risk",
        "Without timer.sleep",
    ] {
        assert!(stdout.contains(word), "{stdout}");
    }
    let stderr = lossy(&output.stderr);
    assert!(
        stderr.contains("NOT contained: the network") && stderr.contains("4 times"),
        "{stderr}"
    );
}

#[test]
fn a_file_in_the_place_of_another_is_there_for_cmd_alone() {
    // Reads of the device do not wait, so one run is all there is; its own mounts are not seen outside.
    let before = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let cmd = [
        "--without",
        "random.device",
        "--yes",
        "--",
        "head",
        "-c1",
        "/dev/random",
    ];
    let names = ["--without", "net.dns", "--yes", "--", "cat", "/etc/hosts"];
    for words in [&cmd[..], &names[..]] {
        let output = attempt(words).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", lossy(&output.stderr));
        assert!(lossy(&output.stdout).contains("there is nothing to remove"));
        assert_eq!(std::fs::read_to_string("/proc/self/mountinfo").unwrap(), before);
    }
}

/// A program that ordinary users may execute: the one that is tested is below a directory that they may not enter.
fn for_everybody(directory: &Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let binary = directory.join("holdup");
    std::fs::copy(HOLDUP, &binary).unwrap();
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o755)).unwrap();
    binary
}

#[test]
fn an_ordinary_user_can_try_what_needs_no_root_and_is_told_the_rest() {
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65_534;
    let directory = tempfile::tempdir().unwrap();
    let binary = for_everybody(directory.path());
    let own = directory.path().join("own");
    std::fs::create_dir_all(own.join("queue")).unwrap();
    for path in [own.clone(), own.join("queue")] {
        // The group is another one's: a user namespace does not know it.
        std::os::unix::fs::chown(path, Some(NOBODY), Some(0)).unwrap();
    }
    let attempt = |words: &[&str]| {
        let mut command = Command::new(&binary);
        command.args(["try", "--yes"]).args(words).current_dir(&own);
        command
            .uid(NOBODY)
            .gid(NOBODY)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let options = ["--runs", "2", "--json", "report.json"];

    // A device that has nothing to sync and a sleep of no valid length are errors, unless nobody makes the call.
    let invalid =
        "import ctypes; print(ctypes.CDLL(None).nanosleep((ctypes.c_long * 2)(0, 2_000_000_000), None))";
    let sync = "dd if=/dev/null of=/dev/null conv=fsync status=none 2>/dev/null; echo $? >>answers";
    let sleep = format!("python3 -c '{invalid}' >>answers");
    for (cause, script, answers) in [
        ("disk.sync", sync, "1\n0\n0\n1\n"),
        ("timer.sleep", sleep.as_str(), "-1\n0\n0\n-1\n"),
    ] {
        let output = attempt(&[&["--without", cause], &options[..], &["--", "sh", "-c", script]].concat());
        let stderr = lossy(&output.stderr);
        assert_eq!(
            std::fs::read_to_string(own.join("answers")).unwrap(),
            answers,
            "{cause}: {stderr}"
        );
        std::fs::remove_file(own.join("answers")).unwrap();
        for word in ["/proc is sampled", "set-user-id programs", "nothing is predicted"] {
            assert!(stderr.contains(word), "{stderr}");
        }
        let report = json(&own.join("report.json"));
        assert_eq!(report["coverage"]["backend"], "proc");
        let part = &report["experiment"];
        assert_eq!(part["pairs"].as_array().map(Vec::len), Some(2), "{part}");
        assert_eq!(part["predicted_ns"], serde_json::Value::Null);
        assert!(part["notes"].to_string().contains("an estimate"), "{part}");
    }

    let queue = own.join("queue");
    let memory = ["--without", "disk", "--memory", queue.to_str().unwrap()];
    let writes = ["--", "sh", "-c", "echo more >>queue/file"];
    let output = attempt(&[&memory[..], &options[..], &writes[..]].concat());
    let lines = std::fs::read_to_string(queue.join("file")).unwrap();
    assert_eq!(lines, "more\nmore\n", "{}", lossy(&output.stderr));

    let refused = |words: &[&str], because: &str| {
        let output = attempt(words);
        let stderr = lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(because), "{stderr}");
    };
    refused(&["--without", "net.dns", "--", "true"], "needs root");
    refused(
        &["--without", "disk.sync", "--user", "root", "--", "true"],
        "needs root",
    );
    std::os::unix::fs::chown(queue.join("file"), Some(NOBODY), Some(0)).unwrap();
    refused(&[&memory[..], &writes[..]].concat(), "another group");
}

#[test]
fn what_can_not_be_done_is_one_sentence_that_says_why() {
    let sync = ["--without", "disk.sync", "--yes", "-q", "--"];
    let sleep = ["--without", "timer.sleep", "--yes", "-q", "--"];
    refused(&["--without", "disk.sync", "--", "true"], 2, "--yes");
    refused(
        &["--without", "disk.snyc", "--yes", "--", "true"],
        2,
        "no cause \"disk.snyc\"",
    );
    refused(
        &["--without", "cpu.user", "--yes", "--", "true"],
        2,
        "run --predict",
    );
    refused(
        &["--without", "process.child", "--yes", "--", "true"],
        2,
        "run --predict",
    );
    refused(
        &["--without", "lock.file", "--yes", "--", "true"],
        2,
        "--memory DIR",
    );
    refused(
        &["--without", "disk", "--memory", "/no/such", "--yes", "--", "true"],
        125,
        "/no/such",
    );
    refused(
        &[&sync[..], &["no-such-program-anywhere"]].concat(),
        127,
        "no-such-program-anywhere",
    );
    refused(
        &[&sync[..], &["sh", "-c", "echo broken >&2; exit 3"]].concat(),
        1,
        "stderr: broken",
    );
    refused(
        &[&sync[..], &["sh", "-c", "read word </dev/tty"]].concat(),
        1,
        "no terminal",
    );
    let polls = ["python3", "-c", "import select; select.select([], [], [], 0.3)"];
    refused(&[&sleep[..], &polls].concat(), 1, "with a time limit");
    let fails = [
        "sh",
        "-c",
        "sleep 0.3; python3 -c 'import time; a = time.time(); time.sleep(0.2); exit(time.time() - a < 0.1)'",
    ];
    refused(&[&sleep[..], &fails].concat(), 1, "without timer.sleep");
    let endless = [
        "--without",
        "timer.sleep",
        "--timeout",
        "1",
        "--yes",
        "-q",
        "--",
        "sleep",
        "1000",
    ];
    refused(&endless, 1, "--timeout");
    let prepare = [
        "--without",
        "timer.sleep",
        "--prepare",
        "exit 4",
        "--yes",
        "-q",
        "--",
        "true",
    ];
    refused(&prepare, 125, "--prepare");
}

#[test]
fn where_no_namespaces_are_allowed_it_says_what_is_missing() {
    let words = [
        "--bounding-set",
        "-sys_admin",
        "--inh-caps",
        "-sys_admin",
        HOLDUP,
        "try",
        "--yes",
    ];
    let mut command = Command::new("setpriv");
    command
        .args(words)
        .args(["--without", "disk.sync", "-q", "--", "true"]);
    let output = command.output().unwrap();
    let stderr = lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{stderr}");
    for word in ["CAP_SYS_ADMIN", "nothing was run", "run --predict"] {
        assert!(stderr.contains(word), "{stderr}");
    }
}

/// Where CMD is when holdup is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// In the first run's `--prepare`.
    Prepare,
    /// In the first run, as it is.
    AsIs,
    /// In the second, without.
    Without,
}

/// CMD waits for a lock that the test holds; without, it does not. Then it changes the directory and says so, and waits to go on.
const CMD: &str = r#"
    flock "$0/queue/lock" true
    echo more >>"$0/queue/file"; echo new >"$0/queue/made.$(cat "$0/number")"; rm -f "$0/queue/old"
    sleep 1000 & echo here >"$0/here"; read word <"$0/go"; kill $!
"#;

const PREPARE: &str = r#"echo prepare >"$0/here"; read word <"$0/go""#;

#[test]
fn killed_at_any_moment_it_leaves_nothing_mounted_running_or_changed() {
    for moment in [Moment::Prepare, Moment::AsIs, Moment::Without] {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::create_dir(at("queue")).unwrap();
        for name in ["queue/lock", "queue/file", "queue/old", "number"] {
            std::fs::write(at(name), "1").unwrap();
        }
        for name in ["here", "go"] {
            nix::unistd::mkfifo(&at(name), nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
        }
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let lock = File::open(at("queue/lock")).unwrap();
        flock(&lock, libc::LOCK_EX);
        let root = directory.path().to_str().unwrap().to_owned();
        let prepare = PREPARE.replace("$0", &root);
        let mut command = attempt(&[
            "--without",
            "lock.file",
            "--memory",
            at("queue").to_str().unwrap(),
            "--yes",
        ]);
        command.args(["--prepare", &prepare, "--", "sh", "-c", CMD, &root]);
        let words = File::create(at("words")).unwrap();
        let mut holdup = Guarded::spawn(command.stdout(words.try_clone().unwrap()).stderr(words));
        let _printed = Words(at("words"));
        assert_eq!(said(&at("here")), "prepare\n");
        if moment != Moment::Prepare {
            go(&at("go"));
            wait_until(|| somebody_waits_for(&lock));
            // Long enough to be worth taking away; nothing hangs on how long.
            std::thread::sleep(Duration::from_millis(200));
            flock(&lock, libc::LOCK_UN);
            assert_eq!(said(&at("here")), "here\n");
        }
        if moment == Moment::Without {
            flock(&lock, libc::LOCK_EX);
            go(&at("go"));
            assert_eq!(said(&at("here")), "prepare\n");
            std::fs::write(at("number"), "2").unwrap();
            go(&at("go"));
        }
        let before = content(&at("queue"));
        if moment == Moment::Without {
            assert_eq!(said(&at("here")), "here\n");
        }
        assert!(living(&root) > 1, "{moment:?}");
        holdup.signal(nix::sys::signal::Signal::SIGKILL);
        holdup.0.wait().unwrap();
        wait_until(|| living(&root) == 0);
        assert_eq!(content(&at("queue")), before, "{moment:?}");
        assert_eq!(
            before.contains_key(Path::new("made.1")),
            moment != Moment::Prepare
        );
        assert_eq!(
            std::fs::read_to_string("/proc/self/mountinfo").unwrap(),
            mounts,
            "{moment:?}"
        );
    }
}

/// What holdup said into a file, which is printed when the test fails.
struct Words(PathBuf);

impl Drop for Words {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", std::fs::read_to_string(&self.0).unwrap_or_default());
        }
    }
}

/// The line that somebody says into a FIFO; whoever never does must not keep the test for good.
fn said(path: &Path) -> String {
    let mut fifo = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .unwrap();
    let mut text = String::new();
    wait_until(|| {
        let mut bytes = [0; 64];
        let length = fifo.read(&mut bytes).unwrap_or(0);
        text += &lossy(&bytes[..length]);
        text.ends_with('\n')
    });
    text
}

/// Lets somebody go on who reads a FIFO, or is about to.
fn go(path: &Path) {
    let mut opened = None;
    wait_until(|| {
        opened = OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)
            .ok();
        opened.is_some()
    });
    opened.unwrap().write_all(b"go\n").unwrap();
}

fn flock(file: &File, how: i32) {
    // SAFETY: a descriptor and an integer.
    assert_eq!(unsafe { libc::flock(file.as_raw_fd(), how) }, 0);
}

/// Whether a lock is waited for, by the kernel's list.
fn somebody_waits_for(file: &File) -> bool {
    let inode = format!(":{} ", file.metadata().unwrap().ino());
    let locks = std::fs::read_to_string("/proc/locks").unwrap();
    locks
        .lines()
        .any(|line| line.contains("->") && line.contains(&inode))
}

fn wait_until(mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < PATIENCE, "it does not come to that");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Every file below a directory, with what is in it.
fn content(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .map(|path| {
            (
                path.strip_prefix(directory).unwrap().to_owned(),
                std::fs::read(&path).unwrap(),
            )
        })
        .collect()
}

/// Processes that have this directory in their command line or environment, or hold a file below it; not this one.
fn living(directory: &str) -> usize {
    let own = std::process::id().to_string();
    let processes = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap());
    let processes = processes.filter(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name != own && name.starts_with(|first: char| first.is_ascii_digit())
    });
    processes
        .filter(|entry| {
            let has = |name: &str| {
                let text = std::fs::read(entry.path().join(name)).unwrap_or_default();
                lossy(&text).contains(directory)
            };
            has("cmdline") || has("mountinfo")
        })
        .count()
}
