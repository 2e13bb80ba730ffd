//! What the machine says of itself: read once, after CMD has ended (or from artefacts), without blocking.
//!
//! `None` always means "not measured", never "no". One struct per kernel area; `holdup-proc` fills them.

mod awaited;
mod connected;
mod database_files;
mod database_locks;
mod database_sessions;
mod failed_tasks;
mod full;
mod lock_files;
mod owed;
mod own_logs;
mod programs;
mod progress;
mod set_aside;
mod task_limits;
mod unread;
mod workers;

pub use awaited::AwaitedPeer;
pub use connected::{Acceptor, ConnectedClients, Listener, NameServer, QueuedBytes};
pub use database_files::LockedFile;
pub use database_locks::{LockKind, LockSession, LockWait};
pub use database_sessions::{DatabaseSession, SessionClient, SessionState, ThreadSession};
pub use failed_tasks::FailedTask;
pub use full::{FileWriter, FullFileSystem};
pub use lock_files::LockFile;
pub use owed::{OwedAnswers, Taken};
pub use own_logs::{LogLine, LogReason, OwnLog};
pub use programs::{Program, StoppedChild};
pub use progress::{Moved, Pushed};
pub use set_aside::{AskedServer, SetAside};
pub use task_limits::{TaskLimit, TaskUser, TasksOf};
pub use unread::{FullOutput, LeftUnread, UnreadAnswers};
pub use workers::{LedBack, SharedListener, Workers};

use crate::observed::{FrozenVolume, SeenCgroup, SeenWait};
use crate::{DeviceNumber, Jvm, Ns};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Everything the rules may know of the machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemFacts {
    /// `uname -r`.
    pub kernel_release: Option<String>,
    /// Number of CPUs online.
    pub cpus: Option<u32>,
    /// What each CPU did beside running, while CMD ran.
    pub cpu_times: Vec<CpuTime>,
    /// What the kernel reads the time from.
    pub clocksource: Option<String>,
    /// Cgroups of processes that ran while the run was ready to, by the process's name.
    pub cgroups: BTreeMap<String, String>,
    /// The random number generator.
    pub random: RandomFacts,
    /// Block devices by number.
    pub block_devices: Vec<BlockDevice>,
    /// Active swap areas.
    pub swaps: Vec<SwapArea>,
    /// Mounts of holdup's own mount namespace.
    pub mounts: Vec<Mount>,
    /// CMD's cgroup and its limits.
    pub cgroup: CgroupFacts,
    /// Java virtual machines among what was observed.
    pub jvms: Vec<Jvm>,
    /// Name servers of `/etc/resolv.conf` and its options.
    pub resolver: Option<ResolverFacts>,
    /// Who listens for TCP connections in the network namespace of what was observed, when that is over.
    pub listeners: Vec<Listener>,
    /// Name servers of that namespace which were asked, and whom each of them asks in turn; first the one that was asked.
    pub name_servers: Vec<NameServer>,
    /// Listeners of processes that ran already at which clients stood when observation began and when it ended. `None`: nobody
    /// looked.
    pub unaccepted: Option<Vec<Unaccepted>>,
    /// Clients of processes that ran already which read nothing of what they were sent, from the begin of observation to its end. `None`:
    /// nobody looked.
    pub unread_answers: Option<Vec<UnreadAnswers>>,
    /// Receivers to which processes that ran already had connected and that read nothing of what they were sent, from the begin of observation
    /// to its end. `None`: nobody looked.
    pub full_outputs: Option<Vec<FullOutput>>,
    /// Answers that processes which ran already waited for on connections that they had made, when observation ended. `None`: nobody looked.
    pub owed_answers: Option<Vec<OwedAnswers>>,
    /// Lock files beside sleeping processes.
    pub lock_files: Vec<LockFile>,
    /// Answers that processes which ran already left unread from the begin of observation to its end. `None`: nobody looked.
    pub left_unread: Option<Vec<LeftUnread>>,
    /// What servers have sent processes which ran already without being asked. `None`: nobody looked.
    pub pushed: Option<Vec<Pushed>>,
    /// What those have read and written meanwhile.
    pub moved: Vec<Moved>,
    /// Tasks of observed processes that had failed by the end, and beside which others waited.
    pub failed_tasks: Vec<FailedTask>,
    /// Processes among the observed ones that do the same work side by side, when observation ended.
    pub workers: Vec<Workers>,
    /// Clients of this machine that are connected where observed processes are, and that nobody asked about; of servers with
    /// few of them.
    pub other_clients: Vec<OtherClient>,
    /// Locks of SQLite databases that observed processes had open, when observation ended.
    pub database_files: Vec<LockedFile>,
    /// Locks of other files that observed processes had open, when observation ended.
    pub locked_files: Vec<LockedFile>,
    /// Sessions of the database servers of which a process was observed, when that was over.
    pub database_sessions: Vec<DatabaseSession>,
    /// Threads of observed database servers that wait for a lock of their server or for their clients, when that was over.
    pub thread_sessions: Vec<ThreadSession>,
    /// Sessions of observed database servers that waited for each other's locks, at the last look at which some did.
    pub lock_sessions: Vec<LockSession>,
    /// For whom processes waited, when that was over, that were watched because others wait for them.
    pub awaited_peers: Vec<AwaitedPeer>,
    /// Observed interpreters with what they interpreted, when that was over.
    pub programs: Vec<Program>,
    /// Processes that were stopped at the end, and that their parents use.
    pub stopped_children: Vec<StoppedChild>,
    /// Cgroups that ran into their limit of memory or CPU time while a machine was recorded.
    pub cgroups_at_limit: Vec<SeenCgroup>,
    /// File systems that were full when the recording of a machine ended.
    pub full_file_systems: Vec<FullFileSystem>,
    /// File systems that were frozen when the recording of a machine ended, with who uses them.
    pub frozen_volumes: Vec<FrozenVolume>,
    /// Who waited for whose answer when the recording of a machine ended, by the kernel's own tables.
    pub answers_awaited: Vec<SeenWait>,
    /// Limits on processes and threads that were used up when observation of processes that ran already ended. `None`: nobody
    /// looked.
    pub task_limits: Option<Vec<TaskLimit>>,
    /// Processes that had no descriptor left when observation of processes that ran already began and when it ended. `None`: nobody looked.
    pub no_descriptor_left: Option<Vec<NoDescriptorLeft>>,
    /// Logs that observed processes write, with what they say about work that waits. `None`: nobody read them.
    pub own_logs: Option<Vec<OwnLog>>,
    /// Event loops whose clients were set aside when observation began and when it ended. `None`: nobody looked.
    pub set_aside: Option<Vec<SetAside>>,
    /// Selected `/proc/sys` values by path below it (`net/ipv4/tcp_syn_retries`).
    pub sysctl: BTreeMap<String, String>,
    /// Names of processes outside the run that events refer to, by process id, looked up soon after.
    pub processes: BTreeMap<u32, String>,
    /// The name that holdup itself has among tasks.
    pub observer: Option<String>,
    /// Which of them a signal had stopped when they were looked at.
    pub stopped: BTreeSet<u32>,
    /// Offset that turns `CLOCK_MONOTONIC` into `CLOCK_BOOTTIME`, in nanoseconds.
    pub boot_minus_monotonic: Option<Ns>,
    /// Offset that turns `CLOCK_MONOTONIC` into Unix time, in nanoseconds.
    pub unix_minus_monotonic: Option<i64>,
}

/// The kernel's random number generator and what feeds it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RandomFacts {
    /// When the kernel log says that the generator was seeded, nanoseconds after boot, and the line itself.
    pub seeded: Option<(Ns, String)>,
    /// `/proc/sys/kernel/random/poolsize`: 256 on the generator of Linux 5.18 and its back-ports, 4096 before.
    pub pool_size: Option<u32>,
    /// `/proc/sys/kernel/random/entropy_avail`.
    pub entropy_available: Option<u32>,
    /// Whether `read_wakeup_threshold` exists: a blocking pool, `/dev/random` can stall at any time.
    pub blocking_pool: Option<bool>,
    /// `/sys/class/misc/hw_random/rng_current`.
    pub hardware_source: Option<String>,
    /// `/sys/class/misc/hw_random/rng_available`.
    pub hardware_available: Option<String>,
    /// Whether the CPU offers RDRAND or RDSEED (x86), or RNDR (arm64).
    pub cpu_instruction: Option<bool>,
    /// `random.trust_cpu=` of the kernel command line, where given.
    pub trust_cpu: Option<bool>,
    /// Whether this is a virtual machine (cpuinfo flag `hypervisor`).
    pub virtual_machine: Option<bool>,
}

/// What a CPU did beside running.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuTime {
    /// Its number.
    pub cpu: u32,
    /// Idle, waiting for a disk included.
    pub idle: Ns,
    /// Kept from this machine by the hypervisor.
    pub stolen: Ns,
}

/// A block device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BlockDevice {
    /// Its number.
    pub number: DeviceNumber,
    /// Its kernel name (`sda1`, `loop0`).
    pub name: String,
    /// For a loop device the file behind it.
    pub backing_file: Option<String>,
    /// The whole disk a partition belongs to.
    pub disk: Option<String>,
    /// `queue/rotational`.
    pub rotational: Option<bool>,
    /// Bytes that may at most wait to be written to it, where that limit is strict: counted although the machine has room.
    pub dirty_limit: Option<u64>,
    /// Milliseconds during which a request was in flight since boot (`/proc/diskstats`, "time spent doing I/Os").
    pub busy_ms: Option<u64>,
}

/// A swap area.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SwapArea {
    /// The device or file, as the kernel has it.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// The one with the highest is used first.
    pub priority: i64,
}

/// A mount.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mount {
    /// Device number of its file system.
    pub device: DeviceNumber,
    /// Where it is mounted.
    pub target: String,
    /// File system type.
    pub file_system: String,
    /// What is mounted.
    pub source: String,
    /// Mount and super block options, comma separated.
    pub options: String,
}

/// Limits of CMD's cgroup, the nearest that apply (its own or an ancestor's).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CgroupFacts {
    /// The CPU quota that binds first: the nearest, its own or an ancestor's.
    pub cpu_quota: Option<CpuQuota>,
    /// Times throttled and time throttled (ns) while CMD ran.
    pub cpu_throttled: Option<(u64, Ns)>,
    /// I/O limits: one per device and kind.
    pub io_limits: Vec<IoLimit>,
    /// memory.high, bytes.
    pub memory_high: Option<u64>,
    /// memory.max, bytes.
    pub memory_max: Option<u64>,
    /// The cgroup whose memory counts, and what happened in it.
    pub memory: MemoryCgroup,
    /// The cgroup that is frozen or not, where it has a freezer.
    pub freezer: Option<String>,
}

/// How much CPU time a cgroup may use in each period.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuQuota {
    /// The cgroup that sets it, in the hierarchy that sets it: a process is elsewhere in each of version 1.
    pub cgroup: String,
    /// CPU time in a period, microseconds; more than the period where it may use several CPUs.
    pub quota_us: u64,
    /// The period, microseconds.
    pub period_us: u64,
}

impl CpuQuota {
    /// The quota as a number of CPUs.
    #[must_use]
    pub fn cpus(&self) -> f64 {
        self.quota_us as f64 / self.period_us.max(1) as f64
    }
}

/// Memory of CMD's cgroup. Counters are of the time while CMD ran, of all in the cgroup.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryCgroup {
    /// The nearest one with a limit, its own or an ancestor.
    pub cgroup: Option<String>,
    /// How often the limit stopped an allocation (`memory.failcnt`, `memory.events max`).
    pub limit_reached: Option<u64>,
    /// How often memory.high slowed one (`memory.events high`).
    pub high_reached: Option<u64>,
    /// Pages, of 4 KiB each, of files that were read again after they had been pushed out (`workingset_refault_file`).
    pub files_again: Option<u64>,
    /// The same of memory that came back from swap (`workingset_refault_anon`).
    pub memory_again: Option<u64>,
    /// Whether the kernel may end a process when the limit leaves no other way; `false` in version 1 where that is
    /// switched off.
    pub oom_killer: Option<bool>,
}

/// One I/O limit of a cgroup.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IoLimit {
    /// The device.
    pub device: DeviceNumber,
    /// The kernel file that holds it (`blkio.throttle.write_iops_device`, `io.max wiops`).
    pub setting: String,
    /// The limit, operations or bytes a second by the setting's name.
    pub value: u64,
    /// The cgroup that sets it.
    pub cgroup: String,
}

/// What `/etc/resolv.conf` says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResolverFacts {
    /// `nameserver` lines.
    pub servers: Vec<String>,
    /// `options` words.
    pub options: Vec<String>,
    /// Domains of the `search` (or `domain`) line that counts, the last one.
    pub search: Vec<String>,
}

/// Another client of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherClient {
    /// The server's address and port.
    pub server: SocketAddr,
    /// The client's process.
    pub pid: u32,
    /// Its name. Hostile text.
    pub process: String,
}

/// A listener of observed processes whose clients wait to be accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unaccepted {
    /// The address and port it listens on.
    pub address: SocketAddr,
    /// Processes that have it open, lowest id first.
    pub processes: Vec<u32>,
    /// Children of these that have it open, too, and are not observed.
    pub children: Vec<u32>,
    /// Clients that it had not accepted as observation began.
    pub before: u32,
    /// The same as it ended.
    pub after: u32,
    /// Clients on this machine that asked for a connection then, and had no answer.
    pub knocking: u32,
    /// How often a client found a queue full meanwhile, at any listener of that network namespace.
    pub overflows: u64,
    /// Those of the processes that could open no more descriptors when it ended.
    pub out_of_descriptors: Vec<DescriptorLimit>,
    /// Who has the connections that were accepted there, most first.
    pub clients: Vec<ConnectedClients>,
}

/// What a process has open that can open nothing more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NoDescriptorLeft {
    /// Its limit.
    pub limit: DescriptorLimit,
    /// Sockets among what it has open.
    pub sockets: u64,
    /// Pipes among it.
    pub pipes: u64,
}

/// A process that has as many descriptors open as it may.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DescriptorLimit {
    /// The process.
    pub pid: u32,
    /// Descriptors that it has open.
    pub open: u64,
    /// How many it may have open (`RLIMIT_NOFILE`).
    pub soft: u64,
    /// The most that the limit may be raised to without privileges.
    pub hard: u64,
}

impl Default for Unaccepted {
    fn default() -> Unaccepted {
        Unaccepted {
            address: SocketAddr::from(([0, 0, 0, 0], 0)),
            processes: Vec::new(),
            children: Vec::new(),
            before: 0,
            after: 0,
            knocking: 0,
            overflows: 0,
            out_of_descriptors: Vec::new(),
            clients: Vec::new(),
        }
    }
}
