//! holdup is killed, or told to end, at a hundred moments from its first system call to its last: CMD ends as it would
//! have, or never began, and nothing of holdup's is left in the kernel or on disk.
//!
//! A moment is a number of system calls that holdup has made, not a time: holdup runs under ptrace, so the same moment
//! is met on any machine, however busy.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};
use support::{holdup, read_to_end};

/// CMD: what it prints and returns tells how far it came.
const SCRIPT: &str = "echo one; read go; (exit 0); echo two; exit 42";
const ALL: &str = "one\ntwo\n";
const STATUS: i32 = 42;

/// What the child ends with that was never let go.
const NEVER_BEGAN: i32 = 125;

/// The moments are the same in each run of this test.
const SEED: u64 = 3;

/// How many system calls after CMD's start a moment may be, while CMD waits for its input: holdup makes some ten a turn.
const TURNS: usize = 60;

/// The kernel frees what nobody holds any more from its own threads, in its own time. This is how long it may take
/// before the test is given up, not what is measured.
const PATIENCE: Duration = Duration::from_secs(60);

/// System calls that leave something behind: holdup makes none of them.
const LEAVES_SOMETHING: [i64; 12] = [
    libc::SYS_mkdir,
    libc::SYS_mkdirat,
    libc::SYS_mknod,
    libc::SYS_mknodat,
    libc::SYS_symlink,
    libc::SYS_symlinkat,
    libc::SYS_link,
    libc::SYS_linkat,
    libc::SYS_rename,
    libc::SYS_mount,
    libc::SYS_fsmount,
    libc::SYS_shmget,
];

/// Commands of bpf(2).
const BPF_OBJ_PIN: u64 = 6;
const BPF_PROG_GET_FD_BY_ID: i64 = 13;
const BPF_MAP_GET_FD_BY_ID: i64 = 14;
const BPF_LINK_GET_FD_BY_ID: i64 = 30;

/// A small generator with a fixed seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// An object in the kernel that holdup held: the command that opens it by its number, and the number.
type Held = (i64, u32);

/// holdup, stopped at its next system call.
struct Traced {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    /// How many system calls it has begun.
    calls: usize,
    /// How many it had begun when it let CMD go.
    went: Option<usize>,
    /// CMD's process id, known from then on: what reads for holdup has holdup's name until it takes one of its own.
    let_go: Option<Pid>,
    /// A signal that is to be handed on.
    signal: i32,
}

/// What holdup did next.
enum Step {
    /// It is about to make a system call.
    Call,
    /// It is no more.
    Ended(WaitStatus),
}

impl Traced {
    fn start(directory: &Path) -> Traced {
        let mut command = holdup(&[]);
        command
            .args(["sh", "-c", SCRIPT])
            .current_dir(directory)
            .env("TMPDIR", directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        // SAFETY: system calls alone, which allocate nothing.
        unsafe {
            // A shell starts what it puts into the background with these ignored, and CMD would inherit that.
            command.pre_exec(|| {
                for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
                    libc::signal(signal, libc::SIG_DFL);
                }
                Ok(())
            });
            command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            });
        }
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        let pid = Pid::from_raw(child.id().cast_signed());
        assert_eq!(
            waitpid(pid, None).unwrap(),
            WaitStatus::Stopped(pid, Signal::SIGTRAP)
        );
        let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL;
        ptrace(libc::PTRACE_SETOPTIONS, pid, options as usize);
        Traced {
            child,
            stdin,
            stdout,
            calls: 0,
            went: None,
            let_go: None,
            signal: 0,
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// On to the beginning of the next system call.
    fn step(&mut self) -> Step {
        let mut returning = self.calls > 0;
        loop {
            ptrace(
                libc::PTRACE_SYSCALL,
                self.pid(),
                std::mem::take(&mut self.signal) as usize,
            );
            // nix has no name for a real-time signal.
            let mut status = 0;
            // SAFETY: writes one status.
            let waited = unsafe { libc::waitpid(self.pid().as_raw(), &raw mut status, 0) };
            assert_eq!(waited, self.pid().as_raw());
            if !libc::WIFSTOPPED(status) {
                return Step::Ended(WaitStatus::from_raw(self.pid(), status).unwrap());
            }
            match libc::WSTOPSIG(status) {
                call if call == libc::SIGTRAP | 0x80 => {
                    if !std::mem::take(&mut returning) {
                        self.began();
                        return Step::Call;
                    }
                }
                // Its own faults and what this test sends.
                signal => self.signal = signal,
            }
        }
    }

    /// Counts the call that is about to be made, and looks at it.
    fn began(&mut self) {
        // SAFETY: integers only, for which zeros are valid.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        // SAFETY: writes the registers of a stopped child.
        unsafe { libc::ptrace(libc::PTRACE_GETREGS, self.pid().as_raw(), 0, &raw mut registers) };
        let number = registers.orig_rax.cast_signed();
        assert!(
            !LEAVES_SOMETHING.contains(&number),
            "holdup makes system call {number}"
        );
        assert!(
            number != libc::SYS_bpf || registers.rdi != BPF_OBJ_PIN,
            "holdup pins something"
        );
        self.calls += 1;
        // The go-ahead is the only thing of one byte that it writes.
        if self.went.is_none() && number == libc::SYS_write && registers.rdx == 1 {
            self.went = Some(self.calls);
            self.let_go = self.cmd();
        }
    }

    /// On to a moment: so many calls, or so many after CMD was let go. `Some` if holdup ended before.
    fn until(&mut self, moment: Moment) -> Option<WaitStatus> {
        loop {
            if let Step::Ended(status) = self.step() {
                return Some(status);
            }
            let reached = match moment {
                Moment::Calls(calls) => self.calls >= calls,
                Moment::AfterStart(calls) => self.went.is_some_and(|went| self.calls >= went + calls),
                Moment::Never => false,
            };
            if reached {
                return None;
            }
        }
    }

    /// The child that is or will be CMD: the first, but for those that read for holdup.
    fn cmd(&self) -> Option<Pid> {
        let list = format!("/proc/{0}/task/{0}/children", self.pid());
        let list = std::fs::read_to_string(list).unwrap();
        let name = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let mut others = list.split_whitespace().filter(|pid| match self.let_go {
            Some(cmd) => cmd.to_string() == **pid,
            None => !name(pid).starts_with("holdup-"),
        });
        Some(Pid::from_raw(others.next()?.parse().unwrap()))
    }

    fn tell_cmd_to_go_on(&mut self) {
        // A CMD that is gone does not read it.
        self.stdin.take().unwrap().write_all(b"go\n").ok();
    }

    /// Goes on to the end without stopping.
    fn detach(&mut self) {
        ptrace(
            libc::PTRACE_DETACH,
            self.pid(),
            std::mem::take(&mut self.signal) as usize,
        );
    }
}

fn ptrace(request: libc::c_uint, pid: Pid, data: usize) {
    // SAFETY: none of the requests made here writes through a pointer.
    let done = unsafe { libc::ptrace(request, pid.as_raw(), 0, data) };
    assert_eq!(done, 0, "ptrace {request}: {}", std::io::Error::last_os_error());
}

#[derive(Clone, Copy, Debug)]
enum Moment {
    Calls(usize),
    AfterStart(usize),
    Never,
}

/// BPF objects behind a process's descriptors.
fn held(pid: Pid) -> BTreeSet<Held> {
    let mut held = BTreeSet::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap_or_default();
        for line in text.lines() {
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            let command = match key {
                "prog_id" => BPF_PROG_GET_FD_BY_ID,
                "map_id" => BPF_MAP_GET_FD_BY_ID,
                "link_id" => BPF_LINK_GET_FD_BY_ID,
                _ => continue,
            };
            held.insert((command, value.trim().parse().unwrap()));
        }
    }
    held
}

/// Whether the object still exists.
fn exists((command, id): Held) -> bool {
    let mut attributes = [0_u32; 32];
    attributes[0] = id;
    // SAFETY: the kernel reads no more than the size that it is reported; what it returns is a fresh descriptor.
    unsafe {
        let descriptor = libc::syscall(
            libc::SYS_bpf,
            command,
            &raw const attributes,
            size_of_val(&attributes),
        );
        if descriptor >= 0 {
            libc::close(i32::try_from(descriptor).unwrap());
        } else {
            let error = std::io::Error::last_os_error();
            assert_eq!(error.raw_os_error(), Some(libc::ENOENT), "{error}");
        }
        descriptor >= 0
    }
}

/// Returns when none of them exists any more.
fn all_gone(held: &BTreeSet<Held>) {
    let began = Instant::now();
    let mut left: Vec<Held> = held.iter().copied().collect();
    loop {
        left.retain(|one| exists(*one));
        if left.is_empty() {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "still there: {left:?}");
        std::thread::yield_now();
    }
}

/// Descriptors of a process that are BPF's or performance events.
fn tracing_descriptors(pid: Pid) -> Vec<String> {
    std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .map(|target| target.to_string_lossy().into_owned())
        .filter(|target| target.contains("bpf") || target.contains("perf_event"))
        .collect()
}

/// Orphans of this process's children become its own, so that their ends can be seen.
fn adopt_orphans() {
    // SAFETY: sets a flag of this process.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) }, 0);
}

/// How many calls holdup makes before it lets CMD go, and afterwards to its end.
fn length(directory: &Path) -> (usize, usize) {
    let mut whole = Traced::start(directory);
    whole.tell_cmd_to_go_on();
    let ended = whole.until(Moment::Never).unwrap();
    assert_eq!(ended, WaitStatus::Exited(whole.pid(), STATUS));
    assert_eq!(read_to_end(&mut whole.stdout), ALL);
    let went = whole.went.unwrap();
    (went, whole.calls - went)
}

/// A third while it loads, a third while CMD waits, a third while CMD ends and the report is made; and whether CMD waits for
/// its input then. `calls` are holdup's before and after CMD's start.
fn moment(turn: usize, calls: (usize, usize), random: &mut Random) -> (Moment, bool) {
    match turn % 3 {
        0 => (Moment::Calls(1 + random.below(calls.0)), true),
        1 => (Moment::AfterStart(1 + random.below(TURNS)), true),
        _ => (Moment::AfterStart(1 + random.below(calls.1)), false),
    }
}

#[test]
fn killed_at_any_moment_it_leaves_cmd_alone_and_nothing_behind() {
    const KILLS: usize = 70;
    adopt_orphans();
    let directory = tempfile::tempdir().unwrap();
    let (before, after) = length(directory.path());
    let mut random = Random(SEED);
    let (mut kills, mut began, mut cut_loading) = (0, 0, 0);
    let mut all_held = BTreeSet::new();
    while kills < KILLS {
        let (moment, cmd_waits) = moment(kills, (before, after), &mut random);
        let mut traced = Traced::start(directory.path());
        if !cmd_waits {
            traced.tell_cmd_to_go_on();
        }
        if traced.until(moment).is_some() {
            // This time it made fewer calls: it ended by itself before the moment came.
            continue;
        }
        let (pid, cmd) = (traced.pid(), traced.cmd());
        let objects = held(pid);
        kill(pid, Signal::SIGKILL).unwrap();
        assert_eq!(
            waitpid(pid, None).unwrap(),
            WaitStatus::Signaled(pid, Signal::SIGKILL, false)
        );
        kills += 1;
        cut_loading += usize::from(traced.went.is_none() && !objects.is_empty());
        // The call that lets CMD go was begun and not made.
        let let_go = traced.went.is_some_and(|went| traced.calls > went);
        if let Some(cmd) = cmd {
            if let_go && cmd_waits {
                // CMD is there and waits, and all that holdup had attached is gone nevertheless.
                assert_eq!(tracing_descriptors(cmd), [""; 0], "{moment:?}");
                all_gone(&objects);
                traced.tell_cmd_to_go_on();
            }
            drop(traced.stdin.take());
            let expected = if let_go { STATUS } else { NEVER_BEGAN };
            assert_eq!(
                waitpid(cmd, None).unwrap(),
                WaitStatus::Exited(cmd, expected),
                "{moment:?}"
            );
        }
        let text = read_to_end(&mut traced.stdout);
        // Without a child it had ended, and was waited for, or was not made yet.
        let ran = if cmd.is_some() {
            let_go
        } else {
            traced.went.is_some()
        };
        assert_eq!(text, if ran { ALL } else { "" }, "{moment:?}");
        began += usize::from(ran);
        all_held.extend(objects);
    }
    assert!((KILLS / 3..KILLS).contains(&began), "{began}");
    assert!(cut_loading > 0 && !all_held.is_empty());
    all_gone(&all_held);
    assert_eq!(
        std::fs::read_dir(directory.path()).unwrap().count(),
        0,
        "files are left"
    );
}

#[test]
fn told_to_end_at_any_moment_it_ends_cmd_or_lets_it_finish() {
    const EACH: usize = 15;
    adopt_orphans();
    let directory = tempfile::tempdir().unwrap();
    let (before, after) = length(directory.path());
    let mut random = Random(SEED);
    let mut all_held = BTreeSet::new();
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut sent = 0;
        while sent < EACH {
            let (moment, cmd_waits) = moment(sent, (before, after), &mut random);
            let mut traced = Traced::start(directory.path());
            if !cmd_waits {
                traced.tell_cmd_to_go_on();
            }
            if traced.until(moment).is_some() {
                continue;
            }
            sent += 1;
            all_held.extend(held(traced.pid()));
            kill(traced.pid(), signal).unwrap();
            traced.detach();
            // CMD waits for its input and ends by the signal that holdup passes on, or holdup by its own.
            let status = waitpid(traced.pid(), None).unwrap();
            let text = read_to_end(&mut traced.stdout);
            let by_signal = WaitStatus::Exited(traced.pid(), 128 + signal as i32);
            match status {
                // It had not begun to look after signals, and CMD not begun to run.
                WaitStatus::Signaled(_, by, _) => assert_eq!((by, text.as_str()), (signal, ""), "{moment:?}"),
                _ if status == by_signal => assert!(ALL.starts_with(&text), "{moment:?}: {text:?}"),
                // It came when CMD had ended.
                _ => assert_eq!(
                    (status, text.as_str(), cmd_waits),
                    (WaitStatus::Exited(traced.pid(), STATUS), ALL, false),
                    "{moment:?}"
                ),
            }
        }
    }
    all_gone(&all_held);
    assert_eq!(
        std::fs::read_dir(directory.path()).unwrap().count(),
        0,
        "files are left"
    );
}
