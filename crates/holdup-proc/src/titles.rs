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

#[cfg(test)]
mod tests {
    use super::read;
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
    }
}
