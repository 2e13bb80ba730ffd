//! What a process has open: how many files of how many, and those that are deleted, whose room is free only when it closes them.
//!
//! In: a process. Out: [`Opened`], its deleted files by the links in `/proc/PID/fd`, with the bytes on disk of those that are of a local file
//! system. The links are read, never followed; a file's size is asked for only where `fdinfo` names a mount that cannot
//! block. For a process that can be left behind nevertheless: a local disk may not answer either.

use crate::mountinfo;
use crate::names;
use crate::root::{Root, text, text_if_there};
use holdup_evidence::host::{DeletedFile, ProcessLimit};
use holdup_knowledge::file_systems::is_local;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How a link says that its file has no name any more.
const MARK: &str = " (deleted)";

/// What was never a file on a disk.
const MEMORY: [&str; 6] = ["/memfd:", "/dev/shm/", "/dev/zero", "/SYSV", "/[aio]", "/i915"];

/// Descriptors of a process that are looked at; the others are counted.
const MAX_DESCRIPTORS: usize = 10_000;

/// Descriptors from which it is asked how many there may be: of a program that has fewer even a limit that somebody made low on purpose is
/// rarely used up.
const MIN_DESCRIPTORS: u64 = 16;

/// Bytes of a block, as `stat` counts them.
const BLOCK: u64 = 512;

/// Mounts of holdup's namespace on which a file may be asked for its size, by the kernel's number.
#[derive(Debug, Clone, Default)]
pub struct Askable(Vec<u64>);

impl Askable {
    /// From the mount table.
    #[must_use]
    pub fn read(root: &Root) -> Askable {
        let table = text(&root.proc.join("self/mountinfo"), &mut Vec::new()).unwrap_or_default();
        let mounts = mountinfo::read(root, &mut Vec::new());
        let numbers = table.lines().filter_map(|line| {
            let number: u64 = line.split(' ').next()?.parse().ok()?;
            let device = line.split(' ').nth(2)?;
            let mount = mounts.iter().find(|mount| mount.device.to_string() == device)?;
            is_local(&mount.file_system).then_some(number)
        });
        Askable(numbers.collect())
    }
}

/// What a process has open.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Opened {
    /// Files that have no name any more.
    pub deleted: Vec<DeletedFile>,
    /// How many descriptors it has of how many, if they are many.
    pub descriptors: Option<ProcessLimit>,
}

/// What a process has open; `None` if its descriptors can't be seen.
#[must_use]
pub fn of(root: &Root, pid: u32, askable: &Askable) -> Option<Opened> {
    let folder = root.proc.join(pid.to_string());
    let links = std::fs::read_dir(folder.join("fd")).ok()?;
    let mut files: Vec<(DeletedFile, Option<(u64, u64)>)> = Vec::new();
    let mut count = 0;
    for link in links.flatten() {
        count += 1;
        if count > MAX_DESCRIPTORS as u64 {
            continue;
        }
        let Ok(target) = std::fs::read_link(link.path()) else {
            continue;
        };
        let target = target.to_string_lossy();
        let Some(path) = target.strip_suffix(MARK).filter(|path| path.starts_with('/')) else {
            continue;
        };
        if MEMORY.iter().any(|start| path.starts_with(start)) {
            continue;
        }
        let info = folder.join("fdinfo").join(link.file_name());
        let found = is_askable(&info, askable)
            .then(|| std::fs::metadata(link.path()).ok())
            .flatten();
        // A file of this name may be there: then it is another's link that was deleted.
        if found
            .as_ref()
            .is_some_and(|found| found.nlink() > 0 || !found.is_file())
        {
            continue;
        }
        let file = found.as_ref().map(|found| (found.dev(), found.ino()));
        if file.is_some() && files.iter().any(|(_, other)| *other == file) {
            continue;
        }
        files.push((
            DeletedFile {
                path: path.to_owned(),
                process: names::comm(root, pid).unwrap_or_default(),
                pid,
                size: found.map(|found| found.blocks().saturating_mul(BLOCK)),
            },
            file,
        ));
    }
    let limit = (count >= MIN_DESCRIPTORS).then(|| most(&folder)).flatten();
    Some(Opened {
        deleted: files.into_iter().map(|(file, _)| file).collect(),
        descriptors: limit.map(|limit| ProcessLimit {
            process: names::comm(root, pid).unwrap_or_default(),
            pid,
            used: count,
            limit,
        }),
    })
}

/// How many descriptors a process may have.
fn most(folder: &Path) -> Option<u64> {
    let limits = text_if_there(&folder.join("limits"))?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

fn is_askable(info: &Path, askable: &Askable) -> bool {
    let text = text_if_there(info).unwrap_or_default();
    let number = text.lines().find_map(|line| line.strip_prefix("mnt_id:"));
    number
        .and_then(|number| number.trim().parse().ok())
        .is_some_and(|number: u64| askable.0.contains(&number))
}

#[cfg(test)]
mod tests {
    use super::{Askable, Opened, of};
    use crate::root::{Root, Tree};
    use std::io::Write;

    #[test]
    fn a_deleted_file_is_found_and_one_that_is_there_is_not() {
        let root = Root::system();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gone");
        let mut gone = std::fs::File::create(&path).unwrap();
        gone.write_all(&[1; 100_000]).unwrap();
        let _kept = std::fs::File::create(folder.path().join("kept")).unwrap();
        std::fs::remove_file(&path).unwrap();
        let found = of(&root, std::process::id(), &Askable::read(&root)).unwrap();
        let found: Vec<_> = found
            .deleted
            .iter()
            .filter(|file| file.path.starts_with(&*folder.path().to_string_lossy()))
            .collect();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, path.to_string_lossy());
        drop(gone);
        assert_eq!(of(&root, u32::MAX - 1, &Askable::default()), None);
    }

    #[test]
    fn many_descriptors_are_told_with_their_limit() {
        let tree = Tree::new(&[
            ("proc/7/comm", "server\n"),
            (
                "proc/7/limits",
                "Limit   Soft Limit  Hard Limit  Units\nMax open files   256   4096   files\n",
            ),
            ("proc/7/fd/0", ""),
            ("proc/8/fd/0", ""),
        ]);
        for number in 1..250 {
            std::fs::write(tree.path(&format!("proc/7/fd/{number}")), "").unwrap();
        }
        let found = of(&tree.root, 7, &Askable::default())
            .unwrap()
            .descriptors
            .unwrap();
        assert_eq!(
            (found.process.as_str(), found.used, found.limit),
            ("server", 250, 256)
        );
        assert_eq!(of(&tree.root, 8, &Askable::default()), Some(Opened::default()));
    }
}
