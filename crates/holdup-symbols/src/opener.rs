//! Finding the file behind a mapping.
//!
//! The path of a mapping is what the observed process calls it, in its own mount namespace, and by now
//! something else may be there. So the kernel's own link to the mapped file is tried first, then the path
//! under the process's root, then the path as we see it, and whatever is found counts only if it is the
//! regular file that the mapping names by device and inode. The kernel's link waits for the lock of the process's memory
//! map, and the path for the file systems on its way, so they are two questions: whoever asks knows which of the two is late.
//! How a file is opened is in `open`. File systems that are known to block are not touched at all (see `mounts`).
//! In: a process and a mapping. Out: the place of its file.

use crate::maps::Mapping;
use crate::mounts::Mounts;
use crate::open::{is_regular, place};
use nix::sys::stat::{major, minor};
use nix::sys::statfs::{BTRFS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, fstatfs};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The kernel names a mapped file whose path is gone with this.
pub(crate) const DELETED: &str = " (deleted)";

/// Finds the file behind a mapping.
#[derive(Debug)]
pub(crate) struct Opener {
    pub(crate) proc: PathBuf,
}

impl Opener {
    /// The place of a mapping's file, by the kernel's link. Waits while the process's memory map is locked.
    pub(crate) fn by_link(&self, pid: u32, mapping: &Mapping) -> Option<File> {
        self.both_mounts(pid, mapping)?;
        let range = format!("{:x}-{:x}", mapping.start, mapping.end);
        place_of(&self.process(pid).join("map_files").join(range), mapping)
    }

    /// The place of a mapping's file, by its path. Waits for the file systems on the way.
    pub(crate) fn by_path(&self, pid: u32, mapping: &Mapping) -> Option<File> {
        let (ours, theirs) = self.both_mounts(pid, mapping)?;
        let path = &mapping.path;
        if !path.starts_with('/') || path.ends_with(DELETED) || theirs.remote_path(path) {
            return None;
        }
        let under_root = self.process(pid).join("root").join(path.trim_start_matches('/'));
        let direct = || {
            (!ours.remote_path(path))
                .then(|| place_of(Path::new(path), mapping))
                .flatten()
        };
        place_of(&under_root, mapping).or_else(direct)
    }

    fn process(&self, pid: u32) -> PathBuf {
        self.proc.join(pid.to_string())
    }

    /// Whether the mapping's file is on a file system that may block for ever; such a file must not be touched.
    pub(crate) fn may_block(&self, pid: u32, mapping: &Mapping) -> bool {
        let both = [self.mounts("self"), self.mounts(&pid.to_string())];
        both.iter().any(|mounts| mounts.remote_device(mapping.device))
    }

    /// What we have mounted and what they have; nothing if the file is on a file system that may block.
    fn both_mounts(&self, pid: u32, mapping: &Mapping) -> Option<(Mounts, Mounts)> {
        let ours = self.mounts("self");
        let theirs = self.mounts(&pid.to_string());
        if ours.remote_device(mapping.device) || theirs.remote_device(mapping.device) {
            return None;
        }
        // A file system without a block device (major 0) that neither of us has mounted could be anything.
        if mapping.device.0 == 0 && !ours.lists(mapping.device) && !theirs.lists(mapping.device) {
            return None;
        }
        Some((ours, theirs))
    }

    fn mounts(&self, process: &str) -> Mounts {
        let text = fs::read(self.proc.join(process).join("mountinfo")).unwrap_or_default();
        Mounts::parse(&String::from_utf8_lossy(&text))
    }
}

/// The place of `path` if it is the regular file that `mapping` names.
fn place_of(path: &Path, mapping: &Mapping) -> Option<File> {
    place(path, 0).filter(|place| is_regular(place) && is_mapped(place, mapping).unwrap_or(false))
}

fn is_mapped(place: &File, mapping: &Mapping) -> Option<bool> {
    let found = place.metadata().ok()?;
    let device = (
        u32::try_from(major(found.dev())).ok()?,
        u32::try_from(minor(found.dev())).ok()?,
    );
    if device != mapping.device {
        // These two give a file another device number by stat than the mapping has.
        let kind = fstatfs(place).ok()?.filesystem_type();
        if kind != OVERLAYFS_SUPER_MAGIC && kind != BTRFS_SUPER_MAGIC {
            return None;
        }
    }
    Some(found.ino() == mapping.inode)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    pub(crate) const PID: u32 = 42;

    /// A proc file system made of files, in which process 42 has mapped `program` from `mounted`'s device.
    pub(crate) struct Stage {
        pub(crate) directory: TempDir,
        pub(crate) program: PathBuf,
    }

    impl Stage {
        pub(crate) fn new() -> Self {
            let directory = TempDir::new().unwrap();
            let program = directory.path().join("program");
            fs::copy("/bin/sleep", &program).unwrap();
            fs::create_dir_all(directory.path().join("42/map_files")).unwrap();
            fs::create_dir_all(directory.path().join("self")).unwrap();
            let stage = Self { directory, program };
            let (major, minor) = stage.mapping().device;
            stage.mount("self", &format!("{major}:{minor} / / rw - ext4 /dev/x rw"));
            stage
        }

        /// Lists one more mount for `process`.
        fn mount(&self, process: &str, fields: &str) {
            let path = self.directory.path().join(process).join("mountinfo");
            let before = fs::read_to_string(&path).unwrap_or_default();
            fs::write(&path, format!("{before}1 1 {fields}\n")).unwrap();
        }

        pub(crate) fn mapping(&self) -> Mapping {
            let found = fs::metadata(&self.program).unwrap();
            Mapping {
                start: 0x1000,
                end: 0x2000,
                offset: 0,
                path: self.program.to_str().unwrap().to_owned(),
                device: (major(found.dev()) as u32, minor(found.dev()) as u32),
                inode: found.ino(),
            }
        }

        fn open(&self, mapping: &Mapping) -> Option<File> {
            let opener = Opener {
                proc: self.directory.path().to_owned(),
            };
            opener
                .by_link(PID, mapping)
                .or_else(|| opener.by_path(PID, mapping))
        }
    }

    #[test]
    fn the_path_serves_where_the_process_is_gone() {
        let stage = Stage::new();
        assert!(stage.open(&stage.mapping()).is_some());
    }

    #[test]
    fn the_kernels_link_to_the_mapped_file_comes_first() {
        let stage = Stage::new();
        symlink(
            &stage.program,
            stage.directory.path().join("42/map_files/1000-2000"),
        )
        .unwrap();
        let elsewhere = Mapping {
            path: "/gone (deleted)".to_owned(),
            ..stage.mapping()
        };
        assert!(stage.open(&elsewhere).is_some());
        let unlinked = Mapping {
            end: 0x3000,
            ..elsewhere
        };
        assert!(stage.open(&unlinked).is_none());
    }

    #[test]
    fn the_root_of_the_process_comes_before_ours() {
        let stage = Stage::new();
        let inside = Mapping {
            path: "/program".to_owned(),
            ..stage.mapping()
        };
        assert!(stage.open(&inside).is_none());
        symlink(stage.directory.path(), stage.directory.path().join("42/root")).unwrap();
        assert!(stage.open(&inside).is_some());
    }

    #[test]
    fn another_file_at_the_path_is_refused() {
        let stage = Stage::new();
        let mapping = stage.mapping();
        assert!(
            stage
                .open(&Mapping {
                    inode: mapping.inode + 1,
                    ..mapping.clone()
                })
                .is_none()
        );
        let device = (mapping.device.0 + 1, mapping.device.1);
        let kind = fstatfs(File::open(&stage.program).unwrap())
            .unwrap()
            .filesystem_type();
        let by_inode_alone = kind == OVERLAYFS_SUPER_MAGIC || kind == BTRFS_SUPER_MAGIC;
        assert_eq!(
            stage.open(&Mapping { device, ..mapping }).is_some(),
            by_inode_alone
        );
    }

    #[test]
    fn what_is_no_regular_file_is_not_opened() {
        let mut stage = Stage::new();
        stage.program = stage.directory.path().join("fifo");
        nix::unistd::mkfifo(&stage.program, nix::sys::stat::Mode::S_IRWXU).unwrap();
        // Nobody writes to the FIFO: a plain open would never come back.
        assert!(stage.open(&stage.mapping()).is_none());
    }

    #[test]
    fn file_systems_that_can_block_are_not_touched() {
        for process in ["self", "42"] {
            let stage = Stage::new();
            let (major, minor) = stage.mapping().device;
            stage.mount(
                process,
                &format!("{major}:{minor} / /mnt rw - fuse.sshfs host: rw"),
            );
            assert!(stage.open(&stage.mapping()).is_none());
        }
        // The file is elsewhere, but the way to its path leads through one.
        let stage = Stage::new();
        let point = stage.directory.path().display().to_string();
        stage.mount("self", &format!("0:999 / {point} rw - nfs4 server:/ rw"));
        assert!(stage.open(&stage.mapping()).is_none());
    }

    #[test]
    fn a_device_that_nobody_has_mounted_counts_only_with_a_major_number() {
        let stage = Stage::new();
        assert!(
            stage
                .open(&Mapping {
                    device: (0, 9999),
                    ..stage.mapping()
                })
                .is_none()
        );
    }
}
