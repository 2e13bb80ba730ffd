//! What a system call can wait for, by its name: numbers differ between machines, names do not.

use super::functions::Direction;
use holdup_evidence::Call;

/// Calls that wait alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// No call: a page fault, or on the way out of one.
    None,
    /// poll and select.
    Poll,
    /// epoll.
    Epoll,
    /// A futex.
    Futex,
    /// nanosleep.
    Sleep,
    /// A signal.
    Signal,
    /// fsync and its like.
    Sync,
    /// execve.
    Exec,
    /// exit.
    Exit,
    /// wait.
    Child,
    /// vfork and what may be one.
    Vfork,
    /// read from a descriptor.
    Read,
    /// write to a descriptor.
    Write,
    /// Receive from a socket.
    Receive,
    /// Send to a socket.
    Send,
    /// connect.
    Connect,
    /// accept.
    Accept,
    /// flock and fcntl's locks.
    FileLock,
    /// System V semaphores.
    Semaphore,
    /// Message queues.
    Queue,
    /// io_uring and aio.
    Async,
    /// getrandom.
    Random,
    /// open.
    Open,
    /// Names and inodes: stat, unlink, rename …
    Metadata,
    /// ioctl.
    Ioctl,
    /// The rest of a call that a signal had interrupted.
    Restart,
    /// Anything else.
    Other,
}

/// `FUTEX_CMD_MASK`: the operation without its flags.
const FUTEX_OPERATION: u64 = 0x7f;
/// `FUTEX_WAIT`, `FUTEX_WAIT_BITSET`: the futex operations that condition variables and semaphores sleep in.
const FUTEX_PLAIN_WAITS: [u64; 2] = [0, 9];
/// `F_SETLKW` and `F_OFD_SETLKW`.
const FCNTL_LOCK_WAITS: [u64; 2] = [7, 38];
/// Whether it makes a process that has a copy of its maker's memory, rather than the same: of `clone3` the registers do not say.
pub fn copies_memory(call: &Call) -> bool {
    const CLONE_VM: u64 = 0x100;
    match call.name() {
        Some("fork") => true,
        Some("clone") => call.args[0] & CLONE_VM == 0,
        _ => false,
    }
}

/// `CLONE_VFORK`.
const CLONE_VFORK: u64 = 0x4000;

/// What this call can wait for.
pub fn kind(call: &Call) -> Kind {
    let Some(name) = call.name() else {
        return if call.number == Call::NONE {
            Kind::None
        } else {
            Kind::Other
        };
    };
    match name {
        "poll" | "ppoll" | "select" | "pselect6" => Kind::Poll,
        "epoll_wait" | "epoll_pwait" | "epoll_pwait2" => Kind::Epoll,
        "futex" | "futex_wait" | "futex_waitv" | "futex_requeue" => Kind::Futex,
        "nanosleep" | "clock_nanosleep" => Kind::Sleep,
        "pause" | "rt_sigsuspend" | "rt_sigtimedwait" => Kind::Signal,
        "fsync" | "fdatasync" | "sync" | "syncfs" | "msync" | "sync_file_range" => Kind::Sync,
        "execve" | "execveat" => Kind::Exec,
        "exit" | "exit_group" => Kind::Exit,
        "wait4" | "waitid" => Kind::Child,
        "vfork" | "clone3" => Kind::Vfork,
        "clone" if call.args[0] & CLONE_VFORK != 0 => Kind::Vfork,
        "read" | "readv" | "pread64" | "preadv" | "preadv2" => Kind::Read,
        "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2" | "fallocate" | "ftruncate" => Kind::Write,
        "recvfrom" | "recvmsg" | "recvmmsg" => Kind::Receive,
        "sendto" | "sendmsg" | "sendmmsg" => Kind::Send,
        "connect" => Kind::Connect,
        "accept" | "accept4" => Kind::Accept,
        "flock" => Kind::FileLock,
        "fcntl" if FCNTL_LOCK_WAITS.contains(&call.args[1]) => Kind::FileLock,
        "semop" | "semtimedop" => Kind::Semaphore,
        "msgsnd" | "msgrcv" | "mq_timedsend" | "mq_timedreceive" => Kind::Queue,
        "io_uring_enter" | "io_getevents" | "io_pgetevents" => Kind::Async,
        "getrandom" => Kind::Random,
        "open" | "openat" | "openat2" | "creat" => Kind::Open,
        "access" | "chdir" | "chmod" | "chown" | "faccessat" | "faccessat2" | "fchmodat" | "fchownat"
        | "fgetxattr" | "fstat" | "getdents" | "getdents64" | "getxattr" | "lgetxattr" | "link"
        | "linkat" | "listxattr" | "lstat" | "mkdir" | "mkdirat" | "mknod" | "mknodat" | "mount"
        | "newfstatat" | "readahead" | "readlink" | "readlinkat" | "rename" | "renameat" | "renameat2"
        | "rmdir" | "setxattr" | "stat" | "statfs" | "statx" | "symlink" | "symlinkat" | "truncate"
        | "unlink" | "unlinkat" | "utimensat" => Kind::Metadata,
        "ioctl" => Kind::Ioctl,
        "restart_syscall" => Kind::Restart,
        _ => Kind::Other,
    }
}

impl Kind {
    /// Which way data goes between the caller and a block device.
    pub fn direction(self) -> Option<Direction> {
        match self {
            Kind::Read | Kind::Open | Kind::Metadata | Kind::Exec => Some(Direction::Read),
            Kind::Write => Some(Direction::Write),
            Kind::None => Some(Direction::Fault),
            _ => None,
        }
    }
}

/// How many bytes the call asked for, where its arguments say so.
pub fn bytes(call: &Call) -> Option<u64> {
    match call.name()? {
        "getrandom" => Some(call.args[1]),
        "read" | "write" | "pread64" | "pwrite64" | "recvfrom" | "sendto" | "getdents" | "getdents64"
        | "msgsnd" | "msgrcv" | "mq_timedsend" | "mq_timedreceive" | "readahead" => Some(call.args[2]),
        "sendfile" | "fallocate" => Some(call.args[3]),
        _ => None,
    }
}

/// Whether a futex call waits plainly, as condition variables do, and has a time limit.
pub fn futex_with_limit(call: &Call) -> bool {
    match call.name() {
        Some("futex") => FUTEX_PLAIN_WAITS.contains(&(call.args[1] & FUTEX_OPERATION)) && call.args[3] != 0,
        Some("futex_waitv") => call.args[3] != 0,
        _ => false,
    }
}

/// The time limit of a poll in milliseconds, where the arguments hold it: `None` where they do not,
/// `Some(None)` for "no limit".
pub fn poll_limit_ms(call: &Call) -> Option<Option<u32>> {
    let at = match call.name()? {
        "poll" => 2,
        "epoll_wait" | "epoll_pwait" => 3,
        _ => return None,
    };
    // The argument is an int: the register's upper half says nothing.
    #[expect(clippy::cast_possible_truncation, reason = "the call takes an int")]
    let limit = call.args[at] as u32 as i32;
    Some(u32::try_from(limit).ok())
}

/// Whether a poll was given no descriptor at all.
pub fn polls_nothing(call: &Call) -> bool {
    match call.name() {
        Some("poll" | "ppoll") => call.args[1] == 0,
        Some("select" | "pselect6") => call.args[0] == 0 || call.args[1..] == [0, 0, 0],
        _ => false,
    }
}

/// How many descriptors a poll was given, where the arguments say so.
pub fn polled_count(call: &Call) -> Option<u64> {
    matches!(call.name(), Some("poll" | "ppoll")).then_some(call.args[1])
}
