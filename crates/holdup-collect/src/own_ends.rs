//! Which pipes and sockets of a polled set a program has both ends of: by those it wakes itself, and waits for nobody.
//!
//! In: objects as they are described, and polled sets. Out: the sets, with what is the waiter's own marked. A process is
//! looked at once for each such object that it polls, soon after it did for the first time. Where it, or its end, is gone
//! by then, a pair of sockets that it made itself, and had no child to give one to, is its own; nothing else is marked.
//! A connection over loopback whose listener is there no more is such a pair, too: portable programs make one where others make a pipe. One
//! that goes to a listener that is still there is a request that the process makes to itself.

use holdup_evidence::{Object, ObjectId, ObjectKind, PolledFd, SocketAddress};
use holdup_proc::descriptors::{Ends, ends};
use holdup_proc::sockets::{self, Tcp};
use holdup_proc::{Root, names};
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

/// Looks at processes in one run. Each reads up to a thousand links, about a millisecond.
const LOOKS: u32 = 256;

/// Tables of connections read in one run, some milliseconds each: only for connections over loopback that the last one does not have.
const TABLES: u32 = 8;

/// TCP's state `ESTABLISHED`.
const ESTABLISHED: u8 = 1;
const TCP: u16 = 6;

/// What is known so far.
#[derive(Debug, Default)]
pub(super) struct OwnEnds {
    candidates: HashMap<ObjectId, Candidate>,
    known: HashMap<(u32, ObjectId), bool>,
    looks: u32,
    /// By network namespace.
    connections: HashMap<Option<String>, Vec<Tcp>>,
    tables: u32,
    /// Processes that have had children.
    parents: HashSet<u32>,
}

/// What can have its other end in the same process.
#[derive(Debug, Clone, Copy)]
enum Candidate {
    /// A pipe, by its inode.
    Pipe(u64),
    /// An unnamed Unix socket.
    Socket {
        inode: u64,
        /// That of its other end.
        peer: Option<u64>,
        /// The process that made the pair.
        maker: Option<u32>,
    },
    /// A connection over loopback.
    Loopback {
        inode: u64,
        local: SocketAddr,
        peer: SocketAddr,
    },
}

impl OwnEnds {
    /// An object was described.
    pub(super) fn described(&mut self, id: ObjectId, object: &Object, peer_inode: Option<u64>) {
        let candidate = match &object.kind {
            ObjectKind::Pipe => Some(Candidate::Pipe(object.inode)),
            ObjectKind::Socket {
                local: SocketAddress::Unix(local),
                peer: SocketAddress::Unix(peer),
                peer_pid,
                ..
            } if local.is_empty() && peer.is_empty() => Some(Candidate::Socket {
                inode: object.inode,
                peer: peer_inode,
                maker: *peer_pid,
            }),
            ObjectKind::Socket {
                local: SocketAddress::Inet(local),
                peer: SocketAddress::Inet(peer),
                state: ESTABLISHED,
                protocol: TCP,
                ..
            } if is_loopback(local) && is_loopback(peer) => Some(Candidate::Loopback {
                inode: object.inode,
                local: *local,
                peer: *peer,
            }),
            _ => None,
        };
        if let Some(candidate) = candidate {
            self.candidates.insert(id, candidate);
        }
    }

    /// A process has a child.
    pub(super) fn has_child(&mut self, pid: u32) {
        self.parents.insert(pid);
    }

    /// Marks what of a set that a process polls is its own.
    pub(super) fn mark(&mut self, pid: u32, polled: &mut [PolledFd]) {
        for fd in polled {
            fd.own = fd.object.is_some_and(|object| self.has_both(pid, object));
        }
    }

    fn has_both(&mut self, pid: u32, object: ObjectId) -> bool {
        let Some(candidate) = self.candidates.get(&object).copied() else {
            return false;
        };
        if let Some(known) = self.known.get(&(pid, object)) {
            return *known;
        }
        let other = match candidate {
            Candidate::Loopback { inode, local, peer } => self.other_end(pid, inode, local, peer),
            Candidate::Socket { peer, .. } => peer,
            Candidate::Pipe(inode) => Some(inode),
        };
        // A server has many connections over loopback: for those no process is looked at.
        if other.is_none() && matches!(candidate, Candidate::Loopback { .. }) {
            self.known.insert((pid, object), false);
            return false;
        }
        if self.looks >= LOOKS {
            return false;
        }
        self.looks += 1;
        let ends = ends(&Root::system(), pid);
        let both = |ends: &Ends| other.is_some_and(|other| ends.sockets.contains(&other));
        let own = match candidate {
            Candidate::Pipe(inode) => {
                ends.is_some_and(|ends| ends.read.contains(&inode) && ends.written.contains(&inode))
            }
            Candidate::Socket { inode, maker, .. } => {
                match ends.filter(|ends| ends.sockets.contains(&inode)) {
                    Some(ends) => both(&ends),
                    None => maker == Some(pid) && !self.parents.contains(&pid),
                }
            }
            Candidate::Loopback { inode, .. } => {
                ends.is_some_and(|ends| ends.sockets.contains(&inode) && both(&ends))
            }
        };
        self.known.insert((pid, object), own);
        own
    }

    /// The other end of such a connection, if it was accepted, and nobody listens at either end.
    fn other_end(&mut self, pid: u32, inode: u64, local: SocketAddr, peer: SocketAddr) -> Option<u64> {
        let root = Root::system();
        let ports = [local.port(), peer.port()];
        let listens = |table: &[Tcp]| {
            let mut listening = table.iter().filter(|one| one.listens);
            listening.any(|one| ports.contains(&one.local.port()))
        };
        let table = self
            .connections
            .entry(names::network_namespace(&root, pid))
            .or_default();
        if !listens(table) && !table.iter().any(|one| one.inode == inode) {
            if self.tables >= TABLES {
                return None;
            }
            self.tables += 1;
            *table = sockets::tcp_of(&root, pid);
        }
        let same = |one: SocketAddr, other: SocketAddr| {
            one.port() == other.port() && one.ip().to_canonical() == other.ip().to_canonical()
        };
        let mut others = table
            .iter()
            .filter(|one| same(one.local, peer) && same(one.peer, local));
        let other = others.next().filter(|_| !listens(table))?;
        (other.inode != 0).then_some(other.inode)
    }
}

fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::{ESTABLISHED, OwnEnds, TCP};
    use holdup_evidence::{Object, ObjectId, ObjectKind, PolledFd, SocketAddress};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    fn own(socket: &TcpStream) -> bool {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
        let text = link.to_string_lossy().into_owned();
        let object = Object {
            kind: ObjectKind::Socket {
                family: 2,
                kind: 1,
                protocol: TCP,
                state: ESTABLISHED,
                local: SocketAddress::Inet(socket.local_addr().unwrap()),
                peer: SocketAddress::Inet(socket.peer_addr().unwrap()),
                peer_pid: None,
            },
            path: None,
            inode: text.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap(),
            device: Default::default(),
            file_system: "sockfs".into(),
        };
        let mut ends = OwnEnds::default();
        ends.described(ObjectId(1), &object, None);
        let mut polled = [PolledFd {
            fd: 3,
            events: 1,
            revents: 0,
            object: Some(ObjectId(1)),
            own: false,
        }];
        ends.mark(std::process::id(), &mut polled);
        polled[0].own
    }

    #[test]
    fn a_pair_over_loopback_is_the_programs_own_and_a_request_to_itself_is_none() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(!own(&one), "not accepted yet");
        let (_other, _) = listener.accept().unwrap();
        assert!(!own(&one), "to a listener that is there");
        drop(listener);
        assert!(own(&one));
    }
}
