//! CMDs that fork, exec, change and end in unusual ways: each is followed, and none of its time goes astray.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use serde_json::json;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use support::{Guarded, HOLDUP, Outcome, conserved, holdup, list, lossy, lost, number, read_until};

const RECORDS_OF_THREADS: &str = "thread start, exec or exit records dropped";
const RECORDS_OF_WAITS: &str = "waits whose record was dropped";

/// A shell's script under observation.
fn shell(script: &str) -> Outcome {
    Outcome::of(&[], |command| {
        command.args(["sh", "-c", script]);
    })
}

/// Debian's own python, not one that is a script of its own.
fn python(script: &str) -> Outcome {
    Outcome::of(&[], |command| {
        command.args(["/usr/bin/python3", "-c", script]);
    })
}

/// A thread's time under a cause: how often, and nanoseconds.
fn cause(thread: &serde_json::Value, name: &str) -> (u64, u64) {
    list(thread, "causes")
        .iter()
        .find(|cause| cause["cause"] == name)
        .map_or((0, 0), |cause| (number(cause, "count"), number(cause, "ns")))
}

#[test]
fn a_thousand_children_are_a_thousand_and_one_threads() {
    let found = shell("i=0; while [ $i -lt 1000 ]; do (exit 0) & i=$((i+1)); done; wait; exit 3");
    assert_eq!(found.status(), 3);
    assert_eq!(found.threads(), 1001);
    assert_eq!(found.lost(RECORDS_OF_THREADS), 0);
    assert!(
        list(&found.report, "threads").len() < 300,
        "the smallest are listed together"
    );
}

#[test]
fn fifty_short_commands_lose_nothing_and_none_hangs() {
    for _ in 0..50 {
        let result = Outcome::of(&[], |command| {
            command.arg("true");
        });
        assert_eq!((result.status(), result.threads()), (0, 1));
        result.lost_nothing_of_its_own();
        assert_eq!(result.report["threads"][0]["process"], "true");
    }
}

#[test]
fn what_lives_on_is_open_and_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (keeper, up, question) = (path("keeper"), path("up"), path("question"));
    std::fs::copy("/bin/sh", &keeper).unwrap();
    for fifo in [&up, &question] {
        nix::unistd::mkfifo(fifo.as_str(), nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    let daemon =
        format!("setsid {keeper} -c 'echo up >{up}; read go <{question}' >/dev/null 2>&1 </dev/null");
    let found = shell(&format!("{daemon} & read word <{up}; exit 4"));
    // An end that nobody reads any more would leave it for ever.
    std::fs::write(question, "go\n").unwrap();
    assert_eq!(found.status(), 4);
    let keepers = found.threads_of("keeper");
    assert_eq!(keepers.len(), 1, "{}", found.report["threads"]);
    assert_eq!(keepers[0]["open"], true);
    for thread in found.threads_of("sh") {
        assert_eq!(thread["open"], false);
    }
}

#[test]
fn a_setuid_program_is_followed_into_its_privileges() {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let program = directory.path().join("as-root");
    std::fs::copy("/usr/bin/id", &program).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let result = Outcome::of(&["--user", "nobody"], |command| {
        command.arg("sh").arg("-c").arg("\"$0\" -u; exit 5").arg(&program);
    });
    assert_eq!(
        (result.status(), lossy(&result.output.stdout)),
        (5, "0\n".to_owned())
    );
    assert_eq!(
        result.threads_of("as-root").len(),
        1,
        "{}",
        result.report["threads"]
    );
}

#[test]
fn an_exec_by_a_thread_that_is_not_the_leader_takes_the_process_over() {
    let output = python(
        "import os, signal, threading\n\
         threading.Thread(target=os.execv, args=('/bin/sh', ['sh', '-c', 'exit 6'])).start()\n\
         signal.pause()",
    );
    assert_eq!((output.status(), output.threads()), (6, 2));
    let taken = output.threads_of("sh");
    assert!(
        taken.iter().any(|thread| thread["tid"] == thread["pid"]),
        "the thread has the process's number now: {}",
        output.report["threads"]
    );
    assert_eq!(output.lost("contradictory records"), 0);
}

#[test]
fn a_thread_name_full_of_escapes_is_data_and_prints_none() {
    let result = Outcome::of(&["-v"], |command| {
        command.args([
            "sh",
            "-c",
            "printf '\\033[2J\\nx\\007\\302' >/proc/$$/comm; (exit 0); exit 7",
        ]);
    });
    assert_eq!(result.status(), 7);
    let name = result.report["threads"][0]["name"].as_str().unwrap();
    assert!(name.starts_with("\x1b[2J\nx"), "{name:?}");
    let text = std::str::from_utf8(&result.output.stderr).unwrap();
    let moves = |character: char| character.is_control() && character != '\n';
    assert!(!text.contains(moves), "{text:?}");
}

#[test]
fn other_namespaces_change_nothing() {
    let result = Outcome::of(&[], |command| {
        command.args([
            "unshare",
            "-pmn",
            "--fork",
            "--mount-proc",
            "sh",
            "-c",
            "cat /proc/self/stat; exit 8",
        ]);
    });
    assert_eq!((result.status(), result.threads()), (8, 3));
    assert!(lossy(&result.output.stdout).starts_with("2 (cat)"));
    for thread in list(&result.report, "threads") {
        assert!(
            number(thread, "pid") > 2,
            "numbers are those that holdup's user sees: {thread}"
        );
    }
    assert_eq!(result.threads_of("cat").len(), 1);
}

#[test]
fn a_killed_command_is_accounted_to_its_end() {
    let found = shell("kill -KILL $$");
    assert_eq!((found.status(), found.threads()), (137, 1));
    assert_eq!(found.report["threads"][0]["open"], false);
    found.lost_nothing_of_its_own();
}

#[test]
fn a_stop_is_a_wait_until_the_continue() {
    let script = "sh -c 'kill -STOP $$; exit 9' & child=$!; \
                  until grep -q '^State:.T' /proc/$child/status; do :; done; \
                  kill -CONT $child; wait $child";
    let found = shell(script);
    assert_eq!(found.status(), 9);
    let stopped: Vec<(u64, u64)> = list(&found.report, "threads")
        .iter()
        .map(|thread| cause(thread, "process.stopped"))
        .filter(|(count, _)| *count > 0)
        .collect();
    assert!(
        matches!(stopped[..], [(1, ns)] if ns > 0),
        "{stopped:?}: {}",
        found.report["threads"]
    );
}

#[test]
fn a_parent_in_vfork_waits_for_its_child() {
    // Python makes processes with vfork; the child holds the parent up until it execs.
    let output = python("import subprocess; exit(subprocess.run(['sh', '-c', 'exit 10']).returncode)");
    assert_eq!((output.status(), output.threads()), (10, 2));
    assert_eq!(output.threads_of("sh").len(), 1);
}

#[test]
fn a_zombie_has_ended() {
    let output = python(
        "import os\n\
         child = os.fork()\n\
         child or os._exit(0)\n\
         while ') Z ' not in open(f'/proc/{child}/stat').read(): pass\n\
         os._exit(11)",
    );
    assert_eq!((output.status(), output.threads()), (11, 2));
    for thread in list(&output.report, "threads") {
        assert_eq!(thread["open"], false, "{thread}");
    }
}

#[test]
fn arguments_arrive_as_they_are_and_are_told_as_text() {
    let mut arguments: Vec<Vec<u8>> = (0..300).map(|number| format!("a{number}").into_bytes()).collect();
    arguments[7] = Vec::new();
    arguments[8] = b"not \xff\xfe UTF-8".to_vec();
    let result = Outcome::of(&[], |command| {
        command.args(["sh", "-c", "printf '%s\\0' \"$@\"; exit 12", "sh"]);
        command.args(arguments.iter().map(|argument| OsStr::from_bytes(argument)));
    });
    assert_eq!(result.status(), 12);
    let mut expected = arguments.join(&0);
    expected.push(0);
    assert!(result.output.stdout == expected);
    let command = list(&result.report["subject"], "command");
    assert_eq!(command.len(), 4 + 300);
    assert_eq!(
        (&command[11], &command[12]),
        (&json!(""), &json!("not \u{fffd}\u{fffd} UTF-8"))
    );
}

/// The processes that this one has made, as the kernel lists them.
fn children(pid: u32) -> Vec<String> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    list.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_file_whose_name_is_not_text_can_be_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let (fifo, file) = (
        directory.path().join(OsStr::from_bytes(b"\xff\x1b[2J")),
        directory.path().join("report"),
    );
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut reader = holdup(&["-v", "--json", file.to_str().unwrap()]);
    let mut reader = Guarded::spawn(
        reader
            .arg("cat")
            .arg(&fifo)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped()),
    );
    // Returns when cat has opened it.
    let mut writer = std::fs::OpenOptions::new().write(true).open(&fifo).unwrap();
    let cat = children(reader.0.id()).remove(0);
    // System call 0: it sleeps in its read.
    while !std::fs::read_to_string(format!("/proc/{cat}/syscall"))
        .unwrap()
        .starts_with("0 ")
    {
        std::thread::yield_now();
    }
    writer.write_all(b"x").unwrap();
    drop(writer);
    let text = support::read_to_end(reader.0.stderr.as_mut().unwrap());
    assert!(reader.0.wait().unwrap().success());
    assert!(!text.contains('\x1b'), "{text:?}");
    let report = support::json(&file);
    conserved(&report);
    let named = list(&report, "waits").iter().any(|wait| {
        let name = wait["resource"]["name"].as_str().unwrap();
        wait["cause"] == "ipc.pipe" && name.ends_with("/\u{fffd}\x1b[2J")
    });
    assert!(named, "{}", report["waits"]);
}

#[test]
fn holdup_can_observe_holdup() {
    let result = Outcome::of(&[], |command| {
        command.args([HOLDUP, "run", "--", "sh", "-c", "exit 13"]);
    });
    assert_eq!(result.status(), 13);
    assert_eq!(result.threads_of("sh").len(), 1);
}

#[test]
fn a_buffer_that_overflows_is_counted_and_said_and_changes_nothing() {
    const SWITCHES: &str = "echo ready; read go; i=0; while [ $i -lt 1000 ]; do (exit 0); i=$((i+1)); done; \
                            echo full; read go; exit 14";
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let mut holdup = Guarded::spawn(
        holdup(&["--buffer", "64K", "--json", file.to_str().unwrap()])
            .args(["sh", "-c", SWITCHES])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped()),
    );
    let mut stdin = holdup.0.stdin.take().unwrap();
    read_until(holdup.0.stdout.as_mut().unwrap(), "ready\n");
    // While holdup is stopped nobody empties the buffer, so it is full for certain, on any machine.
    holdup.signal(nix::sys::signal::Signal::SIGSTOP);
    stdin.write_all(b"go\n").unwrap();
    read_until(holdup.0.stdout.as_mut().unwrap(), "full\n");
    holdup.signal(nix::sys::signal::Signal::SIGCONT);
    stdin.write_all(b"go\n").unwrap();
    let text = support::read_to_end(holdup.0.stderr.as_mut().unwrap());
    assert_eq!(holdup.0.wait().unwrap().code(), Some(14));
    let report = support::json(&file);
    conserved(&report);
    for what in [RECORDS_OF_THREADS, RECORDS_OF_WAITS] {
        assert!(lost(&report, what) > 100, "{}", report["coverage"]);
        assert!(text.contains(what), "{text}");
    }
    assert!(number(&report["coverage"], "unknown_ns") > 0);
    assert!(!text.contains("accounted 100"), "{text}");
}
