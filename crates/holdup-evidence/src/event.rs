//! The stream of what was seen.
//!
//! A source delivers events so that what an event refers to came before it (a thread's start, an object, a
//! kernel stack). Waits are delivered at the instant of their waking: when [`Wait`] arrives its thread has
//! not yet run again, and its waker's [`Clock`] is that of the same instant. Times are `CLOCK_MONOTONIC`.

use crate::attached::{Adopted, Earlier, GoesOn, OtherEnd, Request, Role, SaidSince, Serving};
use crate::churn::{Conversation, Hello, MadeBy, Turned};
use crate::jvm::{JvmPause, JvmStop};
use crate::network::{Connection, NameAsked, TcpState};
use crate::ran_instead::RanInstead;
use crate::{Call, KernelStackId, Ns, Object, ObjectId, RuntimeLock, UserStackId};
use serde::{Deserialize, Serialize};

/// A thread of the run. The source numbers threads itself, because the kernel reuses tids and changes them
/// at an exec; 0 is CMD's first thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ThreadId(pub u32);

/// Running number of a wait or CPU sample within its thread, from 1; a gap means that a record was dropped.
pub type Seq = u32;

/// What the kernel side has added up for a thread, from its birth to an instant. The three times and the
/// birth tile the thread's life: `birth + cpu + queued + blocked = instant`, to the nanosecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Clock {
    /// On a CPU.
    pub cpu: Ns,
    /// Runnable and not running.
    pub queued: Ns,
    /// Blocked, up to the instant.
    pub blocked: Ns,
    /// Of `cpu`: taken by interrupts that are none of the thread's own doing.
    #[serde(default)]
    pub interrupt: Ns,
    /// Of `queued`: while the CPU quota of the thread's cgroup was spent.
    #[serde(default)]
    pub throttled: Ns,
    /// Of `cpu`: with a request to answer.
    #[serde(default)]
    pub served_cpu: Ns,
    /// Of `queued`: with a request to answer.
    #[serde(default)]
    pub served_queued: Ns,
    /// Waits that were like the one reported before them, and are known by their number and time alone.
    #[serde(default)]
    pub repeats: u64,
    /// Of `blocked`: in those.
    #[serde(default)]
    pub repeated: Ns,
}

impl Clock {
    /// The sum of the three that tile a life.
    #[must_use]
    pub fn total(&self) -> Ns {
        self.cpu + self.queued + self.blocked
    }
}

/// A task that need not belong to the run. The name is hostile text of at most 15 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskName {
    /// Process id (the kernel's tgid) in holdup's pid namespace.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// The kernel's name of the thread (comm).
    pub name: String,
    /// Whether it is a kernel thread.
    pub kernel: bool,
}

/// A thread is born, or is first seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// When its life under observation began.
    pub at: Ns,
    /// The new thread.
    pub thread: ThreadId,
    /// Its process and thread id and name.
    pub task: TaskName,
    /// Who created it and that thread's clock at this instant; `None` for CMD's first thread.
    pub parent: Option<(ThreadId, Clock)>,
    /// What it calls itself, where it is not in the initial pid namespace.
    #[serde(default)]
    pub inside: Option<Inside>,
    /// Why it is watched.
    #[serde(default)]
    pub role: Role,
    /// What it was when observation found it; `None` of one that was born under observation.
    #[serde(default)]
    pub adopted: Option<Adopted>,
}

/// A thread's id in its own pid namespace: locks in its memory name their owner so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Inside {
    /// Which namespace: its inode number.
    pub namespace: u32,
    /// The thread id there.
    pub tid: u32,
}

/// How a thread that left the CPU without being runnable was waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TaskState {
    /// Interruptible sleep (S).
    Interruptible,
    /// Uninterruptible sleep (D), killable sleeps included.
    Uninterruptible,
    /// Stopped by a signal (T).
    Stopped,
    /// Stopped by a tracer (t).
    Traced,
    /// Frozen.
    Frozen,
    /// Any other, the kernel's raw bits.
    Other(u32),
}

/// Who or what ended a wait. An interrupted bystander is never named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Waker {
    /// A thread of the run, in its own context.
    Thread {
        /// Which.
        thread: ThreadId,
        /// Its clock at the instant of the waking.
        clock: Clock,
        /// The system call it was in.
        call: Call,
    },
    /// A task outside the run, in its own context.
    Outside {
        /// Which.
        task: TaskName,
        /// The system call it was in; [`Call::none`] for kernel threads.
        call: Call,
    },
    /// An interrupt: a timer, a device, or a packet that was received.
    Interrupt {
        /// Whether it was a soft interrupt (network, block completion, timer wheel) rather than a hard one.
        soft: bool,
        /// The socket that had become ready on that CPU just before, if any.
        socket: Option<ObjectId>,
    },
    /// The source cannot tell the context in which the waking happened.
    Unknown,
}

/// Words of memory around a futex that are kept, each of 32 bits.
pub const FUTEX_WORDS: usize = 10;
/// Which of them is at the futex's address.
pub const FUTEX_AT: usize = 3;

/// A task that the kernel names as an owner; ids in holdup's pid namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockOwner {
    /// Thread id.
    pub tid: u32,
    /// Process id.
    pub pid: u32,
}

/// Kinds of locks in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum KernelLockKind {
    /// A mutex: one owner.
    Mutex,
    /// A reader-writer semaphore: the owner is known while it is a writer.
    Semaphore,
    /// The same with its readers counted on each CPU: no owner is kept.
    PerCpu,
}

/// A lock in the kernel that a thread sleeps for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelLock {
    /// Who owns it; `None` where the kernel keeps none, as of readers.
    pub owner: Option<LockOwner>,
    /// What it is.
    pub kind: KernelLockKind,
    /// Whether the thread wants to share it with other readers.
    pub shared: bool,
    /// The process whose address space it guards.
    pub address_space: Option<u32>,
    /// The file or directory that it belongs to.
    pub object: Option<ObjectId>,
}

/// Who was in the way of what a thread began to wait for, read at that instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LockHolder {
    /// Memory around the futex address, [`FUTEX_AT`] words before it included; those that do not exist are 0.
    FutexWords([u32; FUTEX_WORDS]),
    /// Process that holds a conflicting lock on the file, from the kernel's lock list.
    FileLock {
        /// Its process id in holdup's pid namespace; 0 when the kernel keeps none.
        pid: u32,
    },
    /// Process that used the System V semaphore last, as the kernel notes it: while somebody waits for more of it, that one took of it.
    Semaphore {
        /// Its process id in holdup's pid namespace.
        pid: u32,
    },
    /// Owner of a priority-inheritance futex, as the kernel has it.
    PiFutex(LockOwner),
    /// A lock in the kernel.
    KernelLock(KernelLock),
    /// Who traces the thread.
    Tracer(LockOwner),
    /// A lock that a runtime keeps, seen while the wait went on.
    Runtime(RuntimeLock),
    /// Who must act before a database's session gets its lock, by the server's own table of locks: a session, or the client of one.
    Session(LockOwner),
    /// A Java virtual machine stopped the thread, or worked for it: it waits on a word that is for nothing else.
    Stopped(JvmStop),
    /// io_uring: every request that had been made on the ring had completed as the wait began. It is for one that is still to be made.
    NobodyAsked,
    /// Process that received from the System V message queue last, as the kernel notes it, of one that is full.
    QueueReceiver {
        /// Its process id in holdup's pid namespace.
        pid: u32,
    },
}

/// A wait that ended: from leaving the CPU to the waking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// Who waited.
    pub thread: ThreadId,
    /// Running number within the thread.
    pub seq: Seq,
    /// When it left the CPU.
    pub start: Ns,
    /// When it was woken. `end - start` is the wait; what follows until it runs is queueing.
    pub end: Ns,
    /// The thread's clock at `end`, this wait included.
    pub clock: Clock,
    /// Kind of sleep.
    pub state: TaskState,
    /// Whether the kernel counted it as waiting for I/O.
    pub iowait: bool,
    /// The system call it was in.
    pub call: Call,
    /// What the call was about, resolved when the thread left the CPU.
    pub object: Option<ObjectId>,
    /// epoll: the first descriptor that was ready when it was woken.
    pub ready: Option<ObjectId>,
    /// Who ended it.
    pub waker: Waker,
    /// Who was in the way when it began.
    pub holder: Option<LockHolder>,
    /// Kernel stack while it slept. Every wait of at least the source's kernel stack budget has one; of
    /// shorter waits a sample does.
    pub kernel_stack: Option<KernelStackId>,
    /// Whether the thread had a request to answer when it began: one that it had read.
    #[serde(default)]
    pub serves: bool,
    /// Then: a socket on which it had asked somebody else, and got no answer yet.
    #[serde(default)]
    pub unanswered: Option<ObjectId>,
    /// Whether a [`WaitMemory`] for this `(thread, seq)` was asked for and should follow.
    pub memory_follows: bool,
    /// poll, select: what was asked for as the call began, for when no [`WaitMemory`] comes after all. Holds no
    /// answer of the call.
    #[serde(default)]
    pub asked: Option<Box<WaitMemory>>,
}

/// What is to be known of the wait that follows for the same thread, where a source looks now and then and sees no wakings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimated {
    /// Who waited.
    pub thread: ThreadId,
    /// How many waits it stands for, of equal length as far as is known.
    pub count: u64,
    /// How much of its time is placed by looks alone; the rest is certain.
    pub doubt: Ns,
}

/// A polled descriptor, as found in the thread's memory after the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolledFd {
    /// The descriptor.
    pub fd: i32,
    /// `POLLIN`, `POLLOUT` … asked for.
    pub events: u16,
    /// What was ready; 0 for none, which for all of a set means that the time ran out.
    pub revents: u16,
    /// What the descriptor was.
    pub object: Option<ObjectId>,
    /// Whether the waiter's own process has the other end open too: a program wakes itself by such a pipe or socket.
    #[serde(default)]
    pub own: bool,
}

impl PolledFd {
    /// In what was asked for: the kernel tells of a state as long as it lasts, and not of its change alone. A bit that no event has; where it
    /// is not set, that is not known.
    pub const LEVEL: u16 = 0x4000;
}

/// What a woken thread's memory said before it ran user code again. Arrives soon after its [`Wait`], before
/// any other event that the thread causes from user mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitMemory {
    /// Who waited.
    pub thread: ThreadId,
    /// The first of the waits of one system call that it was the same for.
    pub first: Seq,
    /// The last of them.
    pub seq: Seq,
    /// What the system call returned (negative errno on failure); `None` where the source saw only the entry.
    pub returned: Option<i64>,
    /// poll, select, epoll: the descriptors waited for, at most 16.
    pub polled: Vec<PolledFd>,
    /// Whether there were more than `polled` holds.
    pub polled_truncated: bool,
    /// The path argument of calls that take one. Hostile text.
    pub path: Option<String>,
    /// io_uring: what the first request was about that completed after the wait.
    #[serde(default)]
    pub completed: Option<ObjectId>,
}

/// Who asked for a wait or used a CPU: a user stack, standing for `weight` of the thread's time in that wait
/// site (blocked or on CPU). Arrives any time after the wait or sample it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskerSample {
    /// Whose.
    pub thread: ThreadId,
    /// The first of the waits of one system call that the stack was the same in.
    pub first: Seq,
    /// The last of them, or the number of the CPU sample when `on_cpu`.
    pub seq: Seq,
    /// Whether this belongs to a [`CpuSample`] rather than to a [`Wait`].
    pub on_cpu: bool,
    /// The stack.
    pub stack: UserStackId,
    /// Time it stands for: unbiased, chosen by accumulated time with the remainder carried.
    pub weight: Ns,
}

/// Where a running thread was when the sampling clock ticked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuSample {
    /// When.
    pub at: Ns,
    /// Who.
    pub thread: ThreadId,
    /// Running number of CPU samples within the thread.
    pub seq: Seq,
    /// In user mode rather than in the kernel.
    pub user: bool,
    /// The system call it was in; [`Call::none`] in user mode and in faults.
    pub call: Call,
    /// What the call was about.
    pub object: Option<ObjectId>,
    /// Kernel stack, when in the kernel.
    pub kernel_stack: Option<KernelStackId>,
}

/// What interrupts were about, in the order of [`End::interrupts`].
pub const INTERRUPTS: [&str; 6] = [
    "devices",
    "timers",
    "network packets",
    "disk completions",
    "calls from other CPUs",
    "the kernel's own soft interrupts",
];

/// A stop, continue or fatal signal was sent to a thread of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalSent {
    /// When.
    pub at: Ns,
    /// To whom.
    pub thread: ThreadId,
    /// Signal number.
    pub signal: i32,
    /// By whom.
    pub by: TaskName,
}

/// What the kernel itself says of a thread that ended, to check ours against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Account {
    /// `schedstat`'s first figure: time on CPU.
    pub runtime: Ns,
    /// `schedstat`'s second figure: time waiting to run. `None` where the kernel does not keep it.
    pub run_delay: Option<Ns>,
    /// `voluntary_ctxt_switches`.
    pub voluntary_switches: u64,
    /// `nonvoluntary_ctxt_switches`.
    pub involuntary_switches: u64,
}

/// How a thread was when observation ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OpenState {
    /// On a CPU.
    Running,
    /// Queued for a CPU.
    Runnable,
    /// Blocked: a wait without an end or a waker; its `end` is the end of observation.
    Blocked(Box<Wait>),
}

/// A thread's life under observation is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// When.
    pub at: Ns,
    /// Who.
    pub thread: ThreadId,
    /// Its process and thread id and last name, so that a lost [`Start`] can be made good.
    pub task: TaskName,
    /// When its life under observation had begun.
    pub born: Ns,
    /// Its final clock.
    pub clock: Clock,
    /// How many times it blocked.
    pub blockings: u64,
    /// Time of waits whose record was dropped, and how many.
    pub lost: (Ns, u64),
    /// The final clock's `interrupt`, by what they were about ([`INTERRUPTS`]).
    #[serde(default)]
    pub interrupts: [Ns; INTERRUPTS.len()],
    /// The kernel's own figures. Only for threads that were born under observation and ended.
    pub account: Option<Account>,
    /// `None` when it ended; else it lives on and observation ended.
    pub open: Option<OpenState>,
    /// The exit code as `wait(2)` encodes it; 0 for threads that live on.
    pub exit_code: i32,
}

/// One thing that was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// A thread is born.
    Start(Start),
    /// A thread's process runs another program now; its tid may have changed to the process id.
    Exec {
        /// When.
        at: Ns,
        /// Who.
        thread: ThreadId,
        /// Its ids and name from now on.
        task: TaskName,
        /// The program's path as given to the kernel. Hostile text.
        program: String,
    },
    /// A thread has another name now.
    Renamed {
        /// Who.
        thread: ThreadId,
        /// The new name.
        name: String,
    },
    /// A process was met whose maker had ended before anybody could see who that was.
    Orphan {
        /// Since when, at the latest.
        at: Ns,
        /// Its first thread.
        thread: ThreadId,
    },
    /// An object that later events refer to.
    Object {
        /// Its id.
        id: ObjectId,
        /// What it is.
        object: Object,
    },
    /// A kernel stack that later events refer to, innermost frame first, function names only.
    KernelStack {
        /// Its id.
        id: KernelStackId,
        /// Names, suffixes such as `.isra.0` removed; empty when symbols are hidden.
        frames: Vec<String>,
    },
    /// The wait that follows for the same thread rests on samples.
    Estimated(Estimated),
    /// A wait ended.
    Wait(Box<Wait>),
    /// Who has the other end of what a wait is for.
    OtherEnd(OtherEnd),
    /// Whom processes serve.
    Serving(Serving),
    /// A wait that went on as observation had begun.
    GoesOn(GoesOn),
    /// A connection that waits for an answer since before.
    Earlier(Earlier),
    /// Such a connection is one no more.
    SaidSince(SaidSince),
    /// A request was read or answered.
    Request(Request),
    /// The connection that the wait which follows for the same thread was on.
    Tcp(TcpState),
    /// A request for a connection is over.
    Connection(Connection),
    /// Where somebody was as it made a thread, a process or a connection.
    MadeBy(MadeBy),
    /// The first bytes of a connection.
    Hello(Hello),
    /// A connection was made or closed.
    Conversation(Conversation),
    /// The handshake on a connection went on.
    Turned(Turned),
    /// A question was sent to a name server.
    NameAsked(NameAsked),
    /// A woken thread's memory.
    WaitMemory(Box<WaitMemory>),
    /// Who asked.
    Asker(AskerSample),
    /// Where a running thread was.
    Cpu(CpuSample),
    /// Who ran instead of a thread that queued.
    RanInstead(RanInstead),
    /// A signal.
    Signal(SignalSent),
    /// A task outside the run that lives under an id which a lock in the run's memory names as its owner.
    Outsider(TaskName),
    /// A lock that processes share names this thread id as its owner, and no thread of the machine lives under it.
    OwnerGone {
        /// The id, as holdup sees it.
        tid: u32,
    },
    /// A process is a Java virtual machine.
    IsJvm {
        /// Its id.
        pid: u32,
    },
    /// All Java threads of a machine were stopped. Comes before the waits that its end ended.
    JvmPause(JvmPause),
    /// A thread's observation ended.
    End(Box<End>),
}
