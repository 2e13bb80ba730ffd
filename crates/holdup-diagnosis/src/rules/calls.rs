//! Which waits happen in which system calls: what time that was not resolved could have been.
//!
//! In: a cause and a call. Out: whether the one happens in the other.

use holdup_evidence::Cause;

/// Whether a wait of this cause happens in this system call: unresolved time in the call could then be it.
pub(super) fn happens_in(cause: Cause, call: &str) -> bool {
    let polls = matches!(
        call,
        "poll" | "ppoll" | "select" | "pselect6" | "epoll_wait" | "epoll_pwait" | "epoll_pwait2"
    );
    let reads = matches!(
        call,
        "read" | "readv" | "pread64" | "preadv" | "preadv2" | "sendfile" | "splice"
    );
    let writes = matches!(
        call,
        "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2" | "sendfile" | "splice"
    );
    let receives = matches!(call, "recvfrom" | "recvmsg" | "recvmmsg");
    let sends = matches!(call, "sendto" | "sendmsg" | "sendmmsg");
    let syncs = matches!(
        call,
        "fsync" | "fdatasync" | "sync" | "syncfs" | "msync" | "sync_file_range"
    );
    let opens = matches!(
        call,
        "open" | "openat" | "openat2" | "creat" | "stat" | "newfstatat" | "statx" | "getdents64"
    );
    match cause {
        Cause::RandomUnseeded => reads || call == "getrandom",
        Cause::RandomDevice => reads || polls || opens,
        Cause::DiskRead => reads || opens,
        Cause::DiskSync => syncs || writes,
        Cause::DiskWrite | Cause::DiskWriteback | Cause::DiskJournal => writes || syncs || opens,
        Cause::FsFrozen => writes || opens,
        Cause::SecurityDecision => true,
        Cause::FsFuse => reads || writes || syncs || opens,
        Cause::IpcPipe => reads || writes || polls || opens,
        Cause::IpcTty => reads || writes || polls,
        Cause::IpcUnix => reads || writes || receives || sends || polls || call == "connect",
        Cause::NetReceive => reads || receives || polls,
        Cause::NetSend => writes || sends || polls,
        Cause::NetDns => receives || polls,
        Cause::NetConnect => call == "connect" || polls,
        Cause::NetAccept => matches!(call, "accept" | "accept4") || polls,
        Cause::LockFutex | Cause::LockMonitor | Cause::RuntimeInterpreter => {
            matches!(call, "futex" | "futex_wait")
        }
        Cause::LockFile => matches!(call, "flock" | "fcntl"),
        Cause::LockSysv => matches!(call, "semop" | "semtimedop"),
        Cause::IpcQueue => {
            reads || polls || matches!(call, "mq_timedsend" | "mq_timedreceive" | "msgsnd" | "msgrcv")
        }
        Cause::LockKernel | Cause::MemMmaplock => opens || matches!(call, "mmap" | "munmap" | "mprotect"),
        Cause::ProcessChild => matches!(call, "wait4" | "waitid" | "vfork" | "clone" | "clone3"),
        Cause::ProcessExec => matches!(call, "execve" | "execveat"),
        Cause::TimerSleep => polls || matches!(call, "nanosleep" | "clock_nanosleep"),
        _ => false,
    }
}
