//! Names of code that a compiler wrote at run time, as the program itself tells them.
//!
//! Compilers that write code into memory (V8, the JVM with an agent, LuaJIT) can be told to list it in
//! `/tmp/perf-PID.map`: a line for each function with address, size and name. In comes a process, out comes
//! its open list; at the end of the run, in comes the list and the addresses that stacks went through, out come
//! their names.
//!
//! Anybody may put a file there, and the process may mount what it likes. So the list counts only if it is a
//! regular file with one name, not a link, that belongs to the process's effective user or to root, that nobody else may
//! write to, on a file system that cannot block. The path is walked below the process's own root, without following links, a step at a time:
//! which file system a step has reached is asked of `/proc/self/fdinfo`, which does not touch it.

use crate::mounts::Mounts;
use crate::open::{Opened, again, place};
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// So much of the end of a list is read, in bytes; that of a large Java server has 20 MB.
const LIST_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Longest line that is understood, in bytes. JavaScript names carry the path of their file.
const LINE_BYTES_MAX: usize = 4096;

/// So much is read at a time, in bytes.
const CHUNK_BYTES: u64 = 256 * 1024;

/// The list of process `pid`, open; `proc` is where the proc file system is.
pub(crate) fn open(proc: &Path, pid: u32) -> Option<Opened> {
    let process = proc.join(pid.to_string());
    let status = fs::read_to_string(process.join("status")).ok()?;
    let (user, own_pid) = identity(&status)?;
    let texts = [process.join("mountinfo"), proc.join("self/mountinfo")]
        .map(|path| fs::read(path).unwrap_or_default());
    let mounts = texts.map(|text| Mounts::parse(&String::from_utf8_lossy(&text)));
    let local = |place: &File| {
        let mount = mount_of(place)?;
        let remote = mounts.iter().find_map(|mounts| mounts.remote(mount))?;
        (!remote).then_some(())
    };
    let root = place(&process.join("root"), OFlag::O_DIRECTORY.bits())?;
    local(&root)?;
    let folder = step(&root, "tmp", OFlag::O_DIRECTORY)?;
    local(&folder)?;
    let name = format!("perf-{own_pid}.map");
    let list = step(&folder, &name, OFlag::empty())?;
    // Something else may be mounted over the list itself.
    if mount_of(&list)? != mount_of(&folder)? {
        return None;
    }
    let file = again(&list, |list| {
        list.metadata().is_ok_and(|found| trusted(&found, user))
    })?;
    Some(Opened { place: list, file })
}

/// Who else may write to a file, as bits of its mode: its group, and everybody.
const OTHERS_WRITE: u32 = 0o022;

/// Whether a list can only have been written by the process's user, or by root, who may list for it.
fn trusted(found: &fs::Metadata, user: u32) -> bool {
    let owned = found.uid() == user || found.uid() == 0;
    owned && found.nlink() == 1 && found.mode() & OTHERS_WRITE == 0
}

/// What is at `name`, one name and no path, in a folder, without following a link. Not by `openat2`: the filter of the process that does
/// this cannot see that call's flags, and refuses it.
fn step(folder: &File, name: &str, flags: OFlag) -> Option<File> {
    let place = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    openat(folder.as_fd(), name, place | flags, Mode::empty())
        .ok()
        .map(File::from)
}

/// The number of the mount that a descriptor is on, without touching its file system.
fn mount_of(place: &File) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", place.as_raw_fd())).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("mnt_id:"))?;
    line.trim().parse().ok()
}

/// The effective user, and the process id in the process's own pid namespace, from the text of `status`.
fn identity(status: &str) -> Option<(u32, u32)> {
    let fields = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.split_whitespace())
    };
    let user = fields("Uid:")?.nth(1)?.parse().ok()?;
    let pid = fields("NSpid:")?.next_back()?.parse().ok()?;
    Some((user, pid))
}

/// The names of those of the wanted addresses that a list covers, with the addresses of their functions. A
/// line further down is newer: memory is used again for other code. So the list is read from its end, each address gets
/// the first name that covers it, and reading stops when all have one: neither lines nor addresses are looked at twice.
pub(crate) fn names(list: &File, mut wanted: BTreeSet<u64>) -> HashMap<u64, (String, u64)> {
    let mut found = HashMap::new();
    let mut lines = LinesFromEnd::of(list);
    while !wanted.is_empty() {
        let Some(line) = lines.next_line() else { break };
        let Some((start, end, name)) = function(line) else {
            continue;
        };
        if wanted.range(start..end).next().is_none() {
            continue;
        }
        let name = String::from_utf8_lossy(name);
        while let Some(&address) = wanted.range(start..end).next() {
            wanted.remove(&address);
            found.insert(address, (name.clone().into_owned(), start));
        }
    }
    found
}

/// The lines of a file, the last one first. Of a line that is too long there is only its beginning.
struct LinesFromEnd<'a> {
    file: &'a File,
    /// Where the bytes begin in the file that have been read so far.
    read_from: u64,
    /// Nothing before this is read.
    stop: u64,
    /// Bytes of which no line has been made: the end of them is the end of the next line.
    bytes: Vec<u8>,
    /// How many of them have been searched for the end of a line, from their end.
    searched: usize,
    line: Vec<u8>,
}

impl<'a> LinesFromEnd<'a> {
    fn of(file: &'a File) -> Self {
        let length = file.metadata().map_or(0, |found| found.len());
        Self {
            file,
            read_from: length,
            stop: length.saturating_sub(LIST_BYTES_MAX),
            bytes: Vec::new(),
            searched: 0,
            line: Vec::new(),
        }
    }

    fn next_line(&mut self) -> Option<&[u8]> {
        loop {
            let unsearched = &self.bytes[..self.bytes.len() - self.searched];
            if let Some(end_before) = unsearched.iter().rposition(|&byte| byte == b'\n') {
                self.line.clear();
                self.line.extend_from_slice(&self.bytes[end_before + 1..]);
                self.bytes.truncate(end_before);
                self.searched = 0;
                self.line.truncate(LINE_BYTES_MAX);
                return Some(&self.line);
            }
            // Of a line whose beginning is still to come more than this is never needed.
            self.bytes.truncate(LINE_BYTES_MAX);
            self.searched = self.bytes.len();
            if !self.read_more() {
                // What is left is the first line, if it is there whole.
                let first = self.stop == 0 && self.searched > 0;
                self.line = std::mem::take(&mut self.bytes);
                self.searched = 0;
                return first.then_some(&*self.line);
            }
        }
    }

    /// Puts some more of the file before the bytes that there are; false at its beginning, or when it can't be read.
    fn read_more(&mut self) -> bool {
        let size = (self.read_from - self.stop).min(CHUNK_BYTES);
        let Ok(count) = usize::try_from(size) else {
            return false;
        };
        let mut chunk = vec![0; count];
        if count == 0
            || self
                .file
                .read_exact_at(&mut chunk, self.read_from - size)
                .is_err()
        {
            return false;
        }
        self.read_from -= size;
        chunk.append(&mut self.bytes);
        self.bytes = chunk;
        true
    }
}

/// `START SIZE NAME`, the numbers hexadecimal.
fn function(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let mut fields = line.splitn(3, |&byte| byte == b' ');
    let mut number = || {
        let digits = std::str::from_utf8(fields.next()?).ok()?;
        u64::from_str_radix(digits.strip_prefix("0x").unwrap_or(digits), 16).ok()
    };
    let start = number()?;
    let end = start.checked_add(number()?)?;
    let name = fields.next()?;
    (start < end && !name.is_empty()).then_some((start, end, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;
    use nix::unistd::{getuid, mkfifo};
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use tempfile::TempDir;

    /// A proc file system made of files, in which process 42, which calls itself 7, has a root of its own.
    struct Stage(TempDir);

    impl Stage {
        fn new(user: u32, kind: &str) -> Self {
            let directory = TempDir::new().unwrap();
            let process = directory.path().join("42");
            fs::create_dir_all(process.join("root/tmp")).unwrap();
            fs::create_dir_all(directory.path().join("self")).unwrap();
            let status = format!("Name:\tx\nUid:\t99\t{user}\t99\t99\nNSpid:\t42\t7\n");
            fs::write(process.join("status"), status).unwrap();
            let mount = mount_of(&File::open(directory.path()).unwrap()).unwrap();
            let line = format!("{mount} 1 8:1 / / rw - {kind} x rw\n");
            fs::write(process.join("mountinfo"), line).unwrap();
            Self(directory)
        }

        fn list(&self) -> std::path::PathBuf {
            self.0.path().join("42/root/tmp/perf-7.map")
        }

        fn opens(&self) -> bool {
            open(self.0.path(), 42).is_some()
        }
    }

    fn us() -> u32 {
        getuid().as_raw()
    }

    #[test]
    fn the_processs_own_list_is_opened() {
        let stage = Stage::new(us(), "ext4");
        assert!(!stage.opens());
        fs::write(stage.list(), "").unwrap();
        assert!(stage.opens());
    }

    #[test]
    fn another_users_list_is_not_but_roots_is() {
        let stage = Stage::new(us() + 1, "ext4");
        fs::write(stage.list(), "").unwrap();
        assert_eq!(stage.opens(), us() == 0);
        if us() == 0 {
            std::os::unix::fs::chown(stage.list(), Some(77), None).unwrap();
            assert!(!stage.opens());
        }
    }

    #[test]
    fn one_that_others_may_write_to_is_not() {
        for mode in [0o620, 0o602, 0o666] {
            let stage = Stage::new(us(), "ext4");
            fs::write(stage.list(), "").unwrap();
            fs::set_permissions(stage.list(), fs::Permissions::from_mode(mode)).unwrap();
            assert!(!stage.opens(), "{mode:o}");
        }
    }

    #[test]
    fn a_list_on_a_file_system_that_can_block_or_is_not_known_is_not() {
        for kind in ["fuse.x", "nfs4"] {
            let stage = Stage::new(us(), kind);
            fs::write(stage.list(), "").unwrap();
            assert!(!stage.opens(), "{kind}");
        }
        let stage = Stage::new(us(), "ext4");
        fs::write(stage.list(), "").unwrap();
        fs::write(stage.0.path().join("42/mountinfo"), "").unwrap();
        assert!(!stage.opens());
    }

    #[test]
    fn links_and_what_is_no_regular_file_are_not() {
        let stage = Stage::new(us(), "ext4");
        let elsewhere = stage.0.path().join("elsewhere");
        fs::write(&elsewhere, "").unwrap();
        symlink(&elsewhere, stage.list()).unwrap();
        assert!(!stage.opens());
        fs::remove_file(stage.list()).unwrap();
        fs::hard_link(&elsewhere, stage.list()).unwrap();
        assert!(!stage.opens());
        fs::remove_file(stage.list()).unwrap();
        mkfifo(&stage.list(), Mode::S_IRWXU).unwrap();
        assert!(!stage.opens());

        let stage = Stage::new(us(), "ext4");
        fs::write(stage.list(), "").unwrap();
        let (folder, real) = (
            stage.0.path().join("42/root/tmp"),
            stage.0.path().join("42/root/real"),
        );
        fs::rename(&folder, &real).unwrap();
        symlink("real", &folder).unwrap();
        assert!(!stage.opens());
    }

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn named(list: &str, addresses: &[u64]) -> Vec<Option<(String, u64)>> {
        let mut found = names(&file(list.as_bytes()), addresses.iter().copied().collect());
        addresses.iter().map(|address| found.remove(address)).collect()
    }

    #[test]
    fn functions_are_found_up_to_their_last_byte_and_the_newest_wins() {
        let list = "1000 10 JS:~f /a b.js:1:2\n0x2000 20 Lcom/x/Y;::z\n2010 8 newer\n";
        let describe = |name: &str, start| Some((name.to_owned(), start));
        assert_eq!(
            named(list, &[0xfff, 0x1000, 0x100f, 0x1010, 0x2001, 0x2010, 0x2018]),
            [
                None,
                describe("JS:~f /a b.js:1:2", 0x1000),
                describe("JS:~f /a b.js:1:2", 0x1000),
                None,
                describe("Lcom/x/Y;::z", 0x2000),
                describe("newer", 0x2010),
                describe("Lcom/x/Y;::z", 0x2000),
            ]
        );
    }

    #[test]
    fn lines_that_make_no_sense_are_left_out() {
        let long = format!("1000 10 {}\n", "x".repeat(3 * LINE_BYTES_MAX));
        let list =
            format!("\n1000\n1000 10\n1000 10 \nz 10 a\n1000 0 a\nffffffffffffffff 10 a\n{long}2000 10 last");
        let found = named(&list, &[0x1000, 0x2000, u64::MAX]);
        let cut = found[0].as_ref().unwrap();
        assert!(cut.0.len() < LINE_BYTES_MAX && cut.0.starts_with("xxx"));
        assert_eq!(found[1], Some(("last".to_owned(), 0x2000)));
        assert_eq!(found[2], None);
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_such() {
        let found = names(&file(b"10 10 \xff\xfe\n"), BTreeSet::from([0x10]));
        assert_eq!(found[&0x10].0, "\u{fffd}\u{fffd}");
    }

    #[test]
    fn lines_are_found_across_the_borders_of_what_is_read_at_a_time() {
        // Names of many lengths, so that borders fall everywhere in a line.
        let lines: Vec<String> = (0..20_000_u64)
            .map(|number| {
                format!(
                    "{:x} 10 f{number}_{}",
                    0x1000 + number * 16,
                    "x".repeat(number as usize % 97)
                )
            })
            .collect();
        let list = file(lines.join("\n").as_bytes());
        assert!(list.metadata().unwrap().len() > 4 * CHUNK_BYTES);
        let mut read = LinesFromEnd::of(&list);
        for line in lines.iter().rev() {
            assert_eq!(read.next_line().unwrap(), line.as_bytes());
        }
        assert!(read.next_line().is_none() && read.next_line().is_none());
    }

    #[test]
    fn a_list_whose_lines_cover_everything_is_read_no_further_than_needed() {
        let line = "0 7fffffffffff a\n";
        let list = file(line.repeat(16 << 20 >> 4).as_bytes());
        let wanted: BTreeSet<u64> = (0..10_000).map(|number| number * 0x1000).collect();
        let mut lines = LinesFromEnd::of(&list);
        lines.next_line();
        let after_one = lines.read_from;
        assert_eq!(names(&list, wanted.clone()).len(), wanted.len());
        assert!(after_one > 15 << 20);
    }
}
