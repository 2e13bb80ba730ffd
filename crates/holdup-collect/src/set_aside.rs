//! Clients that an event loop has accepted and does not listen to: they wait until it has time, or something else, for them.
//!
//! In: processes, as observation begins and as it ends. Out: those with clients that were set aside both times; and whose sets hold nobody
//! but clients, which tracing cannot tell of a set with more than a few members. An event loop sets a client
//! aside by taking its descriptor out of the polled set, or by leaving unread what it has sent. Sets are read by a child that can be
//! abandoned ([`super::behind`]).

use super::behind::Readers;
use super::moment::Moment;
use holdup_evidence::facts::{SessionClient, SetAside};
use holdup_proc::conversations;
use holdup_proc::descriptors::Open;
use holdup_proc::event_loops::{self, Listened};
use holdup_proc::sampling::sockets::unix_peers;
use holdup_proc::{Root, names};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::SocketAddr;
use std::time::Instant;

mod asked;

/// Processes that are looked at: of more, a recorder's, each look would take long.
const PROCESSES_MAX: usize = 64;

/// Clients that a loop listens to and that are reported one by one.
const MAX_NAMED: usize = 3;

/// Unnamed sockets whose other ends are asked for, one question to the kernel each: pairs by which a process stirs itself are few.
const OWN_PAIRS_MAX: usize = 8;

/// A client's connection: this end's inode, and both ends where it is TCP.
type Connection = (u64, Option<(SocketAddr, SocketAddr)>);

/// The clients of a process.
#[derive(Debug, Default)]
struct Clients {
    aside: BTreeSet<u64>,
    /// Listened to, and nothing of them is unread.
    polled: Vec<Connection>,
}

/// The clients of event loops at an instant.
#[derive(Debug)]
pub(super) struct Loops {
    /// When.
    looked: Instant,
    clients: BTreeMap<u32, Clients>,
    /// Whether nobody but clients, or the process itself, can stir its loops.
    stirred_by_clients: BTreeMap<u32, bool>,
}

impl Loops {
    /// Looks at these processes.
    pub(super) fn look(pids: &BTreeSet<u32>, moment: &mut Moment) -> Loops {
        let mut found = Loops {
            looked: Instant::now(),
            clients: BTreeMap::new(),
            stirred_by_clients: BTreeMap::new(),
        };
        if pids.len() > PROCESSES_MAX {
            return found;
        }
        let mut sets: Readers<u32, Option<Listened>> =
            Readers::new(|| Box::new(|pid| event_loops::read(&Root::system(), pid)));
        for pid in pids {
            let accepted = accepted(*pid, moment);
            if accepted.is_empty() {
                continue;
            }
            let Some(listened) = sets.ask(*pid, *pid).flatten() else {
                continue;
            };
            let mut others = strangers(*pid, &listened, &accepted, moment);
            // A client that came or went between two readings is a stranger in one of them.
            if !others.is_empty() {
                let mut again = Moment::now();
                let accepted = self::accepted(*pid, &mut again);
                let listened = sets.ask(*pid, *pid).flatten();
                others = listened.map_or(others.clone(), |listened| {
                    &others & &strangers(*pid, &listened, &accepted, &mut again)
                });
            }
            found.stirred_by_clients.insert(*pid, others.is_empty());
            let mut clients = Clients::default();
            for ((inode, ends), unread) in accepted {
                if unread || listened.others.contains(&inode) {
                    clients.aside.insert(inode);
                } else if listened.polled.contains(&inode) {
                    clients.polled.push((inode, ends));
                }
            }
            if !clients.aside.is_empty() {
                found.clients.insert(*pid, clients);
            }
        }
        found
    }

    /// By process: whether nobody but clients, or the process itself, can stir its loops.
    pub(super) fn stirred_by_clients(&self) -> Vec<(u32, bool)> {
        self.stirred_by_clients
            .iter()
            .map(|(pid, by)| (*pid, *by))
            .collect()
    }

    /// Those with clients that were set aside then, too.
    pub(super) fn since(self, before: &Loops, moment: &mut Moment) -> Vec<SetAside> {
        let mut found = Vec::new();
        let mut words = None;
        let watched = self.looked.saturating_duration_since(before.looked);
        for (pid, clients) in self.clients {
            let Some(before) = before.clients.get(&pid) else {
                continue;
            };
            let aside: BTreeSet<u64> = clients.aside.intersection(&before.aside).copied().collect();
            let both = aside.len();
            if both == 0 {
                continue;
            }
            let same = moment.namespace(pid) == moment.namespace(std::process::id());
            let words = same.then(|| words.get_or_insert_with(conversations::read).as_slice());
            let behind = words.map(|words| asked::of(pid, &aside, words, watched, moment));
            let (unanswered, servers, answers) = match behind {
                Some(behind) => (Some(behind.unanswered), behind.servers, behind.answers),
                None => Default::default(),
            };
            found.push(SetAside {
                unanswered,
                servers,
                answers,
                pid,
                process: names::comm(&moment.root, pid).unwrap_or_default(),
                clients: u32::try_from(both).unwrap_or(u32::MAX),
                listened_to: u32::try_from(clients.polled.len()).unwrap_or(u32::MAX),
                asks_on: asks_on(pid, moment),
                serves: who(pid, &clients.polled, moment),
            });
        }
        found
    }
}

/// What is in a set and neither a listener, nor a client, nor what a process stirs itself by: somebody else can be asked there, or can have
/// been.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Stranger {
    /// By inode, as the next.
    Socket(u64),
    Pipe(u64),
    Descriptor(u32),
}

/// Those in the sets of a process.
fn strangers(
    pid: u32,
    listened: &Listened,
    accepted: &[(Connection, bool)],
    moment: &mut Moment,
) -> HashSet<Stranger> {
    let ends = moment.ends(pid).unwrap_or_default();
    let sockets = moment.sockets(pid);
    let own_pipe = |inode: &u64| ends.read.contains(inode) && ends.written.contains(inode);
    let pipes = listened.beside.pipes.iter().filter(|inode| !own_pipe(inode));
    let of_clients: HashSet<u64> = accepted.iter().map(|((inode, _), _)| *inode).collect();
    let tcp = sockets.tcp.iter().filter(|one| one.listens).map(|one| one.inode);
    let unix = sockets.unix.iter().filter(|(_, one)| one.listens);
    let listeners: HashSet<u64> = tcp.chain(unix.map(|(inode, _)| *inode)).collect();
    let mut asked = 0;
    let mut own_pair = |inode: &u64| {
        let may_be = sockets.unnamed.contains(inode) && asked < OWN_PAIRS_MAX;
        asked += usize::from(may_be);
        let peer = may_be.then(|| unix_peers::of(*inode)).flatten();
        peer.is_some_and(|peer| ends.sockets.contains(&peer))
    };
    let others = listened
        .polled
        .iter()
        .filter(|inode| !of_clients.contains(*inode) && !listeners.contains(*inode) && !own_pair(inode));
    let others = others.map(|inode| Stranger::Socket(*inode));
    let unknown = listened.beside.unknown.iter();
    others
        .chain(pipes.map(|inode| Stranger::Pipe(*inode)))
        .chain(unknown.map(|fd| Stranger::Descriptor(*fd)))
        .collect()
}

/// How many TCP connections a process has made: those that are none of its listeners'.
fn asks_on(pid: u32, moment: &mut Moment) -> u32 {
    let Some(ends) = moment.ends(pid) else { return 0 };
    let sockets = moment.sockets(pid);
    let own = |inode: u64| inode != 0 && ends.sockets.contains(&inode);
    let listeners = sockets.tcp.iter().filter(|one| one.listens && own(one.inode));
    let ports: HashSet<u16> = listeners.map(|one| one.local.port()).collect();
    let made = sockets
        .tcp
        .iter()
        .filter(|one| !one.listens && own(one.inode) && !ports.contains(&one.local.port()));
    u32::try_from(made.count()).unwrap_or(u32::MAX)
}

/// The connections that a process has accepted at listeners of its own, and whether something on them is unread.
fn accepted(pid: u32, moment: &mut Moment) -> Vec<(Connection, bool)> {
    let Some(ends) = moment.ends(pid) else {
        return Vec::new();
    };
    let sockets = moment.sockets(pid);
    let own = |inode: u64| inode != 0 && ends.sockets.contains(&inode);
    let listeners = sockets.tcp.iter().filter(|one| one.listens && own(one.inode));
    let ports: HashSet<u16> = listeners.map(|one| one.local.port()).collect();
    let tcp = sockets
        .tcp
        .iter()
        .filter(|one| !one.listens && own(one.inode) && ports.contains(&one.local.port()))
        .map(|one| ((one.inode, Some((one.local, one.peer))), one.unread > 0));
    let paths: HashSet<&str> = sockets
        .unix
        .iter()
        .filter(|(inode, one)| one.listens && own(**inode))
        .map(|(_, one)| one.path.as_str())
        .collect();
    let unix = sockets
        .unix
        .iter()
        .filter(|(inode, one)| !one.listens && own(**inode) && paths.contains(one.path.as_str()))
        .map(|(inode, _)| ((*inode, None), false));
    tcp.chain(unix).collect()
}

/// The processes at the other ends, where they are few and on this machine.
fn who(pid: u32, polled: &[Connection], moment: &mut Moment) -> Vec<SessionClient> {
    if polled.len() > MAX_NAMED {
        return Vec::new();
    }
    let ends: Vec<(SocketAddr, SocketAddr)> = polled.iter().filter_map(|(_, ends)| *ends).collect();
    others(pid, &ends, moment)
}

/// The processes of this machine at the other ends of these connections, by both ends.
fn others(pid: u32, ends: &[(SocketAddr, SocketAddr)], moment: &mut Moment) -> Vec<SessionClient> {
    let sockets = moment.sockets(pid);
    let others = ends
        .iter()
        .filter_map(|(local, peer)| Some((*peer, sockets.other_end(*local, *peer)?)));
    let others: Vec<(SocketAddr, u64)> = others.collect();
    let wanted: HashSet<Open> = others.iter().map(|(_, inode)| Open::Socket(*inode)).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let holders = moment.holders(&wanted);
    let client = |(address, inode): (SocketAddr, u64)| {
        let pid = *holders
            .get(&Open::Socket(inode))?
            .iter()
            .find(|one| **one != pid)?;
        Some(SessionClient {
            address: Some(address),
            pid: Some(pid),
            process: names::comm(&moment.root, pid).unwrap_or_default(),
            stopped: names::state(&moment.root, pid) == Some(super::sessions::STOPPED),
        })
    };
    others.into_iter().filter_map(client).collect()
}

#[cfg(test)]
mod tests {
    use super::{Loops, Moment, accepted, strangers};
    use holdup_proc::event_loops::{Beside, Listened};
    use std::collections::{BTreeSet, HashSet};
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::os::unix::net::UnixStream;

    fn set_of(sockets: [&TcpStream; 2]) -> OwnedFd {
        // SAFETY: makes a descriptor that is nobody else's.
        let set = unsafe { OwnedFd::from_raw_fd(libc::epoll_create1(libc::EPOLL_CLOEXEC)) };
        for socket in sockets {
            let mut event = libc::epoll_event {
                events: libc::EPOLLIN.cast_unsigned(),
                u64: 0,
            };
            let add = libc::EPOLL_CTL_ADD;
            // SAFETY: both descriptors are open, and the kernel copies the event.
            let added = unsafe { libc::epoll_ctl(set.as_raw_fd(), add, socket.as_raw_fd(), &raw mut event) };
            assert_eq!(added, 0);
        }
        set
    }

    #[test]
    fn who_is_not_listened_to_and_who_is_not_read_from_is_set_aside() {
        let own = BTreeSet::from([std::process::id()]);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connect = || (TcpStream::connect(address).unwrap(), listener.accept().unwrap().0);
        let (_one, heard) = connect();
        let (_two, _unheard) = connect();
        let (mut three, unread) = connect();
        let _set = set_of([&heard, &unread]);
        three.write_all(b"read me").unwrap();
        let look = || Loops::look(&own, &mut Moment::now());
        let before = look();
        let found = look().since(&before, &mut Moment::now());
        let here = found.first().unwrap();
        // Other tests of this process have sockets as well.
        assert!(here.clients >= 2 && here.listened_to >= 1, "{here:?}");
        assert!(here.asks_on >= 3, "{here:?}");
        assert_eq!(here.pid, std::process::id());
        let nobody = Loops::look(&BTreeSet::new(), &mut Moment::now());
        assert_eq!(look().since(&nobody, &mut Moment::now()), []);
    }

    #[test]
    fn a_set_of_clients_is_told_from_one_with_a_connection_that_the_process_has_made() {
        let own = std::process::id();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let asking = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (client, _) = listener.accept().unwrap();
        let (mine, _mine_too) = UnixStream::pair().unwrap();
        let by_clients = |set: &[&dyn AsRawFd], beside: Beside| {
            let mut moment = Moment::now();
            let listened = Listened {
                polled: set.iter().map(|one| inode(*one)).collect(),
                beside,
                ..Listened::default()
            };
            let accepted = accepted(own, &mut moment);
            strangers(own, &listened, &accepted, &mut moment).is_empty()
        };
        let nothing = Beside::default;
        assert!(by_clients(&[&listener, &client, &mine], nothing()));
        assert!(!by_clients(&[&listener, &client, &asking], nothing()));
        let pipe = Beside {
            pipes: HashSet::from([1]),
            ..nothing()
        };
        assert!(!by_clients(&[&client], pipe), "of another process");
        let unknown = Beside {
            unknown: HashSet::from([9]),
            ..nothing()
        };
        assert!(!by_clients(&[&client], unknown));
    }

    fn inode(open: &dyn AsRawFd) -> u64 {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", open.as_raw_fd())).unwrap();
        let text = link.to_string_lossy().into_owned();
        text.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
    }
}
