//! `holdup try` is killed at moments all over its life: nothing that it started runs on, nothing that it mounted is left, and the directory
//! that runs without have in memory has what runs as it is wrote, and no more.
//!
//! A moment is a number of system calls that holdup has made, not a time: holdup runs under ptrace, which its children are not.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{HOLDUP, lossy};

/// What was killed goes in its own time. This is how long it may take before the test is given up, not what is measured.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often it is killed.
const TURNS: usize = 12;

/// Each run changes the directory and leaves a process behind. A single sync may be over before anybody has waited for it, on a disk that is fast
/// beside a CPU that is not, and then there is nothing to take away: so there are some.
const CMD: &str = r#"echo more >>"$0/queue/file"
for each in 1 2 3 4 5 6 7 8; do echo "$each" >>"$0/log"; sync "$0/log"; done
sleep 1000 &"#;

/// What holdup says goes here, for a test that fails.
const SAID: &str = "said";

#[expect(
    clippy::zombie_processes,
    reason = "a tracer waits by process id: each caller does"
)]
fn attempt(root: &Path) -> Pid {
    let said = std::fs::File::create(root.join(SAID)).unwrap();
    let mut command = Command::new(HOLDUP);
    command
        .args(["try", "--without", "disk", "--yes", "--runs", "2", "--memory"])
        .arg(root.join("queue"))
        .args(["--prepare", &format!("true {}", root.display())])
        .args(["--", "sh", "-c", CMD])
        .arg(root)
        .stdin(Stdio::null())
        .stdout(said.try_clone().unwrap())
        .stderr(said);
    // SAFETY: one system call, which allocates nothing.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    let child = command.spawn().unwrap();
    let pid = Pid::from_raw(child.id().cast_signed());
    assert_eq!(
        waitpid(pid, None).unwrap(),
        WaitStatus::Stopped(pid, Signal::SIGTRAP)
    );
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL;
    ptrace(libc::PTRACE_SETOPTIONS, pid, options as usize);
    pid
}

fn ptrace(request: libc::c_uint, pid: Pid, data: usize) {
    // SAFETY: none of the requests made here writes through a pointer.
    let done = unsafe { libc::ptrace(request, pid.as_raw(), 0, data) };
    assert_eq!(done, 0, "ptrace {request}: {}", std::io::Error::last_os_error());
}

/// On to a stop at so many system calls (begins and ends); how many there were if it ended before.
fn until(pid: Pid, stops: usize) -> Option<usize> {
    let mut met = 0;
    let mut signal = 0;
    while met < stops {
        ptrace(libc::PTRACE_SYSCALL, pid, std::mem::take(&mut signal));
        let mut status = 0;
        // SAFETY: writes one status; nix has no name for a real-time signal.
        let waited = unsafe { libc::waitpid(pid.as_raw(), &raw mut status, 0) };
        assert_eq!(waited, pid.as_raw());
        if !libc::WIFSTOPPED(status) {
            return Some(met);
        }
        match libc::WSTOPSIG(status) {
            call if call == libc::SIGTRAP | 0x80 => met += 1,
            other => signal = usize::try_from(other).unwrap(),
        }
    }
    None
}

/// Processes that have this directory in their command line or their mounts.
fn living(directory: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc")
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let lines = processes.filter_map(|folder| {
        let has = |name: &str| lossy(&std::fs::read(folder.join(name)).unwrap_or_default());
        let (line, mounts) = (has("cmdline"), has("mountinfo"));
        (line.contains(directory) || mounts.contains(directory)).then_some(format!("{folder:?} {line}"))
    });
    lines.collect()
}

#[test]
fn killed_at_any_of_its_system_calls_it_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    std::fs::create_dir(root.join("queue")).unwrap();
    let name = root.to_str().unwrap();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let all = until(attempt(root), usize::MAX).unwrap();
    let lines = || {
        let text = std::fs::read_to_string(root.join("queue/file")).unwrap_or_default();
        assert!(text.lines().all(|line| line == "more"), "{text}");
        text.lines().count()
    };
    let said = lossy(&std::fs::read(root.join(SAID)).unwrap());
    assert_eq!(
        lines(),
        2,
        "two runs as it is write, and two without do not: {said}"
    );
    let mut killed = 0;
    for turn in 0..TURNS {
        let before = lines();
        let pid = attempt(root);
        if until(pid, all * (2 * turn + 1) / (2 * TURNS)).is_none() {
            killed += 1;
            nix::sys::signal::kill(pid, Signal::SIGKILL).unwrap();
            // A tracer also gets the stops that were under way.
            while !matches!(
                waitpid(pid, Some(WaitPidFlag::empty())).unwrap(),
                WaitStatus::Signaled(..)
            ) {}
        }
        let began = Instant::now();
        loop {
            let left = living(name);
            if left.is_empty() {
                break;
            }
            assert!(began.elapsed() < PATIENCE, "turn {turn}: {left:?}");
            std::thread::yield_now();
        }
        assert!(
            lines() <= before + 2,
            "turn {turn}: a run without wrote to the disk"
        );
        let names: Vec<String> = std::fs::read_dir(root.join("queue"))
            .unwrap()
            .map(|entry| lossy(entry.unwrap().file_name().as_encoded_bytes()))
            .filter(|name| name != "made")
            .collect();
        assert_eq!(names, ["file"], "turn {turn}");
        assert_eq!(std::fs::read_to_string("/proc/self/mountinfo").unwrap(), mounts);
    }
    // How many calls it makes differs from run to run; most moments are met all the same.
    assert!(killed > TURNS / 2, "{killed} of {TURNS}");
}
