//! Processes that do the same work side by side: the workers of a server, and a server's helpers.
//!
//! The problem: that one worker waits is ordinary, that all of them do stops the service, and only who the others are tells the two apart.
//! In: the processes that are observed, as observation begins and as it ends. Out: children of one parent and name that accept at the same
//! listeners, with the clients in the queues of those; or that the parent hands work to, by a pipe each way or a pair of sockets.

use super::moment::Moment;
use holdup_evidence::facts::{LedBack, SharedListener, Workers};
use holdup_proc::descriptors::Ends;
use holdup_proc::sampling::sockets::unix_peers;
use holdup_proc::sockets::Sockets;
use holdup_proc::{conversations, led_back, listen_queues, names, tasks};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Processes that are looked at: of a recorder's, each look would take long.
const PROCESSES_MAX: usize = 512;

/// Listeners of a process that are looked at.
const LISTENERS_MAX: usize = 8;

/// Unnamed sockets of a helper whose other ends are asked for, one question to the kernel each, and all such questions.
const PAIRS_MAX: usize = 8;
const QUESTIONS_MAX: usize = 256;

/// Listeners, of all workers, of which it is asked who leads back to them: of each that costs up to 512 questions to the kernel.
const LED_BACK_MAX: usize = 8;

/// From so many on, children that are handed work are workers: one alone is a program that another uses.
const HELPERS_MIN: usize = 2;

/// The first process: its children need have nothing in common.
const FIRST: u32 = 1;

/// What processes have in common that may work side by side.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Siblings {
    parent: u32,
    /// Itself, of a process that nobody in particular has started.
    alone: Option<u32>,
    name: String,
    /// By inode.
    listeners: BTreeSet<u64>,
}

/// How many clients stood in the queues of listeners at an instant, by inode.
#[derive(Debug, Default)]
pub(super) struct Standing(HashMap<u64, (String, u32)>);

impl Standing {
    /// Looks at the listeners of these processes.
    pub(super) fn look(pids: &BTreeSet<u32>, moment: &mut Moment) -> Standing {
        let mut found = HashMap::new();
        for pid in pids.iter().take(PROCESSES_MAX) {
            let Some(ends) = moment.ends(*pid) else { continue };
            let sockets = moment.sockets(*pid);
            for inode in listeners(&ends, &sockets) {
                found.entry(inode).or_insert_with(|| standing(inode, &sockets));
            }
        }
        Standing(found)
    }

    fn waiting(&self, inode: u64) -> u32 {
        self.0.get(&inode).map_or(0, |(_, waiting)| *waiting)
    }
}

/// The address of a listener, and how many clients stand there.
fn standing(inode: u64, sockets: &Sockets) -> (String, u32) {
    if let Some(path) = sockets.unix.get(&inode) {
        let queued = u32::try_from(unix_peers::queued(inode).len()).unwrap_or(u32::MAX);
        return (path.path.clone(), queued);
    }
    let tcp = sockets.tcp.iter().find(|one| one.listens && one.inode == inode);
    tcp.map_or_else(Default::default, |one| (one.local.to_string(), one.waiting))
}

/// Listeners that a process has open, by inode, lowest first.
fn listeners(ends: &Ends, sockets: &Sockets) -> BTreeSet<u64> {
    let tcp = sockets.tcp.iter().filter(|one| one.listens).map(|one| one.inode);
    let unix = sockets.unix.iter().filter(|(_, one)| one.listens);
    let all = tcp.chain(unix.map(|(inode, _)| *inode));
    let own = all.filter(|inode| *inode != 0 && ends.sockets.contains(inode));
    own.collect::<BTreeSet<u64>>()
        .into_iter()
        .take(LISTENERS_MAX)
        .collect()
}

/// The workers among these processes, as observation ends; `before`: as it began.
pub(super) fn look(pids: &BTreeSet<u32>, before: &Standing, moment: &mut Moment) -> Vec<Workers> {
    let after = Standing::look(pids, moment);
    let mut groups: BTreeMap<Siblings, Vec<u32>> = BTreeMap::new();
    for pid in pids.iter().take(PROCESSES_MAX) {
        let Some(comm) = names::comm(&moment.root, *pid) else {
            continue;
        };
        let Some(ends) = moment.ends(*pid) else { continue };
        let parent = names::parent(&moment.root, *pid).unwrap_or(0);
        let key = Siblings {
            parent,
            alone: (parent <= FIRST).then_some(*pid),
            name: comm,
            listeners: listeners(&ends, &moment.sockets(*pid)),
        };
        groups.entry(key).or_default().push(*pid);
    }
    let mut questions = 0;
    let mut back = Back::default();
    let mut found = Vec::new();
    for (siblings, workers) in groups {
        let (parent, shared) = (siblings.parent, &siblings.listeners);
        let several = workers.len() >= HELPERS_MIN;
        let mut help = || {
            let mut all = workers.iter();
            several && all.all(|pid| helps(*pid, parent, &mut questions, moment))
        };
        if shared.is_empty() && !help() {
            continue;
        }
        let shared_listener = |inode: &u64| {
            let (address, waiting) = after.0.get(inode)?;
            Some(SharedListener {
                address: address.clone(),
                before: before.waiting(*inode),
                after: *waiting,
                led_back: Vec::new(),
            })
        };
        let mut at: Vec<SharedListener> = Vec::new();
        for inode in shared {
            let Some(mut listener) = shared_listener(inode) else {
                continue;
            };
            if listener.before > 0 && listener.after > 0 {
                listener.led_back = back.leading_to(*inode, &workers, moment);
            }
            at.push(listener);
        }
        found.push(Workers {
            parent_process: names::comm(&moment.root, parent).unwrap_or_default(),
            unobserved: match siblings.alone {
                Some(_) => 0,
                None => unobserved(parent, &siblings.name, shared, pids, moment),
            },
            at,
            parent,
            process: siblings.name,
            pids: workers,
        });
    }
    found
}

/// Who leads back to listeners, in one look.
#[derive(Debug, Default)]
struct Back {
    /// What is open on the connections of all processes, once that was needed.
    asked: Option<Option<led_back::Asked>>,
    /// Listeners that were looked at.
    looked: usize,
}

impl Back {
    /// Who waits for nothing but these workers of a listener. Of another network namespace the connections are not known.
    fn leading_to(&mut self, listener: u64, workers: &[u32], moment: &mut Moment) -> Vec<LedBack> {
        let Some(first) = workers.first().filter(|_| self.looked < LED_BACK_MAX) else {
            return Vec::new();
        };
        if moment.namespace(*first) != moment.namespace(std::process::id()) {
            return Vec::new();
        }
        self.looked += 1;
        let sockets = moment.sockets(*first);
        // Who leads back has no question elsewhere: for that all of them have to be known.
        if !moment.knows_all_holders() {
            return Vec::new();
        }
        let of = |inode: u64| moment.holders_of(inode).first().copied();
        let read = || {
            let connections = conversations::read_whole()?;
            Some(led_back::Asked::of(&connections, &listen_queues::read(), of))
        };
        let Some(asked) = self.asked.get_or_insert_with(read) else {
            return Vec::new();
        };
        let workers = workers.iter().copied().collect();
        let found = asked.lead_back(&moment.root, listener, &workers, &sockets, of);
        let named = found.into_iter().map(|one| LedBack {
            pid: one.pid,
            process: names::comm(&moment.root, one.pid).unwrap_or_default(),
            queued: one.queued,
        });
        named.collect()
    }
}

/// Children of a process with this name and these listeners that are not observed.
fn unobserved(
    parent: u32,
    process: &str,
    shared: &BTreeSet<u64>,
    observed: &BTreeSet<u32>,
    moment: &mut Moment,
) -> u32 {
    let children = tasks::children(&moment.root, parent).into_iter();
    let others: Vec<u32> = children.filter(|child| !observed.contains(child)).collect();
    let mut count: u32 = 0;
    for child in others.into_iter().take(PROCESSES_MAX) {
        let same = names::comm(&moment.root, child).as_deref() == Some(process);
        let ends = moment.ends(child).filter(|_| same);
        count += u32::from(ends.is_some_and(|ends| shared.iter().all(|inode| ends.sockets.contains(inode))));
    }
    count
}

/// Whether a process and its parent can each send the other something that nobody else reads.
fn helps(pid: u32, parent: u32, questions: &mut usize, moment: &mut Moment) -> bool {
    let (Some(own), Some(its)) = (moment.ends(pid), moment.ends(parent)) else {
        return false;
    };
    let hears = own
        .read
        .difference(&own.written)
        .any(|pipe| its.written.contains(pipe));
    let says = own
        .written
        .difference(&own.read)
        .any(|pipe| its.read.contains(pipe));
    if hears && says {
        return true;
    }
    let sockets = moment.sockets(pid);
    let unnamed = own.sockets.iter().filter(|inode| sockets.unnamed.contains(inode));
    for inode in unnamed.take(PAIRS_MAX) {
        *questions += 1;
        if *questions > QUESTIONS_MAX {
            return false;
        }
        let peer = unix_peers::of(*inode);
        if peer.is_some_and(|peer| its.sockets.contains(&peer) && !own.sockets.contains(&peer)) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{Back, LED_BACK_MAX, Moment, Standing, look};
    use std::collections::BTreeSet;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn a_process_with_listeners_is_a_worker_and_its_queues_are_counted() {
        let own = BTreeSet::from([std::process::id()]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let unix = UnixListener::bind(&path).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let _clients = [(); 2].map(|()| TcpStream::connect(tcp.local_addr().unwrap()).unwrap());
        let before = Standing::look(&own, &mut Moment::now());
        let _one = UnixStream::connect(&path).unwrap();
        let found = look(&own, &before, &mut Moment::now());
        let all: Vec<_> = found.iter().flat_map(|one| &one.at).collect();
        let at = |address: &str| {
            let one = all.iter().find(|one| one.address == address).unwrap();
            (one.before, one.after)
        };
        assert_eq!(at(&tcp.local_addr().unwrap().to_string()), (2, 2));
        assert_eq!(at(&path.display().to_string()), (0, 1));
        drop(unix);
    }

    #[test]
    fn the_tables_are_read_once_and_so_many_listeners_are_looked_at() {
        let (mut back, mut moment) = (Back::default(), Moment::now());
        assert!(back.asked.is_none(), "nobody has asked yet");
        for listener in 0..100 {
            back.leading_to(u64::MAX - listener, &[std::process::id()], &mut moment);
            assert!(back.asked.is_some());
        }
        assert_eq!(back.looked, LED_BACK_MAX);
    }
}
