//! Who is behind a pooler: the client that has the pooler's connection to the server.
//!
//! In: sessions at the ends of chains, whose clients may be poolers. Out: the same, with the pooler's client where one has the connection. The
//! pooler's memory is read by the child that reads the servers'.

use super::reading::{OfPooler, Question, Read};
use crate::behind::Readers;
use crate::database_memory::accepted;
use crate::moment::Moment;
use crate::sessions;
use holdup_evidence::facts::LockSession;
use holdup_knowledge::programs;
use holdup_proc::descriptors::Open;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Poolers that are looked at.
const MAX_POOLERS: usize = 4;

/// Descriptors of a pooler that are looked at.
const MAX_DESCRIPTORS: usize = 8192;

/// Looks behind the poolers.
pub(super) fn look(
    memory: &mut Readers<Question, Option<Read>>,
    sessions: &mut [LockSession],
    moment: &mut Moment,
) {
    let poolers: BTreeSet<u32> = sessions.iter().filter_map(pooler).collect();
    for pid in poolers.into_iter().take(MAX_POOLERS) {
        behind(pid, memory, sessions, moment);
    }
}

/// The pooler that a session is of.
fn pooler(session: &LockSession) -> Option<u32> {
    let client = session.client.as_ref()?;
    client.pid.filter(|_| programs::is_pooler(&client.process))
}

fn behind(
    pid: u32,
    memory: &mut Readers<Question, Option<Read>>,
    sessions: &mut [LockSession],
    moment: &mut Moment,
) {
    let accepted = accepted(pid, moment);
    let sockets = moment.sockets(pid);
    let descriptors = descriptors_of(moment, pid);
    let by_inode: HashMap<u64, u32> = descriptors.iter().map(|(fd, inode)| (*inode, *fd)).collect();
    let (clients, others): (Vec<_>, Vec<_>) = descriptors
        .iter()
        .copied()
        .partition(|(_, inode)| accepted.contains_key(inode));
    let question = Question::Pooler(OfPooler {
        pid,
        clients: clients.iter().map(|(fd, _)| *fd).collect(),
        servers: others.iter().map(|(fd, _)| *fd).collect(),
    });
    let Some(Read::Pooler(links)) = memory.ask(pid, question).flatten() else {
        return;
    };
    let by_server: HashMap<u32, u32> = links.into_iter().collect();
    let inodes: HashMap<u32, u64> = clients.into_iter().collect();
    for session in sessions.iter_mut().filter(|one| pooler(one) == Some(pid)) {
        let address = session.client.as_ref().and_then(|client| client.address);
        let own = sockets
            .tcp
            .iter()
            .find(|one| !one.listens && Some(one.local) == address);
        let client = own
            .and_then(|one| by_server.get(by_inode.get(&one.inode)?))
            .and_then(|fd| accepted.get(inodes.get(fd)?));
        let Some(end) = client else { continue };
        let holders = end.inode.map(|inode| {
            let wanted = HashSet::from([Open::Socket(inode)]);
            moment.holders(&wanted)
        });
        let mut pids = holders.into_iter().flat_map(HashMap::into_values).flatten();
        let found = sessions::client(&moment.root, end.address, pids.find(|one| *one != pid));
        session.pooler = session.client.replace(found);
    }
}

/// The sockets of a process, by descriptor.
fn descriptors_of(moment: &Moment, pid: u32) -> Vec<(u32, u64)> {
    let folder = moment.root.proc.join(pid.to_string()).join("fd");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let socket = |entry: std::fs::DirEntry| {
        let target = std::fs::read_link(entry.path()).ok()?;
        let inode = target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
        let fd = entry.file_name().to_str()?.parse().ok()?;
        Some((fd, inode.parse().ok()?))
    };
    entries.take(MAX_DESCRIPTORS).filter_map(socket).collect()
}
