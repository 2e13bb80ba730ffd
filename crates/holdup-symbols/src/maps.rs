//! Which code is at which address, process by process.
//!
//! In come mappings, forks and execs in the order in which they happened, out comes the mapping at an
//! address. Unmappings are not known: where mappings overlap, the newest is right, and an address in a mapping
//! that is gone is never asked for. A fork shares its parent's list until one of the two changes.

use crate::modules::ModuleId;
use crate::stacks::ProcessKey;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;

/// Most mappings that are kept of one process. Browsers have a few hundred; a program that maps code at
/// ever-new addresses must not fill our memory.
const REGIONS_MAX: usize = 4096;

/// An executable mapping, as the kernel describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// Offset in the file of what is at `start`, in bytes.
    pub offset: u64,
    /// The file's path as the process sees it; `[vdso]`, or empty for anonymous memory. Hostile text.
    pub path: String,
    /// Major and minor number of the file's device; zeros where there is no file.
    pub device: (u32, u32),
    /// The file's inode number; 0 where there is no file.
    pub inode: u64,
}

/// A mapping without what has been looked up already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Offset in the module's file of what is at `start`, in bytes.
    pub(crate) offset: u64,
    pub(crate) module: ModuleId,
}

/// The executable mappings of one process, disjoint and sorted by address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Space(Vec<Region>);

impl Space {
    /// The mapping that holds `address`.
    pub(crate) fn find(&self, address: u64) -> Option<Region> {
        let index = self.0.partition_point(|region| region.end <= address);
        self.0
            .get(index)
            .copied()
            .filter(|region| region.start <= address)
    }

    /// All mappings, lowest first.
    pub(crate) fn regions(&self) -> impl Iterator<Item = Region> {
        self.0.iter().copied()
    }

    /// The modules that are mapped, some more than once.
    pub(crate) fn modules(&self) -> impl Iterator<Item = ModuleId> {
        self.0.iter().map(|region| region.module)
    }

    /// Puts `new` over whatever was there; false when there is no room for more.
    fn insert(&mut self, new: Region) -> bool {
        if new.start >= new.end {
            return true;
        }
        let first = self.0.partition_point(|region| region.end <= new.start);
        let last = self.0.partition_point(|region| region.start < new.end);
        let below = self.0[first..last]
            .first()
            .filter(|region| region.start < new.start);
        let below = below.map(|region| Region {
            end: new.start,
            ..*region
        });
        let above = self.0[first..last].last().filter(|region| region.end > new.end);
        let above = above.map(|region| Region {
            start: new.end,
            offset: region.offset.wrapping_add(new.end - region.start),
            ..*region
        });
        let pieces = below.into_iter().chain([new]).chain(above);
        if self.0.len() - (last - first) + pieces.clone().count() > REGIONS_MAX {
            return false;
        }
        self.0.splice(first..last, pieces);
        true
    }
}

/// The mappings of all processes.
#[derive(Debug, Default)]
pub(crate) struct Spaces(HashMap<ProcessKey, Arc<Space>>);

impl Spaces {
    /// The process runs another program: what was mapped is gone.
    pub(crate) fn exec(&mut self, process: ProcessKey) {
        self.0.insert(process, Arc::default());
    }

    /// The child begins with what the parent has.
    pub(crate) fn fork(&mut self, parent: ProcessKey, child: ProcessKey) {
        let space = self.of(parent);
        self.0.insert(child, space);
    }

    /// The process is gone, and so are its mappings.
    pub(crate) fn exit(&mut self, process: ProcessKey) {
        self.0.remove(&process);
    }

    /// Adds a mapping; false when the process has too many.
    pub(crate) fn map(&mut self, process: ProcessKey, region: Region) -> bool {
        let space = self.0.entry(process).or_default();
        // A dynamic linker maps the same file again and again in every forked child that execs nothing; do
        // not copy a shared list for what it holds already.
        if space.find(region.start) == Some(region) {
            return true;
        }
        Arc::make_mut(space).insert(region)
    }

    /// The mappings of a process; none for one that was never heard of.
    pub(crate) fn of(&self, process: ProcessKey) -> Arc<Space> {
        self.0.get(&process).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ProcessKey = ProcessKey(1);
    const B: ProcessKey = ProcessKey(2);

    fn region(start: u64, end: u64, offset: u64, module: u32) -> Region {
        Region {
            start,
            end,
            offset,
            module: ModuleId(module),
        }
    }

    fn at(spaces: &Spaces, process: ProcessKey, address: u64) -> Option<(u32, u64)> {
        let region = spaces.of(process).find(address)?;
        Some((region.module.0, address - region.start + region.offset))
    }

    #[test]
    fn addresses_are_found_up_to_the_last_byte() {
        let mut spaces = Spaces::default();
        assert!(spaces.map(A, region(0x2000, 0x3000, 0x100, 1)));
        assert_eq!(at(&spaces, A, 0x1fff), None);
        assert_eq!(at(&spaces, A, 0x2000), Some((1, 0x100)));
        assert_eq!(at(&spaces, A, 0x2fff), Some((1, 0x10ff)));
        assert_eq!(at(&spaces, A, 0x3000), None);
        assert_eq!(at(&spaces, B, 0x2000), None);
    }

    #[test]
    fn the_newest_mapping_wins_and_the_rest_of_the_old_one_stays() {
        let mut spaces = Spaces::default();
        assert!(spaces.map(A, region(0x1000, 0x9000, 0, 1)));
        assert!(spaces.map(A, region(0x3000, 0x5000, 0, 2)));
        assert_eq!(at(&spaces, A, 0x2fff), Some((1, 0x1fff)));
        assert_eq!(at(&spaces, A, 0x3000), Some((2, 0)));
        assert_eq!(at(&spaces, A, 0x4fff), Some((2, 0x1fff)));
        assert_eq!(at(&spaces, A, 0x5000), Some((1, 0x4000)));
        // One that covers several, and parts of others.
        assert!(spaces.map(A, region(0x2000, 0x6000, 0, 3)));
        assert_eq!(at(&spaces, A, 0x1fff), Some((1, 0xfff)));
        assert_eq!(at(&spaces, A, 0x3800), Some((3, 0x1800)));
        assert_eq!(at(&spaces, A, 0x6000), Some((1, 0x5000)));
        assert!(spaces.map(A, region(0, 0x10000, 0, 4)));
        assert_eq!(spaces.of(A).0, vec![region(0, 0x10000, 0, 4)]);
    }

    #[test]
    fn any_order_of_overlaps_agrees_with_a_byte_by_byte_model() {
        // A small pseudo-random sequence with a fixed seed: each step maps somewhere in 64 pages.
        let mut state = 12345_u64;
        let mut next = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut spaces = Spaces::default();
        let mut model: [Option<(u32, u64)>; 64] = [None; 64];
        for step in 0..500 {
            let (start, pages, offset) = (next(64), next(12), next(1000));
            let end = (start + pages).min(64);
            assert!(spaces.map(A, region(start, end, offset, step)));
            for page in start..end {
                model[page as usize] = Some((step, page - start + offset));
            }
            for page in 0..64 {
                assert_eq!(
                    at(&spaces, A, page),
                    model[page as usize],
                    "step {step}, page {page}"
                );
            }
        }
    }

    #[test]
    fn a_fork_inherits_and_then_goes_its_own_way() {
        let mut spaces = Spaces::default();
        assert!(spaces.map(A, region(0x1000, 0x2000, 0, 1)));
        spaces.fork(A, B);
        assert!(Arc::ptr_eq(&spaces.0[&A], &spaces.0[&B]));
        // The same mapping again changes nothing and copies nothing.
        assert!(spaces.map(B, region(0x1000, 0x2000, 0, 1)));
        assert!(Arc::ptr_eq(&spaces.0[&A], &spaces.0[&B]));
        assert!(spaces.map(B, region(0x1000, 0x2000, 0, 2)));
        assert_eq!(at(&spaces, A, 0x1000), Some((1, 0)));
        assert_eq!(at(&spaces, B, 0x1000), Some((2, 0)));
    }

    #[test]
    fn an_exec_forgets_and_leaves_the_parent_alone() {
        let mut spaces = Spaces::default();
        assert!(spaces.map(A, region(0x1000, 0x2000, 0, 1)));
        spaces.fork(A, B);
        spaces.exec(B);
        assert_eq!(at(&spaces, B, 0x1000), None);
        assert_eq!(at(&spaces, A, 0x1000), Some((1, 0)));
        spaces.exit(A);
        assert_eq!(at(&spaces, A, 0x1000), None);
    }

    #[test]
    fn a_process_cannot_fill_memory_with_mappings() {
        let mut spaces = Spaces::default();
        for page in 0..REGIONS_MAX as u64 {
            assert!(spaces.map(A, region(page * 2, page * 2 + 1, 0, 1)));
        }
        assert!(!spaces.map(A, region(u64::MAX - 1, u64::MAX, 0, 1)));
        // What replaces another still has room.
        assert!(spaces.map(A, region(0, 1, 0, 2)));
        assert_eq!(at(&spaces, A, 0), Some((2, 0)));
    }
}
