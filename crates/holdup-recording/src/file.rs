//! Recordings as files: written whole or not at all, read within bounds.
//!
//! A segment is written beside its place, brought to the disk, and only then given its name: whoever
//! finds the name finds all of it. Readable for its owner alone: it says what a machine did.

use crate::footer::{self, MAGIC, TAIL};
use crate::hour::{KEY_SEGMENTS, VERSION_OF_HOURS};
use crate::whole::{self, Wrong};
use crate::{Error, Head, Segment, VERSION};
use holdup_files::{Last, NewFile, Refused};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Key of the version.
pub(crate) const KEY_VERSION: &str = "holdup.version";
/// Key of the head, as JSON.
pub(crate) const KEY_HEAD: &str = "holdup.head";
/// Key of where the whole stands: its first byte and its length, in decimal, a space between.
pub(crate) const KEY_WHOLE: &str = "holdup.whole";

/// The same of the time line.
pub(crate) const KEY_PIECES: &str = "holdup.pieces";

/// The largest whole, packed, bytes.
pub(crate) const MOST_PACKED: u64 = 64 << 20;

/// Recordings in a directory, at most: ten weeks of a segment a minute.
const MOST_FILES: usize = 100_000;

/// What the commands of all segments of a folder may take, bytes: all heads are in memory at once.
const MOST_COMMANDS: usize = 256 << 20;

/// How a segment's file is recognised in a directory.
const EXTENSION: &str = "parquet";

/// What a directory holds: heads of the segments, oldest first (by the clock that nobody sets, within a boot), and what could not be read, with why.
#[derive(Debug, Default)]
pub struct Folder {
    /// Each file and its head.
    pub segments: Vec<(PathBuf, Head)>,
    /// What is wrong with the others.
    pub problems: Vec<Error>,
}

/// A recording that is still to be written; its place was found fit for one.
#[derive(Debug)]
pub struct Draft {
    path: PathBuf,
    file: NewFile,
}

impl Draft {
    /// Makes the file in the folder of `path`: mode 0600 from the first byte on, gone with this value.
    ///
    /// # Errors
    /// When the folder does not take it, a foreign link is on the way, or what is there is no regular file.
    pub fn open(path: &Path) -> Result<Draft, Error> {
        let file = NewFile::open(path, Last::RegularOnly).map_err(|refused| failed(path, refused))?;
        Ok(Draft {
            path: path.to_owned(),
            file,
        })
    }

    /// Writes the segment, brings it to the disk, and gives it its name. A recording that was there is replaced.
    ///
    /// # Errors
    /// When the disk does not take it; then what was there stays.
    pub fn finish(mut self, segment: &Segment) -> Result<(), Error> {
        let path = self.path;
        crate::write(segment, self.file.file()).map_err(|error| failed(&path, error.into()))?;
        self.file
            .finish_on_disk()
            .map_err(|refused| failed(&path, refused))
    }
}

fn failed(path: &Path, refused: Refused) -> Error {
    let path = path.to_owned();
    match refused {
        Refused::Directory | Refused::Special => Error::NotAFile { path },
        Refused::Io(error) => Error::Io {
            what: "write",
            path,
            error,
        },
        refused => Error::Place { path, refused },
    }
}

/// Writes a segment to `path`: all of it, or nothing.
///
/// # Errors
/// When the directory does not take it.
pub fn save(segment: &Segment, path: &Path) -> Result<(), Error> {
    Draft::open(path)?.finish(segment)
}

/// Reads a recording: a file, or all segments of a directory, oldest first.
///
/// # Errors
/// When one of them can't be read: [`folder`] and [`read_one`] get at the others.
pub fn read(path: &Path) -> Result<Vec<Segment>, Error> {
    if !path.is_dir() {
        return Ok(vec![read_one(path)?]);
    }
    let mut folder = folder(path)?;
    if let Some(problem) = folder.problems.pop() {
        return Err(problem);
    }
    if folder.segments.is_empty() {
        return Err(Error::Empty {
            path: path.to_owned(),
        });
    }
    folder.segments.iter().map(|(path, _)| read_one(path)).collect()
}

/// Looks through a directory, not what is below it. What is no recording is left alone.
///
/// # Errors
/// When it can't be listed.
pub fn folder(path: &Path) -> Result<Folder, Error> {
    let failed = |error| Error::Io {
        what: "list",
        path: path.to_owned(),
        error,
    };
    let mut folder = Folder::default();
    let mut room = MOST_COMMANDS;
    for (number, entry) in std::fs::read_dir(path).map_err(failed)?.enumerate() {
        if number == MOST_FILES {
            folder.problems.push(Error::TooLarge {
                path: path.to_owned(),
                what: "files",
                most: MOST_FILES as u64,
            });
            break;
        }
        let file = entry.map_err(failed)?.path();
        let hidden = file
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if hidden || file.extension().is_none_or(|extension| extension != EXTENSION) {
            continue;
        }
        match Opened::open(&file, Link::Refuse).map(|opened| opened.head) {
            Ok(head) => {
                let size = head
                    .command
                    .iter()
                    .map(|word| word.len() + size_of::<String>())
                    .sum();
                let Some(left) = room.checked_sub(size) else {
                    folder.problems.push(Error::TooLarge {
                        path: path.to_owned(),
                        what: "bytes of commands",
                        most: MOST_COMMANDS as u64,
                    });
                    break;
                };
                room = left;
                folder.segments.push((file, head));
            }
            Err(Error::NotARecording { .. }) => {}
            Err(problem) => folder.problems.push(problem),
        }
    }
    in_order(&mut folder.segments);
    Ok(folder)
}

/// Oldest first. Segments of one boot are ordered by the clock that nobody sets: after somebody has set the other one back, later ones
/// have earlier dates. Boots, and segments whose boot is not known, are ordered by their earliest date.
fn in_order(segments: &mut [(PathBuf, Head)]) {
    fn boot(head: &Head) -> Option<(Option<String>, String)> {
        Some((head.host.clone(), head.boot_id.clone()?))
    }
    let mut first: HashMap<(Option<String>, String), i64> = HashMap::new();
    for (_, head) in segments.iter() {
        if let Some(boot) = boot(head) {
            let date = first.entry(boot).or_insert(head.started_unix);
            *date = head.started_unix.min(*date);
        }
    }
    segments.sort_by_cached_key(|(path, head)| {
        let boot = boot(head);
        let known = boot.as_ref().and_then(|boot| first.get(boot).copied());
        let (date, started) = match known {
            Some(date) => (date, head.started),
            None => (head.started_unix, 0),
        };
        (date, boot, started, head.started_unix, path.clone())
    });
}

/// Reads a segment's head alone.
///
/// # Errors
/// When it is not one that can be read.
pub fn peek(path: &Path) -> Result<Head, Error> {
    Opened::open(path, Link::Follow).map(|opened| opened.head)
}

/// Reads one segment.
///
/// # Errors
/// When it is not one that can be read.
pub fn read_one(path: &Path) -> Result<Segment, Error> {
    let opened = Opened::open(path, Link::Follow)?;
    let mut segment = opened.sums(path)?;
    let packed = opened.part(path, opened.pieces)?;
    segment.attributed.timeline = whole::unpack_pieces(&packed).map_err(|wrong| refused(path, wrong))?;
    Ok(segment)
}

/// Reads one segment but for its time line, which is most of it: for whoever adds up many.
///
/// # Errors
/// When it is not one that can be read.
pub fn read_sums(path: &Path) -> Result<Segment, Error> {
    Opened::open(path, Link::Follow)?.sums(path)
}

pub(crate) fn refused(path: &Path, wrong: Wrong) -> Error {
    let path = path.to_owned();
    match wrong {
        Wrong::Damaged(why) => Error::Damaged { path, why },
        Wrong::TooLarge(what, most) => Error::TooLarge { path, what, most },
    }
}

/// A file whose footer was read.
pub(crate) struct Opened {
    file: File,
    length: u64,
    /// The version of its format.
    pub(crate) version: u32,
    /// Its head as it stands there.
    pub(crate) head_text: String,
    head: Head,
    pub(crate) whole: Place,
    /// The same of the time line.
    pub(crate) pieces: Place,
}

/// First byte and length.
pub(crate) type Place = (u64, u64);

impl Opened {
    /// A file that was named.
    pub(crate) fn of(path: &Path) -> Result<Opened, Error> {
        Opened::open(path, Link::Follow)
    }

    pub(crate) fn sums(&self, path: &Path) -> Result<Segment, Error> {
        let packed = self.part(path, self.whole)?;
        let (attributed, facts, look) = whole::unpack(&packed).map_err(|wrong| refused(path, wrong))?;
        Ok(Segment {
            head: self.head.clone(),
            attributed,
            facts,
            look,
        })
    }

    /// The bytes of a part.
    pub(crate) fn part(&self, path: &Path, (offset, length): Place) -> Result<Vec<u8>, Error> {
        if length > MOST_PACKED {
            return Err(refused(path, Wrong::TooLarge("packed bytes", MOST_PACKED)));
        }
        if offset.checked_add(length).is_none_or(|end| end > self.length) {
            let why = "its contents lie behind its end".to_owned();
            return Err(refused(path, Wrong::Damaged(why)));
        }
        let mut packed = vec![0; usize::try_from(length).expect("bounded above")];
        self.file
            .read_exact_at(&mut packed, offset)
            .map_err(|error| Error::Io {
                what: "read",
                path: path.to_owned(),
                error,
            })?;
        Ok(packed)
    }

    fn open(path: &Path, link: Link) -> Result<Opened, Error> {
        let failed = |error| Error::Io {
            what: "read",
            path: path.to_owned(),
            error,
        };
        let damaged = |why: &str| Error::Damaged {
            path: path.to_owned(),
            why: why.to_owned(),
        };
        let foreign = || Error::NotARecording {
            path: path.to_owned(),
        };
        // A FIFO without a writer must not be waited for, and no terminal may become holdup's own.
        let link = match link {
            Link::Follow => OFlag::empty(),
            Link::Refuse => OFlag::O_NOFOLLOW,
        };
        let opened = std::fs::OpenOptions::new()
            .read(true)
            .custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY | link).bits())
            .open(path);
        let mut file = match opened {
            Err(error) if error.raw_os_error() == Some(Errno::ELOOP as i32) => return Err(foreign()),
            opened => opened.map_err(failed)?,
        };
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(foreign());
        }
        let length = metadata.len();
        let mut begin = [0; MAGIC.len()];
        if file.read_exact(&mut begin).is_err() || &begin != MAGIC {
            return Err(foreign());
        }
        let cut = || damaged("its end is missing, as of a file that was copied while it was written");
        let tail_at = length
            .checked_sub(TAIL as u64)
            .filter(|at| *at >= MAGIC.len() as u64);
        let tail_at = tail_at.ok_or_else(cut)?;
        let mut tail = [0; TAIL];
        file.read_exact_at(&mut tail, tail_at).map_err(failed)?;
        let (size, magic) = tail.split_at(TAIL - MAGIC.len());
        if magic != MAGIC {
            return Err(cut());
        }
        let size = u32::from_le_bytes(size.try_into().expect("four bytes before the mark"));
        let footer_at = tail_at.checked_sub(u64::from(size)).ok_or_else(cut)?;
        if size as usize > footer::LARGEST {
            return Err(Error::TooLarge {
                path: path.to_owned(),
                what: "bytes of footer",
                most: footer::LARGEST as u64,
            });
        }
        let mut footer = vec![0; size as usize];
        file.seek(SeekFrom::Start(footer_at)).map_err(failed)?;
        file.read_exact(&mut footer).map_err(failed)?;
        let listed = footer::key_values(&footer).ok_or_else(|| damaged("its footer is none of Parquet's"))?;
        let value = |key: &str| {
            let found = listed.iter().find(|(name, _)| name == key);
            found.map(|(_, value)| value.as_str())
        };
        let version = value(KEY_VERSION).ok_or_else(foreign)?;
        let version: u32 = version.parse().map_err(|_| damaged("its version is no number"))?;
        let head = value(KEY_HEAD).unwrap_or_default();
        if version == VERSION_OF_HOURS && value(KEY_SEGMENTS).is_some() {
            return Err(Error::Hour {
                path: path.to_owned(),
            });
        }
        if version > VERSION {
            let by = serde_json::from_str::<serde_json::Value>(head).ok();
            let by = by.as_ref().and_then(|head| head.get("holdup")?.as_str());
            return Err(Error::Newer {
                path: path.to_owned(),
                version,
                by: by.unwrap_or("of a later version").to_owned(),
            });
        }
        let head_text = head.to_owned();
        let head = serde_json::from_str(head).map_err(|error| damaged(&format!("its head: {error}")))?;
        let place = |key: &str| {
            let (offset, length) = value(key)?.split_once(' ')?;
            Some((offset.parse().ok()?, length.parse().ok()?))
        };
        let place = |key| place(key).ok_or_else(|| damaged("it does not say where its contents are"));
        Ok(Opened {
            whole: place(KEY_WHOLE)?,
            pieces: place(KEY_PIECES)?,
            file,
            length,
            version,
            head_text,
            head,
        })
    }
}

/// What becomes of a path that is a symbolic link.
#[derive(Debug, Clone, Copy)]
enum Link {
    /// The person named it.
    Follow,
    /// It was found in a folder, and may have been put there by anybody.
    Refuse,
}
