//! What `holdup attach` says of processes that end, stop, are elsewhere, another's, of another kind, or none.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use holdup_proc::{Root, names, resolver, sockets};
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use support::{Guarded, HOLDUP, lossy, read_until};

fn attach(words: &[&str]) -> Command {
    let mut command = Command::new(HOLDUP);
    command.arg("attach").args(words).stdin(Stdio::null());
    command
}

fn json_of(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{}", lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// `cat` that reads from a pipe of the test's, and is in that call.
fn reader() -> Guarded {
    let reader = Guarded::spawn(Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()));
    until(&reader.0, |call| call.starts_with("0 "));
    reader
}

/// Until the kernel says that it is in this call.
fn until(child: &Child, is: impl Fn(&str) -> bool) {
    let path = format!("/proc/{}/syscall", child.id());
    while !is(&std::fs::read_to_string(&path).unwrap()) {}
}

#[test]
fn no_time_is_a_look_at_what_goes_on() {
    let reader = reader();
    let pid = reader.0.id().to_string();
    let output = attach(&["-p", &pid, "-d", "0", "--format", "json"]).output();
    let report = json_of(&output.unwrap());
    let wait = &report["waits"][0];
    assert_eq!(wait["cause"], "ipc.pipe", "{wait:#}");
    assert_eq!(wait["open"], true);
    assert_eq!(wait["call"], "read");
    assert_eq!(wait["asker"]["stack"][0]["symbol"], "read");
}

/// A master that waits for its workers: they are the service.
#[test]
fn a_process_means_all_below_it_and_only_means_it_alone() {
    let mut master = Command::new("sh");
    master
        .args(["-c", "sleep 60 & echo $!; wait"])
        .stdout(Stdio::piped());
    let mut master = Guarded::spawn(&mut master);
    let worker: u64 = read_until(&mut master.0.stdout.take().unwrap(), "\n")
        .trim()
        .parse()
        .unwrap();
    let pid = master.0.id().to_string();
    let who = |words: &[&str]| {
        let words: Vec<&str> = ["-p", &pid, "-d", "0", "--format", "json"]
            .iter()
            .chain(words)
            .copied()
            .collect();
        let report = json_of(&attach(&words).output().unwrap());
        let threads = report["threads"].as_array().unwrap();
        threads
            .iter()
            .map(|thread| thread["pid"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    let mut both = who(&[]);
    both.sort_unstable();
    let mut expected = vec![u64::from(master.0.id()), worker];
    expected.sort_unstable();
    assert_eq!(both, expected);
    assert_eq!(who(&["--only"]), [u64::from(master.0.id())]);
    kill(Pid::from_raw(i32::try_from(worker).unwrap()), Signal::SIGKILL).unwrap();
}

/// A script starts a service that ends at once, and sleeps in between: five seconds have room for more ends than are needed, and `env`
/// hands over to a program of another name than the script's.
#[test]
fn a_service_that_a_script_starts_again_and_again_fails() {
    let loops = |command: &str| {
        let script = format!("while :; do env {command}; sleep 0.05; done");
        let script = Guarded::spawn(Command::new("bash").args(["-c", &script]));
        let pid = script.0.id().to_string();
        json_of(
            &attach(&["-p", &pid, "-d", "5", "--format", "json"])
                .output()
                .unwrap(),
        )
    };
    let found = |report: &serde_json::Value| {
        let findings = report["findings"].as_array().unwrap();
        let mut ours = findings.iter().filter(|one| one["rule"] == "program-fails-again");
        ours.next().map(|one| one["title"].as_str().unwrap().to_owned())
    };
    let title = found(&loops("perl -e 'exit 3'")).unwrap();
    assert!(
        title.contains("starts perl again and again") && title.contains("ended with status 3"),
        "{title}"
    );
    assert_eq!(found(&loops("perl -e 'exit 0'")), None);
}

/// Where one is interrupted at what the kernel keeps of a task, the kernel keeps nothing more there for the others meanwhile.
#[test]
fn many_at_once_see_the_same() {
    let reader = reader();
    let pid = reader.0.id().to_string();
    let look = || {
        let mut command = attach(&["-p", &pid, "-d", "0.1", "--format", "json"]);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let all: Vec<Child> = std::iter::repeat_with(look).take(8).collect();
    for one in all {
        let report = json_of(&one.wait_with_output().unwrap());
        assert_eq!(report["waits"][0]["cause"], "ipc.pipe");
        assert_eq!(report["coverage"]["unknown_ns"], 0);
    }
}

#[test]
fn observation_ends_with_the_process() {
    let mut reader = reader();
    let pid = reader.0.id().to_string();
    let mut holdup = Guarded::spawn(attach(&["-p", &pid, "-d", "1000"]).stdout(Stdio::piped()));
    // Not the patience of the test, but how much is seen of it, depends on when holdup has begun.
    drop(reader.0.stdin.take().map(|mut to| to.write_all(b"x")));
    reader.0.wait().unwrap();
    let status = holdup.0.wait().unwrap();
    // Before it was watched, or while it was.
    assert!(matches!(status.code(), Some(0 | 125)), "{status}");
}

/// A shell's background job is started to ignore interrupts; one that is sent to it all the same is meant.
#[test]
fn a_person_who_has_seen_enough_gets_the_report() {
    for (signal, ignored) in [
        (Signal::SIGINT, false),
        (Signal::SIGTERM, false),
        (Signal::SIGINT, true),
        (Signal::SIGTERM, true),
    ] {
        let reader = reader();
        let pid = reader.0.id().to_string();
        let mut command = attach(&["-p", &pid, "--verbose"]);
        if ignored {
            // SAFETY: between fork and exec only `signal` is called, which may be.
            unsafe {
                command.pre_exec(move || {
                    nix::sys::signal::signal(signal, nix::sys::signal::SigHandler::SigIgn)?;
                    Ok(())
                })
            };
        }
        let mut holdup = Guarded::spawn(command.stdout(Stdio::piped()));
        // Once its programs are there, holdup watches, or is about to.
        while !has_programs(holdup.0.id()) {}
        holdup.signal(signal);
        read_until(holdup.0.stdout.as_mut().unwrap(), "still waiting at the end");
        assert!(holdup.0.wait().unwrap().success());
    }
}

fn has_programs(pid: u32) -> bool {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
    let links = entries
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok());
    links
        .into_iter()
        .any(|link| link.to_string_lossy().contains("bpf-prog"))
}

#[test]
fn what_cannot_wait_is_refused_in_a_sentence() {
    let mut ended = Command::new("true").spawn().unwrap();
    let path = format!("/proc/{}/stat", ended.id());
    while !std::fs::read_to_string(&path).unwrap().contains(") Z ") {}
    let pid = ended.id().to_string();
    let output = attach(&["-p", &pid]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(
        lossy(&output.stderr).contains("a zombie"),
        "{}",
        lossy(&output.stderr)
    );
    ended.wait().unwrap();
    let output = attach(&["-p", &pid]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(lossy(&output.stderr).contains(&format!("there is no process {pid}")));
}

/// A program of the 32-bit kind that reads from its stdin, again and again: the least that the kernel runs.
fn program_of_32_bit() -> Vec<u8> {
    const BASE: u32 = 0x0804_8000;
    const HEADERS: u32 = 52 + 32;
    // mov eax, 3 (read); xor ebx, ebx; mov ecx, esp; mov edx, 1; int 0x80; jmp to the begin
    let code: [u8; 18] = [
        0xb8, 3, 0, 0, 0, 0x31, 0xdb, 0x89, 0xe1, 0xba, 1, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xee,
    ];
    let size = HEADERS + u32::try_from(code.len()).unwrap();
    let mut file = vec![0x7f, b'E', b'L', b'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    // An executable for the 386, version, entry, program headers after this one, no sections, no flags.
    for half in [2_u16, 3] {
        file.extend(half.to_le_bytes());
    }
    for word in [1, BASE + HEADERS, 52, 0, 0] {
        file.extend(u32::to_le_bytes(word));
    }
    for half in [52_u16, 32, 1, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    // To be loaded as a whole, readable and executable.
    for word in [1, 0, BASE, BASE, size, size, 5, 0x1000] {
        file.extend(u32::to_le_bytes(word));
    }
    file.extend(code);
    file
}

#[test]
fn a_32_bit_program_is_told_by_its_own_calls() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reader");
    let bytes = folder.path().join("bytes");
    std::fs::write(&bytes, program_of_32_bit()).unwrap();
    // By another process: a child that another test starts meanwhile would have the file open to write, and what is can't be executed.
    let copied = Command::new("install").args([&bytes, &path]).status().unwrap();
    assert!(copied.success());
    let reader = Guarded::spawn(Command::new(&path).stdin(Stdio::piped()));
    // There a read has the number 3.
    until(&reader.0, |call| call.starts_with("3 0x0 "));
    let pid = reader.0.id().to_string();
    let report = json_of(
        &attach(&["-p", &pid, "-d", "0.1", "--format", "json"])
            .output()
            .unwrap(),
    );
    let wait = &report["waits"][0];
    assert_eq!(
        (&wait["cause"], &wait["call"]),
        (&"ipc.pipe".into(), &"read".into()),
        "{wait:#}"
    );
    assert_eq!(report["coverage"]["unknown_ns"], 0);
}

#[test]
fn a_kernel_thread_without_work_is_idle() {
    const KTHREADD: &str = "2";
    let report = json_of(
        &attach(&["-p", KTHREADD, "--only", "-d", "0.1", "--format", "json"])
            .output()
            .unwrap(),
    );
    let idle = report["causes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|cause| cause["cause"] == "idle");
    assert!(
        idle.is_some_and(|idle| idle["ns"].as_u64() > Some(0)),
        "{}",
        report["causes"]
    );
    assert_eq!(report["findings"], serde_json::json!([]));
}

#[test]
fn another_users_process_is_told_like_any() {
    const NOBODY: u32 = 65_534;
    let mut command = Command::new("cat");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).uid(NOBODY);
    let reader = Guarded::spawn(&mut command);
    until(&reader.0, |call| call.starts_with("0 "));
    let pid = reader.0.id().to_string();
    let report = json_of(
        &attach(&["-p", &pid, "-d", "0.1", "--format", "json"])
            .output()
            .unwrap(),
    );
    assert_eq!(report["waits"][0]["cause"], "ipc.pipe");
    assert_eq!(report["waits"][0]["asker"]["stack"][0]["symbol"], "read");
}

#[test]
fn what_a_process_in_namespaces_of_its_own_has_is_read_through_those() {
    let mut command = Command::new("unshare");
    command.args([
        "--fork",
        "--pid",
        "--mount",
        "--net",
        "--user",
        "--map-root-user",
        "--kill-child",
    ]);
    let own = "mount -t tmpfs none /etc && echo 'nameserver 192.0.2.53' > /etc/resolv.conf && echo ready && exec cat";
    command.args(["sh", "-c", own]);
    let mut container = Guarded::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(container.0.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "ready\n");
    let children = format!("/proc/{0}/task/{0}/children", container.0.id());
    let children = std::fs::read_to_string(children).unwrap();
    let pid: u32 = children.split_whitespace().next().unwrap().parse().unwrap();
    let root = Root::system();
    let facts = resolver::of_process(&root, pid).unwrap();
    assert_eq!(facts.servers, ["192.0.2.53"], "its mount namespace");
    assert_ne!(names::place(&root, pid), names::place(&root, std::process::id()));
    assert_eq!(names::process_inside(&root, pid), Some(1), "its pid namespace");
    let _listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    assert!(sockets::read(&root, pid).tcp.is_empty(), "its network namespace");
    assert!(!sockets::read(&root, std::process::id()).tcp.is_empty());
}

#[test]
fn a_process_in_a_container_has_both_sides_numbers_and_paths() {
    let mut command = Command::new("unshare");
    command.args(["--fork", "--pid", "--mount", "--kill-child", "cat"]);
    let mut container = Guarded::spawn(command.stdin(Stdio::piped()).stdout(Stdio::null()));
    let children = format!("/proc/{0}/task/{0}/children", container.0.id());
    let pid = loop {
        let text = std::fs::read_to_string(&children).unwrap();
        if let Some(pid) = text.split_whitespace().next() {
            break pid.to_owned();
        }
    };
    while std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap() != "cat\n" {}
    let report = json_of(
        &attach(&["-p", &pid, "-d", "0.1", "--format", "json"])
            .output()
            .unwrap(),
    );
    let root = format!("/proc/{pid}/root");
    let one = &report["subject"]["elsewhere"][0];
    assert_eq!(
        (&one["pid_inside"], &one["root"]),
        (&1.into(), &root.as_str().into()),
        "{one}"
    );
    let output = attach(&["-p", &pid, "-d", "0.1"]).output().unwrap();
    assert!(
        lossy(&output.stdout).contains("has pid 1 in its namespace"),
        "{}",
        lossy(&output.stdout)
    );
    drop(container.0.stdin.take());
    container.0.wait().unwrap();
}

#[test]
fn a_traced_process_is_held_by_its_tracer() {
    let reader = reader();
    let pid = reader.0.id();
    let tracer = std::thread::spawn(move || {
        let pid = Pid::from_raw(pid.cast_signed());
        ptrace::attach(pid).unwrap();
        waitpid(pid, None).unwrap();
        let words = ["-p", &pid.to_string(), "-d", "0.1", "--format", "json"];
        let output = attach(&words).output();
        ptrace::detach(pid, None).unwrap();
        output
    });
    let report = json_of(&tracer.join().unwrap().unwrap());
    let wait = &report["waits"][0];
    assert_eq!(wait["cause"], "process.stopped", "{wait:#}");
    assert_eq!(wait["held_by"]["how_known"], "tracer");
    assert_eq!(wait["held_by"]["pid"], std::process::id());
}

#[test]
fn many_processes_are_one_subject_that_a_line_has_room_for() {
    let readers: Vec<Guarded> = (0..20).map(|_| reader()).collect();
    let pids: Vec<String> = readers.iter().map(|reader| reader.0.id().to_string()).collect();
    let output = attach(&["-p", &pids.join(","), "-d", "0.1"]).output().unwrap();
    let text = lossy(&output.stdout);
    let begin = format!(" 20 processes ({}, {}, {} …)", pids[0], pids[1], pids[2]);
    let subject = text.lines().find(|line| line.contains(&begin));
    assert!(subject.is_some(), "{text}");
    assert!(text.contains("20 threads"), "{text}");
}

#[test]
fn killed_it_leaves_the_process_and_the_kernel_as_they_were() {
    let mut reader = reader();
    let pid = reader.0.id().to_string();
    let mut holdup = Guarded::spawn(attach(&["-p", &pid]).stdout(Stdio::null()));
    while !has_programs(holdup.0.id()) {}
    holdup.0.kill().unwrap();
    holdup.0.wait().unwrap();
    // Nothing of it is pinned, so the next has the kernel for itself, and the process goes on.
    let report = json_of(
        &attach(&["-p", &pid, "-d", "0.1", "--format", "json"])
            .output()
            .unwrap(),
    );
    assert_eq!(report["waits"][0]["cause"], "ipc.pipe");
    drop(reader.0.stdin.take());
    assert!(reader.0.wait().unwrap().success());
}

#[test]
fn what_is_not_there_is_said_in_a_sentence() {
    for (words, said) in [
        (
            ["--unit", "hu-no-such"],
            "no unit \"hu-no-such.service\" is running",
        ),
        (["--cgroup", "/hu/no-such"], "there is no cgroup \"/hu/no-such\""),
        (["--name", "hu-no-such"], "no process is called \"hu-no-such\""),
    ] {
        let output = attach(&words).output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{words:?}");
        assert!(lossy(&output.stderr).contains(said), "{}", lossy(&output.stderr));
    }
    for pid in ["0", "abc", "4294967296"] {
        let output = attach(&["--pid", pid]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = format!("needs the ID of a process or thread (`ps -e` lists them), not {pid}");
        assert!(lossy(&output.stderr).contains(&said), "{}", lossy(&output.stderr));
    }
}

#[test]
fn a_stopped_process_was_stopped_by_nobody_that_was_seen() {
    let reader = reader();
    let pid = Pid::from_raw(reader.0.id().cast_signed());
    kill(pid, Signal::SIGSTOP).unwrap();
    while !std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .unwrap()
        .contains(") T ")
    {}
    let output = attach(&["-p", &pid.to_string(), "-d", "0.1", "--format", "json"]).output();
    let report = json_of(&output.unwrap());
    let wait = &report["waits"][0];
    assert_eq!(wait["cause"], "process.stopped", "{wait:#}");
    assert_eq!(wait["held_by"], serde_json::Value::Null);
}

/// Waits for a completion on a ring of io_uring on which nothing was asked for; `false` where the kernel has none, or lets none be
/// made. It waits for ever.
fn await_completion(sender: &std::sync::mpsc::Sender<bool>) {
    const GETEVENTS: u32 = 1;
    // `struct io_uring_params`: all zero asks for no more than a ring.
    let mut params = [0_u32; 30];
    // SAFETY: the kernel writes 120 bytes to `params`, which has them, and returns a descriptor.
    let ring = unsafe { libc::syscall(libc::SYS_io_uring_setup, 4, params.as_mut_ptr()) };
    sender.send(ring >= 0).ok();
    if ring >= 0 {
        // SAFETY: no memory is handed over.
        unsafe { libc::syscall(libc::SYS_io_uring_enter, ring, 0, 1, GETEVENTS, 0, 0) };
    }
}

#[test]
fn who_awaits_completions_of_nothing_is_idle() {
    let (made, is_made) = std::sync::mpsc::channel();
    let waiter = std::thread::Builder::new().name("completions".to_owned());
    let (tid_told, tid) = std::sync::mpsc::channel();
    waiter
        .spawn(move || {
            tid_told.send(nix::unistd::gettid()).ok();
            await_completion(&made);
        })
        .unwrap();
    let tid = tid.recv().unwrap();
    if !is_made.recv().unwrap() {
        eprintln!("this kernel lets no ring be made: there is nothing to look at");
        return;
    }
    let call = format!("{} ", libc::SYS_io_uring_enter);
    let path = format!("/proc/self/task/{tid}/syscall");
    while !std::fs::read_to_string(&path).unwrap().starts_with(&call) {}
    for more in [&[][..], &["--backend", "proc"]] {
        let mut command = attach(&[
            "-p",
            &std::process::id().to_string(),
            "-d",
            "0.1",
            "--format",
            "json",
        ]);
        let output = command.args(more).output().unwrap();
        let report = json_of(&output);
        let waits = report["waits"].as_array().unwrap();
        let wait = waits.iter().find(|wait| wait["call"] == "io_uring_enter");
        assert_eq!(wait.unwrap()["cause"], "idle", "{report:#}");
    }
}
