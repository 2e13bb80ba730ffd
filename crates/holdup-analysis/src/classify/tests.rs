//! Real stacks to causes, and the order of precedence.
//!
//! `samples/*.txt` holds one wait an entry, in plain text: what it is, what it must become, the call and its
//! arguments (hex), the state, the object, the stack.

use super::{Classified, Site, on_cpu, wait};
use crate::attributed::ResourceKind;
use holdup_evidence::{
    Call, Cause, DeviceNumber, Object, ObjectId, ObjectKind, PolledFd, Seq, SocketAddress, TaskName,
    TaskState, ThreadId, WaitMemory, Waker,
};

/// A wait to be built up and classified.
struct Case {
    call: Call,
    state: TaskState,
    iowait: bool,
    object: Option<Object>,
    ready: Option<Object>,
    woken_by_socket: Option<Object>,
    stack: Option<Vec<String>>,
    memory: Option<WaitMemory>,
    known: Vec<Object>,
    waker: Waker,
}

impl Case {
    fn new(name: &str, args: [u64; 4]) -> Case {
        let number = if name == "none" {
            Call::NONE
        } else {
            let named = |number: &i32| {
                Call {
                    number: *number,
                    args,
                }
                .name()
                    == Some(name)
            };
            (0..1024).find(named).unwrap_or_else(|| panic!("no call {name}"))
        };
        Case {
            call: Call { number, args },
            state: TaskState::Interruptible,
            iowait: false,
            object: None,
            ready: None,
            woken_by_socket: None,
            stack: None,
            memory: None,
            known: Vec::new(),
            waker: Waker::Unknown,
        }
    }

    fn blocked(mut self, iowait: bool) -> Case {
        self.state = TaskState::Uninterruptible;
        self.iowait = iowait;
        self
    }

    fn on(mut self, text: &str) -> Case {
        self.object = Some(object(text));
        self
    }

    fn stack(mut self, frames: &str) -> Case {
        self.stack = Some(frames.split_whitespace().map(str::to_owned).collect());
        self
    }

    fn memory(&mut self) -> &mut WaitMemory {
        self.memory.get_or_insert_with(|| WaitMemory {
            thread: ThreadId(0),
            seq: 1 as Seq,
            returned: None,
            polled: Vec::new(),
            polled_truncated: false,
            path: None,
        })
    }

    fn returned(mut self, value: i64) -> Case {
        self.memory().returned = Some(value);
        self
    }

    fn path(mut self, path: &str) -> Case {
        self.memory().path = Some(path.to_owned());
        self
    }

    fn polled(mut self, text: &str, events: u16, revents: u16) -> Case {
        let id = u32::try_from(self.known.len()).expect("few objects");
        self.known.push(object(text));
        let fd = PolledFd {
            fd: 3,
            events,
            revents,
            object: Some(ObjectId(id)),
        };
        self.memory().polled.push(fd);
        self
    }

    fn woken(mut self, waker: Waker) -> Case {
        self.waker = waker;
        self
    }

    fn classify(&self) -> Classified {
        let objects = |id: ObjectId| self.known.get(id.0 as usize);
        wait(&Site {
            call: self.call,
            state: self.state,
            iowait: self.iowait,
            object: self.object.as_ref(),
            ready: self.ready.as_ref(),
            woken_by_socket: self.woken_by_socket.as_ref(),
            kernel_stack: self.stack.as_deref(),
            memory: self.memory.as_ref(),
            objects: &objects,
            waker: &self.waker,
            duration: 1_000_000,
        })
    }

    fn cause(&self) -> Cause {
        self.classify().cause
    }
}

fn number(text: &str) -> DeviceNumber {
    let (major, minor) = text.split_once(':').expect("major:minor");
    DeviceNumber {
        major: major.parse().expect("a number"),
        minor: minor.parse().expect("a number"),
    }
}

/// An object from words: `pipe`, `fifo PATH`, `file FS MAJ:MIN PATH`, `tcp [listen|syn-sent] ADDRESS`, …
fn object(text: &str) -> Object {
    let words: Vec<&str> = text.split_whitespace().collect();
    let path = words
        .last()
        .filter(|word| word.starts_with('/'))
        .map(|word| (*word).to_owned());
    let mut object = Object {
        kind: ObjectKind::Pipe,
        path,
        inode: 77,
        device: DeviceNumber::default(),
        file_system: String::new(),
    };
    let none: std::net::SocketAddr = "0.0.0.0:0".parse().expect("an address");
    let inet = |kind: u16, protocol: u16| {
        let state = match words.get(1) {
            Some(&"listen") => 10,
            Some(&"syn-sent") => 2,
            _ => u8::from(protocol == 6),
        };
        let address = words.last().and_then(|word| word.parse().ok()).unwrap_or(none);
        let (local, peer) = if state == 10 {
            (address, none)
        } else {
            (none, address)
        };
        let (local, peer) = (SocketAddress::Inet(local), SocketAddress::Inet(peer));
        ObjectKind::Socket {
            family: 2,
            kind,
            protocol,
            state,
            local,
            peer,
            peer_pid: None,
        }
    };
    let other = |family: u16| ObjectKind::Socket {
        family,
        kind: 3,
        protocol: 0,
        state: 0,
        local: SocketAddress::Other(family),
        peer: SocketAddress::Other(family),
        peer_pid: None,
    };
    object.kind = match words[0] {
        "pipe" => ObjectKind::Pipe,
        "fifo" => ObjectKind::Fifo,
        "file" | "dir" => {
            object.file_system = words[1].to_owned();
            object.device = number(words[2]);
            if words[0] == "file" {
                ObjectKind::File
            } else {
                ObjectKind::Directory
            }
        }
        "block" => ObjectKind::BlockDevice(number(words[1])),
        "char" => ObjectKind::CharDevice(number(words[1])),
        "tcp" => inet(1, 6),
        "udp" => inet(2, 17),
        "unix" => ObjectKind::Socket {
            family: 1,
            kind: 1,
            protocol: 0,
            state: 0,
            local: SocketAddress::Unix(String::new()),
            peer: SocketAddress::Unix(object.path.clone().unwrap_or_default()),
            peer_pid: Some(42),
        },
        "netlink" => other(16),
        "packet" => other(17),
        "vsock" => other(40),
        "epoll" => ObjectKind::Epoll,
        "eventfd" => ObjectKind::Eventfd,
        "timerfd" => ObjectKind::Timerfd,
        "signalfd" => ObjectKind::Signalfd,
        "inotify" => ObjectKind::Inotify,
        "pidfd" => ObjectKind::Pidfd,
        "anon" => ObjectKind::Anonymous(words[1].to_owned()),
        "other" => ObjectKind::Other(0),
        unknown => panic!("no object {unknown}"),
    };
    object
}

/// The entries of one sample file: title, expected cause, case.
fn samples(text: &str) -> Vec<(String, Cause, Case)> {
    let entry = |block: &str| {
        let field = |key: &str| {
            let line = block
                .lines()
                .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
            line.map(str::trim)
        };
        let title = block.lines().next().unwrap_or_default().to_owned();
        let expected = field("expect").and_then(Cause::from_id);
        let expected = expected.unwrap_or_else(|| panic!("{title}: no such cause"));
        let mut call = field("call").expect("a call").split_whitespace();
        let name = call.next().expect("a name");
        let mut args = [0; 4];
        for (slot, arg) in args.iter_mut().zip(call) {
            *slot = u64::from_str_radix(arg, 16).expect("hex");
        }
        let mut case = Case::new(name, args);
        let state = field("state").expect("a state");
        case.state = match &state[..1] {
            "S" => TaskState::Interruptible,
            "D" => TaskState::Uninterruptible,
            "T" => TaskState::Stopped,
            "t" => TaskState::Traced,
            "F" => TaskState::Frozen,
            other => panic!("{title}: state {other}"),
        };
        case.iowait = state.ends_with("iowait");
        case.object = field("object").map(object);
        if let Some(path) = field("path") {
            case = case.path(path);
        }
        if let Some(stack) = field("stack") {
            case = case.stack(stack);
        }
        (title, expected, case)
    };
    text.split("\n\n")
        .filter_map(|block| block.trim().strip_prefix("== "))
        .map(entry)
        .collect()
}

#[test]
fn real_stacks_get_their_cause() {
    const FILES: &[(&str, &str)] = &[
        ("disk", include_str!("samples/linux-6.18-disk.txt")),
        ("fs", include_str!("samples/linux-6.18-fs.txt")),
        ("ipc", include_str!("samples/linux-6.18-ipc.txt")),
        ("kernel", include_str!("samples/linux-6.18-kernel.txt")),
        ("lock", include_str!("samples/linux-6.18-lock.txt")),
        ("memory", include_str!("samples/linux-6.18-memory.txt")),
        ("net", include_str!("samples/linux-6.18-net.txt")),
        ("poll", include_str!("samples/linux-6.18-poll.txt")),
        ("process", include_str!("samples/linux-6.18-process.txt")),
        ("time", include_str!("samples/linux-6.18-time.txt")),
        ("older", include_str!("samples/older-kernels.txt")),
    ];
    let mut wrong = Vec::new();
    for (file, text) in FILES {
        let entries = samples(text);
        assert!(!entries.is_empty(), "{file}: no sample");
        for (title, expected, case) in entries {
            let got = case.classify();
            if got.cause != expected || got.resource.name.is_empty() {
                wrong.push(format!(
                    "{file}: {title}: {} ({}), not {expected}",
                    got.cause, got.resource.name
                ));
            }
            // Frames that the scheduler adds when a thread takes its own stack change nothing.
            let mut own = case;
            if let Some(stack) = &mut own.stack {
                stack.splice(
                    0..0,
                    ["__schedule", "schedule", "schedule_timeout"].map(str::to_owned),
                );
            }
            if own.cause() != expected {
                wrong.push(format!("{file}: {title}: with scheduler frames {}", own.cause()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

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
        assert_eq!(got.why_unknown.as_deref(), Some(super::NO_STACK));
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
            got.resource.detail.get("address").map(String::as_str),
            Some("0x7f00")
        );
    }
    assert_eq!(wait_until(0).classify().resource.name, "futex 0x7f00");
}

const IN: u16 = 1;
const OUT: u16 = 4;

#[test]
fn polls_belong_to_the_object_that_ended_them() {
    let poll = |count| Case::new("poll", [0, count, 1000, 0]);
    let cases = [
        (
            poll(2)
                .polled("pipe", IN, IN)
                .polled("tcp 10.0.0.1:80", IN, 0)
                .returned(1),
            Cause::IpcPipe,
        ),
        (
            poll(2)
                .polled("pipe", IN, 0)
                .polled("tcp 10.0.0.1:80", IN, IN)
                .returned(1),
            Cause::NetReceive,
        ),
        (
            poll(2)
                .polled("pipe", IN, 0)
                .polled("tcp 10.0.0.1:80", OUT, OUT)
                .returned(1),
            Cause::NetSend,
        ),
        (
            poll(1).polled("tcp syn-sent 10.0.0.1:80", OUT, OUT).returned(1),
            Cause::NetConnect,
        ),
        (
            poll(1)
                .polled("tcp syn-sent 10.0.0.1:80", IN | OUT, 0x18)
                .returned(1),
            Cause::NetConnect,
        ),
        (
            poll(1).polled("tcp listen 0.0.0.0:80", IN, IN).returned(1),
            Cause::NetAccept,
        ),
        (
            poll(1).polled("udp 10.0.0.1:53", IN, IN).returned(1),
            Cause::NetDns,
        ),
        (poll(1).polled("unix /run/x", IN, IN).returned(1), Cause::IpcUnix),
        (poll(1).polled("timerfd", IN, IN).returned(1), Cause::TimerSleep),
        (poll(1).polled("signalfd", IN, IN).returned(1), Cause::IpcQueue),
        (
            poll(1).polled("char 136:0 /dev/pts/0", IN, IN).returned(1),
            Cause::IpcTty,
        ),
        (poll(1).polled("pidfd", IN, IN).returned(1), Cause::ProcessChild),
        (
            poll(1).polled("fifo /dev/random", IN, IN).returned(1),
            Cause::RandomDevice,
        ),
        (
            poll(1).polled("char 1:8 /dev/random", IN, IN).returned(1),
            Cause::RandomDevice,
        ),
        // The object alone, without memory.
        (poll(1).on("udp 10.0.0.1:53"), Cause::NetDns),
        (poll(2).on("udp 10.0.0.1:53"), Cause::PollWait),
        // All of a set are one cause: whichever ended it.
        (
            poll(2)
                .polled("tcp 10.0.0.1:80", IN, 0)
                .polled("tcp 10.0.0.2:80", IN, 0),
            Cause::NetReceive,
        ),
        (
            poll(2).polled("tcp 10.0.0.1:80", IN, 0).polled("pipe", IN, 0),
            Cause::PollWait,
        ),
    ];
    for (index, (case, expected)) in cases.iter().enumerate() {
        let got = case.classify();
        assert_eq!(got.cause, *expected, "case {index}: {}", got.resource.name);
        assert!(!got.timed_out, "case {index}");
    }
}

#[test]
fn polls_that_time_out_stay_with_what_they_awaited() {
    let poll = || Case::new("poll", [0, 2, 5000, 0]).returned(0);
    let cases = [
        (
            poll().polled("eventfd", IN, 0).polled("udp 10.0.0.1:53", IN, 0),
            Cause::NetDns,
        ),
        (
            poll()
                .polled("pipe", IN, 0)
                .polled("tcp syn-sent 10.0.0.1:80", OUT, 0),
            Cause::NetConnect,
        ),
        (
            poll().polled("unix", IN, 0).polled("tcp 10.0.0.1:80", IN, 0),
            Cause::NetReceive,
        ),
        (
            poll()
                .polled("unix /run/x", IN, 0)
                .polled("tcp 10.0.0.1:80", IN, 0),
            Cause::PollWait,
        ),
        (
            poll().polled("eventfd", IN, 0).polled("pipe", IN, 0),
            Cause::IpcPipe,
        ),
        (
            poll()
                .polled("tcp 10.0.0.1:80", IN, 0)
                .polled("tcp 10.0.0.2:80", IN, 0),
            Cause::NetReceive,
        ),
        (Case::new("poll", [0, 0, 5000, 0]), Cause::TimerSleep),
        (Case::new("select", [0, 0, 0, 0]), Cause::TimerSleep),
        (Case::new("pselect6", [8, 0, 0, 0]), Cause::TimerSleep),
    ];
    for (index, (case, expected)) in cases.iter().enumerate() {
        let got = case.classify();
        assert_eq!(got.cause, *expected, "case {index}: {}", got.resource.name);
        assert!(got.timed_out, "case {index}");
    }
    let forever = Case::new("poll", [0, 0, 0xffff_ffff, 0]);
    assert_eq!(forever.cause(), Cause::IpcSignal);
    let unknown = poll()
        .polled("unix /run/x", IN, 0)
        .polled("tcp 10.0.0.1:80", IN, 0)
        .classify();
    assert_eq!(
        unknown.resource.detail["descriptors"],
        "3 /run/x, 3 10.0.0.1:80 (tcp)"
    );
}

#[test]
fn epoll_is_told_by_its_ready_list_the_socket_or_the_waker() {
    let epoll = || Case::new("epoll_wait", [5, 0, 16, 1000]).on("epoll");
    let mut by_list = epoll();
    by_list.ready = Some(object("pipe"));
    assert_eq!(by_list.cause(), Cause::IpcPipe);
    let mut by_socket = epoll();
    by_socket.woken_by_socket = Some(object("tcp 10.0.0.1:80"));
    assert_eq!(by_socket.cause(), Cause::NetReceive);
    let mut connecting = epoll();
    connecting.ready = Some(object("tcp syn-sent 10.0.0.1:80"));
    assert_eq!(connecting.cause(), Cause::NetConnect);
    let killer = Case::new("kill", [0; 4]).call;
    let task = TaskName {
        pid: 1,
        tid: 1,
        name: "sh".to_owned(),
        kernel: false,
    };
    let both = |call| {
        let set = epoll().polled("signalfd", IN, 0).polled("tcp 10.0.0.1:80", IN, 0);
        set.woken(Waker::Outside {
            task: task.clone(),
            call,
        })
        .cause()
    };
    assert_eq!(both(killer), Cause::IpcQueue);
    assert_eq!(both(Call::none()), Cause::PollWait);
    assert_eq!(epoll().cause(), Cause::PollWait);
}

#[test]
fn resources_have_names_that_people_know() {
    let name = |case: Case| case.classify().resource.name;
    let read = || Case::new("read", [3, 0, 1, 0]);
    assert_eq!(name(read().on("pipe")), "pipe:[77]");
    assert_eq!(name(read().on("udp 10.0.0.1:53")), "10.0.0.1:53 (udp)");
    assert_eq!(name(read().on("tcp [::ffff:10.0.0.1]:80")), "10.0.0.1:80 (tcp)");
    assert_eq!(
        name(Case::new("accept", [0; 4]).on("tcp listen 0.0.0.0:80")),
        "listening on 0.0.0.0:80"
    );
    assert_eq!(name(read().on("unix")), "unix socket of pid 42");
    assert_eq!(name(Case::new("wait4", [1234, 0, 0, 0])), "process 1234");
    assert_eq!(name(Case::new("wait4", [0xffff_ffff, 0, 0, 0])), "a child");
    let dns = read().on("udp 10.0.0.1:53").classify();
    assert_eq!(dns.resource.detail["server"], "10.0.0.1");
    assert_eq!(dns.resource.detail["port"], "53");
    assert_eq!(dns.resource.detail["call"], "read");
    assert_eq!(dns.resource.kind, ResourceKind::Socket);
    assert_eq!(dns.bytes, Some(1));
    let lock = Case::new("unlink", [0; 4])
        .blocked(false)
        .stack("down_write do_unlinkat")
        .classify();
    assert_eq!(
        (lock.resource.kind, lock.resource.name.as_str()),
        (ResourceKind::Lock, "do_unlinkat")
    );
    let sent = Case::new("sendfile", [4, 3, 0, 9]).on("file ext4 7:0 /srv/f");
    let sent = sent
        .stack("wait_woken sk_stream_wait_memory tcp_sendmsg do_sendfile")
        .classify();
    assert_eq!(
        (sent.cause, sent.resource.name.as_str()),
        (Cause::NetSend, "sendfile")
    );
}

#[test]
fn on_a_cpu_the_object_is_named_and_an_unseeded_generator_is_a_wait() {
    let call = |name| Case::new(name, [3, 0, 4096, 0]).call;
    let stack = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let looping = stack("try_to_generate_entropy wait_for_random_bytes __do_sys_getrandom");
    let urandom = object("char 1:9 /dev/urandom");
    let got = on_cpu(call("read"), false, Some(&urandom), None);
    assert_eq!(
        (got.cause, got.resource.name.as_str()),
        (Cause::CpuKernel, "/dev/urandom")
    );
    assert_eq!(got.call, Some("read"));
    let contended = stack("native_queued_spin_lock_slowpath _raw_spin_lock_irqsave extract_buf urandom_read");
    let got = on_cpu(call("read"), false, Some(&urandom), Some(&contended));
    assert_eq!(got.resource.detail["spinlock"], "extract_buf");
    assert_eq!(
        on_cpu(call("getrandom"), false, None, Some(&looping)).cause,
        Cause::RandomUnseeded
    );
    assert_eq!(
        on_cpu(call("getrandom"), false, None, None).cause,
        Cause::CpuKernel
    );
    assert_eq!(on_cpu(Call::none(), true, None, None).cause, Cause::CpuUser);
    let fault = on_cpu(
        Call::none(),
        false,
        None,
        Some(&stack("clear_page handle_mm_fault exc_page_fault")),
    );
    assert_eq!(fault.resource.name, "page fault");
}
