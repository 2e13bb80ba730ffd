//! From what a user names to streams of text: folders are walked, archives are opened, packed files are unpacked.
//!
//! In: paths and streams. Out: each file in them, to [`stream`](crate::stream). Nothing is followed out of a folder or an
//! archive, nothing is opened that could block, and everything has a limit: what an artefact contains may have been made
//! to do harm.

mod archive;
mod folder;
mod unpack;
mod whole;

use crate::gather::Gather;
use std::cell::Cell;
use std::fs::File;
use std::io::{Error, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::rc::Rc;

/// Files in folders and archives that are read in all: a large support archive has twenty thousand.
const FILES: u64 = 100_000;

/// Bytes that may come out of packed files in all: more than any log that people hand around unpacked.
const UNPACKED: u64 = 32 << 30;

/// Archives and packed files within one another, and folders within folders.
const DEPTH: u32 = 6;
const FOLDERS: u32 = 64;

/// Where a shell puts the outputs of commands that stand in place of files, and stdin.
const STREAMS: [&str; 3] = ["/dev/fd/", "/proc/self/fd/", "/dev/stdin"];

/// What may still be read in this run.
#[derive(Debug)]
pub(crate) struct Allowance {
    files: u64,
    /// Shared by all that is being unpacked, one within another.
    bytes: Rc<Cell<u64>>,
}

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance {
            files: FILES,
            bytes: Rc::new(Cell::new(UNPACKED)),
        }
    }
}

/// Reads a stream, packed or not.
pub(crate) fn stream(name: &str, stream: &mut dyn Read, gather: &mut Gather, allowance: &mut Allowance) {
    unpack::read(name, stream, 0, gather, allowance);
}

/// Reads what a user named.
pub(crate) fn path(path: &Path, gather: &mut Gather, allowance: &mut Allowance) -> std::io::Result<()> {
    let name = path.to_string_lossy();
    // What a user names is followed; what is found in it is not.
    let kind = std::fs::metadata(path)?.file_type();
    let streams = STREAMS
        .iter()
        .any(|prefix| path.to_string_lossy().starts_with(prefix));
    if kind.is_dir() {
        folder::read(path, gather, allowance)
    } else if kind.is_file() {
        unpack::file(&name, File::open(path)?, 0, gather, allowance);
        Ok(())
    } else if streams {
        unpack::read(&name, &mut File::open(path)?, 0, gather, allowance);
        Ok(())
    } else {
        let what = match () {
            () if kind.is_fifo() => "a FIFO",
            () if kind.is_socket() => "a socket",
            () => "a device",
        };
        Err(Error::other(format!(
            "it is {what}, which may never end; `holdup read - < FILE` reads it all the same"
        )))
    }
}
