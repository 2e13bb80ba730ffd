//! Tests of classification, and what they build their waits with.

mod locks;
mod polls;
mod precedence;
mod resources;
mod samples;

use super::{Classified, Site, wait};
use holdup_evidence::{
    Call, Cause, DeviceNumber, KernelLock, KernelLockKind, Object, ObjectId, ObjectKind, PolledFd, Seq,
    SocketAddress, TaskState, ThreadId, WaitMemory, Waker,
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
    kernel_lock: Option<KernelLock>,
    nobody_asked: bool,
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
            kernel_lock: None,
            nobody_asked: false,
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

    /// The kernel tells of a lock: perhaps that of this process's address space.
    fn locked(mut self, address_space: Option<u32>) -> Case {
        self.kernel_lock = Some(KernelLock {
            owner: None,
            kind: KernelLockKind::Semaphore,
            shared: true,
            address_space,
            object: None,
        });
        self
    }

    fn memory(&mut self) -> &mut WaitMemory {
        self.memory.get_or_insert_with(|| WaitMemory {
            first: 0,
            ..WaitMemory::empty(ThreadId(0), 1 as Seq)
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
            own: false,
            fd: 3,
            events,
            revents,
            object: Some(ObjectId(id)),
        };
        self.memory().polled.push(fd);
        self
    }

    /// What is polled last has its other end in the same process.
    fn own(mut self) -> Case {
        let last = self.memory().polled.last_mut();
        last.expect("something is polled").own = true;
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
            kernel_lock: self.kernel_lock.as_ref(),
            nobody_asked: self.nobody_asked,
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

/// An object from words: `pipe`, `fifo PATH`, `file FS MAJ:MIN PATH`, `tcp [listen|syn-sent|closed] ADDRESS`, …
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
            Some(&"closed") => 7,
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
