//! A stopped process at the far end of what a server is connected with: `sshfs`, its `ssh`, the machine's `sshd`, and `sftp-server` behind
//! that.
//!
//! In: stopped processes, and servers that do not answer. Out: which of these is connected with which of those, through pipes, Unix
//! sockets and TCP connections. Who waits in a call for several descriptors does not tell for which, so this is a likely way and not a
//! proved one. A process with many peers, such as a message bus, connects everything with everything, and ends the way.

use holdup_proc::Root;
use holdup_proc::conversations::Connection;
use holdup_proc::descriptors::{self, Open};
use holdup_proc::sampling::sockets::unix_peers;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Steps of a way.
const MAX_STEPS: usize = 4;

/// Other processes that one may be connected with and be a step of a way.
const MAX_PEERS: usize = 6;

/// Processes that are looked at from one stopped process.
const MAX_PROCESSES: usize = 32;

/// Ends of a process that are followed.
const MAX_ENDS: usize = 64;

/// Processes that wait for another machine from which ways are looked for.
const MAX_AWAY: usize = 8;

/// Everybody's parent, which has ends of everything.
const INIT: u32 = 1;

/// Processes that cannot go on, so that a server which is connected with one of them may wait for it.
#[derive(Debug, Default)]
pub(super) struct Ends {
    /// Those that are stopped.
    pub(super) stopped: Vec<u32>,
    /// Those that wait for a frozen file system.
    pub(super) frozen: Vec<u32>,
    /// Those that have asked another machine, and were not answered.
    pub(super) away: Vec<u32>,
}

/// Of each server the one of these that it is connected with: a stopped one first, then one that waits for a frozen file system, then one that
/// waits for another machine.
pub(super) fn behind(
    root: &Root,
    own: u32,
    ends: &Ends,
    servers: &BTreeSet<u32>,
    connections: &[Connection],
) -> BTreeMap<u32, u32> {
    if servers.is_empty() {
        return BTreeMap::new();
    }
    let stopped = ends.stopped.iter().copied();
    let mut ways = connected(root, own, stopped, servers, connections);
    // Of several that wait for one file system each is as good.
    let frozen = ends.frozen.iter();
    let frozen = frozen.map(|one| connected(root, own, std::iter::once(*one), servers, connections));
    let away = ends.away.iter().copied().take(MAX_AWAY);
    let frozen: Vec<BTreeMap<u32, u32>> = frozen.collect();
    let away = connected(root, own, away, servers, connections);
    for (server, end) in frozen.into_iter().flatten().chain(away) {
        ways.entry(server).or_insert(end);
    }
    ways.into_iter().filter(|(server, end)| server != end).collect()
}

/// Of each server that is connected with a stopped process, that process; of servers with several, none.
pub(super) fn connected(
    root: &Root,
    own: u32,
    stopped: impl Iterator<Item = u32>,
    servers: &BTreeSet<u32>,
    connections: &[Connection],
) -> BTreeMap<u32, u32> {
    let mut found: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for halted in stopped {
        for server in reached(root, own, halted, servers, connections) {
            found.entry(server).or_default().insert(halted);
        }
    }
    let only = |(server, halted): (u32, BTreeSet<u32>)| {
        let mut halted = halted.into_iter();
        Some((server, halted.next().filter(|_| halted.next().is_none())?))
    };
    found.into_iter().filter_map(only).collect()
}

/// The servers that are connected with one process.
fn reached(
    root: &Root,
    own: u32,
    from: u32,
    servers: &BTreeSet<u32>,
    connections: &[Connection],
) -> Vec<u32> {
    let mut known = BTreeSet::from([from]);
    let mut front = vec![from];
    for _ in 0..MAX_STEPS {
        let ends: HashMap<u32, Vec<Open>> = front
            .iter()
            .map(|pid| (*pid, others(root, *pid, connections)))
            .collect();
        let wanted: HashSet<Open> = ends.values().flatten().cloned().collect();
        if wanted.is_empty() {
            break;
        }
        let holders = descriptors::holders(root, &wanted, own);
        let mut next = BTreeSet::new();
        for (pid, ends) in &ends {
            let peers: BTreeSet<u32> = (ends.iter().filter_map(|end| holders.get(end)))
                .flatten()
                .copied()
                .filter(|peer| peer != pid && *peer != INIT)
                .collect();
            if peers.len() <= MAX_PEERS {
                next.extend(peers.into_iter().filter(|peer| !known.contains(peer)));
            }
        }
        known.extend(&next);
        if known.len() > MAX_PROCESSES {
            break;
        }
        // A server that is asked is where the way ends.
        front = next.into_iter().filter(|pid| !servers.contains(pid)).collect();
    }
    servers
        .iter()
        .filter(|pid| known.contains(pid))
        .copied()
        .collect()
}

/// The other ends of what a process has open.
fn others(root: &Root, pid: u32, connections: &[Connection]) -> Vec<Open> {
    let Some(ends) = descriptors::ends(root, pid) else {
        return Vec::new();
    };
    let reads = ends.read.iter().map(|inode| Open::PipeToWrite(*inode));
    let writes = ends.written.iter().map(|inode| Open::PipeToRead(*inode));
    let sockets = ends.sockets.iter().filter_map(|inode| {
        let tcp = connections.iter().find(|one| one.inode == *inode);
        match tcp {
            Some(one) => {
                let other = |other: &&Connection| (other.local, other.peer) == (one.peer, one.local);
                connections.iter().find(other).map(|other| other.inode)
            }
            None => unix_peers::of(*inode),
        }
    });
    let sockets = sockets.filter(|inode| *inode != 0).map(Open::Socket);
    reads.chain(writes).chain(sockets).take(MAX_ENDS).collect()
}

#[cfg(test)]
mod tests {
    use super::connected;
    use holdup_proc::Root;
    use holdup_proc::conversations::Connection;
    use std::collections::{BTreeMap, BTreeSet};
    use std::net::SocketAddr;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// Descriptors of processes: what each leads to. Links have the permissions of nobody's pipe, so sockets stand for all.
    fn machine(all: &[(u32, &[u64])]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (pid, sockets) in all {
            let fds = folder.path().join(format!("proc/{pid}/fd"));
            std::fs::create_dir_all(&fds).unwrap();
            std::fs::set_permissions(&fds, std::fs::Permissions::from_mode(0o700)).unwrap();
            for inode in *sockets {
                symlink(format!("socket:[{inode}]"), fds.join(inode.to_string())).unwrap();
            }
        }
        folder
    }

    /// Connections between pairs of inodes.
    fn pairs(all: &[(u64, u64)]) -> Vec<Connection> {
        let at = |port: u64| SocketAddr::from(([127, 0, 0, 1], port as u16));
        let end = |port: u64, peer: u64| Connection::at_rest(at(port), at(peer), port);
        all.iter()
            .flat_map(|(one, other)| [end(*one, *other), end(*other, *one)])
            .collect()
    }

    fn found(all: &[(u32, &[u64])], connections: &[(u64, u64)], stopped: &[u32]) -> BTreeMap<u32, u32> {
        let folder = machine(all);
        let servers = BTreeSet::from([10]);
        let root = Root::below(folder.path());
        connected(&root, 7, stopped.iter().copied(), &servers, &pairs(connections))
    }

    #[test]
    fn a_daemon_is_connected_with_what_is_stopped_behind_others() {
        // 10 sshfs - 11 ssh - 12 sshd - 13 sftp-server
        let all: [(u32, &[u64]); 4] = [(10, &[100]), (11, &[110, 111]), (12, &[120, 121]), (13, &[130])];
        let connections = [(100, 110), (111, 120), (121, 130)];
        assert_eq!(found(&all, &connections, &[13]), BTreeMap::from([(10, 13)]));
        assert!(found(&all, &connections, &[99]).is_empty());
    }

    #[test]
    fn a_process_that_is_connected_with_many_is_no_step_of_a_way() {
        let mut all: Vec<(u32, Vec<u64>)> = (0..12).map(|at| (10 + at, vec![100 + u64::from(at)])).collect();
        all.push((50, (200..212).collect()));
        let all: Vec<(u32, &[u64])> = all.iter().map(|(pid, ends)| (*pid, ends.as_slice())).collect();
        let connections: Vec<(u64, u64)> = (0..12).map(|at| (100 + at, 200 + at)).collect();
        assert!(found(&all, &connections, &[15]).is_empty());
    }
}
