//! Both backends on the same commands, and what sampling says of those that it can't see.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use support::{Told, lossy};

/// Commands whose time goes into one thing, by way of children, pipes and locks, and what that is.
const COMMANDS: &[(&str, &str)] = &[
    ("sleep 1", "timer.sleep"),
    ("(sleep 1; echo) | sort", "timer.sleep"),
    ("sleep 1 | cat | cat", "timer.sleep"),
    ("i=0; while [ $i -lt 400000 ]; do i=$((i + 1)); done", "cpu.user"),
    (
        "d=$(mktemp -d); mkfifo $d/f; (exec 9>$d/l; flock 9; echo >$d/f; sleep 1) & \
         read -r _ <$d/f; flock $d/l true; rm -r $d",
        "timer.sleep",
    ),
];

/// The cause with the longest part of the elapsed time that is no queueing.
fn main_cause(report: &serde_json::Value) -> String {
    let causes = report["causes"].as_array().unwrap().iter();
    let busy = causes.filter(|cause| cause["cause"] != "sched.runqueue");
    let most = busy.max_by_key(|cause| cause["ns"].as_u64().unwrap()).unwrap();
    most["cause"].as_str().unwrap().to_owned()
}

#[test]
fn both_backends_name_the_same_main_cause() {
    for (script, cause) in COMMANDS {
        for backend in ["bpf", "proc"] {
            let told = Told::of(&["--backend", backend], |command| {
                command.args(["bash", "-c", script]);
            });
            let said = lossy(&told.output.stderr);
            assert_eq!(told.report["coverage"]["backend"], backend);
            assert_eq!(main_cause(&told.report), *cause, "{backend}: {script}\n{said}");
        }
    }
}

#[test]
fn what_lives_for_a_millisecond_is_counted_as_not_seen() {
    let told = Told::of(&["--backend", "proc"], |command| {
        command.args([
            "sh",
            "-c",
            "i=0; while [ $i -lt 500 ]; do /bin/true; i=$((i + 1)); done",
        ]);
    });
    let unseen = told.report["coverage"]["not_measured"].as_array().unwrap();
    let what = |line: &serde_json::Value| line["what"].as_str().unwrap().to_owned();
    let words = "processes and threads that lived between two looks";
    assert!(
        unseen.iter().any(|line| what(line).starts_with(words)),
        "{unseen:?}"
    );
}

#[test]
fn a_command_whose_threads_end_while_they_are_looked_at_is_told_in_full() {
    // Each sleeps for about as long as it is between two looks.
    let script = "i=0; while [ $i -lt 60 ]; do sleep 0.00$((i % 10)) & i=$((i + 1)); done; wait; exit 3";
    let told = Told::of(&["--backend", "proc"], |command| {
        command.args(["bash", "-c", script]);
    });
    assert_eq!(told.status(), 3);
}
