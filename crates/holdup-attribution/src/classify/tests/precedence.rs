//! What beats what, what is certain without a stack, and futexes.

use super::Case;
use crate::classify::NO_STACK;
use holdup_evidence::{Cause, Waker};

const READ_FAULT: &str = "folio_wait_bit_common filemap_fault __do_fault handle_mm_fault exc_page_fault";

#[test]
fn what_beats_what() {
    let file = "file ext4 7:0 /srv/f";
    let cases = [
        // 1. The scheduler.
        (
            Case::new("read", [3, 0, 1, 0])
                .on("pipe")
                .stack("get_signal exit_to_user_mode_loop"),
            Cause::ProcessFrozen,
        ),
        // 2. Memory beats the call.
        (
            Case::new("fsync", [3, 0, 0, 0]).blocked(true).on(file).stack(
                "folio_wait_bit folio_wait_writeback shrink_folio_list shrink_lruvec do_try_to_free_pages \
                 try_to_free_pages __alloc_pages_slowpath ext4_sync_file do_fsync",
            ),
            Cause::MemReclaim,
        ),
        (
            Case::new("read", [3, 0, 1, 0]).blocked(false).on("pipe").stack(
                "reclaim_throttle shrink_node try_to_free_mem_cgroup_pages reclaim_high \
                 __mem_cgroup_handle_over_high resume_user_mode_work",
            ),
            Cause::MemLimit,
        ),
        (
            Case::new("read", [3, 0, 1, 0]).blocked(true).on("pipe").stack(
                "folio_wait_bit_common __folio_lock_or_retry do_swap_page handle_mm_fault exc_page_fault \
                 copy_page_to_iter anon_pipe_read vfs_read",
            ),
            Cause::MemSwapin,
        ),
        (
            Case::new("read", [3, 0, 1, 0])
                .blocked(false)
                .on(file)
                .stack("rwsem_down_read_slowpath down_read lock_mm_and_find_vma exc_page_fault vfs_read"),
            Cause::MemMmaplock,
        ),
        // Taken by others, the same lock functions are a kernel lock.
        (
            Case::new("unlink", [0; 4])
                .blocked(false)
                .stack("rwsem_down_write_slowpath down_write do_unlinkat"),
            Cause::LockKernel,
        ),
        (
            Case::new("read", [3, 0, 1, 0])
                .blocked(false)
                .on("pipe")
                .stack("__mutex_lock mutex_lock pipe_read"),
            Cause::LockKernel,
        ),
        // 3. fsync beats journal, page and lock waits; FUSE and NFS beat disks.
        (
            Case::new("fsync", [3, 0, 0, 0])
                .blocked(false)
                .on(file)
                .stack("jbd2_log_wait_commit jbd2_complete_transaction ext4_sync_file do_fsync"),
            Cause::DiskSync,
        ),
        (
            Case::new("pwrite64", [3, 0, 1, 0])
                .blocked(false)
                .on(file)
                .stack("jbd2_log_wait_commit ext4_fc_commit ext4_sync_file generic_write_sync vfs_write"),
            Cause::DiskSync,
        ),
        (
            Case::new("fsync", [3, 0, 0, 0]).blocked(true).on(file),
            Cause::DiskSync,
        ),
        (
            Case::new("fsync", [3, 0, 0, 0]).on("file fuse 0:60 /mnt/f"),
            Cause::FsFuse,
        ),
        (
            Case::new("fdatasync", [3, 0, 0, 0])
                .blocked(true)
                .on("file nfs4 0:61 /mnt/n"),
            Cause::FsNetwork,
        ),
        (
            Case::new("pwrite64", [3, 0, 1, 0]).blocked(false).on(file).stack(
                "jbd2_log_wait_commit jbd2_log_do_checkpoint add_transaction_credits start_this_handle",
            ),
            Cause::DiskJournal,
        ),
        (
            Case::new("none", [0; 4]).blocked(true).stack(READ_FAULT),
            Cause::MemPagefault,
        ),
        (
            Case::new("none", [0; 4])
                .blocked(true)
                .on("file fuse 0:60 /mnt/f")
                .stack(READ_FAULT),
            Cause::FsFuse,
        ),
        (
            Case::new("read", [3, 0, 1, 0])
                .blocked(true)
                .on("pipe")
                .stack(READ_FAULT),
            Cause::MemPagefault,
        ),
        (
            Case::new("execve", [0; 4])
                .blocked(true)
                .stack("folio_wait_bit_common filemap_read bprm_execve"),
            Cause::ProcessExec,
        ),
        (
            Case::new("execve", [0; 4])
                .stack("request_wait_answer fuse_lookup do_open_execat do_execveat_common"),
            Cause::FsFuse,
        ),
        // 4. The path beats the kind of file.
        (
            Case::new("read", [3, 0, 1, 0])
                .on("fifo /dev/random")
                .stack("pipe_read vfs_read"),
            Cause::RandomDevice,
        ),
        (
            Case::new("read", [3, 0, 1, 0]).on("char 1:8"),
            Cause::RandomDevice,
        ),
        (
            Case::new("read", [3, 0, 1, 0]).on("char 10:183 /dev/hwrng"),
            Cause::RandomDevice,
        ),
        (
            Case::new("openat", [0; 4])
                .path("/dev/./random")
                .stack("wait_for_partner fifo_open path_openat"),
            Cause::RandomDevice,
        ),
        (
            Case::new("read", [3, 0, 1, 0])
                .on("char 1:8 /dev/random")
                .stack("wait_for_random_bytes random_read_iter"),
            Cause::RandomUnseeded,
        ),
        (Case::new("getrandom", [0, 32, 0, 0]), Cause::RandomUnseeded),
        (
            Case::new("recvfrom", [3, 0, 0, 0]).on("udp 10.0.0.1:53"),
            Cause::NetDns,
        ),
        (
            Case::new("recvfrom", [3, 0, 0, 0]).on("udp 224.0.0.251:5353"),
            Cause::NetDns,
        ),
        (
            Case::new("read", [3, 0, 0, 0]).on("tcp 10.0.0.1:853"),
            Cause::NetDns,
        ),
        (
            Case::new("read", [3, 0, 0, 0]).on("unix /var/run/nscd/socket"),
            Cause::NetDns,
        ),
        (
            Case::new("recvmsg", [3, 0, 0, 0]).on("unix /run/systemd/resolve/io.systemd.Resolve"),
            Cause::NetDns,
        ),
        (
            Case::new("recvfrom", [3, 0, 0, 0]).on("udp 10.0.0.1:5353"),
            Cause::NetReceive,
        ),
        (
            Case::new("connect", [3, 0, 0, 0]).on("tcp syn-sent 10.0.0.1:443"),
            Cause::NetConnect,
        ),
        (
            Case::new("accept4", [3, 0, 0, 0]).on("unix /run/s"),
            Cause::IpcUnix,
        ),
    ];
    for (index, (case, expected)) in cases.iter().enumerate() {
        let got = case.classify();
        assert_eq!(
            got.cause,
            *expected,
            "case {index}: {:?} {:?}",
            case.call.name(),
            case.stack
        );
    }
}

#[test]
fn without_a_stack_only_what_is_certain_is_told() {
    let file = "file ext4 7:0 /srv/f";
    let read = || Case::new("read", [3, 0, 4096, 0]);
    assert_eq!(read().blocked(true).on(file).cause(), Cause::DiskRead);
    assert_eq!(
        read().blocked(true).on("file nfs4 0:50 /n").cause(),
        Cause::FsNetwork
    );
    assert_eq!(read().on("pipe").cause(), Cause::IpcPipe);
    assert_eq!(
        Case::new("vfork", [0; 4]).blocked(false).cause(),
        Cause::ProcessChild
    );
    assert_eq!(
        Case::new("clone", [0x4111, 0, 0, 0]).blocked(false).cause(),
        Cause::ProcessChild
    );
    assert_eq!(Case::new("wait4", [0; 4]).cause(), Cause::ProcessChild);
    assert_eq!(
        Case::new("exit_group", [0; 4]).blocked(false).cause(),
        Cause::ProcessExit
    );
    for uncertain in [
        Case::new("pwrite64", [3, 0, 1, 0]).blocked(true).on(file),
        Case::new("mmap", [0; 4]).blocked(false),
        Case::new("clone", [0x11, 0, 0, 0]).blocked(false),
        Case::new("none", [0; 4]).blocked(true),
        Case::new("restart_syscall", [0; 4]),
        read().blocked(false).on("file proc 0:20 /proc/1/maps"),
    ] {
        let got = uncertain.classify();
        assert_eq!(got.cause, Cause::Unknown, "{:?}", got.call);
        assert_eq!(got.why_unknown.as_deref(), Some(NO_STACK));
    }
    let strange = read().blocked(false).on("pipe").stack("what_is_this vfs_read");
    let got = strange.classify();
    assert_eq!(got.cause, Cause::Unknown);
    assert!(got.why_unknown.is_some_and(|why| why.contains("what_is_this")));
    let unnamed_way = |on| {
        read()
            .blocked(true)
            .on(on)
            .stack("what_is_this.isra.0 vfs_read")
            .cause()
    };
    assert_eq!(unnamed_way(file), Cause::DiskRead);
    assert_eq!(unnamed_way("pipe"), Cause::Unknown);
}

#[test]
fn futexes_that_only_let_time_pass_are_sleeps() {
    const TIMED_OUT: i64 = -110;
    let wait_until = |limit| Case::new("futex", [0x7f00, 0x189, 0, limit]);
    let timer = || Waker::Interrupt {
        soft: false,
        socket: None,
    };
    let cases = [
        (wait_until(1).returned(TIMED_OUT), Cause::TimerSleep, true),
        (wait_until(1).returned(0), Cause::LockFutex, false),
        (wait_until(1).woken(timer()), Cause::TimerSleep, true),
        (wait_until(1).woken(timer()).returned(0), Cause::LockFutex, false),
        (wait_until(0).woken(timer()), Cause::LockFutex, false),
        (wait_until(1), Cause::LockFutex, false),
        // A priority-inheriting lock has an owner: running out of time does not make it a sleep.
        (
            Case::new("futex", [0x7f00, 6, 0, 1]).returned(TIMED_OUT),
            Cause::LockFutex,
            true,
        ),
        (
            Case::new("futex_waitv", [0x7f00, 1, 0, 1]).returned(TIMED_OUT),
            Cause::TimerSleep,
            true,
        ),
    ];
    for (index, (case, cause, timed_out)) in cases.iter().enumerate() {
        let got = case.classify();
        assert_eq!((got.cause, got.timed_out), (*cause, *timed_out), "case {index}");
        assert_eq!(
            got.resource.detail.address,
            Some(holdup_model::attributed::Address::Memory(0x7f00))
        );
    }
    assert_eq!(wait_until(0).classify().resource.name, "futex 0x7f00");
}

#[test]
fn a_page_of_a_served_file_system_is_its_daemons() {
    const EXEC: &str = "folio_wait_bit_common filemap_read_folio filemap_update_page filemap_get_pages \
                        filemap_read fuse_file_read_iter __kernel_read bprm_execve do_execveat_common";
    const READ: &str = "folio_wait_bit_common filemap_update_page filemap_get_pages filemap_read \
                        __kernel_read bprm_execve do_execveat_common";
    let exec = || Case::new("execve", [0; 4]).blocked(true);
    let fault = || Case::new("none", [0; 4]).blocked(true);
    let cases = [
        (
            exec().on("file fuse 0:50 /mnt/tool").stack(EXEC),
            Cause::FsFuse,
            "/mnt/tool",
        ),
        (
            exec().on("file fuse 0:50 /mnt/tool").stack(READ),
            Cause::FsFuse,
            "/mnt/tool",
        ),
        (
            exec().on("file nfs4 0:51 /net/tool").stack(READ),
            Cause::FsNetwork,
            "/net/tool",
        ),
        (
            exec().on("file ext4 7:0 /srv/tool").stack(READ),
            Cause::ProcessExec,
            "/srv/tool",
        ),
        (
            fault().on("file fuse 0:50 /mnt/data").stack(READ_FAULT),
            Cause::FsFuse,
            "/mnt/data",
        ),
        (
            fault().on("file ext4 7:0 /srv/data").stack(READ_FAULT),
            Cause::MemPagefault,
            "/srv/data",
        ),
    ];
    for (case, cause, name) in cases {
        let found = case.classify();
        assert_eq!((found.cause, found.resource.name.as_str()), (cause, name));
        assert!(found.resource.detail.device.is_some(), "{name}");
    }
    // The object is the call's; the page that its buffer lies in is another file's.
    let copied = Case::new("write", [3, 0, 1, 0])
        .blocked(true)
        .on("file fuse 0:50 /mnt/log");
    assert_eq!(copied.stack(READ_FAULT).cause(), Cause::MemPagefault);
    // A file without a path is named as it was asked for.
    let unnamed = exec().on("file ext4 7:0").stack(READ).path("./tool").classify();
    assert_eq!(unnamed.resource.name, "./tool");
}

#[test]
fn a_kernel_thread_in_its_own_main_function_waits_for_work() {
    let idle = |stack| Case::new("none", [0; 4]).stack(stack).cause();
    assert_eq!(idle("kcompactd kthread ret_from_fork"), Cause::Idle);
    assert_eq!(idle("kthreadd ret_from_fork ret_from_fork_asm"), Cause::Idle);
    assert_eq!(
        idle("somewhere_else kcompactd kthread ret_from_fork"),
        Cause::Unknown
    );
    assert_eq!(idle("kthread ret_from_fork"), Cause::Unknown);
}
