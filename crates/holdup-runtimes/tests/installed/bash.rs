//! The Bashes that are installed here, asleep in functions of two files: function, file and line of every frame are compared with what
//! `caller` says where the script sleeps.

use crate::numbered::numbered;
use crate::support::{Sleeper, place_of};
use holdup_runtimes::bash::{Interpreter, Place, SYMBOLS, may_be_in};
use std::path::Path;
use std::process::{Command, Stdio};

/// It says a line for each call around it: the line from which it was called, the function there, and its file. A dot ends them. Then it waits
/// for a program below a loop and a branch, which ends with its input; another command with the same words stands before that.
const PROGRAM: &str = r#"#!/bin/bash
. "$LOADED"
work() {
    for each in tea; do
        by_library "$each"
    done
}
asleep() {
    [[ -n $1 ]] || cat < /dev/null
    local number=0
    while caller $number; do
        number=$((number + 1))
    done
    echo .
    if [[ -n $1 ]]; then
        cat > /dev/null
    fi
}
work
"#;

/// What the script loads.
const LOADED: &str = "\n\nby_library() {\n    asleep \"$1\"\n}\n";

/// On which line the command stands that it waits for.
const SLEEPS: u32 = 16;

/// A frame: function, file and line.
type At = (String, String, u32);

/// Reads a sleeper of this Bash; how many frames were compared. `None`: its file has no symbols.
fn reads(bash: &Path, file: &Path, loaded: &Path) -> Option<usize> {
    let mut sleeper = Sleeper::start(
        Command::new(bash)
            .arg(file)
            .env("LOADED", loaded)
            .stdin(Stdio::piped()),
    );
    let pid = sleeper.pid();
    let called: Vec<String> = sleeper.lines_to(".\n");
    let mut expected: Vec<At> = vec![("asleep".to_owned(), file.to_string_lossy().into_owned(), SLEEPS)];
    for line in &called {
        let parts: Vec<&str> = line.split_whitespace().collect();
        let [line, function, file] = parts.as_slice() else {
            panic!("{called:?}");
        };
        expected.push(((*function).to_owned(), (*file).to_owned(), line.parse().unwrap()));
    }
    assert_eq!(expected.len(), 4, "{expected:?}");
    let place = place_of(pid, may_be_in, SYMBOLS, |_, addresses| Place::of(&addresses))?;
    let mut interpreter = Interpreter::find(sleeper.memory(), place, pid).unwrap();
    let mut read = Vec::new();
    // It has said where it is, and is about to start what it waits for.
    for _ in 0..100_000 {
        let frames = interpreter.frames(pid).unwrap_or_default();
        let each = frames.iter().map(|one| &one.frame);
        let each = each.filter_map(|one| Some((one.symbol.clone()?, one.file.clone()?, one.line?)));
        read = each.collect::<Vec<At>>();
        if read == expected {
            assert!(frames.last().unwrap().entry && !frames[0].entry);
            break;
        }
        std::thread::yield_now();
    }
    assert_eq!(read, expected, "{}", bash.display());
    Some(read.len())
}

#[test]
fn sleepers_of_all_installed_versions_are_read() {
    let folder = std::env::temp_dir().join(format!("holdup-bash-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let (file, loaded) = (folder.join("asleep.sh"), folder.join("loaded.sh"));
    std::fs::write(&file, PROGRAM).unwrap();
    std::fs::write(&loaded, LOADED).unwrap();
    let all = numbered("bash").into_iter();
    let read: Vec<_> = all
        .map(|bash| (bash.clone(), reads(&bash, &file, &loaded)))
        .collect();
    std::fs::remove_dir_all(&folder).unwrap();
    for (bash, frames) in &read {
        eprintln!("{}: {frames:?} frames", bash.display());
    }
    if read.iter().all(|(_, frames)| frames.is_none()) {
        eprintln!(
            "SKIPPED: there is no bash with symbols in PATH; frames of Bash were compared with no real one"
        );
    }
}
