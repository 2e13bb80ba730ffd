//! `holdup attach` without BPF and without root: what an ordinary user learns of what they run already.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};
use support::{Guarded, HOLDUP, list, lossy, number};

/// An ordinary user.
const NOBODY: [&str; 5] = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];

/// A copy of holdup that anybody may run, in a directory that lives as long as this.
struct Open(tempfile::TempDir);

impl Open {
    fn new() -> Open {
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        // By another process: a file that is open for writing here is so in what other tests start meanwhile, and can't be run.
        let copied = Command::new("cp")
            .arg(HOLDUP)
            .arg(directory.path().join("holdup"))
            .status();
        assert!(copied.unwrap().success());
        Open(directory)
    }

    /// `holdup attach` as an ordinary user.
    fn attach(&self, words: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        command.args(NOBODY).arg(self.0.path().join("holdup"));
        command
            .arg("attach")
            .args(words)
            .args(["--format", "json"])
            .stdin(Stdio::null());
        command
    }
}

fn json_of(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{}", lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    // All observed time is in exactly one cause.
    let sum =
        |of: &serde_json::Value| -> u64 { list(of, "causes").iter().map(|cause| number(cause, "ns")).sum() };
    assert_eq!(sum(&report), number(&report["coverage"], "observed_ns"));
    for thread in list(&report, "threads") {
        assert_eq!(sum(thread), number(thread, "wall_ns"), "{thread}");
    }
    assert_eq!(report["coverage"]["backend"], "proc");
    report
}

/// A program whose main thread ends as soon as another, which says so, sleeps.
const WITHOUT_MAIN_THREAD: &str = "\
import ctypes, threading, time
def nap():
    print('up', flush=True)
    time.sleep(1000)
threading.Thread(target=nap).start()
ctypes.CDLL(None).pthread_exit(None)";

#[test]
fn a_process_whose_main_thread_has_ended_is_no_zombie() {
    let open = Open::new();
    let mut program = theirs(&["/usr/bin/python3", "-c", WITHOUT_MAIN_THREAD]);
    let mut program = Guarded::spawn(program.stdout(Stdio::piped()));
    let pid = program.0.id();
    support::read_until(program.0.stdout.as_mut().unwrap(), "up\n");
    let status = format!("/proc/{pid}/status");
    while !std::fs::read_to_string(&status).unwrap().contains("State:\tZ") {
        std::thread::yield_now();
    }
    let report = json_of(
        &open
            .attach(&["-p", &pid.to_string(), "--backend", "proc", "-d", "1"])
            .output()
            .unwrap(),
    );
    let wait = &list(&report, "waits")[0];
    assert_eq!(wait["cause"], "timer.sleep", "{wait:#}");
    // Its code is known, too: the kernel shows it below the threads that run.
    assert!(wait["asker"]["frame"].is_string(), "{wait:#}");
}

/// The same user's command.
fn theirs(words: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(NOBODY).args(words);
    command
}

/// `cat`, in a read of the test's pipe.
fn reader(mut command: Command) -> Guarded {
    let reader = Guarded::spawn(command.stdin(Stdio::piped()).stdout(Stdio::null()));
    until_in(reader.0.id(), "cat", "0 0x0 ");
    reader
}

/// Until it is this program, in this call.
fn until_in(pid: u32, name: &str, call: &str) {
    let text = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
    while text("comm").trim() != name || !text("syscall").starts_with(call) {}
}

fn lacks(report: &serde_json::Value, words: &str) -> bool {
    let lines = list(&report["coverage"], "not_measured").iter();
    lines
        .filter_map(|line| line["what"].as_str())
        .any(|what| what.contains(words))
}

#[test]
fn who_is_stuck_is_told_with_who_asked() {
    let open = Open::new();
    let reader = reader(theirs(&["cat"]));
    let pid = reader.0.id().to_string();
    let output = open
        .attach(&["-p", &pid, "--backend", "proc", "-d", "1"])
        .output();
    let report = json_of(&output.unwrap());
    let wait = &report["waits"][0];
    assert_eq!(wait["cause"], "ipc.pipe", "{wait:#}");
    assert_eq!(wait["open"], true);
    assert_eq!(wait["call"], "read");
    assert_eq!(wait["asker"]["stack"][0]["symbol"], "read");
    // Since when is known: it slept before anybody looked.
    assert!(number(wait, "max_ns") >= number(wait, "ns"), "{wait:#}");
    assert!(!lacks(&report, "had lasted before"), "{report:#}");
}

#[test]
fn who_is_in_the_way_is_followed_too_and_who_made_it_wait() {
    let open = Open::new();
    let lock = open.0.path().join("lock");
    std::fs::write(&lock, "").unwrap();
    std::fs::set_permissions(&lock, std::fs::Permissions::from_mode(0o666)).unwrap();
    let lock = lock.to_str().unwrap();
    let mut command = theirs(&["flock", lock, "cat"]);
    let holder = Guarded::spawn(command.stdin(Stdio::piped()).stdout(Stdio::null()));
    // It has the lock when it waits for its child.
    until_in(holder.0.id(), "flock", "61 ");
    let waiter = Guarded::spawn(&mut theirs(&["flock", lock, "true"]));
    until_in(waiter.0.id(), "flock", "73 ");
    let output = open
        .attach(&["-p", &waiter.0.id().to_string(), "--backend", "proc", "-d", "1"])
        .output();
    let report = json_of(&output.unwrap());
    let wait = &report["waits"][0];
    assert_eq!(wait["cause"], "lock.file", "{wait:#}");
    let held_by = &wait["held_by"];
    assert_eq!(number(held_by, "pid"), u64::from(holder.0.id()), "{wait:#}");
    assert_eq!(held_by["process"], "flock");
    assert_eq!(held_by["how_known"], "file-lock");
    assert_eq!(held_by["doing"], "process.child", "{wait:#}");
    let chain: Vec<&str> = list(wait, "chain")
        .iter()
        .filter_map(|link| link["cause"].as_str())
        .collect();
    assert_eq!(chain, ["lock.file", "process.child", "ipc.pipe"], "{wait:#}");
    // Its time is nobody's answer.
    let threads: Vec<u64> = list(&report, "threads")
        .iter()
        .map(|thread| number(thread, "pid"))
        .collect();
    assert_eq!(threads, [u64::from(waiter.0.id())]);
}

#[test]
fn whoever_is_anothers_and_at_the_other_end_is_said_to_be_unseen() {
    let open = Open::new();
    // The pipe's other end is the test's, which is root's.
    let reader = reader(theirs(&["cat"]));
    let output = open
        .attach(&["-p", &reader.0.id().to_string(), "--backend", "proc", "-d", "1"])
        .output();
    let report = json_of(&output.unwrap());
    assert!(report["waits"][0]["held_by"].is_null(), "{report:#}");
    assert!(lacks(&report, "the blocker of cat"), "{report:#}");
}

#[test]
fn it_is_chosen_where_tracing_is_not_to_be_had_and_a_line_says_why() {
    let open = Open::new();
    let reader = reader(theirs(&["cat"]));
    let output = open
        .attach(&["-p", &reader.0.id().to_string(), "-d", "0.5"])
        .output()
        .unwrap();
    json_of(&output);
    let said = lossy(&output.stderr);
    let lines = said
        .lines()
        .filter(|line| line.contains("/proc is sampled, because"));
    assert_eq!(lines.count(), 1, "{said}");
}

#[test]
fn of_another_users_process_is_told_what_everybody_may_see() {
    let open = Open::new();
    let reader = reader(Command::new("cat"));
    let output = open
        .attach(&["-p", &reader.0.id().to_string(), "-d", "0.5"])
        .output();
    let report = json_of(&output.unwrap());
    assert!(lacks(&report, "the system call in"), "{report:#}");
}

#[test]
fn with_only_what_it_made_before_is_not_asked_about_and_what_it_makes_now_is() {
    let open = Open::new();
    let script = "sleep 1000 & exec 3<&0; while read -r _ <&3; do cat <&3; done; kill $!";
    let mut command = theirs(&["bash", "-c", script]);
    let mut shell = Guarded::spawn(command.stdin(Stdio::piped()).stdout(Stdio::null()));
    until_in(shell.0.id(), "bash", "0 0x0 ");
    let pid = shell.0.id().to_string();
    let mut command = open.attach(&["-p", &pid, "--only", "--backend", "proc"]);
    let observer = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Whoever follows a thread has its folder open.
    let watches = format!("/proc/{pid}/task/{pid}");
    let open_files = || {
        let links = std::fs::read_dir(format!("/proc/{}/fd", observer.id()))
            .into_iter()
            .flatten();
        let links = links
            .flatten()
            .filter_map(|link| std::fs::read_link(link.path()).ok());
        links.filter(|link| link.to_string_lossy() == watches).count()
    };
    while open_files() == 0 {}
    let mut stdin = shell.0.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"\n").unwrap();
    // The shell's `cat` reads until its input ends, and is seen in that.
    let reads = |child: &&str| {
        let text = |file: &str| std::fs::read_to_string(format!("/proc/{child}/{file}")).unwrap_or_default();
        text("comm").trim() == "cat" && text("syscall").starts_with("0 0x0 ")
    };
    let child = || {
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        children.split_whitespace().find(reads).map(str::to_owned)
    };
    let cat = loop {
        if let Some(cat) = child() {
            break cat;
        }
    };
    // It is met with one of the next looks; a thread that is followed has a folder and a file open.
    let followed = || {
        let links = std::fs::read_dir(format!("/proc/{}/fd", observer.id()))
            .into_iter()
            .flatten();
        let links = links
            .flatten()
            .filter_map(|link| std::fs::read_link(link.path()).ok());
        let folders: BTreeSet<_> = links
            .filter(|link| link.to_string_lossy().contains("/task/"))
            .collect();
        folders.len() > 2
    };
    while !followed() {}
    drop(stdin);
    let report = json_of(&observer.wait_with_output().unwrap());
    let seen: BTreeSet<u64> = list(&report, "threads")
        .iter()
        .map(|thread| number(thread, "pid"))
        .collect();
    let asked: BTreeSet<u64> = [pid, cat].iter().map(|pid| pid.parse().unwrap()).collect();
    assert_eq!(seen, asked);
}
