//! Sockets at an instant, as `ss` and `netstat` list them: counts of many, and those that say something alone.

use super::Quote;
use crate::Ns;
use serde::{Deserialize, Serialize};

/// One list of sockets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SocketTable {
    /// TCP sockets in it.
    pub total: u64,
    /// How many of them listen; `None` where the list is one without listeners.
    pub listening: Option<u64>,
    /// Listeners with clients that wait to be accepted, longest queue first.
    pub queues: Vec<SeenQueue>,
    /// How many there are of a state: all, and most first by what they have in common.
    pub counts: Vec<SocketCount>,
    /// Connections that are in trouble by their own figures, worst first.
    pub connections: Vec<SeenConnection>,
    /// Whether the list has the figures of `ss -i`: without them retransmissions do not show.
    pub has_figures: bool,
    /// Where the list begins.
    pub quote: Quote,
}

/// A listener with a queue.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenQueue {
    /// Where it listens: address and port, or the path of a Unix socket.
    pub local: String,
    /// Whether it is a Unix socket.
    pub unix: bool,
    /// Clients that wait.
    pub waiting: u64,
    /// How many may; `None` where not known (`netstat`).
    pub limit: Option<u64>,
    /// Who listens, where known.
    pub process: Option<String>,
    /// Where it was read.
    pub quote: Quote,
}

/// Sockets of one state that have something in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SocketCount {
    /// Their state.
    pub state: TcpState,
    /// What they have in common.
    pub by: SocketKey,
    /// Its value: an address and port, a process; empty for all of the state.
    #[serde(default)]
    pub of: String,
    /// How many.
    pub count: u64,
    /// Where the first was read.
    #[serde(default)]
    pub quote: Quote,
}

/// What sockets can have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SocketKey {
    /// Nothing but the state.
    All,
    /// The own address and port.
    Local,
    /// The peer's address and port.
    Peer,
    /// The process.
    Process,
}

/// A connection with trouble.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenConnection {
    /// Its state, where the list has it.
    pub state: Option<TcpState>,
    /// Own address and port.
    pub local: String,
    /// The peer's.
    pub peer: String,
    /// Whose it is, where known.
    pub process: Option<String>,
    /// Bytes that arrived and that the process has not read.
    pub unread: u64,
    /// Bytes that the peer has not confirmed.
    pub unsent: u64,
    /// Times that what is under way was sent again without an answer.
    pub unanswered: u64,
    /// Segments that were sent again since it was made.
    pub retransmitted: u64,
    /// Segments that were sent since it was made, where known.
    pub segments: Option<u64>,
    /// Time for which it could not send because the peer's window was full.
    pub window_full: Option<Ns>,
    /// Since when nothing came from the peer.
    pub silent: Option<Ns>,
    /// Whether the peer's window is closed now: a probe timer runs (`persist`).
    pub probes: bool,
    /// Where it was read.
    pub quote: Quote,
}

/// States of a TCP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // the kernel's own names
pub enum TcpState {
    Established,
    SynSent,
    SynReceived,
    FinWait1,
    FinWait2,
    TimeWait,
    CloseWait,
    LastAck,
    Listen,
    Closing,
    Closed,
}
