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
        shell(r#"exec 7>/dev/full; "$0" run --json /dev/fd/7 -- sh -c 'exit 8'"#)
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
    let script = "id -u; id -g; id -G; echo $HOME $USER $LOGNAME";
    let output = holdup(&["--user", "nobody"])
        .args(["sh", "-c", script])
        .output()
        .unwrap();
    let text = lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "65534", "{}", lossy(&output.stderr));
    assert_eq!(lines[1], lines[2], "no group of root's is left");
    assert!(lines[3].ends_with("nobody nobody"), "{text}");
}

/// Names of variables that CMD has, of a holdup that has many.
fn variables(options: &[&str]) -> Vec<String> {
    let output = holdup(options)
        .arg("env")
        .env("KEPT", "kept")
        .env("SSH_AUTH_SOCK", "/run/agent")
        .env("LD_LIBRARY_PATH", "/nowhere")
        .env("TERM", "dumb")
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    let text = lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", lossy(&output.stderr));
    let names = text.lines().filter_map(|line| line.split_once('='));
    names.map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn another_user_gets_little_of_the_environment_unless_it_is_to_be_preserved() {
    let of = |options: &[&str], name: &str| variables(options).contains(&name.to_owned());
    let other = ["--user", "nobody"];
    for name in ["HOME", "SHELL", "USER", "LOGNAME", "PATH", "TERM", "LC_ALL"] {
        assert!(of(&other, name), "{name}");
    }
    for name in ["KEPT", "SSH_AUTH_SOCK", "LD_LIBRARY_PATH"] {
        assert!(!of(&other, name), "{name}");
        assert!(of(&["--user", "nobody", "--preserve-env"], name), "{name}");
        assert!(of(&["--user", "root"], name), "{name}: the same user");
        assert!(of(&[], name), "{name}");
    }
}

#[test]
fn another_user_gets_no_descriptor_and_no_key_of_roots() {
    let list = r#"exec 7</etc/shadow; "$0" run --user nobody -- ls /proc/self/fd 2>/dev/null"#;
    // The last one is that of ls itself.
    assert_eq!(lossy(&shell(list).stdout), "0\n1\n2\n3\n");
    // keyctl(KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING): the same number is the same keyring.
    let keyring = "python3 -c 'import ctypes; print(ctypes.CDLL(None).syscall(250, 0, -3, 0))'";
    let script = format!(
        r#"{keyring}; "$0" run -- {keyring} 2>/dev/null; "$0" run --user nobody -- {keyring} 2>/dev/null"#
    );
    let output = shell(&script);
    let text = lossy(&output.stdout);
    let [own, same, other] = text.lines().collect::<Vec<_>>()[..] else {
        panic!("{text}{}", lossy(&output.stderr))
    };
    assert_eq!(own, same);
    assert_ne!(own, other);
}

/// Pushes a line into its terminal as if it had been typed, with the upper half of the request set in the second attempt, and says which
/// errors that gave.
const PUSHES: &str = r#"
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
for request in (0x5412, 0x100005412, 0x541C):
    for byte in b"evil\n":
        buffer = ctypes.create_string_buffer(bytes([byte]))
        libc.syscall(16, 0, ctypes.c_ulong(request), buffer)
    print(ctypes.get_errno(), end=" ", flush=True)
"#;

/// What CMD that pushes says, and what somebody who reads from the terminal afterwards gets.
fn pushed(options: &[&str]) -> (String, Vec<u8>) {
    use std::os::unix::process::CommandExt;
    let terminal = nix::pty::openpty(None, None).unwrap();
    let slave = std::fs::File::from(terminal.slave);
    let mut command = holdup(options);
    command
        .args(["python3", "-c", PUSHES])
        .stdin(slave.try_clone().unwrap());
    // SAFETY: two system calls between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            match libc::ioctl(0, libc::TIOCSCTTY, 0) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", lossy(&output.stderr));
    // A second opening, so that the flag is nobody else's.
    let name = std::fs::read_link(format!(
        "/proc/self/fd/{}",
        std::os::fd::AsRawFd::as_raw_fd(&slave)
    ))
    .unwrap();
    let mut reader = std::fs::OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::custom_flags(reader.read(true), libc::O_NONBLOCK | libc::O_NOCTTY);
    let mut line = [0; 64];
    let length = std::io::Read::read(&mut reader.open(name).unwrap(), &mut line).unwrap_or(0);
    (lossy(&output.stdout), line[..length].to_vec())
}

#[test]
fn another_user_pushes_nothing_into_roots_terminal() {
    let (errors, line) = pushed(&["--user", "nobody"]);
    assert_eq!(errors.trim(), "1 1 1", "EPERM each time");
    assert_eq!(lossy(&line), "");
    // The same user is as he would be without holdup: the kernel alone decides.
    let (errors, _) = pushed(&["--user", "root"]);
    assert_ne!(errors.trim(), "1 1 1");
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
