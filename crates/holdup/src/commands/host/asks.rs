//! Connections on which something was asked and not answered.
//!
//! In: connections and listeners. Out: the two ends of each that waits for an answer, for at least as long as counts.

use super::queued;
use holdup_evidence::Ns;
use holdup_proc::conversations::Connection;
use holdup_proc::listen_queues::{self, ListenQueue};
use std::collections::HashMap;

/// The shortest wait for an answer that is reported: what is shorter is on its way. Who waits for a process that is slowed down waits for less
/// than a second, again and again.
const MIN_ASKED_NS: Ns = 50_000_000;

/// The same of a server elsewhere: what goes over a network takes longer.
const MIN_ELSEWHERE_NS: Ns = 3_000_000_000;

/// Nanoseconds in a millisecond.
const MS: Ns = 1_000_000;

/// Somebody who waits for an answer.
#[derive(Debug)]
pub(super) struct Asks {
    /// Inodes of the client's socket and of the server's.
    pub(super) client: u64,
    /// See there; 0 of one that is on no process of this machine.
    pub(super) server: u64,
    /// Nobody has accepted it yet: the server's is the inode of the listener.
    pub(super) queued: bool,
    /// Nobody has read it yet.
    pub(super) unread: bool,
    /// Where it was asked.
    pub(super) at: String,
    /// For how long.
    pub(super) ns: Ns,
}

/// Who has asked and was not answered, for at least as long as counts.
pub(super) fn of(connections: &[Connection], queues: &[ListenQueue]) -> Vec<Asks> {
    let by_ends: HashMap<_, &Connection> = (connections.iter())
        .map(|one| ((one.local, one.peer), one))
        .collect();
    let listener = |address| listen_queues::listener(queues, address).map(|queue| queue.inode);
    let mut asks: Vec<Asks> = Vec::new();
    let clients = connections.iter().filter(|one| one.inode != 0);
    for client in clients.filter(|one| queued::is_client(queues, one)) {
        let Some(ns) = client
            .asks_ms
            .map(|ms| Ns::from(ms) * MS)
            .filter(|ns| *ns >= MIN_ASKED_NS)
        else {
            continue;
        };
        let Some(server) = by_ends.get(&(client.peer, client.local)) else {
            let elsewhere = !client.peer.ip().is_loopback() && client.speaks_in_turn;
            // What is sent again and again is sent last each time: the last that came tells for how long nothing arrives, and on a connection
            // that was at rest before, the pauses between.
            let again = client.resent_ms.filter(|_| client.unsent > 0);
            let lost = client.received_ms.zip(again).map(|(ms, again)| ms.min(again));
            let ns = lost.map_or(ns, |ms| ns.max(Ns::from(ms) * MS));
            asks.extend((elsewhere && ns >= MIN_ELSEWHERE_NS).then(|| Asks {
                client: client.inode,
                server: 0,
                queued: false,
                unread: false,
                at: client.peer.to_string(),
                ns,
            }));
            continue;
        };
        let queued = server.inode == 0;
        let inode = match queued {
            true => listener(server.local),
            false => Some(server.inode),
        };
        asks.extend(inode.map(|inode| Asks {
            client: client.inode,
            server: inode,
            queued,
            unread: queued || server.unread > 0,
            at: server.local.to_string(),
            ns,
        }));
    }
    asks
}

#[cfg(test)]
mod tests {
    use super::of;
    use holdup_proc::conversations::Connection;
    use std::net::SocketAddr;

    const S: u64 = 1_000_000_000;

    /// For how long a client waits for a server elsewhere, of which it heard an hour ago, and that it sent something so many seconds ago; `again`:
    /// seconds between the last times that it did.
    fn waits(sent: u32, again: Option<u32>) -> Option<u64> {
        let client = Connection {
            unsent: 300,
            asks_ms: Some(sent * 1000),
            received_ms: Some(3_600_000),
            resent_ms: again.map(|seconds| seconds * 1000),
            speaks_in_turn: true,
            ..Connection::at_rest(
                SocketAddr::from(([10, 0, 0, 1], 40_001)),
                SocketAddr::from(([10, 0, 0, 9], 443)),
                7,
            )
        };
        of(&[client], &[]).first().map(|ask| ask.ns)
    }

    #[test]
    fn a_new_question_on_an_old_connection_is_new() {
        assert_eq!(waits(0, None), None, "on its way");
        assert_eq!(waits(5, None), Some(5 * S), "arrived or not, it was sent then");
        assert_eq!(waits(0, Some(1)), None, "sent again after a moment");
        assert_eq!(waits(4, Some(25)), Some(25 * S));
    }
}
