//! What is made anew: who makes threads, processes and connections, and what connections carried until they were closed.

use crate::{Ns, ObjectId, ThreadId, UserStackId};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// What somebody makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Made {
    /// A thread of its own process.
    Thread,
    /// A process.
    Process,
    /// A TCP connection, by asking for it.
    Connection,
}

/// Where in its code a thread was as it made something. Not of everything that is made: of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeBy {
    /// Who made it.
    pub thread: ThreadId,
    /// What.
    pub what: Made,
    /// Of a connection: names it, for as long as it is open.
    pub connection: u64,
    /// Its user stack.
    pub stack: UserStackId,
}

/// A piece of the first record that a TCP connection carried in one direction, where that may be the beginning of a TLS
/// handshake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// When it was sent or received.
    pub at: Ns,
    /// Names the connection, for as long as it is open.
    pub connection: u64,
    /// Its socket, as waits on it name it.
    pub socket: Option<ObjectId>,
    /// Whether it is the server's.
    pub answer: bool,
    /// Bytes before this piece.
    pub offset: u32,
    /// Hostile.
    pub bytes: Vec<u8>,
}

/// The client of a connection that began as TLS does has said more, in the second turn or the third. Only of connections that
/// were asked for here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turned {
    /// When.
    pub at: Ns,
    /// Names the connection, for as long as it is open.
    pub connection: u64,
    /// How often a question followed an answer so far, the first question included.
    pub turns: u32,
    /// Bytes of the questions of the second turn so far.
    pub second_bytes: u32,
    /// When the last of the second turn's answer passed; 0: there was none.
    pub second_answered: Ns,
}

/// Who closed a connection first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Closer {
    /// This end.
    Here,
    /// The other.
    Peer,
}

/// A TCP connection was made under observation, or one that was is closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// When this was.
    pub at: Ns,
    /// Who asked for it; of one that was accepted, who used it first.
    pub thread: ThreadId,
    /// Names it, for as long as it is open.
    pub connection: u64,
    /// Whether it was accepted here.
    pub accepted: bool,
    /// Whom it was made to; of one that was accepted, its own end.
    pub end: SocketAddr,
    /// When it was asked for.
    pub began: Ns,
    /// When it was made.
    pub made: Ns,
    /// What became of it; `None`: it has just been made.
    pub closed: Option<Closed>,
}

/// What a connection carried until it was closed. Its client asks and its server answers, whatever the protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    /// How often a question followed an answer, the first question included.
    pub turns: u32,
    /// When the second of them began; 0: there was none.
    pub second_began: Ns,
    /// When the last of its answer passed; 0: there was none.
    pub second_answered: Ns,
    /// Bytes of the questions of the second turn.
    pub second_bytes: u32,
    /// When the third turn began; 0: there was none.
    pub third_began: Ns,
    /// Who closed it first; `None`: it broke.
    pub closer: Option<Closer>,
}
