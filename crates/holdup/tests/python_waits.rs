//! Waits of Python programs that end while they are traced have the function, file and line that asked.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::process::Command;
use support::{Asked, Outcome, attached, has_all, lossy};

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
const EXPECTED: [Asked; 4] = [
    ("Shop.rest", 5, Some("timer.sleep")),
    ("Shop.checkout", 8, Some("lock.futex")),
    ("keep", 14, Some("timer.sleep")),
    ("poll", 17, Some("timer.sleep")),
];

#[test]
fn waits_of_a_traced_run_have_the_python_function_that_asked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.py");
    std::fs::write(&file, PROGRAM).unwrap();
    let result = Outcome::of(&["--backend", "bpf"], |command| {
        command.arg("/usr/bin/python3").arg(&file);
    });
    assert_eq!(result.status(), 0, "{}", lossy(&result.output.stderr));
    has_all(&result.report, "python", file.to_str().unwrap(), &EXPECTED);
}

#[test]
fn waits_of_a_process_that_was_attached_to_have_it_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.py");
    std::fs::write(&file, PROGRAM).unwrap();
    let mut program = Command::new("/usr/bin/python3");
    program.arg(&file).arg("for ever");
    let report = attached(&mut program, "5");
    has_all(&report, "python", file.to_str().unwrap(), &EXPECTED);
}
