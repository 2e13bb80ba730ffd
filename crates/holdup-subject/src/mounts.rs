//! What is mounted in a room: `/proc` of its own, files and texts in the place of others, memory over a directory.
//!
//! In: [`Mount`]s. Out: a [`Mounter`] with every string ready, because what mounts is a process between fork and exec: system calls only.
//! What is ours is made in memory that is mounted over `/proc` for the moment, in a mount namespace of its own: nobody else can reach it.

use super::overlay::{Overlay, Refused};
use super::room::Step;
use anyhow::Context;
use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Something to be mounted.
#[derive(Debug, Clone)]
pub enum Mount {
    /// A file in the place of another.
    Bind {
        /// What is mounted.
        from: PathBuf,
        /// Where.
        over: PathBuf,
    },
    /// A file with this text in the place of another; no file outside has it.
    Text {
        /// What it says.
        text: Vec<u8>,
        /// Where.
        over: PathBuf,
    },
    /// What is written below the directory stays in memory: at most so many bytes.
    Memory {
        /// The directory.
        over: PathBuf,
        /// The directory that this path led to when it was looked at.
        held: Arc<OwnedFd>,
        /// Bytes at most.
        most: u64,
    },
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
    Bind { from: CString, over: CString },
    Memory(Overlay),
}

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
                Mount::Memory { over, held, most } => {
                    ready.push(Ready::Memory(Overlay::new(c_path(over)?, held, *most)?));
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
        for ready in &self.ready {
            if let Ready::Memory(overlay) = ready {
                overlay.mount().map_err(|refused| match refused {
                    Refused::Exchanged => Step::Exchanged,
                    Refused::Kernel => Step::Mounts,
                })?;
            }
        }
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        if !mount(c"proc", c"/proc", c"proc", flags, None) {
            return Err(Step::Proc);
        }
        match self.ready.iter().all(Ready::bind) {
            true => Ok(()),
            false => Err(Step::Mounts),
        }
    }
}

impl Ready {
    fn bind(&self) -> bool {
        match self {
            Ready::Bind { from, over } => mount(from, over, c"", libc::MS_BIND, None),
            Ready::Memory(_) => true,
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

pub(super) fn mount(
    source: &CStr,
    target: &CStr,
    kind: &CStr,
    flags: libc::c_ulong,
    options: Option<&CStr>,
) -> bool {
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
