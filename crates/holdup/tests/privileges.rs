//! Privileges taken away one at a time: what `holdup run` then still tells of a command that sleeps in a child.
//!
//! Each case runs the same command, prints a line of the table (`cargo test -p holdup --test privileges -- --nocapture`), and says what
//! must still be told: the exit status, the whole of the time, and what it was spent on. `kptr_restrict` is not set to 2, which
//! would blind all of the machine's observers for as long as the test lasts: the one that is tried gets a `/proc/kallsyms` as it is then.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]
#![allow(clippy::print_stdout, reason = "the table is what people run it for")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use support::{HOLDUP, conserved, json, lossy};

/// Files of `/proc/sys` are the whole machine's: one case at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// What the command is, and what it ends with.
const COMMAND: [&str; 3] = ["sh", "-c", "sleep 1; exit 3"];
const STATUS: i32 = 3;

/// An ordinary user.
const NOBODY: &str = "65534";

/// The capabilities that Docker leaves to root in a container.
const OF_CONTAINERS: &str = "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+net_raw,\
                             +sys_chroot,+mknod,+audit_write,+setfcap";

/// Calls that Docker's default filter refuses to a container with these capabilities (moby's `profiles/seccomp/default.json`), as
/// far as an observer, or the C library, has any use for them.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_fanotify_init,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_syslog,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
];

/// Calls by which one process looks into another.
const LOOKS_IN: &[libc::c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
];

fn step(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    }
}

/// A filter by which these calls are answered so; with `first`, only those whose first argument is that.
fn filter(calls: &[libc::c_long], first: Option<i32>, answer: u32) -> Vec<libc::sock_filter> {
    /// Where a call's number and the lower half of its first argument are in what a filter is given.
    const NUMBER: u32 = 0;
    const FIRST: u32 = 16;
    let load = |at| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, at);
    let skip_unless = |value, steps| step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, steps, value);
    let end = |answer| step(libc::BPF_RET | libc::BPF_K, 0, 0, answer);
    let mut filter = Vec::new();
    for call in calls {
        let then: Vec<libc::sock_filter> = match first {
            Some(first) => vec![load(FIRST), skip_unless(first as u32, 1), end(answer)],
            None => vec![end(answer)],
        };
        filter.extend([load(NUMBER), skip_unless(*call as u32, then.len() as u8)]);
        filter.extend(then);
    }
    filter.push(end(libc::SECCOMP_RET_ALLOW));
    filter
}

/// Puts a filter on the child that a command becomes.
fn under(mut command: Command, mut filter: Vec<libc::sock_filter>) -> Command {
    let install = move || {
        let program = libc::sock_fprog {
            len: filter.len() as u16,
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
        match refused {
            true => Err(std::io::Error::last_os_error()),
            false => Ok(()),
        }
    };
    // SAFETY: two calls are made after the fork, and nothing else.
    unsafe { command.pre_exec(install) };
    command
}

fn with_filter(command: Command, calls: &[libc::c_long], answer: u32) -> Command {
    under(command, filter(calls, None, answer))
}

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

/// What holdup told.
struct Told {
    backend: String,
    cause: String,
    /// Whether the sleep itself is among the waits.
    sleeps: bool,
    /// Whether the main cause's asker is a function.
    function: bool,
    not_measured: Vec<String>,
    /// Their fixes.
    fixes: Vec<String>,
}

/// `setpriv WORDS… holdup`, with a copy of holdup that anybody may run.
struct Case {
    directory: tempfile::TempDir,
}

impl Case {
    fn new() -> Case {
        let directory = tempfile::tempdir().unwrap();
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(directory.path(), open).unwrap();
        std::fs::copy(HOLDUP, directory.path().join("holdup")).unwrap();
        Case { directory }
    }

    fn holdup(&self) -> std::path::PathBuf {
        self.directory.path().join("holdup")
    }

    fn with(&self, words: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        command.args(words).arg(self.holdup());
        command
    }

    /// An ordinary user, with these capabilities.
    fn nobody(&self, capabilities: &str) -> Command {
        let mut words = vec!["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"];
        if !capabilities.is_empty() {
            words.extend(["--inh-caps", capabilities, "--ambient-caps", capabilities]);
        }
        self.with(&words)
    }

    /// What holdup says of a command, which ends as it does without it.
    fn reported(&self, name: &str, mut command: Command, subject: &[&str]) -> serde_json::Value {
        let file = self.directory.path().join("report.json");
        // That of another user's case.
        std::fs::remove_file(&file).ok();
        let output = command
            .args(["run", "--json", file.to_str().unwrap(), "--"])
            .args(subject)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(STATUS), "{name}: {said}");
        let report = json(&file);
        conserved(&report);
        report
    }

    /// Runs the command that sleeps, prints the line, and holds it to what must always be told.
    fn told(&self, name: &str, command: Command) -> Told {
        let report = self.reported(name, command, &COMMAND);
        let told = Told::of(&report);
        println!(
            "{name:<44} {:<5} {:<12} {:<9} {}",
            told.backend,
            told.cause,
            if told.function { "function" } else { "process" },
            told.beyond_the_usual().join("; ")
        );
        // Sampling does not always see the shell learn of the end of the one that slept: then the time stays with its wait for that.
        let sampled = told.backend == "proc" && told.cause == "process.child";
        assert!(told.cause == "timer.sleep" || sampled, "{name}: {}", told.cause);
        assert!(told.sleeps, "{name}: {report:#}");
        told
    }
}

impl Told {
    fn of(report: &serde_json::Value) -> Told {
        let list = |of: &serde_json::Value| of.as_array().unwrap().clone();
        let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let causes = list(&report["causes"]);
        let causes = causes.iter().filter(|cause| cause["cause"] != "sched.runqueue");
        let main = causes.max_by_key(|cause| cause["ns"].as_u64().unwrap()).unwrap();
        let waits = list(&report["waits"]);
        let wait = waits.iter().find(|wait| wait["cause"] == main["cause"]);
        let unseen = list(&report["coverage"]["not_measured"]);
        Told {
            backend: word(&report["coverage"]["backend"]),
            cause: word(&main["cause"]),
            sleeps: waits.iter().any(|wait| wait["cause"] == "timer.sleep"),
            function: wait.is_some_and(|wait| wait["asker"]["frame"].is_string()),
            not_measured: unseen.iter().map(|line| word(&line["what"])).collect(),
            fixes: unseen.iter().map(|line| word(&line["fix"])).collect(),
        }
    }

    /// What is lost beyond what sampling never sees.
    fn beyond_the_usual(&self) -> Vec<&str> {
        const USUAL: [&str; 4] = [
            "who ended each wait",
            "which waits were over between two looks",
            "kernel stacks beyond the innermost function",
            "callers beyond a function",
        ];
        let all = self.not_measured.iter().map(String::as_str);
        all.filter(|what| !USUAL.iter().any(|usual| what.starts_with(usual)))
            .collect()
    }

    fn fixed_by(&self, words: &str) -> bool {
        self.fixes.iter().any(|fix| fix.contains(words))
    }

    fn lacks(&self, words: &str) -> bool {
        self.not_measured.iter().any(|what| what.contains(words))
    }
}

#[test]
fn capabilities() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let case = Case::new();
    let whole = case.told("root", case.with(&[]));
    assert_eq!((whole.backend.as_str(), whole.not_measured.len()), ("bpf", 0));
    assert!(whole.function);
    let sampled = |name: &str, command: Command| {
        let told = case.told(name, command);
        assert_eq!(told.backend, "proc", "{name}");
        assert!(told.function && told.lacks("who ended each wait"), "{name}");
    };
    sampled("an ordinary user", case.nobody(""));
    sampled("CAP_PERFMON alone", case.nobody("+perfmon"));
    sampled("CAP_BPF alone", case.nobody("+bpf"));
    // Whatever it comes to, it is told.
    case.told(
        "CAP_BPF and CAP_PERFMON, no CAP_SYS_PTRACE",
        case.nobody("+bpf,+perfmon"),
    );
    case.told(
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
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let case = Case::new();
    let given = Command::new("setcap")
        .arg("cap_bpf,cap_perfmon,cap_sys_ptrace+ep")
        .arg(case.holdup())
        .status()
        .unwrap();
    assert!(given.success());
    case.told("file capabilities: bpf, perfmon, sys_ptrace", case.nobody(""));
}

#[test]
fn settings_of_the_kernel() {
    const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
    const POINTERS: &str = "/proc/sys/kernel/kptr_restrict";
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let case = Case::new();
    for value in ["1", "2", "3", "4"] {
        let _setting = Setting::of(PARANOID, value);
        let told = case.told(
            &format!("perf_event_paranoid = {value}, an ordinary user"),
            case.nobody(""),
        );
        assert!(told.function);
    }
    for value in ["0", "1"] {
        let _setting = Setting::of(POINTERS, value);
        let told = case.told(
            &format!("kptr_restrict = {value}, an ordinary user"),
            case.nobody(""),
        );
        assert!(told.function);
    }
}

#[test]
fn a_proc_that_hides_others() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let case = Case::new();
    let script = "mount -t proc -o hidepid=2 proc /proc; exec \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-ec", script, "setpriv"]);
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
    command.arg(case.holdup());
    let told = case.told("hidepid=2, an ordinary user", command);
    assert!(told.function);
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
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let case = Case::new();
    for hole in HOLES {
        let script = format!("mount --bind /dev/null /proc/{hole}; exec \"$0\" \"$@\"");
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-ec", &script, "setpriv"]);
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
        command.arg(case.holdup());
        let told = case.told(&format!("nothing in /proc/{hole}, an ordinary user"), command);
        assert_eq!(told.backend, "proc", "{hole}");
        assert!(told.function, "{hole}");
    }
}

#[test]
fn hidden_addresses() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
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
    // As kptr_restrict = 2 does, for this test alone: tracing loses the kernel's functions and says so, sampling loses nothing.
    let told = case.told("kptr_restrict = 2, root", with(&[]));
    assert_eq!(told.backend, "bpf");
    assert_eq!(told.not_measured, ["which kernel function a thread slept in"]);
    let user = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"];
    let told = case.told("kptr_restrict = 2, an ordinary user", with(&user));
    assert_eq!(told.backend, "proc");
    assert!(told.function && !told.lacks("which kernel function"));
}

#[test]
fn a_pid_namespace() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let case = Case::new();
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
    let told = case.told("a PID namespace of its own, root", {
        command.arg(case.holdup());
        command
    });
    assert_eq!(told.backend, "proc");
    assert!(told.function);
}

#[test]
fn a_container() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let case = Case::new();
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let root = case.with(&[
        "--bounding-set",
        OF_CONTAINERS,
        "--inh-caps",
        "-all",
        "--no-new-privs",
    ]);
    for (name, command) in [
        ("Docker's filter and capabilities, root", root),
        ("Docker's filter, an ordinary user", case.nobody("")),
    ] {
        let told = case.told(name, with_filter(command, REFUSED, refused));
        assert_eq!(told.backend, "proc");
        assert!(told.function);
    }
}

#[test]
fn a_filter_on_looking_into_others() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let case = Case::new();
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    for (name, answer) in [
        ("no ptrace-like calls: EPERM", refused),
        ("no ptrace-like calls: killed", libc::SECCOMP_RET_KILL_PROCESS),
    ] {
        let told = case.told(name, with_filter(case.nobody(""), LOOKS_IN, answer));
        assert_eq!(told.backend, "proc");
        // Its memory can't be read, so nobody knows which function asked; the call is known all the same.
        assert!(!told.function, "{name}");
        assert!(
            told.lacks("which function asked") && told.fixed_by("process_vm_readv"),
            "{name}"
        );
    }
}

/// Calls that a filter may kill for, that are not about another's memory, and what of the report hangs on each.
const KILLED_FOR: [(&str, libc::c_long, Option<i32>, &str); 6] = [
    ("bpf", libc::SYS_bpf, None, ""),
    (
        "perf_event_open",
        libc::SYS_perf_event_open,
        None,
        "user stacks of threads on a CPU",
    ),
    ("pidfd_open", libc::SYS_pidfd_open, None, ""),
    ("kcmp", libc::SYS_kcmp, None, ""),
    ("io_uring_setup", libc::SYS_io_uring_setup, None, ""),
    ("socket(AF_NETLINK)", libc::SYS_socket, Some(libc::AF_NETLINK), ""),
];

#[test]
fn a_filter_that_kills_costs_what_the_call_would_have_told_and_not_holdup() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let case = Case::new();
    for (name, call, first, lost) in KILLED_FOR {
        for (who, command) in [("an ordinary user", case.nobody("")), ("root", case.with(&[]))] {
            let name = format!("killed for {name}, {who}");
            let told = case.told(
                &name,
                under(command, filter(&[call], first, libc::SECCOMP_RET_KILL_PROCESS)),
            );
            assert!(told.function, "{name}");
            let takes_tracing = [libc::SYS_bpf, libc::SYS_perf_event_open].contains(&call);
            let traced = who == "root" && !takes_tracing;
            assert_eq!(told.backend == "bpf", traced, "{name}");
            assert!(traced || lost.is_empty() || told.lacks(lost), "{name}");
        }
    }
}

#[test]
fn without_descriptors_of_processes() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let case = Case::new();
    // As kernels before Linux 5.3 answer, and filters that are older than the call.
    for (name, errno) in [("ENOSYS", libc::ENOSYS), ("EPERM", libc::EPERM)] {
        let answer = libc::SECCOMP_RET_ERRNO | errno as u32;
        for (who, command) in [("an ordinary user", case.nobody("")), ("root", case.with(&[]))] {
            let name = format!("pidfd_open: {name}, {who}");
            assert!(
                case.told(&name, with_filter(command, &[libc::SYS_pidfd_open], answer))
                    .function
            );
        }
    }
}

/// `unshare WORDS… sh -ec SCRIPT setpriv … holdup` as an ordinary user.
fn unshared(case: &Case, words: &[&str], script: &str) -> Command {
    let mut command = Command::new("unshare");
    let script = format!("{script}; exec \"$0\" \"$@\"");
    command.args(words).args(["sh", "-ec", &script, "setpriv"]);
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
    command.arg(case.holdup());
    command
}

#[test]
fn without_sys_threads_on_a_cpu_are_still_seen() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let case = Case::new();
    let command = unshared(&case, &["--mount"], "mount -t tmpfs -o ro none /sys");
    let report = case.reported("nothing in /sys", command, &COMPUTES);
    let told = Told::of(&report);
    assert_eq!(told.cause, "cpu.user");
    assert!(told.function, "{report:#}");
}

#[test]
fn a_proc_that_shows_nothing_or_somebody_elses_processes_is_said_to() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
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

#[test]
fn limits_of_holdups_own() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
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
    let told = Told::of(&report);
    assert!(told.sleeps, "who is followed is told in full: {report:#}");
    assert!(
        told.lacks("threads beyond") && told.fixed_by("ulimit -n"),
        "{report:#}"
    );
    assert!(!told.lacks("the system call in"), "{report:#}");
    // So few that not one further thread is followed.
    let report = case.reported("12 open files", limited("--nofile=12:12"), &COMMAND);
    assert!(Told::of(&report).fixed_by("ulimit -n"), "{report:#}");
    // Another user than that of the other tests, of whom nobody else runs anything: holdup, the shell and `sleep`.
    let mut command = Command::new("prlimit");
    command.args(["--nproc=3:3", "setpriv", "--reuid", "64123", "--regid", "64123"]);
    command.args(["--clear-groups"]).arg(case.holdup());
    let report = case.reported("3 processes", command, &COMMAND);
    let told = Told::of(&report);
    assert!(
        told.lacks("which call each thread waited in") && told.fixed_by("ulimit -u"),
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

/// A command that is on a CPU all the time, by a program that names its own functions.
const COMPUTES: [&str; 3] = [
    "bash",
    "-c",
    "i=0; while [ $i -lt 400000 ]; do i=$((i + 1)); done; exit 3",
];

#[test]
fn functions_on_a_cpu_where_the_kernel_lets_users_see_their_own_programs() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let case = Case::new();
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    for (name, filter) in [
        ("computes, an ordinary user", &[][..]),
        (
            "computes, perf_event_open refused",
            &[libc::SYS_perf_event_open][..],
        ),
    ] {
        let report = case.reported(name, with_filter(case.nobody(""), filter, refused), &COMPUTES);
        let told = Told::of(&report);
        assert_eq!(
            (told.backend.as_str(), told.cause.as_str()),
            ("proc", "cpu.user"),
            "{name}"
        );
        assert_eq!(told.function, filter.is_empty(), "{name}: {report:#}");
        let unseen = report["coverage"]["not_measured"].as_array().unwrap();
        let line = unseen
            .iter()
            .find(|line| line["what"] == "user stacks of threads on a CPU");
        assert_eq!(line.is_some(), !filter.is_empty(), "{name}: {unseen:?}");
        assert!(line.is_none_or(|line| line["fix"].as_str().unwrap().contains("perf_event_open")));
    }
}

#[test]
fn the_programs_that_take_privileges_away_are_here() {
    for program in ["/usr/bin/setpriv", "/usr/sbin/setcap", "/usr/bin/unshare"] {
        assert!(Path::new(program).exists(), "{program}");
    }
}
