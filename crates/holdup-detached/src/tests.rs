//! A child answers, and nothing that happens to it happens to its parent.

use super::{Answer, Bytes, Capabilities, Confinement, Crew, Detached, Failed, is_ours, left_behind};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Enough for any machine: a test that is right never waits for as long.
const LONG: Duration = Duration::from_secs(60);

const PLAIN: Confinement = Confinement {
    name: c"holdup-test",
    capabilities: Capabilities::NONE,
    cpu_time: None,
    memory_bytes: 1 << 30,
    files: 64,
};

/// What the child of a test is to do.
#[derive(serde::Serialize, serde::Deserialize)]
enum Do {
    Double(u64),
    Panic,
    Stop,
    Status(String),
    Open(String),
    Write(String),
    Execute,
    Descriptors,
    Fill(usize),
}

fn act(what: Do) -> Result<String, String> {
    let describe = |error: std::io::Error| error.kind().to_string();
    match what {
        Do::Double(number) => Ok((2 * number).to_string()),
        Do::Panic => panic!("over hostile contents"),
        Do::Stop => loop {
            std::thread::park();
        },
        Do::Status(field) => {
            let status = std::fs::read_to_string("/proc/self/status").map_err(describe)?;
            let line = status.lines().find_map(|line| line.strip_prefix(field.as_str()));
            line.map(|line| line.trim().to_owned()).ok_or(field)
        }
        Do::Open(path) => File::open(path).map(|_| String::new()).map_err(describe),
        Do::Write(path) => {
            let opened = File::options().append(true).open(path);
            opened.map(|_| String::new()).map_err(describe)
        }
        Do::Execute => {
            let started = std::process::Command::new("/bin/true").spawn();
            started.map(|_| String::new()).map_err(describe)
        }
        Do::Descriptors => {
            let folder = std::fs::read_dir("/proc/self/fd").map_err(describe)?;
            let mut names: Vec<String> = folder
                .flatten()
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .collect();
            names.sort();
            Ok(names.join(" "))
        }
        Do::Fill(bytes) => Ok("x".repeat(bytes)),
    }
}

fn start() -> Detached<Do, Result<String, String>> {
    Detached::start(&PLAIN, || |what, _| act(what).into()).unwrap()
}

fn ask(child: &mut Detached<Do, Result<String, String>>, what: Do) -> Result<String, String> {
    child.ask_and_wait(&what, &[], LONG).unwrap().value
}

#[test]
fn answers_come_in_the_order_of_the_questions() {
    let mut child = start();
    for number in 1..=3 {
        child
            .ask(&Do::Double(number), &[], Instant::now() + LONG)
            .unwrap();
    }
    assert_eq!(child.owed(), 3);
    for number in 1..=3_u64 {
        let answer = child.answer(Instant::now() + LONG).unwrap();
        assert_eq!(answer.value, Ok((2 * number).to_string()));
    }
    assert_eq!(child.owed(), 0);
    assert!(is_ours(child.pid()));
    let pid = child.pid();
    drop(child);
    assert!(!is_ours(pid));
}

#[test]
fn bytes_are_copied_as_they_are() {
    let begin = || {
        |bytes: Bytes, _: Vec<OwnedFd>| -> Answer<Bytes> { Bytes(bytes.0.into_iter().rev().collect()).into() }
    };
    let mut child: Detached<Bytes, Bytes> = Detached::start(&PLAIN, begin).unwrap();
    let answer = child.ask_and_wait(&Bytes(vec![0, 1, 255]), &[], LONG).unwrap();
    assert_eq!(answer.value.0, [255, 1, 0]);
}

#[test]
fn a_long_answer_comes_whole() {
    let bytes = 3 << 20;
    assert_eq!(ask(&mut start(), Do::Fill(bytes)).unwrap().len(), bytes);
}

#[test]
fn one_that_breaks_is_gone_and_one_that_stops_is_late_and_can_be_abandoned() {
    let mut child = start();
    assert_eq!(
        child.ask_and_wait(&Do::Panic, &[], LONG).err(),
        Some(Failed::Gone)
    );

    let mut child = start();
    let now = Instant::now();
    child.ask(&Do::Stop, &[], now + LONG).unwrap();
    assert_eq!(child.answer(now).err(), Some(Failed::Late));
    let pid = child.pid();
    child.abandon("process 1");
    // It was asleep, so the signal has ended it.
    assert!(left_behind().iter().all(|left| left.pid != pid));
}

#[test]
fn questions_that_nobody_takes_are_late_and_hold_up_nobody() {
    let mut child = start();
    let until = Instant::now() + LONG;
    child.ask(&Do::Stop, &[], until).unwrap();
    let long = Do::Open("x".repeat(8 << 20));
    assert_eq!(child.ask(&long, &[], Instant::now()).err(), Some(Failed::Late));
}

#[test]
fn descriptors_go_both_ways() {
    let mut child: Detached<String, u64> = Detached::start(&PLAIN, || {
        |text: String, descriptors: Vec<OwnedFd>| {
            let mut file = File::from(descriptors.into_iter().next().unwrap());
            file.write_all(text.as_bytes()).unwrap();
            let copy = memfd_create("copy", MFdFlags::MFD_CLOEXEC).unwrap();
            File::from(copy.try_clone().unwrap()).write_all(b"back").unwrap();
            Answer {
                value: 7,
                descriptors: vec![copy],
            }
        }
    })
    .unwrap();
    let mut given = File::from(memfd_create("given", MFdFlags::MFD_CLOEXEC).unwrap());
    let question = "forth".to_owned();
    let answer = child.ask_and_wait(&question, &[given.as_fd()], LONG).unwrap();
    assert_eq!((answer.value, answer.descriptors.len()), (7, 1));
    let read = |file: &mut File| {
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        text
    };
    assert_eq!(read(&mut given), "forth");
    let mut back = File::from(answer.descriptors.into_iter().next().unwrap());
    assert_eq!(read(&mut back), "back");
}

#[test]
fn it_has_none_of_its_parents_descriptors() {
    let held = File::open("/proc/self/status").unwrap();
    assert!(held.as_raw_fd() > 2);
    // Its three standard ones, the channel, and the folder that it reads.
    assert_eq!(ask(&mut start(), Do::Descriptors).unwrap(), "0 1 2 3 4");
}

#[test]
fn it_can_neither_write_nor_start_programs_and_is_nobody() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let mut child = start();
    let path = file.to_str().unwrap().to_owned();
    assert!(ask(&mut child, Do::Write(path)).is_err());
    assert!(ask(&mut child, Do::Execute).is_err());
    assert_eq!(ask(&mut child, Do::Status("NoNewPrivs:".into())).unwrap(), "1");
    assert_eq!(ask(&mut child, Do::Status("Seccomp:".into())).unwrap(), "2");
    assert_eq!(
        ask(&mut child, Do::Status("CapPrm:".into())).unwrap(),
        "0000000000000000"
    );
    if nix::unistd::geteuid().is_root() {
        let ids = ask(&mut child, Do::Status("Uid:".into())).unwrap();
        assert_eq!(ids, "65534\t65534\t65534\t65534");
        assert_eq!(
            ask(&mut child, Do::Status("CapBnd:".into())).unwrap(),
            "0000000000000000"
        );
        assert!(ask(&mut child, Do::Open("/etc/shadow".into())).is_err());
    }
}

#[test]
fn capabilities_that_it_keeps_work() {
    if !nix::unistd::geteuid().is_root() {
        // An ordinary user has none to keep: what is kept of none is none.
        assert_eq!(Capabilities::permitted().unwrap(), Capabilities::NONE);
        return;
    }
    let confinement = Confinement {
        capabilities: Capabilities::DAC_READ_SEARCH,
        ..PLAIN
    };
    let mut child: Detached<Do, Result<String, String>> =
        Detached::start(&confinement, || |what, _| act(what).into()).unwrap();
    assert_eq!(ask(&mut child, Do::Open("/etc/shadow".into())), Ok(String::new()));
    assert!(ask(&mut child, Do::Write("/etc/shadow".into())).is_err());
}

#[test]
fn one_that_uses_up_its_cpu_time_is_ended() {
    let confinement = Confinement {
        cpu_time: Some(Duration::from_secs(1)),
        ..PLAIN
    };
    let forever = || {
        |(): (), _: Vec<OwnedFd>| -> Answer<()> {
            loop {
                std::hint::black_box(0);
            }
        }
    };
    let mut child: Detached<(), ()> = Detached::start(&confinement, forever).unwrap();
    assert_eq!(child.ask_and_wait(&(), &[], LONG).err(), Some(Failed::Gone));
    assert!(child.cpu_time() > Duration::ZERO);
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
enum Number {
    Stuck,
    Breaks,
    Is(u64),
}

fn crew(children_max: usize) -> Crew<Number, u64> {
    Crew::new(
        PLAIN,
        children_max,
        |number| format!("{number:?}"),
        || {
            |number| match number {
                Number::Stuck => loop {
                    std::thread::park();
                },
                Number::Breaks => panic!("over hostile contents"),
                Number::Is(number) => number,
            }
        },
    )
}

#[test]
fn one_question_that_is_stuck_or_breaks_its_child_does_not_keep_the_others() {
    let mut crew = crew(4);
    for number in [Number::Is(1), Number::Stuck, Number::Is(2), Number::Breaks] {
        crew.ask(number);
    }
    for number in 3..100 {
        crew.ask(Number::Is(number));
    }
    let mut answers: Vec<u64> = (1..100)
        .map(|_| crew.answer(Instant::now() + LONG).unwrap().1)
        .collect();
    answers.sort_unstable();
    assert_eq!(answers, (1..100).collect::<Vec<u64>>());
    assert!(crew.answer(Instant::now()).is_none());
    // The end of the one that broke may not have been noticed: it was not needed for any answer.
    let open: Vec<String> = crew.unanswered().map(|number| format!("{number:?}")).collect();
    let without_answer = |one: &String| one == "Stuck" || one == "Breaks";
    assert!(
        open.contains(&"Stuck".to_owned()) && open.iter().all(without_answer),
        "{open:?}"
    );
}

#[test]
fn when_all_its_children_are_stuck_the_rest_has_no_answer() {
    let mut crew = crew(2);
    for number in [Number::Stuck, Number::Stuck, Number::Is(1)] {
        crew.ask(number);
    }
    assert!(crew.answer(Instant::now()).is_none());
    assert_eq!(crew.unanswered().count(), 3);
}

#[test]
fn root_that_may_not_read_others_stays_itself_to_read_its_own() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let reader = Confinement {
        capabilities: Capabilities::SYS_PTRACE,
        ..PLAIN
    };
    // Capabilities belong to a thread, and so this one gives them up and no other.
    let of_thread = std::thread::spawn(move || {
        Capabilities::DAC_READ_SEARCH.keep_only().unwrap();
        let mut child: Detached<Do, Result<String, String>> =
            Detached::start(&reader, || |what, _| act(what).into()).unwrap();
        ["Uid:", "CapPrm:"].map(|field| ask(&mut child, Do::Status(field.into())).unwrap())
    });
    let [ids, capabilities] = of_thread.join().unwrap();
    assert_eq!(ids, "0\t0\t0\t0");
    assert_eq!(capabilities, "0000000000000004");
}
