//! Machines and privileges that lack something: one sentence and 125 before CMD runs, or a run that works anyway.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use support::{HOLDUP, conserved, json, lossy};

/// What CMD would leave behind if it ran.
struct Mark {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

impl Mark {
    fn new() -> Mark {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ran");
        Mark {
            _directory: directory,
            path,
        }
    }

    /// holdup's arguments for a run that leaves the mark.
    fn touch(&self) -> [&std::ffi::OsStr; 5] {
        [
            "run".as_ref(),
            "--backend=bpf".as_ref(),
            "--".as_ref(),
            "touch".as_ref(),
            self.path.as_os_str(),
        ]
    }

    /// One line with these words, status 125, and no CMD.
    fn refused(&self, output: &Output, words: &str) {
        let text = lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(
            text.starts_with("holdup: cannot observe the command here: "),
            "{text}"
        );
        assert!(text.contains(words) && text.contains("holdup doctor"), "{text}");
        assert!(!self.path.exists(), "the command ran");
    }
}

/// holdup in a mount namespace of its own, after a script has changed what is mounted there.
fn mounted(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args([
        "--mount",
        "sh",
        "-ec",
        &format!("{script}; exec \"$0\" \"$@\""),
        HOLDUP,
    ]);
    command
}

#[test]
fn a_kernel_that_does_not_describe_its_types_is_named() {
    let mark = Mark::new();
    let output = mounted("mount -t tmpfs none /sys/kernel/btf")
        .args(mark.touch())
        .output()
        .unwrap();
    mark.refused(&output, "BTF");
    let doctor = mounted("mount -t tmpfs none /sys/kernel/btf")
        .arg("doctor")
        .output()
        .unwrap();
    assert_eq!(doctor.status.code(), Some(1));
    assert!(
        lossy(&doctor.stdout).contains("CONFIG_DEBUG_INFO_BTF"),
        "{}",
        lossy(&doctor.stdout)
    );
}

#[test]
fn root_without_the_capabilities_is_told_so() {
    let mark = Mark::new();
    let output = Command::new("setpriv")
        .args(["--bounding-set", "-bpf,-perfmon,-sys_admin", HOLDUP])
        .args(mark.touch())
        .output()
        .unwrap();
    mark.refused(&output, "CAP_BPF");
}

#[test]
fn a_user_namespace_is_no_privilege() {
    let mark = Mark::new();
    let output = Command::new("unshare")
        .args(["-Ur", HOLDUP])
        .args(mark.touch())
        .output()
        .unwrap();
    mark.refused(&output, "Operation not permitted");
}

/// Makes the calling process one for which there is no bpf(2).
fn without_bpf() -> std::io::Result<()> {
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let equal = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let give = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, k| libc::sock_filter { code, jt, jf: 0, k };
    let mut filter = [
        // The system call's number is the first word.
        step(load, 0, 0),
        libc::sock_filter {
            jf: 1,
            ..step(equal, 0, libc::SYS_bpf as u32)
        },
        step(give, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
        step(give, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: 4,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the filter lives until the call returns; the kernel copies it.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            ) != 0
    };
    if refused {
        Err(std::io::Error::last_os_error())
    } else {
        Ok(())
    }
}

#[test]
fn a_kernel_without_bpf_is_named() {
    let mark = Mark::new();
    let mut command = Command::new(HOLDUP);
    command.args(mark.touch());
    // SAFETY: two system calls, which are async-signal-safe.
    let output = unsafe { command.pre_exec(without_bpf) }.output().unwrap();
    mark.refused(&output, "BPF");
}

#[test]
fn no_tracing_file_system_is_needed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let script = "for hidden in /sys/kernel/tracing /sys/kernel/debug; do \
                  [ ! -d $hidden ] || mount -t tmpfs none $hidden; done";
    let output = mounted(script)
        .args([
            "run",
            "--json",
            file.to_str().unwrap(),
            "--",
            "sh",
            "-c",
            "(exit 0); exit 3",
        ])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", lossy(&output.stderr));
    let report = json(&file);
    conserved(&report);
    assert_eq!(report["coverage"]["not_measured"], serde_json::json!([]));
}

/// An ordinary user's command line, with a holdup that he may run.
fn as_nobody(directory: &tempfile::TempDir) -> Command {
    use std::os::unix::fs::PermissionsExt;
    const NOBODY: u32 = 65534;
    let binary = directory.path().join("holdup");
    std::fs::copy(HOLDUP, &binary).unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = Command::new(binary);
    command.uid(NOBODY).gid(NOBODY);
    command
}

/// Of a report: the cause with the longest part of the elapsed time that is no queueing, and that part of it.
fn main_cause(report: &serde_json::Value) -> (String, f64) {
    let causes = report["causes"].as_array().unwrap().iter();
    let ns = |cause: &serde_json::Value| cause["ns"].as_u64().unwrap();
    let busy: Vec<_> = causes
        .filter(|cause| cause["cause"] != "sched.runqueue")
        .collect();
    let all: u64 = busy.iter().map(|cause| ns(cause)).sum();
    let most = busy.into_iter().max_by_key(|cause| ns(cause)).unwrap();
    let part = ns(most) as f64 / all as f64;
    (most["cause"].as_str().unwrap().to_owned(), part)
}

#[test]
fn who_may_not_trace_has_his_command_sampled_and_is_told_why() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = as_nobody(&directory);
    let file = directory.path().join("report.json");
    let script = "sleep 1; exit 3";
    let output = command
        .args(["run", "--json", file.to_str().unwrap(), "--", "sh", "-c", script])
        .output()
        .unwrap();
    let text = lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.starts_with("holdup: /proc is sampled, because "), "{text}");
    assert!(text.contains("CAP_BPF"), "{text}");
    let sampled = json(&file);
    conserved(&sampled);
    assert_eq!(sampled["coverage"]["backend"], "proc");
    let unseen = sampled["coverage"]["not_measured"].as_array().unwrap();
    let what = |word: &str| {
        unseen
            .iter()
            .any(|line| line["what"].as_str().unwrap().contains(word))
    };
    assert!(
        what("wakers (the critical path") && what("between two samples") && what("kernel stacks"),
        "{unseen:?}"
    );
}

#[test]
fn both_backends_agree_on_what_a_command_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let listed = ["bpf", "proc"].map(|backend| {
        let file = directory.path().join(backend);
        let output = Command::new(HOLDUP)
            .args(["run", "--backend", backend, "--json", file.to_str().unwrap()])
            // The path goes on through the shell's wait to the child that sleeps, in both.
            .args(["--", "sh", "-c", "sleep 2; exit 3"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", lossy(&output.stderr));
        let report = json(&file);
        conserved(&report);
        assert_eq!(report["coverage"]["backend"], backend);
        main_cause(&report)
    });
    let [traced, sampled] = listed;
    assert_eq!(traced.0, "timer.sleep");
    assert_eq!(sampled.0, "timer.sleep");
    let apart = (traced.1 - sampled.1).abs();
    assert!(apart <= 0.10, "{traced:?} {sampled:?}");
}
