//! What is mounted in a room: `/proc` of its own, files and texts in the place of others, memory over a directory.
//!
//! In: [`Mount`]s. Out: a [`Mounter`] with every string ready, because what mounts is a process between fork and exec: system calls only.

use super::room::Step;
use anyhow::Context;
use nix::unistd::geteuid;
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Something to be mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mount {
    /// A file in the place of another.
    Bind { from: PathBuf, over: PathBuf },
    /// A file with this text in the place of another; no file outside has it.
    Text { text: Vec<u8>, over: PathBuf },
    /// What is written below the directory stays in memory: at most so many bytes.
    Memory { over: PathBuf, most: u64 },
}

/// All of it, ready.
pub(super) struct Mounter {
    texts: Vec<Text>,
    ready: Vec<Ready>,
}

/// A text, where it is written to, and what it takes the place of.
struct Text {
    text: Vec<u8>,
    at: CString,
    over: CString,
}

enum Ready {
    Bind {
        from: CString,
        over: CString,
    },
    Memory {
        over: CString,
        /// Of the tmpfs.
        options: CString,
        upper: CString,
        work: CString,
        /// Only root can make it somebody's: a user namespace has no others.
        owner: Option<(u32, u32)>,
        mode: u32,
        userxattr: bool,
    },
}

/// Descriptors that the layers have while they are put together, in the keeper, which needs none of those that it was born with but
/// the two that it has moved below these.
const LOWER: i32 = 10;
const UPPER: i32 = 11;
const WORK: i32 = 12;

/// Where the layers are. A path may have commas and colons, which mean something in these options; descriptors have none.
///
/// redirect_dir: a directory that was there before can be renamed, as on any file system. volatile is not asked for: memory makes no
/// difference, and a kernel before 5.10 does not know it.
const LAYERS: &CStr =
    c"lowerdir=/proc/self/fd/10,upperdir=/proc/self/fd/11,workdir=/proc/self/fd/12,redirect_dir=on,index=off";
/// The same for one who is not root: a directory that was there before can't be renamed (EXDEV).
const LAYERS_OF_USER: &CStr =
    c"lowerdir=/proc/self/fd/10,upperdir=/proc/self/fd/11,workdir=/proc/self/fd/12,userxattr";

impl Mounter {
    /// Prepares it.
    ///
    /// # Errors
    /// When a directory is not there.
    pub(super) fn new(mounts: &[Mount]) -> anyhow::Result<Mounter> {
        let mut texts = Vec::new();
        let mut ready = Vec::new();
        for mount in mounts {
            match mount {
                Mount::Bind { from, over } => ready.push(Ready::Bind {
                    from: c_path(from)?,
                    over: c_path(over)?,
                }),
                Mount::Text { text, over } => texts.push(Text {
                    text: text.clone(),
                    at: c_path(&Path::new("/proc").join(format!("text.{}", texts.len())))?,
                    over: c_path(over)?,
                }),
                Mount::Memory { over, most } => {
                    let about =
                        std::fs::metadata(over).with_context(|| format!("cannot look at {over:?}"))?;
                    let root = geteuid().is_root();
                    ready.push(Ready::Memory {
                        upper: c_path(&over.join("upper"))?,
                        work: c_path(&over.join("work"))?,
                        over: c_path(over)?,
                        options: CString::new(format!("size={most},mode=0700")).expect("no NUL is in it"),
                        owner: root.then(|| (about.uid(), about.gid())),
                        mode: about.mode() & 0o7777,
                        userxattr: !root,
                    });
                }
            }
        }
        Ok(Mounter { texts, ready })
    }

    /// Mounts all of it, in the calling process's mount namespace; with errno set where it fails. Async-signal-safe.
    pub(super) fn mount(&self) -> Result<(), Step> {
        let private = libc::MS_REC | libc::MS_PRIVATE;
        if !mount(c"none", c"/", c"", private, None) {
            return Err(Step::Namespaces);
        }
        if !self.texts.is_empty() && !put_texts(&self.texts) {
            return Err(Step::Mounts);
        }
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        if !mount(c"proc", c"/proc", c"proc", flags, None) {
            return Err(Step::Proc);
        }
        match self.ready.iter().all(Ready::mount) {
            true => Ok(()),
            false => Err(Step::Mounts),
        }
    }
}

impl Ready {
    fn mount(&self) -> bool {
        match self {
            Ready::Bind { from, over } => mount(from, over, c"", libc::MS_BIND, None),
            Ready::Memory {
                over,
                options,
                upper,
                work,
                owner,
                mode,
                userxattr,
            } => {
                let layers = if *userxattr { LAYERS_OF_USER } else { LAYERS };
                // The memory is mounted over the directory first, for want of another place, and the overlay over both.
                // SAFETY: NUL-terminated paths and integers.
                unsafe {
                    open_as(over, LOWER)
                        && mount(c"holdup", over, c"tmpfs", libc::MS_NODEV, Some(options))
                        && libc::mkdir(upper.as_ptr(), 0o700) == 0
                        && libc::mkdir(work.as_ptr(), 0o700) == 0
                        && owner.is_none_or(|(uid, gid)| libc::chown(upper.as_ptr(), uid, gid) == 0)
                        && libc::chmod(upper.as_ptr(), *mode) == 0
                        && open_as(upper, UPPER)
                        && open_as(work, WORK)
                        && mount(c"holdup", over, c"overlay", 0, Some(layers))
                }
            }
        }
    }
}

/// Writes them into memory and binds them to where they belong; then that memory has no other name. It is mounted over `/proc`, which
/// every machine has and which is about to be covered anyway.
fn put_texts(texts: &[Text]) -> bool {
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    // SAFETY: a NUL-terminated path and an integer.
    mount(c"holdup", c"/proc", c"tmpfs", flags, Some(c"mode=0755"))
        && texts
            .iter()
            .all(|one| write(&one.at, &one.text) && mount(&one.at, &one.over, c"", libc::MS_BIND, None))
        && unsafe { libc::umount2(c"/proc".as_ptr(), libc::MNT_DETACH) } == 0
}

/// A new file that everybody may read. Async-signal-safe.
fn write(path: &CStr, text: &[u8]) -> bool {
    // SAFETY: a NUL-terminated path, and a buffer with its length.
    unsafe {
        let file = libc::open(
            path.as_ptr(),
            libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC,
            0o644,
        );
        let written = libc::write(file, text.as_ptr().cast(), text.len());
        // Whatever mask holdup was started with.
        libc::fchmod(file, 0o644) == 0 && libc::close(file) == 0 && usize::try_from(written) == Ok(text.len())
    }
}

/// Opens a directory as this descriptor. Async-signal-safe.
fn open_as(path: &CStr, number: i32) -> bool {
    // SAFETY: a NUL-terminated path and integers.
    unsafe {
        let directory = libc::open(path.as_ptr(), libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC);
        directory >= 0
            && libc::dup3(directory, number, libc::O_CLOEXEC) == number
            && libc::close(directory) == 0
    }
}

fn mount(source: &CStr, target: &CStr, kind: &CStr, flags: libc::c_ulong, options: Option<&CStr>) -> bool {
    let options = options.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: NUL-terminated strings, or none.
    unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            kind.as_ptr(),
            flags,
            options.cast(),
        ) == 0
    }
}

fn c_path(path: &Path) -> anyhow::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).context("a path contains a NUL byte")
}
