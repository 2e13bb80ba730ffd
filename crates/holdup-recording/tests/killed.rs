//! A writer that is killed at any of its system calls: every segment that has a name is whole, and none is missing before the last.
//!
//! The writer is this program again, so it has a `main` of its own: the usual harness would write in a thread, and that is not whose calls
//! are counted.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

#[path = "../examples/story/minutes.rs"]
mod minutes;

use holdup_recording::{folder, read_one};
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Segments that it writes: the second is begun when the first one stands.
const SEGMENTS: usize = 2;

/// Tells this program that it is the writer, and where to.
const WRITES_TO: &str = "HOLDUP_TEST_WRITES_TO";

fn main() {
    match std::env::var_os(WRITES_TO) {
        Some(folder) => write(Path::new(&folder)),
        None => whichever_call_a_writer_is_killed_at_what_has_a_name_is_whole(),
    }
}

fn write(folder: &Path) {
    for minute in 0..SEGMENTS {
        let segment = minutes::minute(u32::try_from(minute).unwrap(), 1);
        holdup_recording::save(&segment, &folder.join(format!("{minute:04}.parquet"))).unwrap();
    }
}

/// Has it write, and kills it as it enters or leaves its system call of this number; whether it lived to its end. Calls count from the
/// first after the exec.
fn killed_at(number: usize, folder: &Path) -> bool {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(WRITES_TO, folder).stdin(Stdio::null());
    // SAFETY: between fork and exec nothing is called but one system call.
    unsafe { command.pre_exec(|| ptrace::traceme().map_err(Into::into)) };
    let child = Pid::from_raw(command.spawn().unwrap().id().cast_signed());
    waitpid(child, None).unwrap();
    for _ in 0..number {
        ptrace::syscall(child, None).unwrap();
        match waitpid(child, Some(WaitPidFlag::empty())).unwrap() {
            WaitStatus::Stopped(..) => {}
            WaitStatus::Exited(_, status) => {
                assert_eq!(status, 0);
                return true;
            }
            other => panic!("{other:?}"),
        }
    }
    kill(child, Signal::SIGKILL).unwrap();
    waitpid(child, None).unwrap();
    false
}

fn whichever_call_a_writer_is_killed_at_what_has_a_name_is_whole() {
    // A call stops twice, as it is entered and left: of three stops each kills in another call.
    let mut seen = [false; SEGMENTS + 1];
    for number in (0..).step_by(3) {
        let place = tempfile::tempdir().unwrap();
        let lived = killed_at(number, place.path());
        let found = folder(place.path()).unwrap();
        assert!(found.problems.is_empty(), "{number}: {:?}", found.problems);
        for (position, (path, head)) in found.segments.iter().enumerate() {
            assert!(
                path.ends_with(format!("{position:04}.parquet")),
                "{number}: {path:?} is there and not the one before it"
            );
            let segment = read_one(path).unwrap();
            assert_eq!(segment.head, *head);
            assert!(!segment.attributed.waits.is_empty());
        }
        seen[found.segments.len()] = true;
        if lived {
            break;
        }
    }
    assert_eq!(seen, [true; SEGMENTS + 1], "killed before, between and after");
}
