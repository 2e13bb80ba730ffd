//! Folders: every file below one, in the order of their names.

use super::whole::Whole;
use super::{Allowance, FILES, FOLDERS, unpack};
use crate::gather::Gather;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Reads every file below a folder.
pub(super) fn read(folder: &Path, gather: &mut Gather, allowance: &mut Allowance) -> std::io::Result<()> {
    let device = std::fs::metadata(folder)?.dev();
    let names = list(folder)?;
    let mut whole = Whole::begin(&folder.to_string_lossy(), "folder", gather);
    walk(folder, names, device, 0, &mut whole, gather, allowance);
    whole.end(gather);
    Ok(())
}

/// The names in a folder, sorted; of an absurd number as many as may be read.
fn list(folder: &Path) -> std::io::Result<Vec<OsString>> {
    let entries = std::fs::read_dir(folder)?.take(FILES as usize + 1);
    let mut names = entries
        .map(|entry| Ok(entry?.file_name()))
        .collect::<std::io::Result<Vec<_>>>()?;
    names.sort_unstable();
    Ok(names)
}

fn walk(
    folder: &Path,
    names: Vec<OsString>,
    device: u64,
    depth: u32,
    whole: &mut Whole,
    gather: &mut Gather,
    allowance: &mut Allowance,
) {
    for name in names {
        let path = folder.join(name);
        let name = path.to_string_lossy();
        let metadata = match std::fs::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            // Gone between the list and now, as files in a live folder are.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => {
                whole.problem(format!("{name}: cannot be read: {error}"));
                continue;
            }
        };
        let kind = metadata.file_type();
        if kind.is_symlink() {
            whole.link();
        } else if kind.is_dir() {
            // A mount below may be of a server that is gone, or of the kernel's files, which have no end.
            if metadata.dev() != device {
                whole.elsewhere(&name);
            } else if depth >= FOLDERS {
                whole.problem(format!("{name}: more than {FOLDERS} folders deep, not read"));
            } else {
                match list(&path) {
                    Ok(names) => walk(&path, names, device, depth + 1, whole, gather, allowance),
                    Err(error) => whole.problem(format!("{name}: cannot be listed: {error}")),
                }
            }
        } else if kind.is_file() {
            if !whole.next(gather, allowance) {
                return;
            }
            match open(&path) {
                Ok(file) => {
                    unpack::file(&name, file, 1, gather, allowance);
                    whole.done(&name, gather);
                }
                Err(error) => whole.problem(format!("{name}: cannot be read: {error}")),
            }
        } else {
            whole.special(&name);
        }
    }
}

/// Opens a regular file, and nothing that took its place meanwhile: neither a link nor a FIFO that would block.
fn open(path: &Path) -> std::io::Result<File> {
    regular(path, libc::O_NOFOLLOW)
}

/// Opens a regular file with these flags too.
pub(super) fn regular(path: &Path, flags: i32) -> std::io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags | libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(Error::other("it is no file any more"))
    }
}
