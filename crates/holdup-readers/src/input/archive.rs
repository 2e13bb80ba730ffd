//! Archives: tar and zip. Their files are read one after another as they come.

use super::unpack::{self, Guarded};
use super::whole::Whole;
use super::{Allowance, FILES};
use crate::gather::{Gather, text_of};
use std::cell::Cell;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::rc::Rc;
use tar::EntryType;
use zip::ZipArchive;

/// The longest name of a file, bytes, and the most of an extended header that is looked at for one.
const LONGEST_NAME: u64 = 4 << 10;
const LONGEST_HEADER: u64 = 64 << 10;

/// A zip archive has its list at the end, so one that comes as a stream is kept in memory: up to so many bytes.
const ZIP_IN_MEMORY: u64 = 128 << 20;

/// Where the end of a zip archive's list is looked for: its comment has at most 64 KiB.
const ZIP_END: u64 = 66 << 10;

/// The bits of a file's mode that say what it is, and what they are for a regular file.
const KIND: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;

/// Whether it is a tar archive, from its first block: by its mark, or, before there was one, by its checksum.
pub(super) fn is_tar(head: &[u8]) -> bool {
    let Some(block) = head.get(..512) else {
        return false;
    };
    let marked = block[257..262] == *b"ustar";
    let found = std::str::from_utf8(&block[148..156]).ok();
    let found = found.and_then(|text| u32::from_str_radix(text.trim_matches(['\0', ' ']), 8).ok());
    let sum = |bytes: &[u8]| bytes.iter().copied().map(u32::from).sum::<u32>();
    let right = found == Some(sum(&block[..148]) + 8 * u32::from(b' ') + sum(&block[156..]));
    block[0] != 0 && (right || marked && found.is_some())
}

/// Reads the files of a tar archive.
pub(super) fn tar(
    name: &str,
    stream: &mut dyn Read,
    depth: u32,
    gather: &mut Gather,
    allowance: &mut Allowance,
) {
    let mut whole = Whole::begin(name, "tar", gather);
    let mut archive = tar::Archive::new(stream);
    // Long names are read here, because the library reads them whole, whatever their length.
    let entries = archive.entries().map(|entries| entries.raw(true));
    let mut long = None;
    for entry in entries.into_iter().flatten() {
        let mut entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                whole.problem(format!("damaged or cut off, and not read further: {error}"));
                break;
            }
        };
        let kind = entry.header().entry_type();
        match kind {
            EntryType::GNULongName => {
                long = Some(bounded(&mut entry, LONGEST_NAME));
                continue;
            }
            EntryType::XHeader => {
                long = path_of(&bounded(&mut entry, LONGEST_HEADER)).or(long);
                continue;
            }
            EntryType::GNULongLink | EntryType::XGlobalHeader | EntryType::Directory => continue,
            _ => {}
        }
        let path = long.take().unwrap_or_else(|| entry.path_bytes().into_owned());
        let path = text_of(path.split(|byte| *byte == 0).next().unwrap_or_default());
        match kind {
            EntryType::Regular | EntryType::Continuous => {
                if !whole.next(gather, allowance) {
                    break;
                }
                unpack::read(
                    &format!("{name}/{path}"),
                    &mut entry,
                    depth + 1,
                    gather,
                    allowance,
                );
                whole.done(&path, gather);
            }
            EntryType::Symlink | EntryType::Link => whole.link(),
            EntryType::Char | EntryType::Block | EntryType::Fifo => whole.special(&path),
            _ => whole.problem(format!("{path}: of a kind that is not read")),
        }
    }
    whole.end(gather);
}

/// The beginning of an entry.
fn bounded(entry: &mut dyn Read, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Where it can't be read, the next entry can't either, and that is said then.
    entry.take(most).read_to_end(&mut bytes).unwrap_or_default();
    bytes
}

/// The path in an extended header: records `LENGTH KEY=VALUE\n`.
fn path_of(mut records: &[u8]) -> Option<Vec<u8>> {
    loop {
        let space = memchr::memchr(b' ', records)?;
        let length: usize = std::str::from_utf8(&records[..space]).ok()?.parse().ok()?;
        let record = records.get(space + 1..length)?;
        if let Some(path) = record.strip_prefix(b"path=") {
            return Some(path.strip_suffix(b"\n").unwrap_or(path).to_vec());
        }
        records = &records[length..];
    }
}

/// Reads the files of a zip archive that comes as a stream.
pub(super) fn zip_of_stream(
    name: &str,
    stream: &mut dyn Read,
    depth: u32,
    gather: &mut Gather,
    allowance: &mut Allowance,
) {
    let mut bytes = Vec::new();
    let read = stream.take(ZIP_IN_MEMORY + 1).read_to_end(&mut bytes);
    let refused = match read {
        Err(error) => Some(format!("could not be read to its end: {error}")),
        Ok(_) if bytes.len() as u64 > ZIP_IN_MEMORY => Some(format!(
            "a zip archive of more than {} MiB within another or from stdin: unpack it first",
            ZIP_IN_MEMORY >> 20
        )),
        Ok(_) => None,
    };
    match refused {
        Some(sentence) => gather.begin(name, "").problem(sentence),
        None => zip(name, Cursor::new(bytes), depth, gather, allowance),
    }
}

/// Reads the files of a zip archive.
pub(super) fn zip(
    name: &str,
    mut stream: impl Read + Seek,
    depth: u32,
    gather: &mut Gather,
    allowance: &mut Allowance,
) {
    let mut whole = Whole::begin(name, "zip", gather);
    match listed(&mut stream) {
        Ok(files) if files > FILES => whole.problem(format!("says that it has {files} files: not read")),
        Ok(_) => match ZipArchive::new(stream) {
            Ok(mut archive) => files(name, &mut archive, depth, &mut whole, gather, allowance),
            Err(error) => whole.problem(format!("damaged or cut off: {error}")),
        },
        Err(error) => whole.problem(format!("could not be read to its end: {error}")),
    }
    whole.end(gather);
}

fn files<R: Read + Seek>(
    name: &str,
    archive: &mut ZipArchive<R>,
    depth: u32,
    whole: &mut Whole,
    gather: &mut Gather,
    allowance: &mut Allowance,
) {
    let all = archive.len();
    let shared = overlapping(archive);
    if shared.contains(&true) {
        let count = shared.iter().filter(|shared| **shared).count();
        whole.problem(format!(
            "{count} of {all} files share bytes of the archive with another one, as in a bomb: not read"
        ));
    }
    for index in 0..all {
        if shared.get(index).copied().unwrap_or(true) {
            continue;
        }
        // What the archive as a whole may not hold no file of it may either: one sentence is enough.
        if allowance.is_exhausted() {
            whole.problem(format!("{} of {all} files were not read any more", all - index));
            return;
        }
        let file = match archive.by_index(index) {
            Ok(file) => file,
            Err(error) => {
                whole.problem(format!("file {} of {}: {error}", index + 1, all));
                continue;
            }
        };
        let path = text_of(file.name_raw());
        // Where the archive was not made on a Unix there are no kinds.
        let kind = file.unix_mode().map_or(0, |mode| mode & KIND);
        if file.is_dir() {
            continue;
        }
        if file.is_symlink() {
            whole.link();
            continue;
        }
        if kind != 0 && kind != REGULAR {
            whole.special(&path);
            continue;
        }
        if !whole.next(gather, allowance) {
            return;
        }
        let packed = Rc::new(Cell::new(file.compressed_size()));
        let mut guarded = Guarded::new(file, packed, allowance);
        unpack::read(
            &format!("{name}/{path}"),
            &mut guarded,
            depth + 1,
            gather,
            allowance,
        );
        whole.done(&path, gather);
    }
}

/// Which files have bytes of the archive in common with another one: of an honest archive none has. What can't be placed is not among
/// them, and is found to be damaged when it is opened.
fn overlapping<R: Read + Seek>(archive: &mut ZipArchive<R>) -> Vec<bool> {
    let mut shared = vec![false; archive.len()];
    let mut places: Vec<(u64, u64, usize)> = Vec::with_capacity(shared.len());
    for index in 0..shared.len() {
        if let Ok(file) = archive.by_index_raw(index)
            && let Some(data) = file.data_start()
        {
            let end = data.saturating_add(file.compressed_size());
            places.push((file.header_start(), end, index));
        }
    }
    places.sort_unstable();
    // The one of those before that reaches furthest.
    let mut furthest: Option<(u64, usize)> = None;
    for (start, end, index) in places {
        if let Some((reached, before)) = furthest
            && start < reached
        {
            shared[before] = true;
            shared[index] = true;
        }
        if furthest.is_none_or(|(reached, _)| end > reached) {
            furthest = Some((end, index));
        }
    }
    shared
}

/// How many files the end of the archive says that there are: asked before its list is read into memory.
fn listed(stream: &mut (impl Read + Seek)) -> std::io::Result<u64> {
    let length = stream.seek(SeekFrom::End(0))?;
    stream.seek(SeekFrom::Start(length.saturating_sub(ZIP_END)))?;
    let mut end = Vec::new();
    stream.take(ZIP_END).read_to_end(&mut end)?;
    stream.seek(SeekFrom::Start(0))?;
    let field = |mark: &[u8], from: usize, width: usize| {
        let places = memchr::memmem::find_iter(&end, mark);
        let found = places.filter_map(|place| end.get(place + from..place + from + width));
        found
            .map(|bytes| {
                bytes
                    .iter()
                    .rev()
                    .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
            })
            .max()
            .unwrap_or(0)
    };
    Ok(field(b"PK\x05\x06", 10, 2).max(field(b"PK\x06\x06", 32, 8)))
}
