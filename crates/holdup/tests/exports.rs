//! Reports in other formats, where they may go and where not; and the line that says how far it is.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use nix::pty::{OpenptyResult, Winsize, openpty};
use nix::sys::signal::Signal;
use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};
use support::{Guarded, HOLDUP, holdup, json, lossy, read_to_end, read_until};

/// To the begin of the line, and nothing left of it.
const BACK: &str = "\r\x1b[K";

/// A log with a duration in it, so that its report has a wait.
const STRACE: &str =
    "12:00:00.000000 fsync(3) = 0 <1.500000>\n12:00:01.500000 read(4, \"x\", 1) = 1 <0.250000>\n";

#[test]
fn a_run_is_written_in_every_format_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let formats = [
        "json",
        "markdown",
        "collapsed",
        "pprof",
        "perfetto",
        "firefox",
        "otlp",
        "prometheus",
    ];
    let exports = formats.map(|format| format!("{format}={}", folder.path().join(format).display()));
    let options: Vec<&str> = exports.iter().flat_map(|export| ["--export", export]).collect();
    let output = holdup(&options)
        .args(["sh", "-c", "sleep 0.01; echo x | cat"])
        .output()
        .unwrap();
    assert_eq!(lossy(&output.stdout), "x\n");
    assert!(
        lossy(&output.stderr).contains("accounted"),
        "{}",
        lossy(&output.stderr)
    );
    let report = json(&folder.path().join("json"));
    let waits = report["waits"].as_array().unwrap().iter();
    let total: u64 = waits.map(|wait| wait["ns"].as_u64().unwrap()).sum();
    assert!(total > 0);
    let collapsed = std::fs::read_to_string(folder.path().join("collapsed")).unwrap();
    let stacks = collapsed.lines().map(|line| line.rsplit_once(' ').unwrap().1);
    assert_eq!(stacks.map(|ns| ns.parse::<u64>().unwrap()).sum::<u64>(), total);
    for format in formats {
        assert!(
            std::fs::metadata(folder.path().join(format)).unwrap().len() > 0,
            "{format}"
        );
    }
}

#[test]
fn what_is_written_of_a_run_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let pprof = folder.path().join("pprof");
    let export = format!("pprof={}", pprof.display());
    holdup(&["--export", &export])
        .args(["sleep", "0.01"])
        .output()
        .unwrap();
    let read = Command::new(HOLDUP).arg("read").arg(&pprof).output().unwrap();
    assert!(lossy(&read.stdout).contains("pprof"), "{}", lossy(&read.stdout));
    assert_eq!(read.status.code(), Some(0));
}

#[test]
fn a_file_that_cannot_be_written_is_said_before_cmd_runs() {
    let output = holdup(&["--export", "otlp=/nowhere/x"])
        .args(["echo", "ran"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert_eq!(lossy(&output.stdout), "");
    assert!(
        lossy(&output.stderr).contains("/nowhere/x"),
        "{}",
        lossy(&output.stderr)
    );
}

#[test]
fn a_binary_report_goes_through_a_pipe_and_to_no_terminal() {
    let read = |format: &str, stdout: Stdio| {
        let mut command = Command::new(HOLDUP);
        command.args(["read", "--format", format, "-"]);
        let mut holdup = Guarded::spawn(
            command
                .stdin(Stdio::piped())
                .stdout(stdout)
                .stderr(Stdio::piped()),
        );
        holdup.0.stdin.take().unwrap().write_all(STRACE.as_bytes()).ok();
        holdup
    };
    let mut piped = read("pprof", Stdio::piped());
    let mut packed = Vec::new();
    std::io::Read::read_to_end(piped.0.stdout.as_mut().unwrap(), &mut packed).unwrap();
    assert!(packed.starts_with(&[0x1f, 0x8b]), "{packed:?}");

    let pty = terminal();
    let mut at_terminal = read("perfetto", pty.slave.into());
    let said = read_to_end(at_terminal.0.stderr.as_mut().unwrap());
    assert_eq!(at_terminal.0.wait().unwrap().code(), Some(2));
    assert!(said.contains("--export perfetto=FILE"), "{said}");

    let output = holdup(&["--format", "pprof"])
        .args(["echo", "ran"])
        .output()
        .unwrap();
    assert_eq!(
        (output.status.code(), lossy(&output.stdout).as_str()),
        (Some(2), "")
    );
}

#[test]
fn a_comparison_is_told_as_markdown_and_not_as_a_profile() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["before", "after"].map(|name| folder.path().join(name));
    for (file, seconds) in files.iter().zip([1, 4]) {
        std::fs::write(
            file,
            format!("real\t0m{seconds}.000s\nuser\t0m0.500s\nsys\t0m0.100s\n"),
        )
        .unwrap();
    }
    let diff = |format: &str| {
        let mut command = Command::new(HOLDUP);
        command.arg("diff").args(&files).args(["--format", format]);
        command.output().unwrap()
    };
    let markdown = diff("markdown");
    let found = lossy(&markdown.stdout);
    assert_eq!(markdown.status.code(), Some(0), "{}", lossy(&markdown.stderr));
    assert!(
        found.starts_with("**") && found.contains("BEFORE is `"),
        "{found}"
    );
    let pprof = diff("pprof");
    assert_eq!((pprof.status.code(), pprof.stdout.len()), (Some(2), 0));
    assert!(
        lossy(&pprof.stderr).contains("markdown"),
        "{}",
        lossy(&pprof.stderr)
    );
}

/// A terminal of a hundred columns.
fn terminal() -> OpenptyResult {
    let size = Winsize {
        ws_row: 25,
        ws_col: 100,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    openpty(Some(&size), None).unwrap()
}

/// holdup with a terminal as stderr alone, and what it says there.
fn with_terminal(arguments: &[&str], stdin: Stdio) -> (Guarded, File) {
    let pty = terminal();
    let mut command = Command::new(HOLDUP);
    command.args(arguments).env("TERM", "xterm").stdin(stdin);
    let holdup = Guarded::spawn(command.stdout(Stdio::piped()).stderr(pty.slave));
    (holdup, pty.master.into())
}

#[test]
fn who_waits_at_a_terminal_sees_how_far_it_is_and_nothing_of_it_stays() {
    let sleeper = Guarded::spawn(Command::new("sleep").arg("1000"));
    let pid = sleeper.0.id().to_string();
    let (mut holdup, mut said) = with_terminal(&["attach", "-p", &pid], Stdio::null());
    let line = read_until(&mut said, "Ctrl-C ends it");
    assert!(
        line.starts_with(BACK) && line.contains(" s, 1 thread; "),
        "{line:?}"
    );
    holdup.signal(Signal::SIGINT);
    let report = read_to_end(holdup.0.stdout.as_mut().unwrap());
    assert!(
        report.contains("sleeping on purpose") && !report.contains("Ctrl-C"),
        "{report}"
    );
    assert_eq!(holdup.0.wait().unwrap().code(), Some(0));
    let rest = read_to_end(&mut said);
    assert!(rest.ends_with(BACK), "{rest:?}");
}

#[test]
fn reading_says_how_much_it_has_read() {
    let (mut holdup, mut said) = with_terminal(&["read", "-"], Stdio::piped());
    let mut stdin = holdup.0.stdin.take().unwrap();
    // As long as it takes until the line is there: no longer than a second.
    let writer = std::thread::spawn(move || while stdin.write_all(STRACE.as_bytes()).is_ok() {});
    let line = read_until(&mut said, "B");
    assert!(line.starts_with(&format!("{BACK} read ")), "{line:?}");
    holdup.0.kill().unwrap();
    writer.join().unwrap();
}

#[test]
fn with_q_there_is_no_line() {
    let pty = terminal();
    let mut command = Command::new(HOLDUP);
    command.args(["host", "-q", "-d", "1.5"]).env("TERM", "xterm");
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(pty.slave)
        .status()
        .unwrap();
    // The command has the terminal open, too.
    drop(command);
    assert_eq!(status.code(), Some(0));
    let mut said = File::from(pty.master);
    assert_eq!(read_to_end(&mut said), "");
}
