//! Listeners of this network namespace at which clients stood during the look: whose they are, and how many may wait.
//!
//! In: the kernel's list of queues, at some times. Out: a list of sockets, as readers make one of what `ss` prints, for the rules that
//! judge that. The counter of overflows tells that it happens; this tells where.

use super::looked_up::named;
use holdup_evidence::Observed;
use holdup_evidence::observed::{Quote, SeenQueue, SocketTable};
use holdup_proc::Root;
use holdup_proc::descriptors::{self, Open};
use holdup_proc::listen_queues::ListenQueue;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Listeners that are named, longest queue first.
const NAMED: usize = 20;

/// The kernel's list of queues; a test says it itself.
pub(super) type Ask = fn() -> Vec<ListenQueue>;

/// Where they are read, as a source of evidence.
pub(super) const NAME: &str = "sock_diag";

/// What was seen so far.
#[derive(Debug)]
pub(super) struct Listeners {
    ask: Ask,
    /// How many there were at last.
    listening: usize,
    /// The longest queue of each that had one, by inode.
    longest: BTreeMap<u64, ListenQueue>,
}

impl Listeners {
    /// Asks this way.
    pub(super) fn new(ask: Ask) -> Listeners {
        Listeners {
            ask,
            listening: 0,
            longest: BTreeMap::new(),
        }
    }

    /// Looks once.
    pub(super) fn turn(&mut self) {
        let queues = (self.ask)();
        self.listening = queues.len();
        for queue in queues.into_iter().filter(|queue| queue.waiting > 0) {
            let longest = self.longest.entry(queue.inode).or_insert(queue);
            if queue.waiting > longest.waiting {
                *longest = queue;
            }
        }
    }

    /// Says what was seen, with who has the longest queues open; `own` is the process that looks.
    pub(super) fn hand_over(self, root: &Root, own: u32, source: u32, observed: &mut Observed) {
        if self.listening == 0 {
            return;
        }
        let mut queues: Vec<ListenQueue> = self.longest.into_values().collect();
        queues.sort_by_key(|queue| std::cmp::Reverse(queue.waiting));
        queues.truncate(NAMED);
        let wanted: HashSet<Open> = queues.iter().map(|queue| Open::Socket(queue.inode)).collect();
        let holders = match wanted.is_empty() {
            true => Default::default(),
            false => descriptors::holders(root, &wanted, own),
        };
        let firsts = holders.values().filter_map(|pids| pids.first()).copied();
        let names = match holders.is_empty() {
            true => HashMap::new(),
            false => named(root, firsts.collect()),
        };
        let who = |inode: u64| {
            let pids = holders.get(&Open::Socket(inode))?;
            let pid = pids.first()?;
            let name = names.get(pid)?;
            Some(match pids.len() {
                1 => format!("{name} (pid {pid})"),
                count => format!("{name} (pid {pid} and {} more)", count - 1),
            })
        };
        let quote = Quote { source, line: 0 };
        let seen = |queue: &ListenQueue| SeenQueue {
            local: queue.address.to_string(),
            unix: false,
            waiting: u64::from(queue.waiting),
            limit: Some(u64::from(queue.limit)),
            process: who(queue.inode),
            quote: quote.clone(),
        };
        observed.sockets.push(SocketTable {
            total: self.listening as u64,
            listening: Some(self.listening as u64),
            queues: queues.iter().map(seen).collect(),
            quote: quote.clone(),
            ..SocketTable::default()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::Listeners;
    use holdup_evidence::Observed;
    use holdup_proc::Root;
    use holdup_proc::listen_queues::{self, ListenQueue};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn whose_the_queue_is_and_how_long_it_was_at_most_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut listeners = Listeners::new(listen_queues::read);
        listeners.turn();
        let client = TcpStream::connect(address).unwrap();
        listeners.turn();
        drop((listener.accept().unwrap(), client));
        listeners.turn();
        let mut observed = Observed::default();
        listeners.hand_over(&Root::system(), 0, 3, &mut observed);
        let table = &observed.sockets[0];
        let own = table
            .queues
            .iter()
            .find(|queue| queue.local == address.to_string())
            .unwrap();
        assert_eq!(own.waiting, 1);
        assert!(
            own.process
                .as_ref()
                .unwrap()
                .contains(&format!("(pid {}", std::process::id()))
        );
    }

    #[test]
    fn where_the_kernel_lists_nothing_nothing_is_said() {
        fn none() -> Vec<ListenQueue> {
            Vec::new()
        }
        let mut listeners = Listeners::new(none);
        listeners.turn();
        let mut observed = Observed::default();
        listeners.hand_over(&Root::system(), 0, 0, &mut observed);
        assert!(observed.sockets.is_empty());
    }
}
