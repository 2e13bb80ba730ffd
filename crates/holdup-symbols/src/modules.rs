//! The files that code came from.
//!
//! In come mappings, out come numbered modules, each file once for all processes. A file is opened when it is
//! first mapped, because it may be gone by the time its names are wanted, and kept open: as long as it is,
//! its inode number cannot pass to another file.
//!
//! The path of a mapping is what the observed process calls it, in its own mount namespace, and by now
//! something else may be there. So the kernel's own link to the mapped file is tried first, then the path
//! under the process's root, then the path as we see it, and whatever is found counts only if it is the
//! regular file that the mapping names by device and inode. How it is opened is in `open`. File
//! systems that could block us are not
//! touched at all (see `mounts`).

mod room;

use crate::bounds::Bounds;
use crate::budget::Budget;
use crate::elf::Elf;
use crate::go::GoTable;
use crate::maps::Mapping;
use crate::mounts::Mounts;
use crate::open::regular;
use crate::perf_map;
use crate::unwind::FrameTable;
use holdup_evidence::Language;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::stat::{major, minor};
use nix::sys::statfs::{BTRFS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, fstatfs};
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Most files that are known at a time. A large build runs some hundred programs and libraries.
const MODULES_MAX: usize = 4096;

/// How often a file that could not be opened is tried again, when another process maps it.
const TRIES_MAX: u8 = 3;

/// The kernel names a mapped file whose path is gone with this.
const DELETED: &str = " (deleted)";

/// A module of this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ModuleId(pub(crate) u32);

impl ModuleId {
    /// Code that no file holds, such as what a JIT compiler wrote.
    pub(crate) const ANONYMOUS: ModuleId = ModuleId(0);

    /// Frames that a runtime told of: no module of the list, and what stands for an address is the frame's number.
    pub(crate) const TOLD: ModuleId = ModuleId(u32::MAX);
}

/// A file that was mapped executable.
#[derive(Debug, Default)]
pub(crate) struct Module {
    /// Base name; `None` for anonymous code.
    pub(crate) name: Option<String>,
    /// The file, where it could be opened and understood.
    pub(crate) elf: Option<Elf>,
    /// Of code that was written at run time: the program's own list of it, and the language it was made from.
    pub(crate) listed: Option<(File, Language)>,
    /// How to unwind; made when the first stack comes through.
    frames: Option<FrameTable>,
    /// Bytes that takes.
    frame_bytes: u64,
    /// How often it was made.
    made: u8,
    /// When a stack came through last, by the number of stacks' frames before.
    used: u64,
    tries: u8,
}

impl Module {
    /// Go's table, if the file has one and a stack came through.
    pub(crate) fn go(&self) -> Option<&GoTable> {
        self.frames.as_ref()?.go()
    }
}

/// All modules of a run.
#[derive(Debug)]
pub(crate) struct Modules {
    opener: Opener,
    list: Vec<Module>,
    by_file: HashMap<((u32, u32), u64), ModuleId>,
    vdso: Option<ModuleId>,
    /// How many files may still be opened without taking descriptors that others need.
    descriptors_left: usize,
    /// Mappings whose module had no room.
    pub(crate) refused: u64,
    /// How much may be kept.
    pub(crate) bounds: Bounds,
    /// Bytes of frame information that are kept.
    frame_bytes: u64,
    /// Frames so far.
    frames: u64,
    /// What may still be done for whom.
    pub(crate) budget: Budget,
    /// Files whose frame information is larger than what may be kept, or had to make room too often.
    pub(crate) without_frames: u64,
}

impl Modules {
    /// Nothing yet; `proc` is where the proc file system is.
    pub(crate) fn new(proc: PathBuf) -> Self {
        // Half of what this process may open is left for the rest of it.
        let descriptors = getrlimit(Resource::RLIMIT_NOFILE).map_or(256, |(soft, _)| soft / 2);
        Self {
            opener: Opener { proc },
            list: vec![Module::default()],
            by_file: HashMap::new(),
            vdso: None,
            descriptors_left: usize::try_from(descriptors)
                .unwrap_or(MODULES_MAX)
                .min(MODULES_MAX),
            refused: 0,
            bounds: Bounds::default(),
            frame_bytes: 0,
            frames: 0,
            budget: Budget::default(),
            without_frames: 0,
        }
    }

    /// Of each file that could be opened its base name and its build id, in hexadecimal digits.
    pub(crate) fn build_ids(&self) -> impl Iterator<Item = (&str, String)> {
        let id = |module: &Module| crate::debug_file::build_id(module.elf.as_ref()?);
        self.list
            .iter()
            .filter_map(move |module| Some((module.name.as_deref()?, id(module)?)))
    }

    /// The module of a mapping, opened if it is new.
    pub(crate) fn of_mapping(&mut self, pid: u32, mapping: &Mapping) -> ModuleId {
        if mapping.inode == 0 {
            return if mapping.path == "[vdso]" {
                self.vdso()
            } else {
                ModuleId::ANONYMOUS
            };
        }
        let file = (mapping.device, mapping.inode);
        let known = self.by_file.get(&file).copied();
        let tries = known.map_or(0, |id| self.list[id.0 as usize].tries);
        if let Some(id) = known
            && (self.get(id).elf.is_some() || tries >= TRIES_MAX)
        {
            return id;
        }
        if self.list.len() >= MODULES_MAX || self.descriptors_left == 0 {
            self.refused += 1;
            return known.unwrap_or(ModuleId::ANONYMOUS);
        }
        let elf = self
            .opener
            .open(pid, mapping)
            .and_then(|file| Elf::read(file).ok());
        match (known, &elf) {
            (Some(id), None) => {
                self.list[id.0 as usize].tries += 1;
                id
            }
            // Without its file, addresses in a module are offsets in the file; with it they are the file's
            // own addresses. A module that has been used without stays that, and this is another.
            _ => {
                self.descriptors_left -= usize::from(elf.is_some());
                let name = Some(base_name(&mapping.path).to_owned());
                let id = self.add(Module {
                    name,
                    elf,
                    tries: tries + 1,
                    ..Module::default()
                });
                self.by_file.insert(file, id);
                id
            }
        }
    }

    /// The code that process `pid` has written at run time, if it lists that.
    pub(crate) fn written(&mut self, pid: u32, language: Language) -> Option<ModuleId> {
        if self.list.len() >= MODULES_MAX || self.descriptors_left == 0 {
            return None;
        }
        let list = perf_map::open(&self.opener.proc, pid)?;
        self.descriptors_left -= 1;
        Some(self.add(Module {
            listed: Some((list, language)),
            ..Module::default()
        }))
    }

    /// The vdso, which is the same in all processes, so that our own will do.
    fn vdso(&mut self) -> ModuleId {
        if let Some(id) = self.vdso {
            return id;
        }
        let elf = self.opener.vdso().and_then(|file| Elf::read(file).ok());
        let id = self.add(Module {
            name: Some("[vdso]".to_owned()),
            elf,
            ..Module::default()
        });
        self.vdso = Some(id);
        id
    }

    fn add(&mut self, module: Module) -> ModuleId {
        self.list.push(module);
        ModuleId(u32::try_from(self.list.len() - 1).expect("MODULES_MAX fits 32 bits"))
    }

    /// A module by its number.
    pub(crate) fn get(&self, id: ModuleId) -> &Module {
        &self.list[id.0 as usize]
    }

    /// The address within the module of what is at `offset` of its file: the file's own virtual address, or
    /// the offset itself where the file could not be read. Anonymous code has no addresses that mean
    /// anything outside its process.
    pub(crate) fn address_of(&self, id: ModuleId, offset: u64) -> u64 {
        if id == ModuleId::ANONYMOUS {
            return 0;
        }
        self.get(id)
            .elf
            .as_ref()
            .and_then(|elf| elf.address_of(offset))
            .unwrap_or(offset)
    }
}

/// What is behind the last slash, without the kernel's note that the file is deleted.
fn base_name(path: &str) -> &str {
    let path = path.strip_suffix(DELETED).unwrap_or(path);
    path.rsplit('/').next().unwrap_or(path)
}

/// Finds the file behind a mapping.
#[derive(Debug)]
struct Opener {
    proc: PathBuf,
}

impl Opener {
    fn open(&self, pid: u32, mapping: &Mapping) -> Option<File> {
        let ours = self.mounts("self");
        let theirs = self.mounts(&pid.to_string());
        if ours.remote_device(mapping.device) || theirs.remote_device(mapping.device) {
            return None;
        }
        // A file system without a block device (major 0) that neither of us has mounted could be anything.
        if mapping.device.0 == 0 && !ours.lists(mapping.device) && !theirs.lists(mapping.device) {
            return None;
        }
        let process = self.proc.join(pid.to_string());
        let link = process
            .join("map_files")
            .join(format!("{:x}-{:x}", mapping.start, mapping.end));
        open_regular(&link, mapping).or_else(|| {
            let path = &mapping.path;
            if !path.starts_with('/') || path.ends_with(DELETED) || theirs.remote_path(path) {
                return None;
            }
            let under_root = process.join("root").join(path.trim_start_matches('/'));
            let direct = || {
                (!ours.remote_path(path))
                    .then(|| open_regular(Path::new(path), mapping))
                    .flatten()
            };
            open_regular(&under_root, mapping).or_else(direct)
        })
    }

    fn mounts(&self, process: &str) -> Mounts {
        let text = fs::read(self.proc.join(process).join("mountinfo")).unwrap_or_default();
        Mounts::parse(&String::from_utf8_lossy(&text))
    }

    /// Our own vdso, copied to a file of its own.
    fn vdso(&self) -> Option<File> {
        let own = self.proc.join("self");
        let maps = fs::read_to_string(own.join("maps")).ok()?;
        let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
        let (start, end) = line.split(' ').next()?.split_once('-')?;
        let start = u64::from_str_radix(start, 16).ok()?;
        let end = u64::from_str_radix(end, 16).ok()?;
        let mut bytes = vec![0; usize::try_from(end.checked_sub(start)?).ok()?];
        File::open(own.join("mem"))
            .ok()?
            .read_exact_at(&mut bytes, start)
            .ok()?;
        let copy = File::from(memfd_create("holdup-vdso", MFdFlags::MFD_CLOEXEC).ok()?);
        copy.write_all_at(&bytes, 0).ok()?;
        Some(copy)
    }
}

/// Opens `path` if it is the regular file that `mapping` names.
fn open_regular(path: &Path, mapping: &Mapping) -> Option<File> {
    regular(path, |place| is_mapped(place, mapping).unwrap_or(false))
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
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    const PID: u32 = 42;

    /// A proc file system made of files, in which process 42 has mapped `program` from `mounted`'s device.
    struct Stage {
        directory: TempDir,
        program: PathBuf,
    }

    impl Stage {
        fn new() -> Self {
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

        fn mapping(&self) -> Mapping {
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
            Opener {
                proc: self.directory.path().to_owned(),
            }
            .open(PID, mapping)
        }

        fn modules(&self) -> Modules {
            Modules::new(self.directory.path().to_owned())
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

    #[test]
    fn a_file_is_one_module_for_all_processes() {
        let stage = Stage::new();
        let mut modules = stage.modules();
        let first = modules.of_mapping(PID, &stage.mapping());
        let moved = Mapping {
            start: 0x5000,
            end: 0x6000,
            ..stage.mapping()
        };
        assert_eq!(modules.of_mapping(PID + 1, &moved), first);
        assert_eq!(modules.get(first).name.as_deref(), Some("program"));
        assert!(modules.get(first).elf.is_some());
        assert_eq!(modules.list.len(), 2);
    }

    #[test]
    fn a_file_that_could_not_be_opened_is_tried_again_a_few_times() {
        let stage = Stage::new();
        let hidden = Mapping {
            path: "/hidden".to_owned(),
            ..stage.mapping()
        };
        let mut modules = stage.modules();
        let first = modules.of_mapping(PID, &hidden);
        assert_eq!(
            (modules.get(first).name.as_deref(), modules.address_of(first, 77)),
            (Some("hidden"), 77)
        );
        assert_eq!(modules.of_mapping(PID, &hidden), first);
        let second = modules.of_mapping(PID, &stage.mapping());
        assert_ne!(second, first);
        assert!(modules.get(second).elf.is_some());
        let mut modules = stage.modules();
        for _ in 0..TRIES_MAX {
            modules.of_mapping(PID, &hidden);
        }
        let given_up = modules.of_mapping(PID, &stage.mapping());
        assert!(modules.get(given_up).elf.is_none());
    }

    #[test]
    fn files_beyond_the_number_of_descriptors_are_counted() {
        let stage = Stage::new();
        let mut modules = stage.modules();
        modules.descriptors_left = 0;
        assert_eq!(modules.of_mapping(PID, &stage.mapping()), ModuleId::ANONYMOUS);
        assert_eq!(modules.refused, 1);
    }

    #[test]
    fn names_are_the_last_part_of_paths() {
        for (path, name) in [
            ("/usr/lib/libc.so.6", "libc.so.6"),
            ("/opt/app (deleted)", "app"),
            ("/memfd:jit (deleted)", "memfd:jit"),
            ("plain", "plain"),
        ] {
            assert_eq!(base_name(path), name);
        }
    }
}
