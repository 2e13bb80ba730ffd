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

/// How much slower a receiver takes data than its window would let it on this way, before it counts as one that does
/// not read: a window that is merely small for a long way is used up once a round trip.
const SLOWER: u128 = 4;

/// Whether the receiver's window kept the kernel from sending for most of the wait, and the receiver took far less
/// than one window a round trip.
fn does_not_read(tcp: &TcpState, waited: Ns) -> bool {
    let limited = tcp.ticks > 0 && tcp.window_ticks > tcp.ticks / 2;
    let window = u128::from(tcp.began_window.max(tcp.segment));
    let took = u128::from(tcp.acked) * u128::from(tcp.round_trip_us) * 1_000;
    limited && took * SLOWER < window * u128::from(waited)
}

impl TcpSeen {
    /// Adds a wait.
    pub fn add(&mut self, tcp: &TcpState, waited: Ns) {
        let count = |is: bool, waits: &mut u64, ns: &mut Ns| {
            if is {
                *waits += 1;
                *ns = ns.saturating_add(waited);
            }
        };
        // Nagle's condition: what is held back is less than a segment, and so is what it waits for.
        let piece = |bytes: u32| bytes > 0 && bytes < tcp.segment;
        let small = piece(tcp.began_unsent) && piece(tcp.began_unacked) && tcp.retransmitted == 0;
        let full = tcp.began_unsent > 0 && does_not_read(tcp, waited);
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

    /// The part of it that `ns` of `of` stands for, where some waits are distinguished by who asked.
    #[must_use]
    pub fn part(&self, ns: Ns, of: Ns) -> TcpSeen {
        let part = |whole: u64| match of {
            0 => 0,
            // A share of a 64-bit number fits into one.
            _ => u64::try_from(u128::from(whole) * u128::from(ns.min(of)) / u128::from(of)).unwrap_or(whole),
        };
        TcpSeen {
            seen: part(self.seen),
            seen_ns: part(self.seen_ns),
            held_back: part(self.held_back),
            held_back_ns: part(self.held_back_ns),
            unanswered: part(self.unanswered),
            unanswered_ns: part(self.unanswered_ns),
            repeated: self.repeated,
            retransmitted: part(self.retransmitted),
            retransmitted_ns: part(self.retransmitted_ns),
            no_room: part(self.no_room),
            no_room_ns: part(self.no_room_ns),
            throttled: part(self.throttled),
            throttled_ns: part(self.throttled_ns),
            device: self.device.clone(),
        }
    }

    /// Adds what other waits' connections were like.
    pub fn absorb(&mut self, other: &TcpSeen) {
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
    /// How many failed because no local port was left for them (`EADDRNOTAVAIL`).
    pub no_port: u64,
    /// How many failed otherwise.
    pub failed: u64,
    /// How many the program gave up.
    pub given_up: u64,
    /// Sleep between a request that was refused and the next one, by the one that asks or in processes started for it.
    pub slept_ns: Ns,
    /// How many such sleeps.
    pub sleeps: u64,
    /// Sleep between a request for which no local port was left and the next one, likewise.
    pub slept_without_port_ns: Ns,
    /// From the first refusal to the first success; 0 where none followed.
    pub refused_until: Ns,
}

#[cfg(test)]
mod tests {
    use super::TcpSeen;
    use holdup_evidence::ThreadId;
    use holdup_evidence::network::TcpState;

    /// A connection with nothing under way and room for everything.
    fn idle() -> TcpState {
        TcpState {
            thread: ThreadId(0),
            seq: 1,
            began_unsent: 0,
            began_unacked: 0,
            began_window: 65_536,
            segment: 1448,
            unacked: 0,
            window: 65_536,
            retransmitted: 0,
            acked: 0,
            round_trip_us: 0,
            ticks: 0,
            window_ticks: 0,
            unanswered: 0,
            probes: 0,
            state: 1,
            no_delay: false,
            throttled: false,
            device: None,
        }
    }

    fn seen(tcp: &TcpState) -> TcpSeen {
        let mut seen = TcpSeen::default();
        seen.add(tcp, 40);
        seen
    }

    /// Times that were held back, unanswered, without room, throttled.
    fn times(tcp: &TcpState) -> [u64; 4] {
        let seen = seen(tcp);
        [
            seen.held_back_ns,
            seen.unanswered_ns,
            seen.no_room_ns,
            seen.throttled_ns,
        ]
    }

    #[test]
    fn small_data_behind_small_data_is_held_back() {
        let held = TcpState {
            began_unsent: 100,
            began_unacked: 100,
            ..idle()
        };
        assert_eq!(times(&held), [40, 0, 0, 0]);
        assert_eq!(
            times(&TcpState {
                no_delay: true,
                ..held.clone()
            }),
            [0; 4]
        );
        assert_eq!(
            times(&TcpState {
                began_unacked: 0,
                ..held.clone()
            }),
            [0; 4]
        );
        assert_eq!(
            times(&TcpState {
                began_unacked: 14_480,
                ..held.clone()
            }),
            [0; 4],
            "a full flight"
        );
        assert_eq!(
            times(&TcpState {
                began_unsent: 1448,
                ..held.clone()
            }),
            [0; 4],
            "a whole segment"
        );
        assert_eq!(
            times(&TcpState {
                retransmitted: 1,
                ..held
            }),
            [0; 4],
            "a loss"
        );
    }

    #[test]
    fn a_receiver_that_does_not_read_is_told_from_a_long_way() {
        let seen = |tcp: &TcpState| {
            let mut seen = TcpSeen::default();
            seen.add(tcp, 1_000_000_000);
            seen.no_room
        };
        let full = TcpState {
            began_unsent: 100_000,
            began_unacked: 65_000,
            acked: 65_000,
            round_trip_us: 200,
            ticks: 250,
            window_ticks: 250,
            ..idle()
        };
        assert_eq!(seen(&full), 1);
        // One window each 100 ms is all that this way allows.
        let far = TcpState {
            acked: 10 * 65_536,
            round_trip_us: 100_000,
            ..full.clone()
        };
        assert_eq!(seen(&far), 0);
        let network = TcpState {
            window_ticks: 20,
            ..full.clone()
        };
        assert_eq!(seen(&network), 0, "the window was not what kept it");
        assert_eq!(
            seen(&TcpState {
                began_unsent: 0,
                ..full
            }),
            0,
            "nothing to send"
        );
    }

    #[test]
    fn silence_is_three_repetitions_of_something() {
        let cut = TcpState {
            unacked: 9,
            unanswered: 3,
            retransmitted: 4,
            ..idle()
        };
        assert_eq!(times(&cut), [0, 40, 0, 0]);
        assert_eq!(seen(&cut).repeated, 3);
        assert_eq!(
            times(&TcpState {
                unanswered: 2,
                ..cut.clone()
            }),
            [0; 4]
        );
        assert_eq!(times(&TcpState { unacked: 0, ..cut }), [0; 4]);
    }

    #[test]
    fn the_own_device_is_told_from_the_receiver() {
        let queued = TcpState {
            began_unsent: 100_000,
            began_unacked: 5_000,
            throttled: true,
            ..idle()
        };
        assert_eq!(times(&queued), [0, 0, 0, 40]);
        let both = TcpState {
            ticks: 1,
            window_ticks: 1,
            ..queued
        };
        assert_eq!(times(&both), [0, 0, 40, 0]);
    }

    #[test]
    fn parts_add_up_to_no_more_than_the_whole() {
        let mut whole = TcpSeen::default();
        for _ in 0..7 {
            whole.add(
                &TcpState {
                    began_unsent: 100,
                    began_unacked: 100,
                    ..idle()
                },
                41,
            );
        }
        let mut sum = whole.part(100, 287);
        sum.absorb(&whole.part(187, 287));
        assert!(sum.held_back <= whole.held_back && sum.seen_ns <= whole.seen_ns);
        assert_eq!(whole.part(287, 287), whole);
        assert_eq!(whole.part(5, 0), TcpSeen::default());
    }
}
