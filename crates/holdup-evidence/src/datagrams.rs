//! Datagrams that were sent over UDP, by peer, and what came back.

use crate::Ns;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// All that the subject sent over UDP while it was counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Datagrams {
    /// To whom, those first to whom most was sent that nothing came back to. No more than a bound.
    pub peers: Vec<DatagramPeer>,
    /// Of all peers: messages that were sent and that are, if they are of DNS, answers that refuse or say that the server failed.
    pub refused: u64,
}

/// One peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DatagramPeer {
    /// Where it is.
    pub peer: SocketAddr,
    /// The process that sent last.
    pub pid: u32,
    /// Datagrams that were sent there.
    pub sent: u64,
    /// Datagrams that came from there to sockets of the subject.
    pub received: u64,
    /// Those that were sent since something came from there last.
    pub unanswered: u64,
    /// Of what was received: what is, if it is of DNS, an answer that refuses or says that the server failed.
    pub failed: u64,
    /// When the first of `unanswered` was sent.
    pub silent_since: Ns,
    /// When the first of all was sent.
    pub since: Ns,
    /// Bytes of the one that was sent last,
    pub size: u64,
    /// and how it begins. Hostile bytes.
    pub begins: Vec<u8>,
}

impl Default for DatagramPeer {
    fn default() -> DatagramPeer {
        DatagramPeer {
            peer: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
            pid: 0,
            sent: 0,
            received: 0,
            unanswered: 0,
            failed: 0,
            silent_since: 0,
            since: 0,
            size: 0,
            begins: Vec::new(),
        }
    }
}
