//! Signals to holdup: what CMD gets, and that CMD is never left alone or hurt.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use nix::pty::openpty;
use nix::sys::signal::Signal;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Stdio;
use support::{Guarded, holdup, lossy, read_to_end, read_until, something_comes};

/// Says "ready", counts what it gets, and ends with status 5 when told to go on. Not a shell: one that gets a signal
/// just before its `read` blocks says so only after it.
const COUNTS: &str = r#"PERL_SIGNALS=unsafe exec perl -e '
    for my $name (qw(INT TERM USR1 HUP)) { $SIG{$name} = sub { syswrite STDOUT, lc("$name\n") } }
    syswrite STDOUT, "ready\n";
    until (sysread STDIN, my $go, 1) { }
    syswrite STDOUT, "done\n";
    exit 5'"#;

fn start(script: &str) -> Guarded {
    let mut holdup = Guarded::spawn(
        holdup(&[])
            .args(["sh", "-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped()),
    );
    read_until(holdup.0.stdout.as_mut().unwrap(), "ready\n");
    holdup
}

#[test]
fn a_signal_to_holdup_alone_reaches_cmd_once() {
    let mut holdup = start(COUNTS);
    for (signal, word) in [
        (Signal::SIGTERM, "term\n"),
        (Signal::SIGUSR1, "usr1\n"),
        (Signal::SIGHUP, "hup\n"),
        (Signal::SIGINT, "int\n"),
    ] {
        holdup.signal(signal);
        assert_eq!(read_until(holdup.0.stdout.as_mut().unwrap(), word), word);
    }
    holdup.0.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert_eq!(read_to_end(holdup.0.stdout.as_mut().unwrap()), "done\n");
    assert_eq!(holdup.0.wait().unwrap().code(), Some(5));
}

#[test]
fn a_signal_that_ends_cmd_is_the_status_and_the_report_is_printed() {
    let mut holdup = start("echo ready; read go");
    holdup.signal(Signal::SIGTERM);
    let report = read_to_end(holdup.0.stderr.as_mut().unwrap());
    assert_eq!(holdup.0.wait().unwrap().code(), Some(143));
    assert!(report.contains("accounted"), "{report}");
}

#[test]
fn killing_holdup_leaves_cmd_undisturbed() {
    let mut holdup = start("echo ready; read go; echo alive");
    // Waiting for a child closes its stdin.
    let mut stdin = holdup.0.stdin.take().unwrap();
    holdup.signal(Signal::SIGKILL);
    assert_eq!(holdup.0.wait().unwrap().signal(), Some(Signal::SIGKILL as i32));
    stdin.write_all(b"go\n").unwrap();
    assert_eq!(read_to_end(holdup.0.stdout.as_mut().unwrap()), "alive\n");
}

#[test]
fn cmd_that_signals_its_own_group_gets_that_once() {
    let script = "trap 'echo usr1' USR1; kill -USR1 0; echo end";
    // In a group of its own, which is also holdup's.
    let output = holdup(&[])
        .args(["sh", "-c", script])
        .process_group(0)
        .output()
        .unwrap();
    assert_eq!(lossy(&output.stdout), "usr1\nend\n", "{}", lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
}

/// holdup as the foreground group of a terminal of its own; the keyboard is the returned file.
fn start_on_terminal(script: &str) -> (Guarded, File) {
    let pty = openpty(None, None).unwrap();
    let terminal: OwnedFd = pty.slave;
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&terminal);
    let mut command = holdup(&[]);
    command
        .args(["sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // SAFETY: both calls are async-signal-safe; the descriptor is open in the child until it execs.
    unsafe {
        command.pre_exec(move || {
            nix::unistd::setsid()?;
            if libc::ioctl(descriptor, libc::TIOCSCTTY, 0) == -1 {
                return Err(std::io::Error::last_os_error());
            }
            Ok(())
        });
    }
    let mut holdup = Guarded::spawn(&mut command);
    read_until(holdup.0.stdout.as_mut().unwrap(), "ready\n");
    (holdup, pty.master.into())
}

const CTRL_C: &[u8] = b"\x03";

#[test]
fn ctrl_c_once_is_cmds_and_the_report_is_printed() {
    let (mut holdup, mut keyboard) = start_on_terminal(COUNTS);
    keyboard.write_all(CTRL_C).unwrap();
    assert_eq!(read_until(holdup.0.stdout.as_mut().unwrap(), "int\n"), "int\n");
    holdup.0.stdin.take().unwrap().write_all(b"go\n").unwrap();
    // Had holdup passed it on, there would be a second "int".
    assert_eq!(read_to_end(holdup.0.stdout.as_mut().unwrap()), "done\n");
    let report = read_to_end(holdup.0.stderr.as_mut().unwrap());
    assert_eq!(holdup.0.wait().unwrap().code(), Some(5));
    assert!(report.contains("accounted"), "{report}");
    assert!(!report.contains("still runs"), "{report}");
}

#[test]
fn ctrl_c_that_ends_cmd_is_130_and_the_report_is_printed() {
    let (mut holdup, mut keyboard) = start_on_terminal("echo ready; read go");
    keyboard.write_all(CTRL_C).unwrap();
    let report = read_to_end(holdup.0.stderr.as_mut().unwrap());
    assert_eq!(holdup.0.wait().unwrap().code(), Some(130));
    assert!(report.contains("accounted"), "{report}");
}

#[test]
fn ctrl_c_twice_prints_the_report_so_far_and_waits_for_cmd() {
    let (mut holdup, mut keyboard) = start_on_terminal(COUNTS);
    // Two would do for a person; a program is so quick that the kernel may make one of two.
    while {
        keyboard.write_all(CTRL_C).unwrap();
        assert_eq!(read_until(holdup.0.stdout.as_mut().unwrap(), "int\n"), "int\n");
        !something_comes(holdup.0.stderr.as_ref().unwrap())
    } {}
    let report = read_until(holdup.0.stderr.as_mut().unwrap(), "still runs");
    assert!(report.contains("accounted"), "{report}");
    // Signals are still passed on.
    holdup.signal(Signal::SIGUSR1);
    read_until(holdup.0.stdout.as_mut().unwrap(), "usr1\n");
    holdup.0.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert_eq!(read_to_end(holdup.0.stdout.as_mut().unwrap()), "done\n");
    assert_eq!(holdup.0.wait().unwrap().code(), Some(5));
}
