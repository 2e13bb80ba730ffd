//! From the programs' records to values. Pure: bytes in, a [`RawEvent`] or the reason why not out. Records come
//! from our own programs, but names, paths and numbers in them are the observed programs'; nothing here
//! trusts a length or a kind that it has not checked.

mod network;
mod object;

use crate::skeleton::types as wire;
use holdup_evidence::network::{Connection, NameAsked, TcpState};
use holdup_evidence::{
    Account, Allowed, Call, Clock, CpuSample, End, Inside, KernelLock, KernelLockKind, LockHolder, LockOwner,
    Ns, Object, ObjectId, PolledFd, RanInstead, Scheduling, Seq, SignalSent, Start, TaskName, TaskState,
    ThreadId, Wait, WaitMemory, Waker,
};

/// A record, decoded: what [`holdup_evidence::Event`] is after naming.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawEvent {
    /// A thread is born.
    Start(Start),
    /// A thread runs another program.
    Exec {
        /// When.
        at: Ns,
        /// Who.
        thread: ThreadId,
        /// Ids and name from now on.
        task: TaskName,
        /// Path as given to the kernel.
        program: String,
    },
    /// A thread has another name.
    Renamed {
        /// Who.
        thread: ThreadId,
        /// The new name.
        name: String,
    },
    /// An object is described.
    Object {
        /// Its id.
        id: ObjectId,
        /// What it is.
        object: Object,
        /// Its path begins at the root of its file system, wherever that is mounted.
        in_file_system: bool,
        /// Of a Unix socket: the inode of its other end.
        peer_inode: Option<u64>,
    },
    /// The kernel stack of the wait that follows for the same thread and number.
    KernelStack {
        /// Whose.
        thread: ThreadId,
        /// Which wait.
        seq: Seq,
        /// Addresses, innermost first.
        addresses: Vec<u64>,
    },
    /// What the poll asked for that the wait that follows for the same thread and number was in.
    Asked(WaitMemory),
    /// The connection of the wait that follows for the same thread and number.
    Tcp(TcpState),
    /// A request for a connection is over.
    Connection(Connection),
    /// A question was sent to a name server.
    NameAsked(NameAsked),
    /// A wait ended; its kernel stack is to be filled in.
    Wait(Box<Wait>),
    /// A wait that had not ended when observation did; the thread's [`RawEvent::End`] follows.
    OpenWait(Box<Wait>),
    /// A thread's memory.
    Memory(Box<RawMemory>),
    /// A CPU sample; its kernel stack is to be filled in.
    Cpu {
        /// The sample.
        sample: CpuSample,
        /// Kernel addresses, innermost first; empty in user mode.
        addresses: Vec<u64>,
    },
    /// Who ran instead.
    RanInstead(RanInstead),
    /// A signal.
    Signal(SignalSent),
    /// A thread's observation ended. `End::open` is a placeholder `Runnable` for a blocked thread: the wait
    /// came just before.
    End {
        /// The end.
        end: Box<End>,
        /// How to read the stack of a thread that lives on, blocked.
        asleep: Option<Asleep>,
    },
}

/// The registers that unwinding needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Registers {
    /// Instruction pointer.
    pub ip: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer register.
    pub bp: u64,
    /// rbx, r12 to r15.
    pub callee_saved: [u64; 5],
}

/// A thread that sleeps on: its stack may be read from outside, and is its own while it has not run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asleep {
    /// Its registers in user mode.
    pub registers: Registers,
    /// Its voluntary context switches so far.
    pub switches: u64,
}

/// What a thread's memory held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawMemory {
    /// The part that is evidence as it is.
    pub wait: WaitMemory,
    /// When it was read.
    pub at: Ns,
    /// Whether it was read while the thread was sampled on a CPU; then `wait.seq` numbers the sample.
    pub on_cpu: bool,
    /// Process id.
    pub pid: u32,
    /// Thread time that the stack stands for; 0 when the source does not weigh it.
    pub weight: Ns,
    /// Registers in user mode.
    pub registers: Registers,
    /// Memory from the stack pointer upward.
    pub stack: Vec<u8>,
}

/// A record that does not decode: a programming error or a torn read, counted, never fatal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Too short for its type.
    #[error("a record of type {kind} with only {len} bytes")]
    Short {
        /// The record's type number; 0 when not even that was there.
        kind: u32,
        /// Its length.
        len: usize,
    },
    /// A type that this build does not know.
    #[error("a record of unknown type {0}")]
    Unknown(u32),
}

/// Decodes one record.
///
/// # Errors
/// When the record is shorter than its type's structure or of unknown type.
pub fn decode(bytes: &[u8]) -> Result<RawEvent, DecodeError> {
    let kind = match bytes.first_chunk::<4>() {
        Some(first) => u32::from_ne_bytes(*first),
        None => {
            return Err(DecodeError::Short {
                kind: 0,
                len: bytes.len(),
            });
        }
    };
    Ok(match wire::holdup_record(kind) {
        wire::holdup_record::HOLDUP_START => start(read(bytes, kind)?),
        wire::holdup_record::HOLDUP_EXEC => exec(read(bytes, kind)?),
        wire::holdup_record::HOLDUP_RENAMED => renamed(read(bytes, kind)?),
        wire::holdup_record::HOLDUP_OBJECT => object::decode(&read(bytes, kind)?),
        wire::holdup_record::HOLDUP_KERNEL_STACK => kernel_stack(&read(bytes, kind)?),
        wire::holdup_record::HOLDUP_WAIT => wait(&read(bytes, kind)?),
        wire::holdup_record::HOLDUP_ASKED_FOR => asked(&read(bytes, kind)?),
        wire::holdup_record::HOLDUP_MEMORY => memory(&read(bytes, kind)?),
        wire::holdup_record::HOLDUP_CPU => cpu(&read(bytes, kind)?),
        wire::holdup_record::HOLDUP_RAN_INSTEAD => ran_instead(read(bytes, kind)?),
        wire::holdup_record::HOLDUP_SIGNAL => signal(read(bytes, kind)?),
        wire::holdup_record::HOLDUP_END => end(&read(bytes, kind)?),
        wire::holdup_record::HOLDUP_TCP => network::tcp(&read(bytes, kind)?),
        wire::holdup_record::HOLDUP_CONNECTION => network::connection(&read(bytes, kind)?),
        wire::holdup_record::HOLDUP_NAME_ASKED => network::question(&read(bytes, kind)?),
        _ => return Err(DecodeError::Unknown(kind)),
    })
}

/// Marks the record types, which consist of integers and arrays of them only.
///
/// # Safety
/// Every bit pattern must be a valid value of the type.
unsafe trait Plain: Copy {}
macro_rules! plain {
    ($($record:ident),*) => { $(
        // SAFETY: wire.h defines these of integers and integer arrays only.
        unsafe impl Plain for wire::$record {}
    )* };
}
plain!(
    holdup_start,
    holdup_exec,
    holdup_renamed,
    holdup_object,
    holdup_kernel_stack,
    holdup_wait,
    holdup_asked,
    holdup_memory,
    holdup_cpu,
    holdup_ran_instead,
    holdup_signal,
    holdup_end,
    holdup_tcp,
    holdup_connection,
    holdup_question
);

fn read<T: Plain>(bytes: &[u8], kind: u32) -> Result<T, DecodeError> {
    if bytes.len() < size_of::<T>() {
        return Err(DecodeError::Short {
            kind,
            len: bytes.len(),
        });
    }
    // SAFETY: the length was checked, the read needs no alignment, and any bytes are a valid `Plain`.
    Ok(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// Text up to the first NUL, invalid UTF-8 replaced.
fn text(bytes: &[i8]) -> String {
    let bytes: Vec<u8> = bytes
        .iter()
        .take_while(|byte| **byte != 0)
        .map(|byte| byte.cast_unsigned())
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn clock(raw: wire::holdup_clock) -> Clock {
    Clock {
        cpu: raw.cpu,
        queued: raw.queued,
        blocked: raw.blocked,
        interrupt: raw.interrupt,
        throttled: raw.throttled,
    }
}

fn task(raw: wire::holdup_task) -> TaskName {
    TaskName {
        pid: raw.pid,
        tid: raw.tid,
        name: text(&raw.comm),
        kernel: raw.kernel != 0,
    }
}

fn call(raw: wire::holdup_call) -> Call {
    if raw.number < 0 {
        Call::none()
    } else {
        Call {
            number: raw.number,
            args: raw.args,
        }
    }
}

fn optional_object(id: u32) -> Option<ObjectId> {
    (id != 0).then_some(ObjectId(id))
}

fn start(raw: wire::holdup_start) -> RawEvent {
    RawEvent::Start(Start {
        at: raw.at,
        thread: ThreadId(raw.head.thread),
        task: task(raw.task),
        parent: (raw.has_parent != 0).then(|| (ThreadId(raw.parent), clock(raw.parent_clock))),
        inside: (raw.namespace != 0).then_some(Inside {
            namespace: raw.namespace,
            tid: raw.tid_inside,
        }),
    })
}

fn exec(raw: wire::holdup_exec) -> RawEvent {
    RawEvent::Exec {
        at: raw.at,
        thread: ThreadId(raw.head.thread),
        task: task(raw.task),
        program: text(&raw.program),
    }
}

fn renamed(raw: wire::holdup_renamed) -> RawEvent {
    RawEvent::Renamed {
        thread: ThreadId(raw.head.thread),
        name: text(&raw.comm),
    }
}

fn kernel_stack(raw: &wire::holdup_kernel_stack) -> RawEvent {
    RawEvent::KernelStack {
        thread: ThreadId(raw.head.thread),
        seq: raw.seq,
        addresses: raw.ips.iter().take(raw.frames as usize).copied().collect(),
    }
}

/// The kernel's task state bits.
fn state(bits: u32) -> TaskState {
    const INTERRUPTIBLE: u32 = 0x1;
    const UNINTERRUPTIBLE: u32 = 0x2;
    const STOPPED: u32 = 0x4;
    const TRACED: u32 = 0x8;
    const FROZEN: u32 = 0x8000;
    match bits {
        bits if bits & STOPPED != 0 => TaskState::Stopped,
        bits if bits & TRACED != 0 => TaskState::Traced,
        bits if bits & FROZEN != 0 => TaskState::Frozen,
        bits if bits & INTERRUPTIBLE != 0 => TaskState::Interruptible,
        bits if bits & UNINTERRUPTIBLE != 0 => TaskState::Uninterruptible,
        bits => TaskState::Other(bits),
    }
}

fn wait(raw: &wire::holdup_wait) -> RawEvent {
    let waker = match wire::holdup_waker(u32::from(raw.waker_kind)) {
        wire::holdup_waker::HOLDUP_WAKER_THREAD => Waker::Thread {
            thread: ThreadId(raw.waker_thread),
            clock: clock(raw.waker_clock),
            call: waker_call(raw),
        },
        wire::holdup_waker::HOLDUP_WAKER_OUTSIDE => Waker::Outside {
            task: task(raw.waker),
            call: waker_call(raw),
        },
        wire::holdup_waker::HOLDUP_WAKER_SOFTIRQ => Waker::Interrupt {
            soft: true,
            socket: optional_object(raw.socket),
        },
        wire::holdup_waker::HOLDUP_WAKER_HARDIRQ => Waker::Interrupt {
            soft: false,
            socket: None,
        },
        _ => Waker::Unknown,
    };
    let holder = match wire::holdup_holder(u32::from(raw.holder_kind)) {
        wire::holdup_holder::HOLDUP_HOLDER_FUTEX => Some(LockHolder::FutexWords(raw.holder)),
        wire::holdup_holder::HOLDUP_HOLDER_FILE_LOCK => Some(LockHolder::FileLock { pid: raw.holder[0] }),
        wire::holdup_holder::HOLDUP_HOLDER_PI => owner(raw).map(LockHolder::PiFutex),
        wire::holdup_holder::HOLDUP_HOLDER_TRACER => owner(raw).map(LockHolder::Tracer),
        wire::holdup_holder::HOLDUP_HOLDER_KERNEL_LOCK => Some(LockHolder::KernelLock(kernel_lock(raw))),
        _ => None,
    };
    let wait = Box::new(Wait {
        thread: ThreadId(raw.head.thread),
        seq: raw.seq,
        start: raw.start,
        end: raw.end,
        clock: clock(raw.clock),
        state: state(raw.state),
        iowait: raw.iowait != 0,
        call: call(raw.call),
        object: optional_object(raw.object),
        ready: optional_object(raw.ready),
        waker,
        holder,
        kernel_stack: None,
        memory_follows: raw.memory_follows != 0,
        asked: None,
    });
    if wire::holdup_waker(u32::from(raw.waker_kind)) == wire::holdup_waker::HOLDUP_WAKER_NOT_YET {
        RawEvent::OpenWait(wait)
    } else {
        RawEvent::Wait(wait)
    }
}

/// One of the places in a record's words on who is in the way.
fn owner_word(raw: &wire::holdup_wait, at: wire::holdup_owner) -> u32 {
    raw.holder.get(at.0 as usize).copied().unwrap_or(0)
}

/// The owner that the kernel names.
fn owner(raw: &wire::holdup_wait) -> Option<LockOwner> {
    let owner = LockOwner {
        tid: owner_word(raw, wire::holdup_owner::HOLDUP_OWNER_TID),
        pid: owner_word(raw, wire::holdup_owner::HOLDUP_OWNER_PID),
    };
    (owner.tid != 0 && owner.pid != 0).then_some(owner)
}

fn kernel_lock(raw: &wire::holdup_wait) -> KernelLock {
    // As the kernel's contention tracepoints have them, `LCB_F_…`.
    const READ: u32 = 1 << 1;
    const RT: u32 = 1 << 3;
    const PERCPU: u32 = 1 << 4;
    const MUTEX: u32 = 1 << 5;
    let flags = owner_word(raw, wire::holdup_owner::HOLDUP_LOCK_FLAGS);
    let space = owner_word(raw, wire::holdup_owner::HOLDUP_LOCK_SPACE);
    KernelLock {
        owner: owner(raw),
        kind: match flags {
            flags if flags & PERCPU != 0 => KernelLockKind::PerCpu,
            flags if flags & (MUTEX | RT) != 0 => KernelLockKind::Mutex,
            _ => KernelLockKind::Semaphore,
        },
        shared: flags & READ != 0,
        address_space: (space != 0).then_some(space),
        object: optional_object(owner_word(raw, wire::holdup_owner::HOLDUP_LOCK_OBJECT)),
    }
}

fn waker_call(raw: &wire::holdup_wait) -> Call {
    if raw.waker_call < 0 {
        Call::none()
    } else {
        Call {
            number: raw.waker_call,
            args: [raw.waker_arg, 0, 0, 0],
        }
    }
}

fn registers(raw: wire::holdup_regs) -> Registers {
    Registers {
        ip: raw.ip,
        sp: raw.sp,
        bp: raw.bp,
        callee_saved: [raw.bx, raw.r12, raw.r13, raw.r14, raw.r15],
    }
}

fn polled(one: &wire::holdup_polled) -> PolledFd {
    PolledFd {
        fd: one.fd,
        events: one.events,
        revents: one.revents,
        object: optional_object(one.object),
        own: false,
    }
}

fn asked(raw: &wire::holdup_asked) -> RawEvent {
    let known = raw.polled_fds.iter().filter(|one| one.fd >= 0);
    RawEvent::Asked(WaitMemory {
        thread: ThreadId(raw.head.thread),
        first: raw.seq,
        seq: raw.seq,
        returned: None,
        polled: known.take(raw.polled as usize).map(polled).collect(),
        polled_truncated: raw.truncated != 0,
        path: None,
        completed: None,
    })
}

fn memory(raw: &wire::holdup_memory) -> RawEvent {
    let polled = raw.polled_fds.iter().take(raw.polled as usize).map(polled);
    RawEvent::Memory(Box::new(RawMemory {
        wait: WaitMemory {
            thread: ThreadId(raw.head.thread),
            first: raw.first,
            seq: raw.seq,
            returned: (raw.has_returned != 0).then_some(raw.returned),
            polled: polled.collect(),
            polled_truncated: raw.polled_truncated != 0,
            path: (raw.path_len > 1).then(|| text(&raw.path)),
            completed: optional_object(raw.completed),
        },
        at: raw.at,
        on_cpu: raw.on_cpu != 0,
        pid: raw.pid,
        weight: raw.weight,
        registers: registers(raw.regs),
        stack: raw.stack.iter().take(raw.stack_len as usize).copied().collect(),
    }))
}

fn cpu(raw: &wire::holdup_cpu) -> RawEvent {
    RawEvent::Cpu {
        sample: CpuSample {
            at: raw.at,
            thread: ThreadId(raw.head.thread),
            seq: raw.seq,
            user: raw.user != 0,
            call: call(raw.call),
            object: optional_object(raw.object),
            kernel_stack: None,
        },
        addresses: raw.ips.iter().take(raw.frames as usize).copied().collect(),
    }
}

fn ran_instead(raw: wire::holdup_ran_instead) -> RawEvent {
    RawEvent::RanInstead(RanInstead {
        at: raw.at,
        thread: ThreadId(raw.head.thread),
        ns: raw.ns,
        by: (raw.idle == 0).then(|| task(raw.by)),
        cpu: raw.cpu,
        by_class: scheduling(raw.by_priority, raw.by_idle_class),
        class: scheduling(raw.priority, raw.idle_class),
        same_group: raw.same_group != 0,
        allowed: Allowed {
            count: raw.allowed_count,
            first: raw.allowed,
        },
    })
}

/// From the kernel's priority: below 100 is real time (deadline tasks are below 0), nice 0 is 120.
fn scheduling(priority: i32, idle_class: u32) -> Scheduling {
    match priority {
        _ if idle_class != 0 => Scheduling::Idle,
        ..100 => Scheduling::RealTime,
        _ => Scheduling::Fair {
            nice: i8::try_from((priority - 120).clamp(-20, 19)).expect("clamped"),
        },
    }
}

fn signal(raw: wire::holdup_signal) -> RawEvent {
    RawEvent::Signal(SignalSent {
        at: raw.at,
        thread: ThreadId(raw.head.thread),
        signal: raw.signal,
        by: task(raw.by),
    })
}

fn end(raw: &wire::holdup_end) -> RawEvent {
    use holdup_evidence::OpenState;
    let phase = raw.open.checked_sub(1).map(wire::holdup_phase);
    let open = phase.map(|phase| match phase {
        wire::holdup_phase::HOLDUP_RUNNING => OpenState::Running,
        _ => OpenState::Runnable,
    });
    RawEvent::End {
        end: Box::new(End {
            at: raw.at,
            thread: ThreadId(raw.head.thread),
            task: task(raw.task),
            born: raw.born,
            clock: clock(raw.clock),
            blockings: raw.blockings,
            lost: (raw.lost_ns, raw.lost_count),
            interrupts: raw.interrupts,
            account: open.is_none().then_some(Account {
                runtime: raw.runtime,
                run_delay: (raw.run_delay != 0).then_some(raw.run_delay),
                voluntary_switches: raw.voluntary,
                involuntary_switches: raw.involuntary,
            }),
            open,
            exit_code: raw.exit_code,
        }),
        asleep: (phase == Some(wire::holdup_phase::HOLDUP_BLOCKED)).then(|| Asleep {
            registers: registers(raw.regs),
            switches: raw.voluntary,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::{DecodeError, decode, state};
    use holdup_evidence::TaskState;
    use proptest::prelude::{any, proptest};

    proptest! {
        /// Whatever the bytes, decoding ends with a value or a reason.
        #[test]
        fn any_bytes_decode_or_are_refused(kind in 0u32..18, rest in proptest::collection::vec(any::<u8>(), 0..20_000)) {
            let mut bytes = kind.to_ne_bytes().to_vec();
            bytes.extend(rest);
            match decode(&bytes) {
                Ok(_) => assert!((1..=15).contains(&kind)),
                Err(DecodeError::Unknown(found)) => assert_eq!(found, kind),
                Err(DecodeError::Short { len, .. }) => assert_eq!(len, bytes.len()),
            }
        }
    }

    #[test]
    fn stopped_beats_the_sleep_bits() {
        assert_eq!(state(0x4 | 0x100), TaskState::Stopped);
        assert_eq!(state(0x1), TaskState::Interruptible);
        assert_eq!(state(0x2 | 0x100), TaskState::Uninterruptible);
    }
}
