//! A look at `--memory DIR`: what is in it, what a run changed of it, and those files brought into memory.
//!
//! In: a directory that the person named. Out: [`Directory`] for the checks; [`Files`], a list of what was there with the kernel's marks
//! of change; and, in a room, files copied up. Symbolic links are never followed, and the walk has a limit.
//!
//! The directory is often another user's, who can exchange it and everything around it at any moment. So its path is resolved once, and
//! from then on it and what is in it is reached below the descriptor that this gave.

use super::checks::Directory;
use anyhow::Context;
use holdup_files::{Guard, Missing};
use holdup_knowledge::file_systems;
use holdup_proc::mountinfo::Line;
use holdup_proc::{Root, mountinfo};
use holdup_subject::room::Room;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{FileStat, SFlag, fstat};
use nix::unistd::{getegid, geteuid};
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files and folders that are looked at: some seconds' worth.
const MAX_FILES: u64 = 200_000;

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
    let found = holdup_files::folder(path, Guard::Anybody, Missing::Refuse);
    let found = found.with_context(|| format!("cannot find the directory {path:?}"))?;
    let (path, held) = (found.path, Arc::new(found.descriptor));
    let root = Root::system();
    let mounts = mountinfo::read(&root, &mut Vec::new());
    let on = mount_of(&held);
    let table: Vec<file_systems::Mount<'_>> = mounts.iter().map(Line::known).collect();
    let mut known = mounts.iter().zip(file_systems::blocking(&table));
    let mounted = known.find(|(mount, _)| Some(mount.number) == on);
    let mut targets = mounts.iter().map(|mount| PathBuf::from(&mount.target));
    let below = targets.find(|target| *target != path && target.starts_with(&path));
    let mut directory = Directory {
        file_system: mounted
            .map(|(mount, _)| mount.file_system.clone())
            .unwrap_or_default(),
        can_block: mounted.is_some_and(|(_, blocks)| blocks),
        mounted_below: below,
        memory: available(&root) / PART_OF_MEMORY,
        path,
        ..Directory::default()
    };
    if directory.can_block {
        return Ok(directory);
    }
    directory.served = served(&root, &directory.path, held.as_fd());
    // Whoever is not root is in a user namespace that knows him and his first group, and nobody else.
    let own = (geteuid().as_raw(), getegid().as_raw());
    let whole = walk(held.as_fd(), |path, about| {
        directory.files += 1;
        directory.bytes += about.st_size.cast_unsigned();
        if (about.st_uid, about.st_gid) != own && directory.anothers.is_none() {
            directory.anothers = Some(directory.path.join(path));
        }
    });
    let whole = whole.with_context(|| format!("cannot read the directory {:?}", directory.path))?;
    directory.too_many = !whole;
    directory.held = Some(held);
    Ok(directory)
}

/// The kernel's number of the mount that something is on; a path could be another's by now.
fn mount_of(held: &OwnedFd) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", held.as_raw_fd())).ok()?;
    let number = text.lines().find_map(|line| line.strip_prefix("mnt_id:"))?;
    number.trim().parse().ok()
}

impl Files {
    /// What is there now.
    ///
    /// # Errors
    /// When the directory can't be read.
    pub(crate) fn of(directory: BorrowedFd<'_>) -> anyhow::Result<Files> {
        let mut files = BTreeMap::new();
        let whole = walk(directory, |path, about| {
            if kind(about) == SFlag::S_IFREG {
                let mark = Mark {
                    inode: about.st_ino,
                    bytes: about.st_size.cast_unsigned(),
                    changed: (about.st_ctime, about.st_ctime_nsec),
                };
                files.insert(path.to_owned(), mark);
            }
        });
        whole.context("cannot read the directory of --memory")?;
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
pub(crate) fn copy_up(room: &Room, files: &[PathBuf]) {
    let Some(memory) = room.memory() else { return };
    let how = below().flags(OFlag::O_WRONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY);
    for file in files {
        drop(openat2(memory, file, how));
    }
}

/// How something below a directory is opened: there, by no link, and on its file system.
fn below() -> OpenHow {
    let resolve =
        ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_XDEV;
    OpenHow::new().resolve(resolve)
}

fn kind(about: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(about.st_mode & libc::S_IFMT)
}

/// Everything below a directory, folders too, by path below it; whether that was all.
fn walk(directory: BorrowedFd<'_>, mut each: impl FnMut(&Path, &FileStat)) -> nix::Result<bool> {
    let mut folders = vec![PathBuf::from(".")];
    let mut met = 0;
    while let Some(folder) = folders.pop() {
        let top = folder == Path::new(".");
        let how = below().flags(OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC);
        let opened = match openat2(directory, &folder, how) {
            Ok(opened) => opened,
            Err(errno) if top => return Err(errno),
            // A folder that went away meanwhile, or is something else now.
            Err(_) => continue,
        };
        let Ok(mut entries) = opened
            .try_clone()
            .map_err(|_| Errno::EMFILE)
            .and_then(Dir::from_fd)
        else {
            continue;
        };
        for entry in entries.iter().flatten() {
            let name = Path::new(std::ffi::OsStr::from_bytes(entry.file_name().to_bytes()));
            if name == Path::new(".") || name == Path::new("..") {
                continue;
            }
            met += 1;
            if met > MAX_FILES {
                return Ok(false);
            }
            let Some(about) = about(&opened, name) else {
                continue;
            };
            let path = if top { name.to_owned() } else { folder.join(name) };
            each(&path, &about);
            if kind(&about) == SFlag::S_IFDIR {
                folders.push(path);
            }
        }
    }
    Ok(true)
}

/// What is in a folder under this name; a link is reported of and not followed, and what is mounted there is not asked: it may never answer.
fn about(folder: &OwnedFd, name: &Path) -> Option<FileStat> {
    let resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_XDEV;
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC)
        .resolve(resolve);
    fstat(openat2(folder, name, how).ok()?).ok()
}

/// Bytes of memory that can be had without swapping, by the kernel's estimate.
fn available(root: &Root) -> u64 {
    let text = fs::read_to_string(root.proc.join("meminfo")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib: Option<u64> = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    kib.unwrap_or(0) * 1024
}

/// A socket below the directory that somebody has bound and still has. Its name is whatever a program gave the kernel.
fn served(root: &Root, path: &Path, directory: BorrowedFd<'_>) -> Option<PathBuf> {
    let text = fs::read(root.proc.join("net/unix")).ok()?;
    let lines = text.split(|byte| *byte == b'\n').skip(1);
    let paths = lines.filter_map(|line| {
        let at = line.iter().position(|byte| *byte == b'/')?;
        Some(PathBuf::from(std::ffi::OsStr::from_bytes(&line[at..])))
    });
    let how = below().flags(OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC);
    let is_there = |socket: &PathBuf| {
        let inside = socket.strip_prefix(path);
        inside.is_ok_and(|inside| openat2(directory, inside, how).is_ok())
    };
    paths.into_iter().find(is_there)
}

#[cfg(test)]
mod tests {
    use super::{Files, look};
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixListener;

    #[test]
    fn what_a_run_writes_to_is_told_from_what_it_makes_replaces_or_reads() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["written", "read", "replaced", "removed"] {
            std::fs::write(at(name), name).unwrap();
        }
        let held = File::open(directory.path()).unwrap();
        let before = Files::of(held.as_fd()).unwrap();
        std::fs::write(at("written"), "something longer").unwrap();
        std::fs::read(at("read")).unwrap();
        std::fs::write(at("new"), "another").unwrap();
        std::fs::rename(at("new"), at("replaced")).unwrap();
        std::fs::remove_file(at("removed")).unwrap();
        std::fs::write(at("made"), "made").unwrap();
        let after = Files::of(held.as_fd()).unwrap();
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
