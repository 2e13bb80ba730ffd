//! A FUSE file system with one file, whose daemon becomes mute: it reads requests then, and answers none.
//!
//! It lives in a mount namespace of the calling thread, so that nothing of it stays. Requests are answered one at a time: the kernel is
//! told that it must not read ahead by itself, and so whoever needs a page waits for the answer in a way that no signal ends.

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Numbers of requests, as `linux/fuse.h` has them.
const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const READ: u32 = 15;
const WRITE: u32 = 16;
const RELEASE: u32 = 18;
const FLUSH: u32 = 25;
const INIT: u32 = 26;
const OPENDIR: u32 = 27;
const RELEASEDIR: u32 = 29;
const INTERRUPT: u32 = 36;
const BATCH_FORGET: u32 = 42;

/// `FUSE_NOTIFY_INVAL_INODE`.
const FORGET_PAGES: i32 = 2;

/// The file's node; the root's is 1.
const NODE: u64 = 2;

const REQUEST_MAX: usize = 1 << 20;

/// The file system.
pub(crate) struct Mute {
    folder: tempfile::TempDir,
    device: Arc<File>,
    mute: Arc<AtomicBool>,
}

impl Mute {
    /// Mounts it for this thread and the children that it makes; its file `data` has these contents.
    pub(crate) fn mount(contents: Vec<u8>) -> Mute {
        unshare(CloneFlags::CLONE_NEWNS).unwrap();
        let none: Option<&str> = None;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let device = File::options().read(true).write(true).open("/dev/fuse").unwrap();
        let options = format!(
            "fd={},rootmode=40755,user_id=0,group_id=0,allow_other",
            device.as_raw_fd()
        );
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        std::fs::create_dir(folder.path().join("mnt")).unwrap();
        let at = folder.path().join("mnt");
        mount(
            Some("mute"),
            &at,
            Some("fuse.mute"),
            flags,
            Some(options.as_str()),
        )
        .unwrap();
        let (device, mute) = (Arc::new(device), Arc::new(AtomicBool::new(false)));
        let (of_thread, is_mute) = (Arc::clone(&device), Arc::clone(&mute));
        std::thread::spawn(move || serve(&of_thread, &is_mute, &contents));
        Mute { folder, device, mute }
    }

    /// A place beside it that is not on it.
    pub(crate) fn beside(&self) -> &Path {
        self.folder.path()
    }

    /// Where it is mounted.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("mnt")
    }

    /// Its file.
    pub(crate) fn file(&self) -> PathBuf {
        self.root().join("data")
    }

    /// From now on no request is answered, and no page of the file is in memory.
    pub(crate) fn become_mute(&self) {
        self.mute.store(true, Ordering::SeqCst);
        let mut what = Vec::new();
        what.extend(NODE.to_ne_bytes());
        what.extend(0_i64.to_ne_bytes());
        what.extend(0_i64.to_ne_bytes());
        // The kernel refuses it where it knows nothing of the file.
        send(&self.device, FORGET_PAGES, 0, &what).unwrap();
    }

    /// The same, and the kernel keeps the pages.
    pub(crate) fn become_mute_with_pages(&self) {
        self.mute.store(true, Ordering::SeqCst);
    }

    /// Ends all requests, as the end of a daemon does.
    pub(crate) fn end(&self) {
        umount2(&self.root(), MntFlags::MNT_FORCE | MntFlags::MNT_DETACH).unwrap();
    }
}

impl Drop for Mute {
    fn drop(&mut self) {
        umount2(&self.root(), MntFlags::MNT_FORCE | MntFlags::MNT_DETACH).ok();
    }
}

fn send(device: &File, error: i32, unique: u64, body: &[u8]) -> std::io::Result<()> {
    let mut message = Vec::new();
    message.extend((16 + body.len() as u32).to_ne_bytes());
    message.extend(error.to_ne_bytes());
    message.extend(unique.to_ne_bytes());
    message.extend(body);
    let mut device = device;
    device.write_all(&message)
}

fn serve(device: &File, mute: &AtomicBool, contents: &[u8]) {
    let mut request = vec![0; REQUEST_MAX];
    let mut from = device;
    // Until it is unmounted.
    while let Ok(length) = from.read(&mut request) {
        let word = |at: usize| u32::from_ne_bytes(request[at..at + 4].try_into().unwrap());
        let long = |at: usize| u64::from_ne_bytes(request[at..at + 8].try_into().unwrap());
        let (kind, unique, node) = (word(4), long(8), long(16));
        if [FORGET, BATCH_FORGET, INTERRUPT].contains(&kind) || mute.load(Ordering::SeqCst) {
            continue;
        }
        let answer = match kind {
            INIT => {
                let mut answer = Vec::new();
                // Version 7.31, nothing read ahead, no flags, writes of a page, times in nanoseconds.
                for value in [7, 31, 0, 0, 0, 4096, 1_u32] {
                    answer.extend(value.to_ne_bytes());
                }
                answer.resize(64, 0);
                Ok(answer)
            }
            LOOKUP if request[40..length].starts_with(b"data\0") => {
                let mut answer = Vec::new();
                // Its number, and for how long that is known: for no time.
                for value in [NODE, 0, 0, 0, 0] {
                    answer.extend(value.to_ne_bytes());
                }
                answer.extend(attributes(NODE, contents.len()));
                Ok(answer)
            }
            GETATTR => {
                let mut answer = vec![0; 16];
                answer.extend(attributes(node, contents.len()));
                Ok(answer)
            }
            // `FOPEN_KEEP_CACHE`.
            OPEN | OPENDIR => Ok([[0; 8], 2_u64.to_ne_bytes()].concat()),
            READ => {
                let (from, size) = (long(48) as usize, word(56) as usize);
                let end = contents.len().min(from + size);
                Ok(contents.get(from..end).unwrap_or_default().to_vec())
            }
            WRITE => Ok([word(56).to_ne_bytes(), [0; 4]].concat()),
            RELEASE | RELEASEDIR | FLUSH => Ok(Vec::new()),
            LOOKUP => Err(libc::ENOENT),
            _ => Err(libc::ENOSYS),
        };
        // Whoever asked may have been interrupted meanwhile.
        match answer {
            Ok(answer) => send(device, 0, unique, &answer).ok(),
            Err(errno) => send(device, -errno, unique, &[]).ok(),
        };
    }
}

fn attributes(node: u64, size: usize) -> Vec<u8> {
    let (mode, size) = match node {
        NODE => (libc::S_IFREG | 0o755, size as u64),
        _ => (libc::S_IFDIR | 0o755, 4096),
    };
    let mut bytes = Vec::new();
    for value in [node, size, size.div_ceil(512), 0, 0, 0] {
        bytes.extend(value.to_ne_bytes());
    }
    for value in [0, 0, 0, mode, 1, 0, 0, 0, 4096, 0_u32] {
        bytes.extend(value.to_ne_bytes());
    }
    bytes
}
