//! A file that has its name only when it is complete.
//!
//! In: a path. Out: a file to write to, in the same folder, and [`NewFile::finish`], which gives it the name and replaces what had it.
//! Until then the file has no name at all where the file system can do that (`O_TMPFILE`), so nothing is left behind however holdup
//! ends; elsewhere it has a hidden name of its own, which goes with this value.

use crate::Refused;
use crate::finisher::{self, Number};
use crate::reach::{Final, Reached, kind, reach};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{Mode, SFlag, fstat};
use nix::unistd::{UnlinkatFlags, geteuid, linkat, unlinkat};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How the hidden name begins. `holdup record` removes what begins like this from its folder.
const PREFIX: &str = ".holdup-";

/// Hidden names that are tried: each is drawn from 64 bits, so a second one is hardly ever needed.
const TRIES: u32 = 16;

/// For the owner alone; the kernel takes away what the caller's umask takes away.
pub(crate) const OWNER_ONLY: Mode = Mode::S_IRUSR.union(Mode::S_IWUSR);

/// What is done where the last name of the path is a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Last {
    /// The caller's own link is followed, and what it leads to is replaced.
    FollowOwn,
    /// Nothing but a regular file is replaced.
    RegularOnly,
}

/// A file that is being written.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    place: Arc<Place>,
    number: Number,
    /// It has its name.
    is_real: bool,
}

/// Where a file belongs.
#[derive(Debug)]
pub(crate) struct Place {
    /// The file that is written to, which is open for as long as its [`NewFile`] is, and in the finisher for good. A second descriptor
    /// would be one that a small limit of open files has no room for.
    file: RawFd,
    folder: OwnedFd,
    name: std::ffi::OsString,
    /// The hidden name that it has had from the start, where it can't be without one.
    hidden: Option<PathBuf>,
}

impl NewFile {
    /// Makes the file that will have this path, with mode 0600 or less.
    ///
    /// # Errors
    /// [`Refused`], before anything is changed.
    pub fn open(path: &Path, last: Last) -> Result<NewFile, Refused> {
        let reached = match last {
            Last::FollowOwn => reach(path, Final::Follow)?,
            Last::RegularOnly => reach(path, Final::Keep)?,
        };
        NewFile::at(reached)
    }

    pub(crate) fn at(reached: Reached) -> Result<NewFile, Refused> {
        if let Some(there) = &reached.there {
            match kind(there) {
                SFlag::S_IFREG => {}
                SFlag::S_IFDIR => return Err(Refused::Directory),
                _ => return Err(Refused::Special),
            }
            // The rename at the end would fail, and all work would be lost.
            let folder = fstat(&reached.folder)?;
            let own = geteuid();
            let mine = own.is_root() || [there.st_uid, folder.st_uid].contains(&own.as_raw());
            if folder.st_mode & libc::S_ISVTX != 0 && !mine {
                return Err(Errno::EPERM.into());
            }
        }
        let Reached { folder, name, .. } = reached;
        let (file, hidden) = match nameless(&folder)? {
            Some(file) => (file, None),
            None => {
                let (file, hidden) = named(&folder)?;
                (file, Some(hidden))
            }
        };
        let place = Arc::new(Place {
            file: file.as_raw_fd(),
            folder,
            name,
            hidden,
        });
        Ok(NewFile {
            file,
            number: finisher::note(&place),
            place,
            is_real: false,
        })
    }

    /// What is written to.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives it its name. What had the name is replaced.
    ///
    /// # Errors
    /// When the file system refuses; then what was there stays.
    pub fn finish(mut self) -> Result<(), Refused> {
        match finisher::finish(self.number) {
            Some(done) => done?,
            None => self.place.make_real()?,
        }
        self.is_real = true;
        Ok(())
    }

    /// The same, and returns when file and name are on the disk.
    ///
    /// # Errors
    /// As above.
    pub fn finish_on_disk(self) -> Result<(), Refused> {
        self.file.sync_all()?;
        let folder = openat(
            &self.place.folder,
            ".",
            OFlag::O_RDONLY | OFlag::O_CLOEXEC,
            Mode::empty(),
        );
        self.finish()?;
        // The name is only safe with its folder. Not every file system can do that, and not every folder may be read.
        if let Ok(folder) = folder {
            File::from(folder).sync_all().ok();
        }
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        finisher::forget(self.number);
        if !self.is_real {
            self.place.clear();
        }
    }
}

impl Place {
    /// What it has open.
    pub(crate) fn descriptors(&self) -> [RawFd; 2] {
        [self.file, self.folder.as_raw_fd()]
    }

    /// Gives the file its name. What had the name is replaced.
    pub(crate) fn make_real(&self) -> Result<(), Errno> {
        let given = match &self.hidden {
            Some(_) => None,
            None => Some(self.give_hidden_name()?),
        };
        let hidden = self
            .hidden
            .as_ref()
            .or(given.as_ref())
            .expect("one of them is there");
        let renamed = renameat(&self.folder, hidden, &self.folder, self.name.as_os_str());
        if let (Err(_), Some(given)) = (renamed, &given) {
            unlinkat(&self.folder, given, UnlinkatFlags::NoRemoveDir).ok();
        }
        renamed
    }

    /// Removes the hidden name.
    pub(crate) fn clear(&self) {
        if let Some(hidden) = &self.hidden {
            unlinkat(&self.folder, hidden, UnlinkatFlags::NoRemoveDir).ok();
        }
    }

    /// A file without a name gets one by a link to it; a link replaces nothing, so it can't be the last name at once.
    fn give_hidden_name(&self) -> Result<PathBuf, Errno> {
        let file = of_descriptor(self.file);
        for _ in 0..TRIES {
            let hidden = hidden_name();
            match linkat(AT_FDCWD, &file, &self.folder, &hidden, AtFlags::AT_SYMLINK_FOLLOW) {
                Ok(()) => return Ok(hidden),
                Err(Errno::EEXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno::EEXIST)
    }
}

/// A file without a name; `None` where this file system, or a machine without `/proc`, can't give it one later.
fn nameless(folder: &OwnedFd) -> Result<Option<File>, Refused> {
    let how = OFlag::O_TMPFILE | OFlag::O_RDWR | OFlag::O_CLOEXEC;
    let file = match openat(folder, ".", how, OWNER_ONLY) {
        Ok(file) => File::from(file),
        // Kernels and file systems that don't know it answer with one of these.
        Err(Errno::EOPNOTSUPP | Errno::EISDIR | Errno::EINVAL | Errno::ENOENT | Errno::ENOSYS) => {
            return Ok(None);
        }
        Err(errno) => return Err(errno.into()),
    };
    Ok(of_descriptor(file.as_raw_fd()).exists().then_some(file))
}

fn named(folder: &OwnedFd) -> Result<(File, PathBuf), Refused> {
    let how = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_RDWR | OFlag::O_CLOEXEC;
    for _ in 0..TRIES {
        let hidden = hidden_name();
        match openat(folder, &hidden, how, OWNER_ONLY) {
            Ok(file) => return Ok((file.into(), hidden)),
            Err(Errno::EEXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(Errno::EEXIST.into())
}

/// A name that nobody can foresee: the standard library seeds its hash tables from the kernel's randomness.
fn hidden_name() -> PathBuf {
    let drawn = RandomState::new().hash_one(std::process::id());
    PathBuf::from(format!("{PREFIX}{drawn:016x}"))
}

fn of_descriptor(file: RawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{file}"))
}
