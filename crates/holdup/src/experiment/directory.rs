//! A look at `--memory DIR`: what is in it, what a run changed of it, and those files brought into memory.
//!
//! In: a directory that the person named. Out: [`Directory`] for the checks; [`Files`], a list of what was there with the kernel's marks
//! of change; and, in a room, files copied up. Symbolic links are never followed, and the walk has a limit.

use super::checks::Directory;
use super::room::Room;
use anyhow::Context;
use holdup_proc::{Root, mountinfo};
use nix::unistd::{getegid, geteuid};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files and folders that are looked at: some seconds' worth.
const MOST: u64 = 200_000;

/// Of the memory that is available: what may be taken. The rest is for CMD and for everybody else.
const PART_OF_MEMORY: u64 = 2;

/// Files below a directory, by their path below it, with what changes when they are written to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Files(BTreeMap<PathBuf, Mark>);

/// Which file, how long, and when it was last changed in any way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

/// Looks at a directory.
///
/// # Errors
/// When it is none, or can't be read.
pub(crate) fn look(path: &Path) -> anyhow::Result<Directory> {
    let path = fs::canonicalize(path).with_context(|| format!("cannot find the directory {path:?}"))?;
    let root = Root::system();
    let mounts = mountinfo::read(&root, &mut Vec::new());
    let targets = mounts.iter().map(|mount| (PathBuf::from(&mount.target), mount));
    let on = targets
        .clone()
        .filter(|(target, _)| path.starts_with(target))
        .max_by_key(|(target, _)| target.components().count());
    let mut targets = targets.map(|(target, _)| target);
    let below = targets.find(|target| *target != path && target.starts_with(&path));
    let mut directory = Directory {
        file_system: on.map(|(_, mount)| mount.file_system.clone()).unwrap_or_default(),
        mounted_below: below,
        memory: available(&root) / PART_OF_MEMORY,
        served: served(&root, &path),
        path,
        ..Directory::default()
    };
    if !super::checks::is_local(&directory) {
        return Ok(directory);
    }
    anyhow::ensure!(directory.path.is_dir(), "{:?} is no directory", directory.path);
    // Whoever is not root is in a user namespace that knows him and his first group, and nobody else.
    let own = (geteuid().as_raw(), getegid().as_raw());
    let whole = walk(&directory.path.clone(), |path, about| {
        directory.files += 1;
        directory.bytes += about.len();
        if (about.uid(), about.gid()) != own && directory.anothers.is_none() {
            directory.anothers = Some(path.to_owned());
        }
    })?;
    directory.too_many = !whole;
    Ok(directory)
}

impl Files {
    /// What is there now.
    ///
    /// # Errors
    /// When the directory can't be read.
    pub(crate) fn of(directory: &Path) -> anyhow::Result<Files> {
        let mut files = BTreeMap::new();
        walk(directory, |path, about| {
            if about.is_file()
                && let Ok(path) = path.strip_prefix(directory)
            {
                let mark = Mark {
                    inode: about.ino(),
                    bytes: about.len(),
                    changed: (about.ctime(), about.ctime_nsec()),
                };
                files.insert(path.to_owned(), mark);
            }
        })?;
        Ok(Files(files))
    }

    /// Files that were there before and were changed since, and their bytes.
    pub(crate) fn written_since(&self, now: &Files) -> (Vec<PathBuf>, u64) {
        let written = self.0.iter().filter_map(|(path, before)| {
            let after = now.0.get(path)?;
            (before != after && before.inode == after.inode).then_some((path.clone(), after.bytes))
        });
        let (paths, bytes): (Vec<PathBuf>, Vec<u64>) = written.unzip();
        (paths, bytes.iter().sum())
    }
}

/// Has these files copied into the memory of the room, as the first write would: with owner and mode. Those that are not there
/// any more need none.
///
/// # Errors
/// When the directory can't be opened there.
pub(crate) fn copy_up(room: &Room, directory: &Path, files: &[PathBuf]) -> anyhow::Result<()> {
    let inside = room.inside(directory);
    let directory = File::open(&inside).with_context(|| format!("cannot open {directory:?} in memory"))?;
    let how = OpenHow {
        flags: u64::from((libc::O_WRONLY | libc::O_CLOEXEC | libc::O_NONBLOCK).cast_unsigned()),
        mode: 0,
        resolve: libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS,
    };
    for file in files {
        let Ok(path) = CString::new(file.as_os_str().as_bytes()) else {
            continue;
        };
        // SAFETY: a descriptor, a NUL-terminated path, and a struct of the length that is said; what is opened is closed.
        unsafe {
            let opened = libc::syscall(
                libc::SYS_openat2,
                directory.as_raw_fd(),
                path.as_ptr(),
                &raw const how,
                size_of::<OpenHow>(),
            );
            if let Ok(opened @ 0..) = i32::try_from(opened) {
                libc::close(opened);
            }
        }
    }
    Ok(())
}

/// linux/openat2.h.
#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

/// Everything below a directory, folders too; whether that was all.
fn walk(directory: &Path, mut each: impl FnMut(&Path, &fs::Metadata)) -> anyhow::Result<bool> {
    let mut folders = vec![directory.to_owned()];
    let mut met = 0;
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            // A folder that went away meanwhile.
            Err(_) if folder != directory => continue,
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read the directory {directory:?}"));
            }
        };
        for entry in entries.flatten() {
            met += 1;
            if met > MOST {
                return Ok(false);
            }
            let Ok(about) = entry.metadata() else { continue };
            each(&entry.path(), &about);
            if about.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Ok(true)
}

/// Bytes of memory that can be had without swapping, by the kernel's estimate.
fn available(root: &Root) -> u64 {
    let text = fs::read_to_string(root.proc.join("meminfo")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib: Option<u64> = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    kib.unwrap_or(0) * 1024
}

/// A socket below the directory that somebody has bound and still has.
fn served(root: &Root, directory: &Path) -> Option<PathBuf> {
    let text = fs::read(root.proc.join("net/unix")).ok()?;
    let lines = text.split(|byte| *byte == b'\n').skip(1);
    let paths = lines.filter_map(|line| {
        let at = line.iter().position(|byte| *byte == b'/')?;
        Some(PathBuf::from(std::ffi::OsStr::from_bytes(&line[at..])))
    });
    let mut paths = paths.filter(|path| path.starts_with(directory));
    paths.find(|path| fs::symlink_metadata(path).is_ok())
}

#[cfg(test)]
mod tests {
    use super::{Files, look};
    use std::os::unix::net::UnixListener;

    #[test]
    fn what_a_run_writes_to_is_told_from_what_it_makes_replaces_or_reads() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["written", "read", "replaced", "removed"] {
            std::fs::write(at(name), name).unwrap();
        }
        let before = Files::of(directory.path()).unwrap();
        std::fs::write(at("written"), "something longer").unwrap();
        std::fs::read(at("read")).unwrap();
        std::fs::write(at("new"), "another").unwrap();
        std::fs::rename(at("new"), at("replaced")).unwrap();
        std::fs::remove_file(at("removed")).unwrap();
        std::fs::write(at("made"), "made").unwrap();
        let after = Files::of(directory.path()).unwrap();
        assert_eq!(before.written_since(&after), (vec!["written".into()], 16));
    }

    #[test]
    fn a_socket_counts_only_while_somebody_has_it() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let sight = look(directory.path()).unwrap();
        assert_eq!(sight.served, Some(socket));
        assert_eq!(sight.files, 1);
        drop(listener);
        assert_eq!(look(directory.path()).unwrap().served, None);
    }
}
