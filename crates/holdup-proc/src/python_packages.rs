//! Packages of Python that an installer has put into a folder.
//!
//! The problem: `pip install --target DIR` puts packages beside the program or anywhere else, and no name on their path says that they are not
//! its own. The choice: installers write what they have put there into `NAME-VERSION.dist-info/RECORD`
//! ([the packaging specification](https://packaging.python.org/en/latest/specifications/recording-installed-packages/)), a line a file.
//!
//! In: a process, and a folder as it has it. Out: what lies there by those records. It reads files of the process's own, so only a child that can
//! be left behind asks ([`crate::blocking`]); of a file system that may block for as long as another machine likes nothing is read.

use crate::root::Root;
use crate::{mountinfo, of_process};
use holdup_knowledge::file_systems;
use std::path::Path;

/// Names of a folder that are looked at, and packages whose records are read.
const NAMES_MAX: usize = 4096;
const PACKAGES_MAX: usize = 256;

/// Modules and folders of modules that a package may have at its top.
const TOPS_MAX: usize = 64;

/// A folder or a module that an installer has put into a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Its name in the folder: `httpx`, `six.py`. Hostile text.
    pub top: String,
    /// The package that it is part of. Hostile text.
    pub package: String,
}

/// What installers have put into a folder of a process.
#[must_use]
pub fn in_folder(root: &Root, pid: u32, folder: &Path) -> Vec<Installed> {
    if may_block(root, pid, folder) {
        return Vec::new();
    }
    let names = of_process::names(root, pid, folder, NAMES_MAX).unwrap_or_default();
    let records = names.iter().filter(|name| name.ends_with(".dist-info"));
    let mut found = Vec::new();
    for name in records.take(PACKAGES_MAX) {
        let Some(record) = of_process::text(root, pid, &folder.join(name).join("RECORD")) else {
            continue;
        };
        let package = name.split('-').next().unwrap_or(name);
        let tops = tops(&record).into_iter().map(|top| Installed {
            top,
            package: package.to_owned(),
        });
        found.extend(tops);
    }
    found
}

/// Whether any file system on the way may block for as long as it likes. A table that cannot be read says nothing, and then nothing is read.
fn may_block(root: &Root, pid: u32, folder: &Path) -> bool {
    let lines = mountinfo::of_process(root, pid, &mut Vec::new());
    let mounts: Vec<_> = lines.iter().map(mountinfo::Line::known).collect();
    let blocking = file_systems::blocking(&mounts);
    let mut on_the_way = lines
        .iter()
        .zip(blocking)
        .filter(|(line, _)| folder.starts_with(&line.target));
    lines.is_empty() || on_the_way.any(|(_, blocks)| blocks)
}

/// The first part of each path of a record: `httpx/_client.py,sha256=…,65713`.
fn tops(record: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in record.lines() {
        let path = line
            .trim_start_matches('"')
            .split([',', '"'])
            .next()
            .unwrap_or_default();
        let top = path.split('/').next().unwrap_or_default();
        let is_code = !top.is_empty() && top != ".." && top != "__pycache__" && !top.ends_with(".dist-info");
        if is_code && !found.iter().any(|known| known == top) {
            found.push(top.to_owned());
        }
        if found.len() >= TOPS_MAX {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Installed, in_folder, tops};
    use crate::root::Root;

    #[test]
    fn what_an_installer_put_into_a_folder_is_told_from_what_lies_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("billing/run.py", "");
        write(
            "httpx-0.27.0.dist-info/RECORD",
            "../../bin/httpx,sha256=a,1\nhttpx-0.27.0.dist-info/METADATA,sha256=b,2\nhttpx/__init__.py,sha256=c,3\nhttpx/_api.py,,\n",
        );
        write(
            "PyYAML-6.0.dist-info/RECORD",
            "_yaml/__init__.py,sha256=d,4\nyaml/__init__.py,,\n",
        );
        write("half-1.dist-info/METADATA", "Name: half");
        let mut found = in_folder(&Root::system(), std::process::id(), folder.path());
        found.sort_by(|one, other| one.top.cmp(&other.top));
        let one = |top: &str, package: &str| Installed {
            top: top.to_owned(),
            package: package.to_owned(),
        };
        assert_eq!(
            found,
            [
                one("_yaml", "PyYAML"),
                one("httpx", "httpx"),
                one("yaml", "PyYAML")
            ]
        );
        assert_eq!(
            in_folder(
                &Root::system(),
                std::process::id(),
                &folder.path().join("billing")
            ),
            []
        );
    }

    #[test]
    fn modules_without_a_folder_and_quoted_paths_are_told() {
        assert_eq!(
            tops("six.py,sha256=a,1\n__pycache__/six.cpython-311.pyc,,\n\"odd,name/a.py\",,\n"),
            ["six.py", "odd"]
        );
        assert_eq!(tops(""), Vec::<String>::new());
    }
}
