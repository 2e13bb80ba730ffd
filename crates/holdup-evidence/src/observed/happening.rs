//! What happened at an instant, as logs tell it.

use super::{Quote, SeenSession, When};
use crate::Ns;
use serde::{Deserialize, Serialize};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Happening {
    /// What.
    pub what: What,
    /// When.
    #[serde(default)]
    pub at: Option<When>,
    /// The same instant since boot, where the line tells both.
    #[serde(default)]
    pub since_boot: Option<Ns>,
    /// Where it was read.
    #[serde(default)]
    pub quote: Quote,
    /// The line itself, cut to a bearable length.
    #[serde(default)]
    pub text: String,
}

/// What happened, by who tells it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// The kernel.
    Kernel(KernelEvent),
    /// systemd, of a unit.
    Unit(UnitEvent),
    /// A JVM.
    Jvm(JvmEvent),
    /// A TLS library.
    Tls(TlsEvent),
    /// A database server, of one of its sessions.
    Session(SeenSession),
    /// Any log.
    Log(LogEvent),
}

/// What a request to a device was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceRequest {
    /// To read.
    Read,
    /// To write.
    Write,
    /// To write what the device keeps in its cache to the medium.
    Flush,
}

/// Why a device or its link was reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResetReason {
    /// Its port was frozen: nothing is sent to it until it is reset.
    Frozen,
    /// A request took longer than its limit.
    TimedOut,
}

/// What the kernel's log tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelEvent {
    /// The first line of a boot.
    Boot {
        /// Kernel release; empty where only something else tells that a boot begins.
        #[serde(default)]
        release: String,
        /// The boot's id, where the artefact tells it.
        #[serde(default)]
        id: Option<String>,
    },
    /// The random generator reached a stage: `fully` when it may answer everybody.
    RandomSeeded {
        /// Whether it is the last stage.
        fully: bool,
    },
    /// Somebody read the generator before it was seeded.
    UnseededRead {
        /// Who.
        process: String,
        /// How many more the kernel says it did not log.
        suppressed: u64,
    },
    /// A task blocked for longer than the watchdog bears.
    HungTask {
        /// Name and id.
        process: String,
        /// Its id.
        pid: u32,
        /// For how long.
        ns: Ns,
        /// The likely owner of the lock that it waits for, where the kernel names one.
        owner: Option<String>,
        /// Its kernel stack, innermost first, as far as the log has it.
        stack: Vec<String>,
    },
    /// A CPU did not schedule.
    SoftLockup {
        /// Which.
        cpu: u32,
        /// Who had it.
        process: String,
        /// For how long.
        ns: Ns,
        /// What the lines behind tell.
        #[serde(default, skip_serializing_if = "Stall::is_empty")]
        stall: Stall,
    },
    /// RCU found a CPU stalled, and tells no more.
    RcuStall,
    /// RCU found CPUs stalled.
    CpuStall(Stall),
    /// A CPU took no interrupts.
    HardLockup {
        /// Which.
        cpu: u32,
        /// What the lines behind tell.
        #[serde(default, skip_serializing_if = "Stall::is_empty")]
        stall: Stall,
    },
    /// A process was ended for its memory.
    OomKill {
        /// Who.
        process: String,
        /// Its id.
        pid: u32,
        /// What it kept in memory, KiB.
        resident_kib: Option<u64>,
        /// The cgroup whose limit was reached; `None` for the machine's memory.
        cgroup: Option<String>,
        /// Swap that was free then, KiB; 0 of 0 where there is none.
        free_swap_kib: Option<u64>,
        /// Swap that there was.
        total_swap_kib: Option<u64>,
    },
    /// A device failed a request.
    IoError {
        /// Which.
        device: String,
        /// What the request was for, where the line says it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<DeviceRequest>,
    },
    /// A device cannot read a place on its medium, or write to it.
    MediumError {
        /// Which.
        device: String,
    },
    /// A device or its link was reset.
    DeviceReset {
        /// Which.
        device: String,
        /// Why, where the line says it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<ResetReason>,
    },
    /// A network interface did not send what is in a queue.
    TransmitTimeout {
        /// Which interface, and in brackets its driver.
        device: String,
        /// Which queue.
        #[serde(default)]
        queue: Option<u32>,
    },
    /// The connection tracking table is full.
    ConntrackFull,
    /// Requests for connections come faster than they are taken.
    SynFlood {
        /// On which port.
        port: u16,
    },
    /// A network file system's server does not answer, or does again.
    NfsServer {
        /// Which.
        server: String,
        /// Whether it answers again.
        ok: bool,
        /// Whether requests to it were given up.
        #[serde(default)]
        gave_up: bool,
    },
    /// A file system has an error, or is read-only for one.
    FileSystemError {
        /// Device or mount.
        on: String,
        /// Whether the line says that it is read-only or shut down now.
        #[serde(default)]
        read_only: bool,
    },
    /// The clock source was given up.
    ClockUnstable {
        /// Which.
        from: String,
    },
    /// The boot came so far.
    Step(BootStep),
}

/// What the report of a CPU that does not go on tells of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// Which CPUs.
    #[serde(default)]
    pub cpus: Vec<u32>,
    /// The task that has the CPU, with its id; empty where nothing tells.
    #[serde(default)]
    pub task: String,
    /// The work item that the task does.
    #[serde(default)]
    pub work: String,
    /// For how long, in ticks of the kernel's clock.
    #[serde(default)]
    pub jiffies: Option<u64>,
    /// Whether RCU's own thread got no CPU.
    #[serde(default)]
    pub starved: bool,
    /// The kernel stack, innermost first.
    #[serde(default)]
    pub stack: Vec<String>,
}

impl Stall {
    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Stall::default()
    }
}

/// How far a boot has come, in the kernel's own words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BootStep {
    /// The kernel has set itself up, and frees what it needed for that.
    KernelReady,
    /// It starts the first program.
    InitStarted {
        /// Which: `/init` is that of an initial file system in memory.
        program: String,
    },
    /// It waits for the device of the root file system.
    WaitsForRoot {
        /// Which.
        device: String,
    },
    /// A file system was mounted.
    Mounted {
        /// From which device.
        on: String,
        /// Whether the line says that it is the root.
        root: bool,
    },
    /// A network interface has its link.
    LinkUp {
        /// Which.
        interface: String,
    },
    /// A swap area was switched on.
    SwapOn {
        /// Which.
        area: String,
    },
}

/// What systemd tells of a unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnitEvent {
    /// It begins to start.
    Starting {
        /// Which.
        unit: String,
    },
    /// It has started, or a target was reached.
    Started {
        /// Which.
        unit: String,
    },
    /// A step of its start-up, or its stop, took longer than it may.
    TimedOut {
        /// Which.
        unit: String,
        /// Which step, as systemd names it.
        step: String,
    },
    /// It failed.
    Failed {
        /// Which.
        unit: String,
    },
    /// It was not started, because something that it needs did not come.
    DependencyFailed {
        /// Which.
        unit: String,
    },
    /// systemd itself began; in a machine with an initial file system it may do so twice.
    ManagerStarted,
    /// It is started again.
    Restarting {
        /// Which.
        unit: String,
        /// For which time, where known.
        times: Option<u32>,
    },
    /// A service says that it listens.
    Listening {
        /// Which process.
        process: String,
        /// On what.
        on: String,
    },
}

/// What a JVM's log tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JvmEvent {
    /// A thread began.
    ThreadStarted {
        /// The kernel's id.
        tid: u64,
    },
    /// A thread ended.
    ThreadEnded {
        /// The kernel's id.
        tid: u64,
    },
    /// Compiled code was given up.
    Deoptimised {
        /// Of which method.
        method: String,
    },
}

/// What a TLS library's log tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsEvent {
    /// A client began a handshake.
    ClientHello {
        /// Bytes of the session id that it offers.
        session_id: u32,
        /// The name it asks for.
        server: Option<String>,
        /// Whether it offers a ticket or a pre-shared key; `None` where the artefact is cut before that.
        ticket: Option<bool>,
    },
    /// A server answered.
    ServerHello {
        /// Whether it takes up an old session; `None` where that cannot be determined.
        resumed: Option<bool>,
        /// The name that its client asked for, where that is known.
        #[serde(default)]
        server: Option<String>,
    },
    /// A client that is made for trying connected, and tells what became of the handshake.
    Tried {
        /// Whether it took up an old session.
        resumed: bool,
        /// Whether it came back, and offered the session of the connection before.
        offered: bool,
        /// Bytes of the handshake that came from the server, where known.
        bytes: Option<u64>,
    },
    /// A certificate was sent: the handshake is a full one.
    Certificate {
        /// The name that its client asked for, where that is known.
        #[serde(default)]
        server: Option<String>,
    },
    /// A fatal alert: the session can't be resumed.
    Fatal {
        /// Its text.
        why: String,
        /// The function that raised it, where a trace is there.
        raised_by: Option<String>,
    },
    /// A session was there, and was not taken up, or is not to be.
    NotResumed {
        /// Why, in the log's words.
        why: String,
    },
    /// The handshake is over.
    Finished,
}

/// What any log tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogEvent {
    /// Somebody waited for a free connection of a pool until it gave up.
    NoConnectionFree {
        /// Which pool, or whose, as far as the log names it; else empty.
        pool: String,
        /// For how long.
        ns: Option<Ns>,
        /// How many connections it has, where known.
        size: Option<u64>,
        /// How many waited for one beside it, where known.
        waiting: Option<u64>,
    },
    /// A proxy waited for the server behind it until it gave up.
    UpstreamSilent {
        /// Which server.
        upstream: String,
        /// What the proxy was at, in its own words.
        doing: String,
    },
    /// Time ran backwards: a clock step, or two logs run together.
    Backwards {
        /// By how much.
        ns: Ns,
    },
    /// Time ran backwards more often than is reported one by one.
    MoreBackwards {
        /// How many times more.
        times: u64,
    },
    /// Time ran backwards, and the lines after it are made differently: another log begins.
    AnotherLog {
        /// By how much.
        ns: Ns,
    },
}
