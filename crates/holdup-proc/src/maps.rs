//! `/proc/PID/maps`: which files a process that runs already has mapped for execution, or shares with others.
//!
//! Reading it can take the process's lock on its address space, and wait for as long as the very stall that is being looked
//! at. So it is never read in line: only by a process that can be left behind ([`crate::blocking`]).

use crate::page;
use crate::root::Root;
use crate::sampling::file_in;
use crate::tasks;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;

/// Most that is read, bytes: some 80,000 mappings.
const MAX_BYTES: u64 = 8 << 20;

/// A mapping.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
    let mappings = of_kind(root, pid, 2, b'x')?;
    if !mappings.is_empty() {
        return Some(mappings);
    }
    // That of a main thread that has ended while others run shows nothing any more.
    let tasks = root.proc.join(pid.to_string()).join("task");
    let of_thread = |tid: u32| {
        of_file(
            File::open(tasks.join(tid.to_string()).join("maps")).ok()?,
            2,
            b'x',
        )
    };
    let mut of_others = tasks::threads(root, pid).into_iter().filter_map(of_thread);
    of_others.find(|mappings| !mappings.is_empty()).or(Some(mappings))
}

/// The same of the process that a thread belongs to, by the thread's folder below `/proc`. May block.
#[must_use]
pub fn executable_in(folder: &OwnedFd) -> Option<Vec<Mapping>> {
    of_file(file_in(folder, "maps")?, 2, b'x')
}

/// What a process shares with others that have it mapped too; `None` when it is gone, or another's. May block.
#[must_use]
pub fn shared(root: &Root, pid: u32) -> Option<Vec<Mapping>> {
    of_kind(root, pid, 3, b's')
}

/// The same of what it may write to.
#[must_use]
pub fn written(root: &Root, pid: u32) -> Option<Vec<Mapping>> {
    let path = root.proc.join(pid.to_string()).join("maps");
    let mut mappings = Vec::new();
    for line in BufReader::new(File::open(path).ok()?.take(MAX_BYTES)).split(b'\n') {
        let line = String::from_utf8_lossy(&line.ok()?).into_owned();
        let writes = line
            .split(' ')
            .nth(1)
            .is_some_and(|may| may.as_bytes().get(1) == Some(&b'w'));
        mappings.extend(mapping(&line, 3, b's').filter(|_| writes));
    }
    Some(mappings)
}

/// Where a process has what it allocates in small pieces; `None` where it has none, or is gone, or another's. May block.
#[must_use]
pub fn heap(root: &Root, pid: u32) -> Option<std::ops::Range<u64>> {
    const HEAP: &str = "[heap]";
    let mappings = of_kind(root, pid, 1, b'w')?;
    let mut pieces = mappings.iter().filter(|one| one.path == HEAP);
    let first = pieces.next()?;
    let end = pieces.next_back().unwrap_or(first).end;
    Some(first.start..end)
}

/// Memory of a process that is of no file: what it has allocated. `None` when it is gone, or another's. May block.
#[must_use]
pub fn anonymous(root: &Root, pid: u32) -> Option<Vec<std::ops::Range<u64>>> {
    let mappings = of_kind(root, pid, 0, b'r')?;
    let own = mappings
        .into_iter()
        .filter(|one| one.inode == 0 && !one.path.starts_with('['));
    Some(own.map(|one| one.start..one.end).collect())
}

/// The stack of a process's first thread, as far as it has grown; `None` when the process is gone, or another's. May block.
#[must_use]
pub fn main_stack(root: &Root, pid: u32) -> Option<std::ops::Range<u64>> {
    const STACK: &str = "[stack]";
    let mappings = of_kind(root, pid, 1, b'w')?;
    let stack = mappings.iter().find(|one| one.path == STACK)?;
    Some(stack.start..stack.end)
}

/// The only file that a process has mapped for its data: none of its code, nor what the C library maps for itself. `None` where there
/// is none, or more than one. May block.
#[must_use]
pub fn only_data(root: &Root, pid: u32) -> Option<String> {
    const OF_LIBC: [&str; 3] = ["/usr/lib/locale/", "/usr/share/locale/", "/etc/ld.so.cache"];
    let of_libc = |path: &str| {
        OF_LIBC.iter().any(|start| path.starts_with(start)) || path.ends_with("/gconv-modules.cache")
    };
    let code = executable(root, pid)?;
    let is_code = |one: &Mapping| {
        let same = |other: &Mapping| (other.device, other.inode) == (one.device, one.inode);
        code.iter().any(same)
    };
    let data = of_kind(root, pid, 2, b'-')?;
    let mut data = data
        .into_iter()
        .filter(|one| one.inode != 0 && one.path.starts_with('/') && !of_libc(&one.path) && !is_code(one));
    let first = data.next()?;
    data.all(|other| (other.device, other.inode) == (first.device, first.inode))
        .then_some(first.path)
}

/// Whether the page of an address is in memory and in the process's tables; `None` where that may not be asked. May block.
#[must_use]
pub fn is_there(root: &Root, pid: u32, address: u64) -> Option<bool> {
    use std::os::unix::fs::FileExt;
    /// Bytes of a page's entry, and its bit that says so.
    const ENTRY: u64 = 8;
    const PRESENT: u64 = 1 << 63;
    let file = File::open(root.proc.join(pid.to_string()).join("pagemap")).ok()?;
    let mut entry = [0; ENTRY as usize];
    file.read_exact_at(&mut entry, address / page::bytes() * ENTRY)
        .ok()?;
    Some(u64::from_ne_bytes(entry) & PRESENT != 0)
}

/// Those that have this letter at this place of their permissions.
fn of_kind(root: &Root, pid: u32, place: usize, letter: u8) -> Option<Vec<Mapping>> {
    of_file(
        File::open(root.proc.join(pid.to_string()).join("maps")).ok()?,
        place,
        letter,
    )
}

fn of_file(file: File, place: usize, letter: u8) -> Option<Vec<Mapping>> {
    let mut mappings = Vec::new();
    for line in BufReader::new(file.take(MAX_BYTES)).split(b'\n') {
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
    use super::{Mapping, executable, executable_in, is_there, only_data, shared};
    use crate::root::{Root, Tree};
    use crate::sampling::task::folder;

    #[test]
    fn code_is_known_when_the_main_thread_has_ended() {
        // The kernel shows nothing below the process, and all below a thread that runs.
        const CODE: &str = "2000-3000 r-xp 00001000 08:01 131 /usr/bin/x\n";
        let tree = Tree::new(&[("proc/7/maps", ""), ("proc/7/task/9/maps", CODE)]);
        let folder = folder(&tree.root, 7, 9).unwrap();
        assert_eq!(executable_in(&folder).unwrap()[0].path, "/usr/bin/x");
        assert_eq!(executable(&tree.root, 7).unwrap()[0].path, "/usr/bin/x");
    }

    #[test]
    fn the_only_file_of_data_is_found_where_there_is_one() {
        const CODE: &str = "1000-2000 r--p 00000000 08:01 131 /usr/bin/x\n2000-3000 r-xp 00001000 08:01 131 /usr/bin/x\n\
                            5000-6000 r--p 00000000 08:01 9 /usr/lib/locale/C.utf8/LC_CTYPE\n7000-8000 rw-p 00000000 00:00 0 [heap]\n";
        const TABLE: &str =
            "9000-a000 r--s 00000000 08:02 77 /data/table\na000-b000 rw-s 00001000 08:02 77 /data/table\n";
        let of = |text: String| {
            let tree = Tree::new(&[("proc/7/maps", text.as_str())]);
            only_data(&tree.root, 7)
        };
        assert_eq!(of(CODE.to_owned()), None);
        assert_eq!(of(format!("{CODE}{TABLE}")).as_deref(), Some("/data/table"));
        let other = "b000-c000 r--p 00000000 08:02 78 /data/other\n";
        assert_eq!(of(format!("{CODE}{TABLE}{other}")), None);
    }

    #[test]
    fn own_code_is_in_memory_and_what_nobody_has_is_not() {
        let own = std::process::id();
        let here = own_code_is_in_memory_and_what_nobody_has_is_not as fn() as usize as u64;
        assert_eq!(is_there(&Root::system(), own, here), Some(true));
        assert_eq!(is_there(&Root::system(), own, 0), Some(false));
    }

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
