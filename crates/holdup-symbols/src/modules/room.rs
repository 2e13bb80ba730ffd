//! Room for frame information.
//!
//! In: the modules that stacks come through, and how much may be kept of their tables. Out: rules, from tables of which those that were
//! used last are kept; a file that is larger than the room, or had to make room too often, goes without and is counted.

use super::{ModuleId, Modules};
use crate::budget::Asker;
use crate::unwind::{FrameTable, Rule};
use std::sync::Arc;

/// How often a file's frame information is read again after others took its room: reading takes milliseconds, and files that take turns in
/// too small a room would be read at each stack.
const TABLES_MADE_MAX: u8 = 4;

impl Modules {
    /// How to find the caller of the code at `address` of a module, as far as whoever asks may still have work done.
    pub(crate) fn rule(&mut self, asker: &Asker, id: ModuleId, address: u64) -> Option<Arc<Rule>> {
        self.frames += 1;
        if self.vdso == Some(id)
            && self
                .trampoline
                .as_ref()
                .is_some_and(|code| code.contains(&address))
        {
            return Some(Arc::new(Rule::Trampoline));
        }
        let module = &mut self.list[id.0 as usize];
        module.used = self.frames;
        if module.frames.is_none() {
            self.make_table(asker, id)?;
        }
        let table = self.list[id.0 as usize].frames.as_mut()?;
        if let Some(known) = table.known(address) {
            return known;
        }
        if !self.budget.allows(asker) {
            return None;
        }
        let (rule, steps) = table.make(address);
        self.budget.charge(asker, steps);
        rule
    }

    /// Where the function of an address of a module begins, by frame information that is there already.
    pub(crate) fn function(&self, id: ModuleId, address: u64) -> Option<u64> {
        self.get(id).frames.as_ref()?.function(address)
    }

    /// Reads a module's frame information, as far as there is room for it.
    fn make_table(&mut self, asker: &Asker, id: ModuleId) -> Option<()> {
        let module = &self.list[id.0 as usize];
        let bytes = FrameTable::bytes_of(module.head.as_ref()?);
        if !self.budget.allows(asker) {
            return None;
        }
        if module.made < TABLES_MADE_MAX {
            self.make_room(bytes);
        }
        let kept = bytes <= self.bounds.tables && self.get(id).made < TABLES_MADE_MAX;
        let read = self.frame_bytes_of(asker, id, kept);
        let module = &mut self.list[id.0 as usize];
        match kept {
            true => {
                module.made += 1;
                module.frame_bytes = bytes;
                self.frame_bytes += bytes;
            }
            false => self.without_frames += 1,
        }
        let table = FrameTable::read(module.head.as_ref()?, read);
        self.budget.charge(asker, table.steps());
        module.frames = Some(table);
        Some(())
    }

    /// Lets go of what was used longest ago until so many bytes of frame information have room, or nothing is left to let go of.
    fn make_room(&mut self, bytes: u64) {
        if bytes > self.bounds.tables {
            return;
        }
        while self.frame_bytes.saturating_add(bytes) > self.bounds.tables {
            let kept = self.list.iter_mut().filter(|module| module.frame_bytes > 0);
            let Some(oldest) = kept.min_by_key(|module| module.used) else {
                return;
            };
            self.frame_bytes -= oldest.frame_bytes;
            oldest.frame_bytes = 0;
            // Made anew when a stack comes through again.
            oldest.frames = None;
        }
    }

    /// Lets go of all frame information and of who reads it: no stack comes any more. What names need is kept.
    pub(crate) fn no_more_stacks(&mut self) {
        for module in &mut self.list {
            module.frames = None;
            module.frame_bytes = 0;
        }
        self.frame_bytes = 0;
        self.reader.end();
    }
}

#[cfg(test)]
mod tests {
    use super::TABLES_MADE_MAX;
    use crate::bounds::Bounds;
    use crate::budget::Asker;
    use crate::elf::Elf;
    use crate::modules::{Module, ModuleId, Modules};
    use crate::open::place as place_of;
    use crate::stacks::ProcessKey;
    use crate::unwind::FrameTable;
    use std::fs::File;
    use std::os::fd::OwnedFd;
    use std::path::{Path, PathBuf};

    const ASKER: Asker = Asker {
        process: ProcessKey(1),
        pid: 1,
        at: 0,
    };

    fn elf() -> Elf {
        Elf::read(File::open("/bin/sh").unwrap()).unwrap()
    }

    /// A descriptor of where that file is.
    fn place() -> OwnedFd {
        place_of(Path::new("/bin/sh"), 0).unwrap().into()
    }

    /// So many files, all alike, in room for so many.
    fn files(count: usize, room: u64) -> (Modules, Vec<ModuleId>, u64) {
        let mut modules = Modules::new(PathBuf::from("/proc"));
        let one = FrameTable::bytes_of(&elf());
        assert!(one > 0);
        modules.bounds = Bounds {
            tables: room * one + one / 2,
            ..Bounds::SMALL
        };
        let module = || Module {
            head: Some(elf().head),
            place: Some(place()),
            ..Module::default()
        };
        let ids = (0..count).map(|_| modules.add(module())).collect();
        (modules, ids, one)
    }

    /// The address of the file's entry, which a table describes.
    fn described(modules: &mut Modules, id: ModuleId) -> bool {
        let text = elf().section(".text").unwrap().address;
        (0..4096).any(|offset| modules.rule(&ASKER, id, text + offset).is_some())
    }

    #[test]
    fn tables_that_were_used_last_are_kept_within_the_room() {
        let (mut modules, ids, one) = files(3, 2);
        for id in &ids {
            assert!(described(&mut modules, *id));
            assert!(modules.frame_bytes <= modules.bounds.tables);
        }
        assert_eq!(modules.frame_bytes, 2 * one);
        let kept = |modules: &Modules| -> Vec<bool> {
            ids.iter().map(|id| modules.get(*id).frames.is_some()).collect()
        };
        assert_eq!(kept(&modules), [false, true, true]);
        // The second is used again, so the third makes room.
        assert!(described(&mut modules, ids[1]) && described(&mut modules, ids[0]));
        assert_eq!(kept(&modules), [true, true, false]);
        assert_eq!(modules.without_frames, 0);
    }

    #[test]
    fn files_that_take_turns_in_too_small_a_room_are_not_read_for_ever() {
        let (mut modules, ids, one) = files(2, 1);
        for _ in 0..3 * TABLES_MADE_MAX {
            for id in &ids {
                described(&mut modules, *id);
            }
        }
        assert!(modules.get(ids[0]).made <= TABLES_MADE_MAX && modules.without_frames > 0);
        assert!(modules.frame_bytes <= one);
    }

    #[test]
    fn a_file_that_is_larger_than_the_room_goes_without_and_is_counted() {
        let (mut modules, ids, _) = files(1, 0);
        assert!(!described(&mut modules, ids[0]));
        assert_eq!((modules.frame_bytes, modules.without_frames), (0, 1));
    }

    #[test]
    fn once_no_stack_comes_any_more_nothing_is_kept() {
        let (mut modules, ids, _) = files(1, 4);
        assert!(described(&mut modules, ids[0]));
        modules.no_more_stacks();
        assert_eq!(modules.frame_bytes, 0);
        assert!(modules.get(ids[0]).frames.is_none());
    }

    #[test]
    fn who_has_used_up_its_steps_gets_what_is_known_and_nothing_else() {
        let (mut modules, ids, _) = files(1, 4);
        assert!(described(&mut modules, ids[0]));
        let text = elf().section(".text").unwrap().address;
        let known = (0..4096).find(|offset| modules.rule(&ASKER, ids[0], text + offset).is_some());
        let known = text + known.unwrap();
        modules.budget.charge(&ASKER, u64::MAX);
        assert!(modules.rule(&ASKER, ids[0], known).is_some());
        assert!((4096..8192).all(|offset| modules.rule(&ASKER, ids[0], text + offset).is_none()));
        assert_eq!(modules.budget.beyond().collect::<Vec<_>>(), [ASKER.pid]);
    }
}
