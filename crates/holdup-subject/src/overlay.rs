//! Memory over a directory of anybody's: what is written below it stays in memory.
//!
//! In: a directory that holdup holds open, and the path that led to it. Out, in the keeper of a room: an overlay over that directory and
//! no other, with its upper layer in memory that only the keeper can reach. The path is resolved once more, because a mount needs the
//! directory as this mount namespace has it, and what is found must be the directory that is held: same device, same inode. From then on
//! there is a descriptor and no path.

use super::mounts::mount;
use super::room::MEMORY;
use anyhow::Context;
use nix::sys::stat::fstat;
use nix::sys::statvfs::fstatvfs;
use nix::unistd::geteuid;
use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;

/// All that is needed, ready.
pub(super) struct Overlay {
    over: CString,
    /// Device and inode.
    held: (u64, u64),
    /// Of the memory.
    options: CString,
    /// Only root can make it somebody's: a user namespace has no others.
    owner: Option<(u32, u32)>,
    mode: u32,
    /// Of the mount that the directory is on: what may not be executed there with another user's rights may not be here either.
    attributes: u32,
}

/// Why it was not mounted.
pub(super) enum Refused {
    /// The path leads to another directory, or by a link.
    Exchanged,
    /// errno says why.
    Kernel,
}

/// Where the layers are made, in memory that covers `/proc` meanwhile.
const MADE_AT: &CStr = c"/proc";
const UPPER: &CStr = c"/proc/upper";
const WORK: &CStr = c"/proc/work";

/// The layers. The working directory is the one below: a path may have commas and colons, which mean something in these options.
const LAYERS: [(&CStr, &CStr); 4] = [
    (c"source", c"holdup"),
    (c"lowerdir", c"."),
    (c"upperdir", UPPER),
    (c"workdir", WORK),
];

/// redirect_dir: a directory that was there before can be renamed, as on any file system. volatile is not asked for: memory makes no
/// difference, and a kernel before 5.10 does not know it.
const OF_ROOT: [(&CStr, &CStr); 2] = [(c"redirect_dir", c"on"), (c"index", c"off")];
/// For one who is not root a directory that was there before can't be renamed (EXDEV).
const OF_USER: &CStr = c"userxattr";

/// linux/mount.h, which the C library does not have in full.
const FSOPEN_CLOEXEC: u32 = 1;
const FSCONFIG_SET_FLAG: u32 = 0;
const FSCONFIG_SET_STRING: u32 = 1;
const FSCONFIG_CMD_CREATE: u32 = 6;
const FSMOUNT_CLOEXEC: u32 = 1;
const MOUNT_ATTR_NOSUID: u32 = 2;
const MOUNT_ATTR_NODEV: u32 = 4;
const MOUNT_ATTR_NOEXEC: u32 = 8;
const MOVE_MOUNT_F_EMPTY_PATH: u32 = 0x04;
const MOVE_MOUNT_T_EMPTY_PATH: u32 = 0x40;

/// linux/openat2.h.
#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

impl Overlay {
    /// Prepares it: `over` is the path of the directory that is held.
    ///
    /// # Errors
    /// When the directory can't be looked at.
    pub(super) fn new(over: CString, held: &OwnedFd, most: u64) -> anyhow::Result<Overlay> {
        let about = fstat(held).context("cannot look at the directory of --memory")?;
        let on = fstatvfs(held).context("cannot look at the file system of --memory")?;
        let root = geteuid().is_root();
        let flags = on.flags();
        let attributes = [
            (nix::sys::statvfs::FsFlags::ST_NOSUID, MOUNT_ATTR_NOSUID),
            (nix::sys::statvfs::FsFlags::ST_NODEV, MOUNT_ATTR_NODEV),
            (nix::sys::statvfs::FsFlags::ST_NOEXEC, MOUNT_ATTR_NOEXEC),
        ];
        let attributes = attributes.into_iter().filter(|(flag, _)| flags.contains(*flag));
        Ok(Overlay {
            over,
            held: (about.st_dev, about.st_ino),
            options: CString::new(format!("size={most},mode=0700")).expect("no NUL is in it"),
            owner: root.then_some((about.st_uid, about.st_gid)),
            mode: about.st_mode & 0o7777,
            attributes: attributes.map(|(_, attribute)| attribute).sum(),
        })
    }

    /// Mounts it, and leaves its root open as [`MEMORY`]. Async-signal-safe.
    pub(super) fn mount(&self) -> Result<(), Refused> {
        let made =
            mount(c"holdup", MADE_AT, c"tmpfs", libc::MS_NODEV, Some(&self.options)) && self.make_layers();
        let directory = made.then(|| self.open()).ok_or(Refused::Kernel)??;
        // SAFETY: a descriptor of a directory.
        let there = unsafe { libc::fchdir(directory) } == 0;
        let mounted = there && self.put_over(directory);
        // SAFETY: NUL-terminated paths and integers.
        let gone = mounted
            && unsafe {
                libc::close(directory) == 0
                    && libc::umount2(MADE_AT.as_ptr(), libc::MNT_DETACH) == 0
                    && libc::chdir(c"/".as_ptr()) == 0
            };
        if gone { Ok(()) } else { Err(Refused::Kernel) }
    }

    /// The upper layer is what the directory will seem to be, so it has its owner and mode. Async-signal-safe.
    fn make_layers(&self) -> bool {
        let how = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // SAFETY: NUL-terminated paths, integers, and a descriptor that is closed where it was opened.
        unsafe {
            if libc::mkdir(UPPER.as_ptr(), 0o700) != 0 || libc::mkdir(WORK.as_ptr(), 0o700) != 0 {
                return false;
            }
            let upper = libc::open(UPPER.as_ptr(), how);
            upper >= 0
                && self
                    .owner
                    .is_none_or(|(uid, gid)| libc::fchown(upper, uid, gid) == 0)
                && libc::fchmod(upper, self.mode) == 0
                && libc::close(upper) == 0
        }
    }

    /// The directory in this mount namespace, if it is still the one that is held. Async-signal-safe.
    fn open(&self) -> Result<i32, Refused> {
        let how = OpenHow {
            flags: u64::from((libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC).cast_unsigned()),
            mode: 0,
            resolve: libc::RESOLVE_NO_SYMLINKS | libc::RESOLVE_NO_MAGICLINKS,
        };
        // SAFETY: a NUL-terminated path, and structs of the length that is said, of which one may be all zero.
        unsafe {
            let opened = libc::syscall(
                libc::SYS_openat2,
                libc::AT_FDCWD,
                self.over.as_ptr(),
                &raw const how,
                size_of::<OpenHow>(),
            );
            let Ok(opened @ 0..) = i32::try_from(opened) else {
                return Err(match *libc::__errno_location() {
                    libc::ENOENT | libc::ENOTDIR | libc::ELOOP => Refused::Exchanged,
                    _ => Refused::Kernel,
                });
            };
            let mut about: libc::stat = std::mem::zeroed();
            if libc::fstat(opened, &raw mut about) != 0 {
                return Err(Refused::Kernel);
            }
            match (about.st_dev, about.st_ino) == self.held {
                true => Ok(opened),
                false => Err(Refused::Exchanged),
            }
        }
    }

    /// An overlay with the working directory below, on this directory. Async-signal-safe.
    fn put_over(&self, directory: i32) -> bool {
        let configured = |context: i32| {
            let root = self.owner.is_some();
            LAYERS.iter().all(|(key, value)| set(context, key, value))
                && (!root || OF_ROOT.iter().all(|(key, value)| set(context, key, value)))
                && (root || configure(context, FSCONFIG_SET_FLAG, Some(OF_USER), None))
                && configure(context, FSCONFIG_CMD_CREATE, None, None)
        };
        // SAFETY: NUL-terminated strings, integers, and descriptors that these calls gave.
        unsafe {
            let context = descriptor(libc::syscall(
                libc::SYS_fsopen,
                c"overlay".as_ptr(),
                FSOPEN_CLOEXEC,
            ));
            if context < 0 || !configured(context) {
                return false;
            }
            let mounted = descriptor(libc::syscall(
                libc::SYS_fsmount,
                context,
                FSMOUNT_CLOEXEC,
                self.attributes,
            ));
            mounted >= 0
                && libc::syscall(
                    libc::SYS_move_mount,
                    mounted,
                    c"".as_ptr(),
                    directory,
                    c"".as_ptr(),
                    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH,
                ) == 0
                && libc::dup3(mounted, MEMORY, libc::O_CLOEXEC) == MEMORY
                && libc::close(mounted) == 0
                && libc::close(context) == 0
        }
    }
}

fn set(context: i32, key: &CStr, value: &CStr) -> bool {
    configure(context, FSCONFIG_SET_STRING, Some(key), Some(value))
}

fn configure(context: i32, command: u32, key: Option<&CStr>, value: Option<&CStr>) -> bool {
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: a descriptor, integers, and NUL-terminated strings or none, as each command wants them.
    unsafe {
        libc::syscall(
            libc::SYS_fsconfig,
            context,
            command,
            pointer(key),
            pointer(value),
            0,
        ) == 0
    }
}

fn descriptor(returned: libc::c_long) -> i32 {
    i32::try_from(returned).unwrap_or(-1)
}
