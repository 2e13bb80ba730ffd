//! What the state of TCP connections says about the waits on them.
//!
//! In: [`TcpState`]s, one a wait. Out: sums that rules can judge: how much of the waiting was with small data held
//! back, with nothing acknowledged, with no room at the peer, with the own device's queue full.

use holdup_evidence::Ns;
use holdup_evidence::network::TcpState;
use serde::{Deserialize, Serialize};

use crate::attributed::ThreadName;

/// Repetitions on end without an answer from which nothing comes through: one or two are ordinary loss.
const SILENT: u8 = 3;

/// What the connections of some waits were like.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TcpSeen {
    /// Waits of which the connection's state is known, and their time.
    pub seen: u64,
    /// Their time.
    pub seen_ns: Ns,
    /// Of these: a small piece of data was held back until an earlier one would be acknowledged (`TCP_NODELAY` off).
    pub held_back: u64,
    /// Their time.
    pub held_back_ns: Ns,
    /// Of these: what was sent had been repeated several times on end, without an answer.
    pub unanswered: u64,
    /// Their time.
    pub unanswered_ns: Ns,
    /// The most repetitions on end.
    pub repeated: u64,
    /// Segments that were sent again while the waits lasted.
    pub retransmitted: u64,
    /// Time of waits in which something was sent again, and then the wait ended otherwise than unanswered.
    pub retransmitted_ns: Ns,
    /// Of these: the peer had no room for another segment.
    pub no_room: u64,
    /// Their time.
    pub no_room_ns: Ns,
    /// Of these: as much as may stood in the device's queue on this machine.
    pub throttled: u64,
    /// Their time.
    pub throttled_ns: Ns,
    /// The device that the latest went out by.
    pub device: Option<String>,
}

impl TcpSeen {
    /// Adds a wait.
    pub(crate) fn add(&mut self, tcp: &TcpState, waited: Ns) {
        let count = |is: bool, waits: &mut u64, ns: &mut Ns| {
            if is {
                *waits += 1;
                *ns = ns.saturating_add(waited);
            }
        };
        let small = tcp.began_unsent > 0 && tcp.began_unsent < tcp.segment && tcp.began_unacked > 0;
        let room = tcp.began_window.saturating_sub(tcp.began_unacked);
        let full = tcp.began_unsent > 0 && room < tcp.segment;
        let unanswered = tcp.unanswered >= SILENT && tcp.unacked > 0;
        count(true, &mut self.seen, &mut self.seen_ns);
        let held_back = small && !tcp.no_delay && !full && !tcp.throttled;
        count(held_back, &mut self.held_back, &mut self.held_back_ns);
        count(unanswered, &mut self.unanswered, &mut self.unanswered_ns);
        count(full && !unanswered, &mut self.no_room, &mut self.no_room_ns);
        let throttled = tcp.throttled && tcp.began_unsent > 0 && !full;
        count(throttled, &mut self.throttled, &mut self.throttled_ns);
        let mut lossy = 0;
        count(
            tcp.retransmitted > 0 && !unanswered,
            &mut lossy,
            &mut self.retransmitted_ns,
        );
        self.repeated = self.repeated.max(u64::from(tcp.unanswered));
        self.retransmitted += u64::from(tcp.retransmitted);
        if tcp.device.is_some() {
            self.device.clone_from(&tcp.device);
        }
    }

    /// Adds what other waits' connections were like.
    pub(crate) fn absorb(&mut self, other: &TcpSeen) {
        self.seen += other.seen;
        self.seen_ns = self.seen_ns.saturating_add(other.seen_ns);
        self.held_back += other.held_back;
        self.held_back_ns = self.held_back_ns.saturating_add(other.held_back_ns);
        self.unanswered += other.unanswered;
        self.unanswered_ns = self.unanswered_ns.saturating_add(other.unanswered_ns);
        self.repeated = self.repeated.max(other.repeated);
        self.retransmitted += other.retransmitted;
        self.retransmitted_ns = self.retransmitted_ns.saturating_add(other.retransmitted_ns);
        self.no_room += other.no_room;
        self.no_room_ns = self.no_room_ns.saturating_add(other.no_room_ns);
        self.throttled += other.throttled;
        self.throttled_ns = self.throttled_ns.saturating_add(other.throttled_ns);
        if other.device.is_some() {
            self.device.clone_from(&other.device);
        }
    }
}

/// Requests for TCP connections with one peer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Connections {
    /// The peer's address and port.
    pub peer: String,
    /// Who asked last.
    pub by: ThreadName,
    /// How many were made.
    pub made: u64,
    /// From request to success, all of them together.
    pub made_ns: Ns,
    /// How many were refused at once (a closed port, or a firewall that rejects).
    pub refused: u64,
    /// How many failed otherwise.
    pub failed: u64,
    /// How many the program gave up.
    pub given_up: u64,
    /// Sleep between a request that was refused and the next one, by the one that asks or in processes started for it.
    pub slept_ns: Ns,
    /// How many such sleeps.
    pub sleeps: u64,
    /// From the first refusal to the first success; 0 where none followed.
    pub refused_until: Ns,
}
