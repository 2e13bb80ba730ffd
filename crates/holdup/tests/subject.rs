//! CMD is untouched: its exit status, its standard streams, its signals' dispositions, its user.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use support::{Guarded, HOLDUP, holdup, json, lossy, read_to_end, read_until, run};

#[test]
fn the_exit_status_is_cmds() {
    assert_eq!(run(&["sh", "-c", "exit 0"]).status.code(), Some(0));
    assert_eq!(run(&["sh", "-c", "exit 42"]).status.code(), Some(42));
    assert_eq!(run(&["sh", "-c", "kill -KILL $$"]).status.code(), Some(137));
    assert_eq!(run(&["sh", "-c", "kill -SEGV $$"]).status.code(), Some(139));
    assert_eq!(run(&["sh", "-c", "kill -TERM $$"]).status.code(), Some(143));
}

#[test]
fn the_report_has_the_command_and_its_exit() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    // What a longer report left behind must not survive.
    std::fs::write(&file, "x".repeat(1 << 20)).unwrap();
    let output = holdup(&["--json", file.to_str().unwrap()])
        .args(["sh", "-c", "exit 7"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(7));
    let report = json(&file);
    assert_eq!(report["schema"], "holdup.report/1");
    assert_eq!(
        report["subject"]["command"],
        serde_json::json!(["sh", "-c", "exit 7"])
    );
    assert_eq!(report["subject"]["exit"], 7);
    assert!(lossy(&output.stderr).contains("holdup"));
}

#[test]
fn json_can_go_to_stdout_and_to_stderr() {
    let output = holdup(&["--json", "-"]).arg("true").output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["subject"]["exit"], 0);
    let output = holdup(&["--format", "json"]).arg("true").output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(report["subject"]["exit"], 0);
    assert!(output.stdout.is_empty());
}

#[test]
fn what_goes_in_comes_out() {
    let mut text = vec![0; 1 << 20];
    for (at, byte) in text.iter_mut().enumerate() {
        *byte = (at % 251) as u8;
    }
    let mut child = holdup(&[])
        .arg("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let sent = text.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&sent).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.stdout == text);
}

#[test]
fn when_cmd_closes_a_stream_its_other_end_sees_that_at_once() {
    let mut holdup = Guarded::spawn(
        holdup(&[])
            .args(["sh", "-c", "echo begin; exec >&-; read go"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null()),
    );
    // The end comes although CMD still waits for its stdin.
    assert_eq!(read_to_end(holdup.0.stdout.as_mut().unwrap()), "begin\n");
    holdup.0.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    assert!(holdup.0.wait().unwrap().success());
}

#[test]
fn a_stdin_that_cmd_closed_is_broken_for_the_writer() {
    let directory = tempfile::tempdir().unwrap();
    let go = fifo(&directory, "go");
    let mut holdup = Guarded::spawn(
        holdup(&[])
            .args(["sh", "-c", &format!("exec <&-; echo closed; read go <{go}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null()),
    );
    read_until(holdup.0.stdout.as_mut().unwrap(), "closed\n");
    let error = holdup.0.stdin.as_mut().unwrap().write_all(b"x").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    std::fs::write(go, "go\n").unwrap();
    assert!(holdup.0.wait().unwrap().success());
}

/// A named pipe: opening it waits for the other side.
fn fifo(directory: &tempfile::TempDir, name: &str) -> String {
    let path = directory.path().join(name);
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Runs a shell in which `$0` is holdup.
fn shell(script: &str) -> std::process::Output {
    Command::new("sh")
        .args(["-c", script, HOLDUP])
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn closed_streams_stay_closed() {
    let output = shell(r#""$0" run -- sh -c '[ ! -e /proc/self/fd/0 ] && [ -e /proc/self/fd/1 ]' <&-"#);
    assert_eq!(output.status.code(), Some(0), "{}", lossy(&output.stderr));
    let output = shell(r#""$0" run -- sh -c '[ ! -e /proc/self/fd/2 ] && exit 6' 2>&-"#);
    assert_eq!(output.status.code(), Some(6));
    assert!(output.stderr.is_empty());
    let output = shell(r#""$0" run -- sh -c '[ ! -e /proc/self/fd/1 ] && exit 7' >&-"#);
    assert_eq!(output.status.code(), Some(7));
}

#[test]
fn nobody_reading_the_report_changes_nothing() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = holdup(&[])
        .args(["sh", "-c", "exit 9"])
        .stderr(writer)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(9));
    assert_eq!(
        shell(r#""$0" run --json /dev/full -- sh -c 'exit 8'"#)
            .status
            .code(),
        Some(8)
    );
}

#[test]
fn descriptors_are_cmds_as_they_were_holdups_and_no_more() {
    let list = "ls /proc/self/fd";
    let direct = shell(&format!("exec 7</dev/null; {list}"));
    let under = shell(&format!(r#"exec 7</dev/null; "$0" run -- {list} 2>/dev/null"#));
    assert_eq!(lossy(&under.stdout), lossy(&direct.stdout));
    assert!(lossy(&under.stdout).contains('7'));
}

#[test]
fn signal_dispositions_and_mask_are_as_holdup_inherited_them() {
    let signals = "grep -E '^(SigBlk|SigIgn|SigCgt)' /proc/self/status";
    for trap in ["", "trap '' PIPE;", "trap '' INT HUP;", "trap '' TERM USR1 CHLD;"] {
        let direct = shell(&format!("{trap} exec {signals}"));
        let under = shell(&format!(r#"{trap} exec "$0" run -- {signals} 2>/dev/null"#));
        assert_eq!(lossy(&under.stdout), lossy(&direct.stdout), "{trap}");
    }
}

#[test]
fn an_ignored_sigchld_does_not_lose_the_status() {
    let output = shell(r#"trap '' CHLD; exec "$0" run -- sh -c 'exit 5'"#);
    assert_eq!(output.status.code(), Some(5));
}

#[test]
fn session_and_group_are_holdups() {
    let output = shell(
        r#"set -- $(cut -d' ' -f5,6 /proc/self/stat); "$0" run -- cut -d' ' -f5,6 /proc/self/stat 2>/dev/null; echo "$*""#,
    );
    let text = lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], lines[1]);
}

#[test]
fn the_user_is_the_one_asked_for() {
    let script = "id -u; id -g; id -G; echo $HOME $USER $LOGNAME; echo $KEPT";
    let output = holdup(&["--user", "nobody"])
        .args(["sh", "-c", script])
        .env("KEPT", "kept")
        .output()
        .unwrap();
    let text = lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "65534", "{}", lossy(&output.stderr));
    assert_eq!(lines[1], lines[2], "no group of root's is left");
    assert!(lines[3].ends_with("nobody nobody"), "{text}");
    assert_eq!(lines[4], "kept");
}

#[test]
fn a_setuid_program_gets_its_privileges() {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let program = directory.path().join("id");
    std::fs::copy("/usr/bin/id", &program).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = holdup(&["--user", "nobody"])
        .arg(&program)
        .arg("-u")
        .output()
        .unwrap();
    assert_eq!(lossy(&output.stdout), "0\n", "{}", lossy(&output.stderr));
}

#[test]
fn what_daemonises_is_left_alone_and_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let (question, answer) = (fifo(&directory, "question"), fifo(&directory, "answer"));
    let daemon = format!("setsid sh -c 'read go <{question}; echo $go >{answer}' >/dev/null 2>&1 </dev/null");
    assert_eq!(
        run(&["sh", "-c", &format!("{daemon} & exit 4")]).status.code(),
        Some(4)
    );
    std::fs::write(question, "alive\n").unwrap();
    assert_eq!(std::fs::read_to_string(answer).unwrap(), "alive\n");
}

#[test]
fn a_program_whose_name_is_full_of_escapes_prints_none() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("\x1b[2J\nx");
    std::fs::copy("/bin/true", &program).unwrap();
    let output = holdup(&["-v"])
        .arg(&program)
        .arg("\x1b]0;title\x07")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", lossy(&output.stderr));
    assert!(!output.stderr.contains(&0x1b) && !output.stderr.contains(&7));
}
