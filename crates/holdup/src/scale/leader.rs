//! The leader of a slice: a process of its own that starts workers, lets them begin at once, and sees that all of them end.
//!
//! In: a plan, as `holdup scale` wrote it on its command line. Out: the outcome, into the descriptor that the plan names. It never
//! touches what is measured. Whatever a program leaves behind becomes its child, and is ended before it ends itself.

use super::board::Board;
use super::readers::Refused;
use super::{Failure, Measured, Outcome, Plan, worker};
use holdup_comparison::scaling::{Slice, WORKER};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, pipe2};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long who was told to end may take to be gone.
const LAST: Duration = Duration::from_millis(500);

/// Does what the plan says; the outcome is written, and the exit status says nothing.
///
/// # Errors
/// When the plan can't be read, or its descriptor is none.
pub(crate) fn lead(plan: &str) -> anyhow::Result<u8> {
    let plan: Plan = serde_json::from_str(plan)?;
    anyhow::ensure!(plan.result > 2, "the plan names no descriptor for its outcome");
    // SAFETY: sets properties of this process, and asks for its parent.
    let orphan = unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        // No program that is measured is to write there.
        libc::fcntl(plan.result, libc::F_SETFD, libc::FD_CLOEXEC) == -1 || libc::getppid() != plan.parent
    };
    anyhow::ensure!(!orphan, "only holdup scale may start this command");
    // SAFETY: the descriptor was opened for us by who started us, and nothing else here knows it.
    let mut result = unsafe { File::from_raw_fd(plan.result) };
    let outcome = slice(&plan).unwrap_or_else(Outcome::Failed);
    end_all(&[]);
    result.write_all(&serde_json::to_vec(&outcome)?)?;
    Ok(0)
}

/// The ends of the pipes that the leader has.
struct Pipes {
    ready: File,
    done: OwnedFd,
}

fn slice(plan: &Plan) -> Result<Outcome, Failure> {
    let own = |what: &str| {
        let what = what.to_owned();
        move |errno: Errno| Failure::Own {
            what,
            errno: errno as i32,
        }
    };
    let board = Board::new(plan.workers).map_err(own("memory for the workers"))?;
    let pipe = || pipe2(OFlag::O_CLOEXEC).map_err(own("a pipe"));
    let (ready, say_ready) = pipe()?;
    let (go, hold_back) = pipe()?;
    let (done, say_done) = pipe()?;
    let mut workers = Vec::new();
    let mut refused = None;
    for number in 0..plan.workers as usize {
        // SAFETY: this process has one thread, so its copy may do whatever a program does.
        match unsafe { fork() } {
            Ok(ForkResult::Child) => {
                drop(hold_back);
                name_after(WORKER);
                // The other end of `done` stays open until this process ends.
                std::mem::forget(say_done);
                worker::work(plan, &board, number, say_ready.into(), go.into())
            }
            Ok(ForkResult::Parent { child }) => workers.push(child),
            Err(errno) => {
                refused = Some(errno);
                break;
            }
        }
    }
    drop((say_ready, say_done, go));
    if let Some(errno) = refused {
        end_all(&workers);
        let started = workers.len() as u32;
        return Err(Failure::Workers {
            started,
            errno: errno as i32,
        });
    }
    let pipes = Pipes {
        ready: ready.into(),
        done,
    };
    let outcome = watch(plan, &board, pipes, hold_back);
    end_all(&workers);
    outcome
}

/// Until all have ended, or are given up.
fn watch(plan: &Plan, board: &Board, mut pipes: Pipes, hold_back: OwnedFd) -> Result<Outcome, Failure> {
    let timeout = Duration::from_millis(plan.timeout_ms);
    let end = Instant::now() + timeout;
    let mut ready = 0;
    while ready < plan.workers {
        if !readable(&pipes.ready, end) {
            return Err(Failure::OpenHangs);
        }
        let mut words = [0; 256];
        let room = words.len().min((plan.workers - ready) as usize);
        let count = pipes.ready.read(&mut words[..room]).unwrap_or(0);
        if count == 0 || words[..count].contains(&b'!') {
            return Err(why(board));
        }
        ready += count as u32;
    }
    let end = Instant::now() + timeout;
    let stop = Instant::now() + Duration::from_millis(plan.most_ms);
    drop(hold_back);
    if !readable(&pipes.done, stop.min(end)) {
        board.stop();
        readable(&pipes.done, end);
    }
    if board.slots().any(|slot| slot.refused().is_some()) {
        return Err(why(board));
    }
    let hang = board
        .slots()
        .filter(|slot| slot.whole.load(Ordering::Acquire) == 0)
        .count();
    if hang > 0 {
        return Err(Failure::Hangs { workers: hang as u32 });
    }
    Ok(Outcome::Measured(measured(plan, board)))
}

fn measured(plan: &Plan, board: &Board) -> Measured {
    let mut sum = Measured {
        slice: Slice {
            workers: plan.workers,
            ..Slice::default()
        },
        ..Measured::default()
    };
    let mut counts = std::collections::BTreeMap::<u32, u64>::new();
    for slot in board.slots() {
        let of = |field: &std::sync::atomic::AtomicU64| field.load(Ordering::Relaxed);
        sum.slice.operations += of(&slot.operations);
        sum.slice.wall += of(&slot.wall);
        sum.slice.cpu += of(&slot.cpu);
        sum.slice.ticks_user += of(&slot.ticks_user);
        sum.slice.ticks_kernel += of(&slot.ticks_kernel);
        sum.slice.queued += of(&slot.queued);
        sum.slice.blocked += of(&slot.blocked);
        sum.unsuccessful += of(&slot.unsuccessful);
        sum.queue_untold += slot.queue_untold.load(Ordering::Relaxed);
        sum.status = sum.status.max(slot.status.load(Ordering::Relaxed).cast_signed());
        for (bucket, count) in slot.lengths() {
            *counts.entry(bucket).or_default() += count;
        }
    }
    sum.slice.lengths = counts.into_iter().collect();
    sum
}

/// What the first worker that could not go on said.
fn why(board: &Board) -> Failure {
    let kind = |what: &str| Failure::Kind {
        what: what.to_owned(),
    };
    match board.slots().find_map(|slot| slot.refused()) {
        Some(Refused::Open(errno)) => Failure::Open { errno: errno as i32 },
        Some(Refused::Directory) => kind("a directory"),
        Some(Refused::Pipe) => kind("a pipe or socket"),
        Some(Refused::Strange) => kind("neither a file nor a device"),
        Some(Refused::Operation(errno)) => Failure::Operation { errno: errno as i32 },
        None => Failure::Own {
            what: "a worker that ended early".to_owned(),
            errno: 0,
        },
    }
}

/// Waits until something can be read, or the other end is gone; false when it is too late.
fn readable(from: &impl AsFd, end: Instant) -> bool {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let wait = PollTimeout::try_from(left.as_millis().min(60_000) as i32).unwrap_or(PollTimeout::ZERO);
        match poll(&mut [PollFd::new(from.as_fd(), PollFlags::POLLIN)], wait) {
            Ok(0) if Instant::now() >= end => return false,
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) => return true,
            Err(_) => return false,
        }
    }
}

/// Ends these and every other child, those that programs left behind among them. Who sleeps where no signal reaches is left.
fn end_all(workers: &[Pid]) {
    let end = Instant::now() + LAST;
    for worker in workers {
        nix::sys::signal::kill(*worker, nix::sys::signal::Signal::SIGKILL).ok();
    }
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => {
                for child in children() {
                    nix::sys::signal::kill(child, nix::sys::signal::Signal::SIGKILL).ok();
                }
                if Instant::now() >= end {
                    return;
                }
                std::thread::sleep(LAST / 100);
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return,
        }
    }
}

fn children() -> Vec<Pid> {
    let text = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    let numbers = text.split_ascii_whitespace().filter_map(|word| word.parse().ok());
    numbers.map(Pid::from_raw).collect()
}

/// Takes another name, so that a list of processes says what it is; dies with its parent.
fn name_after(name: &str) {
    let mut text = [0_u8; 16];
    let length = name.len().min(text.len() - 1);
    text[..length].copy_from_slice(&name.as_bytes()[..length]);
    // SAFETY: the text ends with a zero and is as long as the kernel reads; the other takes a number.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, text.as_ptr());
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
}
