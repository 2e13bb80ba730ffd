//! Every JDK of this machine: what it shares of itself, and how it answers when it is asked.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use holdup_evidence::Collector;
use holdup_jvm::attach::{Asking, Question, Refused, Silent};
use holdup_jvm::figures::Copy;
use holdup_jvm::perf_memory::{Absent, PerfMemory};
use holdup_proc::Root;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

const QUESTION: Question = Question {
    budget: 1_000_000_000,
    java: None,
    options: None,
};

/// Enough for any machine: a test that is right never waits for as long.
const LONG: Duration = Duration::from_secs(60);

fn dump(pid: u32) -> Result<holdup_jvm::attach::Dump, Refused> {
    let mut asking =
        Asking::start(|child| holdup_jvm::attach::dump(&Root::system(), pid, &QUESTION, child)).unwrap();
    asking
        .answer(Instant::now() + LONG)
        .unwrap_or_else(|silent: Silent| panic!("{silent:?}"))
}

/// Where JDKs are, each once: one has several names.
fn jdks() -> BTreeSet<PathBuf> {
    let all = std::fs::read_dir("/usr/lib/jvm").expect("this machine has a JDK");
    let real = all.filter_map(|one| one.ok()?.path().canonicalize().ok());
    let jdks: BTreeSet<PathBuf> = real.filter(|jdk| jdk.join("bin/javac").exists()).collect();
    assert!(!jdks.is_empty(), "this machine has a JDK");
    jdks
}

struct Jvm {
    child: Child,
    _input: ChildStdin,
}

impl Jvm {
    fn start(jdk: &Path, options: &[&str]) -> Jvm {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/Rests.java");
        let mut child = Command::new(jdk.join("bin/java"))
            .args(["-XX:+UseSerialGC", "-Xmx64m"])
            .args(options)
            .arg(source)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut said).unwrap();
        assert_eq!(said, "runs\n");
        let _input = child.stdin.take().unwrap();
        Jvm { child, _input }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks once it is old enough.
    fn ask(&self) -> Result<holdup_jvm::attach::Dump, Refused> {
        loop {
            match dump(self.pid()) {
                Err(Refused::Young) => std::thread::yield_now(),
                answer => return answer,
            }
        }
    }

    fn left_behind(&self) -> Vec<String> {
        let own = [
            format!(".attach_pid{}", self.pid()),
            format!(".java_pid{}", self.pid()),
        ];
        let there = |name: &String| Path::new("/tmp").join(name).exists();
        own.into_iter().filter(there).collect()
    }
}

impl Drop for Jvm {
    fn drop(&mut self) {
        let socket = format!("/tmp/.java_pid{}", self.pid());
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        // A JVM that is killed leaves it.
        std::fs::remove_file(socket).ok();
    }
}

#[test]
fn its_figures_are_found_in_its_memory() {
    for jdk in jdks() {
        let jvm = Jvm::start(&jdk, &["-Dsecret=x"]);
        let (memory, bytes) = PerfMemory::find(&Root::system(), jvm.pid()).unwrap();
        let copy = Copy {
            index: memory.index(),
            bytes: &bytes,
        }
        .jvm(jvm.pid());
        let release = std::fs::read_to_string(jdk.join("release")).unwrap();
        let version = release
            .lines()
            .find_map(|line| line.strip_prefix("JAVA_VERSION="))
            .unwrap();
        assert_eq!(
            copy.version.as_deref(),
            Some(version.trim_matches('"')),
            "{}",
            jdk.display()
        );
        assert_eq!(copy.collector, Some(Collector::Serial));
        assert!(
            copy.max_heap
                .is_some_and(|heap| (48 << 20..=64 << 20).contains(&heap)),
            "{copy:?}"
        );
        assert!(copy.options.iter().all(|option| !option.contains("secret")));
        assert!(copy.after.safepoints.is_some());
        drop(jvm);
    }
}

#[test]
fn one_that_shares_none_says_so() {
    for jdk in jdks() {
        for option in ["-XX:+PerfDisableSharedMem", "-XX:-UsePerfData"] {
            let jvm = Jvm::start(&jdk, &[option]);
            let found = PerfMemory::find(&Root::system(), jvm.pid());
            assert_eq!(
                found.map(|_| ()),
                Err(Absent::NotShared),
                "{} {option}",
                jdk.display()
            );
        }
    }
}

#[test]
fn it_answers_and_nothing_is_left_but_its_own_socket() {
    for jdk in jdks() {
        let jvm = Jvm::start(&jdk, &[]);
        let dump = jvm.ask().unwrap();
        let text = String::from_utf8_lossy(&dump.text);
        assert!(text.contains("Full thread dump"), "{}: {text}", jdk.display());
        assert!(text.contains("it rests"));
        // The launcher's first thread waits for all others' end, before and after.
        assert!(dump.unmoved.has(jvm.pid()));
        assert_eq!(jvm.left_behind(), [format!(".java_pid{}", jvm.pid())]);
        // Who has answered once is asked without a signal.
        assert!(jvm.ask().is_ok());
    }
}

#[test]
fn one_that_would_die_of_the_question_or_can_not_hear_it_lives_on() {
    for jdk in jdks() {
        // It would die of the signal, and listens from the start instead: so it is sent none.
        let deaf = Jvm::start(&jdk, &["-Xrs"]);
        assert!(deaf.ask().is_ok(), "{}", jdk.display());
        assert_eq!(deaf.left_behind(), [format!(".java_pid{}", deaf.pid())]);
        let stopped = Jvm::start(&jdk, &[]);
        let pid = nix::unistd::Pid::from_raw(i32::try_from(stopped.pid()).unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGSTOP).unwrap();
        while dump(stopped.pid()).err() != Some(Refused::Stopped) {
            std::thread::yield_now();
        }
        assert!(stopped.left_behind().is_empty());
        // Its own words are found where it was started, too.
        let mute = Jvm::start(&jdk, &["-XX:+DisableAttachMechanism"]);
        assert_eq!(mute.ask().err(), Some(Refused::Disabled));
        assert!(mute.left_behind().is_empty());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGCONT).unwrap();
        for mut jvm in [deaf, stopped, mute] {
            assert_eq!(jvm.child.try_wait().unwrap(), None, "it runs");
        }
    }
}
