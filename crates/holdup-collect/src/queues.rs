//! Clients that the observed processes do not accept: evidence of demand that no request shows.
//!
//! In: processes, as observation begins and as it ends. Out: their listeners at which clients stood both times.

use super::moment::Moment;
use super::serving;
use holdup_evidence::facts::Unaccepted;
use holdup_proc::sockets::{self, Sockets};
use holdup_proc::{Root, descriptor_limits};
use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::rc::Rc;

/// The queues of some processes' listeners at an instant.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// By the inode of the listener.
    listeners: HashMap<u64, Queue>,
}

#[derive(Debug)]
struct Queue {
    address: SocketAddr,
    waiting: u32,
    knocking: u32,
    overflows: u64,
    processes: BTreeSet<u32>,
    children: BTreeSet<u32>,
}

/// A network namespace.
struct Namespace {
    sockets: Rc<Sockets>,
    overflows: u64,
}

impl Queues {
    /// Looks at these processes.
    pub(super) fn look(pids: &BTreeSet<u32>, moment: &mut Moment) -> Queues {
        let mut namespaces: HashMap<Option<String>, Namespace> = HashMap::new();
        let mut found = Queues::default();
        for pid in pids {
            let Some(ends) = moment.ends(*pid) else { continue };
            let namespace = namespaces
                .entry(moment.namespace(*pid))
                .or_insert_with(|| Namespace {
                    sockets: moment.sockets(*pid),
                    overflows: sockets::overflows(&moment.root, *pid).unwrap_or(0),
                });
            let all = &namespace.sockets.tcp;
            let own = |inode: u64| inode != 0 && ends.sockets.contains(&inode);
            for listener in all.iter().filter(|one| one.listens && own(one.inode)) {
                let at = |peer: SocketAddr| {
                    let (own, ip) = (listener.local.ip().to_canonical(), peer.ip().to_canonical());
                    peer.port() == listener.local.port() && (own == ip || own.is_unspecified())
                };
                let knocking = all.iter().filter(|one| one.knocks && at(one.peer)).count();
                let queue = found.listeners.entry(listener.inode).or_insert_with(|| Queue {
                    address: listener.local,
                    waiting: listener.waiting,
                    knocking: u32::try_from(knocking).unwrap_or(u32::MAX),
                    overflows: namespace.overflows,
                    processes: BTreeSet::new(),
                    children: BTreeSet::new(),
                });
                queue.processes.insert(*pid);
                queue
                    .children
                    .extend(serving::children_at(*pid, pids, listener.inode, moment));
            }
        }
        found
    }

    /// The listeners at which clients stand that had some before, too.
    pub(super) fn since(self, before: &Queues, root: &Root) -> Vec<Unaccepted> {
        let mut found: Vec<Unaccepted> = self
            .listeners
            .into_iter()
            .filter_map(|(inode, queue)| {
                let before = before.listeners.get(&inode)?;
                let used_up = |pid: &u32| descriptor_limits::used_up(root, *pid);
                (before.waiting > 0 && queue.waiting > 0).then(|| Unaccepted {
                    out_of_descriptors: queue.processes.iter().filter_map(used_up).collect(),
                    address: queue.address,
                    processes: queue.processes.into_iter().collect(),
                    children: queue.children.into_iter().collect(),
                    before: before.waiting,
                    after: queue.waiting,
                    knocking: queue.knocking.min(before.knocking),
                    overflows: queue.overflows.saturating_sub(before.overflows),
                    clients: Vec::new(),
                })
            })
            .collect();
        found.sort_by_key(|one| one.address);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::{Moment, Queues, Root};
    use std::collections::BTreeSet;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn clients_that_nobody_accepts_are_found() {
        let own = BTreeSet::from([std::process::id()]);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let empty = Queues::look(&own, &mut Moment::now());
        let _client = TcpStream::connect(address).unwrap();
        let here = |found: Vec<super::Unaccepted>| found.into_iter().find(|one| one.address == address);
        let full = Queues::look(&own, &mut Moment::now());
        assert_eq!(
            here(Queues::look(&own, &mut Moment::now()).since(&empty, &Root::system())),
            None,
            "it came meanwhile"
        );
        let found = here(Queues::look(&own, &mut Moment::now()).since(&full, &Root::system())).unwrap();
        assert_eq!((found.before, found.after, found.knocking), (1, 1, 0));
        assert!(found.processes.contains(&std::process::id()));
    }
}
