//! What earlier tests left running: a recorder or observer that nobody ended stands in every recording of the whole machine that is made
//! after it, so one failure becomes many.
//!
//! In: the folder that the binaries are built in. Out: those that still run, ended.

use crate::workspace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The program that is looked for.
const PROGRAM: &str = "holdup";

/// What the kernel appends to the path of a program whose file was replaced.
const DELETED: &str = " (deleted)";

/// A process that is left.
struct Left {
    pid: Pid,
    words: String,
}

/// Ends every holdup of this tree that still runs, and returns a line for each. Only between rings, when none has a reason to run.
pub(super) fn end() -> anyhow::Result<Vec<String>> {
    let built = workspace::target()?;
    let mut lines = Vec::new();
    for one in running(&built) {
        // It may have ended by itself meanwhile.
        if kill(one.pid, Signal::SIGKILL).is_ok() {
            lines.push(format!(
                "left running by a test, and ended: pid {}: {}",
                one.pid, one.words
            ));
        }
    }
    Ok(lines)
}

fn running(built: &Path) -> Vec<Left> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: i32| {
        let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        is_ours(&program, built).then(|| Left {
            pid: Pid::from_raw(pid),
            words: String::from_utf8_lossy(&words).replace('\0', " "),
        })
    })
    .collect()
}

fn is_ours(program: &Path, built: &Path) -> bool {
    let bytes = program.as_os_str().as_bytes();
    let path = bytes.strip_suffix(DELETED.as_bytes()).unwrap_or(bytes);
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(path));
    path.starts_with(built) && path.file_name().is_some_and(|name| name == PROGRAM)
}

#[cfg(test)]
mod tests {
    use super::{is_ours, running};
    use std::path::Path;

    #[test]
    fn only_the_program_of_this_tree_is_left_over() {
        let built = Path::new("/src/holdup/target");
        for ours in [
            "/src/holdup/target/debug/holdup",
            "/src/holdup/target/debug/holdup (deleted)",
        ] {
            assert!(is_ours(Path::new(ours), built), "{ours}");
        }
        for other in [
            "/usr/bin/holdup",
            "/src/holdup/target/debug/xtask",
            "/src/holdup/target/debug/holdup-replay",
            "/src/holdup/targets/debug/holdup",
        ] {
            assert!(!is_ours(Path::new(other), built), "{other}");
        }
    }

    #[test]
    fn a_process_that_runs_is_found() {
        let place = tempfile::tempdir().unwrap();
        let copy = place.path().join("holdup");
        std::fs::copy("/bin/sleep", &copy).unwrap();
        let mut child = std::process::Command::new(&copy).arg("600").spawn().unwrap();
        // A program that has just begun may have no words yet.
        let words = format!("/proc/{}/cmdline", child.id());
        while !std::fs::read(&words).unwrap().ends_with(b"600\0") {
            std::thread::yield_now();
        }
        let found = running(place.path());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found.len(), 1);
        assert!(found[0].words.ends_with("holdup 600 "), "{}", found[0].words);
    }
}
