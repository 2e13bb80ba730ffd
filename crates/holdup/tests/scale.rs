//! `holdup scale` on this kernel: who contends and who does not, what is refused, and that nothing is left.
//!
//! No test looks at a rate: a machine that is busy with others makes all of it slower. What is judged are verdicts, which rest on what
//! the kernel counts for each worker.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::Value;
use std::net::UdpSocket;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use support::{Guarded, HOLDUP, list, lossy};

/// Milliseconds after which a test has failed that waits for something: without it, it would hang.
const PATIENCE_MS: u16 = 60_000;

fn scale(arguments: &[&str]) -> Command {
    let mut command = Command::new(HOLDUP);
    command.arg("scale").args(arguments).stdin(Stdio::null());
    command
}

/// The report of one that works.
fn report(arguments: &[&str]) -> Value {
    let output = scale(&[&["--json", "-"], arguments].concat()).output().unwrap();
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

fn workers(report: &Value) -> Vec<u64> {
    let points = list(&report["scaling"], "points");
    points
        .iter()
        .map(|point| point["workers"].as_u64().unwrap())
        .collect()
}

fn file(folder: &Path) -> String {
    let path = folder.join("state");
    std::fs::write(&path, vec![7; 1 << 20]).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn readers_of_urandom_do_not_contend() {
    let report = report(&[
        "--read",
        "/dev/urandom",
        "--workers",
        "1,4",
        "--repeats",
        "3",
        "--operations",
        "1000",
    ]);
    let scaling = &report["scaling"];
    assert_ne!(scaling["verdict"], "contends", "{scaling}");
    assert_eq!(scaling["contends_on"], Value::Null);
    assert_eq!(report["subject"]["kind"], "scale");
    assert_eq!(report["coverage"]["backend"], "bpf");
    // Two numbers of workers are no law, on however many CPUs.
    assert_eq!(
        (&scaling["sigma"], &scaling["kappa"]),
        (&Value::Null, &Value::Null)
    );
    assert!(
        scaling["no_fit"].as_str().unwrap().contains("needs 3"),
        "{scaling}"
    );
}

#[test]
fn readers_of_a_file_that_they_lock_contend_for_that_lock() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path());
    // A read is all but the whole of an operation, and takes far longer than to start a worker: they overlap on any machine.
    let report = report(&[
        "--lock",
        &path,
        "--size",
        "32M",
        "--workers",
        "1,8",
        "--repeats",
        "3",
        "--operations",
        "30",
    ]);
    let scaling = &report["scaling"];
    assert_eq!(scaling["verdict"], "contends", "{scaling}");
    assert_eq!(scaling["contends_on"], path.as_str(), "{scaling}");
    assert_eq!(scaling["contends_cause"], "lock.file");
}

#[test]
fn commands_that_lock_a_file_contend_for_it_and_sleepers_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path());
    let options = ["--workers", "1,4", "--repeats", "3", "--operations", "5", "--"];
    let locked = report(&[&options[..], &["flock", &path, "sleep", "0.05"]].concat());
    assert_eq!(locked["scaling"]["verdict"], "contends", "{}", locked["scaling"]);
    assert_eq!(
        locked["scaling"]["contends_on"],
        path.as_str(),
        "{}",
        locked["scaling"]
    );
    let free = report(&[&options[..], &["sleep", "0.05"]].concat());
    assert_ne!(free["scaling"]["verdict"], "contends", "{}", free["scaling"]);
    assert_eq!(free["scaling"]["unit"], "run");
}

#[test]
fn who_ask_a_name_server_that_answers_one_at_a_time_contend_for_it() {
    // A network of the test's own, where port 53 is free: by the port a name server is known.
    const SCRIPT: &str = r#"
        ip link set lo up
        mkfifo "$0/ready"
        python3 "$1" answers 0.002 3>"$0/ready" &
        trap "kill $!" EXIT
        read word <"$0/ready"
        "$2" scale --json "$0/report" -q --workers 1,4 --repeats 3 --operations 50 --dns 127.0.0.1 --name db.shop.test
    "#;
    let folder = tempfile::tempdir().unwrap();
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/stage/nameserver.py");
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", SCRIPT]);
    let output = command
        .arg(folder.path())
        .args([server, HOLDUP])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", lossy(&output.stderr));
    let report = support::json(&folder.path().join("report"));
    let scaling = &report["scaling"];
    assert_eq!(scaling["verdict"], "contends", "{scaling}");
    assert!(
        scaling["contends_on"].as_str().unwrap().contains("127.0.0.1:53"),
        "{scaling}"
    );
    assert_eq!(scaling["contends_cause"], "net.dns");
}

/// Counters alone: what needs no name.
const COUNTERS: [&str; 6] = ["--backend", "proc", "--repeats", "1", "--operations", "20"];

#[test]
fn numbers_of_workers_are_put_in_order_and_begin_with_one() {
    let report = report(&[&COUNTERS[..], &["--getrandom", "--workers", "4,2,2"]].concat());
    assert_eq!(workers(&report), [1, 2, 4]);
    assert_eq!(report["coverage"]["backend"], "proc");
    assert_eq!(list(&report["coverage"], "not_measured").len(), 1);
    let same = &COUNTERS[..];
    let single = self::report(&[same, &["--read", "/dev/random", "--workers", "1", "--seed", "5"]].concat());
    assert_eq!(workers(&single), [1]);
    assert_eq!(single["scaling"]["seed"], 5);
}

#[test]
fn a_command_that_ends_at_once_is_told_in_runs() {
    let report = report(&[&COUNTERS[..], &["--workers", "1,2", "--", "true"]].concat());
    let points = list(&report["scaling"], "points");
    let operations: Vec<u64> = points
        .iter()
        .map(|point| point["operations"].as_u64().unwrap())
        .collect();
    assert_eq!(operations, [20, 40]);
    assert!(
        points
            .iter()
            .all(|point| point["throughput"].as_f64().unwrap() > 0.0)
    );
}

#[test]
fn what_is_synced_leaves_no_file_and_a_name_server_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().to_str().unwrap();
    report(&[&COUNTERS[..], &["--workers", "1,2", "--sync", directory]].concat());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut question = [0; 512];
        while let Ok((length, from)) = server.recv_from(&mut question) {
            // An answer without an address is one, too.
            question[2] |= 0x80;
            server.send_to(&question[..length], from).unwrap();
        }
    });
    let report = report(
        &[
            &COUNTERS[..],
            &["--workers", "1,2", "--dns", &address, "--name", "a.example"],
        ]
        .concat(),
    );
    assert_eq!(report["scaling"]["unit"], "question");
}

fn refused(arguments: &[&str], status: i32, words: &str) {
    let output: Output = scale(&[&COUNTERS[..], arguments].concat()).output().unwrap();
    let text = lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {text}");
    assert!(
        text.starts_with("holdup: ") && text.contains(words),
        "{arguments:?}: {text}"
    );
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(output.stdout.is_empty());
}

#[test]
fn what_can_not_be_measured_is_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let (fifo, directory) = (fifo.to_str().unwrap(), folder.path().to_str().unwrap());
    let nowhere = format!("{directory}/nowhere");
    refused(&["--read", &nowhere], 125, "No such file");
    refused(&["--read", fifo], 125, "pipe or socket");
    refused(&["--read", directory], 125, "--sync measures a directory");
    refused(&["--sync", &nowhere], 125, "--sync needs a writable directory");
    refused(&["--read", "/proc/self/mem"], 125, "cannot measure");
    refused(
        &["--read", "/etc/shadow", "--user", "nobody"],
        125,
        "Permission denied",
    );
    refused(&["--dns", "nobody"], 2, "--dns needs an address");
    refused(&["--dns", "127.0.0.1", "--name", "a..b"], 2, "--name needs");
    refused(&["--read", "/dev/zero", "--workers", "0"], 2, "from 1 to 4096");
    refused(
        &["--read", "/dev/zero", "--workers", "1,5000"],
        2,
        "from 1 to 4096",
    );
    refused(&["--read", "/dev/zero", "--size", "0"], 2, "from 1 to 64M");
    refused(&[], 2, "say what the workers do");
    refused(&["--", "no-such-program"], 127, "no program");
    refused(&["--", "/"], 126, "execute");
    refused(&["--", "false"], 125, "status 1 even with one worker");
    refused(&["--timeout", "1s", "--", "sleep", "600"], 125, "use --timeout");
}

#[test]
fn without_privileges_it_judges_by_counters_and_says_so() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65_534;
    let directory = tempfile::tempdir().unwrap();
    let binary = directory.path().join("holdup");
    std::fs::copy(HOLDUP, &binary).unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let words = "scale --read /dev/urandom --workers 1,2 --repeats 1 --operations 20 --json -";
    let output = Command::new(&binary)
        .args(words.split(' '))
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["coverage"]["backend"], "proc");
    assert_eq!(workers(&report), [1, 2]);
    let missing = &list(&report["coverage"], "not_measured")[0];
    assert!(missing["fix"].as_str().unwrap().contains("root"), "{missing}");
}

/// The children of a process, by number.
fn children(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_ascii_whitespace()
        .map(|word| word.parse().unwrap())
        .collect()
}

/// A descriptor that can be read when the process has ended.
fn watch(pid: u32) -> Option<OwnedFd> {
    // SAFETY: the call takes two integers; what it returns is ours.
    unsafe {
        let descriptor = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        (descriptor >= 0).then(|| OwnedFd::from_raw_fd(descriptor as i32))
    }
}

#[test]
fn a_holdup_that_is_killed_leaves_no_worker_behind() {
    let mut holdup = Guarded::spawn(
        scale(&[
            "--timeout",
            "600s",
            "--workers",
            "2",
            "--operations",
            "3",
            "--backend",
            "proc",
            "--",
            "sleep",
            "500",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null()),
    );
    // holdup, leader, worker, the program.
    let mut chain = vec![holdup.0.id()];
    while chain.len() < 4 {
        assert_eq!(holdup.0.try_wait().unwrap(), None, "it ended by itself");
        match children(*chain.last().unwrap()).first() {
            Some(child) => chain.push(*child),
            None => std::thread::yield_now(),
        }
    }
    let watched: Vec<OwnedFd> = chain[1..].iter().filter_map(|pid| watch(*pid)).collect();
    assert_eq!(watched.len(), 3);
    holdup.signal(nix::sys::signal::Signal::SIGKILL);
    for one in &watched {
        let ended = poll(
            &mut [PollFd::new(one.as_fd(), PollFlags::POLLIN)],
            PollTimeout::from(PATIENCE_MS),
        );
        assert_eq!(ended, Ok(1), "a process lives on");
    }
}
