//! CPythons that are installed here.

use holdup_runtimes::memory::PAGE;
use holdup_runtimes::python::{Place, SYMBOLS, Version};
use object::{Object, ObjectSegment, ObjectSymbol};
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

/// Where a process has the interpreter: the file that has its symbols, and where that is mapped.
pub(crate) fn place(pid: u32) -> Option<Place> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    for line in maps.lines() {
        let mut fields = line.split_whitespace();
        let (range, _, offset) = (fields.next()?, fields.next()?, fields.next()?);
        let Some(path) = fields.nth(2).filter(|path| path.starts_with('/')) else {
            continue;
        };
        let name = Path::new(path).file_name()?.to_str()?;
        if offset != "00000000" || !name.contains("python3") {
            continue;
        }
        let begin = u64::from_str_radix(range.split('-').next()?, 16).ok()?;
        let data = std::fs::read(path).ok()?;
        let file = object::File::parse(&*data).ok()?;
        let first = file.segments().map(|segment| segment.address()).min()?;
        let moved = begin - (first - first % PAGE as u64);
        let [runtime, number] = SYMBOLS.map(|wanted| {
            let mut symbols = file.dynamic_symbols();
            let found = symbols.find(|symbol| symbol.name() == Ok(wanted) && symbol.is_definition());
            found.map(|symbol| symbol.address() + moved)
        });
        if let Some(runtime) = runtime {
            return Some(Place {
                runtime,
                number,
                named: Version::of_file(name),
            });
        }
    }
    None
}
