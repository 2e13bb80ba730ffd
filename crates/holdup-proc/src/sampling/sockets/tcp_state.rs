//! The state of a TCP connection, as the kernel tells anybody about the sockets of his own network namespace.
//!
//! In: a connection's two ends and its inode. Out: [`Figures`] of one look; two of them, at either end of a wait, are what tracing
//! tells of it. A socket of another network namespace is another one with the same ends, or none: the inode decides.

use super::diag::{self, BY_FAMILY, Diag};
use super::inet_diag::{ATTRIBUTES, EXPIRES, INFO, INODE, MEMORY, STATE, TIMER, WRITE_QUEUE, request};
use super::route::Device;
use holdup_evidence::network::TcpState;
use holdup_evidence::{Ns, Seq, ThreadId};
use std::net::SocketAddr;

/// Between two looks at a connection while one wait goes on: at least this, in nanoseconds, and a part of how long it lasts.
const AGAIN: Ns = 20_000_000;
const ONE_PART_IN: Ns = 4;

/// A tick of what is reported, in microseconds: finer than any kernel's.
const TICK_US: u64 = 1_000;

/// One look at a connection. Bytes where nothing else is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Figures {
    /// When.
    pub at: Ns,
    /// Written by the program and not sent.
    unsent: u32,
    /// Sent and not acknowledged.
    unacked: u32,
    /// Room at the peer, from what it has acknowledged; `None` on kernels that do not say (before 5.4).
    window: Option<u32>,
    segment: u32,
    /// Segments that were sent again, so far.
    retransmitted: u32,
    /// Acknowledged so far.
    acked: u64,
    round_trip_us: u32,
    /// For so long the peer's room was all that kept the kernel from sending, microseconds so far.
    window_us: u64,
    /// Repetitions on end without an answer; questions for room.
    unanswered: u8,
    probes: u8,
    /// As in `tcp(7)`.
    state: u8,
    /// Whether congestion control lets another segment go.
    may_send: bool,
    /// What stands in the queues of this machine's devices, and what the kernel sends in a millisecond.
    in_devices: u32,
    pace: u64,
    /// When the kernel will repeat what is not acknowledged, or ask for room, unless an answer comes.
    repeats: Option<Ns>,
}

impl Figures {
    /// Whether the kernel holds back what it could send for this machine's own device: as much stands there as it lets stand, a millisecond's worth
    /// and two segments at least (`tcp_small_queue_check`).
    pub(in crate::sampling) fn throttled(&self) -> bool {
        let least = self.segment.saturating_mul(2);
        let limit = u64::from(least).max(self.pace);
        self.unsent > 0 && self.room() && u64::from(self.in_devices) > limit
    }

    /// As in `tcp(7)`.
    pub(in crate::sampling) fn state(&self) -> u8 {
        self.state
    }

    fn room(&self) -> bool {
        let window = self.window.unwrap_or(0);
        window.saturating_sub(self.unacked) >= self.segment
    }

    /// Whether nothing but the collecting of small pieces can hold back what is not sent: there is room for it, congestion control lets it
    /// go, and no device is full. Who switched the collecting off has no such time.
    fn collects(&self) -> bool {
        self.may_send && self.room() && !self.throttled()
    }
}

/// A connection while a thread waits on it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Watched {
    first: Figures,
    last: Figures,
    /// The device that it goes out by.
    device: Option<Device>,
}

impl Watched {
    /// From the first look.
    #[must_use]
    pub fn new(figures: Figures, device: Option<Device>) -> Watched {
        Watched {
            first: figures,
            last: figures,
            device,
        }
    }

    /// With the first look of an earlier answer about the same wait.
    #[must_use]
    pub fn since(self, earlier: &Watched) -> Watched {
        Watched {
            first: earlier.first,
            ..self
        }
    }

    /// Whether it is time to look again.
    #[must_use]
    pub fn is_due(&self, now: Ns) -> bool {
        let lasted = now.saturating_sub(self.first.at);
        let ago = now.saturating_sub(self.last.at);
        let repeated = self.last.repeats.is_some_and(|at| now >= at);
        ago >= AGAIN && (ago >= lasted / ONE_PART_IN || repeated)
    }

    /// In the words of tracing.
    #[must_use]
    pub fn state_of(&self, thread: ThreadId, seq: Seq) -> TcpState {
        let Watched { first, last, .. } = self;
        let short = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        TcpState {
            thread,
            seq,
            began_unsent: first.unsent,
            began_unacked: first.unacked,
            began_window: first.window.unwrap_or(0),
            segment: last.segment,
            unacked: last.unacked,
            window: last.window.unwrap_or(0),
            retransmitted: last.retransmitted.saturating_sub(first.retransmitted),
            acked: short(last.acked.saturating_sub(first.acked)),
            round_trip_us: last.round_trip_us,
            ticks: short(last.at.saturating_sub(first.at) / 1_000 / TICK_US),
            window_ticks: short(last.window_us.saturating_sub(first.window_us) / TICK_US),
            unanswered: last.unanswered,
            probes: last.probes,
            state: last.state,
            no_delay: !first.collects(),
            // What the queue itself paces stands there because it is not yet time to send it.
            throttled: first.throttled() && self.device.as_ref().is_some_and(|device| !device.paces),
            device: self.device.as_ref().map(|device| device.name.clone()),
        }
    }
}

/// What the kernel says of a connection. `None` where it knows none of these ends and this inode.
pub(in crate::sampling) fn of(
    diag: &Diag,
    local: SocketAddr,
    peer: SocketAddr,
    inode: u64,
    at: Ns,
) -> Option<Figures> {
    let answer = diag.ask(BY_FAMILY, &request(local, peer, &[INFO, MEMORY]))?;
    figures(&answer, inode, at)
}

fn figures(answer: &[u8], inode: u64, at: Ns) -> Option<Figures> {
    if diag::kind(answer)? != BY_FAMILY || u64::from(diag::word(answer, INODE)?) != inode {
        return None;
    }
    let info = diag::attribute(answer, ATTRIBUTES, INFO)?;
    // Fields of `struct tcp_info`; kernels of before have fewer.
    let byte = |at: usize| info.get(at).copied().unwrap_or(0);
    let word = |at: usize| diag::word(info, at);
    let long = |at: usize| Some(u64::from_ne_bytes(info.get(at..at + 8)?.try_into().ok()?));
    let unsent = word(144)?;
    // What is sent again, and what asks for room (`icsk_pending`); of other timers nothing is to be learned.
    let timer = answer.get(TIMER).filter(|timer| matches!(timer, 1 | 4));
    let milliseconds = timer.and_then(|_| diag::word(answer, EXPIRES));
    // `sk_wmem_alloc`, the third of `SK_MEMINFO_…`.
    let memory = diag::attribute(answer, ATTRIBUTES, MEMORY).unwrap_or_default();
    Some(Figures {
        at,
        unsent,
        unacked: diag::word(answer, WRITE_QUEUE)?.saturating_sub(unsent),
        window: word(228),
        segment: word(16)?,
        retransmitted: word(100)?,
        acked: long(120)?,
        round_trip_us: word(68)?,
        window_us: long(176).unwrap_or(0),
        unanswered: byte(2),
        probes: byte(3),
        state: *answer.get(STATE)?,
        may_send: word(24)? < word(80)?,
        in_devices: diag::word(memory, 8).unwrap_or(0),
        pace: long(104).unwrap_or(0) >> 10,
        repeats: milliseconds.map(|left| at + (Ns::from(left) + 1) * 1_000_000),
    })
}

#[cfg(test)]
mod tests {
    use super::{Figures, Watched, figures, of};
    use crate::sampling::sockets::diag::{Diag, HEADER};
    use crate::sampling::sockets::route::Device;
    use holdup_evidence::ThreadId;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    fn inode(socket: &impl AsRawFd) -> u64 {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
        let text = link.to_string_lossy().into_owned();
        text.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
    }

    #[test]
    fn a_connection_is_known_by_its_ends_and_its_inode() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
        let (_other, _) = server.accept().unwrap();
        let (local, peer) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
        let diag = Diag::open(libc::NETLINK_SOCK_DIAG).unwrap();
        client.write_all(b"question").unwrap();
        let own = inode(&client);
        let figures = of(&diag, local, peer, own, 5).unwrap();
        assert_eq!((figures.state, figures.unsent, figures.at), (1, 0, 5));
        assert!(figures.window.is_some_and(|window| window > 0) && figures.segment > 0);
        assert_eq!(of(&diag, local, peer, own + 1, 5), None, "somebody else's");
        assert_eq!(of(&diag, peer, "127.0.0.1:1".parse().unwrap(), own, 5), None);
    }

    #[test]
    fn a_peer_that_does_not_read_fills_its_window() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
        let (_other, _) = server.accept().unwrap();
        client.set_nonblocking(true).unwrap();
        while client.write(&[0; 1 << 16]).is_ok() {}
        let (local, peer) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
        let diag = Diag::open(libc::NETLINK_SOCK_DIAG).unwrap();
        let figures = of(&diag, local, peer, inode(&client), 0).unwrap();
        assert!(figures.unsent > 0 && !figures.room(), "{figures:?}");
    }

    fn idle() -> Figures {
        Figures {
            at: 0,
            unsent: 100,
            unacked: 100,
            window: Some(65_536),
            segment: 1448,
            retransmitted: 2,
            acked: 1_000,
            round_trip_us: 50,
            window_us: 0,
            unanswered: 0,
            probes: 0,
            state: 1,
            may_send: true,
            in_devices: 0,
            pace: 4096,
            repeats: None,
        }
    }

    #[test]
    fn two_looks_are_a_wait() {
        let later = Figures {
            at: 2_000_000_000,
            window_us: 1_500_000,
            acked: 3_000,
            retransmitted: 5,
            unanswered: 3,
            ..idle()
        };
        let watched = Watched::new(later, None).since(&Watched::new(idle(), None));
        let found = watched.state_of(ThreadId(3), 7);
        assert_eq!(
            (found.ticks, found.window_ticks, found.acked),
            (2_000, 1_500, 2_000)
        );
        assert_eq!((found.retransmitted, found.unanswered), (3, 3));
        assert!(!found.no_delay && !found.throttled);
        assert!(!watched.is_due(2_400_000_000) && watched.is_due(2_700_000_000));
        let soon = Figures {
            repeats: Some(2_100_000_000),
            ..later
        };
        let watched = Watched::new(soon, None).since(&watched);
        assert!(!watched.is_due(2_050_000_000) && watched.is_due(2_100_000_000));
    }

    #[test]
    fn what_holds_data_back_is_told_apart() {
        let describe = |figures: Figures| {
            let device = Device {
                name: "lo".to_owned(),
                paces: false,
            };
            let describe = Watched::new(figures, Some(device)).state_of(ThreadId(0), 1);
            (describe.throttled, !describe.no_delay)
        };
        assert_eq!(describe(idle()), (false, true), "collected");
        let in_devices = 200_000;
        assert_eq!(describe(Figures { in_devices, ..idle() }), (true, false));
        let window = Some(1_000);
        assert_eq!(describe(Figures { window, ..idle() }), (false, false), "no room");
        assert_eq!(
            describe(Figures {
                may_send: false,
                ..idle()
            }),
            (false, false),
            "congestion"
        );
        assert_eq!(
            describe(Figures {
                window: None,
                ..idle()
            }),
            (false, false),
            "not told"
        );
    }

    #[test]
    fn an_answer_that_is_cut_off_says_nothing() {
        assert_eq!(figures(&[], 0, 0), None);
        assert_eq!(figures(&[0; HEADER + 80], 0, 0), None);
    }
}
