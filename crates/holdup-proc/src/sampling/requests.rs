//! What became of requests for connections that threads were seen to wait for.
//!
//! In: the TCP sockets that each look meets. Out: [`Event::Connection`]s: made, if the socket was met connected, or another one of the same
//! process to the same port, which is the next address of the same name; given up, if the kernel knows it no more, or its process has
//! ended. A connection that was made between two looks and never waited for is not known.

use super::described;
use super::sockets::diag::Diag;
use super::sockets::tcp_state;
use holdup_evidence::network::{Connection, Outcome};
use holdup_evidence::{Ns, Object, ThreadId};
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

/// State of `tcp(7)`.
const SYN_SENT: u8 = 2;

/// Requests of one process that are kept in mind.
const MAX_REQUESTS: usize = 64;

/// A request that has no answer yet.
#[derive(Debug, Clone, Copy)]
struct Request {
    inode: u64,
    thread: ThreadId,
    began: Ns,
    local: SocketAddr,
    peer: SocketAddr,
}

/// Of one process.
#[derive(Debug, Default)]
struct OfProcess {
    open: Vec<Request>,
    /// Ports that it asked for.
    ports: HashSet<u16>,
    /// Sockets that were told to be connected.
    made: HashSet<u64>,
}

/// Requests of all processes.
#[derive(Debug, Default)]
pub(super) struct Requests {
    of: HashMap<u32, OfProcess>,
    diag: Option<Option<Diag>>,
}

impl Requests {
    /// What a look at a thread has met, and what the kernel says of the requests that its process has open.
    pub(super) fn met<'a>(
        &mut self,
        (pid, thread): (u32, ThreadId),
        at: Ns,
        objects: impl Iterator<Item = &'a Object>,
    ) -> Vec<Connection> {
        let sockets: Vec<_> = objects.filter_map(described::connection_with_state).collect();
        if sockets.is_empty() && !self.of.contains_key(&pid) {
            return Vec::new();
        }
        let asks = sockets.iter().any(|(.., state)| *state == SYN_SENT);
        if !asks && !self.of.contains_key(&pid) {
            return Vec::new();
        }
        let Some(diag) = self
            .diag
            .get_or_insert_with(|| Diag::open(libc::NETLINK_SOCK_DIAG))
        else {
            return Vec::new();
        };
        let of = self.of.entry(pid).or_default();
        let state = |request: &Request| tcp_state::of(diag, request.local, request.peer, request.inode, at);
        let mut listed = Vec::new();
        for (local, peer, inode, state_then) in sockets {
            let request = Request {
                inode,
                thread,
                began: at,
                local,
                peer,
            };
            if state_then == SYN_SENT {
                // One of another network namespace can't be asked about later.
                let new = of.open.len() < MAX_REQUESTS && of.open.iter().all(|open| open.inode != inode);
                if new && state(&request).is_some() {
                    of.ports.insert(peer.port());
                    of.open.push(request);
                }
            } else if of.ports.contains(&peer.port()) && of.made.len() < MAX_REQUESTS && of.made.insert(inode)
            {
                let known = of.open.iter().position(|open| open.inode == inode);
                let request = known.map_or(request, |at| of.open.swap_remove(at));
                listed.push(request.over(at, Outcome::Made));
            }
        }
        of.open.retain(|request| {
            let outcome = match state(request) {
                Some(figures) if figures.state() == SYN_SENT => return true,
                Some(_) if of.made.insert(request.inode) => Outcome::Made,
                Some(_) => return false,
                None => Outcome::GivenUp,
            };
            listed.push(request.over(at, outcome));
            false
        });
        listed
    }

    /// A process has ended, and what it had asked for with it.
    pub(super) fn ended(&mut self, pid: u32, at: Ns) -> Vec<Connection> {
        let open = self.of.remove(&pid).map(|of| of.open).unwrap_or_default();
        open.iter().map(|one| one.over(at, Outcome::GivenUp)).collect()
    }
}

impl Request {
    fn over(&self, at: Ns, outcome: Outcome) -> Connection {
        Connection {
            thread: self.thread,
            began: self.began,
            at,
            peer: self.peer,
            outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Requests, SYN_SENT};
    use holdup_evidence::network::Outcome;
    use holdup_evidence::{DeviceNumber, Object, ObjectKind, SocketAddress, ThreadId};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    fn object(socket: &TcpStream, state: u8) -> Object {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
        let text = link.to_string_lossy().into_owned();
        let inode = text.trim_matches(|c: char| !c.is_ascii_digit());
        let inet = |address: SocketAddr| SocketAddress::Inet(address);
        Object {
            kind: ObjectKind::Socket {
                family: 2,
                kind: 1,
                protocol: 6,
                state,
                local: inet(socket.local_addr().unwrap()),
                peer: inet(socket.peer_addr().unwrap()),
                peer_pid: None,
            },
            path: None,
            inode: inode.parse().unwrap(),
            device: DeviceNumber::default(),
            file_system: String::new(),
        }
    }

    #[test]
    fn a_request_is_told_by_what_becomes_of_its_socket() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || TcpStream::connect(server.local_addr().unwrap()).unwrap();
        let who = (1, ThreadId(3));
        let mut requests = Requests::default();
        let (one, two) = (connect(), connect());
        let never_asked = requests.met(who, 1, [object(&one, 1)].iter());
        assert!(never_asked.is_empty(), "it may have been accepted");
        // Seen while it asked, and connected by now.
        let found = requests.met(who, 2, [object(&one, SYN_SENT)].iter());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].outcome, found[0].thread), (Outcome::Made, ThreadId(3)));
        let again = requests.met(who, 3, [object(&one, 1)].iter());
        assert!(again.is_empty(), "once");
        let next = requests.met(who, 4, [object(&two, 1)].iter());
        assert_eq!(next[0].outcome, Outcome::Made, "the next to the same port");
        assert!(requests.ended(1, 5).is_empty());
        assert!(requests.ended(1, 6).is_empty());
    }
}
