//! `/proc/PID/cmdline`: the title that a program has written over its arguments.
//!
//! Reading it waits for the process's memory map and for the page itself, which may never come: only for a child that can be abandoned
//! ([`crate::blocking`]). It holds whatever the process wrote, passwords of a command line included: who reads it keeps none of it.

use crate::root::Root;
use std::fs::File;
use std::io::Read;

/// The longest title, bytes. A name of a user and of a database have 63 each.
const TITLE_BYTES_MAX: u64 = 512;

/// The title of a process, up to its first zero.
#[must_use]
pub fn read(root: &Root, pid: u32) -> Option<String> {
    let file = File::open(root.proc.join(pid.to_string()).join("cmdline")).ok()?;
    let mut bytes = Vec::new();
    file.take(TITLE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let title = bytes.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(title).into_owned())
}

/// Most of a command line that is read, bytes, and arguments of it: a script stands among the first.
const LINE_BYTES_MAX: u64 = 8192;
const ARGUMENTS_MAX: usize = 64;

/// The first arguments of a process, the program's own name included.
#[must_use]
pub fn arguments(root: &Root, pid: u32) -> Option<Vec<String>> {
    let file = File::open(root.proc.join(pid.to_string()).join("cmdline")).ok()?;
    let mut bytes = Vec::new();
    file.take(LINE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let all = bytes.split(|byte| *byte == 0).take(ARGUMENTS_MAX);
    Some(all.map(|one| String::from_utf8_lossy(one).into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::{arguments, read};
    use crate::root::Tree;

    #[test]
    fn a_title_ends_at_its_first_zero() {
        let long = "x".repeat(5000);
        let tree = Tree::new(&[
            ("proc/7/cmdline", "postgres: bob shop [local] idle\0\0\0"),
            ("proc/8/cmdline", ""),
            ("proc/9/cmdline", &long),
        ]);
        assert_eq!(
            read(&tree.root, 7).as_deref(),
            Some("postgres: bob shop [local] idle")
        );
        assert_eq!(read(&tree.root, 8).as_deref(), Some(""));
        assert_eq!(read(&tree.root, 9).map(|title| title.len()), Some(512));
        assert_eq!(read(&tree.root, 10), None);
        assert_eq!(arguments(&tree.root, 10), None);
    }

    #[test]
    fn arguments_are_told_apart_and_bounded() {
        let many = "a\0".repeat(9000);
        let tree = Tree::new(&[
            ("proc/7/cmdline", "python3\0-u\0app.py\0"),
            ("proc/8/cmdline", &many),
        ]);
        assert_eq!(
            arguments(&tree.root, 7).unwrap()[..3],
            ["python3", "-u", "app.py"]
        );
        assert_eq!(arguments(&tree.root, 8).unwrap().len(), 64);
    }
}
