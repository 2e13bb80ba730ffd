//! Which reads can block for ever, and who may do them.
//!
//! A process that must end does only reads that cannot block. All others are made by a child of its own ([`holdup_detached`]), which can
//! be abandoned. A thread does not do: a thread that is stuck in the kernel keeps its whole process from ending. This table says which
//! read is of which kind. It was made from the kernel's sources (5.8 to 6.18).
//!
//! | What is read | What it waits for | Who may do it |
//! |---|---|---|
//! | `/proc/PID/{stat,status,comm,schedstat,sched,wchan,limits,children}`, `/proc/PID/task` | nothing that a program holds for long: RCU, short spin locks, `siglock` | anybody |
//! | `/proc/PID/ns/*` by `readlink` | nothing | anybody |
//! | `/proc/PID/{cwd,root,exe,fd/N}` by `readlink`, and lists of `/proc/PID/fd` | nothing: the kernel makes the path without asking the file system | anybody |
//! | `/proc/PID/{syscall,stack,io,personality,auxv}` | `exec_update_lock`: an exec holds it while it reads the new program from its file system | a child |
//! | `/proc/PID/{maps,smaps,numa_maps,pagemap,clear_refs}`, `map_files` | `mmap_lock`: a page fault, `mmap` or `munmap` of that process may hold it while a file system, `userfaultfd` or swap does not answer | a child |
//! | `/proc/PID/{mem,cmdline,environ}`, `process_vm_readv` | `mmap_lock`; then the page itself, which a FUSE daemon or `userfaultfd` may never bring | a child |
//! | `/proc/PID/fdinfo/N` | locks of the file: of an epoll set its mutex, which is held while a file in it is polled; of drivers anything. Of `/dev/fuse`: nothing | a child |
//! | `stat`, `statfs`, `open`, `read` of anything below `/proc/PID/{root,cwd,fd,map_files}` | the file system: FUSE, NFS, overlay over one of them | a child |
//! | `open`, `stat`, `statfs` of a path that a program or a table of mounts names | the same | a child |
//! | `/proc/PID/mountinfo`, `/proc/self/mountinfo` | `namespace_sem`: whoever mounts or unmounts has it, and no file system is asked meanwhile | anybody |
//! | `/proc/PID/net/*`, netlink | locks of the network stack, never held for long | anybody |
//! | `/sys`, `/proc/sys`, `/proc/*` of the machine, cgroups | short locks; `/proc/PID/cgroup` and `cgroup.procs` wait for `cgroup_mutex`, which a busy machine may hold for long | anybody; a child where it is of many cgroups |
//! | a device, a FIFO, a socket | whoever is at the other end | a child |
//!
//! In: a process id. Out: what a child that reads processes may keep, and how it is called.

mod reader;

pub use reader::Reader;

use crate::{Root, names};
use holdup_detached::{Capabilities, Confinement};
use std::ffi::CStr;

/// Address space that a reader may have beyond the parent's, bytes. The largest answer is a table of mounts or mappings of 8 MiB, which is
/// there as text and as a list.
const MEMORY_BYTES: u64 = 256 << 20;

/// Files that a reader may have open at a time: a few tables, and the folder of the process.
const FILES: u64 = 64;

/// What a child may keep that reads other processes: the two capabilities for that, where this process has them.
#[must_use]
pub const fn reader(name: &'static CStr) -> Confinement {
    Confinement {
        name,
        capabilities: Capabilities::SYS_PTRACE.or(Capabilities::DAC_READ_SEARCH),
        cpu_time: None,
        memory_bytes: MEMORY_BYTES,
        files: FILES,
    }
}

/// The same for one that reads the kernel's stacks, too: `/proc/PID/stack` wants `CAP_SYS_ADMIN`. Its user id and the filter of its system
/// calls leave little else to that capability.
#[must_use]
pub const fn reader_of_stacks(name: &'static CStr) -> Confinement {
    /// `CAP_SYS_ADMIN`.
    const ADMIN: Capabilities = Capabilities::number(21);
    let reader = reader(name);
    Confinement {
        capabilities: reader.capabilities.or(ADMIN),
        ..reader
    }
}

/// A process, for the list of children left behind.
#[must_use]
pub fn process_named(pid: u32) -> String {
    match names::comm(&Root::system(), pid) {
        Some(name) => format!("process {pid} ({name})"),
        None => format!("process {pid}"),
    }
}
