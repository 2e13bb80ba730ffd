//! What the network itself says: the state of a TCP connection that was waited on, what became of requests for
//! connections, and the names that were asked for.

use crate::{Ns, Seq, ThreadId};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The TCP connection that a thread waited on, as the wait began and as it ended. Comes before its [`crate::Wait`], of
/// waits of a millisecond and more. Counts are bytes where they say nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpState {
    /// Who waited.
    pub thread: ThreadId,
    /// Which wait.
    pub seq: Seq,
    /// As it began: written by the program and not sent.
    pub began_unsent: u32,
    /// As it began: sent and not acknowledged.
    pub began_unacked: u32,
    /// As it began: what the peer had room for, counted from what it had acknowledged.
    pub began_window: u32,
    /// The largest segment.
    pub segment: u32,
    /// As it ended: sent and not acknowledged.
    pub unacked: u32,
    /// As it ended: what the peer has room for.
    pub window: u32,
    /// Segments that were sent again while it lasted.
    pub retransmitted: u32,
    /// Acknowledged while it lasted.
    pub acked: u32,
    /// Time of a packet there and back, smoothed, in microseconds.
    pub round_trip_us: u32,
    /// How long it lasted in ticks of the kernel's clock.
    pub ticks: u32,
    /// Of these: the receiver's window was all that kept the kernel from sending, by its own count.
    pub window_ticks: u32,
    /// As it ended: how often on end the kernel has repeated what is not acknowledged.
    pub unanswered: u8,
    /// As it ended: how often on end the kernel has asked whether the peer has room again.
    pub probes: u8,
    /// Connection state as in `tcp(7)`.
    pub state: u8,
    /// Whether the program has switched off the collecting of small segments (`TCP_NODELAY`).
    pub no_delay: bool,
    /// As it began: whether as much of it stood in the device's queue on this machine as may stand there.
    pub throttled: bool,
    /// The device that it goes out by, where that is known.
    pub device: Option<String>,
}

/// What became of a request for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The connection was made.
    Made,
    /// The kernel gave up or was reported no, with this `errno`.
    Failed(u16),
    /// The program closed the socket before anything came back.
    GivenUp,
}

/// A request for a TCP connection is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// Who asked for it.
    pub thread: ThreadId,
    /// When it was asked for.
    pub began: Ns,
    /// When it was made, or failed.
    pub at: Ns,
    /// Of whom.
    pub peer: SocketAddr,
    /// How it ended.
    pub outcome: Outcome,
}

/// A question was sent to a name server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameAsked {
    /// When.
    pub at: Ns,
    /// Inode number of the socket that asked.
    pub socket: u64,
    /// Who was asked.
    pub server: SocketAddr,
    /// The name, without the last dot; `None` where the message did not hold one. Printable characters only, but
    /// chosen by the observed program.
    pub name: Option<String>,
}
