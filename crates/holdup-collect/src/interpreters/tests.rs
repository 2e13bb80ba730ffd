//! Frames of a real Python that sleeps, through the child that reads them.

use super::{Interpreters, sightings};
use holdup_evidence::ThreadId;
use holdup_proc::{Root, clocks, maps};
use holdup_symbols::{Interpreted, Mapping, ProcessKey, UserStacks};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

const PROGRAM: &str =
    "import time\ndef pause():\n    print('ready', flush=True)\n    time.sleep(600)\npause()\n";

fn shown(frames: &[Interpreted]) -> Vec<(&str, u32)> {
    let each = frames.iter().map(|one| &one.frame);
    each.map(|frame| (frame.symbol.as_deref().unwrap(), frame.line.unwrap()))
        .collect()
}

#[test]
fn a_sleeper_is_read_unless_it_has_run_or_is_no_interpreter() {
    let mut child = Command::new("python3")
        .args(["-c", PROGRAM])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id();
    let mut said = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut said)
        .unwrap();
    assert_eq!(said, "ready\n");
    let (key, other) = (ProcessKey(1), ProcessKey(2));
    let mut stacks = UserStacks::new();
    for one in maps::executable(&Root::system(), pid).unwrap() {
        let mapping = Mapping {
            start: one.start,
            end: one.end,
            offset: one.offset,
            path: one.path,
            device: one.device,
            inode: one.inode,
        };
        stacks.map(key, pid, mapping);
    }
    let mut interpreters = Interpreters::default();
    let sleeps = [("pause", 4), ("<module>", 5)];
    // It is about to sleep.
    let mut frames = Vec::new();
    for _ in 0..100_000 {
        frames = interpreters.frames(&mut stacks, (key, pid, pid), |_| true);
        if shown(&frames) == sleeps {
            break;
        }
        std::thread::yield_now();
    }
    assert_eq!(shown(&frames), sleeps);
    let ran = interpreters.frames(&mut stacks, (key, pid, pid), |_| false);
    assert_eq!(ran, [], "it has run since");
    let own = std::process::id();
    let none = interpreters.frames(&mut stacks, (other, own, own), |_| true);
    assert_eq!(none, [], "there is no interpreter");
    let thread = ThreadId(1);
    interpreters.fork(key, ProcessKey(3), pid);
    assert!(interpreters.looks.nothing_to_do(), "no file was mapped so far");
    interpreters.mapped(key, 7, "/opt/lib/libpython3.6m.so.1.0");
    assert!(interpreters.looks.nothing_to_do());
    assert_eq!(interpreters.not_measured().count(), 1, "it is too old");
    interpreters.born(key, pid, thread);
    interpreters.mapped(key, pid, "/usr/lib/libpython3.so");
    let began = clocks::monotonic();
    let mut seen = |interpreters: &mut Interpreters, seq| {
        interpreters.look(&mut stacks, |_, inside| Some(inside));
        let wait = sightings::tests::wait(thread, seq, began, clocks::monotonic());
        interpreters.meet(&wait, None);
        let frames = interpreters.seen_in(thread, seq, seq);
        let frames = shown(&frames).into_iter().map(|(name, _)| name.to_owned());
        frames.collect::<Vec<String>>()
    };
    let mut frames = Vec::new();
    while frames.is_empty() {
        frames = seen(&mut interpreters, 1);
        std::thread::yield_now();
    }
    assert_eq!(frames, ["pause", "<module>"]);
    assert_eq!(seen(&mut interpreters, 2), [""; 0], "it was of the wait before");
    child.kill().unwrap();
    child.wait().unwrap();
    let gone = interpreters.frames(&mut stacks, (key, pid, pid), |_| true);
    assert_eq!(gone, []);
}
