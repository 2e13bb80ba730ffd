//! Which argument of which system call is a descriptor or a path: what the programs need to resolve objects.

/// Number of system calls that the programs' tables have room for.
pub const TABLE: usize = 512;

/// Calls of 32-bit programs and the same of 64-bit ones, where their first four arguments mean the same (the kernel's
/// `syscall_32.tbl`). The others have no number: what they wait for is told by the kernel's stack.
const OF_32_BIT: &[(usize, libc::c_long)] = &[
    (0, libc::SYS_restart_syscall),
    (3, libc::SYS_read),
    (4, libc::SYS_write),
    (5, libc::SYS_open),
    (6, libc::SYS_close),
    (7, libc::SYS_wait4),
    (11, libc::SYS_execve),
    (29, libc::SYS_pause),
    (36, libc::SYS_sync),
    (54, libc::SYS_ioctl),
    (55, libc::SYS_fcntl),
    (114, libc::SYS_wait4),
    (118, libc::SYS_fsync),
    (120, libc::SYS_clone),
    (142, libc::SYS_select),
    (143, libc::SYS_flock),
    (144, libc::SYS_msync),
    (145, libc::SYS_readv),
    (146, libc::SYS_writev),
    (148, libc::SYS_fdatasync),
    (162, libc::SYS_nanosleep),
    (168, libc::SYS_poll),
    (179, libc::SYS_rt_sigsuspend),
    (180, libc::SYS_pread64),
    (181, libc::SYS_pwrite64),
    (190, libc::SYS_vfork),
    (195, libc::SYS_stat),
    (197, libc::SYS_fstat),
    (221, libc::SYS_fcntl),
    (240, libc::SYS_futex),
    (252, libc::SYS_exit_group),
    (256, libc::SYS_epoll_wait),
    (267, libc::SYS_clock_nanosleep),
    (284, libc::SYS_waitid),
    (295, libc::SYS_openat),
    (308, libc::SYS_pselect6),
    (309, libc::SYS_ppoll),
    (319, libc::SYS_epoll_pwait),
    (344, libc::SYS_syncfs),
    (355, libc::SYS_getrandom),
    (362, libc::SYS_connect),
    (364, libc::SYS_accept4),
    (369, libc::SYS_sendto),
    (370, libc::SYS_sendmsg),
    (371, libc::SYS_recvfrom),
    (372, libc::SYS_recvmsg),
    (407, libc::SYS_clock_nanosleep),
    (413, libc::SYS_pselect6),
    (414, libc::SYS_ppoll),
    (420, libc::SYS_semtimedop),
    (422, libc::SYS_futex),
];

/// For each number of a 32-bit call: 1 + that of the same 64-bit one; 0 where there is none.
pub(crate) fn calls_of_32_bit() -> [u16; TABLE] {
    let mut calls = [0; TABLE];
    for (number, same) in OF_32_BIT {
        if let Ok(same) = u16::try_from(*same) {
            calls[*number] = same + 1;
        }
    }
    calls
}

/// Calls whose first argument is the descriptor that they work on.
const FIRST_IS_DESCRIPTOR: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendmmsg,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_shutdown,
    libc::SYS_close,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_syncfs,
    libc::SYS_sync_file_range,
    libc::SYS_flock,
    libc::SYS_fcntl,
    libc::SYS_ioctl,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_getdents,
    libc::SYS_getdents64,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_epoll_ctl,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_tee,
    libc::SYS_vmsplice,
    libc::SYS_copy_file_range,
    libc::SYS_readahead,
    libc::SYS_fadvise64,
    libc::SYS_fchmod,
    libc::SYS_fchown,
    libc::SYS_fsetxattr,
    libc::SYS_fgetxattr,
    libc::SYS_io_uring_enter,
    libc::SYS_timerfd_settime,
    libc::SYS_mq_timedsend,
    libc::SYS_mq_timedreceive,
];

/// Calls whose first argument is a path.
const FIRST_IS_PATH: &[libc::c_long] = &[
    libc::SYS_open,
    libc::SYS_creat,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_readlink,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_truncate,
    libc::SYS_chdir,
    libc::SYS_statfs,
    libc::SYS_execve,
    libc::SYS_umount2,
    libc::SYS_utime,
];

/// Calls whose second argument is a path, after a directory's descriptor.
const SECOND_IS_PATH: &[libc::c_long] = &[
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_mkdirat,
    libc::SYS_linkat,
    libc::SYS_readlinkat,
    libc::SYS_fchmodat,
    libc::SYS_fchownat,
    libc::SYS_execveat,
    libc::SYS_utimensat,
    libc::SYS_mount,
];

fn table(lists: &[(u8, &[libc::c_long])]) -> [u8; TABLE] {
    let mut table = [0; TABLE];
    for (mark, calls) in lists {
        for call in *calls {
            if let Some(slot) = usize::try_from(*call)
                .ok()
                .and_then(|number| table.get_mut(number))
            {
                *slot = *mark;
            }
        }
    }
    table
}

/// Number of io_uring operations that the programs' table has room for.
pub const OPERATIONS: usize = 64;

/// io_uring operations (`IORING_OP_…`), and the system calls that do the same.
const OPERATIONS_AS_CALLS: &[(usize, libc::c_long)] = &[
    (1, libc::SYS_readv),
    (2, libc::SYS_writev),
    (3, libc::SYS_fsync),
    (4, libc::SYS_pread64),
    (5, libc::SYS_pwrite64),
    (6, libc::SYS_poll),
    (8, libc::SYS_sync_file_range),
    (9, libc::SYS_sendmsg),
    (10, libc::SYS_recvmsg),
    (13, libc::SYS_accept),
    (16, libc::SYS_connect),
    (17, libc::SYS_fallocate),
    (18, libc::SYS_openat),
    (19, libc::SYS_close),
    (21, libc::SYS_statx),
    (22, libc::SYS_read),
    (23, libc::SYS_write),
    (24, libc::SYS_fadvise64),
    (25, libc::SYS_madvise),
    (26, libc::SYS_sendto),
    (27, libc::SYS_recvfrom),
    (28, libc::SYS_openat2),
    (30, libc::SYS_splice),
    (33, libc::SYS_tee),
    (34, libc::SYS_shutdown),
    (35, libc::SYS_renameat2),
    (36, libc::SYS_unlinkat),
    (37, libc::SYS_mkdirat),
    (38, libc::SYS_symlinkat),
    (39, libc::SYS_linkat),
    (55, libc::SYS_ftruncate),
];

/// For each io_uring operation the number of the system call that does the same, -1 where none does.
#[must_use]
pub fn calls_of_operations() -> [i16; OPERATIONS] {
    let mut table = [-1; OPERATIONS];
    for (operation, call) in OPERATIONS_AS_CALLS {
        if let (Some(slot), Ok(call)) = (table.get_mut(*operation), i16::try_from(*call)) {
            *slot = call;
        }
    }
    table
}

/// For each call number 1 + the index of its descriptor argument, 0 where it has none.
#[must_use]
pub fn descriptor_arguments() -> [u8; TABLE] {
    table(&[(1, FIRST_IS_DESCRIPTOR)])
}

/// For each call number 1 + the index of its path argument, 0 where it has none.
#[must_use]
pub fn path_arguments() -> [u8; TABLE] {
    table(&[(1, FIRST_IS_PATH), (2, SECOND_IS_PATH)])
}

/// Whether this call waits for one of several descriptors that are its arguments.
#[must_use]
pub fn is_poll(number: i32) -> bool {
    const POLLS: [libc::c_long; 4] = [
        libc::SYS_poll,
        libc::SYS_ppoll,
        libc::SYS_select,
        libc::SYS_pselect6,
    ];
    POLLS.contains(&number.into())
}

#[cfg(test)]
mod tests {
    use super::{calls_of_operations, descriptor_arguments, path_arguments};

    #[test]
    fn an_operation_without_a_call_has_none() {
        let table = calls_of_operations();
        assert_eq!(i64::from(table[3]), libc::SYS_fsync);
        assert_eq!(table[0], -1);
    }

    #[test]
    fn no_call_is_in_both_tables() {
        for (descriptor, path) in descriptor_arguments().iter().zip(path_arguments()) {
            assert!(*descriptor == 0 || path == 0);
        }
        assert_eq!(descriptor_arguments()[libc::SYS_read as usize], 1);
        assert_eq!(path_arguments()[libc::SYS_openat as usize], 2);
    }
}
