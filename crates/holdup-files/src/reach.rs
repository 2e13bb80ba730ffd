//! The way to a folder, one name at a time.
//!
//! In: a path. Out: the folder that its last name is in, held by a descriptor, and that name. Each folder on the way is opened below the
//! one before it, and never by its whole path again, so nobody can exchange a part of a path that was already looked at.
//!
//! Links. The kernel's own protection (`fs.protected_symlinks`) covers sticky folders that all may write to, and is a setting. Here a
//! link is followed only if its owner is root or the caller ([`trust`](crate::trust)). In a folder that others may write to it must also
//! have one name only: without `fs.protected_hardlinks` anybody can give root's link a second name there.

use crate::Refused;
use crate::trust::trusted;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat, mkdirat};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

/// Links that are followed at most: as many as the kernel follows (`MAXSYMLINKS`).
const MOST_LINKS: usize = 40;

/// A folder, and the name in it that was asked for.
#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) folder: OwnedFd,
    pub(crate) name: OsString,
    /// What has that name now; `None` where nothing has.
    pub(crate) there: Option<FileStat>,
}

/// What becomes of a link that has the last name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Final {
    /// It is followed as those before it.
    Follow,
    /// It is what was asked for.
    Keep,
}

/// A folder that is held.
#[derive(Debug)]
pub struct Folder {
    /// Opened as a path (`O_PATH`).
    pub descriptor: OwnedFd,
    /// Where it is: absolute, without links.
    pub path: PathBuf,
}

/// Who may change what a folder holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Anybody: it is enough that it was reached past no foreign link.
    Anybody,
    /// Only root and the caller, all the way up: nobody else can remove, replace or lock what is in it.
    Own,
}

/// What becomes of a folder that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// It is an error.
    Refuse,
    /// It is made, and those above it, for their owner alone.
    Make,
}

/// Where a walk is.
struct Walk {
    at: OwnedFd,
    about: FileStat,
    /// For sentences.
    path: PathBuf,
    left: VecDeque<OsString>,
    links: usize,
    /// The first folder on the way in which somebody else can rename what is in it.
    foreign: Option<Refused>,
}

/// Walks to the folder that the last name of a path is in.
///
/// # Errors
/// A foreign link on the way, or what the kernel says.
pub(crate) fn reach(path: &Path, last: Final) -> Result<Reached, Refused> {
    let mut walk = Walk::begin(path)?;
    loop {
        let Some(name) = walk.left.pop_front() else {
            return Err(Refused::Directory);
        };
        if !walk.left.is_empty() || name == ".." {
            walk.step(&name)?;
            continue;
        }
        let there = match fstatat(&walk.at, name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(there) => Some(there),
            Err(Errno::ENOENT) => None,
            Err(errno) => return Err(errno.into()),
        };
        if last == Final::Follow && there.is_some_and(|there| kind(&there) == SFlag::S_IFLNK) {
            walk.step(&name)?;
            if walk.left.is_empty() {
                return Err(Refused::Directory);
            }
            continue;
        }
        return Ok(Reached {
            folder: walk.at,
            name,
            there,
        });
    }
}

/// Opens a folder by its path.
///
/// # Errors
/// A foreign link on the way, a folder that others can change where `guard` forbids it, or what the kernel says.
pub fn folder(path: &Path, guard: Guard, missing: Missing) -> Result<Folder, Refused> {
    let whole = match path.is_absolute() {
        true => path.to_owned(),
        false => std::env::current_dir()?.join(path),
    };
    let mut walk = Walk::begin(&whole)?;
    while let Some(name) = walk.left.pop_front() {
        match walk.step(&name) {
            Err(refused) if missing == Missing::Make && refused.errno() == Some(libc::ENOENT) => {
                match mkdirat(&walk.at, name.as_os_str(), Mode::S_IRWXU) {
                    Ok(()) | Err(Errno::EEXIST) => walk.step(&name)?,
                    Err(errno) => return Err(errno.into()),
                }
            }
            stepped => stepped?,
        }
    }
    if guard == Guard::Own {
        let folder = walk.path.clone();
        if !trusted(walk.about.st_uid) {
            let owner = walk.about.st_uid;
            return Err(Refused::Folder { folder, owner });
        }
        if walk.about.st_mode & (libc::S_IWGRP | libc::S_IWOTH) != 0 {
            return Err(Refused::Shared { folder });
        }
        if let Some(foreign) = walk.foreign {
            return Err(foreign);
        }
    }
    Ok(Folder {
        descriptor: walk.at,
        path: walk.path,
    })
}

pub(crate) fn kind(about: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(about.st_mode & libc::S_IFMT)
}

/// The names of a path; `.` is none.
fn names(path: &Path) -> impl DoubleEndedIterator<Item = &OsStr> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name),
        Component::ParentDir => Some(OsStr::new("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

impl Walk {
    fn begin(path: &Path) -> Result<Walk, Refused> {
        if path.as_os_str().is_empty() {
            return Err(Errno::ENOENT.into());
        }
        let start = Path::new(if path.is_absolute() { "/" } else { "." });
        let at = open(start, as_path() | OFlag::O_DIRECTORY, Mode::empty())?;
        let about = fstat(&at)?;
        Ok(Walk {
            foreign: foreign(&about, start),
            at,
            about,
            path: start.to_owned(),
            left: names(path).map(OsStr::to_owned).collect(),
            links: 0,
        })
    }

    /// Enters a folder, or puts what a link says in front of what is left.
    fn step(&mut self, name: &OsStr) -> Result<(), Refused> {
        let next = openat(&self.at, name, as_path() | OFlag::O_NOFOLLOW, Mode::empty())?;
        let about = fstat(&next)?;
        match kind(&about) {
            SFlag::S_IFDIR => {
                match name == ".." {
                    true => drop(self.path.pop()),
                    false => self.path.push(name),
                }
                self.enter(next, about);
                Ok(())
            }
            SFlag::S_IFLNK => self.follow(name, &next, &about),
            _ => Err(Errno::ENOTDIR.into()),
        }
    }

    fn follow(&mut self, name: &OsStr, link: &OwnedFd, about: &FileStat) -> Result<(), Refused> {
        let own = trusted(self.about.st_uid) && !others_write(&self.about);
        if !trusted(about.st_uid) || !own && about.st_nlink != 1 {
            return Err(Refused::Link {
                link: self.path.join(name),
                owner: match trusted(about.st_uid) {
                    true => self.about.st_uid,
                    false => about.st_uid,
                },
            });
        }
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(Errno::ELOOP.into());
        }
        // By its descriptor: the link that was looked at, and no other that has the name since.
        let target = PathBuf::from(readlinkat(link, c"")?);
        for name in names(&target).rev() {
            self.left.push_front(name.to_owned());
        }
        if target.is_absolute() {
            let root = open("/", as_path() | OFlag::O_DIRECTORY, Mode::empty())?;
            let about = fstat(&root)?;
            self.path = PathBuf::from("/");
            self.enter(root, about);
        }
        Ok(())
    }

    fn enter(&mut self, at: OwnedFd, about: FileStat) {
        if self.foreign.is_none() {
            self.foreign = foreign(&about, &self.path);
        }
        self.at = at;
        self.about = about;
    }
}

/// Whether somebody else can rename what is in this folder. In a sticky one each can rename only what is his. A group is not somebody
/// else here: `/var/log` is group-writable on some systems, and its group is root's choice.
fn foreign(about: &FileStat, folder: &Path) -> Option<Refused> {
    let folder = folder.to_owned();
    if !trusted(about.st_uid) {
        let owner = about.st_uid;
        return Some(Refused::Folder { folder, owner });
    }
    let open = about.st_mode & libc::S_IWOTH != 0 && about.st_mode & libc::S_ISVTX == 0;
    open.then_some(Refused::Shared { folder })
}

fn others_write(about: &FileStat) -> bool {
    about.st_mode & (libc::S_IWGRP | libc::S_IWOTH) != 0
}

fn as_path() -> OFlag {
    OFlag::O_PATH | OFlag::O_CLOEXEC
}
