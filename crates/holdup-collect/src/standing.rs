//! Connections of processes on which something stands, at an instant.
//!
//! In: processes, and what must stand: what a server has sent and nobody took, or what came and was not read. Out: those connections, by
//! inode. Whether it still stands later is for who compares two of these.

use super::moment::Moment;
use holdup_proc::sockets::Tcp;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::SocketAddr;

/// Processes that are looked at: of more, a recorder's, each look would take long.
pub(super) const PROCESSES_MAX: usize = 64;

/// Whose connections: each process's own listeners tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Those that its listeners have accepted.
    Accepted,
    /// Those that it has made.
    Made,
}

/// A connection on which something stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Standing {
    pub(super) pid: u32,
    /// What stands there, bytes.
    pub(super) bytes: u32,
    pub(super) ends: (SocketAddr, SocketAddr),
    /// What the other end has and did not read, where that is on this machine, and its inode.
    pub(super) other: Option<(u32, u64)>,
    /// Whether the other end has said that it takes nothing more.
    pub(super) probes: bool,
}

/// The connections of these processes on which `bytes` says that something stands.
pub(super) fn connections(
    pids: &BTreeSet<u32>,
    side: Side,
    bytes: impl Fn(&Tcp) -> u32,
    moment: &mut Moment,
) -> BTreeMap<u64, Standing> {
    let mut found = BTreeMap::new();
    if pids.len() > PROCESSES_MAX {
        return found;
    }
    for pid in pids {
        let Some(ends) = moment.ends(*pid) else { continue };
        let sockets = moment.sockets(*pid);
        let own = |inode: u64| inode != 0 && ends.sockets.contains(&inode);
        let listeners = sockets.tcp.iter().filter(|one| one.listens && own(one.inode));
        let ports: HashSet<u16> = listeners.map(|one| one.local.port()).collect();
        let stands = |one: &&Tcp| {
            let accepted = ports.contains(&one.local.port());
            !one.listens && !one.knocks && own(one.inode) && accepted == (side == Side::Accepted)
        };
        for one in sockets.tcp.iter().filter(stands).filter(|one| bytes(one) > 0) {
            let mut others = sockets.tcp.iter();
            let other = others.find(|other| (other.local, other.peer) == (one.peer, one.local));
            found.entry(one.inode).or_insert(Standing {
                pid: *pid,
                bytes: bytes(one),
                ends: (one.local, one.peer),
                other: other.map(|other| (other.unread, other.inode)),
                probes: one.probes,
            });
        }
    }
    found
}

/// Those on which as much stood before, and of which their other ends read nothing: what is unread there is the same, too, or they have said that
/// they take nothing more. Behind a network that drops packets neither is so.
pub(super) fn unmoved(now: BTreeMap<u64, Standing>, before: &BTreeMap<u64, Standing>) -> Vec<Standing> {
    let stands = |(inode, now): (u64, Standing)| {
        let was = before.get(&inode).filter(|was| was.ends == now.ends)?;
        let unread = match (was.other, now.other) {
            // Who has read it all is waited for by nobody: it is on its way.
            (Some((before, _)), Some((unread, _))) => unread > 0 && unread == before,
            _ => now.probes,
        };
        (was.bytes == now.bytes && unread).then_some(now)
    };
    now.into_iter().filter_map(stands).collect()
}
