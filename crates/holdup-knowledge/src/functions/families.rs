//! Families of kernel functions that rules ask about, by parts of their names, as kernels from 5.10 to 6.18 have them.
//!
//! In: a function's name as in a kernel stack. Out: whether it belongs. Where a name changed, all forms stand beside each other.

/// Parts of the names of functions that keep account of a cgroup's memory.
const MEMORY_CGROUP: [&str; 2] = ["mem_cgroup", "memcg"];

/// Functions in which a thread sleeps that waits for room in a pipe or a socket; in the last one others sleep, too.
const FOR_ROOM: [&str; 8] = [
    "pipe_write",
    "anon_pipe_write",
    "fifo_pipe_write",
    "pipe_wait_writable",
    "unix_wait_for_peer",
    "sock_alloc_send_pskb",
    "sk_stream_wait_memory",
    "wait_woken",
];

/// Whether a thread that sleeps in it may wait for room in a pipe or a socket: its call says whether it does.
pub fn may_wait_for_room(function: &str) -> bool {
    FOR_ROOM.contains(&function)
}

/// Whether it works for any cgroup.
pub fn of_cgroup(function: &str) -> bool {
    function.contains("cgroup")
}

/// Whether it works for the memory of a cgroup.
pub fn of_memory_cgroup(function: &str) -> bool {
    MEMORY_CGROUP.iter().any(|part| function.contains(part))
}

/// Whether it moves memory together for a large page.
pub fn compacts(function: &str) -> bool {
    function.contains("compact")
}

/// Whether it asks a scanner of files.
pub fn of_fanotify(function: &str) -> bool {
    function.starts_with("fanotify_")
}

/// Whether it asks a supervisor of system calls.
pub fn of_seccomp(function: &str) -> bool {
    function.contains("seccomp")
}

/// Whether it copies a file up into the writable layer of an overlay.
pub fn copies_up(function: &str) -> bool {
    function.starts_with("ovl_copy_up")
}

/// Whether it waits for room in a journal (of ext4, of XFS), rather than for a transaction.
pub fn journal_is_full(function: &str) -> bool {
    function.contains("log_wait_for_space")
        || function.contains("log_do_checkpoint")
        || function.starts_with("xlog_grant")
        || function.starts_with("xfs_log_re")
}

/// Whether it copies an address space.
pub fn copies_address_space(function: &str) -> bool {
    COPYING.iter().any(|copying| function.starts_with(copying))
}

/// Beginnings of those.
const COPYING: [&str; 5] = [
    "copy_page_range",
    "copy_pte_range",
    "copy_p4d_range",
    "dup_mmap",
    "dup_mm",
];
