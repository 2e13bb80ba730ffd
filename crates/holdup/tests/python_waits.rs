//! Waits of Python programs that end while they are traced have the function, file and line that asked.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use serde_json::Value;
use std::process::{Command, Stdio};
use support::{Guarded, Told, asker, json, list, lossy, read_until};

/// Sleeps, a lock that another thread has, and a poll; each wait is long enough to be looked at. Six times, because a look
/// may miss one on a busy machine; with an argument for ever.
const PROGRAM: &str = "\
import select, sys, threading, time

class Shop:
    def rest(self):
        time.sleep(0.3)

    def checkout(self, lock):
        lock.acquire()
        lock.release()

def keep(lock, taken):
    with lock:
        taken.set()
        time.sleep(0.25)

def poll():
    select.select([], [], [], 0.2)

def once():
    Shop().rest()
    lock, taken = threading.Lock(), threading.Event()
    threading.Thread(target=keep, args=(lock, taken)).start()
    taken.wait()
    Shop().checkout(lock)
    poll()

print('ready', flush=True)
for _ in range(6):
    once()
while sys.argv[1:]:
    once()
";

/// Function, line and cause of the waits that are to be found.
const EXPECTED: [(&str, u64, &str); 4] = [
    ("Shop.rest", 5, "timer.sleep"),
    ("Shop.checkout", 8, "lock.futex"),
    ("keep", 14, "timer.sleep"),
    ("poll", 17, "timer.sleep"),
];

#[track_caller]
fn has_all(report: &Value, file: &str) {
    let waits = list(report, "waits");
    for (function, line, cause) in EXPECTED {
        let found = waits.iter().any(|wait| {
            wait["cause"] == cause
                && asker(wait).is_some_and(|frame| {
                    frame["symbol"] == function && frame["line"] == line && frame["file"] == file
                })
        });
        let askers: Vec<_> = waits.iter().filter_map(asker).collect();
        assert!(found, "{cause} of {function}: {askers:#?}");
    }
}

#[test]
fn waits_of_a_traced_run_have_the_python_function_that_asked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.py");
    std::fs::write(&file, PROGRAM).unwrap();
    let told = Told::of(&["--backend", "bpf"], |command| {
        command.arg("/usr/bin/python3").arg(&file);
    });
    assert_eq!(told.status(), 0, "{}", lossy(&told.output.stderr));
    has_all(&told.report, file.to_str().unwrap());
}

#[test]
fn waits_of_a_process_that_was_attached_to_have_it_too() {
    let folder = tempfile::tempdir().unwrap();
    let (file, report) = (folder.path().join("shop.py"), folder.path().join("r.json"));
    std::fs::write(&file, PROGRAM).unwrap();
    let mut program = Command::new("/usr/bin/python3");
    program.arg(&file).arg("for ever").stdout(Stdio::piped());
    let mut python = Guarded::spawn(&mut program);
    read_until(python.0.stdout.as_mut().unwrap(), "ready\n");
    let output = Command::new(support::HOLDUP)
        .args(["attach", "--backend", "bpf", "-d", "5", "--json"])
        .arg(&report)
        .args(["-p", &python.0.id().to_string()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", lossy(&output.stderr));
    has_all(&json(&report), file.to_str().unwrap());
}
