//! Both backends on the same commands, and what sampling says of those that it can't see.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use support::{Outcome, lossy};

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
fn both_backends_name_the_same_cause_or_the_wait_that_leads_to_it() {
    for (script, cause) in COMMANDS {
        for backend in ["bpf", "proc"] {
            let result = Outcome::with_all_wakings(&["--backend", backend], |command| {
                command.args(["bash", "-c", script]);
            });
            let said = lossy(&result.output.stderr);
            assert_eq!(result.report["coverage"]["backend"], backend);
            let main = main_cause(&result.report);
            // Sampling does not always see who ended a wait: then the time stays with the wait for that one.
            let stays = ["process.child", "ipc.pipe", "lock.file"].contains(&main.as_str());
            let agrees = main == *cause || backend == "proc" && *cause == "timer.sleep" && stays;
            assert!(agrees, "{backend}: {main}: {script}\n{said}");
            let waits = result.report["waits"].as_array().unwrap();
            assert!(
                waits.iter().any(|wait| wait["cause"] == *cause),
                "{backend}: {script}\n{said}"
            );
        }
    }
}

#[test]
fn of_those_who_can_write_to_a_pipe_the_one_that_waits_for_the_other_is_not_in_the_way() {
    let result = Outcome::of(&["--backend", "proc"], |command| {
        command.args(["bash", "-c", "sh -c 'echo b; sleep 1; echo a' | sort"]);
    });
    let said = lossy(&result.output.stderr);
    let waits = result.report["waits"].as_array().unwrap().iter();
    let mut sorts = waits.filter(|wait| wait["cause"] == "ipc.pipe" && wait["asker"]["process"] == "sort");
    let longest = sorts.next().unwrap_or_else(|| panic!("{said}"));
    let held_by = &longest["held_by"];
    assert_eq!(held_by["how_known"], "pipe-peer", "{longest:#}\n{said}");
    let process = held_by["process"].as_str().unwrap();
    assert!(["sh", "sleep"].contains(&process), "{longest:#}\n{said}");
}

#[test]
fn a_pipe_with_several_writers_is_not_said_to_have_none() {
    let result = Outcome::of(&["--backend", "proc"], |command| {
        command.args(["bash", "-c", "{ sleep 1 & sleep 1 & } | cat"]);
    });
    let findings = result.report["findings"].as_array().unwrap().iter();
    let mut of_pipe = findings.filter(|finding| {
        let rule = finding["rule"].as_str().unwrap();
        ["pipe-peer-slow", "pipe-held-open"].contains(&rule)
    });
    let of_pipe = of_pipe
        .next()
        .unwrap_or_else(|| panic!("{}", lossy(&result.output.stderr)));
    let title = of_pipe["title"].as_str().unwrap();
    // One of them may end first: then the other is in the way alone, and nobody awaits it.
    let one_is_left = title.starts_with("cat is reading from a pipe, and sleep writes nothing to it")
        || of_pipe["rule"] == "pipe-held-open";
    let of_neither = title.contains("its writer was not observed") && of_pipe["severity"] == "note";
    assert!(one_is_left || of_neither, "{of_pipe:#}");
}

#[test]
fn what_lives_for_a_millisecond_is_counted_as_not_seen() {
    let result = Outcome::of(&["--backend", "proc"], |command| {
        command.args([
            "sh",
            "-c",
            "i=0; while [ $i -lt 500 ]; do /bin/true; i=$((i + 1)); done",
        ]);
    });
    let unseen = result.report["coverage"]["not_measured"].as_array().unwrap();
    let what = |line: &serde_json::Value| line["what"].as_str().unwrap().to_owned();
    let words = "processes and threads that lived between two samples";
    assert!(
        unseen.iter().any(|line| what(line).starts_with(words)),
        "{unseen:?}"
    );
}

#[test]
fn a_command_whose_threads_end_while_they_are_looked_at_is_told_in_full() {
    // Each sleeps for about as long as it is between two looks.
    let script = "i=0; while [ $i -lt 60 ]; do sleep 0.00$((i % 10)) & i=$((i + 1)); done; wait; exit 3";
    let result = Outcome::of(&["--backend", "proc"], |command| {
        command.args(["bash", "-c", script]);
    });
    assert_eq!(result.status(), 3);
}
