//! Privileges taken away one at a time: what `holdup run` then still tells of a command that sleeps in a child.
//!
//! Each case runs the same command, prints a line of the table (`cargo test -p holdup --test privileges -- --nocapture`), and says what
//! must still be reported: the exit status, the whole of the time, and what it was spent on. `kptr_restrict` is not set to 2, which
//! would blind all of the machine's observers for as long as the test lasts: the one that is tried gets a `/proc/kallsyms` as it is then.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]
#![allow(clippy::print_stdout, reason = "the table is what people run it for")]

mod case;
mod filters;
#[path = "../support/mod.rs"]
mod support;
mod surroundings;

use case::{Case, NOBODY, alone};
use std::path::Path;
use std::process::Command;

/// A file of `/proc/sys`, put back at the end.
struct Setting {
    file: &'static str,
    before: String,
}

impl Setting {
    fn of(file: &'static str, value: &str) -> Setting {
        let before = std::fs::read_to_string(file).unwrap();
        std::fs::write(file, value).unwrap();
        Setting { file, before }
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        std::fs::write(self.file, self.before.trim()).ok();
    }
}

#[test]
fn capabilities() {
    let _alone = alone();
    let case = Case::new();
    let whole = case.observe("root", case.with(&[]));
    assert_eq!((whole.backend.as_str(), whole.not_measured.len()), ("bpf", 0));
    assert!(whole.function);
    let sampled = |name: &str, command: Command| {
        let found = case.observe(name, command);
        assert_eq!(found.backend, "proc", "{name}");
        assert!(
            found.function && found.lacks("wakers (the critical path"),
            "{name}"
        );
    };
    sampled("an ordinary user", case.nobody(""));
    sampled("CAP_PERFMON alone", case.nobody("+perfmon"));
    sampled("CAP_BPF alone", case.nobody("+bpf"));
    // Whatever it comes to, it is reported.
    case.observe(
        "CAP_BPF and CAP_PERFMON, no CAP_SYS_PTRACE",
        case.nobody("+bpf,+perfmon"),
    );
    case.observe(
        "root without CAP_SYS_PTRACE",
        case.with(&["--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace"]),
    );
    sampled(
        "root without CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN",
        case.with(&["--bounding-set", "-bpf,-perfmon,-sys_admin"]),
    );
}

#[test]
fn capabilities_of_the_file() {
    let _alone = alone();
    let case = Case::new();
    let given = Command::new("setcap")
        .arg("cap_bpf,cap_perfmon,cap_sys_ptrace+ep")
        .arg(case.holdup())
        .status()
        .unwrap();
    assert!(given.success());
    case.observe("file capabilities: bpf, perfmon, sys_ptrace", case.nobody(""));
}

#[test]
fn settings_of_the_kernel() {
    const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
    const POINTERS: &str = "/proc/sys/kernel/kptr_restrict";
    let _alone = alone();
    let case = Case::new();
    for value in ["1", "2", "3", "4"] {
        let _setting = Setting::of(PARANOID, value);
        let found = case.observe(
            &format!("perf_event_paranoid = {value}, an ordinary user"),
            case.nobody(""),
        );
        assert!(found.function);
    }
    for value in ["0", "1"] {
        let _setting = Setting::of(POINTERS, value);
        let found = case.observe(
            &format!("kptr_restrict = {value}, an ordinary user"),
            case.nobody(""),
        );
        assert!(found.function);
    }
}

#[test]
fn hidden_addresses() {
    let _alone = alone();
    let case = Case::new();
    let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap();
    let hidden: String = symbols
        .lines()
        .filter_map(|line| Some(format!("0000000000000000 {}\n", line.split_once(' ')?.1)))
        .collect();
    let file = case.directory.path().join("kallsyms");
    std::fs::write(&file, hidden).unwrap();
    let script = "mount --bind \"$0\" /proc/kallsyms; exec \"$@\"";
    let with = |words: &[&str]| {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-ec", script])
            .arg(&file)
            .args(words);
        command.arg(case.holdup());
        command
    };
    // As kptr_restrict = 2 does, for this test alone: tracing asks the kernel for the names of single addresses, and sampling reads names that it
    // prints: neither loses anything.
    let found = case.observe("kptr_restrict = 2, root", with(&[]));
    assert_eq!(found.backend, "bpf");
    assert!(found.not_measured.is_empty(), "{:?}", found.not_measured);
    let user = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"];
    let found = case.observe("kptr_restrict = 2, an ordinary user", with(&user));
    assert_eq!(found.backend, "proc");
    assert!(found.function && !found.lacks("which kernel function"));
}

#[test]
fn the_programs_that_take_privileges_away_are_here() {
    for program in ["/usr/bin/setpriv", "/usr/sbin/setcap", "/usr/bin/unshare"] {
        assert!(Path::new(program).exists(), "{program}");
    }
}
