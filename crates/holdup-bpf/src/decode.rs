//! From the programs' records to values. Pure: bytes in, a [`RawEvent`] or the reason why not out. Records come
//! from our own programs, but names, paths and numbers in them are the observed programs'; nothing here
//! trusts a length or a kind that it has not checked.

mod churn;
mod network;
mod object;
mod waits;

use crate::skeleton::types as wire;
use holdup_evidence::arch::SavedRegisters;
use holdup_evidence::churn::{Conversation, Hello, Made, Turned};
use holdup_evidence::network::{Connection, NameAsked, TcpState};
use holdup_evidence::{
    Account, Adopted, Allowed, Call, Clock, CpuSample, Earlier, End, Inside, Ns, Object, ObjectId, PolledFd,
    RanInstead, Request, RequestStep, Role, Scheduling, Seq, SignalSent, Start, TaskName, TaskState,
    ThreadId, Wait, WaitMemory, Words,
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
    /// The memory of a thread as it makes something; its `weight` names the connection.
    MadeBy(Made, Box<RawMemory>),
    /// The first bytes of a connection.
    Hello(Hello),
    /// A connection was made or closed.
    Conversation(Conversation),
    /// The handshake on a connection went on.
    Turned(Turned),
    /// A wait ended; its kernel stack is to be filled in.
    Wait(Box<Wait>),
    /// A wait that had not ended when observation did; the thread's [`RawEvent::End`] follows.
    OpenWait(Box<Wait>),
    /// A request was read or answered.
    Request(Request),
    /// A connection that waits for an answer since before.
    Earlier(Earlier),
    /// A wait that goes on, as [`crate::Tracer::peek`] found it. It will be reported again when it is over.
    Peek(Box<Wait>),
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
    /// What functions keep for their callers.
    pub saved: SavedRegisters,
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
        wire::holdup_record::HOLDUP_WAIT => waits::wait(&read(bytes, kind)?),
        wire::holdup_record::HOLDUP_EARLIER => earlier(read(bytes, kind)?),
        wire::holdup_record::HOLDUP_REQUEST => request(read(bytes, kind)?),
        wire::holdup_record::HOLDUP_PEEK => RawEvent::Peek(Box::new(waits::wait_of(&read(bytes, kind)?))),
        wire::holdup_record::HOLDUP_ASKED_FOR => asked(&read(bytes, kind)?),
        wire::holdup_record::HOLDUP_MEMORY => RawEvent::Memory(Box::new(memory(&read(bytes, kind)?))),
        wire::holdup_record::HOLDUP_CPU => cpu(&read(bytes, kind)?),
        wire::holdup_record::HOLDUP_RAN_INSTEAD => ran_instead(read(bytes, kind)?),
        wire::holdup_record::HOLDUP_SIGNAL => signal(read(bytes, kind)?),
        wire::holdup_record::HOLDUP_END => end(&read(bytes, kind)?),
        wire::holdup_record::HOLDUP_TCP => network::tcp(&read(bytes, kind)?),
        wire::holdup_record::HOLDUP_CONNECTION => network::connection(&read(bytes, kind)?),
        wire::holdup_record::HOLDUP_NAME_ASKED => network::question(&read(bytes, kind)?),
        wire::holdup_record::HOLDUP_MADE_BY => churn::made_by(&read(bytes, kind)?),
        wire::holdup_record::HOLDUP_HELLO => churn::hello(&read(bytes, kind)?),
        wire::holdup_record::HOLDUP_CONVERSATION => churn::conversation(&read(bytes, kind)?),
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
    holdup_question,
    holdup_request,
    holdup_earlier,
    holdup_hello,
    holdup_conversation
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
        served_cpu: raw.served_cpu,
        served_queued: raw.served_queued,
        repeats: raw.repeats,
        repeated: raw.repeated,
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
        role: match wire::holdup_role(raw.role) {
            wire::holdup_role::HOLDUP_ROLE_NEIGHBOUR => Role::Neighbour,
            _ => Role::Subject,
        },
        adopted: (raw.adopted != 0).then(|| Adopted {
            process: text(&raw.process),
            parent: raw.creator,
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

fn registers(raw: wire::holdup_regs) -> Registers {
    Registers {
        ip: raw.ip,
        sp: raw.sp,
        saved: raw.saved,
    }
}

/// What was awaited. Places that are not used, or have no descriptor, are none: the kernel passes over those, too.
fn polled(places: &[wire::holdup_polled], used: u32) -> Vec<PolledFd> {
    let used = places.iter().take(used as usize).filter(|one| one.fd >= 0);
    let polled = used.map(|one| PolledFd {
        fd: one.fd,
        events: one.events,
        revents: one.revents,
        object: optional_object(one.object),
        own: false,
    });
    polled.collect()
}

fn asked(raw: &wire::holdup_asked) -> RawEvent {
    RawEvent::Asked(WaitMemory {
        thread: ThreadId(raw.head.thread),
        first: raw.seq,
        seq: raw.seq,
        returned: None,
        polled: polled(&raw.polled_fds, raw.polled),
        polled_truncated: raw.truncated != 0,
        path: None,
        completed: None,
    })
}

fn memory(raw: &wire::holdup_memory) -> RawMemory {
    RawMemory {
        wait: WaitMemory {
            thread: ThreadId(raw.head.thread),
            first: raw.first,
            seq: raw.seq,
            returned: (raw.has_returned != 0).then_some(raw.returned),
            polled: polled(&raw.polled_fds, raw.polled),
            polled_truncated: raw.polled_truncated != 0,
            path: (raw.path_len > 1).then(|| text(&raw.path)),
            completed: optional_object(raw.completed),
        },
        at: raw.at,
        on_cpu: raw.on_cpu != 0,
        pid: raw.pid,
        weight: raw.weight,
        registers: registers(raw.regs),
        stack: waits::stack_of(raw),
    }
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

fn earlier(raw: wire::holdup_earlier) -> RawEvent {
    let ns = |ticks: u32| u64::from(ticks) * tick();
    RawEvent::Earlier(Earlier {
        pid: raw.pid,
        connection: raw.connection,
        inode: raw.inode,
        said_at: raw.at.saturating_sub(ns(raw.ago)),
        tick: tick(),
        by_client: raw.accepted != 0,
        after: (raw.first == 0).then(|| ns(raw.gap)),
        unclear: false,
        words: Some(Words {
            received: raw.received,
            sent: raw.sent,
        }),
    })
}

/// The length of the kernel's tick, nanoseconds: what its coarse clocks go by.
fn tick() -> Ns {
    const USUAL: Ns = 4_000_000;
    let clock = nix::time::ClockId::CLOCK_MONOTONIC_COARSE;
    nix::time::clock_getres(clock).map_or(USUAL, |tick| {
        u64::try_from(std::time::Duration::from(tick).as_nanos()).unwrap_or(USUAL)
    })
}

fn request(raw: wire::holdup_request) -> RawEvent {
    RawEvent::Request(Request {
        at: raw.at,
        thread: ThreadId(raw.head.thread),
        clock: clock(raw.clock),
        connection: raw.connection,
        weight: raw.weight,
        step: match wire::holdup_request_step(raw.step) {
            wire::holdup_request_step::HOLDUP_REQUEST_ANSWERED => RequestStep::Answered,
            wire::holdup_request_step::HOLDUP_REQUEST_DROPPED => RequestStep::Dropped,
            wire::holdup_request_step::HOLDUP_REQUESTS_LEFT => RequestStep::Left,
            wire::holdup_request_step::HOLDUP_REQUEST_READ_ON => RequestStep::ReadOn,
            _ => RequestStep::Read {
                begins: raw.begins.iter().map(|byte| byte.cast_unsigned()).collect(),
                port: u16::try_from(raw.port).unwrap_or(0),
            },
        },
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
    use super::{DecodeError, RawEvent, asked, decode, memory, state, wire};
    use holdup_evidence::TaskState;
    use proptest::prelude::{any, proptest};

    proptest! {
        /// Whatever the bytes, decoding ends with a value or a reason.
        #[test]
        fn any_bytes_decode_or_are_refused(kind in 0u32..21, rest in proptest::collection::vec(any::<u8>(), 0..20_000)) {
            let mut bytes = kind.to_ne_bytes().to_vec();
            bytes.extend(rest);
            match decode(&bytes) {
                Ok(_) => assert!((1..=20).contains(&kind)),
                Err(DecodeError::Unknown(found)) => assert_eq!(found, kind),
                Err(DecodeError::Short { len, .. }) => assert_eq!(len, bytes.len()),
            }
        }
    }

    #[test]
    fn places_of_a_poll_that_are_not_used_are_no_descriptors() {
        let mut raw = wire::holdup_asked {
            polled: 4,
            ..wire::holdup_asked::default()
        };
        for (place, fd) in raw.polled_fds.iter_mut().zip([3, -1, 5, -1]) {
            place.fd = fd;
        }
        let RawEvent::Asked(asked) = asked(&raw) else {
            panic!("another record");
        };
        let fds: Vec<i32> = asked.polled.iter().map(|one| one.fd).collect();
        assert_eq!(fds, [3, 5]);
        let mut raw = wire::holdup_memory {
            polled: 2,
            ..wire::holdup_memory::default()
        };
        raw.polled_fds[0].fd = -1;
        raw.polled_fds[1].fd = 4;
        let fds: Vec<i32> = memory(&raw).wait.polled.iter().map(|one| one.fd).collect();
        assert_eq!(fds, [4]);
    }

    #[test]
    fn stopped_beats_the_sleep_bits() {
        assert_eq!(state(0x4 | 0x100), TaskState::Stopped);
        assert_eq!(state(0x1), TaskState::Interruptible);
        assert_eq!(state(0x2 | 0x100), TaskState::Uninterruptible);
    }
}
