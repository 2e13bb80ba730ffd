//! What is reported only of threads that ran already: what they were, whom they serve, who is at the other end.

use crate::{Call, Clock, Ns, ObjectId, SocketAddress, ThreadId, WaitMemory};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// A thread that lived before it was watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adopted {
    /// Name of its process's first thread. Hostile text.
    pub process: String,
    /// Process id of its process's parent.
    pub parent: u32,
}

/// Why a thread is watched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Role {
    /// It is what was asked about.
    #[default]
    Subject,
    /// What was asked about waits for its process. Its time is nobody's answer, only how waits for it come about.
    Neighbour,
}

/// Who has the other end of a pipe or socket, as the processes' open descriptors show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherEnd {
    /// Of what a thread of the run has this end.
    pub object: ObjectId,
    /// Processes, lowest id first.
    pub processes: Vec<u32>,
    /// What they have is the listener in whose queue the connection stands: any of them may accept it.
    #[serde(default)]
    pub listens: bool,
}

/// A request was read on an accepted connection, or its answer was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// When.
    pub at: Ns,
    /// Who read it, or writes.
    pub thread: ThreadId,
    /// That thread's clock then.
    pub clock: Clock,
    /// Names the connection for as long as the request is open.
    pub connection: u64,
    /// How many it stands for: at high rates a fair sample is reported.
    #[serde(default = "itself")]
    pub weight: u32,
    /// What became of it.
    pub step: RequestStep,
}

fn itself() -> u32 {
    1
}

/// What the subject asked of one server for the requests that it had to answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upstream {
    /// Where it is; `None` for all servers on Unix sockets.
    pub server: Option<SocketAddr>,
    /// The process that asked last.
    pub pid: u32,
    /// Questions.
    pub asked: u64,
    /// From each question to the last of its answer that has come, added up.
    pub ns: Ns,
    /// The most questions without an answer at one instant.
    pub most: u64,
    /// When the first was asked.
    pub since: Ns,
}

/// Requests that were counted and not reported.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UntoldRequests {
    /// How many were answered.
    pub answered: u64,
    /// How long the longest of these took.
    pub longest: Ns,
    /// Those without an answer when observation ended: who had read it, and when.
    pub open: Vec<(ThreadId, Ns)>,
}

/// What happened to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestStep {
    /// It was read.
    Read {
        /// What was read, the beginning of it; zeros where that is not known. Hostile.
        begins: Vec<u8>,
        /// The port that is listened on; 0 of a Unix socket, and where it is not known.
        #[serde(default)]
        port: u16,
    },
    /// More was read on its connection, after its reader had waited: the rest of it, or another before an answer.
    ReadOn,
    /// The first of its answer was written.
    Answered,
    /// Its connection was closed, and nothing had been answered: what was read there last was no request, or one that
    /// nobody wants answered any more.
    Dropped,
    /// The thread waits for new connections: if what it has read is ever answered, it is by another. `connection` is 0.
    Left,
}

/// A TCP connection of the subject on which the last word, before anybody looked, was its client's, and had been read, or its own
/// to somebody else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Earlier {
    /// Whose it is; who inherited it has it too.
    pub pid: u32,
    /// Names the connection as [`Request::connection`] does.
    pub connection: u64,
    /// The socket's.
    pub inode: u64,
    /// When it came in, or went out; up to a tick less.
    pub said_at: Ns,
    /// The kernel's tick.
    pub tick: Ns,
    /// Whether the last word was a client's.
    pub by_client: bool,
    /// How long after the last word of the other; `None`: it was the first word of all.
    pub after: Option<Ns>,
    /// How much was said there in all, both ways; `None`: not known.
    #[serde(default)]
    pub words: Option<Words>,
    /// Whether the other end has spoken within the same tick, so that it may have had the last word.
    #[serde(default)]
    pub unclear: bool,
}

/// Segments with data that a connection has carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Words {
    /// From the other end.
    pub received: u32,
    /// To the other end.
    pub sent: u32,
}

/// Messages from which a connection shows whether each of them is answered.
const SHOWS: u32 = 3;

/// So many segments an answer takes at most, on average, where each message is known to have one: an end that says much more
/// speaks for itself, as one that delivers events does.
const MOST_PER_ANSWER: u32 = 8;

impl Words {
    /// Whether each message of the other end is answered here, as the protocol would have it: but for the last of them there are as many
    /// answers as messages. Of statistics, logs and publications that need no answer there are many, and next to no words in return.
    #[must_use]
    pub fn answers_each(self) -> bool {
        let answered = self.received.saturating_sub(1);
        let most = self.received.saturating_mul(MOST_PER_ANSWER);
        answered >= SHOWS && (answered..=most).contains(&self.sent)
    }
}

/// More was said on such a connection since, or it is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaidSince {
    /// As [`Earlier::connection`].
    pub connection: u64,
    /// The socket's.
    pub inode: u64,
}

/// A wait that went on as observation had begun; it is reported again when it is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoesOn {
    /// Who waits.
    pub thread: ThreadId,
    /// Since when.
    pub start: Ns,
    /// In which call.
    pub call: Call,
    /// On which epoll set, and what was in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<(ObjectId, Box<WaitMemory>)>,
}

/// Processes that serve others, and where: they listen, or have connections that were accepted there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Serving {
    /// Process ids.
    pub processes: Vec<u32>,
    /// Ports (TCP) and paths (Unix sockets) that are listened on.
    pub addresses: Vec<SocketAddress>,
    /// Of the processes those whose children serve at the same sockets, and are not observed.
    #[serde(default)]
    pub masters: Vec<u32>,
    /// Of the processes with an event loop whose whole set was looked at, whether only clients, or the process itself, can stir it.
    /// A later look replaces an earlier one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<(u32, bool)>,
}
