//! CPythons that are installed here, asleep three calls deep: function, file and line of every frame are compared with
//! where the program stands.

use crate::pythons::{interpreter, pythons};
use crate::support::{Running, Sleeper};
use holdup_runtimes::python::{Interpreter, PythonFrame, Version};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A thread sleeps three calls deep, below a method, a generator and a call from C (`sorted`); the main one waits for it.
const PROGRAM: &str = r#"
import sys, threading, time

class Shop:
    def checkout(self, item):
        def pay():
            sys.stdout.write("ready\n")
            sys.stdout.flush()

            time.sleep(600)
        return pay()

def prices(shop):
    yield (
        shop.checkout(
            "tea"
        )
    )

def key(_):
    return next(prices(Shop()))

def work():
    return sorted([1], key=key)

thread = threading.Thread(target=work)
thread.start()
thread.join()
"#;

/// Where the sleeping thread stands, innermost first: function without its class, and line.
const STANDS: [(&str, u32); 5] = [
    ("pay", 10),
    ("checkout", 11),
    ("prices", 15),
    ("key", 21),
    ("work", 24),
];

fn shown(frames: &[PythonFrame], file: &Path) -> Vec<(String, u32)> {
    let own = frames
        .iter()
        .filter(|one| one.frame.file.as_deref() == file.to_str());
    own.map(|one| {
        let name = one.frame.symbol.clone().unwrap();
        (
            name.rsplit('.').next().unwrap().to_owned(),
            one.frame.line.unwrap(),
        )
    })
    .collect()
}

/// Reads a thread's frames until they are as wanted, as often as takes some seconds.
fn until(
    interpreter: &mut Interpreter<Running>,
    tid: u32,
    wanted: impl Fn(&[PythonFrame]) -> bool,
) -> Vec<PythonFrame> {
    let mut last = None;
    for _ in 0..100_000 {
        match interpreter.frames(tid) {
            Ok(frames) if wanted(&frames) => return frames,
            other => last = Some(other),
        }
        std::thread::yield_now();
    }
    panic!("CPython {}: {last:?}", interpreter.version());
}

/// Reads a sleeper of this interpreter; its version.
fn reads(python: &Path, file: &Path) -> Version {
    let mut sleeper = Sleeper::start(Command::new(python).arg(file));
    let pid = sleeper.pid();
    let said = sleeper.line();
    assert_eq!(said, "ready\n", "{}", python.display());
    let mut interpreter = interpreter(&sleeper, python);
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let tids = tasks.map(|task| {
        task.unwrap()
            .file_name()
            .to_str()
            .unwrap()
            .parse::<u32>()
            .unwrap()
    });
    let other = tids.max().unwrap();
    // It has said that it is ready, and is about to sleep.
    let expected = STANDS.map(|(name, line)| (name.to_owned(), line));
    let frames = until(&mut interpreter, other, |frames| {
        shown(frames, file).first() == Some(&expected[0])
    });
    assert_eq!(shown(&frames, file), expected, "{}", python.display());
    // Behind them is the standard library, to the function in which every thread begins.
    let outermost = frames.last().unwrap();
    assert!(
        outermost.entry
            && outermost
                .frame
                .file
                .as_deref()
                .unwrap()
                .ends_with("/threading.py")
    );
    let name = outermost.frame.symbol.as_deref().unwrap();
    assert!(name.ends_with("_bootstrap"), "{name}");
    if interpreter.version().minor >= 11 {
        assert_eq!(
            frames[0].frame.symbol.as_deref(),
            Some("Shop.checkout.<locals>.pay")
        );
        // A function that C called is the outermost of its call.
        let entry = frames.iter().map(|one| one.entry).collect::<Vec<bool>>();
        assert!(!entry[0], "{frames:?}");
        assert!(
            frames
                .iter()
                .any(|one| one.entry && one.frame.symbol.as_deref() == Some("key"))
        );
    }
    // The main thread waits for the other one. It is on its way there, or there.
    let joins = [("<module>".to_owned(), 28)];
    until(&mut interpreter, pid, |frames| {
        let innermost = frames.first().and_then(|one| one.frame.file.as_deref());
        shown(frames, file) == joins && innermost.is_some_and(|file| file.ends_with("/threading.py"))
    });
    interpreter.version()
}

#[test]
fn sleepers_of_all_installed_versions_are_read() {
    let folder = std::env::temp_dir().join(format!("holdup-runtimes-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("asleep.py");
    std::fs::write(&file, PROGRAM).unwrap();
    let read: Vec<(PathBuf, Version)> = pythons()
        .into_iter()
        .map(|python| (python.clone(), reads(&python, &file)))
        .collect();
    std::fs::remove_dir_all(&folder).unwrap();
    for (python, version) in &read {
        eprintln!("{}: CPython {version}", python.display());
    }
    assert!(
        !read.is_empty(),
        "no CPython from 3.8 to 3.14 is installed: install python3"
    );
}
