//! Which pipes and sockets of a polled set a program has both ends of: by those it wakes itself, and waits for nobody.
//!
//! In: objects as they are described, and polled sets. Out: the sets, with what is the waiter's own marked. A process is
//! looked at once for each such object that it polls, soon after it did for the first time. Where it, or its end, is gone
//! by then, a pair of sockets that it made itself, and had no child to give one to, is its own; nothing else is marked.

use holdup_evidence::{Object, ObjectId, ObjectKind, PolledFd, SocketAddress};
use holdup_proc::Root;
use holdup_proc::descriptors::ends;
use std::collections::{HashMap, HashSet};

/// Looks at processes in one run. Each reads up to a thousand links, about a millisecond.
const LOOKS: u32 = 256;

/// What is known so far.
#[derive(Debug, Default)]
pub(super) struct OwnEnds {
    candidates: HashMap<ObjectId, Candidate>,
    known: HashMap<(u32, ObjectId), bool>,
    looks: u32,
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
        let Some(candidate) = self.candidates.get(&object) else {
            return false;
        };
        if let Some(known) = self.known.get(&(pid, object)) {
            return *known;
        }
        if self.looks >= LOOKS {
            return false;
        }
        self.looks += 1;
        let ends = ends(&Root::system(), pid);
        let own = match *candidate {
            Candidate::Pipe(inode) => {
                ends.is_some_and(|ends| ends.read.contains(&inode) && ends.written.contains(&inode))
            }
            Candidate::Socket { inode, peer, maker } => {
                match ends.filter(|ends| ends.sockets.contains(&inode)) {
                    Some(ends) => peer.is_some_and(|peer| ends.sockets.contains(&peer)),
                    None => maker == Some(pid) && !self.parents.contains(&pid),
                }
            }
        };
        self.known.insert((pid, object), own);
        own
    }
}
