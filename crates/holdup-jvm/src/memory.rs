//! The memory of a process that runs.
//!
//! In: a process id. Out: its pages, for [`Memory`].

use holdup_proc::{Root, python_packages};
use holdup_runtimes::memory::PAGE;
pub use holdup_runtimes::memory::{Memory, Source};
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use std::io::IoSliceMut;
use std::path::Path;

/// The memory of a process that runs. Reading it can block for as long as the process's address space is locked.
#[derive(Debug, Clone, Copy)]
pub struct Running(pub u32);

impl Source for Running {
    fn page(&mut self, address: u64, page: &mut [u8; PAGE]) -> bool {
        let (Ok(pid), Ok(base)) = (i32::try_from(self.0), usize::try_from(address)) else {
            return false;
        };
        let mut local = [IoSliceMut::new(page)];
        let remote = [RemoteIoVec { base, len: PAGE }];
        process_vm_readv(Pid::from_raw(pid), &mut local, &remote) == Ok(PAGE)
    }

    fn pages(&mut self, wanted: &mut [(u64, Box<[u8; PAGE]>)]) -> usize {
        let bases = wanted.iter().map(|(address, _)| usize::try_from(*address));
        let (Ok(pid), Ok(bases)) = (i32::try_from(self.0), bases.collect::<Result<Vec<_>, _>>()) else {
            return 0;
        };
        let remote: Vec<_> = bases
            .into_iter()
            .map(|base| RemoteIoVec { base, len: PAGE })
            .collect();
        let mut local: Vec<_> = wanted
            .iter_mut()
            .map(|(_, page)| IoSliceMut::new(&mut page[..]))
            .collect();
        process_vm_readv(Pid::from_raw(pid), &mut local, &remote).map_or(0, |bytes| bytes / PAGE)
    }

    fn installed_in(&mut self, folder: &str) -> Vec<(String, String)> {
        let installed = python_packages::in_folder(&Root::system(), self.0, Path::new(folder));
        installed.into_iter().map(|one| (one.top, one.package)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Memory, Running};

    #[test]
    fn own_memory_is_copied_ahead_around_what_is_not_there() {
        let known: u64 = 0x1234_5678_9abc_def0;
        let mut memory = Memory::new(Running(std::process::id()));
        memory.ahead([8, &raw const known as u64]);
        assert_eq!(memory.word(&raw const known as u64), Some(known));
    }

    #[test]
    fn own_memory_can_be_read() {
        let known: u64 = 0x1234_5678_9abc_def0;
        let mut memory = Memory::new(Running(std::process::id()));
        assert_eq!(memory.word(&raw const known as u64), Some(known));
        assert_eq!(memory.word(8), None);
    }
}
