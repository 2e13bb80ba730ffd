//! What a server that does nothing and owes answers stands in instead: on the connection of a client that says nothing, or in a lock that
//! one of its own had who was killed.
//!
//! The problem: a server with one thread that reads from a silent client takes in nobody else, and sleeps as one does that has nothing to do;
//! so does a worker that waits for a lock of the dead. In: waits for answers, and connections. Out: the same waits, those for servers at the
//! end of a way with who occupies them, or who was killed.

use super::close_looks::{Close, Question, of_call};
use super::kernel_log;
use super::looked_up::{named, waiting_threads};
use super::{queued, silence};
use holdup_evidence::Ns;
use holdup_evidence::observed::{Killed, Occupied, SeenClient, SeenWait, Short};
use holdup_knowledge::system_calls::{self, Kind};
use holdup_proc::conversations::Connection;
use holdup_proc::descriptors::{self, Open};
use holdup_proc::listen_queues::ListenQueue;
use holdup_proc::root::text_if_there;
use holdup_proc::{Root, maps, names, tasks};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The shortest silence of a client that counts: the longest wait for the server less this, for who waits next notices later.
const ABOUT_NS: Ns = 5_000_000_000;

/// A kill that may have left a lock is at most so much older than the first wait for it: others may get on without the lock for a while.
const BEFORE_NS: Ns = 60_000_000_000;

/// And at most so much younger: clocks of the kernel's log and of sockets differ.
const AFTER_NS: Ns = 2_000_000_000;

/// Connections on which threads of one server stand that are looked at.
const MAX_STANDS: usize = 32;

/// Children of one process that are looked at for one that was killed.
const MAX_CHILDREN: usize = 256;

/// The flag of a futex that only threads of one process use (`FUTEX_PRIVATE_FLAG`).
const PRIVATE: u64 = 128;

/// Nanoseconds in a millisecond.
const MS: Ns = 1_000_000;

/// What the threads of a process stand in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stands {
    /// Links of the sockets that they read from.
    reads: Vec<String>,
    /// Whether one of them takes in whoever comes.
    takes_in: bool,
    /// Whether one of them waits for a lock that processes share.
    shares_lock: bool,
}

/// Looks at a process's threads. May block, as files of calls can.
pub(super) fn look(root: &Root, pid: u32) -> Stands {
    let looked = waiting_threads(root, pid);
    let mut stands = Stands {
        // Of a process with more threads one that was not looked at may.
        takes_in: tasks::threads(root, pid).len() > looked.len(),
        ..Stands::default()
    };
    let mut shared: Option<Vec<maps::Mapping>> = None;
    for tid in looked {
        let Some(call) = tasks::call(root, tid) else {
            continue;
        };
        let Some(known) = system_calls::numbered(call.number) else {
            continue;
        };
        if known.is(Kind::Accepts | Kind::WaitsForEpoll | Kind::Polls) {
            stands.takes_in = true;
        } else if known.is(Kind::Reads | Kind::Receives) {
            let link = of_call(root, pid, tid).map(|(_, link)| link);
            let socket = link.filter(|link| link.starts_with("socket:["));
            stands
                .reads
                .extend(socket.filter(|_| stands.reads.len() < MAX_STANDS));
        } else if known.is(Kind::WaitsForFutex) {
            // Who waits for a thread's end does so without the flag, at a word of its own process.
            if known.name() == "futex" && call.args[1] & PRIVATE == 0 {
                let shared = shared.get_or_insert_with(|| maps::shared(root, pid).unwrap_or_default());
                stands.shares_lock |= is_within(shared, call.args[0]);
            }
        }
    }
    stands
}

/// Whether an address is in one of these mappings.
fn is_within(mappings: &[maps::Mapping], address: u64) -> bool {
    mappings.iter().any(|one| (one.start..one.end).contains(&address))
}

/// Adds what is known; `now` is in seconds since boot.
pub(super) fn tell(
    root: &Root,
    own: u32,
    connections: &[Connection],
    queues: &[ListenQueue],
    now: f64,
    waits: &mut [SeenWait],
) {
    let servers = silence::at_the_end(waits);
    if servers.is_empty() {
        return;
    }
    let asked = servers.keys().map(|pid| Question::Stands { pid: *pid }).collect();
    let answers = Close::start(root, asked).take();
    let mut occupied = Clients::of(root, own, connections, queues);
    let mut kills: Option<Vec<Kill>> = None;
    let (mut by, mut dead) = (BTreeMap::new(), BTreeMap::new());
    for (pid, ns) in &servers {
        let Some(stands) = answers.stands(*pid) else {
            continue;
        };
        if !stands.takes_in
            && let Some(client) = occupied.who(&stands.reads, *ns)
        {
            by.insert(*pid, client);
        }
        if stands.shares_lock {
            let kills = kills.get_or_insert_with(|| kernel_log::kills(root, now));
            dead.extend(killed(root, *pid, *ns, kills).map(|one| (*pid, one)));
        }
    }
    for wait in waits {
        if let (Short::Answer(owed), Some(holder)) = (&mut wait.short, &wait.holder) {
            // A server that began another one for each client stands on the connection of who waits for its answer.
            let waiter = wait.waiter.pid;
            let others = by.get(&holder.pid).filter(|one| one.by.pid != waiter);
            owed.occupied = others.cloned().map(Box::new);
            owed.killed = dead.get(&holder.pid).cloned().map(Box::new);
        }
    }
}

/// Clients that servers read from.
struct Clients<'a> {
    root: &'a Root,
    own: u32,
    by_inode: HashMap<u64, &'a Connection>,
    by_ends: HashMap<(std::net::SocketAddr, std::net::SocketAddr), &'a Connection>,
    queues: &'a [ListenQueue],
}

impl<'a> Clients<'a> {
    fn of(root: &'a Root, own: u32, connections: &'a [Connection], queues: &'a [ListenQueue]) -> Clients<'a> {
        Clients {
            root,
            own,
            by_inode: connections.iter().map(|one| (one.inode, one)).collect(),
            by_ends: connections
                .iter()
                .map(|one| ((one.local, one.peer), one))
                .collect(),
            queues,
        }
    }

    /// The client that a server stands on, if nothing has come from any of those that it stands on for as long as somebody else waits.
    fn who(&mut self, reads: &[String], ns: Ns) -> Option<Occupied> {
        let accepted: Vec<&Connection> = (reads.iter())
            .filter_map(|link| {
                let inode: u64 = link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()?;
                let one = self.by_inode.get(&inode).copied()?;
                // What the server has asked itself is not a client.
                (!queued::is_client(self.queues, one)).then_some(one)
            })
            .collect();
        let silent = |one: &&Connection| {
            let long = one
                .received_ms
                .is_none_or(|ms| Ns::from(ms) * MS >= ns.saturating_sub(ABOUT_NS));
            one.unread == 0 && (one.received_bytes == 0 || long)
        };
        if accepted.is_empty() || !accepted.iter().all(silent) {
            return None;
        }
        let longest = accepted
            .iter()
            .max_by_key(|one| one.received_ms.unwrap_or(u32::MAX))?;
        let ever = longest.received_ms.filter(|_| longest.received_bytes > 0);
        Some(Occupied {
            by: self.client(longest),
            silent: ever.map(|ms| Ns::from(ms) * MS),
            threads: u32::try_from(accepted.len()).unwrap_or(u32::MAX),
        })
    }

    /// Who has the other end.
    fn client(&self, one: &Connection) -> SeenClient {
        let other = self.by_ends.get(&(one.peer, one.local)).map(|other| other.inode);
        let pid = other.filter(|inode| *inode != 0).and_then(|inode| {
            let wanted = HashSet::from([Open::Socket(inode)]);
            let holders = descriptors::holders(self.root, &wanted, self.own);
            holders.into_values().next()?.first().copied()
        });
        match pid {
            Some(pid) => SeenClient {
                pid,
                name: named(self.root, vec![pid]).remove(&pid).unwrap_or_default(),
            },
            None => SeenClient {
                pid: 0,
                name: one.peer.to_string(),
            },
        }
    }
}

/// What the kernel's log says of a kill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kill {
    pub(super) pid: u32,
    pub(super) name: String,
    pub(super) cgroup: Option<String>,
    pub(super) ago: Ns,
}

/// Who of the same service was killed, of which the parent has not yet asked (one of the same name, where only the signal is known); else whom the kernel killed for memory that had the same name, at
/// the time when the first one began to wait.
fn killed(root: &Root, pid: u32, ns: Ns, kills: &[Kill]) -> Option<Killed> {
    let about =
        |kill: &&Kill| kill.ago.saturating_add(AFTER_NS) >= ns && kill.ago <= ns.saturating_add(BEFORE_NS);
    let memory = |kill: &Kill| kill.cgroup.clone().unwrap_or_default();
    let own = names::comm(root, pid);
    let parent = names::parent(root, pid).filter(|parent| *parent > 1);
    let others = parent.map_or_else(Vec::new, |parent| tasks::children(root, parent));
    let zombies = others.into_iter().take(MAX_CHILDREN).filter(|child| {
        let ended = names::state(root, *child) == Some('Z');
        *child != pid && ended
    });
    let of = zombies.filter_map(|child| {
        let name = names::comm(root, child).unwrap_or_default();
        let kill = kills.iter().rev().find(|kill| kill.pid == child);
        // Within a container the kernel's log has other ids.
        let kill = kill.or_else(|| kills.iter().rev().filter(about).find(|kill| kill.name == name));
        let signal = ended_by(root, child).unwrap_or(0);
        // Of a helper that its parent ended nobody is known to have had a lock with.
        let same = signal > 0 && own.as_deref() == Some(name.as_str());
        (kill.is_some() || same).then(|| Killed {
            process: SeenClient {
                pid: child,
                name: name.clone(),
            },
            zombie_of: parent.map(|pid| SeenClient {
                pid,
                name: named(root, vec![pid]).remove(&pid).unwrap_or_default(),
            }),
            memory: kill.map(memory),
            signal,
            ago: kill.map(|kill| kill.ago),
        })
    });
    let mut of: Vec<Killed> = of.collect();
    of.sort_by_key(|one| one.memory.is_none());
    if let Some(first) = of.into_iter().next() {
        return Some(first);
    }
    let own = own?;
    let kill = kills.iter().rev().filter(about).find(|kill| kill.name == own)?;
    Some(Killed {
        process: SeenClient {
            pid: kill.pid,
            name: kill.name.clone(),
        },
        zombie_of: None,
        memory: Some(memory(kill)),
        signal: 0,
        ago: Some(kill.ago),
    })
}

/// The signal that ended a process which is still there as a zombie (`exit_code`, the last field of `stat`, `proc_pid_stat(5)`).
fn ended_by(root: &Root, pid: u32) -> Option<u32> {
    /// Bits of a wait status that hold the signal.
    const SIGNAL: u32 = 0x7f;
    let text = text_if_there(&root.proc.join(pid.to_string()).join("stat"))?;
    let status: u32 = text.split_ascii_whitespace().next_back()?.parse().ok()?;
    Some(status & SIGNAL).filter(|signal| *signal > 0)
}

#[cfg(test)]
mod tests {
    use super::{Clients, Kill, is_within, killed};
    use holdup_proc::Root;
    use holdup_proc::conversations::Connection;
    use holdup_proc::listen_queues::ListenQueue;
    use holdup_proc::maps::Mapping;
    use std::fs;
    use std::net::SocketAddr;
    use std::os::unix::fs::symlink;

    const S: u64 = 1_000_000_000;

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    /// A tree in which process 9 has socket 91.
    fn tree() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let process = folder.path().join("proc/9");
        fs::create_dir_all(process.join("fd")).unwrap();
        fs::write(process.join("comm"), "kiosk\n").unwrap();
        symlink("socket:[91]", process.join("fd/3")).unwrap();
        let root = Root::below(folder.path());
        (folder, root)
    }

    /// Whom a server stands on that listens on port 7000 and reads from these sockets, while somebody waits for 30 s. Nothing has ever come on
    /// 50; on 51 something came so many seconds ago; 52 is its own question to port 9000.
    fn who(reads: &[u64], seconds: u32) -> Option<(u32, String, Option<u64>)> {
        let (_folder, root) = tree();
        let connections = [
            Connection::at_rest(at(7000), at(40_001), 50),
            Connection::at_rest(at(40_001), at(7000), 91),
            Connection {
                received_ms: Some(seconds * 1000),
                received_bytes: 12,
                ..Connection::at_rest(at(7000), SocketAddr::from(([10, 0, 0, 9], 4000)), 51)
            },
            Connection::at_rest(at(40_002), at(9000), 52),
        ];
        let queues = [ListenQueue {
            address: at(7000),
            waiting: 3,
            limit: 5,
            inode: 59,
        }];
        let links: Vec<String> = reads.iter().map(|inode| format!("socket:[{inode}]")).collect();
        let mut clients = Clients::of(&root, 1, &connections, &queues);
        let found = clients.who(&links, 30 * S)?;
        Some((found.by.pid, found.by.name, found.silent))
    }

    #[test]
    fn a_client_that_never_said_anything_occupies_a_server() {
        assert_eq!(who(&[50], 40), Some((9, "kiosk".to_owned(), None)));
        let elsewhere = Some((0, "10.0.0.9:4000".to_owned(), Some(40 * S)));
        assert_eq!(who(&[51], 40), elsewhere, "one that fell silent, elsewhere");
        assert_eq!(who(&[50, 51], 40).map(|one| one.0), Some(9), "two threads");
    }

    #[test]
    fn one_that_speaks_now_and_then_and_a_question_of_its_own_do_not() {
        assert_eq!(who(&[51], 4), None);
        assert_eq!(who(&[50, 51], 4), None, "another thread has something to do");
        assert_eq!(who(&[52], 40), None);
        assert_eq!(who(&[], 40), None);
    }

    #[test]
    fn only_a_word_in_memory_that_processes_share_is_their_lock() {
        let shared = Mapping {
            start: 0x7000,
            end: 0x8000,
            offset: 0,
            device: (0, 1),
            inode: 5,
            path: "/dev/shm/ingest".to_owned(),
        };
        let shared = [shared];
        assert!(is_within(&shared, 0x7000) && is_within(&shared, 0x7ffc));
        assert!(!is_within(&shared, 0x8000), "a thread's word on its own stack");
        assert!(!is_within(&[], 0x7000));
    }

    /// Who was killed beside process 7, whose parent is 3: its other child 8 is a zombie with this status.
    fn dead(status: u32, kills: &[Kill]) -> Option<(u32, bool, Option<String>)> {
        beside("ingest", status, kills)
    }

    /// The same of a child of this name.
    fn beside(zombie: &str, status: u32, kills: &[Kill]) -> Option<(u32, bool, Option<String>)> {
        let (folder, root) = tree();
        for (pid, parent, state) in [(3, 1, 'S'), (7, 3, 'S'), (8, 3, 'Z')] {
            let process = folder.path().join(format!("proc/{pid}"));
            fs::create_dir_all(process.join(format!("task/{pid}"))).unwrap();
            let name = if pid == 8 { zombie } else { "ingest" };
            fs::write(process.join("comm"), format!("{name}\n")).unwrap();
            fs::write(
                process.join("status"),
                format!("Name:\tingest\nState:\t{state} (x)\nPPid:\t{parent}\n"),
            )
            .unwrap();
            fs::write(
                process.join("stat"),
                format!("{pid} (ingest) {state} 3 0 {status}\n"),
            )
            .unwrap();
        }
        fs::write(folder.path().join("proc/3/task/3/children"), "7 8 ").unwrap();
        let found = killed(&root, 7, 30 * S, kills)?;
        Some((found.process.pid, found.zombie_of.is_some(), found.memory))
    }

    fn kill(pid: u32, name: &str, seconds: u64) -> Kill {
        Kill {
            pid,
            name: name.to_owned(),
            cgroup: Some("/ingest".to_owned()),
            ago: seconds * S,
        }
    }

    #[test]
    fn a_killed_sibling_that_nobody_has_asked_for_is_found() {
        let by_memory = Some((8, true, Some("/ingest".to_owned())));
        assert_eq!(dead(9, &[kill(8, "ingest", 31)]), by_memory);
        assert_eq!(
            dead(9, &[kill(4711, "ingest", 31)]),
            by_memory,
            "a container's ids"
        );
        assert_eq!(dead(9, &[]), Some((8, true, None)), "a signal alone");
    }

    #[test]
    fn one_that_ended_by_itself_and_kills_of_another_time_are_not() {
        assert_eq!(dead(256, &[]), None);
        assert_eq!(dead(0, &[kill(4711, "ingest", 3000)]), None);
        assert_eq!(dead(0, &[kill(4711, "other", 31)]), None);
        assert_eq!(beside("convert", 9, &[]), None, "a helper that was ended");
        let gone = Some((8, true, Some("/ingest".to_owned())));
        assert_eq!(dead(0, &[kill(8, "ingest", 3000)]), gone);
    }
}
