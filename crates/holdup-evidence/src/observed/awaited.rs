//! Who waits for whom on a machine, as the kernel's own tables have it.

use super::{Killed, Occupied, Quote};
use crate::Ns;
use crate::facts::OwnLog;
use serde::{Deserialize, Serialize};

/// A process that waits for what another one has or must do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenWait {
    /// Who waits.
    pub waiter: SeenProcess,
    /// In what.
    pub on: Awaited,
    /// For what: a path, an address, a mount point; empty where it is not known.
    pub name: String,
    /// Who has it, or must answer; `None` where that is not known.
    pub holder: Option<SeenProcess>,
    /// For how long at least.
    pub ns: Ns,
    /// Whether the waiter has no other thread: while it waits, it answers nobody.
    pub alone: bool,
    /// What is known besides of what is waited for.
    pub short: Short,
    /// Of a frozen file system: who uses it, who may have frozen it first.
    pub users: Vec<VolumeUser>,
    /// Where it was read.
    pub quote: Quote,
}

/// A process that waits, or is waited for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenProcess {
    /// Its id.
    pub pid: u32,
    /// The program that a person knows it by. Hostile text.
    pub name: String,
    /// What it does meanwhile.
    pub doing: Doing,
    /// Of a session of a database: the process that has connected to it. Of one that runs all the time: the one whose requests it
    /// answers for most of that.
    pub client: Option<SeenClient>,
    /// How much it had to do, if it runs all the time.
    pub load: Option<SeenLoad>,
    /// Of one that does not read what others write to it: the full file system on which it has files open to write to.
    pub full: Option<String>,
    /// The limit of file descriptors, if it has used that up.
    pub descriptors: Option<u64>,
    /// Who traces it, if that is why it stands still.
    pub tracer: Option<SeenClient>,
    /// The cgroup that it is frozen with. Hostile text.
    pub cgroup: Option<String>,
}

/// A server whose threads run in most lists of tasks, while requests to it have arrived and are not read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenLoad {
    /// Threads that run, or are runnable, in most lists.
    pub threads: u32,
    /// Lists in which the busiest of them did.
    pub ran: u32,
    /// Lists in which there were requests that it had not read.
    pub queued: u32,
    /// All lists.
    pub lists: u32,
    /// Connections with such a request in one list, at most.
    pub most: u32,
    /// What the process used, percent of one CPU.
    pub cpu_percent: u32,
}

/// The client of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenClient {
    /// Its id.
    pub pid: u32,
    /// Its name.
    pub name: String,
}

/// What a process does while others wait for it, as far as that is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doing {
    /// Anything.
    #[default]
    Unknown,
    /// It is stopped by a signal.
    Stopped,
    /// A tracer holds it: a debugger. A signal does not let it go on.
    Traced,
    /// Its cgroup is frozen.
    Frozen,
    /// A session of a database whose client has begun a transaction and asks nothing.
    IdleInTransaction,
    /// A thread of it runs, or is runnable, in most lists of tasks.
    Running,
}

impl Doing {
    /// Whether it does nothing until somebody lets it go on.
    #[must_use]
    pub fn stands_still(self) -> bool {
        matches!(self, Doing::Stopped | Doing::Traced | Doing::Frozen)
    }
}

/// What a process waits in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Awaited {
    /// An answer: it has sent something on a connection, and nothing has come since.
    #[default]
    Answer,
    /// A file's lock.
    FileLock,
    /// A file system that a process answers for.
    Files,
    /// The other end of a pipe or a Unix socket.
    Peer,
    /// A lock of a database, between its sessions.
    SessionLock,
    /// A name: it has asked a name server that has not answered.
    Names,
    /// Room in a pipe or a socket, whose other end does not read.
    Room,
    /// Its child, which waits itself.
    Child,
    /// Its turn: it has sent something that the other end, which runs all the time, has not read yet.
    Turn,
    /// A CPU: it is runnable, and others have the CPUs that it may use.
    Cpu,
    /// Memory of its cgroup, which has used up its limit, while nobody may be killed there.
    Memory,
    /// The queue of a network device, which others fill.
    Device,
    /// A file's lock, for which it tries again and again.
    TriedLock,
    /// A file system that is frozen.
    Frozen,
    /// One of the workers of a server, all of which wait for an answer that one of them would have to give.
    OwnPool,
    /// A standby of its database server, which has not confirmed what it commits.
    Standby,
}

/// What somebody waits for, and how it is shared with the one who has most of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Short {
    /// Nothing more is known.
    #[default]
    Nothing,
    /// CPUs.
    Cpu(CpuShare),
    /// Memory of a cgroup.
    Memory(MemoryShare),
    /// The queue of a network device.
    Device(DeviceQueue),
    /// An answer, and what the one who owes it does meanwhile.
    Answer(Owed),
    /// Workers that wait for themselves.
    Pool(SeenPool),
    /// A standby that does not confirm.
    Standby(SeenStandby),
}

/// What a standby does that has not confirmed commits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenStandby {
    /// The process that replays the primary's log there; its id is 0 where the standby is on another machine.
    pub replay: SeenClient,
    /// Whether that waits for sessions of the standby, by its own title.
    pub waits: bool,
    /// For how many sessions it may wait.
    pub sessions: u32,
}

/// Workers of a server all of which wait for one of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenPool {
    /// How many they are.
    pub workers: u32,
    /// Requests in their queue of those that they wait for.
    pub queued: u32,
    /// Whom they ask. Hostile text.
    pub through: String,
    /// Where they ask.
    pub at: String,
}

/// What is known of an answer that is owed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Owed {
    /// Whether the request was not even read: it stands in the server's socket, or nobody has accepted the connection.
    pub unread: bool,
    /// Whether the waiter began only to ask this, as a command does, so that it does not wait for whatever comes.
    pub came: bool,
    /// What the one who owes it used of one CPU meanwhile, percent; `None` where that is not known.
    pub cpu_percent: Option<u32>,
    /// Whether a thread of it is blocked (D).
    pub blocked: bool,
    /// Kernel functions that its threads sleep in, each with how many do; most first.
    pub sleeps: Vec<(String, u32)>,
    /// Whether it is inferred that this is what the waiter waits for: it owes an answer itself, and this connection is the last one that it used
    /// since it was asked.
    pub inferred: bool,
    /// On which of its other connections the one who owes it has been silent for as long.
    pub silence: Option<Silence>,
    /// What the one who owes it says of that in its own logs.
    pub says: Vec<OwnLog>,
    /// The file system that it writes to, if that is short of room, and who has filled it.
    pub filled: Option<FilledVolume>,
    /// Which client it reads from meanwhile, that says nothing.
    pub occupied: Option<Box<Occupied>>,
    /// If it waits for a lock that it shares with other processes: who of the same service was killed.
    pub killed: Option<Box<Killed>>,
}

/// A server that has said nothing on its connections for as long as somebody waits for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Silence {
    /// Connections on which nothing was sent or received since about then.
    pub connections: u32,
    /// All that clients of this machine have made to it.
    pub of: u32,
    /// Whose these are, each program with how many; most first. Hostile text.
    pub programs: Vec<(String, u32)>,
    /// Segments with data that went over those before, in both directions.
    pub segments: u64,
    /// For how long it has lived.
    pub lived: Ns,
}

/// A file system that is short of room.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FilledVolume {
    /// Where it is mounted. Hostile text.
    pub mount: String,
    /// Its size, and what programs can still use, bytes.
    pub size: u64,
    /// See there.
    pub left: u64,
    /// Who has the largest file open that is written there, if that makes out much of what is used.
    pub by: Option<SeenClient>,
    /// That file. Hostile text.
    pub file: String,
    /// Its size, bytes.
    pub bytes: u64,
}

/// A file system that is frozen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FrozenVolume {
    /// Where it is mounted. Hostile text.
    pub mount: String,
    /// Processes that wait to write there.
    pub waiters: Vec<u32>,
    /// Processes that serve file systems (FUSE) and are connected with one of these through others.
    pub served_behind: Vec<u32>,
    /// Who uses it, who may have frozen it first.
    pub users: Vec<VolumeUser>,
}

/// A process that uses a frozen file system, and does not wait for it or may have frozen it all the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeUser {
    /// The process.
    pub process: SeenClient,
    /// Its child that uses it, too.
    pub runs: Option<SeenClient>,
    /// Whether it was started with the mount point or the device as an argument.
    pub named: bool,
    /// Whether it waits to write there itself: one that has frozen it may do so, too.
    pub waits: bool,
    /// For how long it has lived.
    pub lived: Ns,
}

/// How unevenly CPUs are shared between one who waits for them and the program that has them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuShare {
    /// For how much of the time the waiter ran, per mille.
    pub ran_permille: u32,
    /// What the holder's program used of one CPU on these, percent.
    pub taken_percent: u32,
    /// By how many processes.
    pub processes: u32,
    /// The CPUs that the waiter may use, as the kernel lists them; empty where it may use all.
    pub cpus: String,
    /// Why the kernel prefers the other one.
    pub by: Precedence,
}

/// Why the kernel gives one thread a CPU before another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precedence {
    /// It is not known.
    #[default]
    Unknown,
    /// The other one has a real-time policy.
    RealTime,
    /// The waiter has the policy for what runs only where nobody else wants to.
    Idle,
    /// Weights of their cgroups.
    Weight {
        /// The waiter's cgroup and weight.
        own: (String, u64),
        /// The other one's.
        other: (String, u64),
    },
    /// Nice values.
    Nice {
        /// The waiter's.
        own: i32,
        /// The other one's.
        other: i32,
    },
}

/// How the memory of a cgroup is shared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryShare {
    /// Its limit, bytes.
    pub limit: u64,
    /// What the holder's processes have in memory, bytes.
    pub taken: u64,
}

/// What stands in the queue of a network device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceQueue {
    /// The kind of queue, such as `tbf`. Hostile text.
    pub kind: String,
    /// Bytes that stand in it.
    pub backlog: u64,
    /// Bytes that leave it in a second.
    pub rate: u64,
    /// The limit of a queue that has one, bytes per second.
    pub limit: Option<u64>,
    /// Bytes of the holder's that stand in it, at most.
    pub taken: u64,
}
