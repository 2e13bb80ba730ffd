//! The screen of `holdup top` on a terminal of its own: a chain of four processes and its root, and the terminal afterwards.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use nix::pty::{Winsize, openpty};
use nix::sys::signal::Signal;
use nix::sys::termios::{LocalFlags, tcgetattr};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use support::{Guarded, HOLDUP, lossy};

const COLUMNS: u16 = 160;
const LINES: u16 = 40;

/// What a terminal would show: characters where the cursor is, and moves of it.
struct Glass {
    cells: Vec<Vec<char>>,
    at: (usize, usize),
    /// An escape sequence that is not whole yet.
    pending: String,
    /// Whether the other screen is shown, and was.
    other: bool,
}

impl Glass {
    fn new() -> Glass {
        Glass {
            cells: vec![vec![' '; usize::from(COLUMNS)]; usize::from(LINES)],
            at: (0, 0),
            pending: String::new(),
            other: false,
        }
    }

    fn take(&mut self, text: &str) {
        for one in text.chars() {
            if !self.pending.is_empty() || one == '\x1b' {
                self.pending.push(one);
                let begins = self.pending.len() <= 2 && (one == '\x1b' || one == '[');
                if !begins && (one.is_ascii_alphabetic() || !self.pending.starts_with("\x1b[")) {
                    let whole = std::mem::take(&mut self.pending);
                    self.act(&whole);
                }
            } else if !one.is_control() {
                let (line, column) = self.at;
                if let Some(cell) = self.cells.get_mut(line).and_then(|line| line.get_mut(column)) {
                    *cell = one;
                }
                self.at.1 += 1;
            }
        }
    }

    fn act(&mut self, sequence: &str) {
        match sequence {
            "\x1b[?1049h" => self.other = true,
            "\x1b[?1049l" => self.other = false,
            "\x1b[2J" => {
                *self = Glass {
                    other: self.other,
                    ..Glass::new()
                }
            }
            _ => {}
        }
        if let Some(numbers) = sequence
            .strip_prefix("\x1b[")
            .and_then(|rest| rest.strip_suffix('H'))
        {
            let mut numbers = numbers.split(';').map(|number| number.parse().unwrap_or(1) - 1);
            self.at = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        }
    }

    fn text(&self) -> String {
        let lines = self.cells.iter().map(|line| line.iter().collect::<String>());
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// `holdup top` on a terminal: the process, the keyboard and screen, and the terminal itself.
fn start(options: &[&str]) -> (Guarded, File, OwnedFd) {
    let size = Winsize {
        ws_row: LINES,
        ws_col: COLUMNS,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let pty = openpty(&size, None).unwrap();
    let descriptor = pty.slave.as_raw_fd();
    let end = || Stdio::from(pty.slave.try_clone().unwrap());
    let mut command = Command::new(HOLDUP);
    command
        .arg("top")
        .args(options)
        .env("TERM", "xterm")
        .env("LANG", "C.UTF-8")
        .stdin(end())
        .stdout(end())
        .stderr(end());
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
    (Guarded::spawn(&mut command), pty.master.into(), pty.slave)
}

/// Reads until the screen is as wanted, or nothing comes any more.
fn until(glass: &mut Glass, screen: &mut File, wanted: impl Fn(&Glass) -> bool) {
    let mut bytes = Vec::new();
    while !wanted(glass) {
        match support::read_byte(screen) {
            Some(byte) => bytes.push(byte),
            None => panic!("nothing more comes:\n{}", glass.text()),
        }
        if let Ok(text) = std::str::from_utf8(&bytes) {
            glass.take(text);
            bytes.clear();
        }
    }
}

fn first_child(pid: u32) -> u32 {
    let path = format!("/proc/{pid}/task/{pid}/children");
    loop {
        let text = std::fs::read_to_string(&path).unwrap();
        if let Some(child) = text.split_ascii_whitespace().next() {
            return child.parse().unwrap();
        }
        std::thread::yield_now();
    }
}

/// Reads a pipe from one that waits for a lock, which one has that waits for its child, which sleeps.
fn chain() -> ([Guarded; 3], u32, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("lock");
    let perl = |script: &str| {
        let mut command = Command::new("perl");
        command.args(["-e", script]).arg(&lock);
        command
    };
    let take = "open my $f, '>>', $ARGV[0]; flock $f, 2;";
    let holder = Guarded::spawn(perl(&format!("{take} system('sleep', '600')")).stdout(Stdio::null()));
    let sleep = first_child(holder.0.id());
    let mut waiter = Guarded::spawn(perl(&format!("{take} print 'x'")).stdout(Stdio::piped()));
    let pipe = waiter.0.stdout.take().unwrap();
    let reader = Guarded::spawn(Command::new("cat").stdin(pipe).stdout(Stdio::null()));
    ([reader, waiter, holder], sleep, folder)
}

#[test]
fn a_chain_of_four_is_on_the_screen_with_its_root() {
    let (processes, sleep, _folder) = chain();
    let pids: Vec<String> = processes.iter().map(|one| one.0.id().to_string()).collect();
    let (mut top, mut terminal, slave) = start(&["-p", &pids.join(",")]);
    let mut glass = Glass::new();
    let root = format!("root sleep (pid {sleep})");
    let reader = format!("cat (pid {})", pids[0]);
    let is_there = |glass: &Glass| {
        let text = glass.text();
        let mut lines = text.lines().skip_while(|line| !line.contains(&reader)).skip(1);
        lines.next().is_some_and(|line| line.contains(&root))
    };
    until(&mut glass, &mut terminal, is_there);
    let text = glass.text();
    assert!(
        glass.other && text.contains(&format!("perl (pid {})", pids[1])),
        "{text}"
    );
    assert!(
        !tcgetattr(&slave)
            .unwrap()
            .local_flags
            .contains(LocalFlags::ICANON)
    );
    terminal.write_all(b"q").unwrap();
    until(&mut glass, &mut terminal, |glass| !glass.other);
    assert_eq!(top.0.wait().unwrap().code(), Some(0));
    assert!(
        tcgetattr(&slave)
            .unwrap()
            .local_flags
            .contains(LocalFlags::ICANON)
    );
    let sleep = nix::unistd::Pid::from_raw(sleep.cast_signed());
    nix::sys::signal::kill(sleep, Signal::SIGKILL).unwrap();
}

#[test]
fn a_signal_ends_it_and_gives_the_terminal_back() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let own = std::process::id().to_string();
        let (mut top, mut terminal, slave) = start(&["-p", &own]);
        let mut glass = Glass::new();
        until(&mut glass, &mut terminal, |glass| glass.text().contains("q quit"));
        top.signal(signal);
        until(&mut glass, &mut terminal, |glass| !glass.other);
        assert_eq!(top.0.wait().unwrap().code(), Some(0), "{signal}");
        assert!(
            tcgetattr(&slave)
                .unwrap()
                .local_flags
                .contains(LocalFlags::ICANON),
            "{signal}"
        );
    }
}

#[test]
fn where_there_can_be_no_screen_it_says_what_to_use() {
    let output = Command::new(HOLDUP).arg("top").output().unwrap();
    let text = lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), text.lines().count()),
        (Some(125), 1),
        "{text}"
    );
    assert!(text.contains("holdup host"), "{text}");
    assert!(output.stdout.is_empty());
}
