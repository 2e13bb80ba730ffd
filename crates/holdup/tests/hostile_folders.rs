//! Folders of an ordinary user, who changes them while root's holdup works there: nothing outside them is reached.
//!
//! Root runs these tests. What the other user does is bounded by count: flips of names, and runs of holdup.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use support::{HOLDUP, lossy};
use tempfile::TempDir;

/// The user that owns nothing.
const NOBODY: u32 = 65_534;

/// Runs of holdup while names are flipped: where owner and mode were changed by path, about one in eight gave root's file away.
const RUNS: usize = 10;

/// A folder of nobody's in a folder of root's, with a file of root's beside it.
struct Stage(TempDir);

impl Stage {
    fn new() -> Stage {
        let place = tempfile::tempdir().unwrap();
        std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let stage = Stage(place);
        std::fs::write(stage.at("secret"), "root's").unwrap();
        std::fs::set_permissions(stage.at("secret"), std::fs::Permissions::from_mode(0o600)).unwrap();
        for name in [
            "theirs",
            "theirs/a",
            "theirs/a/queue",
            "theirs/b",
            "theirs/b/queue",
        ] {
            std::fs::create_dir(stage.at(name)).unwrap();
            chown(stage.at(name), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        // What a mode for everybody with set-user-id on root's file would come from.
        std::fs::set_permissions(
            stage.at("theirs/a/queue"),
            std::fs::Permissions::from_mode(0o6777),
        )
        .unwrap();
        stage
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn their_link(&self, target: &Path, name: &str) {
        symlink(target, self.at(name)).unwrap();
        lchown(self.at(name), Some(NOBODY), Some(NOBODY)).unwrap();
    }

    /// Root's file is as it was.
    fn untouched(&self, run: usize) {
        let about = self.at("secret").metadata().unwrap();
        assert_eq!((about.mode() & 0o7777, about.uid()), (0o600, 0), "run {run}");
        assert_eq!(std::fs::read_to_string(self.at("secret")).unwrap(), "root's");
    }
}

/// A process of nobody's that exchanges two names again and again until it is killed.
struct Flipper(libc::pid_t);

impl Flipper {
    fn start(one: &Path, other: &Path) -> Flipper {
        let c_path = |path: &Path| CString::new(path.as_os_str().as_bytes()).unwrap();
        let (one, other) = (c_path(one), c_path(other));
        // SAFETY: the child makes plain system calls with integers and strings that were made before, and never returns.
        unsafe {
            match libc::fork() {
                0 => {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                    libc::syscall(libc::SYS_setgroups, 0, 0);
                    libc::syscall(libc::SYS_setresgid, NOBODY, NOBODY, NOBODY);
                    libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY);
                    loop {
                        libc::renameat2(
                            libc::AT_FDCWD,
                            one.as_ptr(),
                            libc::AT_FDCWD,
                            other.as_ptr(),
                            libc::RENAME_EXCHANGE,
                        );
                    }
                }
                child => {
                    assert!(child > 0);
                    Flipper(child)
                }
            }
        }
    }
}

impl Drop for Flipper {
    fn drop(&mut self) {
        // SAFETY: our child, which was not waited for.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, std::ptr::null_mut(), 0);
        }
    }
}

fn try_in(directory: &Path) -> [String; 8] {
    let directory = directory.to_str().unwrap();
    [
        "try",
        "--without",
        "disk",
        "--memory",
        directory,
        "--yes",
        "--",
        "true",
    ]
    .map(str::to_owned)
}

fn output(words: &[String]) -> Output {
    Command::new(HOLDUP)
        .args(words)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn memory_over_a_directory_that_is_exchanged_all_the_time_reaches_nothing_else() {
    let stage = Stage::new();
    // In the other folder the names that holdup once made are links to root's file.
    stage.their_link(&stage.at("secret"), "theirs/b/queue/upper");
    let flipper = Flipper::start(&stage.at("theirs/a"), &stage.at("theirs/b"));
    let mut outputs = Vec::new();
    for run in 0..RUNS {
        outputs.push(output(&try_in(&stage.at("theirs/a/queue"))));
        stage.untouched(run);
    }
    // It was either done, or said why not.
    for output in outputs {
        let stderr = lossy(&output.stderr);
        let done = output.status.code() == Some(0);
        assert!(
            done || stderr.contains("moved or replaced") || stderr.contains("theirs"),
            "{stderr}"
        );
    }
    drop(flipper);
}

#[test]
fn a_directory_that_is_a_foreign_link_is_refused() {
    let stage = Stage::new();
    stage.their_link(Path::new("/etc"), "theirs/link");
    let output = output(&try_in(&stage.at("theirs/link")));
    let stderr = lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{stderr}");
    assert!(stderr.contains("symbolic link"), "{stderr}");
}

/// What is certain about a race is who takes part: no call that changes owner, mode or mounts has a path with a folder of somebody else's
/// in it, and to open such a path is all that is done with it.
#[test]
fn no_privileged_call_has_a_path_below_a_foreign_folder() {
    let stage = Stage::new();
    let trace = stage.at("trace");
    let calls = "trace=%file,mount,move_mount,umount2,fchown,fchmod,fsconfig,openat2";
    let output = Command::new("strace")
        .args([
            "-f",
            "-qq",
            "-s",
            "4096",
            "-e",
            calls,
            "-o",
            trace.to_str().unwrap(),
            HOLDUP,
        ])
        .args(try_in(&stage.at("theirs/a/queue")))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", lossy(&output.stderr));
    let trace = std::fs::read_to_string(trace).unwrap();
    assert!(
        trace.contains("fchmod(") && trace.contains("move_mount("),
        "{trace}"
    );
    let theirs = stage.at("theirs");
    let theirs = theirs.to_str().unwrap();
    for line in trace.lines().filter(|line| line.contains(theirs)) {
        let call = line.split_once(' ').unwrap().1.trim_start();
        let harmless = ["execve(", "newfstatat(", "statx(", "readlink(", "openat2("];
        assert!(harmless.iter().any(|name| call.starts_with(name)), "{line}");
        assert!(
            !call.starts_with("openat2(") || call.contains("RESOLVE_NO_SYMLINKS"),
            "{line}"
        );
    }
}

#[test]
fn what_may_not_be_executed_with_other_rights_there_may_not_be_in_memory_either() {
    // A file system of its own, which is gone with the namespace of the shell.
    let script = r#"
        mount -t tmpfs -o nosuid,nodev,noexec none "$1" && mkdir "$1/queue"
        strace -f -qq -e trace=fsmount -o "$1/trace" "$0" try --without disk --memory "$1/queue" --yes -- true >&2
        cat "$1/trace"
    "#;
    let place = tempfile::tempdir().unwrap();
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", script, HOLDUP])
        .arg(place.path())
        .output()
        .unwrap();
    let calls = lossy(&output.stdout);
    assert!(calls.contains("fsmount("), "{calls}{}", lossy(&output.stderr));
    for attribute in ["MOUNT_ATTR_NOSUID", "MOUNT_ATTR_NODEV", "MOUNT_ATTR_NOEXEC"] {
        assert!(calls.contains(attribute), "{calls}");
    }
}

/// `record` writes for as long as it is let: nobody else may lock its folder or put another one in its place.
#[test]
fn a_recorder_takes_no_folder_that_somebody_else_can_change() {
    let stage = Stage::new();
    std::fs::create_dir(stage.at("theirs/roots")).unwrap();
    std::fs::create_dir(stage.at("shared")).unwrap();
    std::fs::set_permissions(stage.at("shared"), std::fs::Permissions::from_mode(0o777)).unwrap();
    stage.their_link(&stage.at("shared"), "theirs/link");
    for (name, because) in [
        ("theirs", "belongs to user 65534"),
        ("theirs/roots", "belongs to user 65534"),
        ("theirs/new", "belongs to user 65534"),
        ("shared", "other users may write"),
        ("theirs/link", "symbolic link"),
    ] {
        let words = ["record", "--dir", stage.at(name).to_str().unwrap()].map(str::to_owned);
        let output = output(&words);
        let stderr = lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{name}: {stderr}");
        assert!(stderr.contains(because), "{name}: {stderr}");
        assert!(!stage.at(name).join(".recorder").exists(), "{name}");
    }
}
