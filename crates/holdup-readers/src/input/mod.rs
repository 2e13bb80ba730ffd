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
const UNPACKED: u64 = 8 << 30;

/// Archives and packed files within one another, and folders within folders.
const DEPTH: u32 = 6;
const FOLDERS: u32 = 64;

/// Where a shell puts the outputs of commands that stand in place of files, and stdin.
const STREAMS: [&str; 3] = ["/dev/fd/", "/proc/self/fd/", "/dev/stdin"];

/// Who wants to know how far it is: told the bytes of files, as they lie there, that were read since it was reported last.
#[derive(Clone, Default)]
pub(crate) struct Watch(pub(crate) Option<Rc<dyn Fn(u64)>>);

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "watched" } else { "unwatched" })
    }
}

impl Watch {
    fn tell(&self, bytes: u64) {
        if let Some(watch) = &self.0 {
            watch(bytes);
        }
    }
}

/// What may still be read in this run.
#[derive(Debug)]
pub(crate) struct Allowance {
    pub(crate) watch: Watch,
    files: u64,
    /// Shared by all that is being unpacked, one within another.
    bytes: Rc<Cell<u64>>,
    /// The file that is being read, with all that is in it.
    outermost: Rc<Outermost>,
}

/// A file as it lies on the disk, and what came out of it: of all that is in it, at every level. Each archive in an archive could be
/// harmless by itself, and all of them together a bomb.
#[derive(Debug, Default)]
struct Outermost {
    /// Bytes of it that were read.
    packed: Cell<u64>,
    /// Bytes that came out of packed files in it.
    unpacked: Cell<u64>,
}

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance {
            watch: Watch::default(),
            files: FILES,
            bytes: Rc::new(Cell::new(UNPACKED)),
            outermost: Rc::default(),
        }
    }
}

impl Allowance {
    /// A file of its own begins, which nothing was unpacked to get.
    fn begin(&mut self) -> Rc<Outermost> {
        self.outermost = Rc::default();
        Rc::clone(&self.outermost)
    }

    /// Whether nothing more can come out of the file that is being read.
    fn is_exhausted(&self) -> bool {
        let Outermost { packed, unpacked } = &*self.outermost;
        let (unpacked, packed) = (unpacked.get(), packed.get());
        self.bytes.get() == 0 || unpack::is_bomb(unpacked, packed) || unpack::is_too_large(unpacked, packed)
    }
}

/// Reads a stream, packed or not.
pub(crate) fn stream(name: &str, stream: &mut dyn Read, gather: &mut Gather, allowance: &mut Allowance) {
    unpack::whole(name, stream, gather, allowance);
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
        unpack::file(&name, folder::regular(path, 0)?, 0, gather, allowance);
        Ok(())
    } else if streams {
        unpack::whole(&name, &mut File::open(path)?, gather, allowance);
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

#[cfg(test)]
mod tests {
    use super::{Allowance, stream};
    use crate::Reading;
    use crate::gather::Gather;
    use std::cell::Cell;
    use std::io::Write;
    use std::rc::Rc;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(text).unwrap();
        packer.finish().unwrap()
    }

    fn archive(files: &[&[u8]]) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        for (number, text) in files.iter().enumerate() {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_cksum();
            archive
                .append_data(&mut header, number.to_string(), *text)
                .unwrap();
        }
        archive.into_inner().unwrap()
    }

    fn read(mut bytes: &[u8], allowance: &mut Allowance) -> Reading {
        let mut gather = Gather::default();
        stream("x", &mut bytes, &mut gather, allowance);
        gather.finish()
    }

    #[test]
    fn no_more_files_than_allowed_are_read() {
        let bytes = archive(&[b"one\n", b"two\n", b"three\n"]);
        let mut allowance = Allowance {
            files: 2,
            ..Allowance::default()
        };
        let account = &read(&bytes, &mut allowance).accounts[0];
        assert_eq!(account.files.as_ref().unwrap().not_recognised, 2);
        assert!(
            account.problems[0].contains("the rest is not read"),
            "{account:?}"
        );
    }

    #[test]
    fn no_more_is_unpacked_than_allowed_in_all() {
        let log = b"2026-01-01 10:00:00 a\n".repeat(900);
        let bytes = archive(&[&packed(&log), &packed(&log), &packed(&log)]);
        let mut allowance = Allowance {
            bytes: Rc::new(Cell::new(2 * log.len() as u64 + 100)),
            ..Allowance::default()
        };
        let reading = read(&bytes, &mut allowance);
        let [whole, first, second] = reading.accounts.as_slice() else {
            panic!("{reading:?}")
        };
        assert_eq!((first.lines, second.lines), (900, 900));
        assert!(whole.problems[0].contains("too much comes out"), "{whole:?}");
    }

    /// A zip archive of so many files, which all have the bytes of the first one, or each bytes of its own.
    fn zip(files: u32, text: &[u8], shared: bool) -> Vec<u8> {
        let mut packer = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        packer.write_all(text).unwrap();
        let data = packer.finish().unwrap();
        let mut crc = flate2::Crc::new();
        crc.update(text);
        // From "version needed" to the lengths of name and extra field, as both headers have it.
        let mut about = vec![20, 0, 0, 0, 8, 0, 0, 0, 0, 0];
        for number in [crc.sum(), data.len() as u32, text.len() as u32] {
            about.extend(number.to_le_bytes());
        }
        about.extend([8, 0, 0, 0]);
        let (mut archive, mut list) = (Vec::new(), Vec::new());
        for number in 0..files {
            let place = if shared { 0 } else { archive.len() as u32 };
            if number == 0 || !shared {
                archive.extend(b"PK\x03\x04");
                archive.extend(&about);
                archive.extend(format!("{number:08}").as_bytes());
                archive.extend(&data);
            }
            list.extend(b"PK\x01\x02\x14\x00");
            list.extend(&about);
            list.extend([0; 10]);
            list.extend(place.to_le_bytes());
            list.extend(format!("{number:08}").as_bytes());
        }
        let (at, length) = (archive.len() as u32, list.len() as u32);
        archive.extend(list);
        archive.extend(b"PK\x05\x06\0\0\0\0");
        for _ in 0..2 {
            archive.extend((files as u16).to_le_bytes());
        }
        archive.extend(length.to_le_bytes());
        archive.extend(at.to_le_bytes());
        archive.extend([0, 0]);
        archive
    }

    /// Bytes that came out of packed files, and every problem that is reported.
    fn unpacked(bytes: &[u8]) -> (u64, String) {
        let mut allowance = Allowance::default();
        let reading = read(bytes, &mut allowance);
        let problems = reading
            .accounts
            .iter()
            .flat_map(|account| account.problems.clone());
        (
            super::UNPACKED - allowance.bytes.get(),
            problems.collect::<Vec<_>>().join("; "),
        )
    }

    #[test]
    fn an_honest_zip_archive_is_read_and_one_whose_files_share_bytes_is_not() {
        let log = b"2026-01-01 10:00:00 a\n".repeat(900);
        let (out, problems) = unpacked(&zip(5, &log, false));
        assert_eq!((out, problems.as_str()), (5 * log.len() as u64, ""));
        let (out, problems) = unpacked(&zip(5, &log, true));
        assert_eq!(out, 0);
        assert!(problems.contains("5 of 5 files share bytes"), "{problems}");
    }

    /// All that comes out of an archive, at every level, is held against the archive as it lies on the disk: each part would be harmless.
    #[test]
    fn bounds_count_over_the_whole_archive_and_all_that_is_in_it() {
        // Just below what anything may be unpacked to; each packs to a thousandth.
        let zeros = vec![0_u8; 20 << 20];
        let many = zip(40, &zeros, false);
        let most = super::unpack::most_of(many.len() as u64);
        let (out, problems) = unpacked(&many);
        assert!(out <= most, "{out} of {most}");
        assert!(
            problems.contains("bomb") && problems.contains("were not read any more"),
            "{problems}"
        );
        // The same twice packed, in archives of another kind within one another.
        let inner = packed(&zeros);
        for nested in [packed(&archive(&[inner.as_slice(); 40])), packed(&packed(&many))] {
            let most = super::unpack::most_of(nested.len() as u64);
            let (out, problems) = unpacked(&nested);
            assert!(out <= most, "{out} of {most}");
            assert!(problems.contains("bomb"), "{problems}");
        }
    }

    #[test]
    fn a_damaged_archive_is_read_as_far_as_it_goes() {
        let bytes = archive(&[b"one\n", b"two\n"]);
        for length in (0..bytes.len()).step_by(509) {
            let reading = read(&bytes[..length], &mut Allowance::default());
            assert!(reading.accounts.len() <= 1, "{reading:?}");
        }
        let mut damaged = bytes.clone();
        damaged[1024 + 150] ^= 1;
        let account = &read(&damaged, &mut Allowance::default()).accounts[0];
        assert_eq!(account.files.as_ref().unwrap().not_recognised, 1);
        assert!(account.problems[0].contains("damaged"), "{account:?}");
    }
}
