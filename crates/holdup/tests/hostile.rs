//! CMDs that are made to stop, mislead or burden whoever watches them: none stops holdup, each keeps its own status,
//! and no time goes astray.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::{Guarded, Outcome, conserved, holdup, list, number, read_until};
use tempfile::TempDir;

/// What the C program returns when all went as it should.
const DONE: i32 = 21;

/// `tests/hostile/target.c`, compiled.
struct Target {
    directory: TempDir,
}

impl Target {
    fn new() -> Target {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(
            directory.path(),
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )
        .unwrap();
        let target = Target { directory };
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile/target.c");
        let status = Command::new("cc")
            .args(["-O1", "-pthread", "-o"])
            .arg(target.path())
            .arg(source)
            .status();
        assert!(status.expect("a C compiler named cc is installed").success());
        target
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("target")
    }

    fn run(&self, words: &[&str]) -> Outcome {
        Outcome::of(&[], |command| {
            command.arg(self.path()).args(words);
        })
    }
}

#[test]
fn ten_thousand_threads_at_once() {
    let target = Target::new().run(&["threads", "10000"]);
    assert_eq!(target.status(), DONE);
    // What could not be followed is said, and nothing else is missing.
    let unseen = target.lost("threads that could not be followed")
        + target.lost("thread start, exec or exit records dropped");
    assert!(
        target.threads() + unseen >= 10_001,
        "{}",
        target.report["coverage"]
    );
}

#[test]
fn a_hundred_thousand_open_files() {
    let target = Target::new().run(&["files", "100000"]);
    assert_eq!(target.status(), DONE);
    // The time it takes to look at each file is the processor's, and part of the poll's time limit.
    let slept = list(&target.report, "waits")
        .iter()
        .filter(|wait| wait["resource"]["detail"]["call"] == "poll" && wait["cause"] == "poll.wait")
        .map(|wait| number(wait, "ns"));
    assert!(slept.sum::<u64>() > 0, "{}", target.report["waits"]);
}

#[test]
fn tens_of_thousands_of_mappings() {
    let target = Target::new().run(&["maps", "30000"]);
    assert_eq!(target.status(), DONE);
    // More than is kept of one process: which is said.
    assert!(
        target.lost("mappings of libraries dropped") > 1000,
        "{}",
        target.report["coverage"]
    );
}

#[test]
fn a_stack_that_is_rewritten_while_its_owner_sleeps() {
    assert_eq!(Target::new().run(&["stack", "30"]).status(), DONE);
}

#[test]
fn a_map_of_names_that_is_a_fifo_or_leads_to_a_secret() {
    let target = Target::new();
    let slept = |result: &Outcome| -> u64 {
        list(&result.report, "waits")
            .iter()
            .filter(|wait| wait["cause"] == "timer.sleep")
            .map(|wait| number(wait, "ns"))
            .sum()
    };
    // Nobody ever writes to the FIFO: to open it is to hang.
    let result = target.run(&["jit", "20"]);
    assert_eq!(result.status(), DONE);
    assert!(slept(&result) >= 20_000_000);
    // The program gives its privileges up, and what it links to is no longer its to read.
    let secret = target.directory.path().join("secret");
    let result = Outcome::of(&[], |command| {
        command
            .arg(target.path())
            .args(["jit", "20"])
            .env("SECRET", &secret);
    });
    assert_eq!(result.status(), DONE);
    assert!(slept(&result) >= 20_000_000);
    let pid = number(&result.report["threads"][0], "pid");
    let link = format!("/tmp/perf-{pid}.map");
    assert_eq!(fs::read_link(&link).unwrap(), secret);
    fs::remove_file(link).unwrap();
    assert!(
        fs::read_to_string(&secret)
            .unwrap()
            .contains("name_from_a_secret")
    );
    assert!(!result.report.to_string().contains("name_from_a_secret"));
}

#[test]
fn a_map_of_names_of_which_each_line_covers_everything() {
    let target = Target::new();
    let result = Outcome::of(&[], |command| {
        command
            .arg(target.path())
            .args(["list", "16"])
            .env("LINE", "0 7fffffffffff covers_everything");
    });
    assert_eq!(result.status(), DONE);
    assert!(result.report.to_string().contains("covers_everything"));
    assert!(
        !result.report["coverage"]["not_measured"]
            .to_string()
            .contains("names of functions")
    );
}

/// Waits until holdup looks up names, which a process of its own does.
fn until_it_names(holdup: &mut Guarded) {
    let own = holdup.0.id();
    let comm = |pid: &str| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    loop {
        let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
        if children
            .split_whitespace()
            .any(|pid| comm(pid).trim() == "holdup-names")
        {
            return;
        }
        assert!(holdup.0.try_wait().unwrap().is_none(), "it has ended");
        std::thread::yield_now();
    }
}

#[test]
fn a_signal_ends_the_search_for_names() {
    let target = Target::new();
    let report = tempfile::tempdir().unwrap();
    let file = report.path().join("report.json");
    let mut holdup = Guarded::spawn(
        holdup(&["--json", file.to_str().unwrap()])
            .arg(target.path())
            .args(["list", "240"])
            .env("LINE", "0 1 a")
            .stdout(Stdio::null())
            .stderr(Stdio::null()),
    );
    until_it_names(&mut holdup);
    holdup.signal(nix::sys::signal::Signal::SIGINT);
    assert_eq!(holdup.0.wait().unwrap().code(), Some(DONE));
    let report = support::json(&file);
    conserved(&report);
    let gaps = report["coverage"]["not_measured"].to_string();
    assert!(gaps.contains("a signal asked for the report at once"), "{gaps}");
}

#[test]
fn processes_that_make_processes() {
    let script = "f() { if [ $1 -gt 0 ]; then f $(($1-1)) & f $(($1-1)) & wait; fi; }; f 9; exit 22";
    let result = Outcome::of(&[], |command| {
        command.args(["sh", "-c", script]);
    });
    assert_eq!(result.status(), 22);
    let unseen = result.lost("threads that could not be followed")
        + result.lost("thread start, exec or exit records dropped");
    assert!(result.threads() + unseen >= 1023, "{}", result.report["coverage"]);
}

#[test]
fn an_environment_of_megabytes_arrives() {
    let result = Outcome::of(&[], |command| {
        command.args(["sh", "-c", "env | wc -c; exit 23"]);
        // A quarter of the usual limit of the stack is what the kernel takes; no single one over 128 KiB.
        for name in 0..15 {
            command.env(format!("LONG_{name}"), "x".repeat(100_000));
        }
    });
    assert_eq!(result.status(), 23);
    let size: usize = support::lossy(&result.output.stdout).trim().parse().unwrap();
    assert!(size > 1_500_000, "{size}");
}

#[test]
fn a_program_that_deletes_and_replaces_itself() {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let program = directory.path().join("program");
    fs::copy("/bin/sh", &program).unwrap();
    // Where it was there is a FIFO now, then a link to itself, then another program.
    let script = "rm $0; mkfifo $0; sleep 0.01; rm $0; ln -s $0 $0; sleep 0.01; rm $0; cp /bin/true $0; sleep 0.01; exit 24";
    let result = Outcome::of(&[], |command| {
        command.arg(&program).arg("-c").arg(script).arg(&program);
    });
    assert_eq!(result.status(), 24);
    assert!(!result.threads_of("program").is_empty());
}

#[test]
fn names_as_long_and_as_odd_as_the_kernel_allows() {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let mut name = b"\x1b[2J\n\xff\xfe\t$(reboot)\\040 (deleted)".to_vec();
    name.resize(255, b'\x07');
    let program = directory.path().join(OsStr::from_bytes(&name));
    fs::copy("/bin/sh", &program).unwrap();
    // Ninety levels of that are far beyond the longest path that can be said in one piece.
    let script = "/usr/bin/python3 -c 'import os, sys\n\
                  for level in range(90): os.mkdir(sys.argv[1]); os.chdir(sys.argv[1])\n\
                  os.mkfifo(\"fifo\")\n\
                  os.fork() or os._exit(open(\"fifo\", \"w\").write(\"x\"))\n\
                  exit(24 + len(open(\"fifo\").read()))' \"$1\"";
    let long = "\u{1b}]0;title\u{7}\n".repeat(20);
    let result = Outcome::of(&["-v"], |command| {
        command.arg(&program).arg("-c").arg(script).arg("sh").arg(long);
        command.current_dir(directory.path());
    });
    assert_eq!(result.status(), 25);
    let text = std::str::from_utf8(&result.output.stderr).unwrap();
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
}

/// A file system in user space of which the daemon answers for as long as it is told to, and then never again.
mod silent {
    use super::{Command, Guarded, PathBuf, Stdio, TempDir, read_until};
    use nix::mount::{MntFlags, umount2};

    /// It serves what is in another directory.
    pub(super) struct FileSystem {
        daemon: Guarded,
        pub(super) directory: TempDir,
    }

    impl FileSystem {
        /// A file system with one file, `program`.
        pub(super) fn new(program: &str) -> FileSystem {
            let directory = tempfile::tempdir_in("/var/tmp").unwrap();
            let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/hostile/silent.py");
            let mut daemon = Guarded::spawn(
                Command::new("/usr/bin/python3")
                    .arg(source)
                    .arg(directory.path())
                    .arg(program)
                    .stdin(Stdio::null())
                    .stdout(Stdio::piped()),
            );
            read_until(daemon.0.stdout.as_mut().unwrap(), "mounted\n");
            FileSystem { daemon, directory }
        }

        /// From here on it answers nothing.
        pub(super) fn fall_silent(&self) {
            self.daemon.signal(nix::sys::signal::Signal::SIGSTOP);
        }
    }

    impl Drop for FileSystem {
        fn drop(&mut self) {
            // Its end lets everybody go who still waits for it.
            self.daemon.0.kill().ok();
            umount2(self.directory.path(), MntFlags::MNT_DETACH).ok();
        }
    }
}

#[test]
fn a_program_and_its_directory_on_a_mount_that_hangs() {
    let mount = silent::FileSystem::new("/bin/sh");
    let report = tempfile::tempdir().unwrap();
    let file = report.path().join("report.json");
    let script = "echo ready; read go; sleep 0.01; exit 26";
    let mut holdup = Guarded::spawn(
        holdup(&["--json", file.to_str().unwrap()])
            .args(["./program", "-c", script])
            .current_dir(mount.directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null()),
    );
    read_until(holdup.0.stdout.as_mut().unwrap(), "ready\n");
    // All of its pages that it needs to go on are read by now, or the kernel has them; whoever else asks for the file,
    // its directory or its file system waits for ever.
    mount.fall_silent();
    holdup.0.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let mut rest = String::new();
    holdup.0.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
    assert_eq!(holdup.0.wait().unwrap().code(), Some(26));
    let report = support::json(&file);
    conserved(&report);
    assert_eq!(report["subject"]["exit"], 26);
}

/// An overlay over such a file system: it looks like a local one, and is as silent as its layer.
struct Overlay {
    layer: silent::FileSystem,
    directory: TempDir,
}

impl Overlay {
    fn new(program: &str) -> Overlay {
        let layer = silent::FileSystem::new(program);
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let lower = layer.directory.path().to_str().unwrap();
        let empty = directory.path().join("empty");
        fs::create_dir(&empty).unwrap();
        let point = directory.path().join("overlay");
        fs::create_dir(&point).unwrap();
        let options = format!("lowerdir={lower}:{}", empty.display());
        let none: Option<&str> = None;
        nix::mount::mount(
            none,
            &point,
            Some("overlay"),
            nix::mount::MsFlags::empty(),
            Some(options.as_str()),
        )
        .unwrap();
        Overlay { layer, directory }
    }

    fn program(&self) -> PathBuf {
        self.directory.path().join("overlay/program")
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        nix::mount::umount2(
            &self.directory.path().join("overlay"),
            nix::mount::MntFlags::MNT_DETACH,
        )
        .ok();
    }
}

#[test]
fn an_overlay_whose_layer_hangs_while_its_program_runs() {
    let overlay = Overlay::new("/bin/sh");
    let report = tempfile::tempdir().unwrap();
    let file = report.path().join("report.json");
    let mut holdup = Guarded::spawn(
        holdup(&["--json", file.to_str().unwrap()])
            .arg(overlay.program())
            .args(["-c", "echo ready; read go; exit 27"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null()),
    );
    read_until(holdup.0.stdout.as_mut().unwrap(), "ready\n");
    // Its file was opened while that was possible; its names are looked up when it is not.
    overlay.layer.fall_silent();
    holdup.0.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert_eq!(holdup.0.wait().unwrap().code(), Some(27));
    conserved(&support::json(&file));
}

#[test]
fn a_program_on_an_overlay_over_a_mount_that_hangs() {
    let overlay = Overlay::new("/bin/sh");
    let mut target = Guarded::spawn(
        Command::new(overlay.program())
            .args(["-c", "while echo ready; do read go; done"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null()),
    );
    read_until(target.0.stdout.as_mut().unwrap(), "ready\n");
    overlay.layer.fall_silent();
    let report = tempfile::tempdir().unwrap();
    let file = report.path().join("report.json");
    let pid = target.0.id().to_string();
    let output = Command::new(support::HOLDUP)
        .args(["attach", "-p", &pid, "-d", "1", "--json", file.to_str().unwrap()])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let report = support::json(&file);
    let gaps = report["coverage"]["not_measured"].to_string();
    assert!(
        gaps.contains("may never answer") && gaps.contains("program"),
        "{gaps}"
    );
    conserved(&report);
}
