//! Whom a JVM's dump is asked of, and traps that others lay: this process plays the JVM, in a tree of its own.

use super::{
    Expendable, Question, Refused, Seen, Status, answer, ask_for_dump, decide, estimate, prepare, text_of,
};
use holdup_proc::Root;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

const OLD: Duration = Duration::from_secs(3_600);

const QUESTION: Question = Question {
    budget: 50_000_000,
    java: Some(17),
    options: Some(Vec::new()),
};

/// What the child does, but for taking the ids: they are this process's own.
fn dump(root: &Root, pid: u32, child: &Expendable) -> Result<super::Dump, Refused> {
    ask_for_dump(root, prepare(root, pid, &QUESTION)?, child)
}

fn own_user() -> u32 {
    nix::unistd::geteuid().as_raw()
}

fn healthy() -> Status {
    Status {
        user: own_user(),
        group: 0,
        inside: 7,
        threads: 40,
        handles_quit: true,
        stopped: false,
    }
}

fn seen(status: Status) -> Seen {
    Seen {
        status,
        frozen: false,
        age: OLD,
        listens: false,
    }
}

#[test]
fn one_thing_is_enough_not_to_ask() {
    let well = seen(healthy());
    let judged = |seen: Seen, user| decide(&seen, &QUESTION, user);
    assert_eq!(judged(well, own_user()), Ok(()));
    let listens = Seen {
        listens: true,
        ..well
    };
    let with = |change: fn(&mut Status)| {
        let mut status = healthy();
        change(&mut status);
        Seen { status, ..well }
    };
    let stopped = with(|status| status.stopped = true);
    assert_eq!(judged(stopped, 0), Err(Refused::Stopped));
    let frozen = Seen {
        frozen: true,
        ..listens
    };
    assert_eq!(judged(frozen, 0), Err(Refused::Frozen));
    let deaf = with(|status| status.handles_quit = false);
    assert_eq!(judged(deaf, 0), Err(Refused::NoHandler));
    // Whoever listens already needs no signal.
    let deaf = Seen {
        listens: true,
        ..deaf
    };
    assert_eq!(judged(deaf, 0), Ok(()));
    let young = Seen {
        age: Duration::from_millis(9),
        ..well
    };
    assert_eq!(judged(young, 0), Err(Refused::Young));
    let others = with(|status| status.user = 1_000);
    assert_eq!(judged(others, 1_001), Err(Refused::AnotherUsers));
    assert_eq!(judged(others, 0), Ok(()));
    let describe = |option: &str| Question {
        options: Some(vec![option.to_owned()]),
        ..QUESTION
    };
    let disabled = describe("-XX:+DisableAttachMechanism");
    assert_eq!(decide(&listens, &disabled, 0), Err(Refused::Disabled));
    assert_eq!(decide(&listens, &describe("-Xrs"), 0), Ok(()));
    assert_eq!(decide(&well, &describe("-Xrs"), 0), Err(Refused::ReducedSignals));
}

#[test]
fn nobody_is_stopped_for_longer_than_was_allowed() {
    let mut many = seen(healthy());
    many.status.threads = 10_000;
    let Err(Refused::OverBudget {
        threads,
        estimate: needed,
        budget,
    }) = decide(&many, &QUESTION, 0)
    else {
        panic!("ten thousand threads");
    };
    assert_eq!((threads, budget), (10_000, 50_000_000));
    assert!(needed > budget);
    // What was measured: 0.5 and 2.3 ms with a machine's own threads alone, 10 to 25 ms at 1,000 threads of JDK 17, 37 to 76 of
    // JDK 25; 460 to 476 at 5,000.
    assert!(estimate(24, Some(17)) >= 500_000);
    assert!(estimate(24, Some(25)) >= 2_300_000);
    assert!(estimate(1_000, Some(17)) >= 25_000_000);
    assert!(estimate(1_000, Some(25)) >= 76_000_000);
    assert!(estimate(5_000, Some(25)) >= 476_000_000);
    assert_eq!(
        estimate(10, None),
        estimate(10, Some(25)),
        "who is not known is not trusted"
    );
}

/// A tree in which this process is a JVM.
struct Stage {
    folder: TempDir,
    pid: u32,
}

impl Stage {
    fn new(user: u32) -> Stage {
        let (folder, pid) = (TempDir::new().unwrap(), std::process::id());
        let process = folder.path().join("proc").join(pid.to_string());
        std::fs::create_dir_all(process.join("root/tmp")).unwrap();
        let status = format!(
            "State:\tS (sleeping)\nUid:\t{user}\t{user}\t{user}\t{user}\nGid:\t0\t0\t0\t0\nGroups:\t\nNSpid:\t{pid}\t7\nThreads:\t3\nSigCgt:\t0\n"
        );
        std::fs::write(process.join("status"), status).unwrap();
        let stat = format!("{pid} (a) b) S {} 100 0", "0 ".repeat(18));
        std::fs::write(process.join("stat"), stat).unwrap();
        std::fs::write(folder.path().join("proc/uptime"), "9999.0 1.0\n").unwrap();
        let library = "7f00-7f01 r-xp 00000000 08:01 131 /opt/jdk/lib/server/libjvm.so\n";
        std::fs::write(process.join("maps"), library).unwrap();
        Stage { folder, pid }
    }

    fn tmp(&self) -> PathBuf {
        self.folder
            .path()
            .join("proc")
            .join(self.pid.to_string())
            .join("root/tmp")
    }

    fn ask(&self) -> Result<super::Dump, Refused> {
        let (child, _parent) = Expendable::with_parent();
        self.ask_as(&child)
    }

    fn ask_as(&self, child: &Expendable) -> Result<super::Dump, Refused> {
        dump(&Root::below(self.folder.path()), self.pid, child)
    }

    /// One of this process's threads, as the kernel tells of it.
    fn thread(&self, tid: u32, switches: u32) {
        let proc = self.folder.path().join("proc");
        std::fs::create_dir_all(proc.join(self.pid.to_string()).join("task").join(tid.to_string())).unwrap();
        std::fs::create_dir_all(proc.join(tid.to_string())).unwrap();
        let text = format!(
            "State:\tS\nNSpid:\t{tid}\t{}\nvoluntary_ctxt_switches:\t{switches}\nnonvoluntary_ctxt_switches:\t0\n",
            tid % 1_000
        );
        std::fs::write(proc.join(tid.to_string()).join("status"), text).unwrap();
    }

    /// Listens where a JVM would, and answers one request so.
    fn listen(&self, answer: &'static [u8]) -> std::thread::JoinHandle<Vec<u8>> {
        let listener = UnixListener::bind(self.tmp().join(".java_pid7")).unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = vec![0; super::REQUEST.len()];
            stream.read_exact(&mut request).unwrap();
            stream.write_all(answer).unwrap();
            request
        })
    }

    fn left_behind(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.tmp()).unwrap();
        names
            .map(|one| one.unwrap().file_name().to_string_lossy().into_owned())
            .collect()
    }
}

#[test]
fn a_jvm_that_listens_is_asked_and_answers() {
    let stage = Stage::new(own_user());
    let sleeping = 90_000_011;
    stage.thread(sleeping, 5);
    let jvm = stage.listen(b"0\nFull thread dump\n\"main\" #1\n");
    let dump = stage.ask().unwrap();
    assert_eq!(dump.text, b"Full thread dump\n\"main\" #1\n");
    assert_eq!(jvm.join().unwrap(), super::REQUEST);
    assert_eq!(dump.threads, 1);
    assert!(dump.from <= dump.to);
    assert!(dump.unmoved.has(11), "by its id inside");
    assert!(!dump.unmoved.has(sleeping), "of that one nothing was looked at");
    assert_eq!(stage.left_behind(), [".java_pid7"]);
}

#[test]
fn a_jvm_that_refuses_is_quoted() {
    let stage = Stage::new(own_user());
    let jvm = stage.listen(b"100\nnot today\nreally");
    assert_eq!(stage.ask().unwrap_err(), Refused::Answer("not today".to_owned()));
    jvm.join().unwrap();
    assert_eq!(text_of(b"".to_vec()), Err(Refused::NoAnswer));
    assert_eq!(
        text_of(b"0".to_vec()),
        Err(Refused::NoAnswer),
        "cut before the line's end"
    );
    assert_eq!(text_of(b"\x1b\n".to_vec()), Err(Refused::Answer(String::new())));
}

#[test]
fn traps_are_not_stepped_into() {
    let refused = |stage: &Stage| match stage.ask() {
        Err(Refused::NotItsSocket(why)) => why,
        other => panic!("{other:?}"),
    };
    // A socket that another user made.
    let stage = Stage::new(own_user() + 1);
    let listener = UnixListener::bind(stage.tmp().join(".java_pid7")).unwrap();
    let why = match stage.ask() {
        Err(Refused::NotItsSocket(why)) => why,
        // Who is not root is reported even before that.
        Err(Refused::AnotherUsers) => "belongs".to_owned(),
        other => panic!("{other:?}"),
    };
    assert!(why.contains("belongs"), "{why}");
    drop(listener);
    // A file, a pipe and a link in its place.
    let stage = Stage::new(own_user());
    std::fs::write(stage.tmp().join(".java_pid7"), "").unwrap();
    assert!(refused(&stage).contains("no socket"));
    std::fs::remove_file(stage.tmp().join(".java_pid7")).unwrap();
    nix::unistd::mkfifo(&stage.tmp().join(".java_pid7"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(refused(&stage).contains("no socket"));
    std::fs::remove_file(stage.tmp().join(".java_pid7")).unwrap();
    let elsewhere = stage.folder.path().join("elsewhere");
    let listener = UnixListener::bind(&elsewhere).unwrap();
    symlink(&elsewhere, stage.tmp().join(".java_pid7")).unwrap();
    let why = refused(&stage);
    assert!(why.contains("no socket") || why.contains("ELOOP"), "{why}");
    drop(listener);
}

#[test]
fn a_tmp_that_leads_elsewhere_is_not_followed() {
    let stage = Stage::new(own_user());
    let outside = stage.folder.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::remove_dir(stage.tmp()).unwrap();
    symlink(&outside, stage.tmp()).unwrap();
    assert!(matches!(stage.ask(), Err(Refused::NoTmp(_))));
}

#[test]
fn who_listens_must_be_the_process_itself() {
    let stage = Stage::new(own_user());
    let listener = UnixListener::bind(stage.tmp().join(".java_pid7")).unwrap();
    // The same tree under another number: the listener is not that process.
    let other = 1;
    let proc = stage.folder.path().join("proc");
    std::fs::rename(proc.join(stage.pid.to_string()), proc.join(other.to_string())).unwrap();
    let root = Root::below(stage.folder.path());
    let (child, _parent) = Expendable::with_parent();
    let found = dump(&root, other, &child);
    assert_eq!(
        found.unwrap_err(),
        Refused::NotItsSocket("another process listens there".to_owned())
    );
    drop(listener);
}

#[test]
fn without_a_handler_nothing_is_sent_and_nothing_is_made() {
    // `SigCgt` is 0 here, and this process lives on.
    let stage = Stage::new(own_user());
    assert_eq!(stage.ask().unwrap_err(), Refused::NoHandler);
    assert!(stage.left_behind().is_empty());
}

#[test]
fn who_is_no_jvm_any_more_is_not_asked() {
    let stage = Stage::new(own_user());
    let maps = stage.tmp().join("../../maps");
    std::fs::write(maps, "7f00-7f01 r-xp 00000000 08:01 131 /usr/bin/cat\n").unwrap();
    assert_eq!(stage.ask().unwrap_err(), Refused::NoJvm);
}

#[test]
fn silence_is_left_when_nobody_wants_the_answer() {
    let stage = Stage::new(own_user());
    // It takes nobody in, and says nothing.
    let listener = UnixListener::bind(stage.tmp().join(".java_pid7")).unwrap();
    let (child, parent) = Expendable::with_parent();
    drop(parent);
    assert_eq!(stage.ask_as(&child).unwrap_err(), Refused::NoAnswer);
    drop(listener);
    // Nobody listens there any more.
    assert!(matches!(stage.ask().unwrap_err(), Refused::NotItsSocket(_)));
}

#[test]
fn what_has_no_end_is_not_read_to_it() {
    let (child, parent) = Expendable::with_parent();
    let all = |source: &mut dyn Read| answer(&mut { source }, 1_000, &child);
    assert_eq!(all(&mut std::io::repeat(b'x')), Err(Refused::TooLong));
    assert_eq!(all(&mut &b"0\nx"[..]), Ok(b"0\nx".to_vec()));
    // One who says something now and then goes on for as long as anybody listens.
    let few = &mut std::io::repeat(b'x').take(900);
    drop(parent);
    assert_eq!(answer(few, 1_000, &child), Err(Refused::NoAnswer));
}

#[test]
fn a_program_of_two_users_is_not_asked() {
    let stage = Stage::new(own_user());
    let path = stage.tmp().join("../../status");
    let status = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, status.replacen("Gid:\t0", "Gid:\t5", 1)).unwrap();
    assert_eq!(stage.ask().unwrap_err(), Refused::MixedIds);
    assert!(stage.left_behind().is_empty());
}

#[test]
fn where_a_jvm_answers_tools_is_known_by_its_name() {
    for path in ["/tmp/.java_pid7", "/proc/7/root/tmp/.java_pid4711.tmp"] {
        assert!(super::is_for_tools(path), "{path}");
    }
    for path in [
        "/tmp/.java_pid",
        "/tmp/.java_pidfile",
        "/run/.java_pid7/socket",
        "@.java_pid7x",
    ] {
        assert!(!super::is_for_tools(path), "{path}");
    }
}
