//! Where a process has its JVM's performance data, and copies of it.
//!
//! The JVM maps a file `/tmp/hsperfdata_USER/PID` and shares it. The path is looked for in the kernel's list of the process's
//! own mappings, and never opened: the memory is read from the process, so it is what this JVM itself writes to, whoever has put
//! what into `/tmp`, in whichever container.
//!
//! In: a process. Out: its [`PerfMemory`], and copies. Both can block (the list of mappings takes the lock of the address
//! space), so they are for a process that can be left behind.

use crate::hsperfdata::{Index, MAX_BYTES, Unreadable};
use holdup_proc::maps::{self, Mapping};
use holdup_proc::{Root, memory};

/// Where the memory is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerfMemory {
    pid: u32,
    at: u64,
    length: usize,
    index: Index,
}

/// Why there is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Absent {
    /// The process is gone, or may not be looked at.
    #[error("the process's mappings can't be read")]
    NoMappings,
    /// It has no such mapping.
    #[error("the process shares no performance data")]
    NotShared,
    /// It has one, and that can't be read or understood.
    #[error("{0}")]
    Unreadable(#[from] Unreadable),
}

impl PerfMemory {
    /// Looks for it, and reads where things are in it.
    ///
    /// # Errors
    /// When there is none that can be read.
    pub fn find(root: &Root, pid: u32) -> Result<(PerfMemory, Vec<u8>), Absent> {
        let shared = maps::shared(root, pid).ok_or(Absent::NoMappings)?;
        let mapping = shared
            .iter()
            .find(|one| is_perf_data(one))
            .ok_or(Absent::NotShared)?;
        let length = usize::try_from(mapping.end.saturating_sub(mapping.start)).unwrap_or(MAX_BYTES);
        let mut found = PerfMemory {
            pid,
            at: mapping.start,
            length: length.min(MAX_BYTES),
            index: Index::default(),
        };
        let bytes = found.copy()?;
        Ok((found, bytes))
    }

    /// A copy of it as it is now.
    ///
    /// # Errors
    /// When the process is gone or the memory is no more what it was.
    pub fn copy(&mut self) -> Result<Vec<u8>, Unreadable> {
        let bytes = memory::read(self.pid, self.at, self.length).ok_or(Unreadable::NotPerfData)?;
        if self.index.is_empty() || self.index.is_outgrown_by(&bytes) {
            self.index = Index::parse(&bytes)?;
        }
        Ok(bytes)
    }

    /// Where things are in its copies.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }
}

/// `…/hsperfdata_USER/PID`, begun at the file's begin.
fn is_perf_data(mapping: &Mapping) -> bool {
    let path = mapping.path.strip_suffix(" (deleted)").unwrap_or(&mapping.path);
    let mut parts = path.rsplit('/');
    let (name, folder) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    mapping.offset == 0 && is_number && folder.starts_with("hsperfdata_")
}

#[cfg(test)]
mod tests {
    use super::{Absent, PerfMemory, Unreadable, is_perf_data};
    use holdup_proc::Root;
    use holdup_proc::maps::Mapping;

    fn at(path: &str, offset: u64) -> bool {
        is_perf_data(&Mapping {
            start: 0,
            end: 4096,
            offset,
            device: (0, 1),
            inode: 1,
            path: path.to_owned(),
        })
    }

    #[test]
    fn it_is_told_by_the_kernels_name_of_the_mapping() {
        assert!(at("/tmp/hsperfdata_root/1234", 0));
        assert!(at("/var/x/tmp/hsperfdata_a b/1", 0));
        assert!(at("/tmp/hsperfdata_root/1234 (deleted)", 0));
        assert!(!at("/tmp/hsperfdata_root/1234", 4096));
        assert!(!at("/tmp/hsperfdata_root/x", 0));
        assert!(!at("/tmp/other/1234", 0));
        assert!(!at("/hsperfdata_root/", 0));
        assert!(!at("", 0));
    }

    #[test]
    fn a_process_without_one_has_none_and_one_that_is_gone_can_not_be_read() {
        let own = PerfMemory::find(&Root::system(), std::process::id());
        assert_eq!(own.map(|_| ()), Err(Absent::NotShared));
        let gone = PerfMemory::find(&Root::system(), u32::MAX - 1);
        assert_eq!(gone.map(|_| ()), Err(Absent::NoMappings));
    }

    #[test]
    fn memory_that_holds_rubbish_or_is_gone_is_said_to_be_unreadable() {
        let rubbish = vec![7u8; 4096];
        let mut memory = PerfMemory {
            pid: std::process::id(),
            at: rubbish.as_ptr() as u64,
            length: rubbish.len(),
            index: Default::default(),
        };
        assert_eq!(memory.copy(), Err(Unreadable::NotPerfData));
        memory.at = 8;
        assert_eq!(
            memory.copy(),
            Err(Unreadable::NotPerfData),
            "nothing is mapped there"
        );
    }
}
