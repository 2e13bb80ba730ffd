//! Who waits for whom on a machine, as the kernel's own tables have it.

use super::Quote;
use crate::Ns;
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
}
