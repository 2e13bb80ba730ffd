//! A `/proc` and `/sys` that lack something, namespaces, and limits on what holdup itself may use.

use crate::case::{COMMAND, COMPUTES, Case, NOBODY, STATUS, Verdict, alone, unshared};
use crate::support::lossy;
use std::process::{Command, Stdio};

#[test]
fn a_proc_that_hides_others() {
    let _alone = alone();
    let case = Case::new();
    let script = "mount -t proc -o hidepid=2 proc /proc; exec \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-ec", script, "setpriv"]);
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
    command.arg(case.holdup());
    let found = case.observe("hidepid=2, an ordinary user", command);
    assert!(found.function);
}

/// What the kernel tells of the machine, as gVisor and hardened containers leave it out.
const HOLES: [&str; 9] = [
    "locks",
    "meminfo",
    "stat",
    "cpuinfo",
    "loadavg",
    "swaps",
    "diskstats",
    "vmstat",
    "uptime",
];

#[test]
fn a_proc_with_holes() {
    let _alone = alone();
    let case = Case::new();
    for hole in HOLES {
        let script = format!("mount --bind /dev/null /proc/{hole}; exec \"$0\" \"$@\"");
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-ec", &script, "setpriv"]);
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
        command.arg(case.holdup());
        let found = case.observe(&format!("nothing in /proc/{hole}, an ordinary user"), command);
        assert_eq!(found.backend, "proc", "{hole}");
        assert!(found.function, "{hole}");
    }
}

#[test]
fn a_pid_namespace() {
    let _alone = alone();
    let case = Case::new();
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
    let found = case.observe("a PID namespace of its own, root", {
        command.arg(case.holdup());
        command
    });
    assert_eq!(found.backend, "proc");
    assert!(found.function);
}

#[test]
fn without_sys_threads_on_a_cpu_are_still_seen() {
    let _alone = alone();
    let case = Case::new();
    let command = unshared(&case, &["--mount"], "mount -t tmpfs -o ro none /sys");
    let report = case.reported("nothing in /sys", command, &COMPUTES);
    let result = Verdict::of(&report);
    assert_eq!(result.cause, "cpu.user");
    assert!(result.function, "{report:#}");
}

#[test]
fn without_devices() {
    let _alone = alone();
    let case = Case::new();
    let command = unshared(&case, &["--mount"], "mount -t tmpfs -o ro none /dev");
    assert!(
        case.observe("nothing in /dev, an ordinary user", command)
            .function
    );
}

#[test]
fn a_proc_that_shows_nothing_or_somebody_elses_processes_is_said_to() {
    let _alone = alone();
    let case = Case::new();
    for (name, mut command) in [
        (
            "no /proc",
            unshared(&case, &["--mount"], "mount -t tmpfs -o ro none /proc"),
        ),
        (
            "the /proc of another PID namespace",
            unshared(&case, &["--pid", "--fork", "--kill-child"], "true"),
        ),
    ] {
        let output = command
            .args(["run", "--", "true"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{name}: {said}");
        assert_eq!(said.lines().count(), 1, "{name}: {said}");
        assert!(said.contains("mount -t proc proc /proc"), "{name}: {said}");
    }
}

/// Many processes that sleep at the same time.
const MANY: [&str; 3] = [
    "sh",
    "-c",
    "i=0; while [ $i -lt 40 ]; do sleep 1 & i=$((i + 1)); done; wait; exit 3",
];

/// One process that sleeps.
const ONE_PROCESS: [&str; 3] = ["perl", "-e", "sleep 1; exit 3"];

#[test]
fn limits_of_holdups_own() {
    let _alone = alone();
    let case = Case::new();
    let limited = |limit: &str| {
        let mut command = Command::new("prlimit");
        command
            .arg(limit)
            .args(["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
        command.arg(case.holdup());
        command
    };
    let report = case.reported("64 open files", limited("--nofile=64:64"), &MANY);
    let result = Verdict::of(&report);
    assert!(result.sleeps, "who is followed is told in full: {report:#}");
    assert!(
        result.lacks("threads beyond") && result.fixed_by("ulimit -n"),
        "{report:#}"
    );
    assert!(!result.lacks("the system call in"), "{report:#}");
    // So few that not one further thread is followed: the channels to readers and the folder of the report take some.
    let report = case.reported("16 open files", limited("--nofile=16:16"), &COMMAND);
    assert!(Verdict::of(&report).fixed_by("ulimit -n"), "{report:#}");
    // Another user than that of the other tests, of whom nobody else runs anything. CMD is one process from its start to its end:
    // would it fork, it and holdup's reader would race for the last place, and CMD could fail where it does not without holdup.
    let mut command = Command::new("prlimit");
    command.args(["--nproc=2:2", "setpriv", "--reuid", "64123", "--regid", "64123"]);
    command.args(["--clear-groups"]).arg(case.holdup());
    let report = case.reported("2 processes", command, &ONE_PROCESS);
    let result = Verdict::of(&report);
    assert!(
        result.lacks("the call of each wait") && result.fixed_by("ulimit -u"),
        "{report:#}"
    );
    // The report can't be written, which is no reason to lose CMD's status.
    let file = case.directory.path().join("none.json");
    let output = limited("--fsize=0:0")
        .args(["run", "-q", "--json", file.to_str().unwrap(), "--"])
        .args(COMMAND)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(STATUS), "{said}");
    assert!(said.contains("cannot write the report"), "{said}");
}
