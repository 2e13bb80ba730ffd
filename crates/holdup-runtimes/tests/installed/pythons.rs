//! CPythons that are installed here.

use crate::support::{Running, Sleeper, place_of};
use holdup_runtimes::python::{Interpreter, Place, SYMBOLS, version_of_file};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Interpreters in the folders where they usually are, each real file once.
pub(crate) fn pythons() -> BTreeSet<PathBuf> {
    let mut folders: Vec<PathBuf> = ["/usr/bin", "/usr/local/bin"].map(PathBuf::from).to_vec();
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    for many in [
        home.join(".pyenv/versions"),
        PathBuf::from("/opt"),
        home.join(".local/share/uv/python"),
    ] {
        let versions = std::fs::read_dir(many).into_iter().flatten().flatten();
        folders.extend(versions.map(|version| version.path().join("bin")));
    }
    let names = (8..15).flat_map(|minor| [format!("python3.{minor}"), format!("python3.{minor}t")]);
    let names: Vec<String> = names.collect();
    let files = folders
        .iter()
        .flat_map(|folder| names.iter().map(|name| folder.join(name)));
    files
        .filter_map(|file| std::fs::canonicalize(file).ok())
        .collect()
}

/// Where a process has the interpreter.
fn place(pid: u32) -> Option<Place> {
    let is_python = |name: &str| name.contains("python3");
    place_of(pid, is_python, SYMBOLS, |name, [runtime, number]| {
        Some(Place {
            runtime: runtime?,
            number,
            named: version_of_file(name),
        })
    })
}

/// The interpreter of a sleeper.
pub(crate) fn interpreter(sleeper: &Sleeper, python: &Path) -> Interpreter<Running> {
    let place = place(sleeper.pid()).unwrap_or_else(|| panic!("{}: no _PyRuntime", python.display()));
    Interpreter::find(sleeper.memory(), place).unwrap()
}

/// Checks a program in each of them.
pub(crate) fn each(name: &str, program: &str, check: impl Fn(&Path, &Path)) {
    let folder = std::env::temp_dir().join(format!("holdup-{name}-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join(format!("{name}.py"));
    std::fs::write(&file, program).unwrap();
    let all = pythons();
    assert!(!all.is_empty(), "install python3");
    for python in all {
        check(&python, &file);
        eprintln!("{}: read", python.display());
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
