//! Memory: reclaim, limits, swap, userfaultfd. These beat the system call in which they happen.
//!
//! The address space lock is in `locks`, because it is known by who takes the lock.

use super::{
    Line,
    Meaning::{Is, Nothing},
    Rank::{Generic, Limit, Memory},
};
use holdup_evidence::Cause::{DiskWriteback, KernelWork, MemLimit, MemReclaim, MemSwapin, MemUserfault};

pub(super) const TABLE: &[Line] = &[
    ("__mem_cgroup_handle_over_high", Is(Limit, MemLimit)),
    ("mem_cgroup_handle_over_high", Is(Limit, MemLimit)),
    // Reclaim and compaction. The dentry cache also shrinks on rmdir and umount, which is not reclaim.
    ("__alloc_pages_direct_compact", Is(Memory, MemReclaim)),
    ("__alloc_pages_direct_reclaim", Is(Memory, MemReclaim)),
    ("__alloc_pages_slowpath", Is(Memory, MemReclaim)),
    ("__perform_reclaim", Is(Memory, MemReclaim)),
    ("compact_*", Is(Memory, MemReclaim)),
    ("congestion_wait", Is(Memory, MemReclaim)),
    ("do_try_to_free_pages", Is(Memory, MemReclaim)),
    ("mem_cgroup_oom_synchronize", Is(Memory, MemReclaim)),
    ("mem_cgroup_out_of_memory", Is(Memory, MemReclaim)),
    ("node_reclaim", Is(Memory, MemReclaim)),
    ("out_of_memory", Is(Memory, MemReclaim)),
    ("reclaim_throttle", Is(Memory, MemReclaim)),
    ("shrink_*", Is(Memory, MemReclaim)),
    ("shrink_dcache*", Nothing),
    ("shrink_dentry_list", Nothing),
    ("throttle_direct_reclaim", Is(Memory, MemReclaim)),
    ("too_many_isolated", Is(Memory, MemReclaim)),
    ("try_to_compact_pages", Is(Memory, MemReclaim)),
    ("try_to_free_mem_cgroup_pages", Is(Memory, MemReclaim)),
    ("try_to_free_pages", Is(Memory, MemReclaim)),
    ("wait_iff_congested", Is(Memory, MemReclaim)),
    // Swap.
    ("__read_swap_cache_async", Is(Memory, MemSwapin)),
    ("do_swap_page", Is(Memory, MemSwapin)),
    ("read_swap_cache_async", Is(Memory, MemSwapin)),
    ("shmem_swapin*", Is(Memory, MemSwapin)),
    ("swap_cluster_readahead", Is(Memory, MemSwapin)),
    ("swap_read*", Is(Memory, MemSwapin)),
    ("swap_vma_readahead", Is(Memory, MemSwapin)),
    ("swapin_*", Is(Memory, MemSwapin)),
    ("handle_userfault", Is(Memory, MemUserfault)),
    // Too many dirty pages.
    ("balance_dirty_pages*", Is(Memory, DiskWriteback)),
    // A page on its way between nodes.
    ("migration_entry_wait*", Is(Generic, KernelWork)),
];
