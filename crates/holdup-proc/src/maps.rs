//! `/proc/PID/maps`: which files a process that runs already has mapped for execution, or shares with others.
//!
//! Reading it can take the process's lock on its address space, and wait for as long as the very stall that is being looked
//! at. So it is never read in line: only by threads that may be left behind (`collect/look.rs` of the command).

use crate::root::Root;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};

/// Most that is read, bytes: some 80,000 mappings.
const MOST: u64 = 8 << 20;

/// A mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// One past the last.
    pub end: u64,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Device of the file, major and minor.
    pub device: (u32, u32),
    /// Inode of the file; 0 for what is none.
    pub inode: u64,
    /// Path as the kernel prints it. Hostile text.
    pub path: String,
}

/// The executable mappings of a process; `None` when it is gone, or another's. May block.
#[must_use]
pub fn executable(root: &Root, pid: u32) -> Option<Vec<Mapping>> {
    of_kind(root, pid, 2, b'x')
}

/// What a process shares with others that have it mapped too; `None` when it is gone, or another's. May block.
#[must_use]
pub fn shared(root: &Root, pid: u32) -> Option<Vec<Mapping>> {
    of_kind(root, pid, 3, b's')
}

/// Those that have this letter at this place of their permissions.
fn of_kind(root: &Root, pid: u32, place: usize, letter: u8) -> Option<Vec<Mapping>> {
    let file = File::open(root.proc.join(pid.to_string()).join("maps")).ok()?;
    let mut mappings = Vec::new();
    for line in BufReader::new(file.take(MOST)).split(b'\n') {
        let line = line.ok()?;
        mappings.extend(mapping(&String::from_utf8_lossy(&line), place, letter));
    }
    Some(mappings)
}

/// `55d0c0a00000-55d0c0a21000 r-xp 00002000 08:01 131 /usr/bin/x`; `None` for what has other permissions.
fn mapping(line: &str, place: usize, letter: u8) -> Option<Mapping> {
    let mut rest = line;
    let mut word = || {
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = after;
        word
    };
    let (start, end) = word().split_once('-')?;
    if word().as_bytes().get(place) != Some(&letter) {
        return None;
    }
    let offset = u64::from_str_radix(word(), 16).ok()?;
    let (major, minor) = word().split_once(':')?;
    let inode = word().parse().ok()?;
    Some(Mapping {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        offset,
        device: (
            u32::from_str_radix(major, 16).ok()?,
            u32::from_str_radix(minor, 16).ok()?,
        ),
        inode,
        path: rest.trim_start_matches(' ').replace("\\012", "\n"),
    })
}

#[cfg(test)]
mod tests {
    use super::{Mapping, executable, shared};
    use crate::root::Tree;

    #[test]
    fn what_can_be_executed_is_found_with_blanks_in_its_name() {
        let tree = Tree::new(&[(
            "proc/7/maps",
            "55d0c0a00000-55d0c0a21000 r--p 00000000 08:01 131    /usr/bin/x\n\
             55d0c0a21000-55d0c0a22000 r-xp 00021000 fd:1f 131    /opt/a b (deleted)\n\
             7f0000000000-7f0000001000 r-xp 00000000 00:00 0\n\
             7f0000002000-7f000000a000 rw-s 00000000 fe:00 77    /tmp/hsperfdata_x/7\n\
             rubbish\n\
             7ffd0-7ffd1 r-xp 00000000 00:00 0                    [vdso]\n",
        )]);
        let found = executable(&tree.root, 7).unwrap();
        assert_eq!(
            found[0],
            Mapping {
                start: 0x55d0_c0a2_1000,
                end: 0x55d0_c0a2_2000,
                offset: 0x21000,
                device: (0xfd, 0x1f),
                inode: 131,
                path: "/opt/a b (deleted)".to_owned(),
            }
        );
        let paths: Vec<&str> = found.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(paths, ["/opt/a b (deleted)", "", "[vdso]"]);
        assert_eq!(executable(&tree.root, 8), None);
        let shared = shared(&tree.root, 7).unwrap();
        let paths: Vec<&str> = shared.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(paths, ["/tmp/hsperfdata_x/7"]);
    }
}
