//! Who is at the other end of a connection of TCP, and who listens.
//!
//! In: the sockets of a network namespace. Out: maps by what is asked for. Their size is that of the table, whose length is limited where it is read.

use super::Tcp;
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;

/// TCP's sockets by what they are looked up by, made at the first question: many are asked of a table that may be long.
#[derive(Debug, Default)]
pub(crate) struct Found(OnceLock<Ends>);

impl Found {
    /// What is looked up of these, which are always the same ones.
    pub(super) fn of(&self, tcp: &[Tcp]) -> &Ends {
        self.0.get_or_init(|| Ends::of(tcp.iter()))
    }
}

/// Which tables are equal is told by the sockets, and not by whether somebody has asked.
impl PartialEq for Found {
    fn eq(&self, _: &Found) -> bool {
        true
    }
}

impl Eq for Found {}

/// A copy may get other sockets, and makes its own.
impl Clone for Found {
    fn clone(&self) -> Found {
        Found::default()
    }
}

/// An address and a port, in one form for both families.
type Place = (IpAddr, u16);

fn place(address: SocketAddr) -> Place {
    (address.ip().to_canonical(), address.port())
}

/// Where several sockets have the same place, the first one of the table is meant.
#[derive(Debug, Default)]
pub(super) struct Ends {
    /// Inodes by own place and the other end's.
    connections: HashMap<(Place, Place), u64>,
    /// Inodes of listeners that some process has, by their places.
    listeners: HashMap<Place, u64>,
    /// Those that listen at all addresses, by port.
    anywhere: HashMap<u16, u64>,
    /// Inodes of all that listen.
    pub(super) listening: HashSet<u64>,
}

impl Ends {
    fn of<'a>(tcp: impl Iterator<Item = &'a Tcp>) -> Ends {
        let mut ends = Ends::default();
        for socket in tcp {
            let own = place(socket.local);
            let between = (own, place(socket.peer));
            ends.connections.entry(between).or_insert(socket.inode);
            if !socket.listens {
                continue;
            }
            ends.listening.insert(socket.inode);
            if socket.inode == 0 {
                continue;
            }
            ends.listeners.entry(own).or_insert(socket.inode);
            if socket.local.ip().is_unspecified() {
                ends.anywhere.entry(own.1).or_insert(socket.inode);
            }
        }
        ends
    }

    /// The inode of the other end; of what nobody has accepted, that of the listener.
    pub(super) fn other(&self, local: SocketAddr, peer: SocketAddr) -> Option<u64> {
        let (local, peer) = (place(local), place(peer));
        match self.connections.get(&(peer, local)) {
            Some(0) => {
                let at = self.listeners.get(&peer);
                at.or_else(|| self.anywhere.get(&peer.1)).copied()
            }
            other => other.copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Ends;
    use crate::sockets::{Sockets, Tcp};

    fn socket(local: &str, peer: &str, listens: bool, inode: u64) -> Tcp {
        Tcp {
            local: local.parse().unwrap(),
            peer: peer.parse().unwrap(),
            listens,
            knocks: false,
            waiting: 0,
            unread: 0,
            unsent: 0,
            probes: false,
            inode,
        }
    }

    #[test]
    fn a_table_is_walked_once_however_many_ends_are_asked_for() {
        let mut all = Vec::new();
        for number in 0..2000_u64 {
            let client = format!("127.0.0.1:{}", 30_000 + number);
            all.push(socket(&client, "127.0.0.1:6000", false, 10_000 + number));
            all.push(socket("127.0.0.1:6000", &client, false, 20_000 + number));
        }
        let mut walked = 0;
        let ends = Ends::of(all.iter().inspect(|_| walked += 1));
        for one in &all {
            let other = ends.other(one.local, one.peer).unwrap();
            assert_eq!(other % 10_000, one.inode % 10_000);
            assert_ne!(other, one.inode);
        }
        assert_eq!(walked, all.len());
    }

    #[test]
    fn families_mix_the_nearest_listener_is_meant_and_the_first_of_several() {
        let mapped = "[::ffff:127.0.0.1]:7000";
        let all = [
            socket("[::]:7000", "[::]:0", true, 1),
            socket("[::]:7000", "[::]:0", true, 2),
            socket("127.0.0.1:7000", "0.0.0.0:0", true, 3),
            socket("127.0.0.2:7000", "0.0.0.0:0", true, 0),
            socket(mapped, "[::ffff:127.0.0.1]:40000", false, 5),
            socket(mapped, "[::ffff:127.0.0.1]:40001", false, 0),
            socket("127.0.0.2:7000", "127.0.0.1:40002", false, 0),
            socket("127.0.0.1:7001", "127.0.0.1:40003", false, 0),
        ];
        let sockets = Sockets {
            tcp: all.to_vec(),
            ..Sockets::default()
        };
        let other =
            |local: &str, peer: &str| sockets.other_end(local.parse().unwrap(), peer.parse().unwrap());
        assert_eq!(other("127.0.0.1:40000", "127.0.0.1:7000"), Some(5));
        assert_eq!(other("127.0.0.1:40001", "127.0.0.1:7000"), Some(3));
        assert_eq!(other("127.0.0.1:40002", "127.0.0.2:7000"), Some(1));
        assert_eq!(other("127.0.0.1:40003", "127.0.0.1:7001"), None, "nobody listens");
        assert!(sockets.listens(2) && !sockets.listens(5) && !sockets.listens(9));
        let mut copy = sockets.clone();
        assert_eq!(copy, sockets, "whether somebody has asked makes no difference");
        assert!(copy.listens(2));
        copy.set_tcp(vec![socket("[::]:7000", "[::]:0", true, 6)]);
        assert!(
            !copy.listens(2) && copy.listens(6),
            "sockets that were read again"
        );
        assert!(
            sockets.listens(2) && !sockets.listens(6),
            "are those of the copy alone"
        );
    }
}
