//! Who may start threads in the programs that must end.
//!
//! A thread that is stuck in the kernel keeps its process from ending, whatever signal it gets. So what may block for ever is read by a
//! child process (`holdup_detached`, `holdup_proc::blocking`), and a new thread needs a reason here.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Crates whose code runs in such a process.
const CRATES: &[&str] = &[
    "holdup",
    "holdup-collect",
    "holdup-jvm",
    "holdup-proc",
    "holdup-subject",
    "holdup-symbols",
];

/// What starts a thread. `thread::scope` by itself does not.
const STARTS: &[&str] = &["thread::spawn", "thread::Builder", ".spawn_scoped("];

/// Files that may, and why.
const MAY: &[(&str, &str)] = &[
    (
        "holdup-proc/src/blocking/reader.rs",
        "where Yama lets only ancestors read, no child of holdup's can; the target is of the same user there",
    ),
    (
        "holdup-proc/src/sampling/since.rs",
        "looks at the clock of its own CPU: it waits for nothing but that CPU",
    ),
    (
        "holdup-proc/src/sampling/interrupted.rs",
        "the same; it ends by itself",
    ),
    (
        "holdup-symbols/src/namer.rs",
        "runs in a child that can be abandoned, and needs a large stack",
    ),
    (
        "holdup/src/experiment/resolve.rs",
        "waits for the C library's resolver: sockets, which a signal ends, and this machine's own /etc",
    ),
    (
        "holdup/src/experiment/complaint.rs",
        "reads a pipe of holdup's own: a signal ends that",
    ),
    (
        "holdup/src/commands/mcp/child.rs",
        "reads pipes of a process of holdup's own and waits for its end: a signal ends both, and the server does not wait for it",
    ),
    (
        "holdup/src/commands/mcp/server.rs",
        "waits for that thread with a deadline, and reads only a report that holdup wrote",
    ),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The code of a file that is no test.
fn code(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().take_while(|line| line.trim() != "#[cfg(test)]");
    lines.filter(|line| !line.trim_start().starts_with("//"))
}

#[test]
fn a_thread_is_started_only_where_it_cannot_be_stuck() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .join("crates");
    let mut starting = BTreeSet::new();
    for name in CRATES {
        let mut files = Vec::new();
        sources(&crates.join(name).join("src"), &mut files);
        for file in files {
            let is_test = file.components().any(|part| part.as_os_str() == "tests")
                || file.file_stem().is_some_and(|stem| stem == "tests");
            let text = std::fs::read_to_string(&file).unwrap();
            let starts = code(&text).any(|line| STARTS.iter().any(|word| line.contains(word)));
            if starts && !is_test {
                let file = file.strip_prefix(&crates).unwrap();
                starting.insert(file.to_str().unwrap().to_owned());
            }
        }
    }
    let may: BTreeSet<String> = MAY.iter().map(|(file, _)| (*file).to_owned()).collect();
    let new: Vec<&String> = starting.difference(&may).collect();
    assert!(
        new.is_empty(),
        "these start threads: {new:?}. A thread that is stuck keeps holdup from ending: read in a child process \
         (holdup_proc::blocking), or give the reason in xtask/tests/threads.rs"
    );
    let old: Vec<&String> = may.difference(&starting).collect();
    assert!(
        old.is_empty(),
        "these start no threads any more, so take them off the list: {old:?}"
    );
}
