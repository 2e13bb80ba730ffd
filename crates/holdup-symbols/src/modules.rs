//! The files that code came from.
//!
//! In come mappings, out come numbered modules, each file once for all processes. A file is opened when it is
//! first mapped, because it may be gone by the time its names are wanted, and its place is kept: as long as it is,
//! its inode number cannot pass to another file.
//!
//! Nothing of such a file is opened or read here: a process that can be abandoned does that (see `reader`). What is kept is its
//! headers, and a descriptor of its place (`O_PATH`), which never blocks.

mod room;

use crate::arch::HERE;
use crate::bounds::Bounds;
use crate::budget::{Asker, Budget};
use crate::elf::{Elf, Head};
use crate::files::FrameBytes;
use crate::maps::Mapping;
use crate::opener::DELETED;
use crate::reader::{About, Found, Reader};
use crate::stacks::ProcessKey;
use crate::symbols;
use crate::unread::Unread;
use crate::unwind::FrameTable;
use holdup_evidence::Language;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::resource::{Resource, getrlimit};
use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Most files that are known at a time. A large build runs some hundred programs and libraries.
const MODULES_MAX: usize = 4096;

/// How often a file that could not be opened is tried again, when another process maps it.
const TRIES_MAX: u8 = 3;

/// So many of the processes that use a file are known: the work of naming it is charged to them.
const USERS_MAX: usize = 8;

/// Searches of symbols whose result is kept: a file of each interpreter that there is, some times over.
const SEARCHED_MAX: usize = 64;

/// A module of this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ModuleId(pub(crate) u32);

impl ModuleId {
    /// Code that no file holds, such as what a JIT compiler wrote.
    pub(crate) const ANONYMOUS: ModuleId = ModuleId(0);

    /// Frames that a runtime reported: no module of the list, and what stands for an address is the frame's number.
    pub(crate) const BY_RUNTIME: ModuleId = ModuleId(u32::MAX);

    /// Frames of interpreted code, which stand behind the native ones until those have names.
    pub(crate) const INTERPRETED: ModuleId = ModuleId(u32::MAX - 1);

    /// What stands between the handler of a signal and what that interrupted: code of the kernel's or the C library's that nobody called.
    pub(crate) const HANDLER_CALLED: ModuleId = ModuleId(u32::MAX - 2);

    /// Whether it is one of the list, whose names are looked up.
    pub(crate) fn is_listed(self) -> bool {
        !matches!(
            self,
            ModuleId::BY_RUNTIME | ModuleId::INTERPRETED | ModuleId::HANDLER_CALLED
        )
    }
}

/// A file that was mapped executable.
#[derive(Debug, Default)]
pub(crate) struct Module {
    /// Base name; `None` for anonymous code.
    pub(crate) name: Option<String>,
    /// The file's headers, where it could be opened and understood.
    pub(crate) head: Option<Head>,
    /// Its build id, in hexadecimal digits.
    pub(crate) build_id: Option<String>,
    /// Where the file is; of code that was written at run time, the program's own list of it.
    pub(crate) place: Option<OwnedFd>,
    /// The language that code was made from which was written at run time.
    pub(crate) listed: Option<Language>,
    /// What to say of it when it does not let itself be read.
    pub(crate) about: About,
    /// Processes that had stacks through it, some of them.
    pub(crate) users: BTreeSet<ProcessKey>,
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

/// All modules of a run.
#[derive(Debug)]
pub(crate) struct Modules {
    pub(crate) reader: Reader,
    list: Vec<Module>,
    by_file: HashMap<((u32, u32), u64), ModuleId>,
    vdso: Option<ModuleId>,
    /// Code of the vdso by which signal handlers return, where tables do not describe it.
    trampoline: Option<Range<u64>>,
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
    /// Tables of symbols that were searched: of a large program that takes a tenth of a second, and several ask for the same.
    searched: Vec<Searched>,
}

/// What a search of a module's symbols found.
#[derive(Debug)]
struct Searched {
    module: ModuleId,
    wanted: Vec<String>,
    found: Vec<Option<u64>>,
}

impl Modules {
    /// Nothing yet; `proc` is where the proc file system is.
    pub(crate) fn new(proc: PathBuf) -> Self {
        // Half of what this process may open is left for the rest of it.
        let descriptors = getrlimit(Resource::RLIMIT_NOFILE).map_or(256, |(soft, _)| soft / 2);
        Self {
            reader: Reader::new(proc),
            list: vec![Module::default()],
            by_file: HashMap::new(),
            vdso: None,
            trampoline: None,
            descriptors_left: usize::try_from(descriptors)
                .unwrap_or(MODULES_MAX)
                .min(MODULES_MAX),
            refused: 0,
            bounds: Bounds::default(),
            frame_bytes: 0,
            frames: 0,
            budget: Budget::default(),
            without_frames: 0,
            searched: Vec::new(),
        }
    }

    /// Of each file that could be opened its base name and its build id, in hexadecimal digits.
    pub(crate) fn build_ids(&self) -> impl Iterator<Item = (&str, String)> {
        self.list
            .iter()
            .filter_map(|module| Some((module.name.as_deref()?, module.build_id.clone()?)))
    }

    /// The module of a mapping, opened if it is new.
    pub(crate) fn of_mapping(&mut self, asker: &Asker, mapping: &Mapping) -> ModuleId {
        let pid = asker.pid;
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
            && (self.get(id).head.is_some() || tries >= TRIES_MAX)
        {
            return id;
        }
        if self.list.len() >= MODULES_MAX || self.descriptors_left == 0 {
            self.refused += 1;
            return known.unwrap_or(ModuleId::ANONYMOUS);
        }
        let name = base_name(&mapping.path).to_owned();
        let about = About::file(pid, &name, mapping.device);
        let found = match self.budget.allows(asker) {
            true => self.reader.mapped(asker, &about, mapping, &mut self.budget),
            false => None,
        };
        match (known, found) {
            (Some(id), None) => {
                self.list[id.0 as usize].tries += 1;
                id
            }
            // Without its file, addresses in a module are offsets in the file; with it they are the file's
            // own addresses. A module that has been used without stays that, and this is another.
            (_, found) => {
                self.descriptors_left -= usize::from(found.is_some());
                let mut module = Module {
                    name: Some(name),
                    about,
                    tries: tries + 1,
                    ..Module::default()
                };
                if let Some(Found {
                    head,
                    build_id,
                    place,
                }) = found
                {
                    (module.head, module.build_id, module.place) = (Some(head), build_id, Some(place));
                }
                let id = self.add(module);
                self.by_file.insert(file, id);
                id
            }
        }
    }

    /// The code that a process has written at run time, if it lists that.
    pub(crate) fn written(&mut self, asker: &Asker, language: Language) -> Option<ModuleId> {
        let room = self.list.len() < MODULES_MAX && self.descriptors_left > 0;
        if !room || !self.budget.allows(asker) {
            return None;
        }
        let about = About::list(asker.pid);
        let place = self.reader.list(asker, &about, &mut self.budget)?;
        self.descriptors_left -= 1;
        Some(self.add(Module {
            place: Some(place),
            listed: Some(language),
            about,
            ..Module::default()
        }))
    }

    /// The vdso, which is the same in all processes, so that our own will do.
    fn vdso(&mut self) -> ModuleId {
        if let Some(id) = self.vdso {
            return id;
        }
        let elf = own_vdso().and_then(|file| {
            let place = OwnedFd::from(file.try_clone().ok()?);
            let elf = Elf::read(file).ok()?;
            self.trampoline = HERE.trampoline.as_ref().and_then(|known| {
                let at = symbols::addresses(&elf, &[known.symbol])[0]?;
                Some(at.checked_sub(known.before)?..at.checked_add(known.bytes)?)
            });
            Some((elf.head, place))
        });
        let (head, place) = elf.unzip();
        let id = self.add(Module {
            name: Some("[vdso]".to_owned()),
            head,
            place,
            about: About::file(std::process::id(), "[vdso]", (0, 0)),
            ..Module::default()
        });
        self.vdso = Some(id);
        id
    }

    /// Addresses of symbols in a module's file, in the order of `wanted`.
    pub(crate) fn symbols(
        &mut self,
        asker: &Asker,
        id: ModuleId,
        wanted: &[&str],
    ) -> Option<Vec<Option<u64>>> {
        let same = |one: &&Searched| one.module == id && one.wanted.iter().eq(wanted.iter());
        if let Some(known) = self.searched.iter().find(same) {
            return Some(known.found.clone());
        }
        let module = &self.list[id.0 as usize];
        let place = module.place.as_ref()?.as_fd();
        let found = self
            .reader
            .symbols(asker, &module.about, place, wanted, &mut self.budget)?;
        if self.searched.len() < SEARCHED_MAX {
            self.searched.push(Searched {
                module: id,
                wanted: wanted.iter().map(|name| (*name).to_owned()).collect(),
                found: found.clone(),
            });
        }
        Some(found)
    }

    /// What frame information is made of: the bytes of a module's file.
    fn frame_bytes_of(&mut self, asker: &Asker, id: ModuleId, descriptions: bool) -> FrameBytes {
        let module = &self.list[id.0 as usize];
        let Some(place) = &module.place else {
            return FrameBytes::default();
        };
        let budget = &mut self.budget;
        let read = self
            .reader
            .frames(asker, &module.about, place.as_fd(), descriptions, budget);
        read.unwrap_or_default()
    }

    /// Notes that a process had a stack through a module.
    pub(crate) fn used_by(&mut self, id: ModuleId, process: ProcessKey) {
        let users = &mut self.list[id.0 as usize].users;
        if users.len() < USERS_MAX {
            users.insert(process);
        }
    }

    /// What was not read.
    pub(crate) fn unread(&self) -> impl Iterator<Item = Unread> {
        let costly = self.budget.beyond().map(|pid| Unread::Callers { pid });
        costly.chain(self.reader.unread())
    }

    /// A file that is open already.
    #[cfg(test)]
    pub(crate) fn add_file(&mut self, head: Head, place: OwnedFd) -> ModuleId {
        self.add(Module {
            head: Some(head),
            place: Some(place),
            ..Module::default()
        })
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
            .head
            .as_ref()
            .and_then(|head| head.address_of(offset))
            .unwrap_or(offset)
    }
}

/// What is behind the last slash, without the kernel's note that the file is deleted.
fn base_name(path: &str) -> &str {
    let path = path.strip_suffix(DELETED).unwrap_or(path);
    path.rsplit('/').next().unwrap_or(path)
}

/// Our own vdso, copied to a file of its own.
fn own_vdso() -> Option<File> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (start, end) = line.split(' ').next()?.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    let mut bytes = vec![0; usize::try_from(end.checked_sub(start)?).ok()?];
    File::open("/proc/self/mem")
        .ok()?
        .read_exact_at(&mut bytes, start)
        .ok()?;
    let copy = File::from(memfd_create("holdup-vdso", MFdFlags::MFD_CLOEXEC).ok()?);
    copy.write_all_at(&bytes, 0).ok()?;
    Some(copy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opener::tests::{PID, Stage};

    fn asker(pid: u32) -> Asker {
        Asker {
            process: ProcessKey(pid),
            pid,
            at: 0,
        }
    }

    fn modules_of(stage: &Stage) -> Modules {
        Modules::new(stage.directory.path().to_owned())
    }

    #[test]
    fn a_file_is_one_module_for_all_processes() {
        let stage = Stage::new();
        let mut modules = modules_of(&stage);
        let first = modules.of_mapping(&asker(PID), &stage.mapping());
        let moved = Mapping {
            start: 0x5000,
            end: 0x6000,
            ..stage.mapping()
        };
        assert_eq!(modules.of_mapping(&asker(PID + 1), &moved), first);
        assert_eq!(modules.get(first).name.as_deref(), Some("program"));
        assert!(modules.get(first).head.is_some());
        assert_eq!(modules.list.len(), 2);
    }

    #[test]
    fn a_file_that_could_not_be_opened_is_tried_again_a_few_times() {
        let stage = Stage::new();
        let hidden = Mapping {
            path: "/hidden".to_owned(),
            ..stage.mapping()
        };
        let mut modules = modules_of(&stage);
        let first = modules.of_mapping(&asker(PID), &hidden);
        assert_eq!(
            (modules.get(first).name.as_deref(), modules.address_of(first, 77)),
            (Some("hidden"), 77)
        );
        assert_eq!(modules.of_mapping(&asker(PID), &hidden), first);
        let second = modules.of_mapping(&asker(PID), &stage.mapping());
        assert_ne!(second, first);
        assert!(modules.get(second).head.is_some());
        let mut modules = modules_of(&stage);
        for _ in 0..TRIES_MAX {
            modules.of_mapping(&asker(PID), &hidden);
        }
        let given_up = modules.of_mapping(&asker(PID), &stage.mapping());
        assert!(modules.get(given_up).head.is_none());
    }

    #[test]
    fn files_beyond_the_number_of_descriptors_are_counted() {
        let stage = Stage::new();
        let mut modules = modules_of(&stage);
        modules.descriptors_left = 0;
        assert_eq!(
            modules.of_mapping(&asker(PID), &stage.mapping()),
            ModuleId::ANONYMOUS
        );
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
