//! Locks: the kernel's own, which are known by who takes them, and those that programs ask it for.
//!
//! A stack that another thread took leaves out the lock functions themselves (the kernel marks them as
//! part of the scheduler), so what shows is the taker, innermost, in an uninterruptible sleep without I/O.

use super::{
    Line,
    Meaning::{Is, Lock},
    Rank::Object,
};
use holdup_evidence::Cause::{LockFile, LockFutex, LockSysv};

pub(super) const TABLE: &[Line] = &[
    ("__down*", Lock),
    ("__lock_sock", Lock),
    ("__mutex_lock*", Lock),
    ("__percpu_down_read", Lock),
    ("__percpu_rwsem*", Lock),
    ("__rt_mutex*", Lock),
    ("__rwbase*", Lock),
    ("__ww_mutex_lock*", Lock),
    ("down", Lock),
    ("down_interruptible", Lock),
    ("down_killable", Lock),
    ("down_read*", Lock),
    ("down_timeout", Lock),
    ("down_write*", Lock),
    ("lock_sock_nested", Lock),
    ("mutex_lock*", Lock),
    ("percpu_down_read*", Lock),
    ("percpu_down_write", Lock),
    ("percpu_rwsem_wait", Lock),
    ("rt_mutex_lock*", Lock),
    ("rt_mutex_slowlock*", Lock),
    ("rwbase_*", Lock),
    ("rwsem_down_*", Lock),
    ("rwsem_optimistic_spin", Lock),
    ("ww_mutex_lock*", Lock),
    // Futexes.
    ("__futex_wait", Is(Object, LockFutex)),
    ("do_futex", Is(Object, LockFutex)),
    ("futex_do_wait", Is(Object, LockFutex)),
    ("futex_lock_pi*", Is(Object, LockFutex)),
    ("futex_wait*", Is(Object, LockFutex)),
    // File locks.
    ("__break_lease", Is(Object, LockFile)),
    ("fcntl_setlk*", Is(Object, LockFile)),
    ("flock_lock_inode_wait", Is(Object, LockFile)),
    ("locks_lock_inode_wait", Is(Object, LockFile)),
    ("posix_lock_inode_wait", Is(Object, LockFile)),
    // System V semaphores.
    ("__do_semtimedop", Is(Object, LockSysv)),
    ("do_semtimedop", Is(Object, LockSysv)),
];

/// The per-CPU lock that a frozen file system holds against writers.
pub const PERCPU_READERS: &[&str] = &["percpu_rwsem_wait", "__percpu_down_read", "percpu_down_read"];

/// Who takes that lock to write to a file system; others use such locks for CPU hot-plug and cgroups.
pub const FILE_SYSTEM_WRITERS: &[&str] = &[
    "*_evict_inode",
    "*_page_mkwrite",
    "__sb_start_write",
    "aio_write",
    "do_clone_file_range",
    "do_ftruncate",
    "do_iter_write",
    "do_sys_ftruncate",
    "file_start_write",
    "io_write",
    "kiocb_start_write",
    "mnt_want_write*",
    "ovl_*",
    "sb_start_write",
    "vfs_*",
    "xfs_trans_alloc*",
];

/// Who takes an address space's lock.
pub const ADDRESS_SPACE: &[&str] = &[
    "__access_remote_vm",
    "__arm64_sys_brk",
    "__arm64_sys_mremap",
    "__arm64_sys_munmap",
    "__do_sys_brk",
    "__do_sys_mremap",
    "__do_sys_munmap",
    "__get_user_pages_locked",
    "__get_user_pages_remote",
    "__gup_longterm_locked",
    "__mm_populate",
    "__vm_munmap",
    "__vma_start_write",
    "__x64_sys_brk",
    "__x64_sys_mremap",
    "__x64_sys_munmap",
    "access_remote_vm",
    "apply_vma_lock_flags",
    "do_madvise",
    "do_mem_abort",
    "do_mincore",
    "do_mlock",
    "do_mprotect_pkey",
    "do_mremap",
    "do_munmap",
    "do_user_addr_fault",
    "dup_mm",
    "dup_mmap",
    "exc_page_fault",
    "fixup_user_fault",
    "get_cmdline",
    "get_user_pages_unlocked",
    "internal_get_user_pages_fast",
    "gup_fast_fallback",
    "lock_mm_and_find_vma",
    "lock_next_vma*",
    "lock_vma_under_rcu",
    "m_start",
    "madvise_lock*",
    "madvise_vma_behavior",
    "mm_populate",
    "mmap_read_lock*",
    "mmap_write_lock*",
    "mpol_*",
    "proc_pid_cmdline_read",
    "query_vma_setup",
    "uffd_lock_vma",
    "uffd_mfill_lock",
    "userfaultfd_*",
    "vm_brk_flags",
    "vm_mmap_pgoff",
    "vma_start_write*",
];

/// Who takes it and can also sleep for another reason (`exit_mm`, before 5.16: for a core dump): counts only
/// where the lock function itself shows.
pub const ADDRESS_SPACE_IF_LOCK_SHOWS: &[&str] = &["exit_mm"];

/// Who takes a kernel lock and, in an uninterruptible sleep without I/O, waits for nothing else.
pub const KERNEL_LOCK: &[&str] = &[
    "*_file_read_iter",
    "*_file_write_iter",
    "*_file_splice_read",
    "*_get_mutex",
    "*_ilock",
    "*_lock",
    "*_lock_nested",
    "__fdget_pos",
    "__f_lock_pos",
    "anon_pipe_read",
    "anon_pipe_write",
    "btrfs_inode_lock",
    "btrfs_tree_lock*",
    "btrfs_tree_read_lock*",
    "cgroup_kn_lock_live",
    "chmod_common",
    "chown_common",
    "copy_process",
    "do_iter_readv_writev",
    "do_last",
    "do_linkat",
    "do_mknodat",
    "do_renameat2",
    "do_rmdir",
    "do_symlinkat",
    "do_truncate",
    "do_unlinkat",
    "ext4_buffered_write_iter",
    "ext4_da_map_blocks",
    "ext4_fallocate",
    "ext4_file_write_iter",
    "ext4_map_blocks",
    "ext4_orphan_add",
    "ext4_orphan_del",
    "fdget_pos",
    "filename_create",
    "generic_file_write_iter",
    "iterate_dir",
    "kernfs_dop_revalidate",
    "kernfs_fop_*",
    "kernfs_iop_*",
    "lock_rename*",
    "lock_two_directories",
    "lookup_slow",
    "nfs_start_io_*",
    "open_last_lookups",
    "path_openat",
    "pipe_read",
    "pipe_write",
    "register_nexthop_notifier",
    "rtnetlink_rcv*",
    "rtnl_*",
    "seq_read_iter",
    "shmem_fallocate",
    "start_creating*",
    "start_dirop",
    "start_removing*",
    "unix_stream_read_generic",
    "vfs_setxattr",
    "walk_component",
    "xfs_ilock*",
];

/// Whether a name fits one of a list of names and patterns.
pub fn listed(list: &[&str], name: &str) -> bool {
    list.iter().any(|pattern| {
        if let Some(start) = pattern.strip_suffix('*') {
            name.starts_with(start)
        } else if let Some(end) = pattern.strip_prefix('*') {
            name.ends_with(end)
        } else {
            name == *pattern
        }
    })
}
